#include "base/figures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace sator {
namespace {

const double kInf = std::numeric_limits<double>::infinity();

TEST(Quantity, HasThreeDigitsAndAnEngineeringPrefix) {
  EXPECT_EQ(quantity(0, "s"), "0 s");
  EXPECT_EQ(quantity(0.00123, "s"), "1.23 ms");
  EXPECT_EQ(quantity(4.56e-7, "s"), "456 ns");
  EXPECT_EQ(quantity(1.05e9, ""), "1.05 G");
  EXPECT_EQ(quantity(0.05, "mm2"), "0.0500 mm2");  // not 50 mmm2
  EXPECT_EQ(quantity(25.6e9, "B/s"), "25.6 GB/s");
  EXPECT_EQ(quantity(12, "J"), "12.0 J");
  EXPECT_EQ(quantity(-2500, "m"), "-2.50 km");
  EXPECT_EQ(quantity(1, ""), "1.00");
}

// Rounding may lift a value over the next thousand: never "1000 ms".
TEST(Quantity, RoundsBeforeItChoosesThePrefix) {
  EXPECT_EQ(quantity(0.9996, "s"), "1.00 s");
  EXPECT_EQ(quantity(0.9994, "s"), "999 ms");
  EXPECT_EQ(quantity(999.6, "B"), "1.00 kB");
  EXPECT_EQ(quantity(9.996, "s"), "10.0 s");
}

TEST(Quantity, SaysWhatIsNotFinite) {
  EXPECT_EQ(quantity(kInf, "s"), "inf");
  EXPECT_EQ(quantity(-kInf, "s"), "-inf");
  EXPECT_EQ(quantity(std::nan(""), "s"), "nan");
  EXPECT_EQ(fixed(kInf, 2), "inf");
  EXPECT_EQ(significant(kInf), "inf");
  EXPECT_EQ(percent(kInf), "inf");
}

TEST(Quantity, ExtremesStayShort) {
  EXPECT_EQ(quantity(1e-18, "J"), "1.00 aJ");
  EXPECT_EQ(quantity(2.5e18, ""), "2.50 E");
  EXPECT_EQ(quantity(1e22, ""), "10000 E");
}

TEST(Figures, RatiosAndPercents) {
  EXPECT_EQ(times(3.4249), "3.42x");
  EXPECT_EQ(times(12.34), "12.3x");
  EXPECT_EQ(times(1234.0), "1234x");
  EXPECT_EQ(times(std::nullopt), "-");
  EXPECT_EQ(percent(0.1234), "12.3 %");
  EXPECT_EQ(percent(0), "0.0 %");
  EXPECT_EQ(percent(1), "100 %");
}

TEST(Figures, CountsHaveTheirNoun) {
  EXPECT_EQ(counted(0, "token"), "0 tokens");
  EXPECT_EQ(counted(1, "token"), "1 token");
  EXPECT_EQ(counted(1234, "token"), "1234 tokens");
}

TEST(Figures, SignificantDigits) {
  EXPECT_EQ(significant(0), "0");
  EXPECT_EQ(significant(0.012345), "0.0123");
  EXPECT_EQ(significant(123.4), "123");
  EXPECT_EQ(significant(65536), "65536");
  EXPECT_EQ(significant(1.234e9), "1.23e+09");
}

TEST(Padding, CountsLettersAndNotBytes) {
  EXPECT_EQ(display_width("456 µs"), 6U);
  EXPECT_EQ(pad_left("456 µs", 8), "  456 µs");
  EXPECT_EQ(pad_right("ab", 4), "ab  ");
  EXPECT_EQ(pad_right("abcdef", 4), "abc…");
  EXPECT_EQ(display_width(pad_right("µµµµµµ", 4)), 4U);
}

}  // namespace
}  // namespace sator
