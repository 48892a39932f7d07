#include "passes/dataflow_pattern.h"

#include <algorithm>

#include "passes/outline.h"

namespace sator::passes {

using namespace relax;

struct DFPatternNode {
  enum class Kind { wildcard, op, call_tir, either };
  Kind kind = Kind::wildcard;
  std::string op;                                     ///< of Kind::op
  std::function<bool(const tir::PrimFunc&)> which{};  ///< of Kind::call_tir
  std::vector<DFPattern> args{};                      ///< or the two of Kind::either; one of a wildcard with a rank
  int ndim = -1;                                      ///< of the result; -1: any
  bool any_arg = false;                               ///< the one pattern of args is for any of the call's
};

namespace {

DFPattern node(DFPatternNode n) { return std::make_shared<const DFPatternNode>(std::move(n)); }

bool has_rank(const RExpr& e, int ndim) {
  const TensorInfo* info = e->sinfo ? e->sinfo.as<TensorInfo>() : nullptr;
  return info && info->ndim == ndim;
}

}  // namespace

using Kind = DFPatternNode::Kind;

DFPattern wildcard() { return node({.kind = Kind::wildcard, .op = {}}); }
DFPattern has_ndim(int ndim, DFPattern inner) {
  DFPatternNode n = *inner;
  n.ndim = ndim;
  return node(std::move(n));
}
DFPattern is_op(std::string name, std::vector<DFPattern> args) {
  return node({.kind = Kind::op, .op = std::move(name), .args = std::move(args)});
}
DFPattern is_call_tir(std::function<bool(const tir::PrimFunc&)> which, std::vector<DFPattern> first_args) {
  return node({.kind = Kind::call_tir, .op = {}, .which = std::move(which), .args = std::move(first_args)});
}
DFPattern is_op_reading(std::string name, DFPattern arg) {
  return node({.kind = Kind::op, .op = std::move(name), .args = {std::move(arg)}, .any_arg = true});
}
DFPattern is_call_tir_reading(std::function<bool(const tir::PrimFunc&)> which, DFPattern arg) {
  return node({.kind = Kind::call_tir, .op = {}, .which = std::move(which), .args = {std::move(arg)}, .any_arg = true});
}
DFPattern operator|(DFPattern a, DFPattern b) {
  return node({.kind = Kind::either, .op = {}, .args = {std::move(a), std::move(b)}});
}

PatternGraph::PatternGraph(const ModuleRef& module, const BindingBlockRef& block, const std::vector<RVarRef>& live_out)
    : module_(module), users_(block->bindings.size()), leaves_(block->bindings.size()) {
  for (const Binding& b : block->bindings) {
    values_.push_back(bound_value(b));
    for (const RVarRef& v : rvars_in(values_.back()))
      if (auto at = binder_.find(v); at != binder_.end()) users_[at->second].insert(values_.size() - 1);
    binder_[bound_var(b)] = values_.size() - 1;
  }
  for (const RVarRef& v : live_out)
    if (auto at = binder_.find(v); at != binder_.end()) leaves_[at->second] = true;
}

std::optional<std::set<size_t>> PatternGraph::match(const DFPattern& pattern, size_t root) const {
  std::set<size_t> members;
  if (!matches_value(pattern, root, members) || members.empty()) return {};
  return members;
}

bool PatternGraph::matches(const DFPattern& pattern, const RExpr& e, std::set<size_t>& members) const {
  if (pattern->kind == Kind::either) {
    for (const DFPattern& one : pattern->args) {
      std::set<size_t> with = members;
      if (!matches(one, e, with)) continue;
      members = std::move(with);
      return pattern->ndim < 0 || has_rank(e, pattern->ndim);
    }
    return false;
  }
  if (pattern->ndim >= 0 && !has_rank(e, pattern->ndim)) return false;
  if (pattern->kind == Kind::wildcard) return true;
  const RVarRef var = cast<RVar>(e);
  auto at = var ? binder_.find(var) : binder_.end();
  return at != binder_.end() && matches_value(pattern, at->second, members);
}

bool PatternGraph::matches_value(const DFPattern& pattern, size_t binding, std::set<size_t>& members) const {
  if (pattern->kind == Kind::either) {
    for (const DFPattern& one : pattern->args) {
      std::set<size_t> with = members;
      if (!matches_value(one, binding, with)) continue;
      members = std::move(with);
      return true;
    }
    return false;
  }
  const RCall* call = values_[binding].as<RCall>();
  if (!call) return false;
  std::vector<RExpr> args;
  if (pattern->kind == Kind::op) {
    if (!is_op(values_[binding], pattern->op)) return false;
    if (!pattern->any_arg && call->args.size() != pattern->args.size()) return false;
    args = call->args;
  } else if (pattern->kind == Kind::call_tir) {
    if (!is_op(values_[binding], "call_tir")) return false;
    const GlobalVar* callee = call->args[0].as<GlobalVar>();
    auto func = callee ? module_->functions.find(callee->name) : module_->functions.end();
    const tir::PrimFunc* program = func == module_->functions.end() ? nullptr : func->second.as<tir::PrimFunc>();
    if (!program || !pattern->which(*program)) return false;
    args = call_tir_inputs(*call);
    if (args.size() < pattern->args.size()) return false;
  } else {
    return false;
  }
  if (pattern->any_arg) {
    for (const RExpr& arg : args) {
      std::set<size_t> with = members;
      if (!matches(pattern->args.front(), arg, with)) continue;
      members = std::move(with);
      members.insert(binding);
      return true;
    }
    return false;
  }
  for (size_t i = 0; i < pattern->args.size(); ++i)
    if (!matches(pattern->args[i], args[i], members)) return false;
  members.insert(binding);
  return true;
}

std::optional<size_t> PatternGraph::escapes(const std::set<size_t>& members) const {
  for (size_t m : members) {
    if (m == *members.rbegin()) continue;
    if (leaves_[m]) return m;
    for (size_t user : users_[m])
      if (!members.contains(user)) return m;
  }
  return {};
}

}  // namespace sator::passes
