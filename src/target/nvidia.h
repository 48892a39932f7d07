// What is known of an NVIDIA GPU: its generation, and what one thread block may take.
#pragma once

#include "target/config.h"

namespace sator::target {

/// A device of NVIDIA's.
struct NvidiaDevice {
  int compute_capability = 0;  ///< 80: sm_80
  int64_t l2_bytes = 0;        ///< 0: not stated here

  /// As compilers take it. Of 9.0 it is sm_90a, whose instructions only that generation has.
  std::string arch() const;
};
/// A device by TVM's tag, "nvidia/nvidia-a100"; nothing where there is none of that tag.
std::optional<NvidiaDevice> find_nvidia_device(std::string_view tag);

/// Limits of one GPU. Those given are of every device that CUDA supports, for kernels that ask for no more.
/// Source: NVIDIA, "CUDA C++ Programming Guide", section "Compute Capabilities".
struct NvidiaGpu {
  int compute_capability = 50;  ///< 80: sm_80. Tensor cores begin at 70
  int64_t max_threads_per_block = 1024;
  int64_t max_shared_memory_bytes = 49152;  ///< of one thread block
  int64_t registers_per_block = 65536;
  int64_t warp_size = 32;  ///< threads
};

/// The GPU of a target of kind "cuda"; nothing if it is of another kind. Attributes of the target (arch, max_threads_per_block,
/// max_shared_memory_per_block, thread_warp_size) win over what its tag says.
/// Errors: an unknown device of NVIDIA; an arch that is not sm_ and a number.
std::optional<NvidiaGpu> nvidia_gpu(const TargetConfigRef& target);

}  // namespace sator::target
