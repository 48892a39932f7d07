#include "passes/check_sizes.h"

#include <algorithm>

#include "relax/ops/table.h"
#include "relax/struct_info.h"

namespace sator::passes {

using namespace relax;

namespace {

bool occurs_in(const VarRef& v, const Expr& e) { return std::ranges::count(vars_in(e), v) > 0; }

/// Of "nn.layer_norm": "layer_norm".
std::string short_name(const std::string& op) { return op.substr(op.rfind('.') + 1); }

}  // namespace

bool SizeChecks::is_known(const SizePair& pair) const {
  if (builder_.arith().prove_equal(substitute(pair.a, facts.sizes), substitute(pair.b, facts.sizes))) return true;
  return std::ranges::any_of(facts.pairs, [&](const SizePair& p) {
    return (equal(p.a, pair.a) && equal(p.b, pair.b)) || (equal(p.a, pair.b) && equal(p.b, pair.a));
  });
}

void SizeChecks::add(const SizePair& pair) {
  facts.pairs.push_back(pair);
  Expr a = substitute(pair.a, facts.sizes), b = substitute(pair.b, facts.sizes);
  if (!b.as<Var>() || occurs_in(cast<Var>(b), a)) std::swap(a, b);
  if (!b.as<Var>() || occurs_in(cast<Var>(b), a)) return;
  const VarMap one{{cast<Var>(b), a}};
  for (auto& [symbol, size] : facts.sizes) size = substitute(size, one);
  facts.sizes.emplace(cast<Var>(b), a);
}

void SizeChecks::note(const MatchCast& cast) {
  auto shape = [](const StructInfo& info) -> std::optional<std::vector<Expr>> {
    if (const TensorInfo* t = info.as<TensorInfo>()) return relax::shape_of(*t);
    const ShapeInfo* s = info.as<ShapeInfo>();
    return s ? s->values : std::nullopt;
  };
  if (!cast.value->sinfo) return;
  const auto have = shape(cast.value->sinfo), want = shape(cast.sinfo);
  for (size_t d = 0; have && want && d < have->size() && d < want->size(); ++d)
    if (const SizePair pair{(*have)[d], (*want)[d]}; !is_known(pair)) add(pair);
}

/// The argument with the sizes that it turned out to have.
RExpr SizeChecks::by_known_sizes(const RExpr& arg, const std::string& op) {
  if (const relax::Tuple* t = arg.as<relax::Tuple>()) {
    std::vector<RExpr> items;
    for (const RExpr& item : t->items) items.push_back(by_known_sizes(item, op));
    return items == t->items ? arg : relax::tuple(std::move(items));
  }
  if (const ShapeExpr* s = arg.as<ShapeExpr>()) {
    std::vector<Expr> values;
    for (const Expr& e : s->values) values.push_back(substitute(e, facts.sizes));
    return values == s->values ? arg : shape_expr(std::move(values));
  }
  const RVar* var = arg.as<RVar>();
  if (!var || (!arg->sinfo.as<TensorInfo>() && !arg->sinfo.as<TupleInfo>())) return arg;
  const StructInfo info = substitute(arg->sinfo, facts.sizes);
  if (info == arg->sinfo) return arg;
  auto at = facts.casts.find(arg);
  // What was learned since the last cast asks for another one.
  if (at != facts.casts.end() && equal(cast<RVar>(at->second)->sinfo, info)) return cast<RVar>(at->second);
  RVarRef made = builder_.emit_match_cast(arg, info, text(op, "_", var->name));
  facts.casts[arg] = made;
  return made;
}

RExpr SizeChecks::checked(const RExpr& value) {
  RCallRef call = cast<RCall>(value);
  if (!call) return value;
  StructInfo result;
  const std::vector<SizePair> assumed = assumed_sizes(*call, builder_.arith(), &result);
  if (assumed.empty()) return value;
  const std::string name = short_name(op_name(value));
  for (const SizePair& pair : assumed) {
    if (is_known(pair)) continue;
    builder_.emit_match_cast(shape_expr({pair.a}), shape_info({pair.b}), name + "_sizes");
    add(pair);
  }
  if (has_shapes(call->sinfo) || !has_shapes(result)) return value;
  std::vector<RExpr> args;
  for (const RExpr& arg : call->args) args.push_back(by_known_sizes(arg, name));
  return builder_.normalize(relax::call(call->op, std::move(args), call->attrs, call->sinfo_args));
}

}  // namespace sator::passes
