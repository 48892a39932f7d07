// Functions that others link to, as C calls them: a pointer for each buffer, and a status as result.
#include "passes/device/device.h"
#include "target/config.h"
#include "tir/nodes.h"

namespace sator::passes {

using namespace tir;

namespace {

/// The pointers in place of the parameters that stand for buffers.
std::vector<VarRef> unpacked_params(const PrimFunc& func) {
  std::vector<VarRef> out;
  for (const VarRef& p : func.params) {
    BufferRef b = func.buffer_of(p);
    out.push_back(b ? b->data : p);
  }
  return out;
}

/// Null where the function stays as it is: others do not link to it, or its target has no host.
TargetConfigRef host_to_be(const std::string& name, const PrimFunc& func) {
  if (!has_attr(func.attrs, "global_symbol")) return nullptr;
  TargetConfigRef target = target_attr(func.attrs);
  if (!target)
    fail({.what = text("function ", name, " has no target"),
          .needs = "the attribute target",
          .hint = "run BindTarget before"});
  return host_of(target);
}

PrimFuncRef unpacked(const PrimFunc& func, const TargetConfigRef& host) {
  PrimFunc out = func;
  out.params = unpacked_params(func);
  out.buffer_map.clear();
  out.ret_dtype = i32;
  out.body = seq({func.body, make<Evaluate>(call(i32, "tir.ret", {int_imm(0)}))});
  if (!func.buffer_map.empty()) {
    auto about = [&](const char* key, int64_t value) {
      out.body = make<AttrStmt>(NodeRef(string_imm("default")), std::string(key), int_imm(value), out.body);
    };
    about("device_type", device_of(target_attr(func.attrs)).number);
    about("device_id", 0);
  }
  out.attrs["target"] = host;
  return PrimFuncRef(new PrimFunc(std::move(out)));
}

}  // namespace

ModuleRef make_unpacked_api(const ModuleRef& module, const PassContext&) {
  std::map<std::string, const PrimFunc*> changed;
  for (const auto& [name, func] : module->functions) {
    const PrimFunc* f = func.as<PrimFunc>();
    if (f && host_to_be(name, *f)) changed[name] = f;
  }
  ModuleRef out = module;
  for (const auto& [name, func] : module->functions) {
    const PrimFunc* f = func.as<PrimFunc>();
    if (!f) continue;
    // What is given as an array to a function of these is given as its pointer.
    Stmt body = transform(f->body, [&](const Call& n) -> Expr {
      auto callee = n.op.starts_with("global:") ? changed.find(n.op.substr(7)) : changed.end();
      if (callee == changed.end() || callee->second->params.size() != n.args.size()) return ref(n);
      std::vector<Expr> args = n.args;
      for (size_t i = 0; i < args.size(); ++i) {
        if (!callee->second->buffer_of(callee->second->params[i])) continue;
        const Call* array = args[i].as<Call>();
        if (!array || array->op != "tir.tvm_stack_make_array")
          fail({.what = text("argument ", i, " of a call of ", callee->first, " is no array"),
                .needs = "T.tvm_stack_make_array(...) where the parameter is a buffer",
                .hint = "pass the pointer as an array",
                .at = {{ref(n), ""}}});
        args[i] = array->args[0];
      }
      return call(i32, n.op, std::move(args));  // the status
    });
    PrimFuncRef g = body == f->body ? ref(*f) : with(*f, &PrimFunc::body, body);
    if (changed.contains(name)) g = unpacked(*g, host_to_be(name, *f));
    if (g.get() != f) out = with_function(std::move(out), name, g);
  }
  return out;
}

}  // namespace sator::passes
