// Memory that runs out amid a compilation ends the process in words.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <fstream>
#include <new>

#include "codegen/llvm.h"
#include "codegen/programs.h"
#include "passes/lower/lower.h"

#if defined(__SANITIZE_ADDRESS__)
#define SATOR_OWN_ALLOCATOR
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SATOR_OWN_ALLOCATOR
#endif
#endif

namespace sator::codegen {
namespace {

constexpr int kEnded = 0, kInWords = 3, kOtherwise = 4;

/// B[i] = A[i] * 2
tir::PrimFuncRef twice() {
  BufferRef a = make_buffer("A", {int_imm(4096, i64)}, f32), b = make_buffer("B", {int_imm(4096, i64)}, f32);
  VarRef i = make_var("i", i64);
  return passes::lower(
      prim_func({a, b}, tir::for_loop(i, int_imm(4096, i64), tir::store(b, load(a, {i}) * float_imm(2), {i}))));
}

rlim_t address_space() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}

/// How a process ends that may take so many further bytes while it compiles. A signal is given as its number below zero.
int end_of_compilation(const tir::PrimFunc& func, rlim_t more) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::set_terminate([] {
      try {
        std::rethrow_exception(std::current_exception());
      } catch (const std::bad_alloc&) {
        ::_exit(kInWords);
      } catch (...) {
        ::_exit(kOtherwise);
      }
    });
    const rlim_t now = address_space();
    const auto allow = [now](rlim_t bytes) {
      const struct rlimit limit = {.rlim_cur = now + bytes, .rlim_max = RLIM_INFINITY};
      ::setrlimit(RLIMIT_AS, &limit);
    };
    // What tests before this one freed is taken first: it would be room beyond the limit.
    allow(0);
    for (size_t bytes = size_t{1} << 20; bytes >= 64; bytes /= 2)
      while (void* taken = std::malloc(bytes)) *static_cast<volatile char*>(taken) = 1;
    allow(more);
    try {
      compile_object(func, "twice", *target::levels_for("native").front());
    } catch (const std::bad_alloc&) {
      ::_exit(kInWords);
    }
    ::_exit(kEnded);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(Memory, ThatRunsOutAmidACompilationEndsInWords) {
#ifdef SATOR_OWN_ALLOCATOR
  GTEST_SKIP() << "sanitizers reserve more address space than any limit leaves";
#endif
  const tir::PrimFuncRef func = twice();
  int ended = 0, in_words = 0;
  for (rlim_t more = 0; more < (rlim_t{32} << 20); more += rlim_t{128} << 10) {
    const int status = end_of_compilation(*func, more);
    EXPECT_TRUE(status == kEnded || status == kInWords) << more << " bytes more: " << status;
    ++(status == kEnded ? ended : in_words);
  }
  EXPECT_GE(ended, 1);
  EXPECT_GE(in_words, 8);
}

}  // namespace
}  // namespace sator::codegen
