#include "passes/op_pattern.h"

#include <algorithm>
#include <set>

namespace sator::passes {

using namespace tir;

namespace {

/// How one load's indices relate to the store's. A lookup has indices that are read from memory at the store's own.
enum class Access { same, broadcast, injective, lookup, other };

bool is_block_var(const Expr& e, const std::vector<VarRef>& vars) {
  const Var* v = e.as<Var>();
  return v && std::find(vars.begin(), vars.end(), ref(*v)) != vars.end();
}

Access classify(const std::vector<Expr>& store, const std::vector<Expr>& load, const std::vector<VarRef>& vars) {
  if (store.size() == load.size() &&
      std::equal(store.begin(), store.end(), load.begin(), [](const Expr& a, const Expr& b) { return equal(a, b); }))
    return Access::same;
  // Broadcast: the load's indices are some of the store's variables in order, or constants.
  size_t at = 0;
  bool broadcast = true;
  for (const Expr& index : load) {
    if (index.as<IntImm>()) continue;
    if (!is_block_var(index, vars)) {
      broadcast = false;
      break;
    }
    while (at < store.size() && !(store[at] == index)) ++at;
    if (at == store.size()) {
      broadcast = false;
      break;
    }
    ++at;
  }
  if (broadcast) return Access::broadcast;
  bool looks_up = false, known = true;
  auto reads_known = [&](const Expr& index) {
    walk(
        index,
        [&](const Var& v) { known &= std::ranges::any_of(store, [&](const Expr& s) { return uses_var(s, v); }); },
        [&](const BufferLoad& l) {
          looks_up = true;
          for (const Expr& at : l.indices)
            for (const VarRef& v : vars_in(at))
              known &= std::ranges::any_of(store, [&](const Expr& s) { return uses_var(s, *v); });
          return false;
        });
  };
  for (const Expr& index : load) reads_known(index);
  return !known ? Access::other : looks_up ? Access::lookup : Access::injective;
}

/// An element of a buffer, perhaps converted.
bool is_element(const Expr& e) {
  const Cast* c = e.as<Cast>();
  return c ? is_element(c->value) : e.as<BufferLoad>() != nullptr;
}

/// A block sums products of elements of two operands, one of which leaves out an axis of the other: matmul, convolution,
/// attention scores. Scaled partial sums that are added up are a reduction.
bool multiplies_and_reduces(const Block& block) {
  const BufferStore* st = block.body.as<BufferStore>();
  if (!st || !block.init) return false;
  std::vector<VarRef> reduction;
  for (const IterVarRef& iter : block.iter_vars) {
    if (iter->kind == IterKind::reduce) reduction.push_back(iter->var);
  }
  if (reduction.empty()) return false;
  bool found = false;
  auto operand_axes = [&](const Expr& e) {
    std::set<const Var*> axes;
    bool loads = false;
    walk(e, [&](const BufferLoad& l) {
      loads = true;
      for (const Expr& i : l.indices) {
        for (const VarRef& v : vars_in(i)) axes.insert(v.get());
      }
      return false;
    });
    return std::pair(loads, axes);
  };
  walk(st->value, [&](const Mul& m) {
    if (!is_element(m.a) || !is_element(m.b)) return;
    auto [a_loads, a] = operand_axes(m.a);
    auto [b_loads, b] = operand_axes(m.b);
    if (!a_loads || !b_loads) return;
    bool reduces_both = false;
    for (const VarRef& r : reduction) reduces_both |= a.count(r.get()) && b.count(r.get());
    bool a_more = std::any_of(a.begin(), a.end(), [&](const Var* v) { return !b.count(v); });
    bool b_more = std::any_of(b.begin(), b.end(), [&](const Var* v) { return !a.count(v); });
    found |= reduces_both && (a_more || b_more);
  });
  return found;
}

/// Whether a block adds up what a product has summed in parts: it reads an element for each of its iterations.
bool adds_up(const Block& block, const std::set<BufferRef>& products) {
  bool found = false;
  walk(block.body, [&](const BufferLoad& l) {
    if (!products.contains(l.buffer)) return;
    found |= std::ranges::all_of(block.iter_vars, [&](const IterVarRef& iter) {
      return std::ranges::any_of(l.indices, [&](const Expr& i) { return uses_var(i, *iter->var); });
    });
  });
  return found;
}

/// Whether a reduction reads windows: an index is more than the variable of a reduction's axis.
bool reads_windows(const Block& block) {
  std::vector<VarRef> reduction;
  for (const IterVarRef& iter : block.iter_vars)
    if (iter->kind == IterKind::reduce) reduction.push_back(iter->var);
  bool windows = false;
  walk(block.body, [&](const BufferLoad& l) {
    for (const Expr& index : l.indices)
      windows |=
          !index.as<Var>() && std::ranges::any_of(reduction, [&](const VarRef& r) { return uses_var(index, *r); });
  });
  return windows;
}

OpPattern pattern_of(const Block& block) {
  // What a call does to its arguments is not known.
  bool stores = false;
  walk(block.body, [&](const BufferStore&) { stores = true; });
  if (!stores) return OpPattern::opaque;
  if (multiplies_and_reduces(block)) return OpPattern::out_fusable;
  std::vector<VarRef> vars;
  bool reduces = false;
  for (const IterVarRef& iter : block.iter_vars) {
    if (iter->kind == IterKind::scan || iter->kind == IterKind::opaque) return OpPattern::opaque;
    reduces |= iter->kind == IterKind::reduce;
    vars.push_back(iter->var);
  }
  if (block.writes.size() != 1) return reduces ? OpPattern::reduction : OpPattern::opaque;
  if (reduces) return reads_windows(block) ? OpPattern::out_fusable : OpPattern::reduction;
  const BufferStore* st = block.body.as<BufferStore>();
  if (!st) return OpPattern::opaque;
  OpPattern pattern = OpPattern::elementwise;
  bool any_same = false, any_load = false, looks_up = false;
  walk(st->value, [&](const BufferLoad& l) {
    any_load = true;
    switch (classify(st->indices, l.indices, vars)) {
      case Access::same: any_same = true; break;
      case Access::broadcast: pattern = std::max(pattern, OpPattern::broadcast); break;
      case Access::injective: pattern = std::max(pattern, OpPattern::injective); break;
      case Access::lookup: looks_up = true; break;
      case Access::other: pattern = OpPattern::opaque; break;
    }
  });
  if (!any_load) return OpPattern::elementwise;
  // A number that is looked up for each row, and combined with its elements; rows of a table alone are gathered.
  if (looks_up) return any_same ? std::max(pattern, OpPattern::broadcast) : OpPattern::opaque;
  // An input of the output's shape makes it element by element, as TVM counts: which inputs repeat, their shapes tell.
  return pattern == OpPattern::broadcast && any_same ? OpPattern::elementwise : pattern;
}

}  // namespace

OpPattern op_pattern_of(const PrimFunc& func) {
  BlockRealizeRef root = root_of(func);
  if (!root) return OpPattern::opaque;
  OpPattern whole = OpPattern::elementwise;
  bool any = false, opaque = false;
  int matmuls = 0;
  std::set<BufferRef> products;
  const auto writes_result = [&](const Block& block) {
    return std::ranges::any_of(block.writes, [&](const BufferRegionRef& w) {
      return std::ranges::any_of(func.buffer_map, [&](const auto& entry) { return entry.second == w->buffer; });
    });
  };
  walk(root->block->body, [&](const Block& block) {
    any = true;
    OpPattern p = pattern_of(block);
    opaque |= p == OpPattern::opaque;
    if (multiplies_and_reduces(block)) {
      matmuls += !adds_up(block, products);
      for (const BufferRegionRef& w : block.writes) products.insert(w->buffer);
    }
    // What is computed element by element from a reduction may go on so: softmax, norms, means.
    if (whole == OpPattern::reduction && p <= OpPattern::injective && writes_result(block)) p = OpPattern::out_fusable;
    whole = std::max(whole, p);
    return false;
  });
  if (!any || opaque || matmuls > 1) return OpPattern::opaque;
  return whole;
}

ModuleRef annotate_tir_op_pattern(const ModuleRef& module, const PassContext&) {
  ModuleRef out = module;
  for (const auto& [name, func] : module->functions) {
    const PrimFunc* f = func.as<PrimFunc>();
    if (!f || has_attr(f->attrs, "op_pattern")) continue;
    Attrs attrs = f->attrs;
    attrs["op_pattern"] = int_imm(static_cast<int64_t>(op_pattern_of(*f)));
    out = with_function(std::move(out), name, with(*f, &PrimFunc::attrs, std::move(attrs)));
  }
  return out;
}

}  // namespace sator::passes
