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
