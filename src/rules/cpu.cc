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

/// Puts every block but `kept` into its consumers, as long as one goes.
void inline_all(Schedule& s, const BlockHandle& kept = nullptr) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const BlockHandle& b : leaf_blocks(s)) {
      if (s.sites().find(b) < 0 || b == kept) continue;
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

/// The block that makes the product's right operand [j, k] of what is stored (dequantizes it); null if it is read as it
/// lies, or is needed for one row alone, where it is made on the way.
BlockHandle operand_block(const Schedule& s, const BlockHandle& product) {
  const Block& block = s.get(product);
  Expr rows = block.iter_vars[0]->dom->extent, columns = block.iter_vars[1]->dom->extent;
  if (is_one(rows) || !as_int(columns) || *as_int(columns) % 32 != 0) return nullptr;
  ScopeAnalysis scope(s, s.sites()[s.site(product)].scope);
  for (int p : scope.producers(s.site(product))) {
    const Block& producer = *s.sites()[p].realize()->block;
    bool matrix = producer.iter_vars.size() == 2 && !producer.init && producer.writes.size() == 1 &&
                  equal(producer.iter_vars[0]->dom->extent, columns) &&
                  equal(producer.iter_vars[1]->dom->extent, block.iter_vars[2]->dom->extent);
    if (matrix && scope.consumers(p).size() == 1) return producer.name;
  }
  return nullptr;
}

/// A register tile: the sums of kRows x 32 elements are kept in local memory over the whole of k, what follows element by
/// element is applied to the tile before it is stored. Panels run in parallel.
/// An operand that has to be made first is made panel by panel.
void schedule_product(Schedule& s, BlockHandle block, BlockHandle operand) {
  std::vector<BlockHandle> consumers = get_consumers(s, block);
  BlockHandle last;
  if (consumers.size() == 1 && leaf_blocks(s).size() == (operand ? 3u : 2u) && !s.get(consumers[0]).init) {
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
  if (operand) {
    auto panel = [](const std::vector<VarRef>& i) {
      return std::vector<Expr>{floordiv(i[0], kPanel), i[1], floormod(i[0], kPanel)};
    };
    DType index = s.get(operand).iter_vars[0]->var->dtype;
    transform_layout(s, operand, BufferSelector{true, int64_t{0}}, arith::index_map(2, panel, index), Value(), false);
    compute_at(s, operand, js[0], true);
    std::vector<Loop> own = get_loops(s, operand);
    reorder(s, std::vector<Loop>{own[own.size() - 1], own[own.size() - 2]});
    vectorize(s, own[own.size() - 2]);
  }
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
    Schedule fresh = s;
    BlockHandle product = product_block(s);
    BlockHandle operand = product ? operand_block(s, product) : nullptr;
    bool done_product = product && attempt([&] {
      inline_all(s, operand);
      schedule_product(s, product, operand);
    });
    if (!done_product) {
      s = fresh;
      inline_all(s);
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
