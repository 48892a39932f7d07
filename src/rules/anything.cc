// The rules for copies that become views, and for what no other rule takes.
#include <algorithm>

#include "passes/to_vm.h"
#include "rules/nest.h"
#include "rules/rule.h"
#include "schedule/primitives.h"
#include "tir/nodes.h"

namespace sator::rules {

using namespace schedule;
using namespace tir;

namespace {

/// Copies with a condition that reductions read: inlined, the condition would be asked for each of the sums' terms.
std::vector<BlockHandle> padded_operands(Schedule& s) {
  std::vector<BlockHandle> out;
  for (const BlockHandle& b : leaf_blocks(s)) {
    const BufferStore* store = s.get(b).body.as<BufferStore>();
    const Call* call = store ? store->value.as<Call>() : nullptr;
    if (s.get(b).init || !call || call->op != "tir.if_then_else") continue;
    const std::vector<BlockHandle> consumers = get_consumers(s, b);
    if (std::ranges::any_of(consumers, [&](const BlockHandle& c) { return s.get(c).init != nullptr; }))
      out.push_back(b);
  }
  return out;
}

}  // namespace

MaybeReason schedule_view(Schedule& s, const target::CpuLevel&) {
  if (!passes::is_reshape(*s.func()))
    return Reason{.what = "elements are computed or change their order",
                  .needs = "a copy of all elements in their order"};
  return {};
}

PrimFuncRef reshape_in_one_copy(const PrimFuncRef& f) {
  if (!f || int_attr(f->attrs, "tir.is_scheduled").value_or(0) != 0) return nullptr;
  const BlockRealizeRef root = root_of(*f);
  if (!root || root->block->alloc_buffers.empty()) return nullptr;
  Schedule s = named_schedule(f, "main");
  for (const BlockHandle& b : leaf_blocks(s)) {
    const BufferStore* store = s.get(b).init ? nullptr : s.get(b).body.as<BufferStore>();
    if (!store || !store->value.as<BufferLoad>()) return nullptr;
  }
  inline_all(s);
  return passes::is_reshape(*s.func()) ? s.func() : nullptr;
}

MaybeReason schedule_anything(Schedule& s, const target::CpuLevel& level) {
  inline_cheap(s, padded_operands(s));
  for (const BlockHandle& b : leaf_blocks(s)) schedule_nest(s, b, level);
  return {};
}

}  // namespace sator::rules
