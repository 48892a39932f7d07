// Shapes of computation in a graph, as data: what FuseOpsByPattern looks for.
#pragma once

#include <functional>
#include <memory>
#include <set>

#include "base/function_ref.h"
#include "ir/module.h"
#include "relax/builder.h"
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
/// A call of the op whose first arguments match; more may follow.
DFPattern is_op_beginning(std::string name, std::vector<DFPattern> first_args);
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

// Leaves: a variable of a function, of a dataflow block, or of the module ("": of any name), a constant, a function of the runtime,
// a shape of these extents.
DFPattern is_var(std::string name = "");
DFPattern is_dataflow_var(std::string name = "");
DFPattern is_global_var(std::string name = "");
DFPattern is_constant();
DFPattern is_extern_func(std::string name);
DFPattern is_shape(std::vector<Expr> extents);
/// A tuple of these items; `unordered`: in any order.
DFPattern is_tuple(std::vector<DFPattern> items, bool unordered = false);
/// An item of a tuple, whichever.
DFPattern is_any_item(DFPattern tuple);
/// A call of what `callee` matches; without `args`, with any arguments.
DFPattern is_call_of(DFPattern callee, std::optional<std::vector<DFPattern>> args);
/// A call of what `callee` matches whose first arguments match; more may follow.
DFPattern is_call_beginning(DFPattern callee, std::vector<DFPattern> first_args);
/// An expression that is equal to this one.
DFPattern is_expression(relax::RExpr e);
/// A function inside of a graph, of these parameters.
DFPattern is_function(std::vector<DFPattern> params, DFPattern body);
/// What both match, and what `pattern` does not.
DFPattern operator&(DFPattern a, DFPattern b);
DFPattern except(DFPattern pattern);
/// What `pattern` matches and of which more is known: a shape that is proven to be equal, a dtype, struct info that is proven, or
/// attributes with these values (of a call or of a function).
DFPattern has_shape(DFPattern pattern, std::vector<Expr> extents);
DFPattern has_dtype(DFPattern pattern, DType dtype);
DFPattern has_struct_info(DFPattern pattern, relax::StructInfo info);
DFPattern has_attrs(DFPattern pattern, Attrs attrs);

/// What patterns stand for in one match.
using Matched = std::map<DFPattern, relax::RExpr>;
/// The value of a variable, or null where it is not known.
using ValueOf = FunctionRef<relax::RExpr(const relax::RVarRef&)>;
/// What the pattern and its parts match at this expression; nothing where it does not match.
std::optional<Matched> match_expression(const DFPattern& pattern, const relax::RExpr& e, ValueOf value_of);

/// What stands for a call that the pattern matches; the call itself where it stays.
using PatternRewrite = std::function<relax::RExpr(const relax::RExpr& call, const Matched& matched)>;
/// The function with each call that the pattern matches replaced, from the first to the last; then without what nobody reads.
relax::FuncRef rewrite_matches(const relax::FuncRef& func, relax::BlockBuilder& builder, const DFPattern& pattern,
                               const PatternRewrite& rewrite);

class PatternMatcher;

/// The bindings of a dataflow block, as patterns are matched against it.
class PatternGraph {
 public:
  PatternGraph(const ModuleRef& module, const relax::BindingBlockRef& block,
               const std::vector<relax::RVarRef>& live_out);

  struct Match {
    std::set<size_t> members;  ///< bindings that the match takes in
    std::set<size_t> results;  ///< of these, one per pattern
    Matched parts;             ///< what the patterns and their parts stand for
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
  bool match_results(const std::vector<DFPattern>& patterns, std::vector<size_t>& roots, PatternMatcher& matcher) const;

  ModuleRef module_;
  std::vector<relax::RVarRef> variables_;
  std::vector<relax::RExpr> values_;
  std::map<relax::RVarRef, size_t> binder_;
  std::vector<std::set<size_t>> users_;
  std::vector<bool> leaves_;  ///< used after the block
};

}  // namespace sator::passes
