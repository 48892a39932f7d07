// What rules ask of a function: which blocks it has, and which of them is a product.
#include <algorithm>

#include "rules/rule.h"
#include "schedule/analysis.h"
#include "schedule/primitives.h"

namespace sator::rules {

using namespace schedule;
using namespace tir;

std::vector<BlockHandle> leaf_blocks(const Schedule& s) {
  std::vector<BlockHandle> out;
  for (int b : s.sites().child_blocks(0)) out.push_back(s.sites()[b].realize()->block->name);
  return out;
}

void inline_all(Schedule& s, const std::vector<BlockHandle>& kept) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const BlockHandle& b : leaf_blocks(s)) {
      if (s.sites().find(b) < 0 || std::find(kept.begin(), kept.end(), b) != kept.end()) continue;
      changed |= attempt([&] { compute_inline(s, b); });
    }
  }
}

std::optional<Expr> factor(const Loop& l, int64_t value) { return int_imm(value, l->dtype); }

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

BlockHandle operand_block(const Schedule& s, const BlockHandle& product) {
  const Block& block = s.get(product);
  ScopeAnalysis scope(s, s.sites()[s.site(product)].scope);
  for (int p : scope.producers(s.site(product))) {
    const Block& producer = *s.sites()[p].realize()->block;
    bool matrix = producer.iter_vars.size() == 2 && !producer.init && producer.writes.size() == 1 &&
                  equal(producer.iter_vars[0]->dom->extent, block.iter_vars[1]->dom->extent) &&
                  equal(producer.iter_vars[1]->dom->extent, block.iter_vars[2]->dom->extent);
    if (matrix && scope.consumers(p).size() == 1) return producer.name;
  }
  return nullptr;
}

}  // namespace sator::rules
