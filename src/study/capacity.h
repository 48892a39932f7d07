// Whether a model and what it works on have room in a chip's outermost memory.
#pragma once

#include <functional>
#include <span>

#include "llm/workload.h"
#include "study/result.h"
#include "target/chip.h"

namespace sator::study {

/// What one chip has to hold of a model for one sequence of `positions` tokens.
///   params     those of its program: under tensor parallelism its share of layers, all of embedding and head
///   calls      of all steps: activations are what one launch reads and writes of them, of the launch with most
/// The result has no capacity where the chip states none.
MemoryNeed memory_need(const llm::Program& program, int64_t positions, std::span<const llm::KernelCall> calls,
                       const Chip& chip);

/// The least number of chips above `chips`, of 2, 4, 8 ..., that share each layer and then have room; nothing if none has, or
/// the chip has no link to so many.
///   need_of   what each of that number has to hold; nothing where the model cannot be shared so
std::optional<int64_t> chips_with_room(const Chip& chip, int64_t chips,
                                       const std::function<std::optional<MemoryNeed>(int64_t)>& need_of);

}  // namespace sator::study
