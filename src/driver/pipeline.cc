#include "driver/pipeline.h"

#include "passes/run.h"

namespace sator::driver {

const std::vector<Phase>& phases() {
  static const std::string kGpu = "it calls a GPU library";
  static const std::string kOneDevice = "it is about several GPUs";
  static const std::vector<Phase> all = {
      {0,
       "attach what later phases need",
       {{"AttachVariableBounds", ""},
        {"AttachAdditionalPrimFuncs", ""},
        {"AttachMemoryPlanAttr", ""},
        {"BindTarget", ""},
        {"MarkScheduledFunctions", ""},
        {"AttachCUDAGraphSymbolicCaptureHints", "CUDA graphs are for GPUs"},
        {"AttachPipelineParallelStages", kOneDevice}}},
      {1,
       "rewrite the graph",
       {{"FuseFTDequantizeEpilogue", kGpu},
        {"BLASDispatch", "every kernel is our own; libraries only where asked"},
        {"FuseAddRMSNorm", ""},
        {"FuseTransposeMatmul", ""},
        {"DeadCodeElimination", ""}}},
      {2,
       "lower to tensor programs",
       {{"DispatchSampling", "sampling runs on the host"},
        {"DispatchSortScan", "sorting runs on the host"},
        {"LegalizeOps", ""},
        {"AnnotateTIROpPattern", ""},
        {"FoldConstant", ""},
        {"FuseOps", ""},
        {"FuseTIR", ""}}},
      {3,
       "fuse weights' dequantization, drop what is dead",
       {{"AnnotateTIROpPattern", ""},
        {"FuseDequantizeMatmulEwise", ""},
        {"FuseDequantizeTake", ""},
        {"DeadCodeElimination", ""},
        {"CleanUpTIRAttrs", ""}}},
      {4,
       "lay out parameters, schedule",
       {{"LiftTransformParams", ""},
        {"DeadCodeElimination", ""},
        {.name = "LowBatchGemvSpecialize", .per_level = true},
        {.name = "ApplyDefaultSchedule", .per_level = true}}},
      {5,
       "lower to the virtual machine",
       {{"LiftTIRGlobalBufferAlloc", "kernels take scratch memory from their thread's workspace"},
        {"RewriteDataflowReshape", ""},
        {"ToNonDataflow", ""},
        {"RemovePurityChecking", ""},
        {"CallTIRRewrite", ""},
        {"IPCAllReduceRewrite", kOneDevice},
        {"StaticPlanBlockMemory", ""},
        {"RewriteCUDAGraph", "CUDA graphs are for GPUs"},
        {"LowerAllocTensor", ""},
        {"KillAfterLastUse", ""},
        {"VMBuiltinLower", ""},
        {"VMShapeLower", ""},
        {"AttachGlobalSymbol", ""}}},
  };
  return all;
}

ModuleRef run_phase(const Phase& phase, ModuleRef module, const passes::PassContext& ctx) {
  for (const Step& step : phase.steps)
    if (step.skipped.empty() && !step.per_level) module = passes::run_pass(passes::pass_named(step.name), module, ctx);
  return module;
}

}  // namespace sator::driver
