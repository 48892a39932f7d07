#include "passes/lower/vector_elements.h"

#include <algorithm>

#include "arith/analyzer.h"
#include "passes/lower/lower.h"

namespace sator::passes {

using namespace tir;

namespace {

/// How the memory behind a pointer is used.
struct PointerUse {
  DType element;
  bool may_change = false;
  std::vector<int> widths;          ///< of accesses, in elements: each once
  std::vector<int64_t> read_steps;  ///< single elements are read at multiples of these, with an offset
};

class PointerUses {
 public:
  std::unordered_map<const Var*, PointerUse> by_pointer;

  PointerUses(const PrimFunc& func, const VectorElements& options) : options_(options) {
    for (const auto& [param, buffer] : func.buffer_map) declare(*buffer->data, buffer->dtype, options.parameters);
    for (const VarRef& p : func.params) {
      if (p->dtype.is_handle() && !func.buffer_of(p)) declare(*p, p->pointee, options.parameters);
    }
    walk(
        func.body,
        [&](const Allocate& n) {
          declare(*n.data, n.dtype, !n.extents.empty());
          if (!n.extents.empty()) extent(*n.data, n.extents.back());
        },
        [&](const LetStmt& n) {
          if (n.var->dtype.is_handle()) declare(*n.var, n.var->pointee, true);
        });
    walk(func.body, [&](const Buffer& b) { check(b); });
    for (const auto& [param, buffer] : func.buffer_map) check(*buffer);
    visit(func.body);
  }

  /// Elements of the vectors that the memory is made of from now on; 1: it stays as it is.
  int lanes(const Var* pointer) const {
    auto at = by_pointer.find(pointer);
    if (at == by_pointer.end()) return 1;
    const PointerUse& use = at->second;
    if (!use.may_change || use.element.lanes != 1 || use.widths.size() != 1) return 1;
    const int lanes = use.widths[0];
    auto fits = [&](int64_t n) { return n % lanes == 0; };
    auto sized = extents_.find(pointer);
    if (sized != extents_.end() && !std::ranges::all_of(sized->second, fits)) return 1;
    return std::ranges::all_of(use.read_steps, fits) ? lanes : 1;
  }

 private:
  void declare(const Var& pointer, DType element, bool may_change) {
    by_pointer[&pointer] = {.element = element, .may_change = may_change, .widths = {}, .read_steps = {}};
  }

  /// What is over the pointer has to be divisible likewise.
  void check(const Buffer& b) {
    auto at = by_pointer.find(b.data.get());
    if (at == by_pointer.end()) return;
    const bool plain = b.dtype == at->second.element && b.strides.empty() && !b.shape.empty() &&
                       (!b.elem_offset || is_zero(b.elem_offset));
    at->second.may_change &= plain;
    if (plain) extent(*b.data, b.shape.back());
  }
  void extent(const Var& pointer, const Expr& size) {
    const arith::Modular m = analyzer_.modular(size);
    extents_[&pointer].insert(extents_[&pointer].end(), {m.coeff, m.base});
  }

  void visit(const NodeRef& node) {
    if (const BufferLoad* n = node->as<BufferLoad>()) {
      access(*n->buffer, n->indices, true);
    } else if (const BufferStore* n = node->as<BufferStore>()) {
      access(*n->buffer, n->indices, false);
    } else if (const Call* n = node->as<Call>(); n && n->op == "tir.address_of") {
      if (const BufferLoad* place = n->args[0].as<BufferLoad>()) access(*place->buffer, place->indices, false);
    } else if (n && n->op == "tir.tvm_access_ptr") {
      if (const Var* pointer = n->args[1].as<Var>()) one_at_a_time(pointer);
    }
    node->info().each_child(*node, [&](const NodeRef& child) {
      if (!child->as<Buffer>()) visit(child);
    });
  }

  void one_at_a_time(const Var* pointer) {
    if (auto at = by_pointer.find(pointer); at != by_pointer.end()) add(at->second.widths, 1);
  }

  static void add(std::vector<int>& widths, int lanes) {
    if (std::ranges::find(widths, lanes) == widths.end()) widths.push_back(lanes);
  }

