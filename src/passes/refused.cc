// Passes of TVM and MLC-LLM that have no meaning here: each is refused by name, with the reason and with what there is instead.
#include "passes/pass.h"

namespace sator::passes {

namespace {

struct Refused {
  const char* name;
  const char* why;
  const char* instead;
  std::vector<std::string> parameters = {};
};

const std::vector<Refused>& table() {
  static const char* const kKernels = "it calls a GPU library, and no code is made for GPUs";
  static const char* const kDevices = "it is about several GPUs, and no code is made for GPUs";
  static const char* const kVirtual = "virtual devices are not built: a program runs on one CPU";
  static const char* const kTuning = "schedules are not searched by measuring";
  static const char* const kTrain = "training is not built";
  static const char* const kGraphs = "CUDA graphs are for GPUs";
  static const char* const kOneDnn = "FuseOpsByPattern and RunCodegen with backend=dnnl call oneDNN's products";
  static const char* const kOwn = "kernels are the compiler's own (ApplyDefaultSchedule)";
  static const char* const kThreads = "kernels of a CPU share the work by themselves";
  static const char* const kEmitted = "builtins and calls of the runtime become machine code where that is written";
  static const char* const kBuild =
      "`sator build FILE.py --debug-dump DIR` shows the last TensorIR and what follows it";
  static const char* const kDsp = "it is about Hexagon or MemHammer";
  static const char* const kGpuCode = "no code is made for GPUs: their programs end as TensorIR";
  static const char* const kStages = "it lowers te's old stages, before there were blocks";
  static const char* const kBlocks = "te.create_prim_func makes blocks, which LowerOpaqueBlock and FlattenBuffer lower";
  static const std::vector<Refused> rows = {
      {"DispatchKVCacheCreation",
       "it puts the kernels of a paged cache into a program that leaves them open",
       "`sator compile` builds a model's create_paged_kv_cache whole, and the runtime has "
       "vm.builtin.paged_attention_kv_cache_create"},
      {"AttachGPUSamplingFunc",
       "it adds sampling kernels for GPUs",
       "the engine samples on the host; DispatchSampling for a graph's own"},
      {"AttachPipelineParallelStages", kDevices, kThreads},
      {"PipelineParallelRewrite", kDevices, kThreads},
      {"IPCAllReduceRewrite", kDevices, kThreads},
      {"LowerGPUIPCAllocStorage", kDevices, kThreads},
      {"FuseFTDequantizeEpilogue",
       kKernels,
       "FuseDequantizeMatmulEwise fuses dequantization and what follows into the product"},
      {"BLASDispatch", kKernels, kOneDnn},
      {"CublasDispatch", kKernels, kOneDnn},
      {"DispatchTritonKernel", kKernels, kOwn},
      {"RewriteCUDAGraph", kGraphs, kOwn},
      {"AttachCUDAGraphSymbolicCaptureHints", kGraphs, kOwn},
      {"AttachCUDAGraphAllocInitFunc", kGraphs, kOwn},
      {"RealizeVDevice", kVirtual, "R.to_vdevice(x, \"llvm\") copies a tensor in the CPU's memory"},
      {"UpdateVDevice",
       kVirtual,
       "R.to_vdevice(x, \"llvm\") copies a tensor in the CPU's memory",
       {"new_vdevice", "index"}},
      {"Gradient",
       kTrain,
       "write the backward pass as a graph of its own",
       {"func_name", "require_grads", "target_index"}},
      {"MakePackedAPI",
       "kernels take the addresses of their buffers, and the library's descriptor says what to check before",
       "MakeUnpackedAPI makes such parameters; `sator build` writes the descriptor"},
      {"LowerTVMBuiltin", kEmitted, kBuild},
      {"LowerIntrin", kEmitted, kBuild},
      {"LegalizePackedCalls", kEmitted, kBuild},
      {"LowerCustomDatatypes", "there are no dtypes of a user's", "the dtypes of TVM and ml_dtypes"},
      {"InstallDebugSpans", "machine code has no lines of the program", kBuild},
      {"InstrumentBoundCheckers",
       "accesses are proven or checked already: CheckIndices refuses indices from memory that leave their buffer",
       "sator.tir.analysis.OOBChecker, or CheckIndices"},
      {"LowerDeviceStorageAccessInfo", "memories of a device have no description of their own", kBuild},
      {"InferFragment", kGpuCode, "tensorize with wmma or mma intrinsics"},
      {"TransformMmaBufferLayout", kGpuCode, "tensorize with wmma or mma intrinsics"},
      {"ManifestSharedMemoryLocalStage", kGpuCode, "cache_read into \"local\" stages a load"},
      {"InjectPTXLDG32", kGpuCode, "InjectPTXAsyncCopy writes asynchronous copies"},
      {"LowerAutoCopy", kDsp, "cache_read and cache_write"},
      {"LowerAsyncDMA", kDsp, "InjectSoftwarePipeline overlaps copies"},
      {"LowerVtcmAlloc", kDsp, "the scopes of a described chip"},
      {"VerifyVTCMLimit", kDsp, "VerifyMemory"},
      {"VerifyGPUCode", "its limits are arguments of a search", "the target's limits: `sator passes --target T`"},
      {"TextureFlatten", "there are no textures", "FlattenBuffer"},
      {"StorageFlatten", kStages, kBlocks},
      {"InjectRollingBuffer", kStages, "the schedule's rolling_buffer"},
      {"ApplyLayoutTransforms", kStages, "the schedule's transform_layout"},
      {"RenormalizeSplitPattern",
       "it brings quotients of splits into the form that TVM's simplifier knows",
       "Simplify, which knows them as they are"},
      {"InjectCopyIntrin", "it is about VTA", "tensorize"},
      {"CoProcSync", "it is about VTA", "tensorize"},
      {"LiftAttrScope", "it is about VTA", "tensorize"},
      {"RemapThreadAxis", "thread axes are renamed in the program", "bind with the axis that is wanted"},
      {"ExtractPrimFuncConstants", "constants stay in their function", "T.allocate_const, or a parameter of the graph"},
      {"UnifiedStaticMemoryPlanner", "it plans whole programs for microcontrollers", "StaticPlanBlockMemory"},
      {"RemoveWeightLayoutRewriteBlock", kTuning, "AttachParamLayouts lays weights out"},
      {"UpdateParamStructInfo",
       "it asks a function of the user's for each parameter",
       "relax.transform.UpdateParamStructInfo(function) in Python; BindSymbolicVars; or declare what is known"},
      {"FewShotTuning", kTuning, kOwn},
      {"MetaScheduleApplyDatabase", kTuning, kOwn, {"work_dir", "enable_warning"}},
      {"MetaScheduleTuneTIR", kTuning, kOwn, {"work_dir", "max_trials_global"}},
      {"MetaScheduleTuneIRMod", kTuning, kOwn, {"params", "work_dir", "max_trials_global"}},
  };
  return rows;
}

}  // namespace

std::vector<Pass> refused_passes() {
  std::vector<Pass> out;
  for (const Refused& row : table()) {
    auto run = [&row](const ModuleRef&, const PassContext&) -> ModuleRef {
      fail({.what = text("the pass ", row.name, " is not built: ", row.why),
            .needs = "passes for a CPU or a described chip",
            .hint = row.instead});
    };
    out.push_back({row.name, text("not built: ", row.why), run, {}, {}, row.parameters});
  }
  return out;
}

}  // namespace sator::passes
