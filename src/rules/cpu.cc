#include "rules/cpu.h"

#include "rules/rule.h"
#include "tir/nodes.h"

namespace sator::rules {

const std::vector<CpuRule>& cpu_rules() {
  static const std::vector<CpuRule> rules = {
      {.name = "integer_product",
       .does = "sums of products of bytes in register tiles, four products at once",
       .apply = schedule_integer_product},
      {.name = "product", .does = "sums of products in register tiles", .apply = schedule_product},
      {.name = "rows",
       .does = "reductions over the last axis and what follows from them, row by row",
       .apply = schedule_rows},
      {.name = "anything", .does = "outer loops parallel, inner loops vectorised", .apply = schedule_anything},
  };
  return rules;
}

ModuleRef schedule_for_cpu(const ModuleRef& module, const target::CpuLevel& level, const ExplainSchedule& explain) {
  ModuleRef out = module;
  for (const auto& [name, func] : module->functions) {
    const tir::PrimFunc* f = func.as<tir::PrimFunc>();
    if (!f || int_attr(f->attrs, "tir.is_scheduled").value_or(0) != 0 || !tir::root_of(*f)) continue;
    schedule::Schedule fresh(ref(*f), name);
    fresh.work_on(name);
    for (const CpuRule& rule : cpu_rules()) {
      schedule::Schedule s = fresh;
      schedule::MaybeReason declined = rule.apply(s, level);
      if (explain) explain(name, rule.name, declined);
      if (declined) continue;
      tir::PrimFuncRef done = s.func();
      Attrs attrs = done->attrs;
      attrs["tir.is_scheduled"] = int_imm(1);
      out = with_function(out, name, with(done, &tir::PrimFunc::attrs, std::move(attrs)));
      break;
    }
  }
  return out;
}

}  // namespace sator::rules
