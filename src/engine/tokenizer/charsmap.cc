#include "engine/tokenizer/charsmap.h"

#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "engine/tokenizer/unicode.h"

namespace sator {

Charsmap Charsmap::read(std::string_view bytes, const std::string& where) {
  Charsmap map;
  if (bytes.empty()) return map;
  auto bad = [&](const std::string& why) {
    fail({.what = text(where, ": the table of replacements ", why),
          .needs = "its size, a tree of 32-bit words, and texts that end in zero bytes"});
  };
  uint32_t tree_bytes = 0;
  if (bytes.size() < sizeof tree_bytes) bad("is cut off");
  std::memcpy(&tree_bytes, bytes.data(), sizeof tree_bytes);
  bytes.remove_prefix(sizeof tree_bytes);
  if (tree_bytes > bytes.size() || tree_bytes % sizeof(uint32_t) != 0)
    bad(text("says that its tree has ", tree_bytes, " bytes; ", bytes.size(), " follow"));
  map.tree_.resize(tree_bytes / sizeof(uint32_t));
  if (tree_bytes > 0) std::memcpy(map.tree_.data(), bytes.data(), tree_bytes);
  map.texts_ = bytes.substr(tree_bytes);
  if (!is_valid_utf8(map.texts_)) bad("has texts that are no UTF-8");
  return map;
}

std::optional<Charsmap::Match> Charsmap::find(std::string_view s, bool first) const {
  // A word of the tree: bits 0..7 label (and bit 31, clear in an inner word), bit 8 a leaf hangs here, bit 9 the
  // offset is in steps of 256, bits 10..31 the offset. A leaf: bits 0..30 value.
  auto offset_of = [](uint32_t word) { return (word >> 10) << ((word & 0x200) >> 6); };
  std::optional<Match> found;
  if (tree_.empty()) return found;
  size_t node = offset_of(tree_[0]);
  for (size_t k = 0; k < s.size(); ++k) {
    const auto byte = static_cast<unsigned char>(s[k]);
    node ^= byte;
    if (byte == 0 || node >= tree_.size() || (tree_[node] & 0x800000ff) != byte) break;
    const uint32_t word = tree_[node];
    node ^= offset_of(word);
    if ((word & 0x100) == 0) continue;
    if (node >= tree_.size()) break;
    const size_t at = tree_[node] & 0x7fffffff;
    // A position inside a character is a damaged table's.
    if (at >= texts_.size() || (static_cast<unsigned char>(texts_[at]) & 0xc0) == 0x80) break;
    found = Match{k + 1, std::string_view(texts_).substr(at, texts_.find('\0', at) - at)};
    if (first) break;
  }
  return found;
}

std::optional<std::string> base64_decoded(std::string_view in) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (in.size() % 4 != 0) return {};
  size_t padding = in.ends_with("==") ? 2 : in.ends_with('=') ? 1 : 0;
  std::string out;
  out.reserve(in.size() / 4 * 3);
  uint32_t bits = 0;
  for (size_t k = 0; k < in.size(); ++k) {
    const size_t digit = k + padding < in.size() ? kDigits.find(in[k]) : 0;
    if (digit == std::string_view::npos) return {};
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if (k % 4 != 3) continue;
    for (int shift : {16, 8, 0}) out += static_cast<char>(bits >> shift & 0xff);
    bits = 0;
  }
  out.resize(out.size() - padding);
  return out;
}

}  // namespace sator
