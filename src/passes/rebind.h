// Passes that turn each binding of a graph into a few: what they share.
#pragma once

#include "passes/pass.h"
#include "relax/builder.h"
#include "relax/nodes.h"

namespace sator::passes {

/// The bindings that take the place of one.
class Bindings {
 public:
  void keep(relax::Binding b) { list_.push_back(std::move(b)); }
  /// A new variable for the value, whose struct info must be known.
  relax::RVarRef emit(const std::string& name, const relax::RExpr& value);
  /// The value for the variable that the old binding bound.
  void bind(const relax::RVarRef& var, const relax::RExpr& value) {
    list_.push_back(make<relax::VarBinding>(value, var));
  }
  /// The value for nobody: `_ = value`.
  void run(const relax::RExpr& value) { emit("_", value); }
  std::vector<relax::Binding>& list() { return list_; }

 private:
  std::vector<relax::Binding> list_;
};

/// Offers each binding of each graph function (also those in branches) to `rewrite`, which puts what shall stand there
/// into the list.
ModuleRef rewrite_bindings(const ModuleRef& module, FunctionRef<void(const relax::Binding&, Bindings&)> rewrite);
/// The same for one function.
relax::FuncRef rewrite_bindings(const relax::FuncRef& func,
                                FunctionRef<void(const relax::Binding&, Bindings&)> rewrite);

/// The value with its struct info inferred again from its parts.
relax::RExpr renewed(relax::BlockBuilder& builder, const relax::RExpr& value);

/// A call whose result has this struct info.
inline relax::RExpr typed_call(relax::RExpr op, std::vector<relax::RExpr> args, relax::StructInfo sinfo) {
  return relax::with_sinfo(relax::call(std::move(op), std::move(args)), std::move(sinfo));
}
inline relax::RExpr op_call(const char* op, std::vector<relax::RExpr> args, relax::StructInfo sinfo) {
  return typed_call(relax::op_ref(op), std::move(args), std::move(sinfo));
}
/// A call of an external function that returns nothing of interest (or `sinfo`).
relax::RExpr packed_call(const std::string& name, std::vector<relax::RExpr> args, relax::StructInfo sinfo);

}  // namespace sator::passes
