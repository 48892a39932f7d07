// Compiles a function in this process and calls it on plain memory.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/jit.h"
#include "passes/lower/lower.h"
#include "runtime/thread_pool.h"

namespace sator::codegen {

/// 64-byte aligned elements, as tensors have them.
template <class T>
struct Data {
  explicit Data(size_t n) : size(n), memory(static_cast<T*>(std::aligned_alloc(64, (n * sizeof(T) + 127) / 64 * 64))) {}
  ~Data() { std::free(memory); }
  Data(const Data&) = delete;
  T& operator[](size_t i) { return memory[i]; }
  const T& operator[](size_t i) const { return memory[i]; }
  void* raw() { return memory; }
  size_t size;
  T* memory;
};

/// Lowers, compiles for the level and calls. Returns the kernel's status.
inline int32_t run_kernel(const tir::PrimFuncRef& func, const target::CpuLevel& level, std::vector<void*> buffers,
                          std::vector<int64_t> values = {}, int threads = 1) {
  Ref<Jit> jit = Jit::create(level);
  SatorKernel kernel = jit->add(*passes::lower(func));
  Ref<runtime::ThreadPool> pool = runtime::ThreadPool::create(threads);
  return kernel(buffers.data(), values.data(), pool->context());
}

}  // namespace sator::codegen
