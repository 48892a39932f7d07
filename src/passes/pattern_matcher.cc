#include "passes/pattern_matcher.h"

#include <algorithm>

#include "passes/dead_code_elimination.h"
#include "relax/outline.h"
#include "relax/rewrite.h"
#include "relax/struct_info.h"

namespace sator::passes {

using namespace relax;
using Kind = DFPatternNode::Kind;
using Args = DFPatternNode::Args;

namespace {

/// Whether a call of so many parts has one for each pattern, and no more than there may be.
bool fits(const DFPatternNode& p, size_t num_parts) {
  if (p.of == Args::any) return true;
  return p.of == Args::first ? num_parts >= p.args.size() : num_parts == p.args.size();
}

/// Whether two attributes are equal; numbers are by their values, whatever dtypes hold them.
bool is_same_attribute(const NodeRef& a, const NodeRef& b) {
  const IntImm *i = a.as<IntImm>(), *j = b.as<IntImm>();
  if (i && j) return i->value == j->value;
  const FloatImm *x = a.as<FloatImm>(), *y = b.as<FloatImm>();
  if (x && y) return x->value == y->value;
  const Array *list = a.as<Array>(), *other = b.as<Array>();
  if (list && other) return std::ranges::equal(list->items, other->items, is_same_attribute);
  return equal(a, b);
}

}  // namespace

bool PatternMatcher::matches(const DFPattern& pattern, const RExpr& e, Then then) {
  if (pattern->ndim >= 0) {
    const TensorInfo* info = e->sinfo ? e->sinfo.as<TensorInfo>() : nullptr;
    if (!info || info->ndim != pattern->ndim) return false;
  }
  const auto known = matched.find(pattern);
  const RExpr before = known == matched.end() ? RExpr() : known->second;
  matched[pattern] = e;
  if (parts_match(pattern, e, then)) return true;
  if (before)
    matched[pattern] = before;
  else
    matched.erase(pattern);
  return false;
}

bool PatternMatcher::parts_match(const DFPattern& pattern, const RExpr& e, Then then) {
  const DFPatternNode& p = *pattern;
  const RVarRef var = cast<RVar>(e);
  const RExpr bound = var ? value_of_(var) : RExpr();
  const RExpr value = bound ? bound : e;
  switch (p.kind) {
    case Kind::wildcard: return then();
    case Kind::either: return std::ranges::any_of(p.args, [&](const DFPattern& one) { return matches(one, e, then); });
    case Kind::both: return matches(p.args[0], e, [&] { return matches(p.args[1], e, then); });
    case Kind::except: return !matches(p.args[0], e, [] { return true; }) && then();
    case Kind::one_value: {
      const auto [at, fresh] = values_.try_emplace(pattern.get(), e);
      if (!fresh) return at->second == e && then();
      if (matches(p.args.front(), e, then)) return true;
      values_.erase(pattern.get());
      return false;
    }
    case Kind::var:
    case Kind::dataflow_var:
    case Kind::global_var:
    case Kind::constant:
    case Kind::extern_func:
    case Kind::shape: return leaf_matches(p, e, value) && then();
    case Kind::expression: return (equal(p.expression, value) || equal(p.expression, e)) && then();
    case Kind::has_shape:
    case Kind::has_dtype:
    case Kind::has_struct_info:
    case Kind::has_attrs: return is_known(p, e, value) && matches(p.args[0], e, then);
    case Kind::op:
    case Kind::call_tir:
    case Kind::item:
    case Kind::tuple:
    case Kind::call:
    case Kind::function: break;
  }
  const auto parts = parts_of(p, value);
  if (!parts) return false;
  const bool takes = bound != nullptr;
  if (takes && !members.insert(var).second && once_each_) return false;
  bool found = false;
  if (p.kind == Kind::call && p.of == Args::any)
    found = matches(p.args.front(), parts->front(), then);
  else if (p.kind == Kind::item || p.of == Args::in_order || p.of == Args::first)
    found = match_args(p.args, *parts, 0, then);
  else if (p.of == Args::either_way)
    found = match_args(p.args, *parts, 0, then) || match_args(p.args, {(*parts)[1], (*parts)[0]}, 0, then);
  else if (p.of == Args::any_order)
    found = match_in_any_order(p.args, *parts, 0, then);
  else
    found = std::ranges::any_of(*parts, [&](const RExpr& arg) { return matches(p.args.front(), arg, then); });
  if (!found && takes) members.erase(var);
  return found;
}

bool PatternMatcher::leaf_matches(const DFPatternNode& p, const RExpr& e, const RExpr& value) {
  auto is_named = [&](const std::string& name) { return p.op.empty() || p.op == name; };
  const RVar* var = e.as<RVar>();
  if (p.kind == Kind::var) return var && is_named(var->name);
  if (p.kind == Kind::dataflow_var) return var && var->is_dataflow && is_named(var->name);
  if (p.kind == Kind::constant) return value.as<Constant>() != nullptr;
  if (const GlobalVar* g = e.as<GlobalVar>(); p.kind == Kind::global_var) return g && is_named(g->name);
  if (const ExternFunc* f = value.as<ExternFunc>(); p.kind == Kind::extern_func) return f && is_named(f->name);
  const ShapeExpr* shape = value.as<ShapeExpr>();
  return shape && same_extents(shape->values, p.extents);
}

bool PatternMatcher::is_known(const DFPatternNode& p, const RExpr& e, const RExpr& value) {
  const TensorInfo* info = e->sinfo ? e->sinfo.as<TensorInfo>() : nullptr;
  if (p.kind == Kind::has_dtype) return info && info->dtype == p.dtype;
  if (p.kind == Kind::has_struct_info) return e->sinfo && is_base_of(p.sinfo, e->sinfo, arith_);
  if (p.kind == Kind::has_shape) {
    auto shape = info ? shape_of(*info) : std::nullopt;
    return shape && same_extents(*shape, p.extents);
  }
  const RCall* call = value.as<RCall>();
  const LocalFunction* local = value.as<LocalFunction>();
  if (!call && !local) return false;
  const Attrs& attrs = call ? call->attrs : local->function->attrs;
  return std::ranges::all_of(p.attrs, [&](const auto& entry) {
    auto at = attrs.find(entry.first);
    return at != attrs.end() && at->second && is_same_attribute(at->second, entry.second);
  });
}

std::optional<std::vector<RExpr>> PatternMatcher::parts_of(const DFPatternNode& p, const RExpr& value) const {
  const RCall* call = value.as<RCall>();
  switch (p.kind) {
    case Kind::item: {
      const TupleGetItem* item = value.as<TupleGetItem>();
      const bool is_it =
          item && (p.of == Args::any || (item->index >= 0 && static_cast<size_t>(item->index) == p.index));
      return is_it ? std::optional(std::vector<RExpr>{item->tuple}) : std::nullopt;
    }
    case Kind::tuple: {
      const Tuple* t = value.as<Tuple>();
      return t && t->items.size() == p.args.size() ? std::optional(t->items) : std::nullopt;
    }
    case Kind::function: {
      const LocalFunction* local = value.as<LocalFunction>();
      if (!local || local->function->params.size() + 1 != p.args.size()) return {};
      std::vector<RExpr> parts(local->function->params.begin(), local->function->params.end());
      parts.push_back(local->function->body);
      return parts;
    }
    case Kind::op:
      if (!call || !is_op(value, p.op) || !fits(p, call->args.size())) return {};
      return call->args;
    case Kind::call: {
      if (!call || !fits(p, call->args.size() + 1)) return {};
      std::vector<RExpr> parts = {call->op};
      parts.insert(parts.end(), call->args.begin(), call->args.end());
      return parts;
    }
    case Kind::call_tir: {
      const GlobalVar* callee = call && is_op(value, "call_tir") ? call->args[0].as<GlobalVar>() : nullptr;
      if (!callee || !module_) return {};
      auto func = module_->functions.find(callee->name);
      const tir::PrimFunc* program = func == module_->functions.end() ? nullptr : func->second.as<tir::PrimFunc>();
      if (!program || !p.which(*program)) return {};
      std::vector<RExpr> inputs = call_tir_inputs(*call);
      return inputs.size() < p.args.size() ? std::nullopt : std::optional(std::move(inputs));
    }
    default: return {};
  }
}

bool PatternMatcher::match_args(const std::vector<DFPattern>& patterns, const std::vector<RExpr>& args, size_t next,
                                Then then) {
  if (next == patterns.size()) return then();
  return matches(patterns[next], args[next], [&] { return match_args(patterns, args, next + 1, then); });
}

bool PatternMatcher::match_in_any_order(const std::vector<DFPattern>& patterns, std::vector<RExpr> args, size_t next,
                                        Then then) {
  if (next == patterns.size()) return then();
  for (size_t i = next; i < args.size(); ++i) {
    std::swap(args[next], args[i]);
    if (matches(patterns[next], args[next], [&] { return match_in_any_order(patterns, args, next + 1, then); }))
      return true;
    std::swap(args[next], args[i]);
  }
  return false;
}

bool PatternMatcher::same_extents(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::ranges::equal(
      a, b, [&](const Expr& x, const Expr& y) { return arith_.prove(eq(cast_to(i64, x), cast_to(i64, y))); });
}

std::optional<Matched> match_expression(const DFPattern& pattern, const RExpr& e, ValueOf value_of) {
  PatternMatcher matcher(nullptr, value_of, /*once_each=*/false);
  if (!matcher.matches(pattern, e, [] { return true; })) return {};
  return std::move(matcher.matched);
}

namespace {

class MatchRewriter final : public GraphRewriter {
 public:
  MatchRewriter(BlockBuilder& builder, const DFPattern& pattern, const PatternRewrite& rewrite)
      : GraphRewriter(builder), pattern_(pattern), rewrite_(rewrite) {}

 private:
  RExpr value(const RVarRef&, const RExpr& value) override {
    if (!value.as<RCall>()) return value;
    auto found = match_expression(pattern_, value, [&](const RVarRef& v) { return builder().bound_value(v); });
    RExpr other = found ? rewrite_(value, *found) : nullptr;
    return other ? other : value;
  }

  const DFPattern& pattern_;
  const PatternRewrite& rewrite_;
};

}  // namespace

FuncRef rewrite_matches(const FuncRef& func, BlockBuilder& builder, const DFPattern& pattern,
                        const PatternRewrite& rewrite) {
  FuncRef out = MatchRewriter(builder, pattern, rewrite).function(*func);
  return out == func ? func : without_unused(out);
}

}  // namespace sator::passes
