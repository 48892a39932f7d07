#include "tir/regions.h"

#include <algorithm>

#include "arith/analyzer.h"
#include "arith/intset.h"

namespace sator::tir {

namespace {

using arith::IntSet;

IntSet relaxed(const IntSet& set, const arith::SetMap& domains) {
  if (set.empty) return set;
  if (set.is_point()) return arith::eval_set(set.min, domains);
  return IntSet::interval(set.min ? arith::eval_set(set.min, domains).min : nullptr,
                          set.max ? arith::eval_set(set.max, domains).max : nullptr);
}

class RegionDetector {
 public:
  RegionDetector(const Block& block, const VisibleBuffers& visible) : visible_(visible) {
    for (const MatchBufferRef& m : block.match_buffers) {
      if (!visible_.count(m->source->buffer->data)) continue;
      matched_[m->buffer->data] = m;
      visible_.insert_or_assign(m->buffer->data, m->buffer);
    }
    if (block.init) visit(block.init);
    visit(block.body);
  }

  BlockRegions result(bool has_init) {
    BlockRegions out;
    for (const Access& a : writes_) out.writes.push_back(cover(a));
    for (const Access& a : reads_) {
      bool written = false;
      for (const Access& w : writes_) written |= w.buffer == a.buffer;
      if (!(has_init && written)) out.reads.push_back(cover(a));
    }
    out.opaque = std::move(opaque_);
    return out;
  }

 private:
  struct Access {
    BufferRef buffer;
    std::vector<IntSet> box;
  };

  void visit(const NodeRef& node) {
    if (const For* loop = node.as<For>()) {
      visit(loop->min);
      visit(loop->extent);
      domains_[loop->var] = IntSet::from_min_extent(outside(loop->min), outside(loop->extent));
      visit(loop->body);
      domains_.erase(loop->var);
    } else if (const LetStmt* let = node.as<LetStmt>()) {
      visit(let->value);
      lets_[let->var] = outside(let->value);
      visit(let->body);
      lets_.erase(let->var);
    } else if (const IfThenElse* branch = node.as<IfThenElse>()) {
      visit(branch->condition);
      under(branch->condition, true, [&] { visit(branch->then_case); });
      if (branch->else_case) under(branch->condition, false, [&] { visit(branch->else_case); });
    } else if (const BlockRealize* realize = node.as<BlockRealize>()) {
      visit_block(*realize);
    } else if (const BufferStore* store = node.as<BufferStore>()) {
      update(writes_, store->buffer, box_of(store->indices));
      visit(store->value);
      for (const Expr& i : store->indices) visit(i);
    } else if (const BufferLoad* load = node.as<BufferLoad>()) {
      update(reads_, load->buffer, box_of(load->indices));
      for (const Expr& i : load->indices) visit(i);
    } else if (const Var* v = node.as<Var>()) {
      if (visible_.count(ref(*v))) use_pointer(*v);
    } else if (const Call* call = node.as<Call>(); call && call->op == "tir.if_then_else") {
      visit(call->args[0]);
      under(call->args[0], true, [&] { visit(call->args[1]); });
      under(call->args[0], false, [&] { visit(call->args[2]); });
    } else if (call && call->op == "tir.tvm_access_ptr") {
      visit_access_ptr(*call);
    } else if (const DeclBuffer* decl = node.as<DeclBuffer>()) {
      visit(decl->body);
    } else if (const Allocate* allocate = node.as<Allocate>()) {
      for (const Expr& e : allocate->extents) visit(e);
      visit(allocate->body);
    } else if (const AllocateConst* constant = node.as<AllocateConst>()) {
      visit(constant->body);
    } else if (const AttrStmt* attr = node.as<AttrStmt>()) {
      visit(attr->value);
      visit(attr->body);
    } else {
      node->info().each_child(*node, [&](const NodeRef& child) { visit(child); });
    }
  }

