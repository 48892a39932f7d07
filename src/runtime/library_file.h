#pragma once

#include <cstddef>
#include <span>

namespace sator::runtime {

/// Whether the file lacks what its own headers speak of. The loader would map such a file, and the process would die of
/// SIGBUS where the file ends. What is no 64-bit ELF file at all is left to the loader's own words.
bool is_cut_off(std::span<const std::byte> bytes);

}  // namespace sator::runtime
