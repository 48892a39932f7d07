// The inside of the interpreter of graphs.
#pragma once

#include <unordered_map>

#include "arith/eval.h"
#include "relax/interp.h"

namespace sator::relax {

/// The values of variables and symbolic sizes at one point of a run.
struct Environment {
  std::unordered_map<const RVar*, runtime::Value> vars;
  arith::Values sizes;
  const Module* module = nullptr;  ///< whose functions GlobalVars name

  /// Errors: a variable has no value.
  int64_t size(const Expr& e) const;
  runtime::Dims dims(const std::vector<Expr>& extents) const;
  /// Holds a value against struct info. With `binds`, sizes that stand alone and have no value yet take theirs; extents
  /// that cannot be computed pass. Errors: the value does not fit.
  void check(const runtime::Value& v, const StructInfo& info, bool binds, const std::string& what);

 private:
  bool fits(const Expr& extent, int64_t actual, bool binds);
};

/// A function as a value: a local function with what it captured, or a function by name.
class GraphClosure final : public Object {
 public:
  explicit GraphClosure(std::string name) : name(std::move(name)) {}
  GraphClosure(FuncRef function, RVarRef self, Environment around)
      : name(self ? self->name : "function"),
        function(std::move(function)),
        self(std::move(self)),
        around(std::move(around)) {}
  const std::string name;
  const FuncRef function;  ///< null: by name
  const RVarRef self;      ///< the variable by which it calls itself
  const Environment around;
  std::vector<runtime::Value> captured;  ///< its last arguments
};

class GraphInterpreter::Machine {
 public:
  Machine(ModuleRef module, GraphOptions options) : module(std::move(module)), options(std::move(options)) {}

  runtime::Value function(const Function& f, const std::string& name, std::vector<runtime::Value> args,
                          const Environment* around);
  runtime::Value sequence(const SeqExpr& s, Environment& env);
  void bind(const BindingNode& b, Environment& env);
  runtime::Value eval(const RExpr& e, Environment& env);

  // Calls (interp_call.cc).
  runtime::Value call(const RCall& c, Environment& env);
  std::vector<runtime::Value> eval_all(std::span<const RExpr> args, Environment& env);
  /// Any function by its value or name.
  runtime::Value invoke(const runtime::Value& callee, std::vector<runtime::Value> args, const Environment& env);
  runtime::Value host(const std::string& name, std::span<const runtime::Value> args);
  /// An op without a row of its own here: what LegalizeOps would make of it, on these values.
  runtime::Value op_by_formula(const RCall& c, std::vector<runtime::Value> args);
  /// Tensor programs of the module; `args` are all of its arguments.
  runtime::Value program(const tir::PrimFuncRef& f, const std::string& name, std::span<const runtime::Value> args);
  /// Fresh tensors for struct info, one per leaf.
  runtime::Value allocate(const StructInfo& info, const Environment& env, std::vector<runtime::Value>& leaves);

  const ModuleRef module;
  const GraphOptions options;

 private:
  std::unordered_map<const tir::PrimFunc*, std::pair<tir::PrimFuncRef, tir::Interpreter>> compiled_;
  /// What an op became: the bindings, its value, and the programs that they call.
  struct Expansion {
    RCallRef call;
    std::vector<RVarRef> inputs;
    BindingBlockRef block;
    RExpr value;
    ModuleRef programs;
  };
  std::unordered_multimap<uint64_t, Expansion> expansions_;
  int depth_ = 0;
};

}  // namespace sator::relax
