#include "schedule/layout_padding.h"

#include <algorithm>

namespace sator::schedule {

using namespace tir;

namespace {

/// A store to the old buffer and where it stands.
struct Write {
  const BufferStore* store;
  std::vector<const For*> nest;           ///< the loops that its indices follow, with those between them
  const BlockRealize* realize = nullptr;  ///< of the innermost block around it
  bool is_block_inside = false;           ///< that block lies inside of the nest
  bool is_whole = false;                  ///< the nest passes over the buffer, row by row, and has nothing between
};

class WriteFinder {
 public:
  explicit WriteFinder(BufferRef buffer) : buffer_(std::move(buffer)) {}

  void visit(const Stmt& stmt) {
    if (!stmt) return;
    if (const For* loop = stmt.as<For>()) {
      loops_.push_back(loop);
      visit(loop->body);
      loops_.pop_back();
    } else if (const BlockRealize* realize = stmt.as<BlockRealize>()) {
      auto outer = std::pair{realize_, loops_around_};
      realize_ = realize;
      loops_around_ = loops_.size();
      for (size_t i = 0; i < realize->values.size(); ++i)
        bound_[realize->block->iter_vars[i]->var] = substitute(realize->values[i], bound_);
      visit(realize->block->init);
      visit(realize->block->body);
      std::tie(realize_, loops_around_) = outer;
    } else if (const LetStmt* let = stmt.as<LetStmt>()) {
      bound_[let->var] = substitute(let->value, bound_);
      visit(let->body);
    } else if (const BufferStore* store = stmt.as<BufferStore>()) {
      if (store->buffer == buffer_) note(*store);
    } else {
      stmt->info().each_child(*stmt, [this](const NodeRef& child) { visit(cast<StmtNode>(child)); });
    }
  }

  std::vector<Write> writes;

 private:
  void note(const BufferStore& store) {
    Write w{.store = &store, .realize = realize_};
    std::vector<Expr> indices;
    size_t first = loops_.size(), last = 0;
    for (const Expr& index : store.indices) {
      indices.push_back(substitute(index, bound_));
      for (size_t i = 0; i < loops_.size(); ++i) {
        if (!uses_var(indices.back(), *loops_[i]->var)) continue;
        first = std::min(first, i);
        last = std::max(last, i);
      }
    }
    if (first < loops_.size()) {
      w.nest.assign(loops_.begin() + static_cast<std::ptrdiff_t>(first),
                    loops_.begin() + static_cast<std::ptrdiff_t>(last) + 1);
      w.is_block_inside = realize_ && loops_around_ > last;
    }
    w.is_whole = w.nest.size() == indices.size() && !indices.empty();
    for (size_t i = 0; w.is_whole && i < indices.size(); ++i) {
      const For& loop = *w.nest[i];
      w.is_whole = indices[i] == Expr(loop.var) && is_zero(loop.min) && equal(loop.extent, buffer_->shape[i]) &&
                   loop.kind == LoopKind::serial && loop.annotations.empty() &&
                   (i == 0 || w.nest[i - 1]->body.get() == &loop);
    }
    writes.push_back(std::move(w));
  }

  BufferRef buffer_;
  VarMap bound_;  ///< iterators and lets in terms of loops
  std::vector<const For*> loops_;
  const BlockRealize* realize_ = nullptr;
  size_t loops_around_ = 0;  ///< the block of realize_
};

/// The value at some indices of the new buffer.
Expr value_at(const Padding& p, const std::vector<Expr>& at) {
  arith::Analyzer a;
  return mapped_access(*p.value, at, a).front();
}

/// The inputs of the inverse map under names of their own.
struct Axes {
  std::vector<VarRef> vars;
  std::vector<Expr> exprs;
  VarMap map;  ///< from the inputs

