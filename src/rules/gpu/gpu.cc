#include "rules/gpu/gpu.h"

#include <algorithm>

#include "rules/gpu/rules.h"

namespace sator::rules {

const std::vector<GpuRule>& gpu_rules() {
  using namespace gpu;
  static const std::vector<GpuRule> rules = {
      {.name = "MatmulInt8Tensorization",
       .does =
           "products of int8 summed in int32, each of more than 64 rows, columns and terms, on tensor cores (sm_70)",
       .apply = apply_matmul_int8_tensor_core},
      {.name = "MatmulTensorization",
       .does = "products of float16, each of more than 64 rows, columns and terms, on tensor cores (sm_70)",
       .apply = apply_matmul_f16_tensor_core},
      {.name = "Matmul",
       .does = "C[S, I, J] += A[S, I, K] * B[S, J, K]: tiles of 4 x 4 per thread, operands in shared memory",
       .apply = apply_matmul},
      {.name = "LowBatchGEMV",
       .does = "a matrix times a symbolic number of vectors, padded to a bucket of rows",
       .by_default = false,
       .apply = apply_low_batch_gemv},
      {.name = "GEMV",
       .does = "a matrix times a vector, summed along the matrix's innermost axis",
       .apply = apply_gemv},
      {.name = "RMSNorm",
       .does = "x * rsqrt(mean(x * x)) * weight: a row per thread block",
       .by_default = false,
       .apply = apply_rms_norm},
      {.name = "Transpose",
       .does = "a copy with two axes exchanged, by tiles in shared memory",
       .by_default = false,
       .apply = apply_transpose},
      {.name = "Reduction",
       .does = "one sum, and what follows element by element: threads share the sum",
       .apply = apply_reduction},
      {.name = "GeneralReduction",
       .does = "several reductions over the same last axes and what follows from them: a row per thread block",
       .apply = apply_general_reduction},
      {.name = "Fallback", .does = "spatial loops over blocks of threads", .apply = apply_fallback},
  };
  return rules;
}

std::vector<const GpuRule*> gpu_rules_named(std::span<const std::string> names) {
  std::vector<const GpuRule*> out;
  for (const GpuRule& rule : gpu_rules()) {
    if (names.empty() && rule.by_default) out.push_back(&rule);
  }
  for (const std::string& name : names) {
    auto at = std::ranges::find(gpu_rules(), name, &GpuRule::name);
    if (at == gpu_rules().end()) {
      std::vector<std::string> known;
      for (const GpuRule& rule : gpu_rules()) known.emplace_back(rule.name);
      fail({.what = text("there is no rule ", string_literal(name)),
            .needs = "a rule for GPUs",
            .hint = text("the nearest are: ", join(nearest_names(name, known), ", "))});
    }
    out.push_back(&*at);
  }
  return out;
}

namespace {

/// The function as the first rule that takes it schedules it; null if none does.
tir::PrimFuncRef scheduled_for_gpu(const tir::PrimFuncRef& f, const std::string& name, const GpuContext& context,
                                   std::span<const GpuRule* const> rules, const ScheduleLog& log) {
  AppliedSchedule applied{.function = name};
  const schedule::Schedule fresh = named_schedule(f, name);
  tir::PrimFuncRef done;
  for (const GpuRule* rule : rules) {
    if (done) {
      applied.declined.push_back({std::string(rule->name), {.what = text(applied.rule, " came first")}});
      continue;
    }
    schedule::Schedule s = fresh;
    GpuChoice choice;
    schedule::MaybeReason declined;
    try {
      declined = rule->apply(s, context, choice);
    } catch (const Error& refused) {
      declined = refused.reason;
      declined->what = text("of its steps, ", declined->what);
    }
    if (declined) {
      applied.declined.push_back({std::string(rule->name), *declined});
      continue;
    }
    applied.rule = rule->name;
    applied.block = choice.block;
    applied.form = choice.form;
    applied.configuration = choice.configuration;
    if (log) applied.trace = s.trace().as_python();
    done = s.func();
  }
  if (log) log(applied);
  return done;
}

}  // namespace

ModuleRef schedule_for_gpu(const ModuleRef& module, const TargetConfigRef& target,
                           std::span<const GpuRule* const> rules, int64_t bucket, const ScheduleLog& log) {
  ModuleRef out = module;
  for (const auto& [name, func] : module->functions) {
    const tir::PrimFuncRef f = cast<tir::PrimFunc>(func);
    if (!f || int_attr(f->attrs, "tir.is_scheduled").value_or(0) != 0 || !tir::root_of(*f)) continue;
    TargetConfigRef own = target_attr(f->attrs);
    if (!own) own = target;
    if (!own)
      fail({.what = text("function ", name, " has no target"),
            .needs = "the attribute target, or a target that is compiled for",
            .hint = "run BindTarget before, or pass --target"});
    const std::optional<target::NvidiaGpu> gpu = target::nvidia_gpu(own);
    if (!gpu) continue;
    tir::PrimFuncRef done = scheduled_for_gpu(f, name, {.gpu = *gpu, .bucket = bucket}, rules, log);
    if (!done) continue;
    Attrs attrs = done->attrs;
    attrs["tir.is_scheduled"] = int_imm(1);
    out = with_function(std::move(out), name, with(done, &tir::PrimFunc::attrs, std::move(attrs)));
  }
  return out;
}

}  // namespace sator::rules
