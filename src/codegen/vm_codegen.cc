#include "codegen/vm_codegen.h"

#include <algorithm>
#include <set>

#include "codegen/signature.h"
#include "passes/lower/lower.h"
#include "relax/nodes.h"
#include "relax/ops/table.h"
#include "relax/struct_info.h"
#include "runtime/executable_builder.h"

namespace sator::codegen {

using namespace relax;
using runtime::Arg;

namespace {

/// Names that passes give to variables say nothing about the model.
bool is_generic(const std::string& name) {
  for (const char* generic : {"_", "lv", "gv", "alloc", "storage", "shape", "size", "item", "shape_heap", "param"}) {
    if (!name.starts_with(generic)) continue;
    if (std::all_of(name.begin() + static_cast<std::ptrdiff_t>(std::string_view(generic).size()),
                    name.end(),
                    [](char c) { return (c >= '0' && c <= '9') || c == '_'; }))
      return true;
  }
  return false;
}

class FunctionWriter {
 public:
  FunctionWriter(runtime::ExecutableBuilder& out, const ModuleRef& module, const std::string& name)
      : out_(out), module_(module), name_(name) {}

  void write(const Function& f) {
    std::vector<std::string> params;
    for (const RVarRef& p : f.params) params.push_back(p->name);
    walk(f.body, [&](const RCall& call) {
      const RVarRef var = is_op(ref(call), "vm.kill_object") ? cast<RVar>(call.args[0]) : nullptr;
      if (var) killed_.insert(var);
      return true;
    });
    out_.begin_function(name_, params);
    for (size_t i = 0; i < f.params.size(); ++i) registers_[f.params[i]] = Arg::reg(static_cast<int64_t>(i));
    out_.ret(write_seq(f.body));
    out_.end_function();
  }

 private:
  [[noreturn]] void refuse(const RExpr& e, const std::string& why) {
    const std::string& op = op_name(e);
    fail({.what = text("bytecode of ", name_, ": ", op.empty() ? e->info().name : "R." + op, " is left: ", why),
          .needs = "calls of tensor functions and of the runtime",
          .hint = op.empty() ? "run the passes of phase 5 before" : "replace the op by others, or by R.call_packed",
          .where = text("in func ", name_)});
  }

  [[noreturn]] void refuse_missing(const GlobalVar& gv) {
    fail({.what = text("function ", name_, " names a function ", gv.name, " that the module has not"),
          .needs = "functions of the module",
          .hint = text("add ", gv.name, ", or name an external one with R.ExternFunc"),
          .where = text("in func ", name_)});
  }

  Arg in_register(const Arg& arg) {
    if (arg.kind == runtime::ArgKind::register_) return arg;
    return copied(arg);
  }
  Arg copied(const Arg& arg) {
    Arg reg = out_.new_register();
    out_.call(out_.builtin("vm.builtin.copy"), {arg}, reg);
    return reg;
  }

  Arg write_seq(const RExpr& e) {
    const SeqExpr* seq = e.as<SeqExpr>();
    if (!seq) return in_register(value(e));
    for (const BindingBlockRef& block : seq->blocks) {
      for (const Binding& b : block->bindings) {
        const VarBinding* v = b.as<VarBinding>();
        if (!v)
          fail({.what = text("function ", name_, " has a match_cast, which the virtual machine has not"),
                .needs = "a graph whose shapes are lowered",
                .hint = "run VMShapeLower before",
                .where = text("in func ", name_)});
        if (auto arg = bind(*v)) registers_[v->var] = *arg;
      }
    }
    return in_register(value(seq->body));
  }

  /// The register (or constant) that holds the binding's value; nothing for a call whose result nobody reads.
  std::optional<Arg> bind(const VarBinding& b) {
    const std::string where = is_generic(b.var->name) ? std::string() : b.var->name;
    if (const RCall* call = b.value.as<RCall>()) return write_call(*call, where);
    if (const If* branch = b.value.as<If>()) return write_if(*branch);
    // Freeing a variable must not take the value of its other name.
    const RVarRef other = cast<RVar>(b.value);
    if (other && (killed_.contains(other) || killed_.contains(b.var))) return copied(value(other));
    return value(b.value);
  }

  std::optional<Arg> write_call(const RCall& call, const std::string& where) {
    std::vector<Arg> args;
    auto all = [&](size_t from) {
      for (size_t i = from; i < call.args.size(); ++i) args.push_back(value(call.args[i]));
    };
    auto run = [&](int32_t function) {
      Arg reg = out_.new_register();
      out_.call(function, args, reg, where);
      return reg;
    };
    if (const GlobalVar* gv = call.op.as<GlobalVar>()) {
      auto at = module_->functions.find(gv->name);
      if (at == module_->functions.end()) refuse_missing(*gv);
      all(0);
      if (const tir::PrimFunc* f = at->second.as<tir::PrimFunc>()) {
        // A number that the program returns is stored in its last parameter.
        const auto returned = string_attr(f->attrs, passes::kReturnsByStore);
        Arg cell;
        if (returned) {
          cell = out_.new_register();
          const Arg dtype = out_.constant(runtime::Value(DType::parse(*returned).value()));
          out_.call(out_.builtin("vm.builtin.alloc_scalar"), std::vector{dtype}, cell);
          args.push_back(cell);
        }
        out_.call(out_.kernel(gv->name, kernel_signature(*f)), args, {}, where);
        if (!returned) return {};
        const Arg number = out_.new_register();
        out_.call(out_.builtin("vm.builtin.read_scalar"), std::vector{cell}, number);
        return number;
      }
      return run(out_.vm_function(gv->name));
    }
    if (const ExternFunc* f = call.op.as<ExternFunc>()) {
      all(0);
      return run(out_.builtin(f->name));
    }
    if (call.op.as<RVar>()) {
      args.push_back(value(call.op));
      all(0);
      return run(out_.builtin("vm.builtin.invoke_closure"));
    }
    const Op* op = call.op.as<Op>();
    if (!op) refuse(call.op, "it cannot be called");
    if (op->name == "call_builtin_with_ctx") {
      const ExternFunc* f = call.args[0].as<ExternFunc>();
      const relax::Tuple* tuple = call.args[1].as<relax::Tuple>();
      if (!f || !tuple) refuse(ref(call), "its arguments have another form");
      for (const RExpr& a : tuple->items) args.push_back(value(a));
      return run(out_.builtin(f->name));
    }
    if (op->name == "null_value") return run(out_.builtin("vm.builtin.null_value"));
    if (op->name == "vm.kill_object") {
      out_.kill(value(call.args[0]));
      return {};
    }
    if (op->name == "vm.alloc_storage" || op->name == "vm.alloc_tensor" || op->name == "vm.call_tir_dyn") {
      all(0);
      return run(out_.builtin("vm.builtin." + op->name.substr(3)));
    }
    const OpDef* def = find_op(op->name);
    std::string why = def && def->unsupported ? def->unsupported(call.attrs, call) : "";
    const bool is_formula = def && def->has_formula();
    if (why.empty() && is_formula && !has_shapes(call.sinfo)) why = "the shape of its result is not known";
    refuse(ref(call), why.empty() ? "an earlier phase should have lowered it" : why);
  }

