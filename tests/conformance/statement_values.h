// Statements, functions and modules of tensor programs as the cases' Python builds them, and what passes make of them.
#pragma once

#include "cases.h"
#include "tir/parse_eval.h"

namespace sator::conformance {

/// tir.LetStmt, tir.SeqStmt, tir.PrimFunc, tvm.IRModule.from_expr, ...; nothing for other names. A function's buffers that it
/// does not declare become parameters.
std::optional<tir::Value> statement_value(tir::Evaluator& ev, const std::string& name, const script::Expression& call);
/// s.body, s.var, s.value, ... of a statement or function; nothing where it has none.
std::optional<tir::Value> statement_attribute(const NodeRef& object, const std::string& name);
/// The function of a module, or the statement of a sequence.
std::optional<tir::Value> statement_item(tir::Evaluator& ev, const NodeRef& object, const script::Expression& e);

/// tir.transform.X(...)(module): run once for all places where a case says it, so that its new variables are the same.
class PassCalls {
 public:
  explicit PassCalls(const Json& request) : request_(request) {}
  /// Nothing where the call is another one.
  std::optional<tir::Value> result(tir::Evaluator& ev, const script::Expression& call);

 private:
  const Json& request_;
  std::map<std::string, ModuleRef> done_;
};

}  // namespace sator::conformance
