// What rules ask of a function: which blocks it has, and which of them is a product.
#include <algorithm>
#include <set>

#include "rules/rule.h"
#include "schedule/analysis.h"
#include "schedule/primitives.h"

namespace sator::rules {

using namespace schedule;
using namespace tir;

namespace {

/// The function whose root has a name that no other block has: by it the steps of a rule begin.
PrimFuncRef with_unique_root(const PrimFuncRef& f) {
  const BlockRealizeRef root = root_of(*f);
  if (!root) return f;
  std::set<std::string> others;
  walk(root->block->body, [&](const Block& b) { others.insert(b.name->text); });
  const std::string& own = root->block->name->text;
  if (!others.contains(own)) return f;
  std::string name;
  for (int i = 1; name.empty() || others.contains(name); ++i) name = text(own, "_", i);
  const BlockRef block = with(root->block, &Block::name, block_name(name));
  return with(f, &PrimFunc::body, Stmt(with(root, &BlockRealize::block, block)));
}

}  // namespace

Schedule named_schedule(const PrimFuncRef& given, const std::string& name) {
  const PrimFuncRef f = with_unique_root(given);
  Schedule s(f, name);
  s.work_on(name);
  // The root of a function that is one opaque statement has the statement's name.
  get_child_blocks(s, Value(get_block(s, s.sites()[0].realize()->block->name->text, std::string())));
  return s;
}

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

namespace {

/// Computes something that takes as long as a dozen additions.
bool is_expensive(const Block& block) {
  static constexpr std::string_view kExpensive[] = {"tir.exp",
                                                    "tir.exp2",
                                                    "tir.exp10",
                                                    "tir.log",
                                                    "tir.log2",
                                                    "tir.log10",
                                                    "tir.log1p",
                                                    "tir.tanh",
                                                    "tir.sigmoid",
                                                    "tir.erf",
                                                    "tir.sin",
                                                    "tir.cos",
                                                    "tir.pow",
                                                    "tir.sqrt",
                                                    "tir.rsqrt"};
  bool found = false;
  walk(
      block.body,
      [&](const Call& c) {
        found |= std::find(std::begin(kExpensive), std::end(kExpensive), c.op) != std::end(kExpensive);
      },
      [&](const Div&) { found = true; });
  return found;
}

}  // namespace

void inline_cheap(Schedule& s, const std::vector<BlockHandle>& kept) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const BlockHandle& b : leaf_blocks(s)) {
      if (s.sites().find(b) < 0 || std::find(kept.begin(), kept.end(), b) != kept.end()) continue;
      if (is_expensive(s.get(b))) {
        std::vector<BlockHandle> consumers = get_consumers(s, b);
        bool once = consumers.size() == 1 && s.get(consumers[0]).iter_vars.size() == s.get(b).iter_vars.size();
        if (!once) continue;
      }
      changed |= attempt([&] { compute_inline(s, b); });
    }
  }
}

void vectorize_last(Schedule& s, const BlockHandle& block) {
  Loop last = get_loops(s, block).back();
  const For& inner = s.get(last);
  const BlockRealize& realize = s.realize(block);
  bool spatial = true;
  for (size_t i = 0; i < realize.values.size(); ++i) {
    if (uses_var(realize.values[i], *last)) spatial &= realize.block->iter_vars[i]->kind == IterKind::spatial;
  }
  auto extent = as_int(inner.extent);
  if (!spatial || inner.kind != LoopKind::serial || !extent || *extent < 8) return;
  attempt([&] {
    std::vector<Loop> parts = schedule::split(s, last, Factors{std::nullopt, factor(last, 16)});
    vectorize(s, parts.back());
  });
}

std::optional<Expr> factor(const Loop& l, int64_t value) { return int_imm(value, l->dtype); }

/// A product, or one less another.
static bool is_product(const Expr& e) {
  const Sub* less = e.as<Sub>();
  return less ? less->a.as<Mul>() && less->b.as<Mul>() : e.as<Mul>() != nullptr;
}

BlockHandle product_block(const Schedule& s) {
  for (const BlockHandle& b : leaf_blocks(s)) {
    const Block& block = s.get(b);
    const BufferStore* st = block.body.as<BufferStore>();
    if (!block.init || !st || block.iter_vars.size() != 3) continue;
    // Loops that somebody split are left to other rules: tiles would be made of the outer ones.
    const BlockRealize& realize = s.realize(b);
    if (!is_one(realize.predicate) || !std::ranges::all_of(realize.values, [](const Expr& v) { return v.as<Var>(); }))
      continue;
    bool shape = block.iter_vars[0]->kind == IterKind::spatial && block.iter_vars[1]->kind == IterKind::spatial &&
                 block.iter_vars[2]->kind == IterKind::reduce;
    const Add* sum = st->value.as<Add>();
    if (shape && sum && (is_product(sum->a) || is_product(sum->b))) return b;
  }
  return nullptr;
}

BlockHandle operand_block(const Schedule& s, const BlockHandle& product, Side side) {
  const Block& block = s.get(product);
  const tir::IterVarRef& line = block.iter_vars[side == Side::left ? 0 : 1];
  auto is_of_line = [&](const BufferRef& made) {
    return std::ranges::any_of(block.reads, [&](const BufferRegionRef& r) {
      return r->buffer == made && !r->region.empty() && uses_var(r->region[0]->min, *line->var);
    });
  };
  ScopeAnalysis scope(s, s.sites()[s.site(product)].scope);
  arith::Analyzer analyzer;
  Expr depth = block.iter_vars.back()->dom->extent;
  for (size_t i = 2; i + 1 < block.iter_vars.size(); ++i) depth = depth * block.iter_vars[i]->dom->extent;
  for (int p : scope.producers(s.site(product))) {
    const Block& producer = *s.sites()[p].realize()->block;
    bool matrix = producer.iter_vars.size() == 2 && !producer.init && producer.writes.size() == 1 &&
                  equal(producer.iter_vars[0]->dom->extent, line->dom->extent) &&
                  is_of_line(producer.writes[0]->buffer) &&
                  analyzer.prove_equal(producer.iter_vars[1]->dom->extent, depth);
    if (matrix && scope.consumers(p).size() == 1) return producer.name;
  }
  return nullptr;
}

int64_t code_bits(const Block& block) {
  int64_t bits = 0;
  walk(block.body, [&](const Call& c) {
    auto mask = c.op == "tir.bitwise_and" && c.dtype == u32 ? as_int(c.args[1]) : std::nullopt;
    for (int64_t b = 1; mask && b < 32; ++b) {
      if (*mask == (int64_t{1} << b) - 1) bits = b;
    }
  });
  return bits;
}

int64_t shared_columns(const Block& block, int64_t unit) {
  const VarRef& column = block.iter_vars.back()->var;
  int64_t least = 0;
  walk(block.body, [&](const BufferLoad& l) {
    for (const Expr& i : l.indices) {
      const FloorDiv* group = i.as<FloorDiv>();
      const auto size = group && group->a.get() == column.get() ? as_int(group->b) : std::nullopt;
      if (size && *size > unit && *size % unit == 0 && (least == 0 || *size < least)) least = *size;
    }
  });
  return least;
}

}  // namespace sator::rules
