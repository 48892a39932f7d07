// Whether two programs compute the same, told by the interpreter on random data.
#pragma once

#include "arith/analyzer.h"
#include "passes/lower/lower.h"
#include "support/random_arguments.h"
#include "tir/parse.h"
#include "tir/print.h"
#include "tir/verify.h"

namespace sator::test {

/// Whole numbers are summed exactly in any order, up to what the dtype holds.
inline double allowed_of_steps(const std::string&, DType d) {
  return d.is_bfloat() ? 0x1p-4 : d.bits == 16 ? 0x1p-7 : 1e-4;
}

/// What the two functions compute differently, in words; empty if it is the same, or if `before` cannot be run: it is too
/// large, needs a GPU, takes its arguments in another layout, or is at fault itself. A fault of `after` counts as a
/// difference, and so does a race between iterations of its parallel loops.
///   ran    whether the results were compared
///   sizes  of symbols by name, as for RandomArguments
inline std::string different_results(const tir::PrimFuncRef& before, const tir::PrimFuncRef& after, uint64_t seed,
                                     bool* ran = nullptr, Values values = Values::whole,
                                     const Allowed& allowed = allowed_of_steps,
                                     const std::map<std::string, int64_t>& sizes = {}) {
  constexpr int64_t kIterations = 300'000;
  if (ran) *ran = false;
  if (before->buffer_map != after->buffer_map) return "";  // a parameter is stored in another layout
  RandomArguments x(*before, seed, values, sizes), y(*after, seed, values, sizes);
  if (!x.usable() || !y.usable()) return "";
  try {
    x.interpret(before, kIterations);
  } catch (const Error&) {
    return "";
  }
  if (ran) *ran = true;
  try {
    // Where memory is allocated tells which of it an iteration of a parallel loop has for itself.
    y.interpret(passes::plan_buffer_allocation(after, {}), 100 * kIterations, true);
  } catch (const Error& e) {
    return e.what();
  }
  return x.difference(y, allowed);
}

/// What is wrong with a program that schedule steps made of `before`, in words; empty if nothing is: it is well formed, its
/// text parses to it and prints the same again, and it computes the same, also where its symbolic sizes are 0.
inline std::string broken_step(const tir::PrimFuncRef& before, const tir::PrimFuncRef& after, uint64_t seed,
                               bool* ran = nullptr, Values values = Values::whole,
                               const Allowed& allowed = allowed_of_steps) {
  if (std::vector<Reason> mistakes = tir::verify(*after, tir::Stage::scheduled); !mistakes.empty())
    return text("the program is not well formed: ", mistakes.front().what);
  std::string once = tir::to_script(*after);
  try {
    tir::PrimFuncRef again = tir::parse_function(once);
    if (!equal(after, again)) return "the program parses to another one: " + tir::to_script(*again);
    if (std::string twice = tir::to_script(*again); twice != once)
      return "the program prints differently when it is parsed again: " + twice;
  } catch (const Error& e) {
    return text("the program's text is refused: ", e.what());
  }
  std::string d = different_results(before, after, seed, ran, values, allowed);
  if (!d.empty()) return "the results differ: " + d;
  std::map<std::string, int64_t> empty;
  VarMap zeros;
  for (const auto& [param, buffer] : before->buffer_map) {
    for (const Expr& extent : buffer->shape)
      for (const VarRef& v : vars_in(extent)) empty[v->name] = 0, zeros.emplace(v, int_imm(0, v->dtype));
  }
  bool counts_down = false;  // a size below 0 is nobody's to keep
  walk(before->body, [&](const tir::For& loop) {
    auto n = as_int(arith::Analyzer().simplify(substitute(loop.extent, zeros)));
    counts_down |= n && *n < 0;
  });
  if (empty.empty() || counts_down) return "";
  d = different_results(before, after, seed, nullptr, values, allowed, empty);
  return d.empty() ? d : "the results differ where all symbolic sizes are 0: " + d;
}

}  // namespace sator::test
