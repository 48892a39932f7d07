// A buffer shrinks to the box of it that is used where it is allocated:
//   for i: T = alloc(128, 128); for j: T[i, j] = ...; ... T[i, j] ...   =>   T = alloc(1, 128); T[0, j]
#include "arith/analyzer.h"
#include "arith/deduce_bound.h"
#include "arith/intset.h"
#include "passes/lower/lower.h"

namespace sator::passes {

using namespace tir;

namespace {

struct LoopRange {
  VarRef var;
  RangeRef range;
  std::string thread;  ///< the axis of a launch that it is, as "threadIdx.x"
};

/// Whether the threads of an axis have memory of that scope in common: a box of it holds what all of them use.
bool is_common(std::string_view scope, std::string_view thread) {
  if (scope.starts_with("shared")) return thread.starts_with("threadIdx") || thread.starts_with("vthread");
  return scope == "warp" && thread == "threadIdx.x";
}

bool has_load(const Expr& e) {
  bool found = false;
  walk(e, [&](const BufferLoad&) { found = true; }, [&](const Call&) { found = true; });
  return found;
}

/// What is known of a buffer that a block, or an allocation below blocks, owns.
struct Owned {
  BufferRef buffer;
  size_t depth = 0;                              ///< loops around the allocation
  std::vector<std::vector<arith::IntSet>> uses;  ///< a box for each access
  bool opaque = false;                           ///< its pointer is used otherwise
};

/// Reads the accesses of all owned buffers, relaxed over the loops inside the allocation.
class UseCollector {
 public:
  std::unordered_map<const Buffer*, Owned> owned;
  std::vector<const Buffer*> in_order;

  void visit(const Stmt& stmt) {
    if (const For* n = stmt.as<For>()) {
      expr(n->min);
      expr(n->extent);
      const std::string thread = n->kind == LoopKind::thread_binding ? n->thread : "";
      loops_.push_back({n->var, make<Range>(inlined(n->min), inlined(n->extent)), thread});
      visit(n->body);
      loops_.pop_back();
      return;
    }
    if (const AttrStmt* n = stmt.as<AttrStmt>(); n && n->node) {
      if (const ThreadAxis* axis = n->node.as<ThreadAxis>()) {
        expr(n->value);
        loops_.push_back({axis->var, make<Range>(int_imm(0, axis->var->dtype), inlined(n->value)), axis->tag});
        visit(n->body);
        loops_.pop_back();
        return;
      }
    }
    if (const Allocate* n = stmt.as<Allocate>()) {
      for (const Expr& e : n->extents) expr(e);
      allocated_[n->data.get()] = {n, loops_.size()};
      visit(n->body);
      return;
    }
    if (const DeclBuffer* n = stmt.as<DeclBuffer>()) {
      declare(n->buffer);
      visit(n->body);
      return;
    }
    if (const LetStmt* n = stmt.as<LetStmt>()) {
      expr(n->value);
      lets_[n->var] = inlined(n->value);
      visit(n->body);
      return;
    }
    if (const BufferStore* n = stmt.as<BufferStore>()) {
      expr(n->value);
      for (const Expr& i : n->indices) expr(i);
      access(n->buffer, points(n->indices));
      return;
    }
    if (const IfThenElse* n = stmt.as<IfThenElse>()) {
      expr(n->condition);
      under(n->condition, [&] { visit(n->then_case); });
      if (n->else_case) under(logical_not(n->condition), [&] { visit(n->else_case); });
      return;
    }
    if (const BlockRealize* n = stmt.as<BlockRealize>()) {
      for (const Expr& e : n->values) expr(e);
      expr(n->predicate);
      under(n->predicate, [&] { visit(n->block); });
      return;
    }
    if (const Block* n = stmt.as<Block>()) {
      for (const BufferRef& b : n->alloc_buffers) {
        owned[b.get()] = {b, loops_.size(), {}, false};
        pointers_[b->data.get()] = b.get();
        in_order.push_back(b.get());
      }
      for (const MatchBufferRef& m : n->match_buffers) {
        arith::Region region = m->source->region;
        access(m->source->buffer, region);
      }
      visit(n->body);
      return;
    }
    stmt->info().each_child(*stmt, [&](const NodeRef& child) {
      if (const StmtNode* s = child->as<StmtNode>()) return visit(ref(*s));
      if (const ExprNode* e = child->as<ExprNode>()) expr(ref(*e));
    });
  }

