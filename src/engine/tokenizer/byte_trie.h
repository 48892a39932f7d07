#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/tokenizer/flat_map.h"

namespace sator {

/// Texts as a tree of bytes, each with a number: finds all that another text begins with.
class ByteTrie {
 public:
  /// A text that is there already keeps its number; an empty one is never found.
  void add(std::string_view content, int32_t value) {
    if (content.empty()) return;
    begins_[static_cast<unsigned char>(content[0])] = true;
    uint32_t node = 0;
    for (char c : content) {
      uint32_t& next = edges_(node, static_cast<unsigned char>(c));
      if (next == 0) {
        next = static_cast<uint32_t>(values_.size());
        values_.push_back(-1);
      }
      node = next;
    }
    if (values_[node] < 0) values_[node] = value;
  }

  bool empty() const { return values_.size() == 1; }
  /// Whether some text begins with this byte.
  bool may_begin(char c) const { return begins_[static_cast<unsigned char>(c)]; }

  /// Calls `visit(length, value)` for each text that `s` begins with, the shortest first.
  template <class Visit>
  void prefixes(std::string_view s, const Visit& visit) const {
    uint32_t node = 0;
    for (size_t k = 0; k < s.size(); ++k) {
      const uint32_t* next = edges_.find(node, static_cast<unsigned char>(s[k]));
      if (!next) return;
      node = *next;
      if (values_[node] >= 0) visit(k + 1, values_[node]);
    }
  }

  /// The length of the longest text that `s` begins with; 0 if there is none.
  size_t longest(std::string_view s) const {
    size_t best = 0;
    prefixes(s, [&](size_t length, int32_t) { best = length; });
    return best;
  }

 private:
  PairMap<uint32_t> edges_;          // (node, byte) -> node; node 0 is the root
  std::vector<int32_t> values_{-1};  // per node: the number of the text that ends there
  bool begins_[256] = {};
};

}  // namespace sator
