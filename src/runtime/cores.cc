// How many threads this process should use.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"
#include "runtime/thread_pool.h"

namespace sator::runtime {

namespace {

// One number in a file of /sys; -1 when there is none.
int read_number(const std::string& path) {
  std::ifstream in(path);
  int value = -1;
  in >> value;
  return in ? value : -1;
}

// Physical cores among the processors of the affinity mask; processors without topology count one each.
int allowed_cores() {
  cpu_set_t* mask = CPU_ALLOC(kMaxThreads * 8);
  size_t mask_bytes = CPU_ALLOC_SIZE(kMaxThreads * 8);
  std::set<std::pair<int, int>> cores;
  if (sched_getaffinity(0, mask_bytes, mask) == 0)
    for (int cpu = 0; cpu < kMaxThreads * 8; ++cpu) {
      if (!CPU_ISSET_S(static_cast<size_t>(cpu), mask_bytes, mask)) continue;
      std::string topology = text("/sys/devices/system/cpu/cpu", cpu, "/topology/");
      int core = read_number(topology + "core_id");
      cores.insert(core < 0 ? std::pair(-1, cpu) : std::pair(read_number(topology + "physical_package_id"), core));
    }
  CPU_FREE(mask);
  if (!cores.empty()) return static_cast<int>(cores.size());
  return static_cast<int>(std::max<long>(1, sysconf(_SC_NPROCESSORS_ONLN)));
}

// "max 100000" or "150000 100000": microseconds of CPU time per period. Version 2 of control groups, as
// containers see it.
int quota_cores() {
  std::ifstream in("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (!(in >> quota >> period) || quota == "max" || period <= 0) return kMaxThreads;
  return std::max(1, static_cast<int>(std::atof(quota.c_str()) / period + 0.5));
}

}  // namespace

void keep_off(int processor, int like, int thread) {
  if (processor < 0) return;
  cpu_set_t* mask = CPU_ALLOC(kMaxThreads * 8);
  const size_t mask_bytes = CPU_ALLOC_SIZE(kMaxThreads * 8);
  if (sched_getaffinity(like, mask_bytes, mask) == 0) {
    CPU_CLR_S(static_cast<size_t>(processor), mask_bytes, mask);
    // Where the system refuses, the thread stays where it is.
    if (CPU_COUNT_S(mask_bytes, mask) > 0) sched_setaffinity(thread, mask_bytes, mask);
  }
  CPU_FREE(mask);
}

int default_num_threads() {
  if (const char* given = std::getenv("SATOR_NUM_THREADS"); given != nullptr && *given != '\0') {
    std::string_view digits = given;
    int value = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value < 1 || value > kMaxThreads)
      fail({.what = text("SATOR_NUM_THREADS is ", string_literal(given)),
            .needs = text("a number from 1 to ", kMaxThreads)});
    return value;
  }
  return std::min({allowed_cores(), quota_cores(), kMaxThreads});
}

}  // namespace sator::runtime
