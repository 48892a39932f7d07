// The passes by name, in pipeline order: what `sator opt --passes` knows. A new pass is one line here and one file.
#include "passes/attach.h"
#include "passes/byoc.h"
#include "passes/check_sizes.h"
#include "passes/dead_code_elimination.h"
#include "passes/device/device.h"
#include "passes/dispatch_sort_scan.h"
#include "passes/fold_constant.h"
#include "passes/fuse_ops.h"
#include "passes/fuse_patterns.h"
#include "passes/graph/graph.h"
#include "passes/inline_prim_funcs.h"
#include "passes/legalize_ops.h"
#include "passes/lift_transform_params.h"
#include "passes/lower/lower.h"
#include "passes/op_pattern.h"
#include "passes/split_call_tir.h"
#include "passes/to_vm.h"

#include <algorithm>

namespace sator::passes {

namespace {

/// A pass of the lowering, on every tensor program of the module.
Pass over_programs(const LowerPass& lower) {
  auto run = [step = lower](const ModuleRef& module, const PassContext& ctx) {
    LowerOptions options{.config = ctx.config, .target = ctx.target, .note = [&](const Reason& reason) {
                           ctx.say(std::string(step.name), text(reason.what, ": ", reason.hint));
                         }};
    ModuleRef out = module;
    for (const auto& [name, func] : module->functions) {
      tir::PrimFuncRef program = cast<tir::PrimFunc>(func);
      if (!program) continue;
      if (tir::PrimFuncRef lowered = run_lower_pass(step, program, options); lowered != program)
        out = with_function(std::move(out), name, lowered);
    }
    return out;
  };
  std::vector<std::string> parameters;
  for (std::string_view p : split(lower.parameters, ' ')) {
    if (!p.empty()) parameters.emplace_back(p);
  }
  return {std::string(lower.name), std::string(lower.does), run, {}, {}, parameters};
}

std::vector<Pass> with_lowering(std::vector<Pass> all) {
  for (Pass& p : graph_passes()) all.push_back(std::move(p));
  for (std::span<const LowerPass> part : {lower_passes(), more_lower_passes()}) {
    for (const LowerPass& lower : part) {
      // Simplify runs several times in the lowering, and is one pass.
      if (std::ranges::find(all, lower.name, &Pass::name) == all.end()) all.push_back(over_programs(lower));
    }
  }
  for (Pass& p : refused_passes()) all.push_back(std::move(p));
  return all;
}

}  // namespace

const std::vector<Pass>& passes() {
  // Calls that change their arguments have effects, which dataflow blocks and pure functions do not allow.
  static const std::vector<const Condition*> effects = {&kNoDataflow, &kNoPurity};
  static const std::vector<Pass> all = with_lowering({
      {"AttachVariableBounds", "notes the upper bounds of symbolic sizes", attach_variable_bounds},
      {"AttachAdditionalPrimFuncs",
       "adds tensor functions for callers outside of the module",
       attach_additional_prim_funcs},
      {"AttachMemoryPlanAttr", "lets results of dynamic shape be planned", attach_memory_plan_attr},
      {"BindTarget", "notes the target on tensor functions", bind_target, {}, {}, {"target"}},
      {"MarkScheduledFunctions",
       "notes which tensor functions came with a schedule: none is fused or scheduled again",
       mark_scheduled_functions},
      {"FuseOpsByPattern",
       "groups what a backend takes whole, by patterns",
       [](const ModuleRef& module, const PassContext& ctx) { return fuse_ops_by_pattern(module, ctx); },
       {},
       {},
       {"backend"}},
      {"MergeCompositeFunctions",
       "joins neighbouring groups of one backend",
       [](const ModuleRef& module, const PassContext& ctx) { return merge_composite_functions(module, ctx); }},
      {"RunCodegen", "makes each such group the backend's kernel", run_codegen},
      {"InlinePrimFuncs",
       "puts tensor functions in the place of their calls in others",
       [](const ModuleRef& module, const PassContext&) { return inline_prim_funcs(module, Inlined::all); }},
      {"CheckSizes", "checks symbolic sizes that calls need to be equal", check_sizes},
      {"FuseAddRMSNorm", "joins a residual sum and the norm that follows", fuse_add_rms_norm},
      {"FuseTransposeMatmul", "multiplies by a transposed matrix as it lies", fuse_transpose_matmul},
      {"FuseDequantizeTranspose",
       "leaves out the transposition of a dequantized weight that a product of one row turns back",
       fuse_dequantize_transpose},
      {"SplitCallTIRByPattern",
       "lets outer functions compute what programs begin with",
       split_call_tir_by_pattern,
       {},
       {},
       {"patterns", "fcodegen"}},
      {"DispatchSortScan", "lets the runtime sort", dispatch_sort_scan},
      {"LegalizeOps",
       "turns ops into tensor functions",
       [](const ModuleRef& module, const PassContext& ctx) { return legalize_ops(module, ctx); },
       {},
       {},
       {"form"}},
      {"AnnotateTIROpPattern", "notes how each tensor function may be fused", annotate_tir_op_pattern},
      {"FoldConstant", "computes what depends on constants alone", fold_constant},
      {"FuseOps", "groups calls that one kernel can do", fuse_ops},
      {"FuseTIR", "makes each group one tensor function", fuse_tir},
      {"FuseDequantizeMatmulEwise",
       "dequantizes a weight inside the product that reads it",
       fuse_dequantize_matmul_ewise},
      {"FuseDequantizeTake", "dequantizes only the rows that are gathered", fuse_dequantize_take},
      {"DeadCodeElimination", "takes out what nobody uses", dead_code_elimination, {}, {}, {"entry_functions"}},
      {"CleanUpTIRAttrs", "takes off the attributes of fusion", clean_up_tir_attrs},
      {"LiftTransformParams",
       "moves what depends on parameters alone into transform_params",
       lift_transform_params,
       {},
       {},
       {"shared_transform"}},
      {"PlaceScheduledFunctions", "puts functions in as schedules of the user's left them", place_scheduled_functions},
      {"RewriteDataflowReshape", "makes reshapes views", rewrite_dataflow_reshape},
      {"ToNonDataflow", "makes dataflow blocks plain ones", to_non_dataflow, {}, {&kNoDataflow, &kNoPackedDataflow}},
      {"RemovePurityChecking", "takes functions for pure", remove_purity_checking, {&kNoPackedDataflow}, {&kNoPurity}},
      {"CallTIRRewrite", "allocates the results of call_tir", call_tir_rewrite, effects, {&kNoCallTir}},
      {"StaticPlanBlockMemory",
       "lets temporary tensors share memory",
       static_plan_block_memory,
       {},
       {},
       {"same_dtype"}},
      {"LowerAllocTensor", "gives the other allocations storages", lower_alloc_tensor, {}, {&kNoAlloc}},
      {"KillAfterLastUse", "frees after the last use", kill_after_last_use, effects},
      {"VMBuiltinLower",
       "turns the remaining ops into runtime builtins",
       vm_builtin_lower,
       {&kNoDataflow, &kNoPurity, &kNoAlloc}},
      {"VMShapeLower",
       "keeps symbolic sizes in a heap",
       vm_shape_lower,
       {&kNoDataflow, &kNoPurity, &kNoCallTir},
       {},
       {"emit_err_ctx", "trust_weights"}},
      {"AttachGlobalSymbol", "names every function", attach_global_symbol},
      {"AnnotateEntryFunc", "notes the tensor function that callers begin with", annotate_entry_func},
      {"AnnotateDeviceRegions", "marks what runs on a device", annotate_device_regions},
      {"SplitHostDevice", "makes regions of another target functions", split_host_device},
      {"LowerDeviceKernelLaunch", "turns calls of kernels into launches", lower_device_kernel_launch},
      {"MakeUnpackedAPI", "makes functions that others link to plain C functions", make_unpacked_api},
      {"VerifyMemory", "refuses programs for a GPU that touch their tensors outside of threads", verify_memory},
      {"DefaultGPUSchedule", "binds loops to the threads of a GPU where nothing does", default_gpu_schedule},
      {"ConvertSSA", "gives every function variables of its own", convert_ssa},
  });
  return all;
}

const Pass* pass_leaving(const Condition& condition) {
  for (const Pass& p : passes()) {
    if (std::ranges::find(p.leaves, &condition) != p.leaves.end()) return &p;
  }
  return nullptr;
}

const Pass& pass_named(const std::string& name) {
  std::vector<std::string> names;
  for (const Pass& p : passes()) {
    if (p.name == name) return p;
    names.push_back(p.name);
  }
  const std::vector<std::string> near = nearest_names(name, names);
  fail({.what = text("there is no pass ", name),
        .needs = "a pass's name",
        .hint = near.empty() ? "`sator opt --list` lists them" : text("the nearest are: ", join(near, ", "))});
}

}  // namespace sator::passes
