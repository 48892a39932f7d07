#include "runtime/thread_pool.h"

#include <sched.h>
#include <unistd.h>

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

/// gettid(), which asks the kernel once.
int32_t this_thread() {
  static thread_local const auto id = static_cast<int32_t>(gettid());
  return id;
}

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
          .needs = text("a number from 1 to ", kMaxThreads)});
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
  job_.loop.fetch_add(kStates);
  job_.loop.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

thread_local ThreadPool::Worker* ThreadPool::here_ = nullptr;

ThreadPool::Caller::Caller(ThreadPool& pool) : before_(std::exchange(here_, pool.workers_[0].get())) {}

ThreadPool::Caller::~Caller() { here_ = before_; }

void ThreadPool::keep_exception(std::exception_ptr exception) {
  if (here_) here_->exception = std::move(exception);
}

bool ThreadPool::is_in_loop_here() const { return here_ && here_->pool == this && here_->in_loop; }

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
    run_chunk(caller, caller);
    return caller.status;
  }
  const SharedObjects shared;
  const uint32_t loop = job_.loop.load(std::memory_order_relaxed) + kStates;
  for (size_t i = 1; i < workers_.size(); ++i) {
    workers_[i]->status = 0;
    workers_[i]->chunk.store(loop | kOpen, std::memory_order_relaxed);
  }
  job_.caller_core.store(sched_getcpu(), std::memory_order_relaxed);
  job_.caller_thread.store(this_thread(), std::memory_order_relaxed);
  // Sequentially consistent, as the count of sleepers is: either we see the sleeper, or it sees the new loop.
  job_.loop.store(loop);
  if (job_.sleepers.load() > 0) {
    // One that wakes here would wait for us, and we do its chunk before it runs.
    for (size_t i = 1; i < workers_.size(); ++i) keep_off_caller(*workers_[i]);
    job_.loop.notify_all();
  }
  run_chunk(caller, caller);
  bool failed = caller.status != 0;
  for (size_t i = 1; i < workers_.size(); ++i) {
    if (!take(*workers_[i], loop)) continue;
    if (!failed) run_chunk(*workers_[i], caller);
    failed |= workers_[i]->status != 0;
    workers_[i]->chunk.store(loop | kDone, std::memory_order_relaxed);
  }
  for (size_t i = 1; i < workers_.size(); ++i) await_chunk(*workers_[i], loop);
  int32_t status = 0;
  for (auto& worker : workers_) {
    if (worker->status == 0) continue;
    std::string error = std::exchange(worker->error, {});
    std::exception_ptr exception = std::exchange(worker->exception, nullptr);
    if (status != 0) continue;  // of several failures the first is told
    status = worker->status;
    caller.error = std::move(error);
    caller.exception = std::move(exception);
  }
  return status;
}

// Whoever takes a chunk runs it; the loop's description stays as it is until all taken chunks are done.
bool ThreadPool::take(Worker& owner, uint32_t loop) {
  uint32_t open = loop | kOpen;
  return owner.chunk.compare_exchange_strong(open, loop | kTaken, std::memory_order_acquire, std::memory_order_relaxed);
}

// The first n % W chunks have one iteration more than the others.
void ThreadPool::run_chunk(Worker& owner, Worker& by) {
  int64_t count = num_workers(), index = owner.context.worker;
  int64_t share = job_.n / count, rest = job_.n % count;
  int64_t begin = index * share + std::min(index, rest);
  int64_t end = begin + share + (index < rest ? 1 : 0);
  owner.status = 0;
  if (begin == end) return;
  by.in_loop = true;
  size_t mark = by.workspace.mark();
  try {
    owner.status = job_.body(job_.closure, begin, end, &by.context);
  } catch (const std::exception& e) {
    by.error = e.what();
    by.exception = std::current_exception();
    owner.status = 1;
  }
  by.workspace.release(mark);
  by.in_loop = false;
  if (owner.status != 0 && &owner != &by) {
    owner.error = std::exchange(by.error, {});
    owner.exception = std::exchange(by.exception, nullptr);
  }
}

void ThreadPool::serve(Worker& worker) {
  here_ = &worker;
  worker.thread.store(this_thread());
  for (uint32_t seen = 0;;) {
    seen = await_loop(worker, seen);
    if (job_.stop) return;
    if (!take(worker, seen)) continue;
    run_chunk(worker, worker);
    worker.core.store(sched_getcpu(), std::memory_order_relaxed);
    // We wake the caller if it sleeps; the pair of flags is ordered as loop and sleepers are.
    worker.chunk.store(seen | kDone);
    if (caller_sleeps_.load() != 0) worker.chunk.notify_one();
  }
}

// Returns the number of a loop that is not `seen`.
uint32_t ThreadPool::await_loop(Worker& worker, uint32_t seen) {
  auto ready = [&] { return job_.loop.load(std::memory_order_acquire) != seen; };
  auto same_core = [&] {
    keep_off_caller(worker);
    const int32_t core = sched_getcpu();
    worker.core.store(core, std::memory_order_relaxed);
    return core == job_.caller_core.load(std::memory_order_relaxed);
  };
  if (!spin_then_yield(ready, same_core)) {
    job_.sleepers.fetch_add(1);
    while (job_.loop.load() == seen) job_.loop.wait(seen);
    job_.sleepers.fetch_sub(1);
  }
  return job_.loop.load(std::memory_order_acquire);
}

void ThreadPool::keep_off_caller(Worker& worker) {
  const int32_t caller = job_.caller_core.load(std::memory_order_relaxed), thread = worker.thread.load();
  if (thread != 0 && worker.kept_off.exchange(caller, std::memory_order_relaxed) != caller)
    keep_off(caller, job_.caller_thread.load(std::memory_order_relaxed), thread);
}

void ThreadPool::await_chunk(Worker& worker, uint32_t loop) {
  auto ready = [&] { return worker.chunk.load(std::memory_order_acquire) == (loop | kDone); };
  auto same_core = [&] { return worker.core.load(std::memory_order_relaxed) == sched_getcpu(); };
  if (spin_then_yield(ready, same_core)) return;
  caller_sleeps_.store(1);
  while (worker.chunk.load() != (loop | kDone)) worker.chunk.wait(loop | kTaken);
  caller_sleeps_.store(0);
}

std::string ThreadPool::take_error() {
  Worker& caller = *workers_[0];
  std::string message = std::exchange(caller.error, {});
  if (std::exception_ptr exception = std::exchange(caller.exception, nullptr)) std::rethrow_exception(exception);
  return message;
}

void ThreadPool::fail_with_last_error() {
  const std::string message = take_error();
  fail({.what = message.empty() ? "a parallel loop failed without saying why" : message});
}

}  // namespace sator::runtime
