#include "arith/text_form.h"

#include <gtest/gtest.h>

#include "arith/kind.h"

namespace sator::arith {
namespace {

TEST(TextForm, ReadsWhatItShows) {
  Names n;
  for (const char* s : {"x + y * 3 // 4 % 5",
                        "min(x, 3) <= y and not x == 2 or y > 1",
                        "select(x < y, x, y) - 1",
                        "ramp(x, 2, 4) + broadcast(y, 4)",
                        "truncdiv(x, 4) * 4 + truncmod(x, 4)"}) {
    Expr e = parse_expr(s, n);
    EXPECT_TRUE(same(parse_expr(show(e), n), e)) << show(e);
  }
  EXPECT_THROW(parse_expr("x + ", n), Error);
  EXPECT_THROW(parse_expr("x ) y", n), Error);
}

}  // namespace
}  // namespace sator::arith
