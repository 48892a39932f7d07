// One case of the fuzzer: a graph, an order of passes, and what is wrong with what they make.
#pragma once

#include <string>
#include <vector>

#include "fuzz/draw.h"

namespace sator::fuzz {

struct Counts {
  int64_t calls_refused = 0, passes_applied = 0, passes_refused = 0;
  int64_t not_run = 0;       ///< graphs that the interpreter refuses to run on the drawn tensors
  int64_t compared = 0;      ///< results after a pass, held against those before
  int64_t compiled = 0;      ///< graphs whose machine code was compared
  int64_t not_compiled = 0;  ///< refused by the compilation, in words
};

/// What went wrong; nothing if `what` is empty.
struct Finding {
  std::string what, program;
  std::vector<std::string> passes;  ///< the last one broke something
  std::string arrays;               ///< the tensors, as lines of a text test
  bool is_machine = false;          ///< the passes are right, what is compiled is not
  explicit operator bool() const { return !what.empty(); }
};

/// Draws a graph and an order of passes; checks after each pass, and the compiled graph.
Finding run_case(Draw& draw, uint64_t seed, Counts& counts);

/// The case of the fewest and smallest choices that still goes wrong in the same way.
Finding shrink(Finding finding, std::vector<int64_t> choices, uint64_t seed);

/// The finding as a text test.
std::string as_test(const Finding& finding, uint64_t seed);

}  // namespace sator::fuzz
