#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/object.h"
#include "runtime/abi.h"
#include "runtime/workspace.h"

namespace sator::runtime {

/// The most threads of a pool.
inline constexpr int kMaxThreads = 1024;

/// The threads to use when nobody said: $SATOR_NUM_THREADS, else the physical cores that the affinity mask
/// and the CPU quota of the control group allow; at least 1. Errors: SATOR_NUM_THREADS is not a number from 1
/// to kMaxThreads.
int default_num_threads();

/// Lets `thread` run on the processors that `like` may use, but not on `processor`; where that is the only one, nothing changes. Threads
/// as gettid() tells them.
void keep_off(int processor, int like, int thread);

/// Threads that run parallel loops together with the calling thread, which is worker 0.
///
/// A loop over [0, n) is cut into as many contiguous chunks as there are workers, by n and the number of workers alone.
/// Results must not depend on the cut: a chunk computes what the whole loop would have computed there.
///
/// A worker that does not come in time (the system has given its core to somebody else) loses its chunk to the caller,
/// which has nothing left to do: a loop waits for chunks that have begun, never for a thread to be woken.
///
/// Waiting threads spin for some tens of microseconds, then yield the core, then sleep. They yield at once
/// where two of them find themselves on the same core: a thread that spins there keeps the one it waits for
/// from running. Workers keep off the caller's core: a system that wakes threads where their waker runs gave each
/// of the first loops to the caller alone (2.2 ms in place of 1.1 ms for 30 convolutions in a row, on two cores).
///
/// One thread at a time calls into a pool.
class ThreadPool final : public Object {
  struct Worker;

 public:
  /// `num_threads` counts the caller; 0 means default_num_threads(). Errors: fewer than 0 or more than
  /// kMaxThreads threads.
  static Ref<ThreadPool> create(int num_threads = 0);
  ~ThreadPool() override;

  int num_workers() const { return static_cast<int>(workers_.size()); }
  /// The context of worker 0, to call kernels with.
  SatorContext* context();

  /// What SatorContext::parallel_for does. On failure the message of the lowest failing chunk becomes worker
  /// 0's.
  int32_t parallel_for(int64_t n, SatorChunk body, void* closure);
  /// The same for C++: f(begin, end, ctx) on each chunk. Errors: what f throws, of the lowest chunk.
  template <class F>
  void for_each_chunk(int64_t n, F&& f) {
    auto body = [](void* closure, int64_t begin, int64_t end, SatorContext* ctx) -> int32_t {
      (*static_cast<std::remove_reference_t<F>*>(closure))(begin, end, ctx);
      return 0;
    };
    if (parallel_for(n, body, const_cast<void*>(static_cast<const void*>(&f))) != 0) fail_with_last_error();
  }

  /// The message of the last failure, which is then forgotten. Errors: what keep_exception() kept of that failure.
  std::string take_error();

  /// While one lives, this thread is the pool's worker 0 for keep_exception() and is_in_loop_here().
  class Caller {
   public:
    explicit Caller(ThreadPool& pool);
    ~Caller();
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;

   private:
    Worker* before_;
  };
  /// For functions that kernels call: what one threw is kept for whoever takes the error of this thread's worker, once the kernel
  /// has ended with a status. Nothing is kept outside of a kernel.
  static void keep_exception(std::exception_ptr exception);
  /// Whether this thread runs a chunk of one of the pool's loops.
  bool is_in_loop_here() const;
  /// Scratch memory that the caller's kernels pushed and did not pop is taken back to this mark.
  size_t workspace_mark() const { return workers_[0]->workspace.mark(); }
  void workspace_release(size_t mark) { workers_[0]->workspace.release(mark); }

 private:
  /// A thread and the chunk that is its own.
  struct alignas(128) Worker {
    SatorContext context;  // first: the C interface hands out its address
    ThreadPool* pool;
    Workspace workspace;
    std::string error;
    std::exception_ptr exception;  // what a C++ body threw, or a function that a kernel called
    int32_t status = 0;            // of the last chunk
    bool in_loop = false;
    std::atomic<int32_t> core{-1};                // where it was seen last
    std::atomic<int32_t> kept_off{-1};            // the core that it may not run on
    std::atomic<int32_t> thread{0};               // 0: it has not begun
    alignas(128) std::atomic<uint32_t> chunk{0};  // the loop's number and the state of this worker's chunk of it
  };
  /// States of a chunk; a loop's number is counted in steps of kStates.
  enum : uint32_t { kOpen = 0, kTaken = 1, kDone = 2, kStates = 4 };

  static thread_local Worker* here_;  // the worker that this thread is

  ThreadPool() = default;
  [[noreturn]] void fail_with_last_error();
  static int32_t context_parallel_for(SatorContext* ctx, int64_t n, SatorChunk body, void* closure);
  static bool take(Worker& owner, uint32_t loop);
  void run_chunk(Worker& owner, Worker& by);
  void serve(Worker& worker);
  uint32_t await_loop(Worker& worker, uint32_t seen);
  /// Has the worker run elsewhere than on the core where the caller was seen, if it may.
  void keep_off_caller(Worker& worker);
  void await_chunk(Worker& worker, uint32_t loop);

  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::thread> threads_;

  // What the caller writes and the workers read.
  struct alignas(128) {
    std::atomic<uint32_t> loop{0};  // its number
    std::atomic<int32_t> caller_core{-1}, caller_thread{0};
    std::atomic<uint32_t> sleepers{0};
    std::atomic<bool> stop{false};
    int64_t n = 0;
    SatorChunk body = nullptr;
    void* closure = nullptr;
  } job_;
  // Whether the caller sleeps until a chunk is done.
  alignas(128) std::atomic<uint32_t> caller_sleeps_{0};
};

}  // namespace sator::runtime
