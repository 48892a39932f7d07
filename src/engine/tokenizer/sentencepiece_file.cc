// The file format of SentencePiece models.
#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_set>

#include "base/error.h"
#include "base/text.h"
#include "engine/tokenizer/sentencepiece.h"
#include "engine/tokenizer/unicode.h"

namespace sator {

namespace {

/// The fields of one message of a protocol buffer, in their order.
/// Source: "Protocol Buffers: Encoding", protobuf.dev.
class Message {
 public:
  Message(std::string_view bytes, const std::string& where) : rest_(bytes), where_(where) {}

  /// Goes to the next field; false at the end.
  bool next() {
    if (rest_.empty()) return false;
    const uint64_t key = varint();
    number_ = key >> 3, wire_ = static_cast<int>(key & 7);
    switch (wire_) {
      case 0: value_ = varint(); return true;
      case 1: bytes_ = take(8); return true;
      case 2: bytes_ = take(varint()); return true;
      case 5: bytes_ = take(4); return true;
      default: bad(text("a field of wire type ", wire_));
    }
  }
  uint64_t number() const { return number_; }
  std::string_view bytes() const { return expect(2), bytes_; }
  bool flag() const { return expect(0), value_ != 0; }
  int32_t integer() const { return expect(0), static_cast<int32_t>(value_); }
  float real() const {
    expect(5);
    float out = 0;
    std::memcpy(&out, bytes_.data(), sizeof out);
    return out;
  }
  [[noreturn]] void bad(std::string_view why) const {
    fail({.what = text(where_, " is no SentencePiece model: ", why),
          .needs = "a file of the message ModelProto, as SentencePiece's trainer writes it"});
  }

 private:
  void expect(int wire) const {
    if (wire_ != wire) bad(text("field ", number_, " has wire type ", wire_, " instead of ", wire));
  }
  uint64_t varint() {
    uint64_t out = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      out |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return out;
    }
    bad(rest_.empty() ? "it ends within a number" : "a number has more than ten bytes");
  }
  std::string_view take(uint64_t count) {
    if (count > rest_.size()) bad(text("a field of ", count, " bytes, where ", rest_.size(), " are left"));
    std::string_view out = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return out;
  }

  std::string_view rest_;
  const std::string& where_;
  uint64_t number_ = 0, value_ = 0;
  int wire_ = 0;
  std::string_view bytes_;
};

SentencePieceFile::Piece read_piece(Message m) {
  SentencePieceFile::Piece piece;
  while (m.next()) {
    if (m.number() == 1) piece.text = m.bytes();
    if (m.number() == 2) piece.score = m.real();
    if (m.number() != 3) continue;
    if (m.integer() < 1 || m.integer() > 6) m.bad(text("a piece of type ", m.integer()));
    piece.type = static_cast<SentencePieceFile::Type>(m.integer());
  }
  if (piece.text.empty()) m.bad("a piece without text");
  if (!is_valid_utf8(piece.text)) m.bad(text("the piece ", string_literal(piece.text), " is no UTF-8"));
  if (piece.score != piece.score)
    m.bad(text("the piece ", string_literal(piece.text), " has a score that is no number"));
  return piece;
}

/// What of the trainer's settings matters later.
struct TrainerIds {
  int32_t bos = 1, eos = 2;
};

TrainerIds read_trainer(Message m, SentencePieceFile& file) {
  TrainerIds ids;
  while (m.next()) switch (m.number()) {
      case 3: file.algorithm = static_cast<SentencePieceFile::Algorithm>(m.integer()); break;
      case 24: file.whitespace_as_suffix = m.flag(); break;
      case 35: file.byte_fallback = m.flag(); break;
      case 41: ids.bos = m.integer(); break;
      case 42: ids.eos = m.integer(); break;
      case 44: file.unknown_surface = lossy_utf8(m.bytes()); break;
      default: break;
    }
  return ids;
}

void read_normalizer_spec(Message m, SentencePieceFile& file, const std::string& where) {
  while (m.next()) switch (m.number()) {
      case 2: file.charsmap = Charsmap::read(m.bytes(), where); break;
      case 3: file.add_dummy_prefix = m.flag(); break;
      case 4: file.remove_extra_whitespaces = m.flag(); break;
      case 5: file.escape_whitespaces = m.flag(); break;
      default: break;
    }
}

void check_pieces(SentencePieceFile& file, const Message& m) {
  std::unordered_set<std::string_view> seen;
  size_t bytes = 0;
  for (const SentencePieceFile::Piece& p : file.pieces) {
    if (!seen.insert(p.text).second) m.bad(text("the piece ", string_literal(p.text), " stands there twice"));
    if (p.type == SentencePieceFile::Type::byte) ++bytes;
    if (p.type != SentencePieceFile::Type::unknown) continue;
    if (file.unknown >= 0) m.bad("it has two unknown pieces");
    file.unknown = static_cast<int32_t>(&p - file.pieces.data());
  }
  if (file.unknown < 0) m.bad("it has no unknown piece");
  if (!file.byte_fallback) return;
  for (int b = 0; b < 256; ++b)
    if (!seen.contains(byte_token(b)) || bytes != 256)
      m.bad("byte fallback needs 256 pieces of type byte, <0x00> to <0xFF>");
}

}  // namespace

SentencePieceFile SentencePieceFile::read(std::string_view bytes, const std::string& where) {
  SentencePieceFile file;
  TrainerIds ids;
  Message m(bytes, where);
  while (m.next()) {
    if (m.number() == 1) {
      if (std::ssize(file.pieces) >= Vocabulary::kMaxId) m.bad("it has too many pieces");
      file.pieces.push_back(read_piece(Message(m.bytes(), where)));
    }
    if (m.number() == 2) ids = read_trainer(Message(m.bytes(), where), file);
    if (m.number() == 3) read_normalizer_spec(Message(m.bytes(), where), file, where);
    if (m.number() == 5) {
      SentencePieceFile other;
      read_normalizer_spec(Message(m.bytes(), where), other, where);
      if (!other.charsmap.empty())
        fail({.what = text(where, " has a denormalizer, rules for text that comes out, which is not supported"),
              .needs = "a model without one"});
    }
  }
  check_pieces(file, m);
  if (file.algorithm != Algorithm::unigram && file.algorithm != Algorithm::bpe)
    fail({.what = text(where,
                       " is a SentencePiece model of type ",
                       file.algorithm == Algorithm::word        ? "word"
                       : file.algorithm == Algorithm::character ? "char"
                                                                : "unknown to us",
                       ", which is not supported"),
          .needs = "unigram or bpe"});
  auto control = [&](int32_t id) {
    const bool there = id >= 0 && id < std::ssize(file.pieces);
    return there && file.pieces[static_cast<size_t>(id)].type == Type::control ? id : -1;
  };
  file.bos = control(ids.bos), file.eos = control(ids.eos);
  return file;
}

}  // namespace sator
