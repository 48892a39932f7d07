// What a reduction over nothing gives: the value of its init.
#include "tir/empty_reductions.h"

#include <algorithm>

#include "arith/analyzer.h"
#include "tir/copy.h"

namespace sator::tir {

namespace {

/// A block with what stands around it, the outermost first: loops, conditions and let statements.
struct Site {
  const BlockRealize* realize;
  std::vector<Stmt> around;
};

bool any_uses(const std::vector<Expr>& values, const Var& var) {
  return std::ranges::any_of(values, [&](const Expr& e) { return uses_var(e, var); });
}

/// A block without iterators, such as one that holds allocations, does not hide the loops around it.
bool is_transparent(const BlockRealize& realize) {
  return realize.values.empty() && !realize.block->init && realize.block->match_buffers.empty();
}

/// Whether the block writes what the other block allocates.
bool writes_own_of(const Block& block, const Block& around) {
  return std::ranges::any_of(block.writes, [&](const BufferRegionRef& w) {
    return std::ranges::find(around.alloc_buffers, w->buffer) != around.alloc_buffers.end();
  });
}

/// The reductions below a statement, without those inside of blocks with iterators.
void reductions_below(const Stmt& stmt, std::vector<Stmt>& around, std::vector<Site>& found) {
  auto below = [&](const Stmt& entry, const Stmt& body) {
    around.push_back(entry);
    reductions_below(body, around, found);
    around.pop_back();
  };
  if (const BlockRealize* n = stmt.as<BlockRealize>()) {
    auto reduces = [](const IterVarRef& iter) { return iter->kind == IterKind::reduce; };
    if (n->block->init && std::ranges::any_of(n->block->iter_vars, reduces)) found.push_back({n, around});
    if (!is_transparent(*n)) return;
    const size_t before = found.size();
    if (is_one(n->predicate))
      reductions_below(n->block->body, around, found);
    else
      below(make<IfThenElse>(n->predicate, n->block->body, Stmt()), n->block->body);
    found.erase(std::remove_if(found.begin() + static_cast<std::ptrdiff_t>(before),
                               found.end(),
                               [&](const Site& site) { return writes_own_of(*site.realize->block, *n->block); }),
                found.end());
  } else if (const For* n = stmt.as<For>()) {
    below(stmt, n->body);
  } else if (const LetStmt* n = stmt.as<LetStmt>()) {
    below(stmt, n->body);
  } else if (const IfThenElse* n = stmt.as<IfThenElse>()) {
    below(make<IfThenElse>(n->condition, n->then_case, Stmt()), n->then_case);
    if (n->else_case) below(make<IfThenElse>(logical_not(n->condition), n->else_case, Stmt()), n->else_case);
  } else if (const Seq* n = stmt.as<Seq>()) {
    for (const Stmt& s : n->stmts) reductions_below(s, around, found);
  } else if (const AttrStmt* n = stmt.as<AttrStmt>()) {
    reductions_below(n->body, around, found);
  } else if (const AssertStmt* n = stmt.as<AssertStmt>()) {
    reductions_below(n->body, around, found);
  }
}

/// The init of one reduction for the case that the reduction's loops have no iterations.
class EmptyReduction {
 public:
  EmptyReduction(const Site& site, arith::Analyzer& arith) : site_(site), arith_(arith) {
    const BlockRealize& realize = *site.realize;
    std::vector<Expr> reduced, spatial;
    for (size_t i = 0; i < realize.values.size(); ++i)
      (realize.block->iter_vars[i]->kind == IterKind::reduce ? reduced : spatial).push_back(realize.values[i]);
    for (size_t k = 0; k < site.around.size(); ++k) {
      if (const LetStmt* let = site.around[k].as<LetStmt>()) first_.emplace(let->var, substitute(let->value, first_));
      const For* loop = site.around[k].as<For>();
      if (!loop || !any_uses(reduced, *loop->var)) continue;
      if (!outermost_) outermost_ = k;
      if (any_uses(spatial, *loop->var)) shared_.push_back(loop->var);
      Expr extent = arith_.simplify(substitute(loop->extent, first_));
      first_.emplace(loop->var, substitute(loop->min, first_));
      if (arith_.prove_ge(extent, 1)) continue;
      Expr none = le(extent, int_imm(0, extent->dtype));
      is_empty_ = is_empty_ ? logical_or(is_empty_, none) : none;
    }
    if (is_empty_) realize_init();
  }

