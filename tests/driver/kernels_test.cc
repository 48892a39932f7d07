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

// Products of bfloat16 in both operands; the last one is of an odd depth, which has no pairs.
constexpr const char* kBfloat16Module = R"(
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T

@I.ir_module
class Module:
    @R.function
    def prefill(x: R.Tensor(("n", 576), dtype="bfloat16"), params: R.Tuple(R.Tensor((96, 576), dtype="bfloat16"), R.Tensor((43, 96), dtype="bfloat16"), R.Tensor((64, 43), dtype="bfloat16"), R.Tensor((43, 576), dtype="bfloat16"))):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            w4: R.Tensor((43, 576), dtype="bfloat16") = params[3]
            t4 = R.permute_dims(w4)
            v = R.matmul(x, t4, out_dtype="float32")
            w1: R.Tensor((96, 576), dtype="bfloat16") = params[0]
            w2: R.Tensor((43, 96), dtype="bfloat16") = params[1]
            w3: R.Tensor((64, 43), dtype="bfloat16") = params[2]
            t1 = R.permute_dims(w1)
            h = R.matmul(x, t1, out_dtype="float32")
            a = R.astype(R.nn.relu(h), "bfloat16")
            t2 = R.permute_dims(w2)
            y = R.astype(R.matmul(a, t2, out_dtype="float32"), "bfloat16")
            t3 = R.permute_dims(w3)
            zv = R.concat((R.matmul(y, t3, out_dtype="float32"), v), axis=1)
            R.output(zv)
        return zv
)";

// So deep that its sums are made in parts.
constexpr const char* kDeepModule = R"(
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T

@I.ir_module
class Module:
    @R.function
    def prefill(x: R.Tensor(("n", 6144), dtype="float32"), params: R.Tuple(R.Tensor((64, 6144), dtype="float32"))):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            w: R.Tensor((64, 6144), dtype="float32") = params[0]
            t = R.permute_dims(w)
            y = R.matmul(x, t)
            R.output(y)
        return y
)";

int calls_of(const ModuleRef& module, std::string_view op) {
  int calls = 0;
  for (const auto& [name, function] : module->functions)
    if (const tir::PrimFuncRef f = cast<tir::PrimFunc>(function); f && !name.starts_with("pack"))
      walk(passes::lower(f)->body, [&](const Call& c) { calls += c.op == op; });
  return calls;
}

TEST(Kernels, MeanWhatPhase3MeansInBfloat16) {
  for (const target::CpuLevel* level : target::host_levels()) {
    SCOPED_TRACE(level->name);
    const Compiled compiled =
        compile(relax::parse_module(kBfloat16Module), {.target = Target::of_levels({level}), .bounds = {{"n", 64}}});
    int kernels = 0, packed = 0;
    expect_kernels_mean_phase3(compiled, *level, {1, 2, 5, 8, 33}, kernels, packed);
    EXPECT_GE(packed, 3);
    EXPECT_EQ(calls_of(compiled.scheduled, "tir.dot2") > 0, level->dot_bf16);
    EXPECT_EQ(calls_of(compiled.scheduled, "tir.tile_product") > 0, level->tiles);
  }
}

// What a library for several kinds of processors keeps in pairs for one of them, the others read too.
TEST(Kernels, ReadPairsOfBfloat16WithoutAnInstructionForThem) {
  for (const char* name : {"avx512", "avx2"}) {
    const target::CpuLevel& level = target::cpu_level(name);
    if (!target::host_runs(level)) continue;
    SCOPED_TRACE(name);
    Compiled compiled =
        compile(relax::parse_module(kBfloat16Module),
                {.target = Target::of_levels({&target::cpu_level("avx512_bf16"), &level}), .bounds = {{"n", 64}}});
    ASSERT_EQ(compiled.levels.size(), 2u);
    compiled.scheduled = compiled.levels[1].scheduled;
    EXPECT_GT(calls_of(compiled.scheduled, "tir.dot2"), 0);
    EXPECT_GT(calls_of(compiled.levels[0].scheduled, "tir.dot2"), 0);
    // Tiles, and so traces, are those of the first level: only what they compute is compared.
    for (const auto& [function, func] : compiled.scheduled->functions) {
      const tir::PrimFuncRef f = cast<tir::PrimFunc>(func);
      if (!f || function.starts_with("pack")) continue;
      SCOPED_TRACE(function);
      Arrays said = arrays_for(*f, sizes_of(*f, 9)), done = arrays_for(*f, sizes_of(*f, 9));
      interpret(*f, said, sizes_of(*f, 9));
      Ref<codegen::Jit> jit = codegen::Jit::create(level);
      run_machine_code(*f, jit->add(*passes::lower(f)), done, sizes_of(*f, 9));
      EXPECT_LT(difference(said, done), 2e-6);
    }
  }
}

// A row has the same bits in whatever number of rows it comes: one, a few, or many.
TEST(Kernels, GiveARowTheSameBitsAtEveryHeight) {
  for (const target::CpuLevel* level : target::host_levels())
    for (const char* module : {kModule, kBfloat16Module, kDeepModule}) {
      SCOPED_TRACE(text(level->name, module));
      int compared = 0;
      expect_same_bits_at_every_height(
          compile(relax::parse_module(module), {.target = Target::of_levels({level}), .bounds = {{"n", 64}}}),
          *level,
          compared);
      EXPECT_GE(compared, module == kDeepModule ? 5 : 15);
    }
}

}  // namespace
}  // namespace sator::driver
