// The rule for what no other rule takes: always parallel, and vectorised where the innermost loop is spatial.
#include "rules/rule.h"
#include "schedule/primitives.h"
#include "tir/nodes.h"

namespace sator::rules {

using namespace schedule;
using namespace tir;

namespace {

void schedule_block(Schedule& s, const BlockHandle& block) {
  std::vector<Loop> loops = get_loops(s, block);
  if (loops.empty()) return;
  // The first spatial loop runs in parallel.
  attempt([&] { parallel(s, loops.front()); });
  Loop last = loops.back();
  if (loops.size() < 2) return;
  const For& inner = s.get(last);
  bool spatial = true;
  const BlockRealize& realize = s.realize(block);
  for (size_t i = 0; i < realize.values.size(); ++i) {
    if (uses_var(realize.values[i], *last)) spatial &= realize.block->iter_vars[i]->kind == IterKind::spatial;
  }
  auto extent = as_int(inner.extent);
  if (!spatial || !extent || *extent < 8) return;
  attempt([&] {
    std::vector<Loop> parts = schedule::split(s, last, Factors{std::nullopt, int_imm(16, last->dtype)});
    vectorize(s, parts.back());
  });
}

}  // namespace

MaybeReason schedule_anything(Schedule& s, const target::CpuLevel&) {
  inline_all(s);
  for (const BlockHandle& b : leaf_blocks(s)) schedule_block(s, b);
  return {};
}

}  // namespace sator::rules
