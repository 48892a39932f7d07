#include "codegen/vm_codegen.h"

#include "base/error.h"
#include "codegen/signature.h"
#include "relax/nodes.h"
#include "runtime/executable_builder.h"
#include "tir/nodes.h"

namespace sator::codegen {

namespace {

using runtime::Arg;
using runtime::ArgKind;
using runtime::Value;
using namespace relax;

[[noreturn]] void wrong_phase(const std::string& what, const char* pass) {
  internal_error(text("bytecode: ", what, " is left over; ", pass, " removes it"));
}

/// An op that the machine runs as one of its builtins, with the same arguments.
struct VmOp {
  std::string_view op, builtin;
};
constexpr VmOp kVmOps[] = {
    {"vm.alloc_storage", "vm.builtin.alloc_storage"}, {"vm.alloc_tensor", "vm.builtin.alloc_tensor"},
    {"vm.call_tir_dyn", "vm.builtin.call_tir_dyn"},   {"null_value", "vm.builtin.null_value"},
    {"make_closure", "vm.builtin.make_closure"},      {"invoke_closure", "vm.builtin.invoke_closure"},
    {"invoke_pure_closure", "vm.builtin.invoke_closure"},
    {"shape_of", "vm.builtin.shape_of"},              {"tensor_to_shape", "vm.builtin.tensor_to_shape"},
    {"shape_to_tensor", "vm.builtin.shape_to_tensor"}, {"reshape", "vm.builtin.reshape"},
};

/// Ops whose first argument is the function to call; a tuple as the second one holds the arguments.
constexpr std::string_view kCallOps[] = {"call_builtin_with_ctx", "call_pure_packed", "call_inplace_packed"};

class FunctionWriter {
 public:
  FunctionWriter(runtime::ExecutableBuilder& builder, const ModuleRef& module) : b_(builder), module_(module) {}

  void write(const std::string& name, const Function& f) {
    std::vector<std::string> params;
    for (const RVarRef& p : f.params) params.push_back(p->name);
    b_.begin_function(name, params);
    for (size_t i = 0; i < f.params.size(); ++i) values_[f.params[i].get()] = Arg::reg(static_cast<int64_t>(i));
    b_.ret(in_register(sequence(f.body)));
    b_.end_function();
  }

 private:
  Arg sequence(const RExpr& e) {
    const SeqExpr* seq = e.as<SeqExpr>();
    if (!seq) return value(e);
    for (const BindingBlockRef& block : seq->blocks)
      for (const Binding& binding : block->bindings) {
        if (const VarBinding* n = binding.as<VarBinding>()) {
          values_[n->var.get()] = value(n->value);
        } else if (const MatchCast* n = binding.as<MatchCast>()) {
          wrong_phase(text("match_cast of ", n->var->name), "VMShapeLower");
        }
      }
    return value(seq->body);
  }

  Arg value(const RExpr& e) {
    if (const RVar* v = e.as<RVar>()) {
      auto at = values_.find(v);
      if (at == values_.end()) internal_error(text("bytecode: variable ", v->name, " is used before it is bound"));
      return at->second;
    }
    if (const RCall* n = e.as<RCall>()) return call(*n);
    if (const If* n = e.as<If>()) return branch(*n);
    if (const SeqExpr* n = e.as<SeqExpr>()) return sequence(ref(*n));
    if (const Tuple* n = e.as<Tuple>()) {
      Arg out = b_.new_register();
      b_.call(b_.builtin("vm.builtin.make_tuple"), values(n->items), out);
      return out;
    }
    if (const TupleGetItem* n = e.as<TupleGetItem>()) {
      Arg out = b_.new_register();
      b_.call(b_.builtin("vm.builtin.tuple_getitem"), {value(n->tuple), Arg::imm(n->index)}, out);
      return out;
    }
    if (const Constant* n = e.as<Constant>()) return b_.constant(Value(n->data));
    if (const RString* n = e.as<RString>()) return b_.constant(Value(n->value));
    if (const DTypeImm* n = e.as<DTypeImm>()) return b_.constant(Value(n->value));
    if (const PrimValue* n = e.as<PrimValue>()) {
      if (auto i = as_int(n->value)) return Arg::imm(*i);
      if (const FloatImm* f = n->value.as<FloatImm>()) return b_.constant(Value(f->value));
      wrong_phase("a symbolic number", "VMShapeLower");
    }
    if (const ShapeExpr* n = e.as<ShapeExpr>()) {
      std::vector<int64_t> extents;
      for (const Expr& x : n->values) {
        auto i = as_int(x);
        if (!i) wrong_phase("a symbolic shape", "VMShapeLower");
        extents.push_back(*i);
      }
      return b_.constant(Value(runtime::Shape::of(runtime::Dims(extents))));
    }
    if (const GlobalVar* n = e.as<GlobalVar>()) return Arg::function(function(n->name));
    if (const ExternFunc* n = e.as<ExternFunc>()) return Arg::function(b_.builtin(n->name));
    if (e.as<LocalFunction>()) wrong_phase("a function inside of a function", "LambdaLift");
    internal_error(text("bytecode: a value of kind ", e->info().name));
  }

