// Instruction-set levels of CPUs: what a kernel may use, and what LLVM has to be told.
#pragma once

#include <string_view>
#include <vector>

namespace sator::target {

/// One instruction-set level. A kernel is compiled once per level and the library's loader picks the best that the CPU
/// has, so a level lists only what every CPU of that level offers.
struct CpuLevel {
  std::string_view name;      ///< as in SatorKernelTable::isa
  std::string_view does;      ///< in words, for `--help` and errors
  std::string_view triple;    ///< LLVM target triple
  std::string_view cpu;       ///< LLVM CPU whose instructions are allowed
  std::string_view tune;      ///< LLVM CPU whose timings order the instructions
  std::string_view features;  ///< LLVM features beyond `cpu`, comma separated
  int vector_bits;            ///< of the widest vector register
  int vector_registers;       ///< how many of them
  bool masked_access;         ///< loads and stores under a lane mask for every element width
  bool dot_u8s8;              ///< a fused u8 x s8 -> s32 product of four (vpdpbusd)
  bool dot_bf16;              ///< a fused bfloat16 -> float32 product of two at twice float32's rate (vdpbf16ps)
  bool tiles;                 ///< matrix tiles (AMX)
  int l1_bytes, l2_bytes;     ///< of one core, the least that CPUs of this level have
  /// How many streams of weights a core reads at once to read fastest.
  int weight_streams;
  /// Iterations, each of 128 bytes, that a stream of weights is asked for in advance; 0: the CPU's own prefetchers are as good.
  int prefetch_iterations;
};

/// All levels, each architecture's best first.
const std::vector<CpuLevel>& cpu_levels();

/// Errors: there is no such level (the message lists them).
const CpuLevel& cpu_level(std::string_view name);

/// Whether this machine runs code of the level. For AMX this asks the kernel for the permission to use tiles.
bool host_runs(const CpuLevel& level);

/// The levels that this machine runs, best first. Errors: none (an x86-64 without AVX2 is not supported).
std::vector<const CpuLevel*> host_levels();

/// The levels that `--isa` asks for: "native" is the best one here, "portable" those of this
/// architecture but avx512_bf16, which differs from avx512 in products of bfloat16 alone, else names separated by commas.
/// Best first.
/// Errors: an unknown name; levels of two architectures.
std::vector<const CpuLevel*> levels_for(std::string_view isa);

/// Elements of `bits` bits that one vector register holds.
inline int vector_lanes(const CpuLevel& level, int bits) { return level.vector_bits / bits; }

}  // namespace sator::target
