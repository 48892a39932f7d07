#include "passes/dataflow_pattern.h"

#include <algorithm>

#include "passes/pattern_matcher.h"
#include "relax/outline.h"

namespace sator::passes {

using namespace relax;

namespace {

DFPattern node(DFPatternNode n) { return std::make_shared<const DFPatternNode>(std::move(n)); }

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
DFPattern is_op_beginning(std::string name, std::vector<DFPattern> first_args) {
  return node({.kind = Kind::op, .op = std::move(name), .args = std::move(first_args), .of = Args::first});
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

DFPattern is_var(std::string name) { return node({.kind = Kind::var, .op = std::move(name)}); }
DFPattern is_dataflow_var(std::string name) { return node({.kind = Kind::dataflow_var, .op = std::move(name)}); }
DFPattern is_global_var(std::string name) { return node({.kind = Kind::global_var, .op = std::move(name)}); }
DFPattern is_constant() { return node({.kind = Kind::constant, .op = {}}); }
DFPattern is_extern_func(std::string name) { return node({.kind = Kind::extern_func, .op = std::move(name)}); }
DFPattern is_shape(std::vector<Expr> extents) {
  return node({.kind = Kind::shape, .op = {}, .extents = std::move(extents)});
}
DFPattern is_tuple(std::vector<DFPattern> items, bool unordered) {
  return node(
      {.kind = Kind::tuple, .op = {}, .args = std::move(items), .of = unordered ? Args::any_order : Args::in_order});
}
DFPattern is_any_item(DFPattern tuple) {
  return node({.kind = Kind::item, .op = {}, .args = {std::move(tuple)}, .of = Args::any});
}
DFPattern is_call_of(DFPattern callee, std::optional<std::vector<DFPattern>> args) {
  std::vector<DFPattern> parts = {std::move(callee)};
  const Args of = args ? Args::in_order : Args::any;
  if (args) parts.insert(parts.end(), args->begin(), args->end());
  return node({.kind = Kind::call, .op = {}, .args = std::move(parts), .of = of});
}
DFPattern is_call_beginning(DFPattern callee, std::vector<DFPattern> first_args) {
  first_args.insert(first_args.begin(), std::move(callee));
  return node({.kind = Kind::call, .op = {}, .args = std::move(first_args), .of = Args::first});
}
DFPattern is_expression(RExpr e) { return node({.kind = Kind::expression, .op = {}, .expression = std::move(e)}); }
DFPattern is_function(std::vector<DFPattern> params, DFPattern body) {
  params.push_back(std::move(body));
  return node({.kind = Kind::function, .op = {}, .args = std::move(params)});
}
DFPattern operator&(DFPattern a, DFPattern b) {
  return node({.kind = Kind::both, .op = {}, .args = {std::move(a), std::move(b)}});
}
DFPattern except(DFPattern pattern) { return node({.kind = Kind::except, .op = {}, .args = {std::move(pattern)}}); }
DFPattern has_shape(DFPattern pattern, std::vector<Expr> extents) {
  return node({.kind = Kind::has_shape, .op = {}, .args = {std::move(pattern)}, .extents = std::move(extents)});
}
DFPattern has_dtype(DFPattern pattern, DType dtype) {
  return node({.kind = Kind::has_dtype, .op = {}, .args = {std::move(pattern)}, .dtype = dtype});
}
DFPattern has_struct_info(DFPattern pattern, StructInfo info) {
  return node({.kind = Kind::has_struct_info, .op = {}, .args = {std::move(pattern)}, .sinfo = std::move(info)});
}
DFPattern has_attrs(DFPattern pattern, Attrs attrs) {
  return node({.kind = Kind::has_attrs, .op = {}, .args = {std::move(pattern)}, .attrs = std::move(attrs)});
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
  auto value_of = [&](const RVarRef& v) {
    auto at = binder_.find(v);
    return at == binder_.end() ? RExpr() : values_[at->second];
  };
  PatternMatcher matcher(module_.get(), value_of, /*once_each=*/true);
  std::vector<size_t> roots = {root};
  const bool found = matcher.matches(patterns.front(), variables_[root], [&] {
    return matcher.members.contains(variables_[root]) && match_results(patterns, roots, matcher);
  });
  if (!found) return {};
  Match out{.members = {}, .results = {roots.begin(), roots.end()}, .parts = std::move(matcher.matched)};
  for (const RVarRef& v : matcher.members) out.members.insert(binder_.at(v));
  return out;
}

bool PatternGraph::match_results(const std::vector<DFPattern>& patterns, std::vector<size_t>& roots,
                                 PatternMatcher& matcher) const {
  if (roots.size() == patterns.size()) return true;
  for (size_t root = 0; root < size(); ++root) {
    if (std::ranges::find(roots, root) != roots.end()) continue;
    roots.push_back(root);
    if (matcher.matches(patterns[roots.size() - 1], variables_[root], [&] {
          return matcher.members.contains(variables_[root]) && match_results(patterns, roots, matcher);
        }))
      return true;
    roots.pop_back();
  }
  return false;
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
