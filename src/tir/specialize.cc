#include "tir/specialize.h"

#include <algorithm>

#include "arith/analyzer.h"
#include "arith/fold.h"

namespace sator::tir {

namespace {

/// Notes that a size of the function is `value`.
void bind_size(const Expr& size, const Expr& value, const std::string& of, VarMap& known) {
  if (!size || !value) return;
  VarRef var = cast<Var>(size);
  Expr before = var ? (known.contains(var) ? known[var] : nullptr) : size;
  if (var && !before) {
    known[var] = cast_to(var->dtype, value);
    return;
  }
  if (!arith::Analyzer().prove_equal(before, cast_to(before->dtype, value)))
    fail({.what = text("a size of ", of, " is ", before, ", and is given as ", value),
          .needs = "sizes that agree with the function's and with each other",
          .hint = "correct the buffer"});
}

Expr folded(const ExprNode& n) {
  const arith::Kind kind = arith::kind_of(n);
  if (!arith::is_binary(kind)) return ref(n);
  arith::Operands o = arith::operands(n, kind);
  if (!o.a.as<IntImm>() && !o.b.as<IntImm>()) return ref(n);
  Expr out = arith::try_fold(kind, o.a, o.b);
  return out ? out : ref(n);
}

}  // namespace

PrimFuncRef specialize(const PrimFuncRef& func, const VarMap& values,
                       const std::unordered_map<VarRef, BufferRef>& buffers) {
  VarMap known;
  for (const auto& [param, value] : values) {
    if (std::ranges::find(func->params, param) == func->params.end() || func->buffer_of(param))
      fail({.what = text(param->name, " is no scalar parameter of the function"),
            .needs = "a parameter without a buffer",
            .hint = "name the parameter itself"});
    if (param->dtype.is_handle() && !value.as<Var>())
      fail({.what = text("the pointer ", param->name, " is given as ", value),
            .needs = "a pointer that is a variable, for a parameter that buffers lie at",
            .hint = "bind the expression to a variable in the program"});
    known[param] = param->dtype.is_handle() ? value : cast_to(param->dtype, value);
  }
  for (const auto& [param, given] : buffers) {
    BufferRef own = func->buffer_of(param);
    if (!own || own->rank() != given->rank() || own->dtype != given->dtype)
      fail({.what = text("parameter ", param->name, own ? " is a buffer of another rank or dtype" : " is no buffer"),
            .needs = own ? text(own->rank(), " dimensions of ", own->dtype) : std::string("a buffer parameter"),
            .hint = "give a buffer of the parameter's form"});
    for (size_t d = 0; d < own->shape.size(); ++d) bind_size(own->shape[d], given->shape[d], own->name, known);
    for (size_t d = 0; d < own->strides.size() && d < given->strides.size(); ++d)
      bind_size(own->strides[d], given->strides[d], own->name, known);
    bind_size(own->elem_offset, given->elem_offset, own->name, known);
  }
  if (known.empty()) return func;
  std::vector<VarRef> params;
  for (const VarRef& p : func->params) {
    if (!known.contains(p)) params.push_back(p);
  }
  PrimFuncRef out = with(func, &PrimFunc::params, std::move(params));
  out = replaced(out, substitutions(known));
  return transform(out, [](const ExprNode& n) -> Expr { return folded(n); });
}

}  // namespace sator::tir
