#include "target/cpu.h"

#include "base/error.h"
#include "runtime/isa.h"

namespace sator::target {

// AVX-512 with VNNI begins with Cascade Lake and Zen 4. Tuning follows Sapphire Rapids, which LLVM describes from
// measurements; it orders instructions and never decides which ones exist. Streams and prefetching were measured by reading 2 GB and by
// decoding: Intel's cores (Sapphire Rapids) gain 15 to 40 % by four streams asked for in advance. AMD's, which alone have avx512_bf16,
// lose 4 % (Zen 4) or nothing (Zen 5) by prefetching; Zen 4 reads 50 to 52 GB/s in one stream of each of two threads, 47 in four of each,
// or 34 and 32 in a slow hour.
const std::vector<CpuLevel>& cpu_levels() {
  static const std::vector<CpuLevel> levels = {
      {.name = "amx",
       .does = "AVX-512 with VNNI and AMX tiles (int8, bf16)",
       .triple = "x86_64-unknown-linux-gnu",
       .cpu = "x86-64-v4",
       .tune = "sapphirerapids",
       .features = "+avx512vnni,+amx-tile,+amx-int8,+amx-bf16",
       .vector_bits = 512,
       .vector_registers = 32,
       .masked_access = true,
       .dot_u8s8 = true,
       .dot_bf16 = false,
       .tiles = true,
       .l1_bytes = 48 << 10,
       .l2_bytes = 2 << 20,
       .weight_streams = 4,
       .prefetch_iterations = 16},
      {.name = "avx512_bf16",
       .does = "AVX-512 with VNNI and dot products of bfloat16 at twice float32's rate",
       .triple = "x86_64-unknown-linux-gnu",
       .cpu = "x86-64-v4",
       .tune = "sapphirerapids",
       .features = "+avx512vnni,+avx512bf16",
       .vector_bits = 512,
       .vector_registers = 32,
       .masked_access = true,
       .dot_u8s8 = true,
       .dot_bf16 = true,
       .tiles = false,
       .l1_bytes = 32 << 10,
       .l2_bytes = 1 << 20,
       .weight_streams = 1,
       .prefetch_iterations = 0},
      {.name = "avx512",
       .does = "AVX-512 (F, BW, DQ, VL, CD) with VNNI",
       .triple = "x86_64-unknown-linux-gnu",
       .cpu = "x86-64-v4",
       .tune = "sapphirerapids",
       .features = "+avx512vnni",
       .vector_bits = 512,
       .vector_registers = 32,
       .masked_access = true,
       .dot_u8s8 = true,
       .dot_bf16 = false,
       .tiles = false,
       .l1_bytes = 32 << 10,
       .l2_bytes = 1 << 20,
       .weight_streams = 4,
       .prefetch_iterations = 16},
      {.name = "avx2",
       .does = "AVX2 with FMA and F16C",
       .triple = "x86_64-unknown-linux-gnu",
       .cpu = "x86-64-v3",
       .tune = "haswell",
       .features = "",
       .vector_bits = 256,
       .vector_registers = 16,
       .masked_access = false,
       .dot_u8s8 = false,
       .dot_bf16 = false,
       .tiles = false,
       .l1_bytes = 32 << 10,
       .l2_bytes = 256 << 10,
       .weight_streams = 2,
       .prefetch_iterations = 16},
      {.name = "aarch64",
       .does = "Armv8.2 with NEON, half precision and dot products",
       .triple = "aarch64-unknown-linux-gnu",
       .cpu = "generic",
       .tune = "neoverse-n1",
       .features = "+v8.2a,+neon,+fullfp16,+dotprod",
       .vector_bits = 128,
       .vector_registers = 32,
       .masked_access = false,
       .dot_u8s8 = false,
       .dot_bf16 = false,
       .tiles = false,
       .l1_bytes = 64 << 10,
       .l2_bytes = 512 << 10,
       .weight_streams = 1,
       .prefetch_iterations = 16},
  };
  return levels;
}

const CpuLevel& cpu_level(std::string_view name) {
  std::vector<std::string> names;
  for (const CpuLevel& level : cpu_levels()) {
    if (level.name == name) return level;
    names.emplace_back(level.name);
  }
  fail({.what = text("there is no instruction-set level ", string_literal(name)),
        .needs = text("one of ", join(names, ", "))});
}

bool host_runs(const CpuLevel& level) {
  const runtime::IsaLevel* row = runtime::find_isa_level(level.name);
  return row && row->available();
}

std::vector<const CpuLevel*> host_levels() {
  std::vector<const CpuLevel*> found;
  for (const CpuLevel& level : cpu_levels())
    if (host_runs(level)) found.push_back(&level);
  if (found.empty())
    fail({.what = "this CPU has none of the supported instruction-set levels",
          .needs = "x86-64 with AVX2, FMA and F16C, or Armv8.2 with half precision and dot products"});
  return found;
}

std::vector<const CpuLevel*> levels_for(std::string_view isa) {
  if (isa == "native") return {host_levels().front()};
  std::vector<const CpuLevel*> found;
  if (isa == "portable") {
    std::string_view triple = host_levels().front()->triple;
    for (const CpuLevel& level : cpu_levels())
      if (level.triple == triple && !level.dot_bf16) found.push_back(&level);
    return found;
  }
  for (std::string_view name : split(isa, ',')) cpu_level(trim(name));  // names the first unknown one
  for (const CpuLevel& level : cpu_levels())
    for (std::string_view name : split(isa, ','))
      if (trim(name) == level.name) {
        found.push_back(&level);
        break;
      }
  for (const CpuLevel* level : found)
    if (level->triple != found.front()->triple)
      fail({.what = text("levels ", found.front()->name, " and ", level->name, " are of two architectures"),
            .needs = "levels of one architecture in one library",
            .hint = "compile one library per architecture"});
  return found;
}

}  // namespace sator::target
