#include "tir/regions.h"

#include <algorithm>
#include <map>

#include "tir/linear.h"

namespace sator::tir {

namespace {

/// [min, max]; a null end is unbounded.
struct Interval {
  Expr min, max;
  bool is_point() const { return min && min == max; }
};
using Domains = std::map<const Var*, Interval>;

Interval point(const Expr& e) { return {e, e}; }

Expr smaller(const Expr& a, const Expr& b) {
  if (!a || !b) return nullptr;
  return always_le(a, b) ? a : always_le(b, a) ? b : min(a, b);
}
Expr larger(const Expr& a, const Expr& b) {
  if (!a || !b) return nullptr;
  return always_le(a, b) ? b : always_le(b, a) ? a : max(a, b);
}
Interval unite(const Interval& a, const Interval& b) { return {smaller(a.min, b.min), larger(a.max, b.max)}; }

/// The values of an index over the domains of the loops around it.
class IntervalOf {
 public:
  explicit IntervalOf(const Domains& domains) : domains_(domains) {}

  Interval operator()(const Expr& e) {
    bool relaxed = false;
    walk(e, [&](const Var& v) { relaxed |= domains_.count(&v) > 0; });
    if (!relaxed && e->dtype.lanes == 1) return point(e);
    return match(
        e, [&](const Var& v) { return variable(v); },
        [&](const Add& n) {
          Interval a = (*this)(n.a), b = (*this)(n.b);
          return Interval{sum(a.min, b.min), sum(a.max, b.max)};
        },
        [&](const Sub& n) {
          Interval a = (*this)(n.a), b = (*this)(n.b);
          return Interval{minus(a.min, b.max), minus(a.max, b.min)};
        },
        [&](const Mul& n) {
          Interval a = (*this)(n.a), b = (*this)(n.b);
          if (!b.is_point()) std::swap(a, b);
          auto c = b.is_point() ? as_int(b.min) : std::nullopt;
          if (!c) return Interval{};
          Expr low = a.min ? a.min * b.min : nullptr, high = a.max ? a.max * b.min : nullptr;
          return *c >= 0 ? Interval{low, high} : Interval{high, low};
        },
        [&](const FloorDiv& n) {
          Interval a = (*this)(n.a);
          auto c = as_int(n.b);
          if (!c || *c <= 0) return Interval{};
          return Interval{a.min ? floordiv(a.min, n.b) : nullptr, a.max ? floordiv(a.max, n.b) : nullptr};
        },
        [&](const FloorMod& n) {
          auto c = as_int(n.b);
          if (!c || *c <= 0) return Interval{};
          Interval a = (*this)(n.a);
          auto low = a.min ? as_int(a.min) : std::nullopt, high = a.max ? as_int(a.max) : std::nullopt;
          if (low && high && floor_div(*low, *c) == floor_div(*high, *c))
            return Interval{floormod(a.min, n.b), floormod(a.max, n.b)};
          return Interval{int_imm(0, n.dtype), int_imm(*c - 1, n.dtype)};
        },
        [&](const Min& n) {
          Interval a = (*this)(n.a), b = (*this)(n.b);
          // One bounded side bounds the minimum from above.
          Expr high = a.max && b.max ? smaller(a.max, b.max) : a.max ? a.max : b.max;
          return Interval{smaller(a.min, b.min), high};
        },
        [&](const Max& n) {
          Interval a = (*this)(n.a), b = (*this)(n.b);
          Expr low = a.min && b.min ? larger(a.min, b.min) : a.min ? a.min : b.min;
          return Interval{low, larger(a.max, b.max)};
        },
        [&](const Select& n) { return unite((*this)(n.true_value), (*this)(n.false_value)); },
        [&](const Cast& n) {
          Interval v = (*this)(n.value);
          return Interval{v.min ? cast_to(n.dtype, v.min) : nullptr, v.max ? cast_to(n.dtype, v.max) : nullptr};
        },
        [&](const Ramp& n) {
          Interval base = (*this)(n.base);
          auto c = as_int(n.stride);
          if (!c) return Interval{};
          Expr reach = int_imm(*c * (n.lanes - 1), n.base->dtype);
          return *c >= 0 ? Interval{base.min, sum(base.max, reach)} : Interval{sum(base.min, reach), base.max};
        },
        [&](const Broadcast& n) { return (*this)(n.value); }, [&](const ExprNode&) { return Interval{}; });
  }

 private:
  static Expr sum(const Expr& a, const Expr& b) { return a && b ? a + b : nullptr; }
  static Expr minus(const Expr& a, const Expr& b) { return a && b ? a - b : nullptr; }