  Arg write_if(const If& branch) {
    Arg condition = out_.new_register(), result = out_.new_register();
    out_.call(out_.builtin("vm.builtin.read_if_cond"), {value(branch.condition)}, condition);
    int32_t to_else = out_.if_(condition);
    out_.call(out_.builtin("vm.builtin.copy"), {write_seq(branch.true_branch)}, result);
    int32_t to_end = out_.goto_();
    out_.patch(to_else);
    out_.call(out_.builtin("vm.builtin.copy"), {write_seq(branch.false_branch)}, result);
    out_.patch(to_end);
    return result;
  }

  Arg value(const RExpr& e) {
    if (RVarRef v = cast<RVar>(e)) {
      auto at = registers_.find(v);
      if (at == registers_.end())
        fail({.what = text("function ", name_, " uses ", v->name, ", which has no value there"),
              .needs = "variables that are bound before they are used",
              .hint = text("bind ", v->name, " before, or make it a parameter"),
              .where = text("in func ", name_)});
      return at->second;
    }
    if (const PrimValue* p = e.as<PrimValue>()) {
      if (auto i = as_int(p->value)) return Arg::imm(*i);
      if (const FloatImm* f = p->value.as<FloatImm>()) return out_.constant(runtime::Value(f->value));
      refuse(e, "its value is not known; run VMShapeLower before");
    }
    if (const RString* s = e.as<RString>()) return out_.constant(runtime::Value(s->value));
    if (const DTypeImm* d = e.as<DTypeImm>()) return out_.constant(runtime::Value(d->value));
    if (const Constant* c = e.as<Constant>()) return out_.constant(runtime::Value(c->data.tensor));
    if (const ShapeExpr* s = e.as<ShapeExpr>()) {
      std::vector<int64_t> dims;
      for (const Expr& extent : s->values) {
        auto v = as_int(extent);
        if (!v) refuse(e, "an extent is not known; run VMShapeLower before");
        dims.push_back(*v);
      }
      return out_.constant(runtime::Value(runtime::Shape::of(runtime::Dims(dims))));
    }
    if (const relax::Tuple* t = e.as<relax::Tuple>()) {
      std::vector<Arg> args;
      for (const RExpr& item : t->items) args.push_back(value(item));
      Arg reg = out_.new_register();
      out_.call(out_.builtin("vm.builtin.make_tuple"), args, reg);
      return reg;
    }
    if (const TupleGetItem* get = e.as<TupleGetItem>()) {
      Arg reg = out_.new_register();
      out_.call(out_.builtin("vm.builtin.tuple_getitem"), {value(get->tuple), Arg::imm(get->index)}, reg);
      return reg;
    }
    if (const GlobalVar* gv = e.as<GlobalVar>()) {
      auto at = module_->functions.find(gv->name);
      if (at == module_->functions.end()) refuse_missing(*gv);
      if (const tir::PrimFunc* f = at->second.as<tir::PrimFunc>())
        return Arg::function(out_.kernel(gv->name, kernel_signature(*f)));
      return Arg::function(out_.vm_function(gv->name));
    }
    if (const ExternFunc* f = e.as<ExternFunc>()) return Arg::function(out_.builtin(f->name));
    refuse(e, "it has no form in the virtual machine");
  }

  runtime::ExecutableBuilder& out_;
  const ModuleRef& module_;
  const std::string& name_;
  std::map<RVarRef, Arg> registers_;
  std::set<RVarRef> killed_;
};

}  // namespace

Ref<runtime::Executable> vm_codegen(const ModuleRef& module) {
  runtime::ExecutableBuilder out;
  for (const auto& [name, func] : module->functions) {
    if (const Function* f = func.as<Function>()) FunctionWriter(out, module, name).write(*f);
  }
  // Those that only callers outside of the module call; with pointers, only tensor functions call them.
  for (const auto& [name, func] : module->functions) {
    const tir::PrimFunc* f = func.as<tir::PrimFunc>();
    const bool is_kernel =
        f && std::ranges::all_of(f->params, [&](const VarRef& p) { return !p->dtype.is_handle() || f->buffer_of(p); });
    if (is_kernel) out.kernel(name, kernel_signature(*f));
  }
  return out.finish();
}

}  // namespace sator::codegen
