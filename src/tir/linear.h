// Sums of integer multiples: enough algebra to read regions off a program's text. The room arith/ proves more.
#pragma once

#include <utility>
#include <vector>

#include "ir/expr.h"

namespace sator::tir {

/// constant + sum of coefficient * term; terms are anything that is not such a sum, each once.
struct LinearSum {
  DType dtype;
  std::vector<std::pair<Expr, int64_t>> terms;
  int64_t constant = 0;

  explicit LinearSum(const Expr& e);
  void add(const Expr& e, int64_t scale = 1);
  bool is_constant() const { return terms.empty(); }
  Expr to_expr() const;
};

/// a - b where that is a constant.
std::optional<int64_t> constant_difference(const Expr& a, const Expr& b);
/// a - b with equal terms cancelled.
Expr difference(const Expr& a, const Expr& b);
/// a <= b for every value of the variables, as far as their difference tells.
bool always_le(const Expr& a, const Expr& b);

}  // namespace sator::tir
