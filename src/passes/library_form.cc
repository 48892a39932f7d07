#include "passes/library_form.h"

#include <algorithm>
#include <cmath>

#include "ir/visit.h"
#include "tir/te.h"

namespace sator::passes {

namespace {

Expr finite(const Expr& e) {
  const FloatImm* f = e.as<FloatImm>();
  if (!f || !std::isinf(f->value)) return e;
  return f->value < 0 ? te::min_value(f->dtype) : te::max_value(f->dtype);
}

tir::Stmt finite_stores(const tir::Stmt& init) {
  return transform(
      init, [](const tir::BufferStore& s) -> tir::Stmt { return with(s, &tir::BufferStore::value, finite(s.value)); });
}

/// The init of a maximum's position: the greatest position there is.
bool finds_position(const tir::Block& b) {
  bool found = false;
  walk(b.init, [&](const tir::BufferStore& s) {
    const IntImm* i = s.value.as<IntImm>();
    found = found || (i && i->value == (i->dtype.bits == 64 ? INT64_MAX : INT32_MAX));
  });
  return found;
}

/// The reduction to a position without regard to NaN, from -1.
NodeRef without_nan(const tir::Block& b) {
  tir::Stmt init = transform(b.init, [](const tir::BufferStore& s) -> tir::Stmt {
    return s.value.as<IntImm>() ? with(s, &tir::BufferStore::value, int_imm(-1, s.value->dtype)) : ref(s);
  });
  tir::Stmt body = transform(
      b.body,
      [](const Call& c) -> NodeRef { return c.op == "tir.isnan" ? NodeRef(bool_imm(false)) : NodeRef(&c); },
      [](const And& n) -> NodeRef { return logical_and(n.a, n.b); },
      [](const Or& n) -> NodeRef { return logical_or(n.a, n.b); },
      [](const Not& n) -> NodeRef { return logical_not(n.a); });
  return with(with(b, &tir::Block::init, finite_stores(init)), &tir::Block::body, body);
}

/// Whether an element is compared with a number: what nn.nll_loss does before it reads that class.
bool chooses_by_element(const Expr& condition) {
  const NE* n = condition.as<NE>();
  return n && n->a.as<BufferLoad>() && n->b.as<IntImm>();
}
/// What its gradient does: the library reads every class, unless the ignored one is among them.
bool is_negative_class(const Expr& condition) {
  const EQ* n = condition.as<EQ>();
  const IntImm* c = n && n->a.as<BufferLoad>() ? n->b.as<IntImm>() : nullptr;
  return c && c->value < 0;
}

/// The regions that the block reads, in the order in which its body names them.
std::vector<tir::BufferRegionRef> reads_in_order(const tir::Block& b) {
  std::vector<BufferRef> seen;
  walk(b.body, [&](const BufferLoad& l) { seen.push_back(l.buffer); });
  std::vector<tir::BufferRegionRef> out = b.reads;
  std::ranges::stable_sort(out, {}, [&](const tir::BufferRegionRef& r) { return std::ranges::find(seen, r->buffer); });
  return out;
}

}  // namespace

tir::PrimFuncRef in_library_form(const tir::PrimFuncRef& f) {
  tir::Stmt body = transform(
      f->body,
      [](const tir::Block& b) -> NodeRef {
        if (b.init && finds_position(b)) return without_nan(b);
        if (!b.init) {
          std::vector<tir::BufferRegionRef> reads = reads_in_order(b);
          return reads == b.reads ? NodeRef(&b) : NodeRef(with(b, &tir::Block::reads, std::move(reads)));
        }
        tir::Stmt init = finite_stores(b.init);
        return init == b.init ? NodeRef(&b) : NodeRef(with(b, &tir::Block::init, init));
      },
      [](const Call& c) -> NodeRef {
        if (c.op == "tir.nearbyint") return sator::call(c.dtype, "tir.round", c.args);
        if (c.op == "tir.if_then_else" && is_negative_class(c.args[0])) return c.args[2];
        if (c.op == "tir.if_then_else" && chooses_by_element(c.args[0])) return select(c.args[0], c.args[1], c.args[2]);
        if (c.op != "tir.if_then_else" || finite(c.args[2]) == c.args[2]) return NodeRef(&c);
        return sator::call(c.dtype, c.op, {c.args[0], c.args[1], finite(c.args[2])});
      },
      [](const Div& d) -> NodeRef {
        const FloatImm* by = d.b.as<FloatImm>();
        if (!by || by->value == 0) return NodeRef(&d);
        return make<Mul>(d.a, float_imm(1 / by->value, by->dtype));
      });
  return body == f->body ? f : with(f, &tir::PrimFunc::body, body);
}

}  // namespace sator::passes
