// Programs in the spellings of TVM before v0.17: they parse, and what is printed of them parses back.
#include <gtest/gtest.h>

#include "relax/parse.h"
#include "relax/print.h"
#include "tir/print.h"

namespace sator::relax {
namespace {

void expect_round_trip(const std::string& program) {
  ModuleRef module;
  try {
    module = parse_module(program);
  } catch (const Error& e) {
    FAIL() << program << "\n" << e.what();
  }
  std::string printed = to_script(*module);
  ModuleRef again = parse_module(printed);
  EXPECT_TRUE(equal(module, again)) << printed;
  EXPECT_EQ(to_script(*again), printed);
}

const std::string kSum = R"(@tvm.script.ir_module
class Sum:
    @T.prim_func
    def main(X: T.Buffer[96, "float32"],
             Y: T.Buffer[96, "float32"],
             Z: T.Buffer[96, "float32"]):
        # what the function is called outside
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i in range(96):
            with T.block("Z"):
                # one element
                vi = T.axis.spatial(96, i)
                Z[vi] = X[vi] + Y[vi]
)";

TEST(OlderSpellings, RoundTrip) {
  expect_round_trip(kSum);
  expect_round_trip(R"(@tvm.script.ir_module
class Product:
    @T.prim_func
    def main(
        A: T.Buffer[(64, 32), "float32"],
        B: T.Buffer[(48, 32), "float32"],
        C: T.Buffer[(64, 48), "float32"],
    ) -> None:
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i, j, k in T.grid(64, 48, 32):
            with T.block("product"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] += A[vi, vk] * B[vj, vk]
)");
  // A graph without a module, without the prefix R. of its types, with an op of the module relax.
  expect_round_trip(R"(@R.function
def main(a: Tensor((2, 5), "float32"), b: Tensor((2, 5), "float32")) -> Tensor(None, "float32", ndim = 2):
    # block 0
    with R.dataflow():
        lv0: Tensor((2, 5), "float32") = relax.ewise_fma(a, b, b)
        R.output(lv0)
    return lv0
)");
}

// The form of v0.17, as its printer writes it.
TEST(OlderSpellings, PrintedInTheNewForm) {
  const std::string printed = to_script(*parse_module(kSum));
  EXPECT_NE(printed.find(R"(    @T.prim_func
    def main(X: T.Buffer((96,), "float32"), Y: T.Buffer((96,), "float32"), Z: T.Buffer((96,), "float32")):
        T.func_attr({"tir.noalias": T.bool(True)})
        # with T.block("root"):
        for i in range(96):
            with T.block("Z"):
                vi = T.axis.spatial(96, i)
                T.reads(X[vi], Y[vi])
                T.writes(Z[vi])
                Z[vi] = X[vi] + Y[vi])"),
            printed.npos)
      << printed;
}

TEST(OlderSpellings, NamesOfTheModuleTir) {
  expect_round_trip(R"(@tir.prim_func
def main(X: tir.Buffer((96,), "float32"), Y: tir.Buffer((96,), "float32"), Z: tir.Buffer((96,), "float32")):
    for i_0 in tir.parallel(6):
        for i_2, i_1 in tir.grid(4, 4):
            with tir.block("Z"):
                vi = tir.axis.spatial(96, i_0 * 16 + i_1 * 4 + i_2)
                tir.reads(X[vi], Y[vi])
                tir.writes(Z[vi])
                Z[vi] = X[vi] + Y[vi]
)");
}

}  // namespace
}  // namespace sator::relax
