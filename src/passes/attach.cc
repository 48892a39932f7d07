#include "passes/attach.h"

#include "passes/op_pattern.h"
#include "relax/nodes.h"
#include "tir/nodes.h"

namespace sator::passes {

namespace {

constexpr const char* kUpperBounds = "tir_var_upper_bound";

template <class T>
ModuleRef edit_attrs(const ModuleRef& module, FunctionRef<void(Attrs&)> edit) {
  ModuleRef out = module;
  for (const auto& [name, func] : module->functions) {
    const T* f = func.template as<T>();
    if (!f) continue;
    Attrs attrs = f->attrs;
    edit(attrs);
    if (attrs != f->attrs) out = with_function(std::move(out), name, with(*f, &T::attrs, std::move(attrs)));
  }
  return out;
}

}  // namespace

ModuleRef attach_variable_bounds(const ModuleRef& module, const PassContext& ctx) {
  if (ctx.bounds.empty()) return module;
  Attrs bounds;
  for (const auto& [name, bound] : ctx.bounds) bounds[name] = int_imm(bound, i64);
  NodeRef dict = make<Dict>(bounds);
  return edit_attrs<relax::Function>(module, [&](Attrs& a) { a[kUpperBounds] = dict; });
}

std::map<std::string, int64_t> noted_bounds(const relax::Function& func) {
  std::map<std::string, int64_t> out;
  const auto at = func.attrs.find(kUpperBounds);
  if (at == func.attrs.end()) return out;
  auto refuse = [](const std::string& name) {
    fail({.what = text("the upper bound of ", name, " is no number"),
          .needs = text(kUpperBounds, ": an integer for each name of a size"),
          .hint = "write {\"n\": 4}"});
  };
  const Dict* bounds = at->second.as<Dict>();
  if (!bounds) refuse(kUpperBounds);
  for (const auto& [name, bound] : bounds->items) {
    const auto value = as_int(cast<ExprNode>(bound));
    if (!value) refuse(name);
    out[name] = *value;
  }
  return out;
}

ModuleRef attach_memory_plan_attr(const ModuleRef& module, const PassContext&) {
  NodeRef yes = bool_imm(true);
  return edit_attrs<relax::Function>(module, [&](Attrs& a) { a["relax.memory_plan_dynamic_func_output"] = yes; });
}

ModuleRef attach_additional_prim_funcs(const ModuleRef& module, const PassContext& ctx) {
  if (!ctx.additional) return module;
  ModuleRef out = module;
  for (const auto& [name, func] : ctx.additional->functions) {
    const tir::PrimFunc* f = func.as<tir::PrimFunc>();
    if (!f) continue;
    Attrs attrs = f->attrs;
    attrs["global_symbol"] = string_imm(name);
    tir::PrimFuncRef named = with(*f, &tir::PrimFunc::attrs, std::move(attrs));
    auto at = module->functions.find(name);
    if (at != module->functions.end() && !equal(at->second, Func(named)))
      fail({.what = text("the module has another function ", name, " already"),
            .needs = "names of their own for added functions",
            .hint = "rename one of the two"});
    out = with_function(std::move(out), name, named);
  }
  return out;
}

ModuleRef mark_scheduled_functions(const ModuleRef& module, const PassContext& ctx) {
  ModuleRef out = module;
  for (const auto& [name, func] : module->functions) {
    const tir::PrimFunc* f = func.as<tir::PrimFunc>();
    if (!f) continue;
    bool scheduled =
        ctx.scheduled.contains(name) || f->by_schedule || int_attr(f->attrs, "tir.is_scheduled").value_or(0) != 0;
    if (!scheduled) walk(f->body, [&](const tir::For& loop) { scheduled |= loop.kind != tir::LoopKind::serial; });
    if (!scheduled) continue;
    Attrs attrs = f->attrs;
    attrs.emplace("tir.is_scheduled", bool_imm(true));
    attrs.emplace("op_pattern", int_imm(static_cast<int64_t>(OpPattern::opaque)));
    out = with_function(std::move(out), name, with(*f, &tir::PrimFunc::attrs, std::move(attrs)));
  }
  return out;
}

ModuleRef place_scheduled_functions(const ModuleRef& module, const PassContext& ctx) {
  ModuleRef out = module;
  for (const auto& [name, func] : ctx.scheduled) {
    const tir::PrimFuncRef f = cast<tir::PrimFunc>(func);
    auto at = module->functions.find(name);
    if (f && at != module->functions.end())
      out = with_function(std::move(out), name, with(f, &tir::PrimFunc::attrs, Attrs(at->second->attrs)));
  }
  return out;
}

ModuleRef clean_up_tir_attrs(const ModuleRef& module, const PassContext&) {
  return edit_attrs<tir::PrimFunc>(module, [](Attrs& a) { a.erase("op_pattern"); });
}

}  // namespace sator::passes
