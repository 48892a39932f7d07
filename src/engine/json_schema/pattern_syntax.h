// Regular expressions as trees.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sator::json_schema {

/// Code points, as ranges that are sorted and do not touch.
using CharRanges = std::vector<std::pair<char32_t, char32_t>>;
CharRanges normalized_ranges(CharRanges ranges);
/// All code points but surrogates that are not in these.
CharRanges opposite_of(const CharRanges& ranges);

struct Regular {
  enum class Kind { chars, sequence, choice, repeat, begin, end };
  Kind kind = Kind::sequence;
  CharRanges chars = {};            // of chars
  std::vector<Regular> parts = {};  // of sequence, choice; of repeat one
  int64_t least = 0, most = -1;     // of repeat; -1: any number
};

/// Errors: as of pattern_dfa.
Regular read_pattern_syntax(const std::string& pattern, const std::string& where);

}  // namespace sator::json_schema
