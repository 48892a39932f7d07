#include <algorithm>

#include "ir/builtins.h"
#include "schedule/buffers.h"
#include "schedule/edit.h"
#include "schedule/primitives.h"

namespace sator::schedule {

using namespace tir;

namespace {

/// An expression of a block's stores, and how often it is computed in one instance of the block.
struct Candidate {
  Expr expr, normal;
  int64_t count = 0, nodes = 0;
};

int64_t nodes_of(const Expr& e) {
  int64_t n = 1;
  e->info().each_child(*e, [&](const NodeRef& child) {
    if (const ExprNode* part = child->as<ExprNode>()) n += nodes_of(Expr(part));
  });
  return n;
}

/// Whether a value of the variables may make the expression an error: it would be computed also where a condition
/// kept the block from it.
bool may_fail(const Expr& e) {
  bool fails = false;
  auto check = [&](const Expr& divisor) {
    const auto d = as_int(divisor);
    fails |= divisor->dtype.is_int() && (!d || *d == 0);
  };
  walk(
      e,
      [&](const Div& n) { check(n.b); },
      [&](const Mod& n) { check(n.b); },
      [&](const FloorDiv& n) { check(n.b); },
      [&](const FloorMod& n) { check(n.b); });
  return fails;
}

/// Finds what can be computed once: expressions of the block's iterators alone, without loads.
class Finder {
 public:
  explicit Finder(const Block& block) : block_(block) {}

  bool is_eligible(const Expr& e) const {
    if (nodes_of(e) < 2 || e->dtype.lanes != 1 || e->dtype.is_bool() || e->dtype.is_handle() || !is_pure(e))
      return false;
    bool uses_iterator = false, uses_other = false;
    walk(e, [&](const Var& v) {
      const bool own = std::ranges::any_of(block_.iter_vars, [&](const IterVarRef& i) { return i->var.get() == &v; });
      (own ? uses_iterator : uses_other) = true;
    });
    return uses_iterator && !uses_other && !may_fail(e);
  }

  /// Counts `e`, or what is largest in it.
  void add(const Expr& e, int64_t count) {
    if (!is_eligible(e)) return add_parts(e, count);
    Expr normal = analyzer_.simplify(e);
    auto known = std::ranges::find_if(found_, [&](const Candidate& c) { return equal(c.normal, normal); });
    if (known != found_.end()) {
      known->count += count;
      return;
    }
    const int64_t nodes = nodes_of(e);
    auto smaller = std::ranges::find_if(found_, [&](const Candidate& c) { return c.nodes < nodes; });
    found_.insert(smaller, Candidate{e, normal, count, nodes});
  }
  void add_parts(const Expr& e, int64_t count) {
    e->info().each_child(*e, [&](const NodeRef& child) {
      if (const ExprNode* part = child->as<ExprNode>()) add(Expr(part), count);
    });
  }

  /// Those that are computed at least `threshold` times, the larger first; of what is rarer, the parts.
  std::vector<Candidate> chosen(int64_t threshold) {
    for (size_t i = 0; i < found_.size(); ++i) {
      if (found_[i].count < threshold) add_parts(Candidate(found_[i]).expr, Candidate(found_[i]).count);
    }
    std::erase_if(found_, [&](const Candidate& c) { return c.count < threshold; });
    return found_;
  }

  Expr normal(const Expr& e) { return analyzer_.simplify(e); }

