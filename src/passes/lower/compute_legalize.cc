// C[i] = A[i] + B[i] of bfloat16   =>   C[i] = T.Cast("bfloat16", T.Cast("float32", A[i]) + T.Cast("float32", B[i]))
//
// What is stored keeps its dtype; buffers that the function allocates and reaches by their names alone become wide.
// With the option `bits`, conversions are written as TVM writes them, as arithmetic on the bits: then what is too small for a
// normal 8-bit float becomes 0, and infinities and NaN become numbers.
#include <algorithm>
#include <unordered_set>

#include "ir/builtins.h"
#include "passes/lower/lower.h"

namespace sator::passes {

using namespace tir;

namespace {

/// How a float is laid out: sign, exponent, mantissa.
struct Layout {
  int bits, mantissa, bias;
  int exponent() const { return bits - 1 - mantissa; }
};

Layout layout_of(DType d) {
  if (d.code == DType::Code::e4m3) return {8, 3, 7};
  if (d.code == DType::Code::e5m2) return {8, 2, 15};
  if (d.is_bfloat()) return {16, 7, 127};
  return d.bits == 16 ? Layout{16, 10, 15} : d.bits == 32 ? Layout{32, 23, 127} : Layout{64, 52, 1023};
}

Expr reinterpreted(DType d, const Expr& e) { return call(d.with_lanes(e->dtype.all_lanes()), "tir.reinterpret", {e}); }
Expr as_uint(int bits, const Expr& e) { return make<Cast>(DType::UInt(bits).with_lanes(e->dtype.all_lanes()), e); }
Expr shifted_left(const Expr& e, int by) { return call_builtin("tir.shift_left", {e, constant(by, e->dtype)}); }
Expr shifted_right(const Expr& e, int by) { return call_builtin("tir.shift_right", {e, constant(by, e->dtype)}); }
Expr masked(const Expr& e, int64_t mask) {
  return call_builtin("tir.bitwise_and", {e, constant(static_cast<double>(mask), e->dtype)});
}
Expr joined(const Expr& a, const Expr& b) { return call_builtin("tir.bitwise_or", {a, b}); }

/// The bits of a narrow float as a wide one.
Expr widened_bits(const Expr& value, DType to) {
  const Layout from = layout_of(value->dtype), wide = layout_of(to);
  const Expr v = reinterpreted(DType::UInt(from.bits), value);
  const int shift = wide.mantissa - from.mantissa;
  if (from.bias == wide.bias) return reinterpreted(to, shifted_left(as_uint(wide.bits, v), shift));
  Expr mantissa = masked(shifted_left(as_uint(wide.bits, v), shift), (int64_t{1} << wide.mantissa) - 1);
  Expr exponent = shifted_right(shifted_left(v, 1), from.bits - from.exponent()) + (wide.bias - from.bias);
  exponent = shifted_left(as_uint(wide.bits, exponent), wide.mantissa);
  Expr sign = shifted_left(as_uint(wide.bits, shifted_right(v, from.bits - 1)), wide.bits - 1);
  return reinterpreted(to, joined(joined(mantissa, exponent), sign));
}

/// The bits of a wide float as those of the nearest narrow one, ties to even.
Expr narrowed_bits(const Expr& value, DType to) {
  const Layout wide = layout_of(value->dtype), narrow = layout_of(to);
  const int shift = wide.mantissa - narrow.mantissa;
  Expr v = reinterpreted(DType::UInt(wide.bits), value);
  v = v + (masked(shifted_right(v, shift), 1) + ((int64_t{1} << (shift - 1)) - 1));
  if (narrow.bias == wide.bias) return reinterpreted(to, as_uint(narrow.bits, shifted_right(v, shift)));
  Expr mantissa = masked(as_uint(narrow.bits, shifted_right(v, shift)), (int64_t{1} << narrow.mantissa) - 1);
  Expr exponent = shifted_right(shifted_left(v, 1), wide.bits - wide.exponent());
  const int64_t delta = wide.bias - narrow.bias;
  Expr is_too_small = lt(exponent, constant(static_cast<double>(delta), exponent->dtype));
  exponent = shifted_left(as_uint(narrow.bits, exponent - delta), narrow.mantissa);
  Expr sign = shifted_left(as_uint(narrow.bits, shifted_right(v, wide.bits - 1)), narrow.bits - 1);
  Expr bits = joined(joined(mantissa, exponent), sign);
  return reinterpreted(to, if_then_else(is_too_small, constant(0, bits->dtype), bits));
}

class ComputeLegalizer {
 public:
  ComputeLegalizer(bool (*narrow)(DType), DType wide, bool as_bits) : narrow_(narrow), wide_(wide), as_bits_(as_bits) {}