  void visit_block(const BlockRealize& realize) {
    const Block& block = *realize.block;
    VarMap bindings;
    for (size_t i = 0; i < block.iter_vars.size(); ++i) bindings[block.iter_vars[i]->var] = realize.values[i];
    auto add = [&](std::vector<Access>& accesses, const std::vector<BufferRegionRef>& regions) {
      for (const BufferRegionRef& r : regions) {
        std::vector<IntSet> box;
        for (const RangeRef& range : r->region) {
          RangeRef instance =
              make<Range>(outside(substitute(range->min, bindings)), outside(substitute(range->extent, bindings)));
          box.push_back(arith::eval_set(instance, domains_));
        }
        update(accesses, r->buffer, std::move(box));
      }
    };
    add(reads_, block.reads);
    add(writes_, block.writes);
  }

  void visit_access_ptr(const Call& call) {
    const Var* pointer = call.args[1].as<Var>();
    auto mask = as_int(call.args[4]);
    if (!pointer || !mask || !visible_.count(ref(*pointer))) {
      for (const Expr& a : call.args) visit(a);
      return;
    }
    BufferRef buffer = buffer_behind(*pointer);
    if ((*mask & 3) == 3) return use_pointer(*pointer);
    std::vector<IntSet> box;
    for (const Expr& extent : buffer->shape) box.push_back(arith::eval_set(range_of(extent), domains_));
    if (*mask & 1) update(reads_, buffer, box);
    if (*mask & 2) update(writes_, buffer, box);
  }

  /// An expression without the variables that lets inside of the block bind: its regions speak of what is outside.
  Expr outside(const Expr& e) const { return substitute(e, lets_); }

  std::vector<IntSet> box_of(const std::vector<Expr>& indices) {
    std::vector<IntSet> box;
    for (const Expr& index : indices) {
      Expr e = outside(index);
      box.push_back(e->dtype.lanes == 1 ? arith::eval_set(e, domains_) : relaxed(arith::vector_set(e), domains_));
    }
    return box;
  }

  /// The region of the buffer that a part of a matched one stands for.
  std::vector<IntSet> in_source(const MatchBuffer& m, const std::vector<IntSet>& box) {
    const std::vector<RangeRef>& source = m.source->region;
    size_t skipped = source.size() - std::min(source.size(), box.size());  // leading dimensions may be dropped
    std::vector<IntSet> out;
    for (size_t i = 0; i < source.size(); ++i) {
      RangeRef part = make<Range>(source[i]->min, int_imm(1, source[i]->min->dtype));
      if (i >= skipped) {
        RangeRef inner = box[i - skipped].cover_range(range_of(m.buffer->shape[i - skipped]));
        part = make<Range>(source[i]->min + inner->min, inner->extent);
      }
      out.push_back(arith::eval_set(part, domains_));
    }
    return out;
  }

  /// The value is read from memory that is not there before the block begins.
  bool is_hidden(const Expr& e) const {
    bool hidden = false;
    if (e) walk(e, [&](const BufferLoad& load) { hidden |= !visible_.count(load.buffer->data); });
    return hidden;
  }

  void update(std::vector<Access>& accesses, BufferRef buffer, std::vector<IntSet> box) {
    if (!visible_.count(buffer->data)) return;
    for (IntSet& set : box)
      if (is_hidden(set.min) || is_hidden(set.max)) set = IntSet::everything();
    for (auto m = matched_.find(buffer->data); m != matched_.end(); m = matched_.find(buffer->data)) {
      box = in_source(*m->second, box);
      buffer = m->second->source->buffer;
    }
    for (Access& a : accesses) {
      if (a.buffer != buffer) continue;
      for (size_t i = 0; i < box.size() && i < a.box.size(); ++i) {
        bool same = a.box[i].is_point() && box[i].is_point() && equal(a.box[i].min, box[i].min);
        if (!same) a.box[i] = arith::unite({a.box[i], box[i]});
      }
      return;
    }
    accesses.push_back({std::move(buffer), std::move(box)});
  }

  BufferRegionRef cover(const Access& a) {
    std::vector<RangeRef> ranges;
    for (size_t i = 0; i < a.box.size(); ++i) {
      const IntSet& b = a.box[i];
      if (b.min && b.max && (b.is_point() || analyzer_.prove_equal(b.min, b.max)))
        ranges.push_back(make<Range>(b.min, int_imm(1, b.min->dtype)));
      else
        ranges.push_back(b.cover_range(range_of(a.buffer->shape[i])));
    }
    return make<BufferRegion>(a.buffer, std::move(ranges));
  }

