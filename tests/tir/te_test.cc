// Tensor programs built from tensor expressions have the form that TVM's te.create_prim_func gives.
#include <gtest/gtest.h>

#include "ir/builtins.h"
#include "tir/parse.h"
#include "tir/print.h"
#include "tir/te.h"

namespace sator::te {
namespace {

void expect_form(const tir::PrimFuncRef& got, const char* expected) {
  tir::PrimFuncRef want = tir::parse_function(expected);
  Attrs attrs = got->attrs;
  attrs["global_symbol"] = string_imm("main");
  tir::PrimFuncRef named = with(got, &tir::PrimFunc::attrs, attrs);
  EXPECT_TRUE(equal(named, want, true)) << tir::to_script(*named) << "\nexpected\n" << tir::to_script(*want);
}

TEST(CreatePrimFunc, ElementwiseKeepsInt64Shapes) {
  VarRef n = make_var("n", i64);
  Tensor x = placeholder({n, int_imm(4, i64)}, f32, "x");
  Tensor y = compute({.name = "compute", .axis = "i"}, {n, int_imm(4, i64)}, [&](const Indices& i) {
    return call_builtin("tir.exp", {x(i)});
  });
  expect_form(create_prim_func({x, y}), R"(
@T.prim_func
def main(var_x: T.handle, var_compute: T.handle):
    T.func_attr({"tir.noalias": T.bool(True)})
    n = T.int64()
    x = T.match_buffer(var_x, (n, T.int64(4)))
    compute = T.match_buffer(var_compute, (n, T.int64(4)))
    for i0, i1 in T.grid(n, T.int64(4)):
        with T.block("compute"):
            v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
            T.reads(x[v_i0, v_i1])
            T.writes(compute[v_i0, v_i1])
            compute[v_i0, v_i1] = T.exp(x[v_i0, v_i1])
)");
}

TEST(CreatePrimFunc, ReductionsStartFromTheirIdentity) {
  Tensor a = placeholder({int_imm(8, i64), int_imm(16, i64)}, f32, "A"),
         b = placeholder({int_imm(16, i64), int_imm(4, i64)}, f32, "B");
  tir::IterVarRef k = reduce_axis(int_imm(16, i64), "k");
  Tensor c = reduce({.name = "matmul", .axis = "i"}, {int_imm(8, i64), int_imm(4, i64)}, [&](const Indices& i) {
    return reduce_sum(a({i[0], k->var}) * b({k->var, i[1]}), {k});
  });
  expect_form(create_prim_func({a, b, c}), R"(
@T.prim_func
def main(A: T.Buffer((T.int64(8), T.int64(16)), "float32"), B: T.Buffer((T.int64(16), T.int64(4)), "float32"), matmul: T.Buffer((T.int64(8), T.int64(4)), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    for i0, i1, k in T.grid(T.int64(8), T.int64(4), T.int64(16)):
        with T.block("matmul"):
            v_i0, v_i1, v_k = T.axis.remap("SSR", [i0, i1, k])
            T.reads(A[v_i0, v_k], B[v_k, v_i1])
            T.writes(matmul[v_i0, v_i1])
            with T.init():
                matmul[v_i0, v_i1] = T.float32(0)
            matmul[v_i0, v_i1] = matmul[v_i0, v_i1] + A[v_i0, v_k] * B[v_k, v_i1]
)");
}

TEST(CreatePrimFunc, StagesBetweenAreAllocatedAndNamedOnce) {
  std::vector<Expr> shape{int_imm(8, i64)};
  Tensor x = placeholder(shape, f32, "x");
  auto stage = [&](const Tensor& t) {
    return compute({.name = "T_add"}, shape, [&](const Indices& i) { return t(i) + float_imm(1, f32); });
  };
  Tensor a = stage(x), b = stage(a);
  expect_form(create_prim_func({x, b}), R"(
@T.prim_func
def main(x: T.Buffer((T.int64(8),), "float32"), T_add: T.Buffer((T.int64(8),), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    T_add_1 = T.alloc_buffer((T.int64(8),))
    for ax0 in range(T.int64(8)):
        with T.block("T_add"):
            v_ax0 = T.axis.spatial(T.int64(8), ax0)
            T.reads(x[v_ax0])
            T.writes(T_add_1[v_ax0])
            T_add_1[v_ax0] = x[v_ax0] + T.float32(1)
    for ax0 in range(T.int64(8)):
        with T.block("T_add_1"):
            v_ax0 = T.axis.spatial(T.int64(8), ax0)
            T.reads(T_add_1[v_ax0])
            T.writes(T_add[v_ax0])
            T_add[v_ax0] = T_add_1[v_ax0] + T.float32(1)
)");
}

TEST(CreatePrimFunc, ScalarsBecomeParameters) {
  VarRef n = make_var("n", i64), s = make_var("s", f32);
  Tensor y = compute({.name = "T_full"}, {n}, [&](const Indices&) { return Expr(s); });
  tir::PrimFuncRef f = create_prim_func({y, s});
  ASSERT_EQ(f->params.size(), 2u);
  EXPECT_TRUE(f->params[0]->dtype.is_handle());
  EXPECT_EQ(f->params[1]->dtype, f32);
}

}  // namespace
}  // namespace sator::te