  Axes(const Padding& p, const char* prefix) {
    for (const VarRef& v : p.inverse->initial_indices) {
      vars.push_back(make_var(prefix + v->name, v->dtype));
      exprs.emplace_back(vars.back());
      map.emplace(v, vars.back());
    }
  }
};

/// The index in place of the variable: it may be wider, as all indices of the map are.
void stand_for(const VarRef& var, const Expr& index, VarMap& map) { map.emplace(var, cast_to(var->dtype, index)); }

/// What the block's iterators become where the store is indexed by some of them, one after the other; false if it is not.
bool renew_iterators(const Padding& p, const Write& w, const Axes& loops, const Axes& iters, BlockRealizeRef& realize,
                     VarMap& old_to_new) {
  const Block& block = *w.realize->block;
  const size_t rank = w.store->indices.size();
  for (size_t start = 0; start + rank <= block.iter_vars.size(); ++start) {
    bool fits = true;
    for (size_t i = 0; i < rank; ++i) {
      const IterVar& iter = *block.iter_vars[start + i];
      fits &= w.store->indices[i] == Expr(iter.var) && iter.kind == IterKind::spatial &&
              w.realize->values[start + i] == Expr(w.nest[i]->var);
    }
    if (!fits) continue;
    auto from = static_cast<std::ptrdiff_t>(start), to = static_cast<std::ptrdiff_t>(start + rank);
    std::vector<IterVarRef> vars(block.iter_vars.begin(), block.iter_vars.begin() + from);
    std::vector<Expr> values(w.realize->values.begin(), w.realize->values.begin() + from);
    for (size_t d = 0; d < iters.vars.size(); ++d) {
      vars.push_back(make<IterVar>(range_of(p.fresh->shape[d]), iters.vars[d], IterKind::spatial));
      values.push_back(loops.exprs[d]);
    }
    vars.insert(vars.end(), block.iter_vars.begin() + to, block.iter_vars.end());
    values.insert(values.end(), w.realize->values.begin() + to, w.realize->values.end());
    for (size_t i = 0; i < rank; ++i)
      stand_for(block.iter_vars[start + i]->var, substitute(p.inverse->final_indices[i], iters.map), old_to_new);
    realize = with(with(*w.realize, &BlockRealize::values, std::move(values)),
                   &BlockRealize::block,
                   with(w.realize->block, &Block::iter_vars, std::move(vars)));
    return true;
  }
  return false;
}

bool loads(const Expr& e) {
  bool found = false;
  walk(e, [&](const BufferLoad&) { found = true; });
  return found;
}

/// Whether what the nest does may be done for padding too, and in another order: it stores to one place, of the buffer it
/// reads that place alone, of others for the value stored alone (which padding does not compute), it does nothing else, and
/// no block but the store's own binds iterators to its loops.
bool does_nothing_else(const Padding& p, const Write& w) {
  bool only = true;
  auto follows = [&](const Expr& e) {
    return std::any_of(w.nest.begin(), w.nest.end(), [&](const For* loop) { return uses_var(e, *loop->var); });
  };
  const size_t rank = w.store->indices.size();
  auto is_the_place = [&](const std::vector<Expr>& indices) {
    for (size_t i = 0; i < rank; ++i) {
      if (!equal(indices[i], w.store->indices[i])) return false;
    }
    return true;
  };
  walk(
      w.nest.back()->body,
      [&](const BufferStore& st) { only &= st.buffer == p.old && is_the_place(st.indices); },
      [&](const BufferLoad& l) { only &= l.buffer != p.old || is_the_place(l.indices); },
      [&](const MatchBuffer&) { only = false; },
      [&](const Evaluate&) { only = false; },
      [&](const LetStmt& let) { only &= !loads(let.value); },
      [&](const IfThenElse& branch) { only &= !loads(branch.condition); },
      [&](const While&) { only = false; },
      [&](const For& loop) { only &= !loads(loop.min) && !loads(loop.extent); },
      [&](const BlockRealize& realize) {
        only &= !follows(realize.predicate);
        size_t following = 0;
        for (const Expr& v : realize.values) following += follows(v);
        only &= following == (w.is_block_inside && &realize == w.realize && !realize.values.empty() ? rank : 0);
      });
  return only;
}

/// The nest over the new buffer; null where the old one has to stay.
Stmt whole_nest(const Padding& p, const Write& w) {
  if (!w.is_whole || !does_nothing_else(p, w)) return nullptr;
  Axes loops(p, ""), iters(p, "v_");
  BlockRealizeRef renewed;
  VarMap old_to_new;
  for (size_t i = 0; i < w.nest.size(); ++i)
    stand_for(w.nest[i]->var, substitute(p.inverse->final_indices[i], loops.map), old_to_new);
  const bool by_iterators = w.is_block_inside && renew_iterators(p, w, loops, iters, renewed, old_to_new);
  if (!by_iterators) {
    for (size_t i = 0; i < w.nest.size(); ++i) {
      if (w.store->indices[i] != Expr(w.nest[i]->var)) return nullptr;
    }
  }
  const Axes& at = by_iterators ? iters : loops;
  Expr predicate = substitute(p.predicate, at.map), value = value_at(p, at.exprs);
  Stmt body = w.nest.back()->body;
  if (by_iterators) body = replaced(body, NodeMap{{ref(*w.realize), renewed}});
  BufferRegionRef place = point_region(p.old, w.store->indices), element = point_region(p.fresh, at.exprs);
  body = transform(
      body,
      [&](const BufferStore& st) -> NodeRef {
        if (st.buffer != p.old) return ref(st);
        return store(p.fresh, call(st.value->dtype, "tir.if_then_else", {predicate, value, st.value}), at.exprs);
      },
      [&](const BufferLoad& l) -> NodeRef { return l.buffer == p.old ? NodeRef(load(p.fresh, at.exprs)) : ref(l); },
      [&](const BufferRegion& r) -> NodeRef { return equal(BufferRegionRef(&r), place) ? NodeRef(element) : ref(r); });
  body = substitute(body, old_to_new);
  for (size_t d = loops.vars.size(); d-- > 0;) body = for_loop(loops.vars[d], p.fresh->shape[d], body);
  return body;
}

/// A block over the new buffer, under loops of its own.
Stmt padding_block(const Padding& p, bool assume) {
  Axes loops(p, ""), at(p, "v_");
  std::vector<IterVarRef> iters;
  for (size_t d = 0; d < at.vars.size(); ++d)
    iters.push_back(make<IterVar>(range_of(p.fresh->shape[d]), at.vars[d], IterKind::spatial));
  BufferRegionRef element = point_region(p.fresh, at.exprs);
  Expr value = value_at(p, at.exprs);
  Stmt body =
      assume ? Stmt(make<Evaluate>(call(
                   boolean,
                   "tir.assume",
                   {logical_or(logical_not(substitute(p.predicate, at.map)), eq(load(p.fresh, at.exprs), value))})))
             : store(p.fresh, value, at.exprs);
  std::vector<BufferRegionRef> reads, writes;
  (assume ? reads : writes).push_back(element);
  BlockRef block = make<Block>(iters,
                               std::vector<BufferRef>{},
                               std::vector<MatchBufferRef>{},
                               std::move(reads),
                               std::move(writes),
                               block_name(text("buffer_", p.fresh->name, assume ? "_assumptions" : "_padding")),
                               Attrs{},
                               Stmt(),
                               body);
  Expr predicate = assume ? bool_imm(true) : substitute(p.predicate, loops.map);
  Stmt nest = make<BlockRealize>(loops.exprs, predicate, block);
  for (size_t d = loops.vars.size(); d-- > 0;) nest = for_loop(loops.vars[d], p.fresh->shape[d], nest);
  return nest;
}

}  // namespace

Stmt with_padding(const Stmt& body, const Padding& p) {
  WriteFinder finder(p.old);
  finder.visit(body);
  if (finder.writes.empty()) {
    const BlockRealize* root = body.as<BlockRealize>();
    if (!root) internal_error("transform_layout: the function's body is no block");
    BlockRef block = with(root->block, &Block::body, seq({padding_block(p, true), root->block->body}));
    return with(*root, &BlockRealize::block, block);
  }
  NodeMap replacements;
  for (const Write& w : finder.writes) {
    if (w.nest.empty() || replacements.count(ref(*w.nest.front()))) continue;
    if (Stmt whole = whole_nest(p, w)) replacements.emplace(ref(*w.nest.front()), whole);
  }
  if (replacements.empty()) {
    const Write& last = finder.writes.back();
    Stmt anchor = !last.nest.empty() ? Stmt(last.nest.front()) : last.realize ? Stmt(last.realize) : Stmt(last.store);
    replacements.emplace(anchor, seq({anchor, padding_block(p, false)}));
  }
  return replaced(body, replacements);
}

}  // namespace sator::schedule
