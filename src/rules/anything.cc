// The rule for what no other rule takes: always parallel, and vectorised where the innermost loop is spatial.
#include "passes/to_vm.h"
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
  if (loops.size() >= 2) vectorize_last(s, block);
}

}  // namespace

MaybeReason schedule_view(Schedule& s, const target::CpuLevel&) {
  if (!passes::is_reshape(*s.func()))
    return Reason{.what = "elements are computed or change their order",
                  .needs = "a copy of all elements in their order"};
  return {};
}

MaybeReason schedule_anything(Schedule& s, const target::CpuLevel&) {
  inline_all(s);
  for (const BlockHandle& b : leaf_blocks(s)) schedule_block(s, b);
  return {};
}

}  // namespace sator::rules
