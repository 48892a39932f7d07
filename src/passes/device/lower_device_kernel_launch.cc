// Calls of functions of another target become launches, or calls by name.
#include <set>

#include "passes/device/device.h"
#include "target/config.h"
#include "tir/nodes.h"

namespace sator::passes {

using namespace tir;

namespace {

constexpr const char* kDynamicShared = "tir.use_dyn_shared_memory";
constexpr int kDeviceKernelLaunch = 2;  ///< the value of the attribute calling_conv

/// What a launch of a function has to say.
struct Kernel {
  TargetConfigRef target;
  std::string symbol;
  std::vector<VarRef> params;
  std::vector<std::string>
      launch_params;              ///< thread axes in order of first sight, then the size of dynamic shared memory
  std::vector<Expr> launch_args;  ///< in terms of the parameters
};

Kernel kernel_of(const std::string& name, const PrimFunc& func) {
  TargetConfigRef target = target_attr(func.attrs);
  if (!target)
    fail({.what = text("function ", name, " has no target"),
          .needs = "the attribute target",
          .hint = "run BindTarget before"});
  Kernel out{without_host(target), string_attr(func.attrs, "global_symbol").value_or(name), func.params, {}, {}};
  Expr shared;
  std::set<const ThreadAxis*> seen;
  walk(
      func.body,
      [&](const AttrStmt& n) {
        const ThreadAxis* axis = n.node.as<ThreadAxis>();
        if (n.key != "thread_extent" || !axis) return;
        if (std::ranges::find(out.launch_params, axis->tag) != out.launch_params.end()) return;
        out.launch_params.push_back(axis->tag);
        out.launch_args.push_back(n.value);
      },
      [&](const Allocate& n) {
        if (n.data->scope != "shared.dyn") return;
        if (shared)
          fail({.what = text("function ", name, " allocates dynamic shared memory twice"),
                .needs = "one allocation in shared.dyn",
                .hint = "run MergeSharedMemoryAllocations before",
                .at = {{ref(n), ""}}});
        shared = int_imm(1);
        for (const Expr& extent : n.extents) shared = shared * extent;
        shared = shared * static_cast<int64_t>(n.dtype.bytes());
      });
  if (shared) {
    out.launch_params.push_back(kDynamicShared);
    out.launch_args.push_back(shared);
  }
  return out;
}

class Launcher {
 public:
  explicit Launcher(const Module& module) {
    for (const auto& [name, func] : module.functions) {
      if (const PrimFunc* f = func.as<PrimFunc>()) kernels_.emplace(name, kernel_of(name, *f));
    }
  }

  PrimFuncRef with_launches(const std::string& name, const PrimFuncRef& func) {
    const Kernel& caller = kernels_.at(name);
    Stmt body = transform(func->body, [&](const Call& n) -> Expr {
      if (!n.op.starts_with("global:")) return ref(n);
      std::string callee = n.op.substr(7);
      auto at = kernels_.find(callee);
      return at == kernels_.end() ? Expr(&n) : called(n, caller, callee, at->second);
    });
    return body == func->body ? func : with(func, &PrimFunc::body, body);
  }

  PrimFuncRef with_marks(const std::string& name, const PrimFuncRef& func) const {
    bool launched = launched_.contains(name), external = external_.contains(name);
    if (launched && external)
      fail({.what = text("function ", name, " is launched in one place and called in another"),
            .needs = "callers of one kind for each function",
            .hint = "copy the function for each target"});
    if (!launched && !external) return func;
    PrimFunc out = *func;
    out.attrs["tir.is_global_func"] = bool_imm(true);
    out.attrs["global_symbol"] = string_imm(kernels_.at(name).symbol);
    if (launched) {
      std::vector<NodeRef> params;
      for (const std::string& p : kernels_.at(name).launch_params) params.push_back(string_imm(p));
      out.attrs["calling_conv"] = int_imm(kDeviceKernelLaunch);
      out.attrs["tir.kernel_launch_params"] = make<Array>(std::move(params));
      out.ret_dtype = DType::Void();
      out.body = transform(out.body, [&](const Evaluate& n) -> Stmt {
        const Call* c = n.value.as<Call>();
        if (!c || c->op != "tir.ret") return ref(n);
        if (c->args.size() == 1 && is_zero(c->args[0])) return make<Evaluate>(int_imm(0));
        fail({.what = text("the kernel ", name, " returns a value"),
              .needs = "kernels that return nothing, or T.ret(0)",
              .hint = "store the value in a buffer",
              .at = {{ref(n), ""}}});
      });
    }
    return PrimFuncRef(new PrimFunc(std::move(out)));
  }

 private:
  Expr called(const Call& n, const Kernel& caller, const std::string& name, const Kernel& callee) {
    if (equal(caller.target, callee.target)) return ref(n);
    if (device_of(caller.target).name == device_of(callee.target).name) {
      external_.insert(name);
      std::vector<Expr> args = {string_imm(name)};
      args.insert(args.end(), n.args.begin(), n.args.end());
      return call(n.dtype, "tir.call_extern", std::move(args));
    }
    if (n.args.size() != callee.params.size())
      fail(
          {.what = text("function ", name, " takes ", callee.params.size(), " arguments, and is given ", n.args.size()),
           .needs = "as many arguments as parameters",
           .hint = "correct the call"});
    launched_.insert(name);
    VarMap given;
    for (size_t i = 0; i < n.args.size(); ++i) {
      if (n.args[i]->dtype == callee.params[i]->dtype) given[callee.params[i]] = n.args[i];
    }
    std::vector<Expr> args = {string_imm(callee.symbol)};
    args.insert(args.end(), n.args.begin(), n.args.end());
    for (const Expr& e : callee.launch_args) args.push_back(substitute(e, given));
    return call(n.dtype == DType::Void() ? i32 : n.dtype, "tir.tvm_call_packed", std::move(args));
  }

  std::map<std::string, Kernel> kernels_;
  std::set<std::string> launched_, external_;
};

}  // namespace

ModuleRef lower_device_kernel_launch(const ModuleRef& module, const PassContext&) {
  Launcher launcher(*module);
  ModuleRef out = module;
  for (const auto& [name, func] : module->functions) {
    if (PrimFuncRef f = cast<PrimFunc>(func))
      out = with_function(std::move(out), name, launcher.with_launches(name, f));
  }
  const ModuleRef lowered = out;
  for (const auto& [name, func] : lowered->functions) {
    if (PrimFuncRef f = cast<PrimFunc>(func)) out = with_function(std::move(out), name, launcher.with_marks(name, f));
  }
  return out;
}

}  // namespace sator::passes
