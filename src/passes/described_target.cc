#include "passes/described_target.h"

namespace sator::passes {

std::optional<Chip> described_target(const PassContext& ctx) {
  return ctx.target && ctx.target->chip() ? std::optional(*ctx.target->chip()) : std::nullopt;
}

}  // namespace sator::passes
