#include "passes/wide_sums.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "ir/visit.h"

namespace sator::passes {

namespace {

bool is_narrow(DType d) { return d.lanes == 1 && (d == DType::Float(16) || d == DType::BFloat()); }

/// Functions of floats that float32 has too.
bool is_elementary(std::string_view op) {
  static constexpr std::array<std::string_view, 9> kOps = {
      "tir.exp", "tir.log", "tir.sqrt", "tir.rsqrt", "tir.tanh", "tir.sigmoid", "tir.erf", "tir.fabs", "tir.pow"};
  return std::ranges::find(kOps, op) != kOps.end();
}

/// The store of a block that adds or multiplies into what it stores; null for other blocks.
const tir::BufferStore* accumulates(const tir::Block& b) {
  const tir::BufferStore* store = b.init ? b.body.as<tir::BufferStore>() : nullptr;
  if (!store || !is_narrow(store->buffer->dtype)) return nullptr;
  const Add* add = store->value.as<Add>();
  const Mul* mul = store->value.as<Mul>();
  if (!add && !mul) return nullptr;
  const BufferLoad* before = (add ? add->a : mul->a).as<BufferLoad>();
  const bool same =
      before && before->buffer == store->buffer &&
      std::ranges::equal(before->indices, store->indices, [](const Expr& x, const Expr& y) { return equal(x, y); });
  return same ? store : nullptr;
}

class Widener {
 public:
  explicit Widener(const tir::PrimFuncRef& f) : func_(f), root_(tir::root_of(*f)) {}

  tir::PrimFuncRef run() {
    if (!root_) return func_;
    std::map<BufferRef, int> writers;
    walk(root_->block->body, [&](const tir::Block& b) {
      for (const tir::BufferRegionRef& w : b.writes) ++writers[w->buffer];
    });
    walk(root_->block->body, [&](const tir::Block& b) {
      const tir::BufferStore* store = accumulates(b);
      if (!store || writers[store->buffer] != 1) return;
      wide_.emplace(store->buffer, make_buffer(store->buffer->name + "_sum", store->buffer->shape, f32));
    });
    if (wide_.empty()) return func_;

    std::vector<tir::Stmt> nests = {root_->block->body}, out;
    if (const tir::Seq* seq = root_->block->body.as<tir::Seq>()) nests = seq->stmts;
    for (const tir::Stmt& nest : nests) {
      std::vector<BufferRef> results;
      walk(nest, [&](const tir::Block& b) {
        const tir::BufferStore* store = accumulates(b);
        if (store && wide_.contains(store->buffer) && is_parameter(store->buffer)) results.push_back(store->buffer);
      });
      out.push_back(transform(nest, [&](const tir::Block& b) -> NodeRef { return widened(b); }));
      for (const BufferRef& result : results) out.push_back(rounded(result));
    }
    std::vector<BufferRef> allocated = root_->block->alloc_buffers;
    for (BufferRef& b : allocated)
      if (wide_.contains(b)) b = wide_.at(b);
    for (const auto& [param, result] : func_->buffer_map)
      if (wide_.contains(result)) allocated.push_back(wide_.at(result));
    tir::BlockRef block = with(root_->block, &tir::Block::alloc_buffers, std::move(allocated));
    block = with(block, &tir::Block::body, tir::seq(std::move(out)));
    return with(func_, &tir::PrimFunc::body, tir::Stmt(with(root_, &tir::BlockRealize::block, block)));
  }

 private:
  bool is_parameter(const BufferRef& b) const {
    return std::ranges::any_of(func_->buffer_map, [&](const auto& entry) { return entry.second == b; });
  }
  /// The float32 buffer to read in the place of this one; null where it is read as it is. A result is whole, and rounded.
  BufferRef read_wide(const BufferRef& b) const {
    auto at = wide_.find(b);
    return at == wide_.end() || is_parameter(b) ? nullptr : at->second;
  }

  NodeRef widened(const tir::Block& b) const {
    const tir::BufferStore* sum = accumulates(b);
    if (sum && wide_.contains(sum->buffer)) {
      const BufferRef& wide = wide_.at(sum->buffer);
      const Add* add = sum->value.as<Add>();
      const Expr before = make<BufferLoad>(wide, sum->indices);
      const Expr more = in_f32(add ? add->b : sum->value.as<Mul>()->b);
      tir::Stmt body = tir::store(wide, add ? make<Add>(before, more) : Expr(make<Mul>(before, more)), sum->indices);
      tir::Stmt init = transform(
          b.init, [&](const tir::BufferStore& s) -> tir::Stmt { return tir::store(wide, in_f32(s.value), s.indices); });
      tir::BlockRef out = with(b, &tir::Block::body, std::move(body));
      out = with(out, &tir::Block::init, std::move(init));
      out = with(out, &tir::Block::reads, regions(b.reads));
      return with(out, &tir::Block::writes, regions(b.writes, true));
    }
    const bool reads =
        std::ranges::any_of(b.reads, [&](const tir::BufferRegionRef& r) { return bool(read_wide(r->buffer)); });
    if (!reads) return NodeRef(&b);
    auto of_wide = [&](const tir::BufferStore& s) -> tir::Stmt {
      const bool computes = is_narrow(s.value->dtype);
      return with(s, &tir::BufferStore::value, computes ? cast_to(s.value->dtype, in_f32(s.value)) : narrowed(s.value));
    };
    tir::BlockRef out = with(b, &tir::Block::body, transform(b.body, of_wide));
    return with(out, &tir::Block::reads, regions(b.reads));
  }

