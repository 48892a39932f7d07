// Every kernel of a compiled program: its trace replays from the phase-3 function, its phase-4 text means what phase 3
// means, and the machine code does what the text says.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "arith/eval.h"
#include "base/float16.h"
#include "codegen/jit.h"
#include "codegen/signature.h"
#include "driver/compile.h"
#include "ir/visit.h"
#include "passes/lower/lower.h"
#include "runtime/thread_pool.h"
#include "schedule/script.h"
#include "tir/interp.h"
#include "tir/parse.h"
#include "tir/print.h"

namespace sator::driver {

/// Memory for a buffer parameter, the same bytes for every run.
struct Array {
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
  int64_t elements = 1;

  Array(DType d, std::vector<int64_t> dims, std::mt19937_64& random) : dtype(d), shape(std::move(dims)) {
    for (int64_t e : shape) elements *= e;
    bytes.resize(static_cast<size_t>(elements * dtype.bytes()) + 64);
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < elements; ++i) {
      if (dtype == f32) {
        float v = normal(random);
        std::memcpy(at(i), &v, 4);
      } else if (dtype == i32) {
        int32_t v = static_cast<int32_t>(random() % 8);  // also an index of any table
        std::memcpy(at(i), &v, 4);
      } else if (dtype == f16) {
        uint16_t v = f32_to_f16(normal(random));
        std::memcpy(at(i), &v, 2);
      } else {
        for (int64_t b = 0; b < dtype.bytes(); ++b) at(i)[b] = static_cast<std::byte>(random());
      }
    }
  }
  std::byte* base() { return reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(bytes.data()) + 63) / 64 * 64); }
  std::byte* at(int64_t i) { return base() + i * dtype.bytes(); }
};

using Arrays = std::vector<std::unique_ptr<Array>>;

inline Arrays arrays_for(const tir::PrimFunc& f, const arith::Values& sizes) {
  std::mt19937_64 random(7);
  Arrays out;
  for (const VarRef& p : f.params) {
    BufferRef b = f.buffer_of(p);
    std::vector<int64_t> shape;
    for (const Expr& e : b->shape) shape.push_back(arith::evaluate(e, sizes).value());
    out.push_back(std::make_unique<Array>(b->dtype, shape, random));
  }
  return out;
}

inline arith::Values sizes_of(const tir::PrimFunc& f, int64_t n) {
  arith::Values sizes;
  for (const VarRef& p : f.params)
    for (const Expr& extent : f.buffer_of(p)->shape)
      for (const VarRef& v : vars_in(extent)) sizes.emplace(v, n);
  return sizes;
}

inline void interpret(const tir::PrimFunc& f, Arrays& arrays) {
  std::vector<tir::Argument> args;
  for (auto& a : arrays) args.push_back(tir::ArrayView{.data = a->base(), .dtype = a->dtype, .shape = a->shape});
  tir::Interpreter(ref(f)).run(args);
}

inline void run_machine_code(const tir::PrimFunc& f, SatorKernel kernel, Arrays& arrays, const arith::Values& sizes) {
  std::vector<void*> buffers;
  for (auto& a : arrays) buffers.push_back(a->base());
  std::vector<int64_t> values;
  for (const VarRef& v : codegen::kernel_arguments(f).values) values.push_back(sizes.at(v));
  Ref<runtime::ThreadPool> pool = runtime::ThreadPool::create(2);
  ASSERT_EQ(kernel(buffers.data(), values.data(), pool->context()), 0);
}

/// Largest difference of floats, relative to the largest number; other dtypes must be equal.
inline double difference(Arrays& a, Arrays& b) {
  double worst = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    double largest = 1e-20, most = 0;
    for (int64_t i = 0; i < a[k]->elements; ++i) {
      if (a[k]->dtype != f32) {
        if (std::memcmp(a[k]->at(i), b[k]->at(i), static_cast<size_t>(a[k]->dtype.bytes())) != 0) return INFINITY;
        continue;
      }
      float x, y;
      std::memcpy(&x, a[k]->at(i), 4);
      std::memcpy(&y, b[k]->at(i), 4);
      if (std::isnan(x) || std::isnan(y)) return INFINITY;
      largest = std::max(largest, std::abs(double{x}));
      most = std::max(most, std::abs(double{x} - y));
    }
    worst = std::max(worst, most / largest);
  }
  return worst;
}

/// `sizes`: values of the symbolic extents, one run each.
inline void expect_kernels_mean_phase3(const Compiled& compiled, const target::CpuLevel& level,
                                       std::vector<int64_t> sizes, int& kernels) {
  for (const rules::AppliedSchedule& s : compiled.schedules) {
    SCOPED_TRACE(s.function);
    auto at = compiled.phase3->functions.find(s.function);
    if (at == compiled.phase3->functions.end()) continue;  // lays parameters out
    ++kernels;
    tir::PrimFuncRef before = cast<tir::PrimFunc>(at->second);
    tir::PrimFuncRef after = cast<tir::PrimFunc>(compiled.scheduled->functions.at(s.function));

    schedule::Schedule replay(before, s.function);
    replay.work_on(s.function);
    schedule::Script(replay).run(s.trace);
    EXPECT_TRUE(equal(replay.func()->body, after->body, true)) << s.trace << tir::to_script(*replay.func());

    tir::PrimFuncRef text_of = tir::parse_function(tir::to_script(*after));
    Ref<codegen::Jit> jit = codegen::Jit::create(level);
    SatorKernel kernel = jit->add(*passes::lower(after));
    const bool symbolic = !sizes_of(*before, 1).empty();
    for (int64_t n : symbolic ? sizes : std::vector<int64_t>{1}) {
      SCOPED_TRACE(n);
      // Packed parameters hold the same numbers elsewhere: such kernels are compared with their own text alone.
      const bool packed = s.trace.find("buffer=[\"read\"") != std::string::npos;
      Arrays said = arrays_for(*text_of, sizes_of(*text_of, n)), done = arrays_for(*after, sizes_of(*after, n));
      interpret(*text_of, said);
      run_machine_code(*after, kernel, done, sizes_of(*after, n));
      EXPECT_LT(difference(said, done), 2e-6);
      if (packed) continue;
      Arrays meant = arrays_for(*before, sizes_of(*before, n));
      interpret(*before, meant);
      EXPECT_LT(difference(meant, done), 1e-5);
    }
  }
}

}  // namespace sator::driver