  PrimFuncRef run(const PrimFuncRef& func) {
    for (const VarRef& p : func->params) kept_.insert(p.get());
    plan(func->body);
    return transform(
        func,
        [&](const Var& v) -> Expr {
          if (wide_pointers_.contains(&v)) return with(v, &Var::pointee, wide(v.pointee));
          if (!narrow_(v.dtype) || kept_.contains(&v)) return ref(v);
          return with(v, &Var::dtype, wide(v.dtype));
        },
        [&](const Buffer& b) -> BufferRef {
          const bool moved = b.data->pointee != b.dtype && narrow_(b.dtype) && b.data->pointee == wide(b.dtype);
          return moved ? with(b, &Buffer::dtype, wide(b.dtype)) : ref(b);
        },
        [&](const Allocate& n) -> Stmt {
          return narrow_(n.dtype) && n.data->pointee == wide(n.dtype) ? with(n, &Allocate::dtype, wide(n.dtype))
                                                                      : ref(n);
        },
        [&](const Add& n) { return binary(n); },
        [&](const Sub& n) { return binary(n); },
        [&](const Mul& n) { return binary(n); },
        [&](const Div& n) { return binary(n); },
        [&](const Mod& n) { return binary(n); },
        [&](const FloorDiv& n) { return binary(n); },
        [&](const FloorMod& n) { return binary(n); },
        [&](const Min& n) { return binary(n); },
        [&](const Max& n) { return binary(n); },
        [&](const EQ& n) { return binary(n); },
        [&](const NE& n) { return binary(n); },
        [&](const LT& n) { return binary(n); },
        [&](const LE& n) { return binary(n); },
        [&](const GT& n) { return binary(n); },
        [&](const GE& n) { return binary(n); },
        [&](const Cast& n) -> Expr {
          if (in_conversion(n)) return ref(n);
          const Expr value = promoted(n.value);
          const DType to = narrow_(n.dtype) ? wide(n.dtype) : n.dtype;
          if (value == n.value && to == n.dtype) return ref(n);
          return cast_to(to, value);
        },
        [&](const Select& n) -> Expr {
          const Expr yes = promoted(n.true_value), no = promoted(n.false_value);
          if (yes == n.true_value && no == n.false_value) return ref(n);
          return make<Select>(n.condition, yes, no);
        },
        [&](const Broadcast& n) -> Expr {
          const Expr value = promoted(n.value);
          return value == n.value ? Expr(&n) : make<Broadcast>(value, Lanes(n.lanes));
        },
        [&](const Shuffle& n) -> Expr {
          const std::vector<Expr> vectors = promoted(n.vectors);
          return vectors == n.vectors ? Expr(&n) : make<Shuffle>(vectors, n.indices);
        },
        [&](const FloatImm& n) -> Expr { return narrow_(n.dtype) ? float_imm(n.value, wide(n.dtype)) : Expr(&n); },
        [&](const Call& n) -> Expr {
          if (n.op == "tir.reinterpret" || n.op == "tir.address_of" || n.op == "tir.tvm_access_ptr") return ref(n);
          const std::vector<Expr> args = promoted(n.args);
          const DType dtype = narrow_(n.dtype) ? wide(n.dtype) : n.dtype;
          return args == n.args && dtype == n.dtype ? Expr(&n) : call(dtype, n.op, args);
        },
        [&](const Let& n) -> Expr { return with(n, &Let::value, promoted(n.value)); },
        [&](const LetStmt& n) -> Stmt {
          const Expr value = promoted(n.value);
          return value == n.value ? Stmt(&n) : with(n, &LetStmt::value, value);
        },
        [&](const BufferStore& n) -> Stmt {
          const DType held = n.buffer->dtype.element();
          Expr value = n.value;
          if (narrow_(held) && !narrow_(value->dtype)) value = narrowed(value, held);
          if (!narrow_(held)) value = promoted(value);
          return value == n.value ? Stmt(&n) : with(n, &BufferStore::value, value);
        });
  }