  std::vector<tir::BufferRegionRef> regions(std::vector<tir::BufferRegionRef> all, bool written = false) const {
    for (tir::BufferRegionRef& r : all)
      if (BufferRef wide = written ? wide_.at(r->buffer) : read_wide(r->buffer))
        r = with(r, &tir::BufferRegion::buffer, wide);
    return all;
  }

  /// The expression with what it reads of wide buffers rounded.
  Expr narrowed(const Expr& e) const {
    return transform(e, [&](const BufferLoad& l) -> Expr {
      const BufferRef wide = read_wide(l.buffer);
      return wide ? cast_to(l.buffer->dtype, make<BufferLoad>(wide, l.indices)) : ref(l);
    });
  }

  /// The value of a narrow expression, computed in float32.
  Expr in_f32(const Expr& e) const {
    if (!is_narrow(e->dtype)) return cast_to(f32, narrowed(e));
    if (const FloatImm* c = e.as<FloatImm>()) return float_imm(c->value, f32);
    if (const Cast* c = e.as<Cast>(); c && (c->value->dtype == f32 || c->value->dtype.is_integer()))
      return cast_to(f32, narrowed(c->value));
    if (const BufferLoad* l = e.as<BufferLoad>())
      if (BufferRef wide = read_wide(l->buffer)) return make<BufferLoad>(wide, l->indices);
    if (const Add* n = e.as<Add>()) return make<Add>(in_f32(n->a), in_f32(n->b));
    if (const Sub* n = e.as<Sub>()) return make<Sub>(in_f32(n->a), in_f32(n->b));
    if (const Mul* n = e.as<Mul>()) return make<Mul>(in_f32(n->a), in_f32(n->b));
    if (const Div* n = e.as<Div>()) return make<Div>(in_f32(n->a), in_f32(n->b));
    if (const Min* n = e.as<Min>()) return make<Min>(in_f32(n->a), in_f32(n->b));
    if (const Max* n = e.as<Max>()) return make<Max>(in_f32(n->a), in_f32(n->b));
    if (const Select* n = e.as<Select>())
      return select(narrowed(n->condition), in_f32(n->true_value), in_f32(n->false_value));
    const Call* c = e.as<Call>();
    if (c && c->op == "tir.if_then_else")
      return call(f32, c->op, {narrowed(c->args[0]), in_f32(c->args[1]), in_f32(c->args[2])});
    if (c && is_elementary(c->op)) {
      std::vector<Expr> args;
      for (const Expr& a : c->args) args.push_back(in_f32(a));
      return call(f32, c->op, std::move(args));
    }
    return cast_to(f32, narrowed(e));
  }

  /// result[i] = cast(sum[i]), in a nest of its own.
  tir::Stmt rounded(const BufferRef& result) const {
    std::vector<tir::IterVarRef> iters;
    std::vector<Expr> at, values;
    std::vector<VarRef> loops;
    for (size_t d = 0; d < result->shape.size(); ++d) {
      const Expr& extent = result->shape[d];
      loops.push_back(make_var(text("ax", d), extent->dtype));
      values.push_back(loops.back());
      const VarRef v = make_var(text("v_ax", d), extent->dtype);
      iters.push_back(make<tir::IterVar>(make<Range>(int_imm(0, extent->dtype), extent), v, tir::IterKind::spatial));
      at.push_back(v);
    }
    const BufferRef& sum = wide_.at(result);
    tir::BlockRef block = make<tir::Block>(std::move(iters),
                                           std::vector<BufferRef>{},
                                           std::vector<tir::MatchBufferRef>{},
                                           std::vector{tir::point_region(sum, at)},
                                           std::vector{tir::point_region(result, at)},
                                           tir::block_name(result->name + "_rounded"),
                                           Attrs{},
                                           tir::Stmt(),
                                           tir::store(result, cast_to(result->dtype, make<BufferLoad>(sum, at)), at));
    tir::Stmt s = make<tir::BlockRealize>(std::move(values), bool_imm(true), block);
    for (size_t d = loops.size(); d-- > 0;) s = tir::for_loop(loops[d], result->shape[d], s);
    return s;
  }

  const tir::PrimFuncRef& func_;
  tir::BlockRealizeRef root_;
  std::map<BufferRef, BufferRef> wide_;  ///< the float32 buffer of each that is summed into
};

}  // namespace

tir::PrimFuncRef with_wide_sums(const tir::PrimFuncRef& f) { return Widener(f).run(); }

}  // namespace sator::passes
