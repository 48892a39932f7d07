// Which tokens of a vocabulary may follow in a document.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "engine/json_schema/automaton.h"

namespace sator::json_schema {

/// Tokens by their bytes: a tree in which those with a common beginning share it. Nodes stand in the order of a walk that goes down first.
struct TokenTrie {
  struct Node {
    int32_t end = 0;         // index behind the last node below this one
    int32_t tokens = 0;      // where this node's tokens begin in `tokens`; they end where the next node's begin
    uint16_t depth = 0;      // bytes
    unsigned char byte = 0;  // the last of them
  };
  std::vector<Node> nodes;
  std::vector<int32_t> tokens;
  int64_t longest = 0;  ///< bytes of the longest token

  /// Tokens without bytes never follow.
  explicit TokenTrie(const std::vector<std::string>& bytes);
  std::span<const int32_t> tokens_at(int32_t node) const {
    const auto begin = static_cast<size_t>(nodes[static_cast<size_t>(node)].tokens);
    const auto end = static_cast<size_t>(nodes[static_cast<size_t>(node) + 1].tokens);
    return std::span(tokens).subspan(begin, end - begin);
  }
  /// The child by a byte; -1 if there is none.
  int32_t child(int32_t node, unsigned char byte) const;
};

/// Masks of the places of a document. Within strings a mask is the union of two: of tokens that stay in the string, kept for each state of
/// its automaton, and of those that end it, which depend on what is open around it and share a tree of what they have behind the quote.
class TokenMasks {
 public:
  /// The bytes of each token; empty: it never stands in a document.
  explicit TokenMasks(std::vector<std::string> bytes);

  const std::string& bytes_of(int32_t id) const { return bytes_[static_cast<size_t>(id)]; }
  const std::vector<std::string>& all_bytes() const { return bytes_; }
  const TokenTrie& trie() const { return trie_; }
  int64_t vocab_size() const { return std::ssize(bytes_); }
  static bool has(std::span<const uint64_t> mask, int32_t id) {
    return (mask[static_cast<size_t>(id) / 64] >> (id % 64) & 1) != 0;
  }
  int64_t longest_token() const { return trie_.longest; }  ///< bytes
  /// A text as tokens, as few as possible; nothing where no tokens make it.
  std::optional<std::vector<int32_t>> fewest_tokens(std::string_view text) const;
  /// A bit for each token: whether the document goes on with all of its bytes. It stays until the next call.
  std::span<const uint64_t> of(Automaton& place);

 private:
  using Mask = std::vector<uint64_t>;
  /// What tokens have behind the quote that ends a string.
  struct Suffix {
    std::vector<int32_t> tokens;
    std::vector<std::pair<unsigned char, int32_t>> children;
  };
  struct StringMask {
    Mask inside;
    std::vector<Suffix> exits;  // a tree, the first is its root
  };
  /// A token's part that ends a name which the schema does not name.
  struct NameExit {
    std::string text;  // characters before the quote
    int32_t state = 0, node = 0;
  };
  struct NameMask {
    Mask inside;
    std::vector<NameExit> exits;
  };

  void add_token(int32_t id) { mask_[static_cast<size_t>(id) / 64] |= uint64_t{1} << (id % 64); }
  void add_tokens(std::span<const int32_t> ids) {
    for (int32_t id : ids) add_token(id);
  }
  void add_mask(const Mask& m);
  void add_string(Automaton& a, const Automaton::Frame& f);
  void add_name(Automaton& a, const Automaton::Frame& f, int32_t top);
  void add_schema_names(Automaton& a, const Automaton::Frame& f, const Shape& s);
  void add_behind_name(Automaton& a, const Automaton::Frame& f, const std::string& name, int32_t state, int32_t node);
  void walk(Automaton& a, int32_t node, const std::vector<int32_t>& tops, size_t depth);
  void walk_suffix(Automaton& a, const std::vector<Suffix>& tree, int32_t node, const std::vector<int32_t>& tops,
                   size_t depth);
  void step_all(Automaton& a, const std::vector<int32_t>& tops, unsigned char byte, std::vector<int32_t>& out);
  const StringMask& string_mask(const Dfa& d, int32_t dfa, int32_t state, StringReader reader, int64_t room,
                                int64_t missing);
  const NameMask& name_mask(const Automaton& a, const Shape& s, int32_t state);
  void merge(std::vector<Suffix>& tree, int32_t at, int32_t node);

  std::vector<std::string> bytes_;
  TokenTrie trie_;
  Mask mask_;
  std::vector<std::vector<int32_t>> levels_;
  std::unordered_map<std::string, StringMask> strings_;
  std::unordered_map<std::string, NameMask> names_;
  std::unordered_map<std::string, Mask> places_;
};

}  // namespace sator::json_schema
