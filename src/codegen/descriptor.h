#pragma once

#include <string>
#include <vector>

#include "target/cpu.h"

namespace sator::codegen {

/// A kernel's name in the program and its symbol in the objects.
struct DescriptorKernel {
  std::string name, symbol;
};
struct DescriptorLevel {
  const target::CpuLevel* level;
  std::vector<DescriptorKernel> kernels;
};

/// The object that defines `sator_model()` and what it points to (SatorModel of abi.h).
std::string descriptor_object(const std::vector<DescriptorLevel>& levels, const std::string& executable,
                              const std::string& metadata_json, const std::string& source_hash);

}  // namespace sator::codegen