 private:
  const Block& block_;
  arith::Analyzer analyzer_;
  std::vector<Candidate> found_;  ///< by decreasing number of nodes
};

/// The stores of a block, without those of blocks in it.
template <class Visit>
void each_store(const Block& block, Visit&& visit) {
  auto stores_in = [&](const Stmt& stmt) {
    walk(
        stmt,
        [&](const BlockRealize&) { return false; },
        [&](const BufferStore& store) {
          visit(store);
          return false;
        });
  };
  if (block.init) stores_in(block.init);
  stores_in(block.body);
}

/// One expression, kept for all values of the iterators that it uses.
struct Precomputed {
  Candidate of;
  std::vector<IterVarRef> iters;
  BufferRef buffer;
  BlockHandle block;
  std::vector<Expr> indices() const {
    std::vector<Expr> out;
    for (const IterVarRef& i : iters) out.push_back(i->var);
    return out;
  }
};

Precomputed table_for(const Block& block, const Candidate& of, size_t number, const std::string& scope) {
  Precomputed table{.of = of};
  // Iterators in the order in which the expression names them.
  walk(of.expr, [&](const Var& v) {
    auto own = std::ranges::find_if(block.iter_vars, [&](const IterVarRef& i) { return i->var.get() == &v; });
    if (std::ranges::find(table.iters, *own) == table.iters.end()) table.iters.push_back(*own);
  });
  std::vector<Expr> shape;
  for (const IterVarRef& i : table.iters) shape.push_back(arith::Analyzer().simplify(i->dom->min + i->dom->extent));
  const std::string name = text("index_var_", static_cast<int64_t>(number));
  const DType dtype = of.expr->dtype;
  table.buffer = make_buffer(name, std::move(shape), dtype, scope);
  table.block = make<BlockName>(text("index_", static_cast<int64_t>(number)));
  return table;
}

/// for ax0: index_0: index_var_0[v0] = the expression
Stmt filled(const Precomputed& table) {
  std::vector<IterVarRef> iters;
  std::vector<Expr> values, indices;
  std::vector<Loop> loops;
  VarMap map;
  for (const IterVarRef& i : table.iters) {
    const auto d = static_cast<int64_t>(iters.size());
    VarRef var = make_var(text("v", d), i->var->dtype);
    loops.push_back(make_var(text("ax", d), i->var->dtype));
    iters.push_back(make<IterVar>(i->dom, var, IterKind::spatial));
    values.push_back(loops.back());
    indices.push_back(var);
    map.emplace(i->var, var);
  }
  BlockRef block = make<Block>(iters,
                               std::vector<BufferRef>{},
                               std::vector<MatchBufferRef>{},
                               std::vector<BufferRegionRef>{},
                               std::vector<BufferRegionRef>{point_region(table.buffer, indices)},
                               table.block,
                               Attrs{},
                               Stmt(),
                               store(table.buffer, substitute(table.of.expr, map), indices));
  Stmt nest = make<BlockRealize>(values, bool_imm(true), block);
  for (size_t d = loops.size(); d-- > 0;)
    nest = make<For>(loops[d],
                     table.iters[d]->dom->min,
                     table.iters[d]->dom->extent,
                     LoopKind::serial,
                     std::string(),
                     Attrs{},
                     std::move(nest));
  return nest;
}

/// Loads in the place of what the tables hold.
class Reader {
 public:
  Reader(Finder& finder, const std::vector<Precomputed>& tables) : finder_(finder), tables_(tables) {}

  NodeRef read(const NodeRef& n) {
    if (n->as<BlockRealize>()) return n;
    if (const ExprNode* node = n->as<ExprNode>(); node && inside_) {
      const Expr e(node);
      if (finder_.is_eligible(e)) {
        const Expr normal = finder_.normal(e);
        for (const Precomputed& t : tables_) {
          if (equal(t.of.normal, normal)) return load(t.buffer, t.indices());
        }
      }
    }
    const bool was_inside = inside_;
    inside_ |= n->as<BufferStore>() != nullptr;
    NodeRef out = n->info().map_children(
        *n, [&](const NodeRef& child) { return child->as<ExprNode>() || child->as<StmtNode>() ? read(child) : child; });
    inside_ = was_inside;
    return out;
  }

