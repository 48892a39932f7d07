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

/// A block that sums products of two operands over its last iterator: C[i, j] += A[.., k] * B[.., k].
BlockHandle product_block(const Schedule& s) {
  for (const BlockHandle& b : leaf_blocks(s)) {
    const Block& block = s.get(b);
    const BufferStore* st = block.body.as<BufferStore>();
    if (!block.init || !st || block.iter_vars.size() != 3) continue;
    bool shape = block.iter_vars[0]->kind == IterKind::spatial && block.iter_vars[1]->kind == IterKind::spatial &&
                 block.iter_vars[2]->kind == IterKind::reduce;
    const Add* sum = st->value.as<Add>();
    if (shape && sum && (sum->a.as<Mul>() || sum->b.as<Mul>())) return b;
  }
  return nullptr;
}

constexpr int64_t kPanel = 32;  // columns of a tile: those of a packed panel
constexpr int64_t kRows = 4;    // rows of a tile: 4 x 32 sums stay in registers

/// A register tile: the sums of kRows x 32 elements are kept in local memory over the whole of k, what follows element by
/// element is applied to the tile before it is stored. Panels run in parallel.
void schedule_product(Schedule& s, BlockHandle block) {
  std::vector<BlockHandle> consumers = get_consumers(s, block);
  BlockHandle last;
  if (consumers.size() == 1 && leaf_blocks(s).size() == 2 && !s.get(consumers[0]).init) {
    set_scope(s, block, BufferSelector{true, int64_t{0}}, std::string("local"));
    last = consumers[0];
  } else {
    last = cache_write(s, block, BufferSelector{true, int64_t{0}}, std::string("local"));
  }
  std::vector<Loop> loops = get_loops(s, block);
  Loop i = loops[0], j = loops[1], k = loops[2];
  auto number = [](const Loop& l, int64_t v) { return std::optional<Expr>(int_imm(v, l->dtype)); };
  bool one_row = as_int(s.get(i).extent) == 1;
  // One row alone has too few sums to keep the multipliers busy: it takes several panels at once.
  int64_t panels = 1;
  if (auto columns = as_int(s.get(j).extent); one_row && columns) {
    for (int64_t p : {4, 2}) {
      if (panels == 1 && *columns % (kPanel * p) == 0 && *columns / (kPanel * p) >= 2) panels = p;
    }
  }
  std::vector<Loop> js = schedule::split(s, j, Factors{std::nullopt, number(j, panels), number(j, kPanel)});
  std::vector<Loop> is = schedule::split(s, i, Factors{std::nullopt, number(i, one_row ? 1 : kRows)});
  reorder(s, std::vector<Loop>{js[0], is[0], k, is[1], js[1], js[2]});
  reverse_compute_at(s, last, is[0], true);
  // Kinds first: a decomposed reduction is no reduction block any more; its init takes the loops' kinds over.
  unroll(s, is[1]);
  unroll(s, js[1]);
  vectorize(s, js[2]);
  std::vector<Loop> own = get_loops(s, last);
  if (panels > 1) {
    std::vector<Loop> parts = schedule::split(s, own.back(), Factors{std::nullopt, number(own.back(), kPanel)});
    unroll(s, parts[0]);
    vectorize(s, parts[1]);
  } else {
    vectorize(s, own.back());
    unroll(s, own[own.size() - 2]);
  }
  parallel(s, js[0]);
  decompose_reduction(s, block, k);
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
    Schedule plain = s;
    BlockHandle product = product_block(s);
    if (!product || !attempt([&] { schedule_product(s, product); })) {
      s = plain;
      for (const BlockHandle& b : leaf_blocks(s)) schedule_block(s, b);
    }
    PrimFuncRef done = s.func();
    Attrs attrs = done->attrs;
    attrs["tir.is_scheduled"] = int_imm(1);
    out = with_function(out, name, with(done, &PrimFunc::attrs, std::move(attrs)));
  }
  return out;
}

}  // namespace sator::rules
