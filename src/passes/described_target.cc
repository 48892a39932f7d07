#include "passes/described_target.h"

#include <algorithm>

namespace sator::passes {

std::optional<Chip> described_target(const PassContext& ctx) {
  if (ctx.target.empty()) return {};
  const std::vector<std::string> shipped = shipped_chips();
  if (!ctx.target.ends_with(".toml") && std::ranges::find(shipped, ctx.target) == shipped.end()) return {};
  return find_chip(ctx.target);
}

}  // namespace sator::passes
