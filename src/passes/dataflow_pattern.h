// Shapes of computation in a graph, as data: what FuseOpsByPattern looks for.
#pragma once

#include <functional>
#include <memory>
#include <set>

#include "ir/module.h"
#include "relax/nodes.h"
#include "tir/nodes.h"

namespace sator::passes {

/// A pattern of an expression. Built by the functions below, named as in TVM.
struct DFPatternNode;
using DFPattern = std::shared_ptr<const DFPatternNode>;

/// Anything; what it matches stays outside of the group.
DFPattern wildcard();
/// A tensor of that many dimensions that `inner` matches.
DFPattern has_ndim(int ndim, DFPattern inner = wildcard());
/// A call of the op ("matmul") with these arguments.
DFPattern is_op(std::string name, std::vector<DFPattern> args);
/// A call of the op of which one argument, whichever, matches.
DFPattern is_op_reading(std::string name, DFPattern arg);
/// A call_tir of a tensor function for which `which` holds, of which one argument, whichever, matches.
DFPattern is_call_tir_reading(std::function<bool(const tir::PrimFunc&)> which, DFPattern arg);
/// A call_tir of a tensor function for which `which` holds (what it does, never its name), whose first arguments match.
DFPattern is_call_tir(std::function<bool(const tir::PrimFunc&)> which, std::vector<DFPattern> first_args = {});
/// The first of the two that matches.
DFPattern operator|(DFPattern a, DFPattern b);

/// The bindings of a dataflow block, as patterns are matched against it.
class PatternGraph {
 public:
  PatternGraph(const ModuleRef& module, const relax::BindingBlockRef& block,
               const std::vector<relax::RVarRef>& live_out);

  size_t size() const { return values_.size(); }
  /// The bindings that a match with binding `root` as its result takes in, ascending; nothing where it does not match.
  std::optional<std::set<size_t>> match(const DFPattern& pattern, size_t root) const;
  /// The first member but the last whose value is used outside of the members; nothing if there is none.
  std::optional<size_t> escapes(const std::set<size_t>& members) const;

 private:
  bool matches(const DFPattern& pattern, const relax::RExpr& e, std::set<size_t>& members) const;
  bool matches_value(const DFPattern& pattern, size_t binding, std::set<size_t>& members) const;

  ModuleRef module_;
  std::vector<relax::RExpr> values_;
  std::map<relax::RVarRef, size_t> binder_;
  std::vector<std::set<size_t>> users_;
  std::vector<bool> leaves_;  ///< used after the block
};

}  // namespace sator::passes
