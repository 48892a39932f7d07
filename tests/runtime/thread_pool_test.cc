#include "runtime/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "base/error.h"

namespace sator::runtime {
namespace {

struct Chunk {
  int64_t begin, end;
  int worker;
};

/// The chunks of a loop, whoever ran them, in their order.
std::vector<Chunk> cut(ThreadPool& pool, int64_t n) {
  std::vector<Chunk> chunks;
  std::mutex mutex;
  pool.for_each_chunk(n, [&](int64_t begin, int64_t end, SatorContext* ctx) {
    std::lock_guard lock(mutex);
    chunks.push_back({begin, end, ctx->worker});
  });
  std::sort(chunks.begin(), chunks.end(), [](const Chunk& a, const Chunk& b) { return a.begin < b.begin; });
  return chunks;
}

TEST(ThreadPool, CutsIntoContiguousChunksOfNearlyEqualSize) {
  for (int threads : {1, 2, 3, 7}) {
    auto pool = ThreadPool::create(threads);
    ASSERT_EQ(pool->num_workers(), threads);
    for (int64_t n : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{5}, int64_t{100}, (int64_t{1} << 62) + 5}) {
      auto chunks = cut(*pool, n);
      EXPECT_EQ(static_cast<int64_t>(chunks.size()), std::min<int64_t>(n, threads));
      int64_t at = 0;
      for (const Chunk& chunk : chunks) {
        EXPECT_EQ(chunk.begin, at);
        EXPECT_GE(chunk.end - chunk.begin, n / threads);
        EXPECT_LE(chunk.end - chunk.begin, n / threads + 1);
        at = chunk.end;
      }
      EXPECT_EQ(at, n);
    }
  }
}

TEST(ThreadPool, RunsTheSameCutEachTime) {
  auto pool = ThreadPool::create(2);
  for (int i = 0; i < 1000; ++i) {
    auto chunks = cut(*pool, 101);
    ASSERT_EQ(chunks.size(), 2u);
    EXPECT_EQ(chunks[0].end, 51);
    EXPECT_EQ(chunks[1].end, 101);
  }
}

TEST(ThreadPool, WorksAfterItSlept) {
  auto pool = ThreadPool::create(3);
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(round % 3));
    std::vector<int> hits(1000, 0);
    pool->for_each_chunk(1000, [&](int64_t begin, int64_t end, SatorContext*) {
      if (round % 5 == 4)
        std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the caller sleeps for the others
      for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
    });
    EXPECT_EQ(std::accumulate(hits.begin(), hits.end(), 0), 1000);
  }
}

TEST(ThreadPool, NestedLoopsRunSerially) {
  auto pool = ThreadPool::create(2);
  std::vector<std::vector<Chunk>> inner(2);
  std::vector<int> runner(2, -1);
  pool->for_each_chunk(2, [&](int64_t begin, int64_t, SatorContext* ctx) {
    auto body = [](void* closure, int64_t begin, int64_t end, SatorContext* c) -> int32_t {
      static_cast<std::vector<Chunk>*>(closure)->push_back({begin, end, c->worker});
      return 0;
    };
    runner[static_cast<size_t>(begin)] = ctx->worker;
    ctx->parallel_for(ctx, 10, body, &inner[static_cast<size_t>(begin)]);
  });
  for (size_t chunk : {0, 1}) {
    ASSERT_EQ(inner[chunk].size(), 1u);
    EXPECT_EQ(inner[chunk][0].begin, 0);
    EXPECT_EQ(inner[chunk][0].end, 10);
    EXPECT_EQ(inner[chunk][0].worker, runner[chunk]);
  }
}

TEST(ThreadPool, ReportsTheErrorOfTheLowestChunk) {
  auto pool = ThreadPool::create(3);
  auto body = [](void*, int64_t begin, int64_t, SatorContext* ctx) -> int32_t {
    if (begin == 0) return 0;
    ctx->set_error(ctx, begin == 1 ? "first" : "second");
    return 6 + static_cast<int32_t>(begin);
  };
  SatorContext* ctx = pool->context();
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(ctx->parallel_for(ctx, 3, body, nullptr), 7);
    EXPECT_EQ(pool->take_error(), "first");
    EXPECT_EQ(pool->take_error(), "");
  }
}

TEST(ThreadPool, KeepsTheExceptionOfTheLowestChunk) {
  auto pool = ThreadPool::create(3), other = ThreadPool::create(1);
  auto body = [](void*, int64_t begin, int64_t, SatorContext*) -> int32_t {
    if (begin == 0) return 0;
    ThreadPool::keep_exception(std::make_exception_ptr(static_cast<int>(begin)));
    return 1;
  };
  for (int i = 0; i < 100; ++i) {
    const ThreadPool::Caller caller(*pool);
    EXPECT_FALSE(pool->is_in_loop_here());
    EXPECT_EQ(pool->parallel_for(3, body, nullptr), 1);
    {
      const ThreadPool::Caller inner(*other);  // what it keeps is no business of the first one's
      ThreadPool::keep_exception(std::make_exception_ptr(7));
    }
    EXPECT_THROW(
        {
          try {
            pool->take_error();
          } catch (int which) {
            EXPECT_EQ(which, 1);
            throw;
          }
        },
        int);
    EXPECT_EQ(pool->take_error(), "");
  }
}

