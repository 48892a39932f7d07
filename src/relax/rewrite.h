// Rewrites of a whole graph function: values that other values take the place of, from the first binding to the last.
#pragma once

#include "relax/builder.h"
#include "relax/nodes.h"

namespace sator::relax {

/// What stands for a value in a rewritten graph.
///
///   class Doubler final : public GraphRewriter {
///     RExpr value(const RVarRef&, const RExpr& value) override { return is_op(value, "add") ? twice(value) : value; }
///   };
///   FuncRef after = Doubler(builder).function(before);
///
/// Bindings are offered in order, also those of branches and of local functions. A value arrives with its variables already
/// replaced and its struct info inferred again where its parts changed. A variable whose value changed has the struct info of
/// the new value.
class GraphRewriter {
 public:
  explicit GraphRewriter(BlockBuilder& builder) : builder_(builder) {}
  virtual ~GraphRewriter() = default;

  /// The function with its body rewritten. What it was declared to return stays where the body tells no more.
  FuncRef function(const Function& f);

 protected:
  /// Whether the binding goes: replace() has said what stands for its variable.
  virtual bool drops(const RVarRef&) { return false; }
  /// What `var` shall be bound to. More bindings may be put before it with builder().emit(); null drops the binding.
  virtual RExpr value(const RVarRef& var, const RExpr& value) = 0;
  /// A value whose parts changed, with its struct info inferred again.
  virtual RExpr reinferred_value(const RExpr& value);
  /// What stands for a local function that `var` is bound to; null drops the binding. Without another meaning: the function
  /// with its body rewritten.
  virtual RExpr local_function(const RVarRef& var, const LocalFunction& local);
  /// What a function or branch returns; bindings for it may be emitted.
  virtual RExpr result(const RExpr& body) { return body; }
  /// Bindings may be emitted after the one that `var` (of the function as it was) has been offered in.
  virtual void after(const RVarRef&) {}
  /// The binding that stands for `var = match_cast(from, sinfo)`.
  virtual Binding match_cast(const RVarRef& var, const RExpr& from, const StructInfo& sinfo) {
    return bind_match_cast(var, from, sinfo);
  }
  /// The variable that shall be bound in its place.
  virtual RVarRef variable(const RVarRef& var) { return var; }
  /// A block has begun, or is about to end: bindings may be emitted.
  virtual void begin_block(const BindingBlock&) {}
  virtual void end_block(const BindingBlock&) {}
  /// A branch or local function is about to begin, or has ended.
  virtual void begin_inner(bool /*is_function*/) {}
  virtual void end_inner() {}

  /// Puts `e` in the place of each later use of the variable.
  void replace(const RVarRef& var, const RExpr& e) { replaced_[var] = e; }
  BlockBuilder& builder() { return builder_; }
  NodeMap& replacements() { return replaced_; }
  /// The expression with variables replaced.
  RExpr current(const RExpr& e) const { return replaced(e, replaced_); }

 private:
  RExpr sequence(const RExpr& e);
  RExpr inner_scope(const RExpr& branch);
  void binding(const Binding& b);
  void bind(const VarBinding& b, const RExpr& value);

  BlockBuilder& builder_;
  NodeMap replaced_;
};

/// Rewrites each graph function of the module with `rewrite(function, builder)`; the builder has the functions that others
/// added. A function that stays the same node is left alone.
ModuleRef rewrite_functions(const ModuleRef& module,
                            const std::function<FuncRef(const FuncRef& func, BlockBuilder& builder)>& rewrite);

}  // namespace sator::relax
