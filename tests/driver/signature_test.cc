// What functions take from outside, and how inputs are put to their parameters.
#include "driver/signature.h"

#include <gtest/gtest.h>

#include "relax/parse.h"
#include "temp_folder.h"

namespace sator::driver {
namespace {

using runtime::Dims;
using runtime::Tensor;
using runtime::Value;

ModuleRef program() {
  return relax::parse_module(R"(
@I.ir_module
class Module:
    @T.prim_func
    def matmul(a: T.handle, b: T.handle, c: T.handle):
        n, m, k = T.int64(), T.int64(), T.int64()
        A = T.match_buffer(a, (n, k), "float32")
        B = T.match_buffer(b, (k, m), "float32")
        C = T.match_buffer(c, (n, m), "float32")
        for i, j, r in T.grid(n, m, k):
            with T.block("C"):
                vi, vj, vr = T.axis.remap("SSR", [i, j, r])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vr] * B[vr, vj]

    @T.prim_func
    def window(x: T.handle, s: T.float32, y: T.handle):
        n = T.int64()
        X = T.match_buffer(x, (n * 2 + 1,), "float32")
        Y = T.match_buffer(y, (n,), "float32")
        for i in range(n):
            Y[i] = X[i * 2] + X[i * 2 + 1] + s

    @T.prim_func
    def add_one(A: T.Buffer((4,), "int4")):
        for i in range(4):
            A[i] = A[i] + T.int4(1)

    @T.prim_func(private=True)
    def hidden(A: T.Buffer((4,), "float32")):
        A[0] = T.float32(0)

    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), pair: R.Tuple(R.Tensor(("n",), "bool"), R.Shape(["a", 2])),
             k: R.Prim("int64")) -> R.Tensor(("n", 4), "float32"):
        return x

    @R.function
    def cached(cache: R.Object) -> R.Object:
        return cache
)");
}

Value floats(const Dims& shape, DType dtype = f32) { return Value(Tensor::empty(shape, dtype)); }

std::string refusal(const std::string& function, const std::vector<GivenInput>& given,
                    const std::map<std::string, int64_t>& sizes = {}) {
  return error_of([&] { prepare(signature_of(*program(), function), given, sizes); });
}

TEST(Signature, SaysWhatAFunctionTakes) {
  const ModuleRef module = program();
  EXPECT_EQ(public_functions(*module), (std::vector<std::string>{"add_one", "cached", "main", "matmul", "window"}));
  EXPECT_EQ(describe(signature_of(*module, "matmul")), "matmul(A: float32[n, k], B: float32[k, m], C: float32[n, m])");
  EXPECT_EQ(describe(signature_of(*module, "window")), "window(X: float32[n * 2 + 1], s: float32, Y: float32[n])");
  EXPECT_EQ(describe(signature_of(*module, "main")),
            "main(x: float32[n, 4], pair[0]: bool[n], pair[1]: shape[a, 2], k: int64)");
}

// A sum that its block sets to zero first is written, not read; an update in place is both.
TEST(Signature, KnowsInputsFromResults) {
  const Signature matmul = signature_of(*program(), "matmul");
  EXPECT_TRUE(matmul.params[0].is_read && !matmul.params[0].is_written);
  EXPECT_TRUE(!matmul.params[2].is_read && matmul.params[2].is_written);
  const Signature in_place = signature_of(*program(), "add_one");
  EXPECT_TRUE(in_place.params[0].is_read && in_place.params[0].is_written);
}

TEST(Signature, BindsSizesAndMakesResults) {
  const PreparedCall call =
      prepare(signature_of(*program(), "matmul"), {{"", floats({3, 5}), "x.npy"}, {"B", floats({5, 7}), "w.npy"}});
  EXPECT_EQ(call.sizes, (std::map<std::string, int64_t>{{"n", 3}, {"m", 7}, {"k", 5}}));
  EXPECT_EQ(text(*call.leaves[2].as<Tensor>()), "float32[3, 7]");
  EXPECT_EQ(*call.leaves[2].as<Tensor>()->data_as<float>(), 0);
  // 2 n + 1 = 9
  EXPECT_EQ(prepare(signature_of(*program(), "window"), {{"", floats({9}), ""}, {"", Value(0.5), ""}}).sizes.at("n"),
            4);
  const PreparedCall in_place = prepare(signature_of(*program(), "add_one"), {});
  EXPECT_EQ(in_place.zeroed, std::vector<std::string>{"A"});
}

TEST(Signature, JoinsTuples) {
  const ModuleRef module = program();
  const Signature main = signature_of(*module, "main");
  const PreparedCall call = prepare(main,
                                    {{"", floats({2, 4}), ""},
                                     {"", floats({2}, boolean), ""},
                                     {"", Value(runtime::Shape::of({3, 2})), ""},
                                     {"", Value(int64_t{1}), ""}});
  const std::vector<Value> args = machine_arguments(*module, main, call.leaves);
  ASSERT_EQ(args.size(), 3u);
  EXPECT_EQ(args[1].as<runtime::Tuple>()->fields.size(), 2u);
}

TEST(Signature, RefusesInWords) {
  struct Row {
    std::string refusal, says;
  };
  for (const Row& row : {
           Row{refusal("nothing", {}), "one of add_one, cached, main, matmul, window"},
           Row{refusal("hidden", {}), "no function hidden for callers"},
           Row{refusal("cached", {}), "parameter cache of cached is an object"},
           Row{refusal("matmul", {{"", floats({3, 5}), ""}}), "the input B: float32[k, m] is missing"},
           Row{refusal("matmul", {{"D", floats({3, 5}), ""}}), "there is no parameter D"},
           Row{refusal("matmul", {{"A", floats({3, 5}), ""}, {"A", floats({3, 5}), ""}}), "A is given twice"},
           Row{refusal("matmul", {{"", floats({3, 5}), ""}, {"", floats({5, 7}), ""}, {"", floats({3, 7}), ""}}),
               "C is a result"},
           Row{refusal("matmul", {{"", floats({3, 5}), "x.npy"}, {"", floats({6, 7}), "w.npy"}}),
               "input B (w.npy) has extent 0 of 6, but k = 5 by A"},
           Row{refusal("matmul", {{"", floats({3}), "x.npy"}, {"", floats({5, 7}), ""}}), "a tensor of rank 2"},
           Row{refusal("matmul", {{"", floats({3, 5}, f64), "x.npy"}, {"", floats({5, 7}), ""}}),
               "input A (x.npy) is float64[3, 5]"},
           Row{refusal("window", {{"", floats({8}), ""}, {"", Value(0.5), ""}}), "the extent n of the result Y"},
           Row{refusal("window", {{"", floats({8}), ""}, {"", Value(0.5), ""}}, {{"n", 3}}), "X: float32[n * 2 + 1]"},
           Row{refusal("window", {{"", floats({9}), ""}, {"", floats({9}), ""}}), "s: float32"},
           Row{refusal("window", {{"", floats({9}), ""}, {"", Value(0.5), ""}}, {{"k", 3}}), "no size is called k"},
           Row{refusal("add_one", {{"", Value(Tensor::of(std::vector<int8_t>{0, 7, -8, 8}, {4}, i8)), ""}}),
               "element 3 of input A is 8"},
       })
    EXPECT_NE(row.refusal.find(row.says), std::string::npos) << row.says << "\n" << row.refusal;
}

}  // namespace
}  // namespace sator::driver