// More threads than cores: some come too late for their chunks, in every possible way.
TEST(ThreadPool, RunsEachChunkOnceWhoeverTakesIt) {
  auto pool = ThreadPool::create(2 * default_num_threads());
  std::vector<int> hits(100, 0);
  constexpr int kLoops = 5000;
  for (int loop = 0; loop < kLoops; ++loop)
    pool->for_each_chunk(100, [&](int64_t begin, int64_t end, SatorContext*) {
      for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
    });
  EXPECT_EQ(hits, std::vector<int>(100, kLoops));
}

TEST(ThreadPool, CarriesExceptionsToTheCaller) {
  auto pool = ThreadPool::create(2);
  auto fail_in_last = [](int64_t, int64_t end, SatorContext*) {
    if (end == 10) fail({.what = "no luck", .hint = "try again"});
  };
  try {
    pool->for_each_chunk(10, fail_in_last);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.reason.hint, "try again");
  }
  EXPECT_EQ(cut(*pool, 10).size(), 2u);  // and goes on
}

TEST(ThreadPool, GivesEachWorkerItsWorkspaceAndTakesBackWhatAChunkForgot) {
  auto pool = ThreadPool::create(2);
  std::set<void*> first, second;
  for (std::set<void*>* seen : {&first, &second})
    for (int64_t chunk : {0, 1}) {
      std::atomic<int> begun{0};
      pool->for_each_chunk(2, [&](int64_t begin, int64_t, SatorContext* ctx) {
        for (++begun; begun < 2;) std::this_thread::yield();  // so that each worker has one
        void* memory = ctx->workspace_push(ctx, 1000);
        std::fill_n(static_cast<char*>(memory), 1000, 'x');
        if (begin == chunk) seen->insert(memory);
      });
    }
  EXPECT_EQ(first.size(), 2u);
  EXPECT_EQ(first, second);
}

double cpu_us() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}

// A pool that only spins burns a scheduler's time slice (milliseconds) per loop here. Processor time, not the clock's:
// other processes on the core do not count.
TEST(ThreadPool, DoesNotStallWithAllThreadsOnOneCore) {
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  auto pool = ThreadPool::create(2);
  std::vector<double> us;
  for (int i = 0; i < 101; ++i) {
    double start = cpu_us();
    cut(*pool, 2);
    us.push_back(cpu_us() - start);
  }
  sched_setaffinity(0, sizeof all, &all);
  std::nth_element(us.begin(), us.begin() + 50, us.end());
  EXPECT_LT(us[50], 1000);
}

class DefaultThreads : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* value = std::getenv("SATOR_NUM_THREADS")) saved_ = value;
  }
  void TearDown() override {
    if (saved_.empty())
      unsetenv("SATOR_NUM_THREADS");
    else
      setenv("SATOR_NUM_THREADS", saved_.c_str(), 1);
  }
  std::string saved_;
};

TEST_F(DefaultThreads, FollowTheEnvironment) {
  setenv("SATOR_NUM_THREADS", "5", 1);
  EXPECT_EQ(default_num_threads(), 5);
  for (const char* bad : {"0", "-1", "2x", "many", "99999999999"}) {
    setenv("SATOR_NUM_THREADS", bad, 1);
    EXPECT_THROW(default_num_threads(), Error) << bad;
  }
}

TEST_F(DefaultThreads, FollowTheAffinityMask) {
  unsetenv("SATOR_NUM_THREADS");
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  EXPECT_GE(default_num_threads(), 1);
  EXPECT_LE(default_num_threads(), CPU_COUNT(&all));
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(default_num_threads(), 1);
  sched_setaffinity(0, sizeof all, &all);
}

TEST(ThreadPool, AThreadKeepsOffAProcessorWhereThereIsAnother) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  const auto caller = static_cast<int>(gettid());
  std::thread([&] {
    const int here = sched_getcpu();
    keep_off(here, caller, 0);
    cpu_set_t now;
    ASSERT_EQ(sched_getaffinity(0, sizeof(now), &now), 0);
    if (CPU_COUNT(&allowed) == 1) {
      EXPECT_TRUE(CPU_EQUAL(&now, &allowed));
      return;
    }
    EXPECT_NE(sched_getcpu(), here);
    EXPECT_FALSE(CPU_ISSET(here, &now));
    EXPECT_EQ(CPU_COUNT(&now), CPU_COUNT(&allowed) - 1);
    // What the caller may use is what counts, not what the thread was left with.
    const int other = sched_getcpu();
    keep_off(other, caller, 0);
    EXPECT_NE(sched_getcpu(), other);
    if (CPU_COUNT(&allowed) == 2) EXPECT_EQ(sched_getcpu(), here);
    // A processor that is none changes nothing.
    keep_off(-1, caller, 0);
  }).join();
  cpu_set_t after;
  ASSERT_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&after, &allowed));
}

TEST(ThreadPool, RefusesImpossibleSizes) {
  EXPECT_THROW(ThreadPool::create(-1), Error);
  EXPECT_THROW(ThreadPool::create(100'000), Error);
}

}  // namespace
}  // namespace sator::runtime
