// Regions of another target become functions of their own.
#include <algorithm>

#include "passes/device/device.h"
#include "target/config.h"
#include "tir/copy.h"

namespace sator::passes {

using namespace tir;

namespace {

class Splitter {
 public:
  Splitter(ModuleRef module, std::string name) : module_(std::move(module)), name_(std::move(name)) {}

  Stmt run(const Stmt& stmt) {
    if (const AttrStmt* n = stmt.as<AttrStmt>(); n && n->key == "target") {
      TargetConfigRef target = cast<TargetConfig>(n->node);
      if (!target)
        fail({.what = "a region whose target is no configuration",
              .needs = "T.attr(T.target(...), \"target\", 0)",
              .hint = "run AnnotateDeviceRegions, which writes it",
              .at = {{stmt, ""}}});
      return kernel(n->body, without_host(target));
    }
    NodeRef out = stmt->info().map_children(*stmt, [&](const NodeRef& child) -> NodeRef {
      const StmtNode* s = child->as<StmtNode>();
      return s ? NodeRef(run(ref(*s))) : child;
    });
    return cast<StmtNode>(out);
  }
  ModuleRef module_;  ///< with the kernels that were made

 private:
  Stmt kernel(Stmt body, const TargetConfigRef& target) {
    FreeNames used = free_names(body);
    std::ranges::sort(used.vars, {}, [](const VarRef& v) { return std::pair(!v->dtype.is_handle(), v->name); });
    bool called = device_of(target).is_called;
    if (called) body = seq({body, make<Evaluate>(call(i32, "tir.ret", {int_imm(0)}))});
    for (const BufferRef& b : used.buffers) body = make<DeclBuffer>(b, body);
    Attrs attrs = {{"target", target}, {"tir.noalias", bool_imm(true)}, {"tir.is_global_func", bool_imm(true)}};
    PrimFunc func;
    func.params = used.vars;
    func.body = body;
    func.ret_dtype = called ? i32 : DType::Void();
    func.attrs = std::move(attrs);
    std::string name = fresh_name(module_, name_ + "_kernel");
    module_ = with_function(std::move(module_), name, fresh_function(PrimFuncRef(new PrimFunc(func))));
    std::vector<Expr> args(used.vars.begin(), used.vars.end());
    Expr launched = call(func.ret_dtype, "global:" + name, std::move(args));
    if (!called) return make<Evaluate>(launched);
    VarRef code = make_var("kernel_error_code");
    Stmt check = make<AssertStmt>(
        eq(code, int_imm(0)), string_imm("Error executing compute kernel"), Stmt(make<Evaluate>(int_imm(0))));
    return make<LetStmt>(launched, code, check);
  }

  std::string name_;
};

}  // namespace

ModuleRef split_host_device(const ModuleRef& module, const PassContext&) {
  ModuleRef out = module;
  for (const auto& [name, func] : module->functions) {
    const PrimFunc* f = func.as<PrimFunc>();
    if (!f) continue;
    Splitter splitter(out, string_attr(f->attrs, "global_symbol").value_or(name));
    Stmt body = splitter.run(f->body);
    if (body != f->body) out = with_function(splitter.module_, name, with(*f, &PrimFunc::body, body));
  }
  return out;
}

}  // namespace sator::passes
