#include "runtime/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "base/error.h"

namespace sator::runtime {

namespace {

using Clock = std::chrono::steady_clock;

// One fork-join takes below a microsecond while the workers spin and several once they sleep. The gap between
// two kernels of a decode step is a few microseconds, so the spin covers it; a pool left alone is asleep 0.2
// ms later.
constexpr auto kSpin = std::chrono::microseconds(50);
constexpr auto kYield = std::chrono::microseconds(200);
constexpr int kMaxThreads = 1024;

void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits until `ready`, at most kYield: first spinning, then giving the core away at each turn. `same_core`
// says that the thread waited for shares our core, so that spinning would only keep it from running.
template <class Ready, class SameCore>
bool spin_then_yield(const Ready& ready, const SameCore& same_core) {
  for (int i = 0; i < 64; ++i) {  // the common case reads no clock
    if (ready()) return true;
    pause_core();
  }
  Clock::time_point start = Clock::now();
  while (!same_core()) {
    for (int i = 0; i < 16; ++i) {
      if (ready()) return true;
      pause_core();
    }
    if (Clock::now() - start > kSpin) break;
  }
  while (Clock::now() - start < kYield) {
    if (ready()) return true;
    sched_yield();
  }
  return ready();
}

}  // namespace

Ref<ThreadPool> ThreadPool::create(int num_threads) {
  if (num_threads < 0 || num_threads > kMaxThreads)
    fail({.what = text("a pool cannot have ", num_threads, " threads"),
          .needs = text("a number from 1 to ", kMaxThreads, ", or 0 for the cores of this machine")});
  if (num_threads == 0) num_threads = default_num_threads();
  Ref<ThreadPool> pool(new ThreadPool());
  for (int i = 0; i < num_threads; ++i) {
    auto worker = std::make_unique<Worker>();
    worker->pool = pool.get();
    worker->context = {
        .abi_version = SATOR_ABI_VERSION,
        .worker = i,
        .num_workers = num_threads,
        .rank = 0,
        .num_ranks = 1,
        .reserved = 0,
        .stream = nullptr,
        .parallel_for = context_parallel_for,
        .workspace_push = [](SatorContext* ctx,
                             int64_t size_bytes) { return reinterpret_cast<Worker*>(ctx)->workspace.push(size_bytes); },
        .workspace_pop = [](SatorContext* ctx, void* memory) { reinterpret_cast<Worker*>(ctx)->workspace.pop(memory); },
        .set_error = [](SatorContext* ctx, const char* message) { reinterpret_cast<Worker*>(ctx)->error = message; },
    };
    pool->workers_.push_back(std::move(worker));
  }
  for (int i = 1; i < num_threads; ++i)
    pool->threads_.emplace_back([pool = pool.get(), i] { pool->serve(*pool->workers_[i]); });
  return pool;
}

ThreadPool::~ThreadPool() {
  job_.stop = true;
  job_.epoch.fetch_add(1);
  job_.epoch.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

SatorContext* ThreadPool::context() { return &workers_[0]->context; }

int32_t ThreadPool::context_parallel_for(SatorContext* ctx, int64_t n, SatorChunk body, void* closure) {
  Worker& worker = *reinterpret_cast<Worker*>(ctx);
  if (worker.in_loop) return n > 0 ? body(closure, 0, n, ctx) : 0;
  return worker.pool->parallel_for(n, body, closure);
}

int32_t ThreadPool::parallel_for(int64_t n, SatorChunk body, void* closure) {
  if (n <= 0) return 0;
  Worker& caller = *workers_[0];
  if (caller.in_loop) return body(closure, 0, n, &caller.context);
  job_.n = n;
  job_.body = body;
  job_.closure = closure;
  if (threads_.empty() || n == 1) {
    run_chunk(caller);
    return caller.status;
  }
  done_.pending.store(static_cast<uint32_t>(threads_.size()), std::memory_order_relaxed);
  job_.caller_core.store(sched_getcpu(), std::memory_order_relaxed);
  // Sequentially consistent, as the count of sleepers is: either we see the sleeper, or it sees the new
  // epoch.
  job_.epoch.fetch_add(1);
  if (job_.sleepers.load() > 0) job_.epoch.notify_all();
  run_chunk(caller);
  await_workers();
  for (auto& worker : workers_) {
    if (worker->status == 0) continue;
    if (worker.get() != &caller) {
      caller.error = std::move(worker->error);
      caller.exception = std::exchange(worker->exception, nullptr);
    }
    return worker->status;
  }
  return 0;
}

// The first n % W workers get one iteration more than the others.
void ThreadPool::run_chunk(Worker& worker) {
  int64_t count = num_workers(), index = worker.context.worker;
  int64_t share = job_.n / count, rest = job_.n % count;
  int64_t begin = index * share + std::min(index, rest);
  int64_t end = begin + share + (index < rest ? 1 : 0);
  worker.status = 0;
  if (begin == end) return;
  worker.in_loop = true;
  size_t mark = worker.workspace.mark();
  try {
    worker.status = job_.body(job_.closure, begin, end, &worker.context);
  } catch (const std::exception& e) {
    worker.error = e.what();
    worker.exception = std::current_exception();
    worker.status = 1;
  }
  worker.workspace.release(mark);
  worker.in_loop = false;
}

void ThreadPool::serve(Worker& worker) {
  for (uint32_t seen = 0;; ++seen) {
    await_loop(worker, seen);
    if (job_.stop) return;
    run_chunk(worker);
    worker.core.store(sched_getcpu(), std::memory_order_relaxed);
    // The last one to finish wakes the caller; the pair of flags is ordered as epoch and sleepers are.
    if (done_.pending.fetch_sub(1) == 1 && done_.caller_sleeps.load() != 0) done_.pending.notify_one();
  }
}

// Returns once the epoch has left `seen`.
void ThreadPool::await_loop(Worker& worker, uint32_t seen) {
  auto ready = [&] { return job_.epoch.load(std::memory_order_acquire) != seen; };
  auto same_core = [&] {
    int core = sched_getcpu();
    worker.core.store(core, std::memory_order_relaxed);
    return core == job_.caller_core.load(std::memory_order_relaxed);
  };
  if (spin_then_yield(ready, same_core)) return;
  job_.sleepers.fetch_add(1);
  while (job_.epoch.load() == seen) job_.epoch.wait(seen);
  job_.sleepers.fetch_sub(1);
}

void ThreadPool::await_workers() {
  auto ready = [&] { return done_.pending.load(std::memory_order_acquire) == 0; };
  auto same_core = [&] {
    int core = sched_getcpu();
    return std::any_of(workers_.begin() + 1, workers_.end(), [&](const auto& worker) {
      return worker->core.load(std::memory_order_relaxed) == core;
    });
  };
  if (spin_then_yield(ready, same_core)) return;
  done_.caller_sleeps.store(1);
  for (uint32_t left; (left = done_.pending.load()) != 0;) done_.pending.wait(left);
  done_.caller_sleeps.store(0);
}

std::string ThreadPool::take_error() {
  workers_[0]->exception = nullptr;
  return std::exchange(workers_[0]->error, {});
}

void ThreadPool::fail_with_last_error() {
  std::exception_ptr exception = workers_[0]->exception;
  std::string message = take_error();
  if (exception) std::rethrow_exception(exception);
  fail({.what = message.empty() ? "a parallel loop failed without saying why" : message});
}

}  // namespace sator::runtime
