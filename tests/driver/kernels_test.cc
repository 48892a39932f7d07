#include "driver/kernels.h"

#include "relax/parse.h"

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

TEST(Kernels, MeanWhatPhase3Means) {
  const target::CpuLevel* level = target::levels_for("native").front();
  Compiled compiled =
      compile(relax::parse_module(kModule), {.target = Target::of_levels({level}), .bounds = {{"n", 64}}});
  int kernels = 0, packed = 0;
  expect_kernels_mean_phase3(compiled, *level, {1, 5, 13, 31}, kernels, packed);
  EXPECT_GE(kernels, 4);
  EXPECT_GE(packed, 2);  // both products
}

// The other instruction-set levels of this processor have schedules of their own.
TEST(Kernels, MeanWhatPhase3MeansAtEveryLevel) {
  for (const target::CpuLevel* level : target::host_levels()) {
    SCOPED_TRACE(level->name);
    Compiled compiled =
        compile(relax::parse_module(kModule), {.target = Target::of_levels({level}), .bounds = {{"n", 64}}});
    int kernels = 0, packed = 0;
    expect_kernels_mean_phase3(compiled, *level, {7}, kernels, packed);
    EXPECT_GE(kernels, 4);
    EXPECT_GE(packed, 2);
  }
}

}  // namespace
}  // namespace sator::driver
