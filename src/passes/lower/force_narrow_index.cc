// Index arithmetic of 64 bits becomes 32 bits wide, by the caller's promise that no index needs more: for GPUs, whose
// 64-bit integer arithmetic is slow. Sizes, loops, scalar parameters and whatever is computed of them.
#include "passes/lower/lower.h"

namespace sator::passes {

using namespace tir;

namespace {

bool is_wide(DType d) { return d.is_int() && d.bits == 64; }
DType narrow(DType d) { return is_wide(d) ? i32.with_lanes(d.all_lanes()) : d; }

/// What holds 64-bit integers that are no indices.
void require_index_arithmetic_alone(const PrimFunc& func) {
  auto check = [](const Buffer& b, const NodeRef& where) {
    if (!is_wide(b.dtype)) return;
    fail({.what = text("the buffer ", b.name, " holds 64-bit integers"),
          .needs = "64-bit integers in index arithmetic alone",
          .hint = "cast its values in the program, or leave the indices wide",
          .at = {{where, "64-bit integers"}}});
  };
  walk(ref(func), [&](const Buffer& b) { check(b, ref(b)); });
  walk(ref(func), [&](const IntImm& n) {
    if (is_wide(n.dtype) && (n.value > INT32_MAX || n.value < INT32_MIN))
      fail({.what = text("the number ", n.value, " does not fit 32 bits"),
            .needs = "indices below 2^31",
            .hint = "leave the indices wide"});
  });
  walk(ref(func), [&](const Call& n) {
    const bool counts_bits = n.op == "tir.clz" || n.op == "tir.popcount" || n.op == "tir.reinterpret";
    if (counts_bits && !n.args.empty() && is_wide(n.args[0]->dtype))
      fail({.what = text(n.op, " of a 64-bit integer"),
            .needs = "operations that do not depend on the width",
            .hint = "leave the indices wide"});
  });
}

}  // namespace

PrimFuncRef force_narrow_index(const PrimFuncRef& func, const LowerOptions&) {
  require_index_arithmetic_alone(*func);
  return transform(
      func,
      [](const Var& n) -> Expr {
        return is_wide(n.dtype) ? with(n, &Var::dtype, narrow(n.dtype)) : Ref<const Var>(&n);
      },
      [](const IntImm& n) -> Expr { return is_wide(n.dtype) ? int_imm(n.value, narrow(n.dtype)) : Expr(&n); },
      [](const Cast& n) -> Expr { return cast_to(narrow(n.dtype), n.value); },
      [](const Call& n) -> Expr {
        return is_wide(n.dtype) ? make<Call>(narrow(n.dtype), n.op, std::vector<Expr>(n.args)) : Expr(&n);
      });
}

}  // namespace sator::passes
