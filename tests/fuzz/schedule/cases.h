// One case of the fuzzer: a program, a trace of primitives, and what is wrong with what they make.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "fuzz/draw.h"
#include "fuzz/schedule/programs.h"

namespace sator::fuzz {

struct Counts {
  int64_t applied = 0, compared = 0, refused = 0;
  int64_t compiled = 0;     ///< programs compared as machine code
  int64_t wide = 0;         ///< programs whose index arithmetic was checked at large sizes, before and after lowering
  int64_t not_lowered = 0;  ///< refused by the lowering or by code generation, in words
};

/// What went wrong; nothing if `what` is empty.
struct Finding {
  std::string what;
  Program program;
  std::vector<std::string> lines;  ///< of the trace, the last one included that broke something
  bool is_machine = false;         ///< the steps are right, what is compiled of them is not
  explicit operator bool() const { return !what.empty(); }
};

/// Draws a program and a trace, and checks after each step and at the end.
///   seed  of the data
///   log   prints the case before it is lowered, unless null
Finding run_case(Draw& draw, uint64_t seed, Counts& counts, std::ostream* log = nullptr);
/// What is wrong after the lines, of which refused ones count for nothing.
Finding check(const Program& program, const std::vector<std::string>& lines, uint64_t seed);

/// The case with the fewest and smallest choices that still goes wrong.
Finding shrink(Finding finding, std::vector<int64_t> choices, uint64_t seed);

/// The finding as a text test.
std::string as_test(const Finding& finding, uint64_t seed);

}  // namespace sator::fuzz