 private:
  Expr inlined(const Expr& e) { return substitute(e, lets_); }

  static arith::Region points(const std::vector<Expr>& indices) {
    arith::Region out;
    for (const Expr& i : indices) {
      if (i->dtype.lanes == 1) {
        out.push_back(make<Range>(i, int_imm(1, i->dtype)));
      } else {
        out.push_back(arith::vector_set(i).cover_range(nullptr));
      }
    }
    return out;
  }

  /// What is visited runs only where the condition holds.
  void under(const Expr& condition, FunctionRef<void()> visit_inner) {
    const size_t before = conditions_.size();
    conjuncts(inlined(condition));
    visit_inner();
    conditions_.resize(before);
  }
  void conjuncts(const Expr& e) {
    if (const Call* n = e.as<Call>(); n && n->op == "tir.likely") return conjuncts(n->args[0]);
    if (const And* n = e.as<And>()) {
      conjuncts(n->a);
      conjuncts(n->b);
    } else if (const Not* n = e.as<Not>()) {
      // Of a disjunction neither part holds.
      Expr inner = n->a;
      if (const Or* either = inner.as<Or>()) {
        conjuncts(logical_not(either->a));
        conjuncts(logical_not(either->b));
      } else if (Expr opposite = inverse(inner)) {
        conjuncts(opposite);
      }
    } else if (e->dtype == boolean && !has_load(e)) {
      conditions_.push_back(e);
    }
  }
  static Expr inverse(const Expr& e) {
    if (const LT* n = e.as<LT>()) return make<GE>(n->a, n->b);
    if (const GT* n = e.as<GT>()) return make<LE>(n->a, n->b);
    if (const LE* n = e.as<LE>()) return make<GT>(n->a, n->b);
    if (const GE* n = e.as<GE>()) return make<LT>(n->a, n->b);
    return nullptr;
  }

  void expr(const Expr& root) {
    walk(
        root,
        [&](const BufferLoad& n) { access(n.buffer, points(n.indices)); },
        [&](const Call& n) {
          if (n.op != "tir.if_then_else") return true;
          expr(n.args[0]);
          under(n.args[0], [&] { expr(n.args[1]); });
          under(logical_not(n.args[0]), [&] { expr(n.args[2]); });
          return false;
        },
        [&](const Let& n) { lets_[n.var] = inlined(n.value); },
        [&](const Buffer&) { return false; },
        [&](const Var& v) {
          if (auto at = pointers_.find(&v); at != pointers_.end()) owned[at->second].opaque = true;
        });
  }

  /// A buffer that is all of an allocation, under its only name.
  void declare(const BufferRef& b) {
    auto at = allocated_.find(b->data.get());
    if (at == allocated_.end()) return;
    auto [name, fresh] = pointers_.try_emplace(b->data.get(), b.get());
    if (!fresh) return;
    const Allocate& memory = *at->second.first;
    bool whole = b->dtype == memory.dtype && b->strides.empty() && !b->elem_offset &&
                 std::ranges::equal(b->shape, memory.extents, [](const Expr& x, const Expr& y) {
                   auto m = as_int(x), n = as_int(y);
                   return m && n ? *m == *n : equal(x, y);
                 });
    owned[b.get()] = {b, at->second.second, {}, !whole};
    in_order.push_back(b.get());
  }

  void access(const BufferRef& buffer, const arith::Region& region) {
    auto at = owned.find(buffer.get());
    if (at == owned.end()) {
      if (auto other = pointers_.find(buffer->data.get()); other != pointers_.end()) owned[other->second].opaque = true;
      return;
    }
    arith::SetMap domains;
    for (size_t i = 0; i < loops_.size(); ++i) {
      if (i >= at->second.depth || is_common(buffer->scope(), loops_[i].thread))
        domains[loops_[i].var] = arith::IntSet::from_range(*loops_[i].range);
    }
    std::vector<arith::IntSet> box;
    arith::Region flat;
    for (const RangeRef& r : region) {
      flat.push_back(r ? make<Range>(inlined(r->min), inlined(r->extent)) : nullptr);
      box.push_back(r ? arith::eval_set(flat.back(), domains) : arith::IntSet::everything());
    }
    narrow(box, flat, domains);
    at->second.uses.push_back(std::move(box));
  }

