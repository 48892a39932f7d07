#include "study/check.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "study/sample.h"

namespace sator::study {
namespace {

class CheckedOnEveryChip : public testing::TestWithParam<const char*> {};

TEST_P(CheckedOnEveryChip, SmallProductsAreConfirmed) {
  dataflow::CostEngine engine(shipped(GetParam()));
  CountChecker checker(engine.chip());
  for (const dataflow::Kernel& kernel : {linear("a", 1, 256, 256, 8, false, 8),
                                         linear("b", 37, 41, 29, 8, false, 8),
                                         linear("c", 3, 64, 96, 4, true, 32, 32),
                                         linear("d", 1, 1, 1, 16, true, 32)})
    EXPECT_TRUE(checker.confirms(engine.cost(kernel))) << kernel.name;
}

INSTANTIATE_TEST_SUITE_P(Shipped, CheckedOnEveryChip, testing::Values("tpuv1", "gemmini16", "edge_npu32"));

TEST(CountChecker, LeavesLargeOnesAndThoseWithoutProducts) {
  dataflow::CostEngine engine(shipped("edge_npu32"));
  CountChecker checker(engine.chip(), 1000);
  const dataflow::Kernel large = linear("large", 10, 11, 12, 8, false, 8),
                         vector = vector_kernel("v", 2, 8, VectorWork::reduce);
  EXPECT_FALSE(checker.confirms(engine.cost(large)));
  EXPECT_FALSE(checker.confirms(engine.cost(vector)));
}

TEST(CountChecker, RefusesWrongCounts) {
  dataflow::CostEngine engine(shipped("gemmini16"));
  const dataflow::Kernel kernel = linear("a", 5, 20, 33, 8, false, 8);
  dataflow::KernelCost cost = engine.cost(kernel);
  cost.statements[0].counts->tensors[1].unique += 1;
  CountChecker checker(engine.chip());
  EXPECT_THROW(checker.confirms(cost), InternalError);
}

}  // namespace
}  // namespace sator::study
