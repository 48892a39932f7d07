// Every kernel of a compiled program: its trace replays from the phase-3 function, its phase-4 text means what phase 3
// means, and the machine code does what the text says.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "arith/eval.h"
#include "base/float16.h"
#include "codegen/jit.h"
#include "codegen/signature.h"
#include "driver/compile.h"
#include "ir/visit.h"
#include "passes/lower/lower.h"
#include "rules/grouped.h"
#include "rules/low_batch.h"
#include "runtime/thread_pool.h"
#include "schedule/script.h"
#include "tir/interp.h"
#include "tir/parse.h"
#include "tir/print.h"

namespace sator::driver {

/// Memory for a buffer parameter.
struct Array {
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
  int64_t elements = 1;

  /// All zero.
  Array(DType d, std::vector<int64_t> dims) : dtype(d), shape(std::move(dims)) {
    for (int64_t e : shape) elements *= e;
    bytes.resize(static_cast<size_t>(elements * dtype.bytes()) + 64);
  }
  Array(const Array&) = delete;  // where its bytes are aligned depends on where they are
  Array& operator=(const Array&) = delete;

  void fill(std::mt19937_64& random) {
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < elements; ++i) {
      if (dtype == f32) {
        float v = normal(random);
        std::memcpy(at(i), &v, 4);
      } else if (dtype == i32) {
        int32_t v = static_cast<int32_t>(random() % 8);  // also an index of any table
        std::memcpy(at(i), &v, 4);
      } else if (dtype == f16 || dtype == bf16) {
        uint16_t v = dtype == f16 ? f32_to_f16(normal(random)) : f32_to_bf16(normal(random));
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

inline std::unique_ptr<Array> array_for(const Buffer& b, const arith::Values& sizes) {
  std::vector<int64_t> shape;
  for (const Expr& e : b.shape) shape.push_back(arith::evaluate(e, sizes).value());
  return std::make_unique<Array>(b.dtype, shape);
}

/// Arguments, the same bytes for every run. Sizes that are parameters come last, and are none of them.
inline Arrays arrays_for(const tir::PrimFunc& f, const arith::Values& sizes) {
  std::mt19937_64 random(7);
  Arrays out;
  for (const VarRef& p : f.params) {
    BufferRef b = f.buffer_of(p);
    if (!b) continue;
    out.push_back(array_for(*b, sizes));
    out.back()->fill(random);
  }
  return out;
}

inline arith::Values sizes_of(const tir::PrimFunc& f, int64_t n) {
  arith::Values sizes;
  for (const VarRef& p : f.params) {
    BufferRef b = f.buffer_of(p);
    if (!b) sizes.emplace(p, n);
    for (const Expr& extent : b ? b->shape : std::vector<Expr>{})
      for (const VarRef& v : vars_in(extent)) sizes.emplace(v, n);
  }
  return sizes;
}

inline void interpret(const tir::PrimFunc& f, Arrays& arrays, const arith::Values& sizes) {
  std::vector<tir::Argument> args;
  for (auto& a : arrays) args.push_back(tir::ArrayView{.data = a->base(), .dtype = a->dtype, .shape = a->shape});
  for (const VarRef& p : f.params)
    if (!f.buffer_of(p)) args.push_back(sizes.at(p));
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

/// Whether two narrow floats are neighbours or equal: what float32 results that differ in their last bits round to.
inline bool are_neighbours(const std::byte* a, const std::byte* b) {
  auto place = [](const std::byte* at) {  // among all numbers in their order
    int16_t bits;
    std::memcpy(&bits, at, 2);
    return bits < 0 ? -(bits & 0x7fff) : int{bits};
  };
  return std::abs(place(a) - place(b)) <= 1;
}

/// A float of 16 or 32 bits.
inline float number_at(Array& a, int64_t i) {
  float x;
  uint16_t half;
  if (a.dtype == f32) return std::memcpy(&x, a.at(i), 4), x;
  std::memcpy(&half, a.at(i), 2);
  return a.dtype == f16 ? f16_to_f32(half) : bf16_to_f32(half);
}

/// Largest difference of floats, relative to the largest; narrower ones that are neighbours do not differ, and other dtypes must be equal.
inline double difference(Arrays& a, Arrays& b) {
  double worst = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    double largest = 1e-20, most = 0;
    for (int64_t i = 0; i < a[k]->elements; ++i) {
      const bool is_narrow = a[k]->dtype == f16 || a[k]->dtype == bf16;
      if (!is_narrow && a[k]->dtype != f32) {
        if (std::memcmp(a[k]->at(i), b[k]->at(i), static_cast<size_t>(a[k]->dtype.bytes())) != 0) return INFINITY;
        continue;
      }
      const float x = number_at(*a[k], i), y = number_at(*b[k], i);
      if (!std::isfinite(x) || !std::isfinite(y)) {
        if (x != y) return INFINITY;
        continue;
      }
      largest = std::max(largest, std::abs(double{x}));
      if (!is_narrow || !are_neighbours(a[k]->at(i), b[k]->at(i))) most = std::max(most, std::abs(double{x} - y));
    }
    worst = std::max(worst, most / largest);
  }
  return worst;
}

/// How the parameters of a function were laid out anew by the steps of a trace: per parameter the maps, in order.
using Layouts = std::vector<std::vector<arith::IndexMapRef>>;

/// Runs a trace on a phase-3 function, line by line, and notes which steps changed a parameter's shape.
inline Layouts replay(schedule::Schedule& s, const std::string& trace) {
  schedule::Script script(s);
  Layouts layouts(s.func()->params.size());
  for (std::string_view line : split(trace, '\n')) {
    if (line.empty()) continue;
    const tir::PrimFuncRef before = s.func();
    script.run(std::string(line));
    for (size_t p = 0; p < layouts.size(); ++p) {
      if (!before->buffer_of(before->params[p])) continue;
      // Panels have a dimension more.
      if (before->buffer_of(before->params[p])->shape.size() == s.func()->buffer_of(s.func()->params[p])->shape.size())
        continue;
      const arith::IndexMapRef* map = nullptr;
      for (const schedule::Value& v : s.trace().steps.back().inputs)
        if (auto* m = v.get_if<Ref<const arith::IndexMap>>()) map = m;
      if (!map) {
        ADD_FAILURE() << "a parameter changed its shape without an index map: " << line;
        continue;
      }
      layouts[p].push_back(*map);
    }
  }
  return layouts;
}

/// Moves the numbers to where `f` takes them; elements that come from none are 0.
inline void lay_out(Arrays& arrays, const Layouts& layouts, const tir::PrimFunc& f) {
  for (size_t p = 0; p < layouts.size(); ++p) {
    ASSERT_LE(layouts[p].size(), 1u);
    if (layouts[p].empty()) continue;
    const arith::IndexMap& map = *layouts[p].front();
    Array& plain = *arrays[p];
    std::unique_ptr<Array> packed = array_for(*f.buffer_of(f.params[p]), {});
    for (int64_t i = 0; i < plain.elements; ++i) {
      arith::Values at;
      for (size_t d = plain.shape.size(), rest = static_cast<size_t>(i); d-- > 0;) {
        at[map.initial_indices[d]] = static_cast<int64_t>(rest % static_cast<size_t>(plain.shape[d]));
        rest /= static_cast<size_t>(plain.shape[d]);
      }
      int64_t to = 0;
      for (size_t d = 0; d < packed->shape.size(); ++d)
        to = to * packed->shape[d] + arith::evaluate(map.final_indices[d], at).value();
      std::memcpy(packed->at(to), plain.at(i), static_cast<size_t>(plain.dtype.bytes()));
    }
    arrays[p] = std::move(packed);
  }
}

/// Leaves out the parameters whose layout differs.
inline void drop_laid_out(Arrays& arrays, const Layouts& layouts) {
  for (size_t p = layouts.size(); p-- > 0;)
    if (!layouts[p].empty()) arrays.erase(arrays.begin() + static_cast<std::ptrdiff_t>(p));
}

/// Each branch of a function as its trace says.
///   after   gives the joined function its parameters
inline tir::PrimFuncRef replayed_branches(const tir::PrimFuncRef& before,
                                          const std::vector<rules::AppliedSchedule>& traces,
                                          const tir::PrimFuncRef& after, Layouts& layouts) {
  std::vector<rules::LowBatchBranch> branches = rules::low_batch_branches(before);
  EXPECT_EQ(branches.size(), traces.size());
  if (branches.size() != traces.size()) return before;
  for (size_t i = 0; i < branches.size(); ++i) {
    EXPECT_EQ(branches[i].calls, traces[i].calls);
    schedule::Schedule again(branches[i].func, traces[i].function);
    again.work_on(traces[i].function);
    layouts = replay(again, traces[i].trace);
    branches[i].func = again.func();
  }
  return branches.size() == 1 ? branches.front().func : rules::join_branches(after, branches);
}

/// The function that the traces of a kernel make of its phase-3 function: one trace, or one for each of its branches.
///   after   the kernel, which gives the joined function its parameters
inline tir::PrimFuncRef replayed(const tir::PrimFuncRef& before, std::vector<rules::AppliedSchedule> traces,
                                 const tir::PrimFuncRef& after, Layouts& layouts) {
  const std::string of_one = text(rules::kOneGroup, "\n");
  const size_t begin = traces.front().trace.find(of_one);
  if (begin == std::string::npos) return replayed_branches(before, traces, after, layouts);
  // Parameters are laid out in the whole function; the rest is done to what one group does.
  schedule::Schedule whole(before, traces.front().function);
  whole.work_on(traces.front().function);
  layouts = replay(whole, traces.front().trace.substr(0, begin));
  for (rules::AppliedSchedule& t : traces) t.trace = t.trace.substr(begin + of_one.size());
  const std::optional<rules::GroupedFunction> grouped = rules::grouped_function(whole.func());
  EXPECT_TRUE(grouped);
  if (!grouped) return before;
  Layouts none;
  const tir::PrimFuncRef one = replayed_branches(grouped->one, traces, grouped->one, none);
  return rules::for_all_groups(whole.func(), *grouped, one);
}

/// `sizes`: values of the symbolic extents, one run each. `kernels` and `packed` are counted up.
inline void expect_kernels_mean_phase3(const Compiled& compiled, const target::CpuLevel& level,
                                       std::vector<int64_t> sizes, int& kernels, int& packed) {
  std::map<std::string, std::vector<rules::AppliedSchedule>> traces;
  for (const rules::AppliedSchedule& s : compiled.schedules) traces[s.function].push_back(s);
  for (const auto& [name, steps] : traces) {
    SCOPED_TRACE(name);
    auto at = compiled.phase3->functions.find(name);
    if (at == compiled.phase3->functions.end()) {
      EXPECT_TRUE(name.starts_with("pack")) << "it neither comes from phase 3 nor lays parameters out";
      continue;
    }
    ++kernels;
    tir::PrimFuncRef before = cast<tir::PrimFunc>(at->second);
    tir::PrimFuncRef after = cast<tir::PrimFunc>(compiled.scheduled->functions.at(name));

    Layouts layouts;
    const tir::PrimFuncRef again = replayed(before, steps, after, layouts);
    EXPECT_TRUE(equal(again->body, after->body, true)) << steps.front().trace << tir::to_script(*again);
    packed += std::ranges::any_of(layouts, [](const auto& maps) { return !maps.empty(); });

    tir::PrimFuncRef text_of = tir::parse_function(tir::to_script(*after));
    Ref<codegen::Jit> jit = codegen::Jit::create(level);
    SatorKernel kernel = jit->add(*passes::lower(after));
    const bool symbolic = !sizes_of(*before, 1).empty();
    for (int64_t n : symbolic ? sizes : std::vector<int64_t>{1}) {
      SCOPED_TRACE(n);
      auto arguments = [&](const tir::PrimFunc& f) {
        Arrays arrays = arrays_for(*before, sizes_of(*before, n));
        lay_out(arrays, layouts, f);
        return arrays;
      };
      Arrays meant = arrays_for(*before, sizes_of(*before, n)), said = arguments(*text_of), done = arguments(*after);
      interpret(*before, meant, sizes_of(*before, n));
      interpret(*text_of, said, sizes_of(*text_of, n));
      run_machine_code(*after, kernel, done, sizes_of(*after, n));
      EXPECT_LT(difference(said, done), 2e-6);
      drop_laid_out(meant, layouts);
      drop_laid_out(done, layouts);
      EXPECT_LT(difference(meant, done), 1e-5);
    }
  }
}

/// Whether the only symbolic size of the function is a number of rows, the first dimension of buffers and of the last one: what
/// one row gives may then depend on that row alone.
inline bool goes_over_rows(const tir::PrimFunc& f) {
  VarRef rows;
  for (const VarRef& p : f.params) {
    const BufferRef b = f.buffer_of(p);
    if (!b) return false;
    for (size_t d = 0; d < b->shape.size(); ++d) {
      if (as_int(b->shape[d])) continue;
      const VarRef size = cast<Var>(b->shape[d]);
      if (d > 0 || !size || (rows && rows != size)) return false;
      rows = size;
    }
  }
  return rows && !as_int(f.buffer_of(f.params.back())->shape[0]);
}

/// Every kernel over rows gives the first rows the same bits, however many follow. `compared` is counted up.
inline void expect_same_bits_at_every_height(const Compiled& compiled, const target::CpuLevel& level, int& compared) {
  constexpr int64_t kMost = 33;
  for (const auto& [name, function] : compiled.scheduled->functions) {
    const tir::PrimFuncRef f = cast<tir::PrimFunc>(function);
    if (!f || name.starts_with("pack") || !goes_over_rows(*f)) continue;
    SCOPED_TRACE(name);
    Ref<codegen::Jit> jit = codegen::Jit::create(level);
    const SatorKernel kernel = jit->add(*passes::lower(f));
    Arrays most = arrays_for(*f, sizes_of(*f, kMost));
    run_machine_code(*f, kernel, most, sizes_of(*f, kMost));
    for (int64_t n : {1, 2, 5, 8, 14}) {
      Arrays fewer = arrays_for(*f, sizes_of(*f, n)), all = arrays_for(*f, sizes_of(*f, kMost));
      const auto bytes = [&](size_t k) { return static_cast<size_t>(fewer[k]->elements * fewer[k]->dtype.bytes()); };
      for (size_t k = 0; k < fewer.size(); ++k) std::memcpy(fewer[k]->base(), all[k]->base(), bytes(k));
      run_machine_code(*f, kernel, fewer, sizes_of(*f, n));
      EXPECT_EQ(std::memcmp(fewer.back()->base(), most.back()->base(), bytes(fewer.size() - 1)), 0)
          << n << " of " << kMost << " rows";
      ++compared;
    }
  }
}

}  // namespace sator::driver
