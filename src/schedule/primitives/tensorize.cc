#include <algorithm>

#include "arith/index_map.h"
#include "schedule/blockize.h"
#include "schedule/loops.h"
#include "schedule/primitives.h"
#include "schedule/tensor_intrin.h"
#include "tir/copy.h"
#include "tir/print.h"

namespace sator::schedule {

using namespace tir;

namespace {

/// Matches the body of a description with that of a block: loops, iterators and blocks by position, each buffer of the
/// description with a box of one of the program's: the same indices, shifted by a base that no loop inside changes.
class Matcher {
 public:
  bool stmt(const Stmt& d, const Stmt& p) {
    if (!d || !p) return !d && !p;
    if (&d->info() != &p->info()) return differ(d, p);
    if (const For* loop = d.as<For>()) {
      const For* other = p.as<For>();
      if (!expr(loop->min, other->min) || !expr(loop->extent, other->extent) || loop->kind != other->kind ||
          loop->thread != other->thread)
        return differ(d, p);
      define(loop->var, other->var, make<Range>(other->min, other->extent));
      return stmt(loop->body, other->body);
    }
    if (const Seq* seq = d.as<Seq>()) {
      const Seq* other = p.as<Seq>();
      if (seq->stmts.size() != other->stmts.size()) return differ(d, p);
      for (size_t i = 0; i < seq->stmts.size(); ++i) {
        if (!stmt(seq->stmts[i], other->stmts[i])) return false;
      }
      return true;
    }
    if (const BufferStore* st = d.as<BufferStore>()) {
      const BufferStore* other = p.as<BufferStore>();
      return access(st->buffer, st->indices, other->buffer, other->indices) && expr(st->value, other->value)
                 ? true
                 : differ(d, p);
    }
    if (const BlockRealize* realize = d.as<BlockRealize>()) return block(*realize, *p.as<BlockRealize>());
    return differ(d, p);
  }

  struct Part {
    BufferRef buffer;        ///< of the program
    std::vector<Expr> base;  ///< one per dimension of it
  };
  const std::unordered_map<BufferRef, Part>& parts() const { return parts_; }
  const std::string& difference() const { return difference_; }

 private:
  bool differ(const NodeRef& d, const NodeRef& p) {
    if (difference_.empty()) {
      Stmt a = cast<StmtNode>(d), b = cast<StmtNode>(p);
      if (a && b) difference_ = text("it has `", *b, "` where the description has `", *a, "`");
    }
    return false;
  }
  void define(const VarRef& d, const VarRef& p, const RangeRef& range) {
    vars_.emplace(d, p);
    analyzer_.bind(p, range);
    inside_.push_back(p);
  }

  bool block(const BlockRealize& d, const BlockRealize& p) {
    const Block &a = *d.block, &b = *p.block;
    bool same = a.iter_vars.size() == b.iter_vars.size() && expr(d.predicate, p.predicate) && a.alloc_buffers.empty() &&
                b.alloc_buffers.empty() && a.match_buffers.empty() && b.match_buffers.empty();
    for (size_t i = 0; same && i < a.iter_vars.size(); ++i) {
      const IterVar &x = *a.iter_vars[i], &y = *b.iter_vars[i];
      same = x.kind == y.kind && expr(d.values[i], p.values[i]) && expr(x.dom->min, y.dom->min) &&
             expr(x.dom->extent, y.dom->extent);
      if (same) define(x.var, y.var, y.dom);
    }
    if (!same) {
      if (difference_.empty())
        difference_ = text("the iterators of block ", string_literal(b.name->text), " are others");
      return false;
    }
    return stmt(a.init, b.init) && stmt(a.body, b.body);
  }

  /// The description's expression over the iterators of the program.
  Expr in_program(const Expr& d) const {
    VarMap map;
    for (const auto& [var, value] : vars_) map.emplace(var, value);
    return arith::substitute_promoting(d, map);
  }

