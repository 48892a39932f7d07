// Passes that turn each binding of a graph into a few: what they share.
#pragma once

#include "ir/module.h"
#include "relax/builder.h"
#include "relax/nodes.h"

namespace sator::relax {

/// The bindings that take the place of one.
class Bindings {
 public:
  void keep(Binding b) { list_.push_back(std::move(b)); }
  /// A new variable for the value, whose struct info must be known.
  RVarRef emit(const std::string& name, const RExpr& value);
  /// The value for the variable that the old binding bound.
  void bind(const RVarRef& var, const RExpr& value) { list_.push_back(make<VarBinding>(value, var)); }
  /// The value for nobody: `_ = value`.
  void run(const RExpr& value) { emit("_", value); }
  std::vector<Binding>& list() { return list_; }

 private:
  std::vector<Binding> list_;
};

/// Offers each binding of each graph function (also those in branches) to `rewrite`, which puts what shall stand there
/// into the list.
ModuleRef rewrite_bindings(const ModuleRef& module, FunctionRef<void(const Binding&, Bindings&)> rewrite);
/// The same for one function.
FuncRef rewrite_bindings(const FuncRef& func, FunctionRef<void(const Binding&, Bindings&)> rewrite);

/// The value with its struct info inferred again from its parts.
RExpr renewed(BlockBuilder& builder, const RExpr& value);

/// A call whose result has this struct info.
inline RExpr typed_call(RExpr op, std::vector<RExpr> args, StructInfo sinfo) {
  return with_sinfo(call(std::move(op), std::move(args)), std::move(sinfo));
}
inline RExpr op_call(const char* op, std::vector<RExpr> args, StructInfo sinfo) {
  return typed_call(op_ref(op), std::move(args), std::move(sinfo));
}
/// A call of an external function that returns nothing of interest (or `sinfo`).
RExpr packed_call(const std::string& name, std::vector<RExpr> args, StructInfo sinfo);

}  // namespace sator::relax
