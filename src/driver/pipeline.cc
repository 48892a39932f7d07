#include "driver/pipeline.h"

#include "base/error.h"
#include "passes/run.h"
#include "rules/default_schedule.h"
#include "rules/gpu/gpu.h"
#include "rules/param_layouts.h"
#include "rules/rule.h"

namespace sator::driver {

namespace {

/// Phases 0 to 3: the program as the cost engine reads it.
std::vector<Phase> phases_before_schedules() {
  static const std::string kGpu = "it calls a GPU library";
  static const std::string kOneDevice = "it is about several GPUs";
  return {{0,
           "attach what later phases need",
           {{"AttachVariableBounds"},
            {"AttachAdditionalPrimFuncs"},
            {"AttachMemoryPlanAttr"},
            {"InlinePrimFuncs"},
            {"BindTarget"},
            {"MarkScheduledFunctions"},
            {"AttachCUDAGraphSymbolicCaptureHints", "CUDA graphs are for GPUs"},
            {"AttachPipelineParallelStages", kOneDevice}}},
          {1,
           "rewrite the graph",
           {{"LambdaLift"},
            {"CheckSizes"},
            {"FuseFTDequantizeEpilogue", kGpu},
            {"BLASDispatch", "every kernel is our own; libraries only where asked"},
            {"FuseAddRMSNorm"},
            {"FuseTransposeMatmul"},
            {"DeadCodeElimination"}}},
          {2,
           "lower to tensor programs",
           {{"DispatchSampling", "sampling runs on the host"},
            {"DispatchSortScan"},
            {"LegalizeOps"},
            {"AnnotateTIROpPattern"},
            {"FoldConstant"},
            {"FuseOps"},
            {"FuseTIR"}}},
          {3,
           "fuse weights' dequantization, drop what is dead",
           {{"AnnotateTIROpPattern"},
            {"FuseDequantizeMatmulEwise"},
            {"FuseDequantizeTake"},
            {"DeadCodeElimination"},
            {"CleanUpTIRAttrs"}}}};
}

/// The phases for CPUs.
std::vector<Phase> phases_of_cpu() {
  static const std::string kOneDevice = "it is about several GPUs";
  std::vector<Phase> all = phases_before_schedules();
  all.insert(all.end(),
             {
                 {4,
                  "lay out parameters, schedule",
                  {{.name = "AttachParamLayouts", .changes_parameters = true},
                   {.name = "LiftTransformParams", .changes_parameters = true},
                   {"DeadCodeElimination"},
                   {"PlaceScheduledFunctions"},
                   {"LowBatchGemvSpecialize", "ApplyDefaultSchedule does it: a branch for each number of rows"},
                   {.name = "ApplyDefaultSchedule", .per_level = true}}},
                 {5,
                  "lower to the virtual machine",
                  {{"LiftTIRGlobalBufferAlloc", "kernels take scratch memory from their thread's workspace"},
                   {"RewriteDataflowReshape"},
                   {"ToNonDataflow"},
                   {"RemovePurityChecking"},
                   {"StreamParams"},
                   {"CallTIRRewrite"},
                   {"IPCAllReduceRewrite", kOneDevice},
                   {"StaticPlanBlockMemory"},
                   {"RewriteCUDAGraph", "CUDA graphs are for GPUs"},
                   {"LowerAllocTensor"},
                   {"KillAfterLastUse"},
                   {"VMBuiltinLower"},
                   {"VMShapeLower"},
                   {"AttachGlobalSymbol"}}},
             });
  return all;
}

/// The phases for NVIDIA's GPUs: up to the schedules, after which there is no code to make.
std::vector<Phase> phases_of_gpu() {
  std::vector<Phase> all = phases_before_schedules();
  for (Step& step : all[2].steps)
    if (step.name == "DispatchSortScan") step.skipped = "the runtime's sort is a CPU's";
  all.push_back({4, "schedule", {{"PlaceScheduledFunctions"}, {"ApplyDefaultSchedule"}, {"VerifyMemory"}}});
  return all;
}

/// The phases for described chips. What a chip takes whole is asked for by the routes that do so (study/routes.h).
std::vector<Phase> phases_of_chip() {
  static const std::string kRoutes = "only on the routes `pattern` and `merged`";
  std::vector<Phase> all = phases_before_schedules();
  all[1].steps.insert(all[1].steps.begin(),
                      {{"FuseOpsByPattern", kRoutes}, {"MergeCompositeFunctions", kRoutes}, {"RunCodegen", kRoutes}});
  for (Step& step : all[2].steps)
    if (step.name == "DispatchSortScan") step.skipped = "sorts are costed as tensor programs";
  return all;
}

std::vector<RuleName> names_of_cpu_rules() {
  std::vector<RuleName> out;
  for (const rules::CpuRule& rule : rules::cpu_rules()) out.push_back({rule.name, rule.does});
  return out;
}

std::vector<RuleName> names_of_gpu_rules() {
  std::vector<RuleName> out;
  for (const rules::GpuRule& rule : rules::gpu_rules())
    if (rule.by_default) out.push_back({rule.name, rule.does});
  return out;
}

/// What no kind of target decides: rules are rows of rules/.
passes::Pass rule_pass(const char* name, const char* does,
                       ModuleRef (*run)(const ModuleRef&, const passes::PassContext&)) {
  return {.name = name, .does = does, .run = run};
}

const std::vector<Backend>& backends() {
  static const std::vector<Backend> all = {
      {.kind = "llvm",
       .phases = phases_of_cpu(),
       .rules = names_of_cpu_rules(),
       .lowering = passes::lower_passes(),
       .emitter = "LLVM 19: an object per kernel and level; the virtual machine's bytecode for graphs"},
      {.kind = "cuda",
       .phases = phases_of_gpu(),
       .rules = names_of_gpu_rules(),
       .lowering = {},
       .emitter = "none: `sator build -o FILE.py` writes the scheduled program as TVMScript"},
      {.kind = "chip",
       .phases = phases_of_chip(),
       .rules = {{"array", "products along the rows and columns of the chip's array, as `sator study` maps them"}},
       .lowering = {},
       .emitter = "the cost engine: figures, no code"},
  };
  return all;
}

}  // namespace

const Backend* find_backend(const Target& target) {
  for (const Backend& b : backends())
    if (b.kind == target.kind().name) return &b;
  return nullptr;
}

const Backend& backend_of(const Target& target) {
  if (const Backend* found = find_backend(target)) return *found;
  std::vector<std::string> built;
  for (const Backend& b : backends()) built.emplace_back(b.kind);
  fail({.what = text("nothing is built for ", target.spelling(), ": ", target.kind().does),
        .needs = text("a target of the kinds ", join(built, ", ")),
        .hint = "its programs are parsed, printed, scheduled and interpreted all the same"});
}

const std::vector<passes::Pass>& all_passes() {
  static const std::vector<passes::Pass> all = [] {
    std::vector<passes::Pass> out = passes::passes();
    out.push_back(
        rule_pass("AttachParamLayouts", "stores weights that products read in panels", rules::attach_param_layouts));
    out.push_back(rule_pass(
        "ApplyDefaultSchedule", "schedules tensor functions by the target's rules", rules::apply_default_schedule));
    out.back().parameters = {"rules"};
    return out;
  }();
  return all;
}

const passes::Pass& step_named(const std::string& name) {
  for (const passes::Pass& pass : all_passes())
    if (pass.name == name) return pass;
  return passes::pass_named(name);
}

ModuleRef run_phase(const Phase& phase, ModuleRef module, const passes::PassContext& ctx, const AfterPass& after) {
  for (const Step& step : phase.steps) {
    if (!step.skipped.empty() || step.per_level) continue;
    module = passes::run_pass(step_named(step.name), module, ctx);
    if (after) after(step.name, module);
  }
  return module;
}

}  // namespace sator::driver
