#pragma once

#include <optional>

#include "passes/pass.h"
#include "target/chip.h"

namespace sator::passes {

/// The chip that is compiled for: PassContext::target as the file of one ("FILE.toml"), or the name of a shipped one; nothing
/// where it names something else. Errors: a file that is no chip's.
std::optional<Chip> described_target(const PassContext& ctx);

}  // namespace sator::passes
