#include "rules/cpu.h"

#include <algorithm>

#include "schedule/analysis.h"
#include "schedule/primitives.h"
#include "tir/nodes.h"

namespace sator::rules {

using namespace schedule;
using namespace tir;

namespace {

/// Tries a primitive; what it refuses stays as it is.
template <class F>
bool attempt(F&& f) {
  try {
    f();
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::vector<BlockHandle> leaf_blocks(const Schedule& s) {
  std::vector<BlockHandle> out;
  for (int b : s.sites().child_blocks(0)) out.push_back(s.sites()[b].realize()->block->name);
  return out;
}

/// Puts every block into its consumers, or into its producer, as long as one goes.
void inline_all(Schedule& s) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const BlockHandle& b : leaf_blocks(s)) {
      if (s.sites().find(b) < 0) continue;
      changed |= attempt([&] { compute_inline(s, b); });
    }
  }
}

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

ModuleRef schedule_for_cpu(const ModuleRef& module) {
  ModuleRef out = module;
  for (const auto& [name, func] : module->functions) {
    const PrimFunc* f = func.as<PrimFunc>();
    if (!f || int_attr(f->attrs, "tir.is_scheduled").value_or(0) != 0 || !root_of(*f)) continue;
    Schedule s(ref(*f), name);
    s.work_on(name);
    inline_all(s);
    for (const BlockHandle& b : leaf_blocks(s)) schedule_block(s, b);
    PrimFuncRef done = s.func();
    Attrs attrs = done->attrs;
    attrs["tir.is_scheduled"] = int_imm(1);
    out = with_function(out, name, with(done, &PrimFunc::attrs, std::move(attrs)));
  }
  return out;
}

}  // namespace sator::rules