  bool is_possible() const { return is_empty_ != nullptr; }
  /// The place of the reduction's outermost loop in what stands around the block.
  size_t outermost_loop() const { return *outermost_; }
  /// Whether loop k of what stands around gives the init its place.
  bool runs_over(size_t k) const {
    const For* loop = site_.around[k].as<For>();
    return loop && uses_var(init_, *loop->var);
  }

  /// if a loop is empty: for the loops from `place` on that the init depends on: init
  Stmt from(size_t place) const {
    Stmt out = init_;
    bool is_placed = false;
    for (size_t k = site_.around.size(); k-- > place;) {
      if (const IfThenElse* branch = site_.around[k].as<IfThenElse>())
        out = make<IfThenElse>(in_first_iteration(branch->condition), out, Stmt());
      const For* loop = site_.around[k].as<For>();
      if (!loop || first_.count(loop->var)) continue;
      if (uses_var(is_empty_, *loop->var) && !is_placed) {
        out = make<IfThenElse>(is_empty_, out, Stmt());
        is_placed = true;
      }
      if (!uses_var(out, *loop->var)) continue;
      out = make<For>(loop->var,
                      substitute(loop->min, first_),
                      substitute(loop->extent, first_),
                      loop->kind,
                      loop->thread,
                      Attrs{},
                      out);
    }
    return fresh_copy(is_placed ? out : Stmt(make<IfThenElse>(is_empty_, out, Stmt())));
  }

 private:
  /// A condition without what it asks of the reduction's loops alone (k_0 * 8 + k_1 < n, which nothing fulfils where n is 0);
  /// what depends on other loops too, those of one iteration aside, is asked of the reduction's first iteration.
  Expr in_first_iteration(const Expr& condition) const {
    if (const And* both = condition.as<And>())
      return logical_and(in_first_iteration(both->a), in_first_iteration(both->b));
    bool of_reduction = false, of_others = false;
    for (const Stmt& s : site_.around) {
      const For* loop = s.as<For>();
      if (loop && !is_one(loop->extent) && uses_var(condition, *loop->var))
        (first_.count(loop->var) ? of_reduction : of_others) = true;
    }
    return of_reduction && !of_others ? bool_imm(true) : substitute(condition, first_);
  }

  /// The init as a block over the spatial iterators.
  void realize_init() {
    const Block& block = *site_.realize->block;
    VarMap iters;
    std::vector<IterVarRef> iter_vars;
    std::vector<Expr> values;
    std::vector<std::pair<VarRef, RangeRef>> own_loops;
    for (size_t i = 0; i < block.iter_vars.size(); ++i) {
      const IterVarRef& iter = block.iter_vars[i];
      if (iter->kind == IterKind::reduce) {
        iters.emplace(iter->var, iter->dom->min);
        continue;
      }
      iter_vars.push_back(iter);
      const Expr& value = site_.realize->values[i];
      bool is_shared = std::ranges::any_of(shared_, [&](const VarRef& v) { return uses_var(value, *v); });
      if (is_shared) own_loops.emplace_back(make_var(iter->var->name, value->dtype), iter->dom);
      values.push_back(is_shared ? Expr(own_loops.back().first) : substitute(value, first_));
    }
    std::vector<BufferRegionRef> writes;
    for (const BufferRegionRef& w : block.writes) writes.push_back(substitute(w, iters));
    BlockRef init = make<Block>(std::move(iter_vars),
                                std::vector<BufferRef>{},
                                block.match_buffers,
                                std::vector<BufferRegionRef>{},
                                std::move(writes),
                                block_name(block.name->text + "_init"),
                                block.annotations,
                                Stmt(),
                                substitute(block.init, iters));
    Expr predicate = shared_.empty() ? arith_.simplify(in_first_iteration(site_.realize->predicate)) : bool_imm(true);
    init_ = make<BlockRealize>(std::move(values), predicate, init);
    for (const auto& [var, dom] : own_loops)
      init_ = make<For>(var,
                        cast_to(var->dtype, dom->min),
                        cast_to(var->dtype, dom->extent),
                        LoopKind::serial,
                        std::string(),
                        Attrs{},
                        init_);
  }

