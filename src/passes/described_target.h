#pragma once

#include <optional>

#include "passes/pass.h"
#include "target/chip.h"

namespace sator::passes {

/// The chip that is compiled for; nothing where that is another kind of target.
std::optional<Chip> described_target(const PassContext& ctx);

}  // namespace sator::passes
