// Marks what runs on a device with the device's target.
#include "passes/device/device.h"
#include "target/config.h"
#include "tir/nodes.h"

namespace sator::passes {

using namespace tir;

namespace {

Stmt annotated(const Stmt& stmt, const TargetConfigRef& device) {
  if (const AttrStmt* n = stmt.as<AttrStmt>()) {
    if (n->key == "target") return stmt;
    if (n->key == "thread_extent" || n->key == "device_scope" || n->key == "pipeline_exec_scope")
      return make<AttrStmt>(NodeRef(device), std::string("target"), int_imm(0), stmt);
  }
  NodeRef out = stmt->info().map_children(*stmt, [&](const NodeRef& child) -> NodeRef {
    const StmtNode* s = child->as<StmtNode>();
    return s ? NodeRef(annotated(ref(*s), device)) : child;
  });
  return cast<StmtNode>(out);
}

}  // namespace

ModuleRef annotate_device_regions(const ModuleRef& module, const PassContext&) {
  ModuleRef out = module;
  for (const auto& [name, func] : module->functions) {
    const PrimFunc* f = func.as<PrimFunc>();
    if (!f) continue;
    TargetConfigRef target = target_attr(f->attrs);
    if (!target)
      fail({.what = text("function ", name, " has no target"),
            .needs = "the attribute target",
            .hint = "run BindTarget before"});
    if (!host_of(target)) continue;
    Stmt body = annotated(f->body, without_host(target));
    if (body != f->body) out = with_function(std::move(out), name, with(*f, &PrimFunc::body, body));
  }
  return out;
}

}  // namespace sator::passes
