#include "struct_info_values.h"

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

}  // namespace

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
  if (what == "erase_to_well_defined") {
    Arguments a(ev, call, {"sinfo", "shape_var_map", "var_map"});
    VarMap sizes;
    std::unordered_map<relax::RVarRef, relax::RExpr> shapes;
    if (const tir::Value* map = a.find("shape_var_map"))
      if (const tir::DictValue* dict = map->as<tir::DictValue>())
        for (const auto& [key, value] : dict->items)
          if (const Expr *k = key.as<Expr>(), *v = value.as<Expr>(); k && k->as<Var>())
            sizes.emplace(cast<Var>(*k), v ? *v : *k);
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
