// Every kernel of compiled models: its trace replays from the phase-3 function, its phase-4 text means what phase 3 means,
// and the machine code does what the text says.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "arith/eval.h"
#include "codegen/jit.h"
#include "codegen/signature.h"
#include "driver/compile.h"
#include "ir/visit.h"
#include "passes/lower/lower.h"
#include "relax/parse.h"
#include "runtime/thread_pool.h"
#include "schedule/script.h"
#include "temp_folder.h"
#include "tir/interp.h"
#include "tir/parse.h"
#include "tir/print.h"

namespace sator::driver {
namespace {

// Two layers of a Llama-like block in miniature, with what the schemes of quantization add: written here, so that the
// kernels come through the same passes as a model's.
constexpr const char* kModule = R"(
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T

@I.ir_module
class Module:
    @R.function
    def prefill(x: R.Tensor(("n", 48), dtype="float32"), params: R.Tuple(R.Tensor((96, 48), dtype="float32"), R.Tensor((96,), dtype="float32"), R.Tensor((40, 96), dtype="float32"), R.Tensor((48,), dtype="float32"))):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            w1: R.Tensor((96, 48), dtype="float32") = params[0]
            b1: R.Tensor((96,), dtype="float32") = params[1]
            w2: R.Tensor((40, 96), dtype="float32") = params[2]
            g: R.Tensor((48,), dtype="float32") = params[3]
            norm = R.nn.rms_norm(x, g, axes=[-1], epsilon=0.00001)
            t1 = R.permute_dims(w1)
            h = R.matmul(norm, t1)
            hb = R.add(h, b1)
            a = R.nn.silu(hb)
            t2 = R.permute_dims(w2)
            y = R.matmul(a, t2)
            s = R.nn.softmax(y, axis=-1)
            R.output(s)
        return s
)";

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
      } else {
        for (int64_t b = 0; b < dtype.bytes(); ++b) at(i)[b] = static_cast<std::byte>(random() & (dtype.bits == 32 ? 0 : 255));
      }
    }
  }
  std::byte* base() { return reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(bytes.data()) + 63) / 64 * 64); }
  std::byte* at(int64_t i) { return base() + i * dtype.bytes(); }
};

using Arrays = std::vector<std::unique_ptr<Array>>;

Arrays arrays_for(const tir::PrimFunc& f, const arith::Values& sizes) {
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

arith::Values sizes_of(const tir::PrimFunc& f, int64_t n) {
  arith::Values sizes;
  for (const VarRef& p : f.params)
    for (const Expr& extent : f.buffer_of(p)->shape)
      for (const VarRef& v : vars_in(extent)) sizes.emplace(v, n);
  return sizes;
}

void interpret(const tir::PrimFunc& f, Arrays& arrays) {
  std::vector<tir::Argument> args;
  for (auto& a : arrays) args.push_back(tir::ArrayView{.data = a->base(), .dtype = a->dtype, .shape = a->shape});
  tir::Interpreter(ref(f)).run(args);
}

void run_machine_code(const tir::PrimFunc& f, const target::CpuLevel& level, Arrays& arrays, const arith::Values& sizes) {
  Ref<codegen::Jit> jit = codegen::Jit::create(level);
  SatorKernel kernel = jit->add(*passes::lower(ref(f)));
  std::vector<void*> buffers;
  for (auto& a : arrays) buffers.push_back(a->base());
  std::vector<int64_t> values;
  for (const VarRef& v : codegen::kernel_arguments(f).values) values.push_back(sizes.at(v));
  Ref<runtime::ThreadPool> pool = runtime::ThreadPool::create(2);
  ASSERT_EQ(kernel(buffers.data(), values.data(), pool->context()), 0);
}

/// Largest difference of floats, relative to the largest number; other dtypes must be equal.
double difference(Arrays& a, Arrays& b) {
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

TEST(Kernels, MeanWhatPhase3Means) {
  ModuleRef module = relax::parse_module(kModule);
  const target::CpuLevel* level = target::levels_for("native").front();
  Compiled compiled = compile(module, {.levels = {level}, .bounds = {{"n", 64}}});
  int kernels = 0;
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
    for (int64_t n : {1, 5, 13, 31}) {
      SCOPED_TRACE(n);
      Arrays meant = arrays_for(*before, sizes_of(*before, n));
      interpret(*before, meant);
      // Packed parameters hold the same numbers elsewhere: such kernels are compared with their own text alone.
      const bool packed = s.trace.find("transform_layout") != std::string::npos;
      Arrays said = arrays_for(*text_of, sizes_of(*text_of, n)), done = arrays_for(*after, sizes_of(*after, n));
      interpret(*text_of, said);
      run_machine_code(*after, *level, done, sizes_of(*after, n));
      EXPECT_LT(difference(said, done), 2e-6);
      if (!packed) {
        EXPECT_LT(difference(meant, done), 1e-5);
      }
    }
  }
  EXPECT_GE(kernels, 4);
}

}  // namespace
}  // namespace sator::driver
