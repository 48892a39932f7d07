// What patterns are made of, and how one is held against an expression: dataflow_pattern.h builds and uses them.
#pragma once

#include "arith/analyzer.h"
#include "passes/dataflow_pattern.h"

namespace sator::passes {

struct DFPatternNode {
  enum class Kind {
    wildcard,
    op,
    call_tir,
    item,
    either,
    one_value,
    var,
    dataflow_var,
    global_var,
    constant,
    extern_func,
    shape,
    expression,
    tuple,
    call,
    function,
    both,
    except,
    has_shape,
    has_dtype,
    has_struct_info,
    has_attrs
  };
  /// Which arguments of the call (or items) the patterns of `args` are for; any: one argument, whichever, or no matter which;
  /// first: the first ones, and more may follow.
  enum class Args { in_order, either_way, any, any_order, first };
  Kind kind = Kind::wildcard;
  std::string op;                                     ///< of Kind::op; the name of a variable or function
  std::function<bool(const tir::PrimFunc&)> which{};  ///< of Kind::call_tir
  /// Of the arguments, items or alternatives; of a call the callee first, of a function the body last.
  std::vector<DFPattern> args{};
  int ndim = -1;  ///< of the result; -1: any
  Args of = Args::in_order;
  size_t index = 0;             ///< of Kind::item
  std::vector<Expr> extents{};  ///< of a shape
  DType dtype{};
  relax::StructInfo sinfo{};
  Attrs attrs{};
  relax::RExpr expression{};
};

/// One attempt to match patterns: all choices are tried until one holds for the whole of them.
class PatternMatcher {
 public:
  /// `module` may be null: no call_tir matches then. `once_each`: a binding is taken by one part of the patterns alone.
  PatternMatcher(const Module* module, ValueOf value_of, bool once_each)
      : module_(module), value_of_(value_of), once_each_(once_each) {}

  using Then = FunctionRef<bool()>;
  /// Whether the pattern matches in a way of which `then` holds; members and matched are those of that way.
  bool matches(const DFPattern& pattern, const relax::RExpr& e, Then then);

  std::set<relax::RVarRef> members;  ///< variables whose values were taken in
  Matched matched;

 private:
  bool parts_match(const DFPattern& pattern, const relax::RExpr& e, Then then);
  bool leaf_matches(const DFPatternNode& pattern, const relax::RExpr& e, const relax::RExpr& value);
  bool is_known(const DFPatternNode& pattern, const relax::RExpr& e, const relax::RExpr& value);
  bool match_args(const std::vector<DFPattern>& patterns, const std::vector<relax::RExpr>& args, size_t next,
                  Then then);
  bool match_in_any_order(const std::vector<DFPattern>& patterns, std::vector<relax::RExpr> args, size_t next,
                          Then then);
  /// What the value must have at the places of the patterns; nothing where it is another kind of value.
  std::optional<std::vector<relax::RExpr>> parts_of(const DFPatternNode& pattern, const relax::RExpr& value) const;
  bool same_extents(const std::vector<Expr>& a, const std::vector<Expr>& b);

  const Module* module_;
  ValueOf value_of_;
  bool once_each_;
  arith::Analyzer arith_;
  std::map<const DFPatternNode*, relax::RExpr> values_;  ///< of one_value
};

}  // namespace sator::passes
