// Targets in TVM's spellings, and what is known of them.
#include "target/target.h"

#include <gtest/gtest.h>

#include "shipped_chips.h"
#include "temp_folder.h"

namespace sator {
namespace {

std::string attr(const Target& target, const std::string& key) {
  return string_attr(target.config()->config, key).value_or("");
}

std::vector<std::string> levels_of(const std::string& text) {
  std::vector<std::string> out;
  const Target target = Target::parse(text);
  for (const target::CpuLevel* level : target.levels()) out.emplace_back(level->name);
  return out;
}

std::string refusal(const std::string& text) {
  return error_of([&] { Target::parse(text); });
}

using Names = std::vector<std::string>;

TEST(Target, ReadsCpus) {
  EXPECT_EQ(levels_of("native"), levels_of("llvm"));
  // Cascade Lake was the first with VNNI, which Skylake's AVX-512 has not.
  EXPECT_EQ(levels_of("llvm -mcpu=cascadelake"), Names{"avx512"});
  EXPECT_EQ(levels_of("llvm -keys=cpu -mcpu=skylake-avx512 -num-cores=16"), Names{"avx2"});
  EXPECT_EQ(levels_of("llvm -mtriple=aarch64-linux-gnu"), Names{"aarch64"});
  EXPECT_EQ(levels_of("avx2,avx512"), (Names{"avx512", "avx2"}));
  EXPECT_EQ(levels_of(R"({"kind": "llvm", "mcpu": "znver4", "num-cores": 8})"), Names{"avx512_bf16"});
  const Target t = Target::parse("llvm -mcpu=haswell");
  EXPECT_EQ(t.keys(), Names{"cpu"});
  EXPECT_EQ(attr(t, "mcpu"), "haswell");
  EXPECT_EQ(t.spelling(), "llvm -mcpu=haswell");
  EXPECT_EQ(t.limits()[0].value, 256);
}

TEST(Target, ReadsGpus) {
  const Target a100 = Target::parse("nvidia/nvidia-a100");
  EXPECT_EQ(a100.kind().name, "cuda");
  EXPECT_EQ(attr(a100, "arch"), "sm_80");
  EXPECT_EQ(int_attr(a100.config()->config, "l2_cache_size_bytes"), 40 << 20);
  EXPECT_EQ(int_attr(a100.config()->config, "max_threads_per_block"), 1024);
  EXPECT_EQ(a100.keys(), (Names{"cuda", "gpu"}));
  EXPECT_TRUE(a100.levels().empty());
  EXPECT_EQ(attr(Target::parse("nvidia/tesla-p100"), "arch"), "sm_60");
  const Target h100 = Target::parse("cuda -arch=sm_90 -max_threads_per_block=512 -host=llvm");
  EXPECT_EQ(attr(h100, "arch"), "sm_90");
  EXPECT_EQ(int_attr(h100.config()->config, "max_threads_per_block"), 512);
  ASSERT_TRUE(host_of(h100.config()));
  EXPECT_EQ(string_attr(host_of(h100.config())->config, "kind"), "llvm");
  const Target tagged = Target::parse(R"({"tag": "nvidia/tesla-p100", "host": {"kind": "llvm"}})");
  EXPECT_EQ(attr(tagged, "arch"), "sm_60");
  EXPECT_TRUE(host_of(tagged.config()));
  // A tag that nobody listed is still one of its maker's.
  EXPECT_EQ(Target::parse("nvidia/some-later-gpu").kind().name, "cuda");
}

TEST(Target, ReadsOtherKindsAndChips) {
  for (const char* kind : {"opencl", "metal", "vulkan -supports_float16=1", "rocm -mcpu=gfx900", "webgpu", "c"})
    EXPECT_TRUE(Target::parse(kind).levels().empty()) << kind;
  const Target chip = Target::parse((chips_folder() / "edge_npu32.toml").string());
  ASSERT_TRUE(chip.chip());
  EXPECT_EQ(chip.chip()->name, "edge_npu32");
  EXPECT_EQ(chip.scopes().front().name, "dram");
  EXPECT_EQ(chip.scopes().back().name, "pe");
}

TEST(Target, RefusesInWords) {
  struct Row {
    std::string text, says;
  };
  for (const Row& row : {Row{"lvm", "the nearest are: llvm"},
                         Row{"llvm -mcpu=pentium4", "no kernels are made for the CPU pentium4"},
                         Row{"{\"mcpu\": \"haswell\"}", "has no kind"},
                         Row{"{\"kind\": \"llvm\", \"x\": 0.5}", "has the value 0.5"},
                         Row{"avx2,avx1024", "no instruction-set level \"avx1024\""}})
    EXPECT_NE(refusal(row.text).find(row.says), std::string::npos) << row.says << "\n" << refusal(row.text);
}

}  // namespace
}  // namespace sator
