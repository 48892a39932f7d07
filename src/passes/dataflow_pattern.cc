#include "passes/dataflow_pattern.h"

#include <algorithm>

#include "relax/outline.h"

namespace sator::passes {

using namespace relax;

struct DFPatternNode {
  enum class Kind { wildcard, op, call_tir, item, either, one_value };
  /// Which arguments of the call the patterns of `args` are for.
  enum class Args { in_order, either_way, any };
  Kind kind = Kind::wildcard;
  std::string op;                                     ///< of Kind::op
  std::function<bool(const tir::PrimFunc&)> which{};  ///< of Kind::call_tir
  std::vector<DFPattern> args{};                      ///< or the two of Kind::either; one of item and one_value
  int ndim = -1;                                      ///< of the result; -1: any
  Args of = Args::in_order;
  size_t index = 0;  ///< of Kind::item
};

namespace {

DFPattern node(DFPatternNode n) { return std::make_shared<const DFPatternNode>(std::move(n)); }

bool has_rank(const RExpr& e, int ndim) {
  const TensorInfo* info = e->sinfo ? e->sinfo.as<TensorInfo>() : nullptr;
  return info && info->ndim == ndim;
}

}  // namespace

using Kind = DFPatternNode::Kind;
using Args = DFPatternNode::Args;

DFPattern wildcard() { return node({.kind = Kind::wildcard, .op = {}}); }
DFPattern has_ndim(int ndim, DFPattern inner) {
  return node({.kind = Kind::either, .op = {}, .args = {std::move(inner)}, .ndim = ndim});
}
DFPattern is_op(std::string name, std::vector<DFPattern> args) {
  return node({.kind = Kind::op, .op = std::move(name), .args = std::move(args)});
}
DFPattern is_op_either_way(std::string name, DFPattern a, DFPattern b) {
  return node({.kind = Kind::op, .op = std::move(name), .args = {std::move(a), std::move(b)}, .of = Args::either_way});
}
DFPattern is_call_tir(std::function<bool(const tir::PrimFunc&)> which, std::vector<DFPattern> first_args) {
  return node({.kind = Kind::call_tir, .op = {}, .which = std::move(which), .args = std::move(first_args)});
}
DFPattern is_op_reading(std::string name, DFPattern arg) {
  return node({.kind = Kind::op, .op = std::move(name), .args = {std::move(arg)}, .of = Args::any});
}
DFPattern is_call_tir_reading(std::function<bool(const tir::PrimFunc&)> which, DFPattern arg) {
  return node({.kind = Kind::call_tir, .op = {}, .which = std::move(which), .args = {std::move(arg)}, .of = Args::any});
}
DFPattern is_tuple_get_item(DFPattern tuple, size_t index) {
  return node({.kind = Kind::item, .op = {}, .args = {std::move(tuple)}, .index = index});
}
DFPattern one_value(DFPattern inner) { return node({.kind = Kind::one_value, .op = {}, .args = {std::move(inner)}}); }
DFPattern operator|(DFPattern a, DFPattern b) {
  return node({.kind = Kind::either, .op = {}, .args = {std::move(a), std::move(b)}});
}

PatternGraph::PatternGraph(const ModuleRef& module, const BindingBlockRef& block, const std::vector<RVarRef>& live_out)
    : module_(module), users_(block->bindings.size()), leaves_(block->bindings.size()) {
  for (const Binding& b : block->bindings) {
    variables_.push_back(bound_var(b));
    values_.push_back(bound_value(b));
    for (const RVarRef& v : rvars_in(values_.back()))
      if (auto at = binder_.find(v); at != binder_.end()) users_[at->second].insert(values_.size() - 1);
    binder_[variables_.back()] = values_.size() - 1;
  }
  for (const RVarRef& v : live_out)
    if (auto at = binder_.find(v); at != binder_.end()) leaves_[at->second] = true;
}

std::optional<PatternGraph::Match> PatternGraph::match(const std::vector<DFPattern>& patterns, size_t root) const {
  Taken taken;
  std::vector<size_t> roots = {root};
  const bool found = matches(patterns.front(), variables_[root], taken, [&] {
    return taken.members.contains(root) && match_results(patterns, roots, taken);
  });
  if (!found) return {};
  return Match{std::move(taken.members), {roots.begin(), roots.end()}};
}

bool PatternGraph::match_results(const std::vector<DFPattern>& patterns, std::vector<size_t>& roots,
                                 Taken& taken) const {
  if (roots.size() == patterns.size()) return true;
  for (size_t root = 0; root < size(); ++root) {
    if (std::ranges::find(roots, root) != roots.end()) continue;
    roots.push_back(root);
    if (matches(patterns[roots.size() - 1], variables_[root], taken, [&] {
          return taken.members.contains(root) && match_results(patterns, roots, taken);
        }))
      return true;
    roots.pop_back();
  }
  return false;
}

bool PatternGraph::match_args(const std::vector<DFPattern>& patterns, const std::vector<RExpr>& args, size_t next,
                              Taken& taken, Then then) const {
  if (next == patterns.size()) return then();
  return matches(patterns[next], args[next], taken, [&] { return match_args(patterns, args, next + 1, taken, then); });
}

bool PatternGraph::matches(const DFPattern& pattern, const RExpr& e, Taken& taken, Then then) const {
  if (pattern->ndim >= 0 && !has_rank(e, pattern->ndim)) return false;
  const RVarRef var = cast<RVar>(e);
  switch (pattern->kind) {
    case Kind::wildcard: return then();
    case Kind::either:
      return std::ranges::any_of(pattern->args, [&](const DFPattern& one) { return matches(one, e, taken, then); });
    case Kind::one_value: {
      const auto [at, fresh] = taken.values.try_emplace(pattern.get(), e);
      if (!fresh) return at->second == e && then();
      if (matches(pattern->args.front(), e, taken, then)) return true;
      taken.values.erase(pattern.get());
      return false;
    }
    case Kind::op:
    case Kind::call_tir:
    case Kind::item: break;
  }
  const auto at = var ? binder_.find(var) : binder_.end();
  if (at == binder_.end()) return false;
  const RExpr& value = values_[at->second];
  std::vector<RExpr> args;
  if (pattern->kind == Kind::item) {
    const TupleGetItem* item = value.as<TupleGetItem>();
    if (!item || item->index < 0 || static_cast<size_t>(item->index) != pattern->index) return false;
    args = {item->tuple};
  } else if (pattern->kind == Kind::op) {
    const RCall* call = value.as<RCall>();
    if (!call || !is_op(value, pattern->op)) return false;
    if (pattern->of != Args::any && call->args.size() != pattern->args.size()) return false;
    args = call->args;
  } else {
    const RCall* call = value.as<RCall>();
    if (!call || !is_op(value, "call_tir")) return false;
    const GlobalVar* callee = call->args[0].as<GlobalVar>();
    auto func = callee ? module_->functions.find(callee->name) : module_->functions.end();
    const tir::PrimFunc* program = func == module_->functions.end() ? nullptr : func->second.as<tir::PrimFunc>();
    if (!program || !pattern->which(*program)) return false;
    args = call_tir_inputs(*call);
    if (args.size() < pattern->args.size()) return false;
  }
  if (!taken.members.insert(at->second).second) return false;
  bool found = false;
  switch (pattern->of) {
    case Args::in_order: found = match_args(pattern->args, args, 0, taken, then); break;
    case Args::either_way:
      found = match_args(pattern->args, args, 0, taken, then) ||
              match_args(pattern->args, {args[1], args[0]}, 0, taken, then);
      break;
    case Args::any:
      found =
          std::ranges::any_of(args, [&](const RExpr& arg) { return matches(pattern->args.front(), arg, taken, then); });
      break;
  }
  if (!found) taken.members.erase(at->second);
  return found;
}

std::optional<size_t> PatternGraph::escapes(const Match& match) const {
  for (size_t m : match.members) {
    if (match.results.contains(m)) continue;
    if (leaves_[m]) return m;
    for (size_t user : users_[m])
      if (!match.members.contains(user)) return m;
  }
  return {};
}

std::optional<size_t> PatternGraph::needed_early(const Match& match) const {
  for (size_t r : match.results)
    for (size_t user : users_[r])
      if (!match.members.contains(user) && user < *match.members.rbegin()) return r;
  return {};
}

}  // namespace sator::passes
