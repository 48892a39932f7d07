// What a kernel does and keeps beside one of its products.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "dataflow/mapping/mapper.h"
#include "dataflow/programs/merged.h"
#include "dataflow/programs/pipeline.h"

namespace sator::dataflow {

/// A kernel's statements, which of them hand elements on in registers, and the chip.
struct Surroundings {
  const Merged& merged;
  const Pipeline& pipeline;
  const std::vector<size_t>& pass_of;  // per statement
  const Chip& chip;

  bool on_vector_unit(size_t statement) const { return !merged.products[statement] && !merged.gone[statement]; }
  /// The memory that the vector unit reads and writes a tensor in: what a product makes lies with the array's outputs.
  size_t memory_of(const std::string& tensor, size_t statement) const;
  /// Whether an earlier statement of the pass has read or made the same element.
  bool at_hand(size_t statement, const Access& access) const;
};

/// The kernel's own tensors that need room on the chip while a product runs: those that it reads and makes, and those that
/// the vector unit makes of what it makes. What is handed on in registers or made on the way into the array needs none.
///   in_parts   per access and iterator of the product, as Beside::in_parts
///   outside    tensors that stand outside already
std::vector<Beside::Standing> standing_beside(const Surroundings& around, size_t product,
                                              const std::vector<std::vector<bool>>& in_parts,
                                              const std::set<std::string>& outside);

}  // namespace sator::dataflow
