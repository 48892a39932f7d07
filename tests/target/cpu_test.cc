#include "target/cpu.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "base/error.h"

namespace sator::target {
namespace {

// The kernel's own list of CPU features, an independent reading of CPUID.
bool kernel_lists(const std::string& flag) {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("flags", 0) != 0) continue;
    std::istringstream words(line);
    for (std::string word; words >> word;)
      if (word == flag) return true;
    return false;
  }
  return false;
}

TEST(CpuLevels, DetectionAgreesWithTheKernel) {
#if defined(__x86_64__)
  bool avx2 = kernel_lists("avx2") && kernel_lists("fma") && kernel_lists("f16c") && kernel_lists("bmi2");
  EXPECT_EQ(host_runs(cpu_level("avx2")), avx2);
  EXPECT_EQ(host_runs(cpu_level("avx512")),
            avx2 && kernel_lists("avx512bw") && kernel_lists("avx512dq") && kernel_lists("avx512vl") &&
                kernel_lists("avx512_vnni"));
  if (!kernel_lists("amx_tile")) {
    EXPECT_FALSE(host_runs(cpu_level("amx")));
  }
  EXPECT_FALSE(host_runs(cpu_level("aarch64")));
#else
  GTEST_SKIP() << "x86-64 only";
#endif
}

TEST(CpuLevels, BestComesFirst) {
  auto levels = levels_for("avx2,avx512");
  ASSERT_EQ(levels.size(), 2u);
  EXPECT_EQ(levels[0]->name, "avx512");
  EXPECT_EQ(levels[1]->name, "avx2");
}

TEST(CpuLevels, PortableLeavesOutWhatDiffersInOneProductAlone) {
  for (const CpuLevel* level : levels_for("portable")) EXPECT_FALSE(level->dot_bf16) << level->name;
#if defined(__x86_64__)
  EXPECT_TRUE(levels_for("portable").front()->tiles);
#endif
}

TEST(CpuLevels, NativeIsOneLevelThatRunsHere) {
  auto levels = levels_for("native");
  ASSERT_EQ(levels.size(), 1u);
  EXPECT_TRUE(host_runs(*levels[0]));
}

TEST(CpuLevels, RefusesWithWords) {
  EXPECT_THROW(cpu_level("sse9"), Error);
  EXPECT_THROW(levels_for("avx2,aarch64"), Error);
  EXPECT_THROW(levels_for("avx2,,"), Error);
}

}  // namespace
}  // namespace sator::target
