// A trace is text that replays.
#include "schedule/trace.h"

#include <gtest/gtest.h>

#include "schedule/primitives.h"
#include "schedule/schedule.h"
#include "schedule/script.h"
#include "tir/parse.h"
#include "tir/print.h"

namespace sator::schedule {
namespace {

TEST(Trace, ItsTextIsAScriptThatMakesTheSameProgram) {
  tir::PrimFuncRef f = tir::parse_function(R"(@T.prim_func(private=True)
def f(A: T.Buffer((64, 32), "float32"), B: T.Buffer((32, 48), "float32"), C: T.Buffer((64, 48), "float32")):
    for i, j, k in T.grid(64, 48, 32):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)");
  Schedule s(f, "f");
  Script(s).run(
      "c = cache_write(\"C\", 0, \"local\")\ni, j, k = get_loops(\"C\")\n"
      "j0, j1 = split(j, [None, 16])\ni0, i1 = split(i, [None, 4])\nreorder(j0, i0, k, i1, j1)\n"
      "reverse_compute_at(c, i0)\nvectorize(j1)\nunroll(i1)\nparallel(j0)\ndecompose_reduction(\"C\", k)\n"
      "transform_layout(\"C_update\", (\"read\", 2), lambda k, j: (j // 16, k, j % 16))\n");
  Schedule again(f, "f");
  Script(again).run(s.trace().as_python());
  EXPECT_TRUE(equal(s.func(), again.func())) << s.trace().as_python() << tir::to_script(*again.func());
  EXPECT_FALSE(equal(s.func(), f));
}

// Of several functions a trace says which ones it worked on.
TEST(Trace, ItGoesFromFunctionToFunction) {
  const ModuleRef module = tir::parse_module(R"(@I.ir_module
class Module:
    @T.prim_func
    def first(A: T.Buffer((64,), "float32")):
        for i in range(64):
            with T.block("fill"):
                vi = T.axis.spatial(64, i)
                A[vi] = T.float32(1)
    @T.prim_func
    def second(A: T.Buffer((32,), "float32")):
        for i in range(32):
            with T.block("fill"):
                vi = T.axis.spatial(32, i)
                A[vi] = T.float32(2)
)");
  Schedule s(module);
  for (const char* name : {"second", "first"}) {
    s.work_on(name);
    vectorize(s, get_loops(s, get_block(s, "fill", ""))[0]);
  }
  Schedule again(module);
  Script(again).run(s.trace().as_python());
  EXPECT_TRUE(equal(s.module(), again.module())) << s.trace().as_python();
}

}  // namespace
}  // namespace sator::schedule
