// Cost of one parallel loop: from the call to the return, per number of threads. Of an empty body, which the caller may
// finish alone; of chunks that wait for each other to begin, so that every thread must come; of a pool that sleeps; and
// with all threads forced onto one core, where a pool that only spins loses milliseconds.
//   usage: runtime_fork_join_bench [--json]
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "runtime/thread_pool.h"

using namespace sator::runtime;
using Clock = std::chrono::steady_clock;

namespace {

int32_t empty_body(void*, int64_t, int64_t, SatorContext*) { return 0; }

/// Ends once all chunks of the loop have begun.
int32_t meet(void* closure, int64_t, int64_t, SatorContext* ctx) {
  auto& begun = *static_cast<std::atomic<int64_t>*>(closure);
  const int64_t workers = ctx->num_workers, loop = begun.fetch_add(1) / workers;
  while (begun.load(std::memory_order_acquire) < (loop + 1) * workers) {
  }
  return 0;
}

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Cost {
  double median_us, p99_us;
};

// Times batches of `per_batch` loops with `gap` between the batches.
Cost measure(ThreadPool& pool, SatorChunk body, int batches, int per_batch, std::chrono::microseconds gap) {
  std::vector<double> us;
  std::atomic<int64_t> begun{0};
  for (int batch = 0; batch < batches; ++batch) {
    if (gap.count() > 0) std::this_thread::sleep_for(gap);
    Clock::time_point start = Clock::now();
    for (int i = 0; i < per_batch; ++i) pool.parallel_for(pool.num_workers(), body, &begun);
    us.push_back(seconds_since(start) * 1e6 / per_batch);
  }
  std::sort(us.begin(), us.end());
  return {us[us.size() / 2], us[us.size() * 99 / 100]};
}

void print(bool json, const char* what, int threads, Cost cost) {
  if (json)
    std::printf(
        "{\"bench\": \"fork_join\", \"case\": \"%s\", \"threads\": %d, \"median_us\": %.3f, \"p99_us\": "
        "%.3f}\n",
        what,
        threads,
        cost.median_us,
        cost.p99_us);
  else
    std::printf("%-32s %7d %10.3f %10.3f\n", what, threads, cost.median_us, cost.p99_us);
}

}  // namespace

int main(int argc, char** argv) {
  bool json = argc > 1 && std::strcmp(argv[1], "--json") == 0;
  if (!json) std::printf("%-32s %7s %10s %10s\n", "fork-join", "threads", "median us", "p99 us");
  int cores = default_num_threads();
  std::vector<int> counts{1};
  for (int threads = 2; threads <= cores; threads *= 2) counts.push_back(threads);
  for (int threads : counts) {
    auto pool = ThreadPool::create(threads);
    measure(*pool, meet, 100, 100, {});  // warm
    print(json, "empty, back to back", threads, measure(*pool, empty_body, 2000, 50, {}));
    print(json, "all meet, back to back", threads, measure(*pool, meet, 2000, 50, {}));
    print(
        json, "all meet, after 1 ms of sleep", threads, measure(*pool, meet, 300, 1, std::chrono::microseconds(1000)));
  }
  cpu_set_t all, one;
  sched_getaffinity(0, sizeof all, &all);
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof one, &one);
  auto pool = ThreadPool::create(2);
  print(json, "empty, two threads on one core", 2, measure(*pool, empty_body, 300, 5, {}));
  sched_setaffinity(0, sizeof all, &all);
}