 private:
  Finder& finder_;
  const std::vector<Precomputed>& tables_;
  bool inside_ = false;  ///< of a store
};

/// Why the block's expressions cannot be kept; nothing if they can.
MaybeReason cannot_cache_index(const Schedule& s, const BlockHandle& block, int64_t threshold) {
  const int site = s.site(block);
  const Sites& sites = s.sites();
  if (sites[site].scope < 0)
    return block_refusal(s, site, "is the root block", "a block inside of the function", "choose a child block");
  if (threshold < 0)
    return Reason{.what = text("the threshold ", threshold, " is negative"),
                  .needs = "cse_thresh: how often an expression has to be computed, 0 for any",
                  .hint = "leave it out to keep all expressions"};
  arith::Analyzer a;
  for (const IterVarRef& i : s.get(block).iter_vars) {
    if (!a.prove_ge(i->dom->min, 0))
      return block_refusal(s,
                           site,
                           text("has the iterator ", i->var->name, ", which may be negative"),
                           "iterators from 0 on: they index the tables",
                           "normalise the loops and domains first");
    for (int loop : sites.loops_above(site)) {
      if (uses_var(i->dom->min, *sites[loop].loop()->var) || uses_var(i->dom->extent, *sites[loop].loop()->var))
        return block_refusal(s,
                             site,
                             text("has the iterator ", i->var->name, ", whose domain the loops around it tell"),
                             "domains that are known in front of the loops",
                             "blockize the inner loops, and work on the block inside");
    }
  }
  return {};
}

/// Computes indices and other expressions of a block's iterators ahead, once for each value of the iterators they use.
///   for i, j: B[i, j] = A[i // 4 + j // 4]   =>   for i, j: index_var_0[i, j] = i // 4 + j // 4
///                                                 for i, j: B[i, j] = A[index_var_0[i, j]]
/// An expression counts where one instance of the block computes it at least `cse_thresh` times. Returns the blocks
/// index_0, index_1, ..., the largest expression first.
std::vector<BlockHandle> do_cache_index(Schedule& s, BlockHandle block, std::string storage_scope, int64_t cse_thresh) {
  require_scope(s, storage_scope);
  s.require(cannot_cache_index(s, block, cse_thresh));
  const int site = s.site(block), scope = s.sites()[site].scope;
  const Block& old = s.get(block);
  Finder finder(old);
  each_store(old, [&](const BufferStore& store) {
    finder.add(store.value, 1);
    for (const Expr& index : store.indices) finder.add(index, 1);
  });
  std::vector<Precomputed> tables;
  for (const Candidate& c : finder.chosen(cse_thresh))
    tables.push_back(table_for(old, c, tables.size(), storage_scope));
  if (tables.empty()) return {};

  BlockRef changed = cast<Block>(Reader(finder, tables).read(ref(old)));
  std::vector<BufferRegionRef> reads = changed->reads;
  std::vector<Stmt> stages;
  std::vector<BlockHandle> made;
  const Block& scope_block = *s.sites()[scope].realize()->block;
  std::vector<BufferRef> allocations = scope_block.alloc_buffers;
  for (const Precomputed& t : tables) {
    reads.push_back(point_region(t.buffer, t.indices()));
    stages.push_back(filled(t));
    made.push_back(t.block);
    allocations.push_back(t.buffer);
  }
  changed = with(changed, &Block::reads, std::move(reads));
  const BlockRealize& realize = *s.sites()[site].realize();
  const Stmt anchor = s.sites()[child_towards(s.sites(), scope, site)].stmt;
  const NodeMap replacement{{Stmt(&realize), Stmt(with(realize, &BlockRealize::block, changed))}};
  stages.push_back(replaced(anchor, replacement));
  replace_scope(
      s, scope, replaced(scope_block.body, NodeMap{{anchor, seq(std::move(stages))}}), std::move(allocations));
  return made;
}

}  // namespace

const Primitive<std::vector<BlockHandle>(BlockHandle, std::string, int64_t)> cache_index{
    "cache_index",
    do_cache_index,
    {"block", "storage_scope", {"cse_thresh", int64_t{0}}},
    "computes indices of a block ahead"};

}  // namespace sator::schedule
