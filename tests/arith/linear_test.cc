#include "arith/linear.h"

#include <gtest/gtest.h>

#include "arith/kind.h"
#include "arith/text_form.h"

namespace sator::arith {
namespace {

TEST(Linear, CoefficientsAndBase) {
  struct Row {
    const char* expr;
    std::vector<const char*> vars, coefficients;  ///< no coefficients: not linear
    const char* base;
  };
  const Row rows[] = {
      {"a * 4 + b * 6 + 7", {"a"}, {"4"}, "b * 6 + 7"},
      {"a * 4 * (a + 1) + b * 6 + 7", {"a"}, {}, ""},
      {"a * 4 + (a + 1) + b * 6 + 7", {"a"}, {"5"}, "b * 6 + 8"},
      {"a * b + 7", {"a"}, {"b"}, "7"},
      {"b * 7", {"a"}, {"0"}, "b * 7"},
      {"a * b + 7", {"a", "b"}, {}, ""},
      {"v0 * (b + 4) + v0 + v1 * 8", {"v0", "v1", "v2", "v3"}, {"b + 5", "8", "0", "0"}, "0"},
      {"a // 2 + b", {"a"}, {}, ""},
      {"3 - (a - b) * 2", {"a", "b"}, {"-2", "2"}, "3"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.expr);
    Names n;
    std::vector<VarRef> vars;
    for (const char* v : row.vars) vars.push_back(n[v]);
    auto linear = detect_linear(parse_expr(row.expr, n), vars);
    ASSERT_EQ(linear.has_value(), !row.coefficients.empty());
    if (!linear) continue;
    for (size_t i = 0; i < vars.size(); ++i)
      EXPECT_TRUE(same(linear->coefficients[i], parse_expr(row.coefficients[i], n))) << show(linear->coefficients[i]);
    EXPECT_TRUE(same(linear->base, parse_expr(row.base, n))) << show(linear->base);
  }
}

}  // namespace
}  // namespace sator::arith
