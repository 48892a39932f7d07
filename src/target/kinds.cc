#include "target/kinds.h"

#include <algorithm>
#include <string>

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

}  // namespace

std::span<const TargetKind> target_kinds() {
  static const std::vector<TargetKind> kinds = {
      {"llvm",
       "CPUs, through LLVM",
       "cpu",
       1,
       true,
       "cpu",
       kHostScopes,
       "mattr mcpu mtriple mfloat-abi mabi num-cores fast-math fast-math-nnan fast-math-ninf fast-math-nsz "
       "fast-math-arcp "
       "fast-math-contract fast-math-reassoc opt-level cl-opt jit vector-width"},
      {"c", "C source for CPUs", "cpu", 1, true, "cpu", kHostScopes},
      {"stackvm", "an interpreter of TVM's", "cpu", 1, true, "cpu", kHostScopes},
      {"cuda",
       "NVIDIA's GPUs",
       "cuda",
       2,
       false,
       "cuda gpu",
       cuda_scopes(),
       "mcpu arch max_shared_memory_per_block max_threads_per_block thread_warp_size registers_per_block "
       "l2_cache_size_bytes max_num_threads"},
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

}  // namespace sator
