#include "rules/cpu.h"

#include "base/interrupt.h"
#include "rules/grouped.h"
#include "rules/low_batch.h"
#include "rules/rule.h"
#include "schedule/primitives.h"
#include "tir/nodes.h"

namespace sator::rules {

const std::vector<CpuRule>& cpu_rules() {
  static const std::vector<CpuRule> rules = {
      {.name = "view", .does = "reshapes, which RewriteDataflowReshape makes views", .apply = schedule_view},
      {.name = "integer_product",
       .does = "sums of products of bytes in register tiles, four products at once",
       .apply = schedule_integer_product},
      {.name = "bf16_product",
       .does = "sums of products of bfloat16 in register tiles, two products at once",
       .apply = schedule_bf16_product},
      {.name = "product", .does = "sums of products in register tiles", .apply = schedule_product},
      {.name = "rows",
       .does = "reductions over the last axis and what follows from them, row by row",
       .apply = schedule_rows},
      {.name = "anything", .does = "outer loops parallel, inner loops vectorised", .apply = schedule_anything},
  };
  return rules;
}

namespace {

/// The block that a rule is about, the product if there is one, and its form.
void describe(const schedule::Schedule& s, AppliedSchedule& out) {
  if (schedule::BlockHandle product = product_block(s)) {
    const tir::Block& block = s.get(product);
    auto extent = [&](size_t i) {
      const Expr& e = block.iter_vars[i]->dom->extent;
      return as_int(e) ? text(*as_int(e)) : text(e);
    };
    out.block = product->text;
    out.form = text(
        "C[S, I, J] += A[S, I, K] * B[S, J, K] with S = 1, I = ", extent(0), ", J = ", extent(1), ", K = ", extent(2));
    return;
  }
  const std::vector<schedule::BlockHandle> leaves = leaf_blocks(s);
  if (!leaves.empty()) out.block = leaves.back()->text;
}

}  // namespace

namespace {

/// The function as the first rule that takes it schedules it.
tir::PrimFuncRef scheduled(const tir::PrimFuncRef& f, AppliedSchedule applied, const target::CpuLevel& level,
                           const ScheduleLog& log) {
  const schedule::Schedule fresh = named_schedule(f, applied.function);
  tir::PrimFuncRef done;
  for (const CpuRule& rule : cpu_rules()) {
    if (done) {
      applied.declined.push_back({std::string(rule.name), {.what = text(applied.rule, " came first")}});
      continue;
    }
    schedule::Schedule s = fresh;
    if (schedule::MaybeReason declined = rule.apply(s, level)) {
      applied.declined.push_back({std::string(rule.name), *declined});
      continue;
    }
    applied.rule = rule.name;
    if (log) applied.trace = string_attr(f->attrs, kLayoutTrace).value_or("") + s.trace().as_python();
    done = s.func();
  }
  if (log) {
    describe(fresh, applied);
    log(applied);
  }
  return done;
}

/// The function with a branch for each size that it is called with.
tir::PrimFuncRef scheduled_in_branches(const tir::PrimFuncRef& f, const std::string& name,
                                       const target::CpuLevel& level, const ScheduleLog& log) {
  std::vector<LowBatchBranch> branches = low_batch_branches(f);
  for (LowBatchBranch& b : branches) b.func = scheduled(b.func, {.function = name, .calls = b.calls}, level, log);
  return branches.size() == 1 ? branches.front().func : join_branches(f, branches);
}

}  // namespace

ModuleRef schedule_for_cpu(const ModuleRef& module, const target::CpuLevel& level, const ScheduleLog& log) {
  ModuleRef out = module;
  for (const auto& [name, func] : module->functions) {
    const tir::PrimFuncRef f = cast<tir::PrimFunc>(func);
    if (!f || int_attr(f->attrs, "tir.is_scheduled").value_or(0) != 0 || !tir::root_of(*f)) continue;
    check_interrupt();
    const std::optional<GroupedFunction> grouped = grouped_function(f);
    tir::PrimFuncRef done;
    if (grouped) {
      Attrs attrs = grouped->one->attrs;
      attrs[kLayoutTrace] = string_imm(text(string_attr(f->attrs, kLayoutTrace).value_or(""), kOneGroup, "\n"));
      const tir::PrimFuncRef one = with(grouped->one, &tir::PrimFunc::attrs, std::move(attrs));
      done = for_all_groups(f, *grouped, scheduled_in_branches(one, name, level, log));
    } else {
      done = scheduled_in_branches(f, name, level, log);
    }
    Attrs attrs = done->attrs;
    attrs["tir.is_scheduled"] = int_imm(1);
    attrs.erase(kLayoutTrace);
    out = with_function(std::move(out), name, with(done, &tir::PrimFunc::attrs, std::move(attrs)));
  }
  return out;
}

}  // namespace sator::rules
