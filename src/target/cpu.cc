#include "target/cpu.h"

#include "base/error.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace sator::target {

// AVX-512 with VNNI begins with Cascade Lake and Zen 4. Tuning follows Sapphire Rapids, which LLVM describes from
// measurements; it orders instructions and never decides which ones exist.
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
       .tiles = true,
       .l1_bytes = 48 << 10,
       .l2_bytes = 2 << 20},
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
       .tiles = false,
       .l1_bytes = 32 << 10,
       .l2_bytes = 1 << 20},
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
       .tiles = false,
       .l1_bytes = 32 << 10,
       .l2_bytes = 256 << 10},
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
       .tiles = false,
       .l1_bytes = 64 << 10,
       .l2_bytes = 512 << 10},
  };
  return levels;
}

const CpuLevel& cpu_level(std::string_view name) {
  std::vector<std::string> names;
  for (const CpuLevel& level : cpu_levels()) {
    if (level.name == name) return level;
    names.emplace_back(level.name);
  }
  fail({.what = text("there is no instruction-set level ", quoted(name)), .needs = text("one of ", join(names, ", "))});
}

namespace {

#if defined(__x86_64__)

struct CpuidWords {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};
CpuidWords cpuid(unsigned leaf) {
  CpuidWords r;
  __get_cpuid_count(leaf, 0, &r.eax, &r.ebx, &r.ecx, &r.edx);
  return r;
}
bool bit(unsigned word, int index) { return (word >> index) & 1; }

// Which register states the operating system saves (XCR0); instructions on the others fault.
unsigned long long saved_states() {
  if (!bit(cpuid(1).ecx, 27)) return 0;
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<unsigned long long>(high) << 32) | low;
}

// Bit numbers: Intel SDM volume 2A, table of CPUID leaves 1, 7 and 80000001H.
bool has_avx2() {
  CpuidWords one = cpuid(1), seven = cpuid(7), extended = cpuid(0x80000001);
  bool fma = bit(one.ecx, 12), movbe = bit(one.ecx, 22), popcnt = bit(one.ecx, 23), avx = bit(one.ecx, 28),
       f16c = bit(one.ecx, 29);
  bool bmi1 = bit(seven.ebx, 3), avx2 = bit(seven.ebx, 5), bmi2 = bit(seven.ebx, 8), lzcnt = bit(extended.ecx, 5);
  return (saved_states() & 0x6) == 0x6 && fma && movbe && popcnt && avx && f16c && bmi1 && avx2 && bmi2 && lzcnt;
}
bool has_avx512_vnni() {
  CpuidWords seven = cpuid(7);
  bool f = bit(seven.ebx, 16), dq = bit(seven.ebx, 17), cd = bit(seven.ebx, 28), bw = bit(seven.ebx, 30),
       vl = bit(seven.ebx, 31), vnni = bit(seven.ecx, 11);
  return has_avx2() && (saved_states() & 0xe6) == 0xe6 && f && dq && cd && bw && vl && vnni;
}
bool has_amx() {
  CpuidWords seven = cpuid(7);
  bool bf16 = bit(seven.edx, 22), tile = bit(seven.edx, 24), int8 = bit(seven.edx, 25);
  if (!has_avx512_vnni() || (saved_states() & 0x60000) != 0x60000 || !bf16 || !tile || !int8) return false;
  // The tile data (state 18) is given to a process on request: arch_prctl(ARCH_REQ_XCOMP_PERM, 18).
  return syscall(SYS_arch_prctl, 0x1023, 18) == 0;
}
bool runs(std::string_view name) {
  static const bool avx2 = has_avx2(), avx512 = has_avx512_vnni();
  if (name == "avx2") return avx2;
  if (name == "avx512") return avx512;
  if (name == "amx") {
    static const bool amx = has_amx();
    return amx;
  }
  return false;
}

#elif defined(__aarch64__)

bool runs(std::string_view name) {
  unsigned long caps = getauxval(AT_HWCAP);
  unsigned long needed = HWCAP_ASIMD | HWCAP_ASIMDHP | HWCAP_FPHP | HWCAP_ASIMDDP;
  return name == "aarch64" && (caps & needed) == needed;
}

#else

bool runs(std::string_view) { return false; }

#endif

}  // namespace

bool host_runs(const CpuLevel& level) { return runs(level.name); }

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
  // No kernel uses tiles yet, so a level of its own for them would only repeat avx512.
  if (isa == "native") {
    for (const CpuLevel* level : host_levels())
      if (!level->tiles) return {level};
  }
  std::vector<const CpuLevel*> found;
  if (isa == "portable") {
    std::string_view triple = host_levels().front()->triple;
    for (const CpuLevel& level : cpu_levels())
      if (level.triple == triple && !level.tiles) found.push_back(&level);
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