  /// Takes off the box what the conditions around the access exclude, where that is a number of elements.
  void narrow(std::vector<arith::IntSet>& box, const arith::Region& region, const arith::SetMap& domains) {
    if (conditions_.empty() || std::ranges::any_of(region, [](const RangeRef& r) { return !r; })) return;
    arith::Analyzer analyzer;
    arith::SetMap all;
    arith::RangeMap ranges;
    for (const LoopRange& loop : loops_) {
      all[loop.var] = arith::IntSet::from_range(*loop.range);
      if (domains.contains(loop.var)) ranges[loop.var] = loop.range;
      analyzer.bind(loop.var, loop.range);
    }
    Expr predicate = bool_imm(true);
    for (const Expr& c : conditions_) {
      predicate = logical_and(predicate, c);
      for (auto& [var, range] : ranges) {
        if (!uses_var(c, *var)) continue;
        arith::IntSet set = arith::deduce_bound(var, c, all, {});
        auto first = as_int(range->min), count = as_int(range->extent);
        if (set.empty || !first || !count) continue;
        const int64_t low = set.min ? as_int(analyzer.simplify(set.min)).value_or(*first) : *first;
        const int64_t high =
            set.max ? as_int(analyzer.simplify(set.max)).value_or(*first + *count - 1) : *first + *count - 1;
        const int64_t begin = std::max(*first, low), end = std::min(*first + *count - 1, high);
        if (begin <= end) range = make<Range>(int_imm(begin, var->dtype), int_imm(end - begin + 1, var->dtype));
      }
    }
    const std::vector<arith::IntSet> narrowed = arith::estimate_region_upper_bound(region, ranges, predicate, analyzer);
    for (size_t d = 0; d < box.size() && d < narrowed.size(); ++d) {
      auto cut = [&](const Expr& a, const Expr& b) {
        return a && b ? as_int(analyzer.simplify(a - b)).value_or(0) : 0;
      };
      if (narrowed[d].empty) continue;
      if (cut(narrowed[d].min, box[d].min) > 0) box[d].min = narrowed[d].min;
      if (cut(box[d].max, narrowed[d].max) > 0) box[d].max = narrowed[d].max;
    }
  }

  std::vector<Expr> conditions_;  ///< that hold here, without loads
  std::vector<LoopRange> loops_;
  std::unordered_map<const Var*, std::pair<const Allocate*, size_t>> allocated_;  ///< and the loops around it
  VarMap lets_;
  std::unordered_map<const Var*, const Buffer*> pointers_;
};

/// A buffer's smaller self: where its box began, and the buffer in its place.
struct Compact {
  BufferRef buffer;
  std::vector<Expr> begin;
};

class Compactor {
 public:
  /// Unless `strict`, a box of constant extents may be larger than the buffer, where accesses that never run lie outside.
  explicit Compactor(bool strict) : strict_(strict) {}

  void plan(const Owned& o, const std::vector<int64_t>& alignment) {
    const Buffer& b = *o.buffer;
    Compact c{nullptr, {}};
    std::vector<Expr> shape;
    bool smaller = false;
    for (size_t d = 0; d < b.shape.size(); ++d) {
      RangeRef range = o.opaque || !b.strides.empty() ? nullptr : used(o, d);
      if (range) smaller = true;
      c.begin.push_back(range ? range->min : int_imm(0, b.shape[d]->dtype));
      shape.push_back(range ? cast_to(b.shape[d]->dtype, range->extent) : b.shape[d]);
    }
    std::vector<Expr> strides = o.opaque ? std::vector<Expr>{} : padded(shape, alignment);
    if (!smaller && strides.empty()) return;
    c.buffer = make<Buffer>(b.data,
                            b.dtype,
                            shape,
                            strides,
                            b.elem_offset,
                            b.name,
                            int{b.data_alignment},
                            int{b.offset_factor},
                            std::vector<int>{});
    compact_[o.buffer.get()] = std::move(c);
  }

