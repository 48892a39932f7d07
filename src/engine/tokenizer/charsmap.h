#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sator {

/// SentencePiece's precompiled table of replacements: text to text (NFKC and more, as its `nmt_nfkc`).
///
///   bytes 0..3   size of the tree in bytes, little endian
///   tree         words of 32 bits, a double array as the library Darts-clone lays it out
///   texts        what stands in place, each ended by a zero byte; the tree's values are positions here
class Charsmap {
 public:
  /// No replacement at all.
  Charsmap() = default;
  bool empty() const { return tree_.empty(); }
  /// Errors: the table is shorter than it says, or its texts are no UTF-8.
  static Charsmap read(std::string_view bytes, const std::string& where);

  struct Match {
    size_t length;          // of what is replaced
    std::string_view text;  // what stands in its place
  };
  /// What is known that `s` begins with: the shortest, or the longest.
  std::optional<Match> shortest(std::string_view s) const { return find(s, true); }
  std::optional<Match> longest(std::string_view s) const { return find(s, false); }

 private:
  std::optional<Match> find(std::string_view s, bool first) const;

  std::vector<uint32_t> tree_;
  std::string texts_;
};

/// Bytes of base64 text (RFC 4648, with padding); nothing if it is malformed.
std::optional<std::string> base64_decoded(std::string_view text);

}  // namespace sator
