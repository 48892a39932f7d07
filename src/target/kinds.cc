#include "target/kinds.h"

#include <algorithm>
#include <map>
#include <string>

#include "base/text.h"

namespace sator {

namespace {

const std::vector<MemoryScope> kHostScopes = {{"global", "the machine's memory"},
                                              {"local", "registers, or the stack of the thread"}};
const std::vector<MemoryScope> kGpuScopes = {
    {"global", "the device's memory"},
    {"shared", "of the threads of a block; its size is known"},
    {"shared.dyn", "of the threads of a block; its size is given at the launch"},
    {"local", "registers of a thread"},
    {"warp", "registers that the threads of a warp share"}};

std::vector<MemoryScope> cuda_scopes() {
  std::vector<MemoryScope> all = kGpuScopes;
  for (MemoryScope s : {MemoryScope{"wmma.matrix_a", "a fragment of the left factor"},
                        MemoryScope{"wmma.matrix_b", "a fragment of the right factor"},
                        MemoryScope{"wmma.accumulator", "a fragment of the sum"},
                        MemoryScope{"m16n8k8.matrixA", "a fragment of the left factor"},
                        MemoryScope{"m16n8k8.matrixB", "a fragment of the right factor"},
                        MemoryScope{"m16n8k8.matrixC", "a fragment of the sum"}})
    all.push_back(s);
  return all;
}

/// Tags of one compute capability, without their "nvidia/".
struct GpuFamily {
  std::string_view arch, tags;
};

// Source: NVIDIA, "CUDA GPUs" (compute capabilities), under the tags that TVM v0.17 gives them; from sm_60 on.
constexpr GpuFamily kGpuFamilies[] = {
    {"sm_60", "tesla-p100 quadro-gp100"},
    {"sm_61",
     "tesla-p40 tesla-p4 quadro-p6000 quadro-p5000 quadro-p4000 quadro-p2200 quadro-p2000 quadro-p1000 "
     "quadro-p620 quadro-p600 quadro-p400 p620 p520 quadro-p5200 quadro-p4200 quadro-p3200 quadro-p3000 "
     "quadro-p500 nvidia-titan-xp nvidia-titan-x geforce-gtx-1080-ti geforce-gtx-1080 geforce-gtx-1070-ti "
     "geforce-gtx-1070 geforce-gtx-1060 geforce-gtx-1050"},
    {"sm_62", "jetson-tx2"},
    {"sm_70", "nvidia-v100 quadro-gv100 nvidia-titan-v"},
    {"sm_72", "jetson-agx-xavier"},
    {"sm_75",
     "nvidia-t4 quadro-rtx-8000 quadro-rtx-6000 quadro-rtx-5000 quadro-rtx-4000 rtx-5000 rtx-4000 rtx-3000 "
     "t2000 t1000 nvidia-titan-rtx geforce-rtx-2080-ti geforce-rtx-2080 geforce-rtx-2070 geforce-rtx-2060"},
    {"sm_80", "nvidia-a100 nvidia-a30"},
    {"sm_86",
     "nvidia-a40 nvidia-a10 nvidia-a10g nvidia-a16 nvidia-a2 rtx-a6000 geforce-rtx-3090-ti geforce-rtx-3090 "
     "geforce-rtx-3080-ti geforce-rtx-3080 geforce-rtx-3070-ti geforce-rtx-3070 geforce-rtx-3060"},
    {"sm_87", "jetson-orin-nano jetson-agx-orin-32gb jetson-agx-orin-64gb"},
    {"sm_89", "geforce-rtx-4090"},
    {"sm_90a", "nvidia-h100"},
};

// Sources: NVIDIA's white papers of A100 (40 MB), H100 (50 MB), Ada (72 MB).
constexpr std::pair<std::string_view, int64_t> kL2Bytes[] = {
    {"nvidia-a100", 40 << 20}, {"nvidia-h100", 50 << 20}, {"geforce-rtx-4090", 72 << 20}};

}  // namespace

std::span<const TargetKind> target_kinds() {
  static const std::vector<TargetKind> kinds = {
      {"llvm", "CPUs, through LLVM", "cpu", 1, true, "cpu", kHostScopes},
      {"c", "C source for CPUs", "cpu", 1, true, "cpu", kHostScopes},
      {"stackvm", "an interpreter of TVM's", "cpu", 1, true, "cpu", kHostScopes},
      {"cuda", "NVIDIA's GPUs", "cuda", 2, false, "cuda gpu", cuda_scopes()},
      {"nvptx", "NVIDIA's GPUs, through LLVM", "cuda", 2, false, "cuda gpu", cuda_scopes()},
      {"rocm", "AMD's GPUs", "rocm", 10, false, "rocm gpu", kGpuScopes},
      {"opencl", "GPUs and accelerators with OpenCL", "opencl", 4, false, "opencl gpu", kGpuScopes},
      {"metal", "Apple's GPUs", "metal", 8, false, "metal gpu", kGpuScopes},
      {"vulkan", "GPUs with Vulkan", "vulkan", 7, false, "vulkan gpu", kGpuScopes},
      {"webgpu", "GPUs in browsers", "webgpu", 15, false, "webgpu gpu", kGpuScopes},
      {"hexagon", "Qualcomm's DSPs", "hexagon", 16, true, "hexagon cpu", kHostScopes},
      {"ext_dev", "a device of the user's", "ext_dev", 12, true, "", kHostScopes},
      {"aocl", "Intel's FPGAs", "aocl", 32, false, "aocl hls", kHostScopes},
      {"sdaccel", "Xilinx's FPGAs", "sdaccel", 33, false, "sdaccel hls", kHostScopes},
      {"chip", "an accelerator that is only described", "chip", 12, true, "chip", {}},
  };
  return kinds;
}

const TargetKind* find_target_kind(std::string_view name) {
  for (const TargetKind& kind : target_kinds())
    if (kind.name == name) return &kind;
  return nullptr;
}

const NvidiaGpu* find_nvidia_gpu(std::string_view tag) {
  static const std::map<std::string, NvidiaGpu> gpus = [] {
    std::map<std::string, NvidiaGpu> all;
    for (const GpuFamily& family : kGpuFamilies)
      for (std::string_view name : split(family.tags, ' ')) {
        NvidiaGpu gpu{family.arch};
        for (const auto& [known, bytes] : kL2Bytes)
          if (known == name) gpu.l2_bytes = bytes;
        all.emplace(text("nvidia/", name), gpu);
      }
    return all;
  }();
  auto at = gpus.find(std::string(tag));
  return at == gpus.end() ? nullptr : &at->second;
}

}  // namespace sator
