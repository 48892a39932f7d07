#pragma once

#include <span>
#include <string>
#include <string_view>

namespace sator::runtime {

/// A level of instructions that kernels are compiled for. A row of isa.cc.
struct IsaLevel {
  std::string_view name;
  std::string_view needs;  ///< of the CPU, in words
  /// Whether this process may use it now. For AMX this asks the operating system for permission, which may be refused.
  bool (*available)();
};

/// All levels, best first within an architecture.
std::span<const IsaLevel> isa_levels();
/// The level with that name; null if there is none.
const IsaLevel* find_isa_level(std::string_view name);
/// The levels that this process may use, "avx512, avx2"; "none" if there are none.
std::string available_isa_text();

}  // namespace sator::runtime
