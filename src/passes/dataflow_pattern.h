// Shapes of computation in a graph, as data: what FuseOpsByPattern looks for.
#pragma once

#include <functional>
#include <memory>
#include <set>

#include "base/function_ref.h"
#include "ir/module.h"
#include "relax/nodes.h"
#include "tir/nodes.h"

namespace sator::passes {

/// A pattern of an expression. Built by the functions below, named as in TVM. A pattern that occurs several times in others
/// is tried anew at each place, unless it is one_value().
struct DFPatternNode;
using DFPattern = std::shared_ptr<const DFPatternNode>;

/// Anything; what it matches stays outside of the group.
DFPattern wildcard();
/// A tensor of that many dimensions that `inner` matches.
DFPattern has_ndim(int ndim, DFPattern inner = wildcard());
/// A call of the op ("matmul") with these arguments.
DFPattern is_op(std::string name, std::vector<DFPattern> args);
/// A call of the op with these two arguments, in one order or the other.
DFPattern is_op_either_way(std::string name, DFPattern a, DFPattern b);
/// A call of the op of which one argument, whichever, matches.
DFPattern is_op_reading(std::string name, DFPattern arg);
/// A call_tir of a tensor function for which `which` holds, of which one argument, whichever, matches.
DFPattern is_call_tir_reading(std::function<bool(const tir::PrimFunc&)> which, DFPattern arg);
/// A call_tir of a tensor function for which `which` holds (what it does, never its name), whose first arguments match.
DFPattern is_call_tir(std::function<bool(const tir::PrimFunc&)> which, std::vector<DFPattern> first_args = {});
/// Item i of a tuple.
DFPattern is_tuple_get_item(DFPattern tuple, size_t index);
/// A value that `inner` matches, and the same one wherever this pattern stands.
DFPattern one_value(DFPattern inner);
/// One of the two, the first if both match.
DFPattern operator|(DFPattern a, DFPattern b);

/// The bindings of a dataflow block, as patterns are matched against it.
class PatternGraph {
 public:
  PatternGraph(const ModuleRef& module, const relax::BindingBlockRef& block,
               const std::vector<relax::RVarRef>& live_out);

  struct Match {
    std::set<size_t> members;  ///< bindings that the match takes in
    std::set<size_t> results;  ///< of these, one per pattern
  };

  size_t size() const { return values_.size(); }
  /// The first match with binding `root` as the first pattern's result; those of the other patterns are any other bindings.
  /// Every op of the patterns is a binding of its own. Nothing where there is none.
  /// Cost: all choices are tried, until one holds for all patterns.
  std::optional<Match> match(const std::vector<DFPattern>& patterns, size_t root) const;
  /// The first member that is no result and whose value is used outside of the members; nothing if there is none.
  std::optional<size_t> escapes(const Match& match) const;
  /// The first result that something outside reads before the last member is there; nothing if there is none. What is made of
  /// the others comes back to no member.
  std::optional<size_t> needed_early(const Match& match) const;

 private:
  /// What a match has taken in so far.
  struct Taken {
    std::set<size_t> members;
    std::map<const DFPatternNode*, relax::RExpr> values;  ///< of one_value
  };
  using Then = FunctionRef<bool()>;

  bool matches(const DFPattern& pattern, const relax::RExpr& e, Taken& taken, Then then) const;
  bool match_args(const std::vector<DFPattern>& patterns, const std::vector<relax::RExpr>& args, size_t next,
                  Taken& taken, Then then) const;
  bool match_results(const std::vector<DFPattern>& patterns, std::vector<size_t>& roots, Taken& taken) const;

  ModuleRef module_;
  std::vector<relax::RVarRef> variables_;
  std::vector<relax::RExpr> values_;
  std::map<relax::RVarRef, size_t> binder_;
  std::vector<std::set<size_t>> users_;
  std::vector<bool> leaves_;  ///< used after the block
};

}  // namespace sator::passes