  const Site& site_;
  arith::Analyzer& arith_;
  VarMap first_;                ///< the reduction's loops at their first value, let variables as their values
  std::vector<VarRef> shared_;  ///< loops that feed spatial iterators and the reduction
  std::optional<size_t> outermost_;
  Expr is_empty_;
  Stmt init_;
};

/// The node with another statement in its place; the same node for the same statement.
template <class T>
Stmt with_part(const T& node, Stmt T::* part, const Stmt& stmt) {
  return node.*part == stmt ? Stmt(&node) : Stmt(with(node, part, stmt));
}

class Rewriter {
 public:
  explicit Rewriter(const Stmt& all) {
    walk(all, [&](const For& n) { arith_.bind(n.var, make<Range>(n.min, n.extent)); });
  }

  /// A statement that is not the only one below a loop.
  Stmt head(const Stmt& stmt) {
    std::vector<Stmt> around;
    std::vector<Site> sites;
    reductions_below(stmt, around, sites);
    std::vector<const For*> chain;
    for (const For* loop = stmt.as<For>(); loop; loop = loop->body.as<For>()) chain.push_back(loop);
    std::vector<std::vector<Stmt>> before(chain.size());
    for (const Site& site : sites) {
      EmptyReduction empty(site, arith_);
      if (!empty.is_possible() || empty.outermost_loop() >= chain.size()) continue;
      // The condition leaves further loops, which it then costs nothing, where they hold the one block alone.
      const bool is_one_block = chain.back()->body == Stmt(site.realize);
      size_t place = empty.outermost_loop();
      while (is_one_block && place > 0 && empty.runs_over(place - 1)) --place;
      before[place].push_back(empty.from(place));
    }
    Stmt out = inside(chain.empty() ? stmt : chain.back()->body);
    for (size_t k = chain.size(); k-- > 0;) {
      out = with_part(*chain[k], &For::body, out);
      if (before[k].empty()) continue;
      before[k].push_back(out);
      out = seq(std::move(before[k]));
    }
    return out;
  }

 private:
  /// The parts of a statement that is no loop.
  Stmt inside(const Stmt& stmt) {
    if (const BlockRealize* n = stmt.as<BlockRealize>()) {
      Stmt body = head(n->block->body);
      return body == n->block->body ? stmt : Stmt(with(*n, &BlockRealize::block, with(n->block, &Block::body, body)));
    }
    if (const Seq* n = stmt.as<Seq>()) {
      std::vector<Stmt> stmts;
      for (const Stmt& s : n->stmts) stmts.push_back(head(s));
      return std::ranges::equal(stmts, n->stmts) ? stmt : seq(std::move(stmts));
    }
    if (const IfThenElse* n = stmt.as<IfThenElse>()) {
      Stmt then_case = head(n->then_case), else_case = n->else_case ? head(n->else_case) : Stmt();
      if (then_case == n->then_case && else_case == n->else_case) return stmt;
      return make<IfThenElse>(n->condition, then_case, else_case);
    }
    if (const LetStmt* n = stmt.as<LetStmt>()) return with_part(*n, &LetStmt::body, head(n->body));
    if (const AttrStmt* n = stmt.as<AttrStmt>()) return with_part(*n, &AttrStmt::body, head(n->body));
    if (const AssertStmt* n = stmt.as<AssertStmt>()) return with_part(*n, &AssertStmt::body, head(n->body));
    if (const While* n = stmt.as<While>()) return with_part(*n, &While::body, head(n->body));
    if (const Allocate* n = stmt.as<Allocate>()) return with_part(*n, &Allocate::body, head(n->body));
    if (const AllocateConst* n = stmt.as<AllocateConst>()) return with_part(*n, &AllocateConst::body, head(n->body));
    if (const DeclBuffer* n = stmt.as<DeclBuffer>()) return with_part(*n, &DeclBuffer::body, head(n->body));
    return stmt;
  }

  arith::Analyzer arith_;
};

}  // namespace

Stmt with_empty_reductions(const Stmt& stmt) { return Rewriter(stmt).head(stmt); }

}  // namespace sator::tir
