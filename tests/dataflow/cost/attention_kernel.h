// Attention as a kernel of the cost engine, for tests.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "dataflow/programs/work.h"

namespace sator::dataflow {

/// Tokens of a chunk that ends at position `positions`; a head's position sees itself and what is before it, as far as
/// `window` positions go (0: all). `group` heads share keys and values.
struct Shape {
  int64_t heads = 8, group = 1, tokens = 64, positions = 64, depth = 64, window = 0;
  int kv_bits = 16;
};

inline const Operand kNumber{.bits = 16, .is_float = true}, kInside{.bits = 32, .is_float = true, .internal = true};

inline Work work(const char* name, Domain domain, double ops, VectorWork kind, std::vector<Access> accesses,
                 std::vector<Operand> operands) {
  return {.statement = {.name = name, .domain = std::move(domain), .accesses = std::move(accesses)},
          .operands = std::move(operands),
          .multiply_accumulate = ops == 0,
          .vector_ops = ops,
          .vector_work = kind};
}

inline Kernel attention(const Shape& s) {
  const QuasiAffine h = variable(0), g = variable(1), i = variable(2), j = variable(3), d = variable(4);
  const Operand cache{.bits = s.kv_bits, .is_float = true, .kind = OperandKind::kv};
  const Operand weights{.bits = 16, .is_float = true, .internal = true};
  const Domain scores = Domain::box({"h", "g", "i", "j"}, {s.heads, s.group, s.tokens, s.positions});
  const Domain all = Domain::box({"h", "g", "i", "j", "d"}, {s.heads, s.group, s.tokens, s.positions, s.depth});
  const auto read = [](const char* t, Map at) { return Access{t, Role::read, {std::move(at)}}; };
  const auto write = [](const char* t, Map at) { return Access{t, Role::write, {std::move(at)}}; };
  Kernel k{.name = "attention", .work = {}, .one_pass = true};
  k.work = {
      work("scores",
           all,
           0,
           VectorWork::elementwise,
           {read("Q", {h, g, i, d}), read("K", {h, j, d}), write("S", {h, g, i, j})},
           {kNumber, cache, kInside}),
      work("largest",
           scores,
           1,
           VectorWork::reduce,
           {read("S", {h, g, i, j}), write("m", {h, g, i})},
           {kInside, kInside}),
      work("weights",
           scores,
           10,
           VectorWork::elementwise,
           {read("S", {h, g, i, j}), read("m", {h, g, i}), write("P", {h, g, i, j})},
           {kInside, kInside, weights}),
      work(
          "total", scores, 1, VectorWork::reduce, {read("P", {h, g, i, j}), write("l", {h, g, i})}, {weights, kInside}),
      work("values",
           all,
           0,
           VectorWork::elementwise,
           {read("P", {h, g, i, j}), read("V", {h, j, d}), write("W", {h, g, i, d})},
           {weights, cache, kInside}),
      work("quotient",
           Domain::box({"h", "g", "i", "d"}, {s.heads, s.group, s.tokens, s.depth}),
           1,
           VectorWork::elementwise,
           {read("W", {h, g, i, j}), read("l", {h, g, i}), write("O", {h, g, i, j})},
           {kInside, kInside, kNumber})};
  for (size_t w = 0; w < 5; ++w) {
    k.work[w].only_where = {i + (s.positions - s.tokens) - j};
    if (s.window > 0) k.work[w].only_where.push_back(j - i - (s.positions - s.tokens) + s.window - 1);
  }
  return k;
}

inline int64_t seen(const Shape& s, int64_t token) {
  const int64_t position = s.positions - s.tokens + token;
  return s.window > 0 ? std::min(s.window, position + 1) : position + 1;
}

inline int64_t causal_scores(const Shape& s) {
  int64_t all = 0;
  for (int64_t t = 0; t < s.tokens; ++t) all += seen(s, t);
  return all * s.heads * s.group;
}

inline const std::vector<Shape> kShapes = {
    {.heads = 4, .tokens = 1, .positions = 1},
    {.heads = 4, .tokens = 1, .positions = 77},
    {.heads = 2, .group = 4, .tokens = 1, .positions = 1000},
    {.heads = 3, .tokens = 128, .positions = 128},
    {.heads = 2, .group = 3, .tokens = 100, .positions = 100},
    {.heads = 2, .tokens = 48, .positions = 300},
    {.heads = 2, .group = 2, .tokens = 200, .positions = 517},
    {.heads = 2, .tokens = 300, .positions = 300, .window = 64},
    {.heads = 2, .group = 4, .tokens = 130, .positions = 700, .window = 97},
    {.heads = 1, .tokens = 5, .positions = 90, .window = 200},
};

inline std::string words(const Shape& s) {
  return text(s.heads, " heads x ", s.group, ", ", s.tokens, " of ", s.positions, " positions, window ", s.window);
}

}  // namespace sator::dataflow