  Stmt run(const Stmt& body) {
    if (compact_.empty()) return body;
    auto replaced = [&](const BufferRef& b) {
      auto at = compact_.find(b.get());
      return at == compact_.end() ? b : at->second.buffer;
    };
    return transform(
        body,
        [&](const BufferLoad& n) -> NodeRef {
          auto at = compact_.find(n.buffer.get());
          if (at == compact_.end()) return NodeRef(&n);
          return make<BufferLoad>(at->second.buffer, place(at->second, n.indices));
        },
        [&](const BufferStore& n) -> NodeRef {
          auto at = compact_.find(n.buffer.get());
          if (at == compact_.end()) return NodeRef(&n);
          return make<BufferStore>(at->second.buffer, n.value, place(at->second, n.indices));
        },
        [&](const BufferRegion& n) -> NodeRef {
          auto at = compact_.find(n.buffer.get());
          if (at == compact_.end()) return NodeRef(&n);
          std::vector<RangeRef> region;
          for (size_t d = 0; d < n.region.size(); ++d)
            region.push_back(make<Range>(shifted(at->second, d, n.region[d]->min), n.region[d]->extent));
          return make<BufferRegion>(at->second.buffer, std::move(region));
        },
        [&](const Block& n) -> NodeRef {
          std::vector<BufferRef> buffers;
          for (const BufferRef& b : n.alloc_buffers) buffers.push_back(replaced(b));
          if (buffers == n.alloc_buffers) return NodeRef(&n);
          return with(n, &Block::alloc_buffers, std::move(buffers));
        },
        [&](const DeclBuffer& n) -> NodeRef {
          BufferRef b = replaced(n.buffer);
          return b == n.buffer ? NodeRef(&n) : with(n, &DeclBuffer::buffer, std::move(b));
        },
        [&](const Allocate& n) -> NodeRef {
          auto at = std::ranges::find(compact_, n.data, [](const auto& c) { return c.second.buffer->data; });
          if (at == compact_.end()) return NodeRef(&n);
          const Buffer& b = *at->second.buffer;
          return with(
              n, &Allocate::extents, b.strides.empty() ? b.shape : std::vector<Expr>{b.shape[0] * b.strides[0]});
        });
  }

 private:
  /// The smaller range of dimension d; nothing where the whole extent is used or it cannot be told.
  RangeRef used(const Owned& o, size_t d) {
    const Expr& whole = o.buffer->shape[d];
    std::vector<arith::IntSet> sets;
    for (const auto& box : o.uses) sets.push_back(box[d]);
    if (sets.empty()) return nullptr;
    RangeRef range = arith::unite(sets).cover_range(nullptr);
    if (!range || has_load(range->min) || has_load(range->extent)) return nullptr;
    Expr extent = range->extent;
    if (!as_int(extent)) {
      // A bound that is a number makes the allocation constant.
      if (auto max = known_bound(extent)) extent = int_imm(*max, extent->dtype);
    }
    auto known = as_int(extent), known_whole = as_int(whole);
    bool smaller = known && known_whole ? *known < *known_whole
                   : known              ? true
                                        : analyzer_.prove(le(extent, whole)) && !analyzer_.prove_equal(extent, whole);
    smaller |= !strict_ && known && known_whole && *known != *known_whole;
    // A constant stands for a symbolic extent only if it cannot be larger by much: the whole is at least 0.
    return smaller ? make<Range>(range->min, extent) : nullptr;
  }