  bool expr(const Expr& d, const Expr& p) {
    if (VarRef v = cast<Var>(d)) {
      auto at = vars_.find(v);
      return at != vars_.end() && equal(at->second, p);
    }
    // The dtype of indices is the program's business: int32 constants match int64 ones.
    if (auto x = as_int(d), y = as_int(p); x && y) return *x == *y && d->dtype.is_bool() == p->dtype.is_bool();
    // An index that the program's loops make simpler: vi % 8 of an axis of eight is vi.
    if (&d->info() != &p->info() && d->dtype.is_int() && p->dtype.is_int())
      return analyzer_.prove_equal(cast_to(p->dtype, in_program(d)), p);
    if (&d->info() != &p->info() || d->dtype != p->dtype) return false;
    if (const BufferLoad* l = d.as<BufferLoad>()) {
      const BufferLoad* other = p.as<BufferLoad>();
      return access(l->buffer, l->indices, other->buffer, other->indices);
    }
    if (const Call* c = d.as<Call>(); c && c->op != p.as<Call>()->op) return false;
    std::vector<Expr> x, y;
    d->info().each_child(*d, [&](const NodeRef& n) { x.push_back(cast<ExprNode>(n)); });
    p->info().each_child(*p, [&](const NodeRef& n) { y.push_back(cast<ExprNode>(n)); });
    if (x.empty()) return equal(d, p);
    return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin(), [&](const Expr& i, const Expr& j) {
             return i && j && expr(i, j);
           });
  }

  bool access(const BufferRef& d, const std::vector<Expr>& d_at, const BufferRef& p, const std::vector<Expr>& p_at) {
    if (d->dtype != p->dtype || d_at.size() > p_at.size()) return false;
    size_t leading = p_at.size() - d_at.size();
    std::vector<Expr> base;
    for (size_t i = 0; i < p_at.size(); ++i) {
      Expr b = p_at[i];
      if (i >= leading) b = analyzer_.simplify(p_at[i] - cast_to(p_at[i]->dtype, in_program(d_at[i - leading])));
      for (const VarRef& v : inside_) {
        if (uses_var(b, *v)) return false;
      }
      base.push_back(b);
    }
    auto [at, fresh] = parts_.emplace(d, Part{p, base});
    if (fresh) return true;
    return at->second.buffer == p &&
           std::equal(base.begin(), base.end(), at->second.base.begin(), [&](const Expr& x, const Expr& y) {
             return analyzer_.prove_equal(x, y);
           });
  }