  void access(const Buffer& buffer, const std::vector<Expr>& indices, bool reads) {
    auto at = by_pointer.find(buffer.data.get());
    if (at == by_pointer.end() || indices.empty()) return;
    const Expr& last = indices.back();
    if (last->dtype.lanes == 1 && reads && options_.scalar_reads) {
      at->second.read_steps.push_back(analyzer_.modular(last).coeff);
      return;
    }
    const Ramp* ramp = last.as<Ramp>();
    const bool aligned = ramp && is_one(ramp->stride) && ramp->base->dtype.lanes == 1 && !ramp->lanes.scalable &&
                         divides(ramp->lanes.count, ramp->base);
    add(at->second.widths, aligned ? ramp->lanes.count : 1);
  }

  bool divides(int64_t n, const Expr& e) {
    const arith::Modular m = analyzer_.modular(e);
    return m.coeff % n == 0 && m.base % n == 0;
  }

  const VectorElements& options_;
  std::unordered_map<const Var*, std::vector<int64_t>> extents_;
  arith::Analyzer analyzer_;
};

}  // namespace

PrimFuncRef with_vector_elements(const PrimFuncRef& func, const VectorElements& options) {
  PointerUses uses(*func, options);
  std::unordered_map<const Var*, int> lanes;  // by the new pointers
  VarMap pointers;
  for (const auto& [pointer, use] : uses.by_pointer) {
    const int n = uses.lanes(pointer);
    if (n == 1) continue;
    VarRef wide = with(*pointer, &Var::pointee, use.element.with_lanes(n));
    pointers[ref(*pointer)] = wide;
    lanes[wide.get()] = n;
  }
  if (pointers.empty()) return func;
  auto width = [&](const Var* pointer) {
    auto at = lanes.find(pointer);
    return at == lanes.end() ? 1 : at->second;
  };
  auto shrunk = [](std::vector<Expr> extents, int n) {
    extents.back() = div(extents.back(), int_imm(n, extents.back()->dtype));
    return extents;
  };
  arith::Analyzer analyzer;
  return transform(
      func,
      [&](const Var& v) -> Expr {
        auto at = pointers.find(ref(v));
        return at == pointers.end() ? Expr(ref(v)) : at->second;
      },
      [&](const Buffer& b) -> BufferRef {
        const int n = width(b.data.get());
        if (n == 1) return ref(b);
        Buffer out = b;
        out.dtype = b.dtype.with_lanes(n);
        out.shape = shrunk(b.shape, n);
        return BufferRef(new Buffer(std::move(out)));
      },
      [&](const Allocate& a) -> Stmt {
        const int n = width(a.data.get());
        if (n == 1) return ref(a);
        Allocate out = a;
        out.dtype = a.dtype.with_lanes(n);
        out.extents = shrunk(a.extents, n);
        return Stmt(new Allocate(std::move(out)));
      },
      [&](const BufferStore& s) -> Stmt {
        if (width(s.buffer->data.get()) == 1) return ref(s);
        const Ramp& ramp = *s.indices.back().as<Ramp>();
        std::vector<Expr> indices = s.indices;
        indices.back() = div(ramp.base, int_imm(ramp.lanes.count, ramp.base->dtype));
        return store(s.buffer, s.value, std::move(indices));
      },
      [&](const BufferLoad& l) -> Expr {
        const int n = width(l.buffer->data.get());
        if (n == 1) return ref(l);
        std::vector<Expr> indices = l.indices;
        const Expr last = indices.back();
        const Ramp* ramp = last.as<Ramp>();
        const Expr& base = ramp ? ramp->base : last;
        indices.back() = div(base, int_imm(n, base->dtype));
        Expr vector = load(l.buffer, std::move(indices));
        if (ramp) return vector;
        return make<Shuffle>(std::vector<Expr>{vector}, std::vector<Expr>{int_imm(analyzer.modular(last).base % n)});
      });
}

PrimFuncRef pointer_value_type_rewrite(const PrimFuncRef& func, const LowerOptions&) {
  return with_vector_elements(func, {});
}

}  // namespace sator::passes