  /// The largest value of an extent that is the same for all sizes: T.min(n - i * 16, 16) is at most 16. That a size is an
  /// int32 says nothing of how large it is.
  static std::optional<int64_t> known_bound(const Expr& extent) {
    arith::Analyzer analyzer;
    for (const VarRef& v : vars_in(extent)) analyzer.bind(v, arith::Bounds{arith::kNegInf, arith::kPosInf});
    // What a cast is bounded by because of a dtype alone says as little.
    Expr free = transform(extent, [&](const Cast& c) -> Expr {
      const arith::Bounds of = analyzer.bounds(c.value);
      const DType narrower = c.dtype.bits < c.value->dtype.bits ? c.dtype : c.value->dtype;
      if (of.min > min_int(narrower) && of.max < max_int(narrower)) return ref(c);
      VarRef any = make_var("any", c.dtype);
      analyzer.bind(any, arith::Bounds{arith::kNegInf, arith::kPosInf});
      return any;
    });
    int64_t max = analyzer.bounds(free).max;
    if (max >= max_int(extent->dtype)) return {};
    return max;
  }

  /// Strides for `buffer_dim_align`: stride `dim` is made `offset` modulo `factor`; empty without one.
  static std::vector<Expr> padded(const std::vector<Expr>& shape, const std::vector<int64_t>& alignment) {
    if (alignment.empty()) return {};
    std::vector<Expr> strides(shape.size());
    Expr step = int_imm(1, i64);
    for (size_t d = shape.size(); d-- > 0;) {
      if (static_cast<int64_t>(d) == alignment[0])
        step = step + floormod(int_imm(alignment[1] + alignment[2], i64) - floormod(step, alignment[1]), alignment[1]);
      // In the dtype of the shape where that is wide enough.
      auto known = as_int(step);
      strides[d] = known && *known <= max_int(shape[d]->dtype) ? cast_to(shape[d]->dtype, step) : step;
      step = step * cast_to(i64, shape[d]);
    }
    return strides;
  }

  Expr shifted(const Compact& c, size_t d, const Expr& index) {
    if (is_zero(c.begin[d])) return index;
    Expr e = index - cast_to(index->dtype.element(), c.begin[d]);
    return index->dtype.lanes == 1 ? analyzer_.simplify(e) : e;
  }
  std::vector<Expr> place(const Compact& c, const std::vector<Expr>& indices) {
    std::vector<Expr> out;
    for (size_t d = 0; d < indices.size(); ++d) out.push_back(shifted(c, d, indices[d]));
    return out;
  }

  bool strict_;
  arith::Analyzer analyzer_;
  std::unordered_map<const Buffer*, Compact> compact_;
};

/// (dim, factor, offset) that `storage_align` asked for the buffer that a block writes.
std::unordered_map<const Buffer*, std::vector<int64_t>> alignments(const Stmt& body) {
  std::unordered_map<const Buffer*, std::vector<int64_t>> out;
  walk(body, [&](const Block& n) {
    auto at = n.annotations.find("buffer_dim_align");
    const Array* rows = at == n.annotations.end() ? nullptr : at->second.as<Array>();
    for (size_t i = 0; rows && i < rows->items.size(); ++i) {
      const Array* row = rows->items[i].as<Array>();
      std::vector<int64_t> numbers;
      for (size_t j = 0; row && j < row->items.size(); ++j)
        if (const IntImm* v = row->items[j].as<IntImm>()) numbers.push_back(v->value);
      if (numbers.size() != 4 || numbers[0] < 0 || numbers[0] >= static_cast<int64_t>(n.writes.size()) ||
          numbers[2] <= 0)
        fail({.what = text("block ", n.name->text, " has a malformed buffer_dim_align"),
              .needs = "lists of (index of the written buffer, dimension, factor > 0, offset)",
              .hint = "set it by storage_align"});
      out[n.writes[static_cast<size_t>(numbers[0])]->buffer.get()] = {numbers[1], numbers[2], numbers[3]};
    }
  });
  return out;
}

}  // namespace

PrimFuncRef compact_buffer_allocation(const PrimFuncRef& func, const LowerOptions& options) {
  UseCollector uses;
  uses.visit(func->body);
  if (uses.in_order.empty()) return func;
  auto aligned = alignments(func->body);
  Compactor compactor(option(options, "CompactBufferAllocation.is_strict", 1) != 0);
  for (const Buffer* b : uses.in_order) compactor.plan(uses.owned.at(b), aligned[b]);
  return with_body(func, compactor.run(func->body));
}

}  // namespace sator::passes
