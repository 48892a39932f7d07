// Documents of a schema, byte by byte: what may follow what is there.
//
// A document is written without needless freedom, so that a model cannot lose itself in it:
//   whitespace  before a value, a name or a closing bracket: nothing, one space, or a line end and up to 32 spaces or tabs; none before , and :
//   strings     characters as they are; escaped are only " \ and control characters (\b \f \n \r \t \u00XX)
//   numbers     numbers.h; of 48 bytes at most
//   objects     members in any order, no name twice
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "engine/json_schema/shortest.h"

namespace sator::json_schema {

/// How far a string has been read, escapes apart from characters.
struct StringReader {
  enum class Stage : uint8_t { plain, escape, u, u0, u00, u000, u001 };
  enum class Read { nothing, character_byte, closed, refused };
  Stage stage = Stage::plain;

  /// Takes a byte; `out` is the byte of the string's text that it completes.
  Read take(unsigned char byte, unsigned char& out);
  /// The characters that an escape which has begun can still become.
  std::span<const unsigned char> possible() const;
  bool operator==(const StringReader&) const = default;
};

/// A place in a document: stacks of what is open, one for each way in which the text may be meant (anyOf). The automaton keeps the frames of the
/// stacks; what a look ahead adds is taken off again.
class Automaton {
 public:
  explicit Automaton(std::shared_ptr<const Shapes> shapes);

  /// What is open, the innermost last.
  struct Frame {
    enum class Kind : uint8_t { value, word, number, string, array, object, name, colon };
    Kind kind = Kind::value;
    uint8_t space = 0;             // whitespace before the next byte: 1 a space, 2 + n a line end and n spaces
    bool is_first = false;         // of array, object: nothing was read behind the bracket but space
    bool wants_name = false;       // of object: a comma was read
    StringReader reader = {};      // of string, name
    int32_t of = 0;                // index of a shape; of value, colon: a ValueId; of number: of an automaton
    int32_t state = 0;             // of the shape's automaton; of word: bytes read
    int64_t count = 0;             // characters, bytes of a number, items
    int32_t text = -1, seen = -1;  // of name, object: indices of what is kept beside the frames
    int32_t parent = -1;           // index; -1: the document ends with this
    bool operator==(const Frame&) const = default;
  };
  /// What an object has.
  struct Seen : GivenNames {
    int64_t count = 0, required = 0;  // members, and of these those that are required
    bool operator==(const Seen&) const = default;
  };
  static constexpr int64_t kMostNumberBytes = 48;
  static constexpr int32_t kEnd = -1;  ///< the frame of a document that is complete

  /// Goes back to the begin.
  void restart();
  /// Takes bytes; false, and no change, where no document goes on so.
  bool take(std::string_view bytes);
  /// Whether the text is a whole document.
  bool is_complete() const;
  /// Whether any byte may follow.
  bool can_go_on() const;
  const std::vector<int32_t>& tops() const { return tops_; }
  /// What tells places apart: two that have it in common go on alike.
  std::string key() const;

  // For looks ahead (token_masks.cc):
  const Shapes& shapes() const { return *shapes_; }
  const Frame& frame(int32_t index) const { return frames_[static_cast<size_t>(index)]; }
  const std::string& text_of(const Frame& f) const { return texts_[static_cast<size_t>(f.text)]; }
  const Seen& seen_of(const Frame& f) const { return seens_[static_cast<size_t>(f.seen)]; }
  struct Mark {
    size_t frames, texts, seens;
  };
  Mark mark() const { return {frames_.size(), texts_.size(), seens_.size()}; }
  void release(const Mark& m);
  /// Where a byte leads from a frame, added to `out`.
  void step(int32_t top, unsigned char byte, std::vector<int32_t>& out);
  /// Where a value that ends leads.
  int32_t ended(const Frame& f) const { return f.parent; }
  /// Where a name that ends leads: its value's colon. False where the name may not stand there.
  bool close_name(int32_t object, const std::string& name, int32_t state, int32_t& to);
  /// Whether a member that is required or not, or has a name that the schema does not name, has room.
  bool has_room(const Shape& shape, const Seen& seen, bool required) const;
  /// Whether names that the schema does not name lead on from a state to infinitely many.
  bool is_free(const Shape& shape, int32_t state) const {
    return shapes_->name_counts[static_cast<size_t>(shape.dfa)][static_cast<size_t>(state)] == kInfinite;
  }
  /// Whether that holds for each of its states.
  bool all_free(const Shape& shape) const { return all_free_[static_cast<size_t>(shape.dfa)]; }

 private:
  const Shape& shape(int32_t index) const { return shapes_->shapes[static_cast<size_t>(index)]; }
  const Dfa& dfa(int32_t index) const { return shapes_->dfas[static_cast<size_t>(index)]; }
  bool leads_on(int32_t dfa, int32_t state) const {
    return shapes_->distances[static_cast<size_t>(dfa)][static_cast<size_t>(state)] >= 0;
  }
  int32_t add(Frame f);
  bool take_space(Frame f, unsigned char byte, std::vector<int32_t>& out);
  void step_value(const Frame& f, int32_t index, unsigned char byte, std::vector<int32_t>& out);
  void step_string(Frame f, unsigned char byte, std::vector<int32_t>& out);
  void step_name(Frame f, unsigned char byte, std::vector<int32_t>& out);
  void step_array(Frame f, unsigned char byte, std::vector<int32_t>& out);
  void step_object(Frame f, unsigned char byte, std::vector<int32_t>& out);
  void open_item(Frame array, unsigned char byte, std::vector<int32_t>& out);
  bool number_has_room(const Frame& f) const;
  bool text_leads_on(const Shape& s, int32_t state, int64_t count) const;
  bool name_leads_on(const Shape& s, const Seen& seen, const std::string& text, int32_t state) const;
  bool may_close(const Shape& s, const Seen& seen) const;
  bool may_add_member(const Shape& s, const Seen& seen) const;
  void keep_only(std::vector<int32_t> tops);

  std::shared_ptr<const Shapes> shapes_;
  std::vector<bool> all_free_;  // [dfa of other names]
  std::vector<Frame> frames_;
  std::vector<std::string> texts_;
  std::vector<Seen> seens_;
  std::vector<int32_t> tops_;
};

}  // namespace sator::json_schema
