#include "struct_info_values.h"

#include "cases.h"

#include "relax/struct_info.h"

namespace sator::conformance {

using relax::BaseCheck;
using relax::StructInfo;
using script::Expression;
using script::ExpressionKind;
using tir::Arguments;

namespace {

const char* result_name(BaseCheck check) {
  switch (check) {
    case BaseCheck::disjoint: return "FAIL_L0";
    case BaseCheck::not_known: return "FAIL_L1";
    case BaseCheck::values_unknown: return "FAIL_L2";
    case BaseCheck::pass: return "PASS";
  }
  return "";
}

tir::Value list_of(const std::vector<VarRef>& vars) {
  tir::Values out;
  for (const VarRef& v : vars) out.items.push_back(Expr(v));
  return out;
}

/// The type of a value: its struct info without extents, as relax.DynTensorType and its kin say it.
StructInfo static_type(const StructInfo& info) {
  if (const auto* t = info.as<relax::TensorInfo>()) return relax::tensor_info(t->dtype, t->ndim);
  if (const auto* s = info.as<relax::ShapeInfo>()) return relax::shape_info(s->ndim);
  if (const auto* p = info.as<relax::PrimInfo>()) return relax::prim_info(p->dtype);
  if (const auto* t = info.as<relax::TupleInfo>()) {
    std::vector<StructInfo> items;
    for (const StructInfo& item : t->items) items.push_back(static_type(item));
    return relax::tuple_info(std::move(items));
  }
  const auto* f = info.as<relax::FuncInfo>();
  if (!f) return info;
  if (!f->params) return relax::opaque_func_info(static_type(f->ret), true);
  // A type says nothing of effects.
  std::vector<StructInfo> params;
  for (const StructInfo& p : *f->params) params.push_back(static_type(p));
  return relax::func_info(std::move(params), static_type(f->ret), true);
}

}  // namespace

std::optional<tir::Value> static_type_value(relax::GraphEvaluator& ev, const std::string& name,
                                            const Expression& call) {
  if (name == "relax.ObjectType") return NodeRef(relax::object_info());
  if (name == "tvm.ir.PrimType") return NodeRef(relax::prim_info(Arguments(ev, call, {"dtype"}).dtype("dtype")));
  if (name == "relax.ShapeType")
    return NodeRef(relax::shape_info(static_cast<int>(Arguments(ev, call, {"ndim"}).integer("ndim", -1))));
  if (name == "relax.DynTensorType") {
    Arguments a(ev, call, {"ndim", "dtype"});
    return NodeRef(relax::tensor_info(a.dtype("dtype", f32), static_cast<int>(a.integer("ndim", -1))));
  }
  if (name == "relax.TupleType")
    return NodeRef(relax::tuple_info(ev.to_sinfos(Arguments(ev, call, {"fields"}).need("fields"), call.place)));
  if (name == "relax.FuncType") {
    Arguments a(ev, call, {"arg_types", "ret_type"});
    return NodeRef(relax::func_info(
        ev.to_sinfos(a.need("arg_types"), call.place), ev.to_sinfo(a.need("ret_type"), call.place), true));
  }
  return {};
}

std::optional<tir::Value> struct_info_analysis(relax::GraphEvaluator& ev, const std::string& name,
                                               const Expression& call) {
  const std::string prefix = "relax.analysis.";
  if (!name.starts_with(prefix)) return {};
  const std::string what = name.substr(prefix.size());
  arith::Analyzer arith;
  if (what == "struct_info_lca" || what == "struct_info_base_check") {
    Arguments a(ev, call, {"lhs", "rhs"});
    StructInfo x = ev.to_sinfo(a.need("lhs"), call.place), y = ev.to_sinfo(a.need("rhs"), call.place);
    if (what == "struct_info_lca") return NodeRef(relax::common_base(x, y, arith));
    return std::string(result_name(relax::base_check(x, y, arith)));
  }
  if (what == "tir_vars_in_struct_info" || what == "definable_tir_vars_in_struct_info") {
    Arguments a(ev, call, {"sinfo"});
    StructInfo info = ev.to_sinfo(a.need("sinfo"), call.place);
    return list_of(what.starts_with("definable") ? relax::definable_vars(info) : relax::vars_of(info));
  }
  if (what == "get_static_type")
    return NodeRef(static_type(ev.to_sinfo(Arguments(ev, call, {"sinfo"}).need("sinfo"), call.place)));
  if (what == "derive_call_ret_struct_info") {
    Arguments a(ev, call, {"func_sinfo", "call", "ctx"});
    const StructInfo function = ev.to_sinfo(a.need("func_sinfo"), call.place);
    const NodeRef* made = a.need("call").as<NodeRef>();
    const auto* c = made ? made->as<relax::RCall>() : nullptr;
    if (!c || !function.as<relax::FuncInfo>()) throw Unsupported{"a call of this form"};
    return NodeRef(relax::result_of_call(*function.as<relax::FuncInfo>(), c->args, arith));
  }
  if (what == "erase_to_well_defined") {
    Arguments a(ev, call, {"sinfo", "shape_var_map", "var_map"});
    VarMap sizes;
    std::unordered_map<relax::RVarRef, relax::RExpr> shapes;
    if (const tir::Value* map = a.find("shape_var_map"))
      if (const tir::DictValue* dict = map->as<tir::DictValue>())
        for (const auto& [key, value] : dict->items)
          if (const Expr* k = key.as<Expr>(); k && k->as<Var>()) {
            const auto* number = value.as<tir::Integer>();
            const Expr* v = value.as<Expr>();
            sizes.emplace(cast<Var>(*k), number ? int_imm(number->value, i64) : v ? *v : *k);
          }
    if (const tir::Value* map = a.find("var_map"))
      if (const tir::DictValue* dict = map->as<tir::DictValue>())
        for (const auto& [key, value] : dict->items)
          if (const NodeRef* k = key.as<NodeRef>(); k && k->as<relax::RVar>())
            shapes.emplace(cast<relax::RVar>(*k), ev.to_graph(value, call.place));
    return NodeRef(relax::erase_to_well_defined(ev.to_sinfo(a.need("sinfo"), call.place), sizes, shapes, arith));
  }
  return {};
}

std::optional<tir::Value> struct_info_method(relax::GraphEvaluator& ev, const Expression& call) {
  const Expression& callee = call.items[0];
  if (!callee.is(ExpressionKind::attribute) || callee.text != "is_base_of" || call.items.size() != 2) return {};
  tir::Value base = ev.eval(callee.items[0]), derived = ev.eval(call.items[1]);
  arith::Analyzer arith;
  return relax::is_base_of(ev.to_sinfo(base, call.place), ev.to_sinfo(derived, call.place), arith);
}

}  // namespace sator::conformance
