// The attribute "target" of tensor functions.
#include "passes/device/device.h"
#include "target/config.h"
#include "tir/nodes.h"

namespace sator::passes {

using tir::PrimFunc;

namespace {

NodeRef given_target(const PassContext& ctx) {
  auto at = ctx.config.find("BindTarget.target");
  if (at != ctx.config.end()) {
    if (const StringImm* text = at->second.as<StringImm>()) return target_from_text(text->value);
    return at->second;
  }
  return ctx.target ? NodeRef(string_imm(ctx.target->spelling())) : nullptr;
}

void bind_to(Attrs& attrs, const TargetConfigRef& target) {
  bool exposed = has_attr(attrs, "global_symbol");
  bool for_host = int_attr(attrs, "tir.is_host_func").value_or(0) != 0;
  attrs.erase("tir.is_host_func");
  TargetConfigRef host = host_of(target);
  if (TargetConfigRef own = target_attr(attrs)) {
    if (host && !host_of(own) && exposed) attrs["target"] = with_host(own, host);
  } else if (for_host) {
    TargetConfigRef machine = host ? host : target_from_text("llvm");
    attrs["target"] = with_host(machine, machine);
  } else {
    attrs["target"] = exposed ? target : without_host(target);
  }
}

}  // namespace

ModuleRef bind_target(const ModuleRef& module, const PassContext& ctx) {
  NodeRef target = given_target(ctx);
  if (!target) return module;
  ModuleRef out = module;
  for (const auto& [name, func] : module->functions) {
    const PrimFunc* f = func.as<PrimFunc>();
    if (!f) continue;
    Attrs attrs = f->attrs;
    if (TargetConfigRef config = cast<TargetConfig>(target)) {
      bind_to(attrs, config);
    } else {
      attrs.emplace("target", target);
    }
    if (attrs != f->attrs) out = with_function(std::move(out), name, with(*f, &PrimFunc::attrs, std::move(attrs)));
  }
  return out;
}

}  // namespace sator::passes
