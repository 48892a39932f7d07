#include "dataflow/counts/digits.h"

#include <gtest/gtest.h>

namespace sator::dataflow {
namespace {

// A core's block of 10064 columns in tiles of 16: two expressions ask in one round for digits that the first round lacks.
// 16 divides 10064, so j has three digits and no cut, however many tiles a block has.
TEST(Digits, ExpressionsMayShareAModulusThatIsNew) {
  const Domain columns = Domain::box({"j"}, {50272});
  const QuasiAffine j = variable(0), in_block = mod(j, 10064), tile = floor_div(in_block, 16),
                    column = mod(in_block, 16), block = floor_div(j, 10064);
  const std::vector<const QuasiAffine*> all = {&tile, &column, &block};
  const auto digits = to_digits(columns, all);
  ASSERT_TRUE(std::holds_alternative<DigitForm>(digits)) << std::get<Reason>(digits).what;
  EXPECT_EQ(std::get<DigitForm>(digits).digits.size(), 3U);
  EXPECT_LE(std::get<DigitForm>(digits).pieces.size(), 2U);  // the last block is shorter
}

}  // namespace
}  // namespace sator::dataflow
