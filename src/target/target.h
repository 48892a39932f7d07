// What the compiler knows of a machine, as one value: a CPU, a GPU, a chip that is only described.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "target/chip.h"
#include "target/config.h"
#include "target/cpu.h"
#include "target/kinds.h"

namespace sator {

/// A number that a machine limits programs by.
struct TargetLimit {
  std::string name;
  int64_t value = 0;
  std::string unit;
};

/// A target, from a text:
///
///     llvm                              this machine, at the best level that kernels are written for
///     llvm -mcpu=cascadelake            a CPU as LLVM names it: the best level that it runs
///     native  portable  avx512,avx2     levels of instruction sets, as `--isa` takes them
///     cuda -arch=sm_90                  other kinds with attributes
///     nvidia/nvidia-a100                a device by TVM's tag
///     {"kind": "llvm", "host": ...}     a configuration as JSON
///     edge_npu32, FILE.toml             a described chip
///
/// Kinds and tags for which nothing is built are targets too: driver/backend.h says what is.
class Target {
 public:
  /// Errors: no kind, tag or chip of that name (with the nearest); a CPU that has no level; JSON that is no configuration.
  static Target parse(const std::string& text);
  static Target of_levels(std::vector<const target::CpuLevel*> levels);

  const TargetKind& kind() const { return *kind_; }
  /// As it was given: "llvm", "nvidia/nvidia-a100".
  const std::string& spelling() const { return spelling_; }
  /// Attributes, "kind" among them, as functions carry them.
  const TargetConfigRef& config() const { return config_; }
  /// Levels of instruction sets that a library for the CPU has, best first; none for other kinds.
  const std::vector<const target::CpuLevel*>& levels() const { return levels_; }
  /// The described chip; null for other kinds.
  const Chip* chip() const { return chip_.get(); }
  bool is_cpu() const { return !levels_.empty(); }

  std::vector<std::string> keys() const;
  /// Of a described chip its memories, outermost first.
  std::vector<MemoryScope> scopes() const;
  std::vector<TargetLimit> limits() const;

 private:
  Target() = default;
  const TargetKind* kind_ = nullptr;
  std::string spelling_;
  TargetConfigRef config_;
  std::vector<const target::CpuLevel*> levels_;
  std::shared_ptr<const Chip> chip_;
};

}  // namespace sator