  void use_pointer(const Var& pointer) {
    if (std::find(opaque_.begin(), opaque_.end(), ref(pointer)) == opaque_.end()) opaque_.push_back(ref(pointer));
  }
  BufferRef buffer_behind(const Var& pointer) const { return visible_.at(ref(pointer)); }

  /// Runs `body` with the loops' domains narrowed by what holds of the condition.
  template <class Fn>
  void under(const Expr& condition, bool holds, Fn body) {
    arith::SetMap before = domains_;
    narrow(outside(condition), holds);
    body();
    domains_ = std::move(before);
  }

  void narrow(const Expr& e, bool holds) {
    if (const And* n = e.as<And>(); n && holds) {
      narrow(n->a, true);
      narrow(n->b, true);
    } else if (const Or* n = e.as<Or>(); n && !holds) {
      narrow(n->a, false);
      narrow(n->b, false);
    } else if (const Not* n = e.as<Not>()) {
      narrow(n->a, !holds);
    } else if (const Call* c = e.as<Call>(); c && c->op == "tir.likely") {
      narrow(c->args[0], holds);
    } else {
      // Brought to the form small + slack <= large.
      match(
          e,
          [&](const LT& n) { holds ? bound(n.a, n.b, 1) : bound(n.b, n.a, 0); },
          [&](const LE& n) { holds ? bound(n.a, n.b, 0) : bound(n.b, n.a, 1); },
          [&](const GT& n) { holds ? bound(n.b, n.a, 1) : bound(n.a, n.b, 0); },
          [&](const GE& n) { holds ? bound(n.b, n.a, 0) : bound(n.a, n.b, 1); },
          [&](const EQ& n) {
            if (!holds) return;
            bound(n.a, n.b, 0);
            bound(n.b, n.a, 0);
          },
          [&](const ExprNode&) {});
    }
  }

  /// small + slack <= large bounds each loop variable that it is linear in, with a factor of 1 or -1 and no other.
  void bound(const Expr& small, const Expr& large, int64_t slack) {
    if (!small->dtype.is_int() || small->dtype.lanes != 1 || small->dtype != large->dtype) return;
    Expr difference = small - large + slack;  // <= 0
    std::vector<VarRef> loops;
    for (const VarRef& v : vars_in(difference)) {
      if (domains_.count(v)) loops.push_back(v);
    }
    if (loops.size() != 1) return;
    const VarRef& v = loops[0];
    Expr rest = substitute(difference, VarMap{{v, int_imm(0, v->dtype)}});
    IntSet limit;
    if (analyzer_.prove_equal(difference, rest + v))
      limit = IntSet::interval(nullptr, analyzer_.simplify(int_imm(0, v->dtype) - rest));
    else if (analyzer_.prove_equal(difference, rest - v))
      limit = IntSet::interval(analyzer_.simplify(rest), nullptr);
    else
      return;
    domains_[v] = arith::intersect({domains_[v], limit});
  }

  VisibleBuffers visible_;
  std::unordered_map<VarRef, MatchBufferRef> matched_;
  arith::SetMap domains_;
  arith::Analyzer analyzer_;
  VarMap lets_;
  std::vector<Access> reads_, writes_;
  std::vector<VarRef> opaque_;
};

}  // namespace

BlockRegions block_regions(const Block& block, const VisibleBuffers& visible) {
  return RegionDetector(block, visible).result(block.init != nullptr);
}

BlockRef block_around(const Stmt& body, const VisibleBuffers& visible, std::vector<BufferRef> allocated) {
  BlockRef bare = make<Block>(std::vector<IterVarRef>{},
                              std::move(allocated),
                              std::vector<MatchBufferRef>{},
                              std::vector<BufferRegionRef>{},
                              std::vector<BufferRegionRef>{},
                              block_name(""),
                              Attrs{},
                              Stmt(),
                              body);
  BlockRegions regions = block_regions(*bare, visible);
  for (const VarRef& pointer : regions.opaque) {
    regions.reads.push_back(full_region(visible.at(pointer)));
    regions.writes.push_back(full_region(visible.at(pointer)));
  }
  Block block = *bare;
  block.reads = std::move(regions.reads);
  block.writes = std::move(regions.writes);
  return BlockRef(new Block(std::move(block)));
}

}  // namespace sator::tir