  std::vector<Arg> values(const std::vector<RExpr>& exprs) {
    std::vector<Arg> out;
    for (const RExpr& e : exprs) out.push_back(value(e));
    return out;
  }

  Arg call(const RCall& n) {
    std::string annotation = string_attr(n.attrs, "annotation").value_or("");
    auto finish = [&](int32_t function, const std::vector<Arg>& args) {
      Arg out = b_.new_register();
      b_.call(function, args, out, annotation);
      return out;
    };
    if (const ExternFunc* f = n.op.as<ExternFunc>()) return finish(b_.builtin(f->name), values(n.args));
    if (const GlobalVar* f = n.op.as<GlobalVar>()) return finish(function(f->name), values(n.args));
    if (n.op.as<RVar>()) {  // a function value
      std::vector<Arg> args = {value(n.op)};
      for (const RExpr& a : n.args) args.push_back(value(a));
      return finish(b_.builtin("vm.builtin.invoke_closure"), args);
    }
    const Op* op = n.op.as<Op>();
    if (!op) internal_error("bytecode: a call of something that is no function");
    if (op->name == "vm.kill_object") {
      Arg dead = value(n.args[0]);
      if (dead.kind == ArgKind::register_) b_.kill(dead);
      return dead;
    }
    for (std::string_view name : kCallOps)
      if (op->name == name) return call_through(n, finish);
    for (const VmOp& row : kVmOps)
      if (op->name == row.op) return finish(b_.builtin(row.builtin), flat_values(n.args));
    if (op->name.starts_with("call_tir")) wrong_phase(op->name, "CallTIRRewrite");
    if (op->name.starts_with("memory.") || op->name.starts_with("builtin.")) wrong_phase(op->name, "VMBuiltinLower");
    wrong_phase(text("the operator ", op->name), "LegalizeOps");
  }

  template <class F>
  Arg call_through(const RCall& n, F& finish) {
    std::vector<RExpr> args(n.args.begin() + 1, n.args.end());
    if (args.size() == 1)
      if (const Tuple* t = args[0].as<Tuple>()) args = t->items;
    if (const ExternFunc* f = n.args[0].as<ExternFunc>()) return finish(b_.builtin(f->name), values(args));
    if (const GlobalVar* f = n.args[0].as<GlobalVar>()) return finish(function(f->name), values(args));
    internal_error("bytecode: a packed call of something that is no function");
  }

  /// Tuples written as arguments give their fields.
  std::vector<Arg> flat_values(const std::vector<RExpr>& exprs) {
    std::vector<Arg> out;
    for (const RExpr& e : exprs) {
      const Tuple* t = e.as<Tuple>();
      for (const Arg& a : t ? values(t->items) : std::vector<Arg>{value(e)}) out.push_back(a);
    }
    return out;
  }

  Arg branch(const If& n) {
    Arg condition = b_.new_register(), out = b_.new_register();
    b_.call(b_.builtin("vm.builtin.read_if_cond"), {value(n.condition)}, condition);
    int32_t to_else = b_.if_(condition);
    copy(sequence(n.true_branch), out);
    int32_t to_end = b_.goto_();
    b_.patch(to_else);
    copy(sequence(n.false_branch), out);
    b_.patch(to_end);
    return out;
  }

  void copy(Arg from, Arg to) { b_.call(b_.builtin("vm.builtin.copy"), {from}, to); }

  Arg in_register(Arg a) {
    if (a.kind == ArgKind::register_) return a;
    Arg out = b_.new_register();
    copy(a, out);
    return out;
  }

  int32_t function(const std::string& name) {
    auto at = module_->functions.find(name);
    if (at == module_->functions.end()) internal_error(text("bytecode: the module has no function ", name));
    if (const tir::PrimFunc* f = at->second.as<tir::PrimFunc>()) return b_.kernel(name, kernel_signature(*f));
    if (const ExternDecl* f = at->second.as<ExternDecl>()) return b_.builtin(f->name);
    return b_.vm_function(name);
  }

  runtime::ExecutableBuilder& b_;
  ModuleRef module_;
  std::unordered_map<const RVar*, Arg> values_;
};

}  // namespace

Ref<runtime::Executable> vm_codegen(const ModuleRef& module) {
  runtime::ExecutableBuilder builder;
  for (const auto& [name, func] : module->functions)
    if (const tir::PrimFunc* f = func.as<tir::PrimFunc>()) builder.kernel(name, kernel_signature(*f));
  for (const auto& [name, func] : module->functions)
    if (const Function* f = func.as<Function>()) FunctionWriter(builder, module).write(name, *f);
  return builder.finish();
}

}  // namespace sator::codegen
