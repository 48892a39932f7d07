#include "ir/literal.h"

#include <cfloat>
#include <cmath>

namespace sator {

namespace {

Reason out_of_range(const std::string& given, DType dtype) {
  const std::string most = dtype == u64 ? "2^64 - 1" : text(max_int(dtype));
  return {.what = text(given, " as ", dtype),
          .needs = text("a number from ", min_int(dtype), " to ", most),
          .hint = text("take a wider dtype, or T.Cast(\"", dtype, "\", value), which wraps around")};
}

}  // namespace

std::optional<Reason> cannot_hold(const Expr& value, DType dtype) {
  if (const Broadcast* b = value.as<Broadcast>()) return cannot_hold(b->value, dtype.element());
  const DType to = dtype.element();
  const bool is_integer = to.is_integer() || to.is_bool();
  if (const IntImm* i = value.as<IntImm>(); i && is_integer && i->dtype != to) {
    const bool is_huge = i->dtype == u64 && i->value < 0;  // above 2^63
    if (is_huge ? to == u64 : to == u64 ? i->value >= 0 : i->value >= min_int(to) && i->value <= max_int(to)) return {};
    return out_of_range(is_huge ? text(static_cast<uint64_t>(i->value)) : text(i->value), to);
  }
  const IntImm* i = value.as<IntImm>();
  const FloatImm* f = value.as<FloatImm>();
  if ((i && is_integer) || (!i && !f)) return {};
  const double given = i ? static_cast<double>(i->value) : f->value;
  if (std::isinf(given) || std::isnan(given)) return {};
  if (is_integer) {
    const double least = static_cast<double>(min_int(to)), above = std::ldexp(1,
                                                                              to.is_bool()   ? 1
                                                                              : to.is_uint() ? to.bits
                                                                                             : to.bits - 1);
    if (std::trunc(given) >= least && std::trunc(given) < above) return {};
    return out_of_range(text(given), to);
  }
  const double most = to.is_ieee_float() && to.bits == 16   ? 65504
                      : to.is_ieee_float() && to.bits == 32 ? FLT_MAX
                                                            : DBL_MAX;
  if (std::fabs(given) <= most) return {};
  return Reason{.what = text(given, " as ", to),
                .needs = text("a number from ", -most, " to ", most),
                .hint = "take a wider dtype"};
}

Expr float_literal(double value) {
  return float_imm(value, std::isfinite(value) && std::fabs(value) > FLT_MAX ? f64 : f32);
}

Expr promoted(DType dtype, Expr value) {
  if (dtype.all_lanes() == value->dtype.all_lanes()) {
    if (const Broadcast* b = value.as<Broadcast>(); b && b->value.as<FloatImm>())
      return make<Broadcast>(promoted(dtype.element(), b->value), b->lanes);
    if (const FloatImm* f = value.as<FloatImm>(); f && dtype.is_float()) return float_imm(f->value, dtype);
  }
  return cast_to(dtype, std::move(value));
}

}  // namespace sator