  Interval variable(const Var& v) {
    auto at = domains_.find(&v);
    if (at == domains_.end()) return point(ref(v));
    // A loop's bounds may depend on loops around it.
    Interval d = at->second;
    if (++depth_ > domains_.size() + 1) return {};
    Interval out{d.min ? (*this)(d.min).min : nullptr, d.max ? (*this)(d.max).max : nullptr};
    --depth_;
    return out;
  }
  const Domains& domains_;
  size_t depth_ = 0;
};

class RegionDetector {
 public:
  RegionDetector(const Block& block, const VisibleBuffers& visible) : visible_(visible) {
    for (const MatchBufferRef& m : block.match_buffers) {
      if (!visible_.count(m->source->buffer->data)) continue;
      matched_[m->buffer->data.get()] = m;
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
    std::vector<Interval> box;
  };

  void visit(const NodeRef& node) {
    if (const For* loop = node.as<For>()) {
      visit(loop->min);
      visit(loop->extent);
      Interval domain{loop->min, loop->min + loop->extent - 1};
      domains_[loop->var.get()] = domain;
      visit(loop->body);
      domains_.erase(loop->var.get());
    } else if (const LetStmt* let = node.as<LetStmt>()) {
      visit(let->value);
      lets_[let->var] = let->value;
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
        std::vector<Interval> box;
        for (const RangeRef& range : r->region) {
          Expr low = substitute(range->min, bindings), extent = substitute(range->extent, bindings);
          Interval a = IntervalOf(domains_)(low);
          if (!is_one(extent)) a.max = IntervalOf(domains_)(low + extent - 1).max;
          box.push_back(std::move(a));
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
    std::vector<Interval> box;
    for (const Expr& extent : buffer->shape) box.push_back({int_imm(0, extent->dtype), extent - 1});
    if (*mask & 1) update(reads_, buffer, box);
    if (*mask & 2) update(writes_, buffer, box);
  }

  std::vector<Interval> box_of(const std::vector<Expr>& indices) {
    std::vector<Interval> box;
    for (const Expr& i : indices) box.push_back(IntervalOf(domains_)(substitute(i, lets_)));
    return box;
  }

  /// The region of the buffer that a matched one stands for.
  std::vector<Interval> in_source(const MatchBuffer& m, const std::vector<Interval>& box) {
    const std::vector<RangeRef>& source = m.source->region;
    size_t skipped = source.size() - std::min(source.size(), box.size());  // leading dimensions may be dropped
    std::vector<Interval> out;
    for (size_t i = 0; i < source.size(); ++i) {
      const RangeRef& r = source[i];
      if (i < skipped) {
        out.push_back(point(r->min));
        continue;
      }
      const Interval& inner = box[i - skipped];
      if (!inner.min || !inner.max) {
        out.push_back({r->min, r->min + r->extent - 1});
      } else if (inner.is_point()) {
        out.push_back(point(r->min + inner.min));
      } else {
        out.push_back({r->min + inner.min, r->min + inner.max});
      }
    }
    for (Interval& i : out) {
      Interval relaxed{i.min ? IntervalOf(domains_)(i.min).min : nullptr, i.max ? IntervalOf(domains_)(i.max).max : nullptr};
      if (!i.is_point() || !relaxed.is_point()) i = relaxed;
    }
    return out;
  }

  void update(std::vector<Access>& accesses, BufferRef buffer, std::vector<Interval> box) {
    if (!visible_.count(buffer->data)) return;
    for (auto m = matched_.find(buffer->data.get()); m != matched_.end(); m = matched_.find(buffer->data.get())) {
      box = in_source(*m->second, box);
      buffer = m->second->source->buffer;
    }
    for (Access& a : accesses) {
      if (a.buffer != buffer) continue;
      for (size_t i = 0; i < box.size() && i < a.box.size(); ++i) {
        bool same = a.box[i].is_point() && box[i].is_point() && equal(a.box[i].min, box[i].min);
        if (!same) a.box[i] = unite(a.box[i], box[i]);
      }
      return;
    }
    accesses.push_back({std::move(buffer), std::move(box)});
  }

  BufferRegionRef cover(const Access& a) const {
    std::vector<RangeRef> ranges;
    for (size_t i = 0; i < a.box.size(); ++i) {
      const Interval& b = a.box[i];
      bool is_point = b.min && b.max && constant_difference(b.max, b.min) == 0;
      if (is_point) ranges.push_back(make<Range>(b.min, int_imm(1, b.min->dtype)));
      else if (b.min && b.max) ranges.push_back(make<Range>(b.min, difference(b.max + 1, b.min)));
      else ranges.push_back(range_of(a.buffer->shape[i]));
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
    Domains before = domains_;
    narrow(condition, holds);
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
          e, [&](const LT& n) { holds ? bound(n.a, n.b, 1) : bound(n.b, n.a, 0); },
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

  /// small + slack <= large bounds a loop variable that occurs once in it, alone of all loop variables.
  void bound(const Expr& small, const Expr& large, int64_t slack) {
    if (!small->dtype.is_int() || small->dtype.lanes != 1) return;
    LinearSum sum(small);
    sum.add(large, -1);
    sum.constant += slack;  // sum <= 0
    const Var* var = nullptr;
    int64_t sign = 0;
    LinearSum rest(int_imm(sum.constant, small->dtype));
    for (const auto& [term, c] : sum.terms) {
      const Var* v = term.as<Var>();
      bool relaxed = false;
      walk(term, [&](const Var& inner) { relaxed |= domains_.count(&inner) > 0; });
      if (!relaxed) {
        rest.add(term, c);
        continue;
      }
      if (!v || var || (c != 1 && c != -1)) return;
      var = v;
      sign = c;
    }
    if (!var) return;
    Interval& d = domains_[var];
    if (sign > 0) {
      Expr limit = difference(int_imm(0, var->dtype), rest.to_expr());
      d.max = d.max ? smaller(d.max, limit) : limit;
    } else {
      Expr limit = rest.to_expr();
      d.min = d.min ? larger(d.min, limit) : limit;
    }
  }

  VisibleBuffers visible_;
  std::map<const Var*, MatchBufferRef> matched_;
  Domains domains_;
  VarMap lets_;
  std::vector<Access> reads_, writes_;
  std::vector<VarRef> opaque_;
};

}  // namespace

BlockRegions block_regions(const Block& block, const VisibleBuffers& visible) {
  return RegionDetector(block, visible).result(block.init != nullptr);
}

}  // namespace sator::tir
