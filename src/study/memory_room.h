// How much memory models may take.
#pragma once

#include <cstdint>

#include "base/file.h"
#include "llm/scheme.h"

namespace sator::study {

/// Bytes that this process can still take before the machine, its control group or its own limit has none left.
int64_t memory_room_bytes();

/// Bytes that a model takes at most while it is opened and run: its weights as they are read and as they are laid out, the
/// KV cache and the logits of a step.
int64_t bytes_to_open(const fs::path& folder, const llm::Scheme& scheme);

}  // namespace sator::study