 private:
  DType wide(DType d) const { return wide_.with_lanes(d.all_lanes()); }

  /// Of the buffers that the function allocates itself, those that become wide: no call takes their pointer.
  void plan(const Stmt& body) {
    std::unordered_set<const Var*> opaque;
    walk(body, [&](const Call& n) {
      for (const Expr& a : n.args) {
        if (const Var* v = a.as<Var>()) opaque.insert(v);
        const BufferLoad* l = n.op == "tir.address_of" ? a.as<BufferLoad>() : nullptr;
        if (l) opaque.insert(l->buffer->data.get());
      }
    });
    auto allocated = [&](const VarRef& data, DType dtype, const std::vector<Expr>& extents) {
      const bool constant = std::ranges::all_of(extents, [](const Expr& e) { return as_int(e).has_value(); });
      if (narrow_(dtype) && constant && !opaque.contains(data.get())) wide_pointers_.insert(data.get());
    };
    walk(body, [&](const Allocate& n) { allocated(n.data, n.dtype, n.extents); });
    walk(body, [&](const Block& n) {
      for (const BufferRef& b : n.alloc_buffers) allocated(b->data, b->dtype, b->shape);
    });
  }

  /// Whether this cast is one that the pass itself makes of a narrow value.
  bool in_conversion(const Cast& n) const {
    if (as_bits_) return false;
    const bool widens = narrow_(n.value->dtype) && n.dtype == wide(n.value->dtype);
    return widens || (narrow_(n.dtype) && n.value->dtype == wide(n.dtype));
  }

  Expr promoted(const Expr& e) const {
    if (!narrow_(e->dtype)) return e;
    return as_bits_ ? widened_bits(e, wide_) : make<Cast>(wide(e->dtype), e);
  }
  std::vector<Expr> promoted(const std::vector<Expr>& all) const {
    std::vector<Expr> out;
    for (const Expr& e : all) out.push_back(promoted(e));
    return out;
  }
  Expr narrowed(const Expr& value, DType to) const {
    if (as_bits_) return narrowed_bits(cast_to(wide(value->dtype), value), to);
    return make<Cast>(to.with_lanes(value->dtype.all_lanes()), value);
  }

  template <class N>
  Expr binary(const N& n) const {
    const Expr a = promoted(n.a), b = promoted(n.b);
    return a == n.a && b == n.b ? Expr(&n) : Expr(make<N>(a, b));
  }

  bool (*narrow_)(DType);
  DType wide_;
  bool as_bits_;
  std::unordered_set<const Var*> kept_, wide_pointers_;
};

bool is_bf16(DType d) { return d.is_bfloat(); }
bool is_fp8(DType d) { return d.is_float8(); }

}  // namespace

PrimFuncRef bf16_compute_legalize(const PrimFuncRef& func, const LowerOptions& options) {
  return ComputeLegalizer(is_bf16, f32, option(options, "BF16ComputeLegalize.bits", 0) != 0).run(func);
}

PrimFuncRef fp8_compute_legalize(const PrimFuncRef& func, const LowerOptions& options) {
  auto given = options.config.find("FP8ComputeLegalize.promote_dtype");
  const StringImm* name = given == options.config.end() ? nullptr : given->second.as<StringImm>();
  const std::optional<DType> wide = name ? DType::parse(name->value) : f32;
  if (!wide || (*wide != f16 && *wide != f32))
    fail({.what = text("floats of 8 bits computed in ", name->value),
          .needs = "float16 or float32",
          .hint = "FP8ComputeLegalize(\"float16\")"});
  return ComputeLegalizer(is_fp8, *wide, option(options, "FP8ComputeLegalize.bits", 0) != 0).run(func);
}

}  // namespace sator::passes