  std::unordered_map<VarRef, VarRef> vars_;
  std::vector<VarRef> inside_;
  std::unordered_map<BufferRef, Part> parts_;
  arith::Analyzer analyzer_;
  std::string difference_;
};

/// The region of the program's buffer that an intrinsic's region stands for.
BufferRegionRef shifted(const BufferRegion& region, const Matcher::Part& part) {
  std::vector<RangeRef> out;
  size_t leading = part.base.size() - region.region.size();
  arith::Analyzer a;
  for (size_t d = 0; d < part.base.size(); ++d) {
    DType dtype = part.base[d]->dtype;
    if (d < leading) {
      out.push_back(make<Range>(part.base[d], int_imm(1, dtype)));
      continue;
    }
    const Range& r = *region.region[d - leading];
    out.push_back(make<Range>(a.simplify(part.base[d] + cast_to(dtype, r.min)), cast_to(dtype, r.extent)));
  }
  return make<BufferRegion>(part.buffer, std::move(out));
}

/// Why the block is not what the intrinsic computes; nothing if it is.
MaybeReason cannot_tensorize(const Schedule& s, const BlockRealize& realize, int site, const std::string& name,
                             const TensorIntrin& intrin, Matcher& matcher) {
  BlockRef desc = intrinsic_block(*intrin.desc);
  bool same = matcher.stmt(desc->body, realize.block->body);
  for (const auto& [param, buffer] : intrin.desc->buffer_map) same &= matcher.parts().count(buffer) > 0;
  if (same) return {};
  return Reason{.what = text("block ",
                             string_literal(realize.block->name->text),
                             " does not compute what intrinsic ",
                             name,
                             " does",
                             matcher.difference().empty() ? "" : ": " + matcher.difference()),
                .needs = "the loops, blocks and operations of the intrinsic's description, in its order",
                .hint = "reorder the loops as the description has them, and decompose_reduction first",
                .at = {{s.sites()[site].stmt, "not the intrinsic"}}};
}

/// The node with variables replaced by wider ones, and the arithmetic around them as wide; buffers as they are.
NodeRef widened(const NodeRef& n, const VarMap& wider) {
  if (wider.empty() || n->as<Buffer>()) return n;
  if (const ExprNode* e = n->as<ExprNode>()) return arith::substitute_promoting(Expr(e), wider);
  return n->info().map_children(*n, [&](const NodeRef& child) { return widened(child, wider); });
}

/// Replaces a block (or a loop nest, made a block first) that computes what a tensor intrinsic describes by the
/// intrinsic's implementation, whose buffers become names for the regions that the block works on.
///   for i, j, k in T.grid(16, 16, 16): C(...)   =>   C_o: A' = T.match_buffer(A[...]), ...; the implementation
void do_tensorize(Schedule& s, Value target, std::string name, bool preserve_unit_iters) {
  TensorIntrin intrin = tensor_intrin(name);
  BlockRealizeRef realize;
  Stmt old;
  int site = -1;
  if (const Loop* loop = target.get_if<Loop>()) {
    Blockized blockized;
    s.require(cannot_blockize(s, *loop, preserve_unit_iters, blockized));
    realize = blockized.outer;
    site = s.site(*loop);
  } else {
    site = s.site(value_to_block(s, target, "block_or_loop"));
    realize = ref(*s.sites()[site].realize());
  }
  old = s.sites()[site].stmt;
  Matcher matcher;
  s.require(cannot_tensorize(s, *realize, site, name, intrin, matcher));

  auto part_of = [&](const BufferRef& impl_buffer) -> const Matcher::Part& {
    size_t i = 0;
    while (intrin.impl->buffer_map[i].second != impl_buffer) ++i;
    return matcher.parts().at(intrin.desc->buffer_map[i].second);
  };
  // The implementation, with names of its own, on the regions of the program; offsets and strides have the dtype of the
  // program's indices.
  BlockRef impl = intrinsic_block(*intrin.impl);
  NodeMap fresh;
  VarMap wider;
  std::vector<BufferRef> copies;
  for (const auto& [param, buffer] : intrin.impl->buffer_map) {
    fresh.emplace(buffer->data, make_pointer(buffer->data->name, buffer->dtype, buffer->data->scope));
    const Matcher::Part& part = part_of(buffer);
    const bool wide = std::ranges::any_of(part.base, [](const Expr& e) { return e->dtype == DType::Int(64); });
    auto own = [&](const Expr& e) -> Expr {
      VarRef v = cast<Var>(e);
      if (!v) return wide && e ? cast_to(DType::Int(64), e) : e;
      if (auto known = wider.find(v); known != wider.end()) return known->second;
      if (auto known = fresh.find(v); known != fresh.end()) return cast<ExprNode>(known->second);
      VarRef copy = make_var(v->name, wide ? DType::Int(64) : v->dtype);
      if (copy->dtype == v->dtype)
        fresh.emplace(v, copy);
      else
        wider.emplace(v, copy);
      return copy;
    };
    auto all_own = [&](const std::vector<Expr>& es) {
      std::vector<Expr> out;
      for (const Expr& e : es) out.push_back(own(e));
      return out;
    };
    BufferRef copy = with(buffer, &Buffer::shape, all_own(buffer->shape));
    copy = with(copy, &Buffer::strides, all_own(buffer->strides));
    copies.push_back(with(copy, &Buffer::elem_offset, own(buffer->elem_offset)));
  }
  for (size_t i = 0; i < copies.size(); ++i) {
    Ref<const Buffer> copy = replaced(with(copies[i], &Buffer::name, copies[i]->name), fresh);
    fresh.emplace(intrin.impl->buffer_map[i].second, copy);
  }
  BlockRef body = cast<Block>(fresh_copy(replaced(cast<StmtNode>(widened(impl, wider)), fresh)));

  std::vector<BufferRegionRef> reads, writes;
  std::unordered_map<BufferRef, BufferRegionRef> region_of;
  for (const auto* side : {&impl->reads, &impl->writes}) {
    for (const BufferRegionRef& r : *side) {
      BufferRegionRef region = shifted(*r, part_of(r->buffer));
      (side == &impl->reads ? reads : writes).push_back(region);
      region_of.emplace(r->buffer, region);
    }
  }
  // Names for the regions, in the order of the intrinsic's parameters.
  std::vector<MatchBufferRef> matched = body->match_buffers;
  for (const auto& [param, buffer] : intrin.impl->buffer_map) {
    if (auto at = region_of.find(buffer); at != region_of.end())
      matched.push_back(make<MatchBuffer>(cast<Buffer>(fresh.at(buffer)), at->second));
  }
  Attrs annotations = realize->block->annotations;
  for (const auto& [key, value] : impl->annotations) annotations[key] = value;
  BlockRef tensorized = make<Block>(realize->block->iter_vars,
                                    body->alloc_buffers,
                                    matched,
                                    reads,
                                    writes,
                                    realize->block->name,
                                    annotations,
                                    realize->block->init,
                                    body->body);
  s.replace(old, Stmt(with(realize, &BlockRealize::block, tensorized)));
}

}  // namespace

const Primitive<void(Value, std::string, bool)> tensorize{
    "tensorize",
    do_tensorize,
    {"block_or_loop", "tensor_intrin", {"preserve_unit_iters", true}},
    "replaces what an intrinsic computes by the intrinsic"};

}  // namespace sator::schedule
