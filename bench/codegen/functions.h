// Functions to measure, as the frontends build them, in the layout that parameters get.
#pragma once

#include "tir/te.h"

namespace sator::bench {

inline Expr size(int64_t v) { return int_imm(v, i64); }

/// W [columns, depth] in panels of 32 columns.
inline te::Tensor panels(int64_t columns, int64_t depth, DType dtype, const char* name) {
  return te::placeholder({size((columns + 31) / 32), size(depth), size(32)}, dtype, name);
}
inline Expr in_panels(const te::Tensor& w, const Expr& j, const Expr& k) {
  return w({floordiv(j, 32), k, floormod(j, 32)});
}

/// Codes of `bits` bits in words of 32: code(j, k) as uint32.
inline Expr code(const te::Tensor& words, const Expr& j, const Expr& k, int bits) {
  const int64_t per_word = 32 / bits;
  Expr word = in_panels(words, j, floordiv(k, per_word));
  Expr shifted = call(u32, "tir.shift_right", {word, cast_to(u32, floormod(k, per_word) * bits)});
  return call(u32, "tir.bitwise_and", {shifted, int_imm((1 << bits) - 1, u32)});
}

/// y = x W^T in f32. `rows`: a number or a variable.
inline tir::PrimFuncRef product_f32(const Expr& rows, int64_t columns, int64_t depth) {
  te::Tensor x = te::placeholder({rows, size(depth)}, f32, "x"), w = panels(columns, depth, f32, "w");
  tir::IterVarRef k = te::reduce_axis(size(depth), "k");
  te::Tensor y = te::reduce({.name = "y", .axis = "i"}, {rows, size(columns)}, [&](const te::Indices& i) {
    return te::reduce_sum(x({i[0], k->var}) * in_panels(w, i[1], k->var), {k});
  });
  return te::create_prim_func({x, w, y});
}

/// y[i, j] = (sum over k of x[i, k] * (code(j, k) - 127)) * scale[j]: f32 x by 8-bit codes, a scale per column.
inline tir::PrimFuncRef product_int8(const Expr& rows, int64_t columns, int64_t depth) {
  te::Tensor x = te::placeholder({rows, size(depth)}, f32, "x"), codes = panels(columns, depth / 4, u32, "codes"),
             scale = te::placeholder({size(columns)}, f32, "scale");
  te::Tensor w = te::compute({.name = "w", .axis = "i"}, {size(columns), size(depth)}, [&](const te::Indices& i) {
    return cast_to(f32, code(codes, i[0], i[1], 8)) - constant(127, f32);
  });
  tir::IterVarRef k = te::reduce_axis(size(depth), "k");
  te::Tensor sum = te::reduce({.name = "sum", .axis = "i"}, {rows, size(columns)}, [&](const te::Indices& i) {
    return te::reduce_sum(x({i[0], k->var}) * w({i[1], k->var}), {k});
  });
  te::Tensor y = te::compute(
      {.name = "y", .axis = "i"}, {rows, size(columns)}, [&](const te::Indices& i) { return sum(i) * scale({i[1]}); });
  return te::create_prim_func({x, codes, scale, y});
}

/// y[i, j] = sum over groups g of 32 of scale[j, g] * (sum over k of x[i, k] * code(j, k) - 7 * sums[i, g]): int8 x by
/// 4-bit codes.
inline tir::PrimFuncRef product_int4(const Expr& rows, int64_t columns, int64_t depth) {
  const int64_t groups = depth / 32;
  te::Tensor x = te::placeholder({rows, size(depth)}, i8, "x"), codes = panels(columns, depth / 8, u32, "codes"),
             scale = panels(columns, groups, f32, "scale"), sums = te::placeholder({rows, size(groups)}, i32, "sums");
  te::Tensor w = te::compute({.name = "w", .axis = "i"}, {size(columns), size(depth)}, [&](const te::Indices& i) {
    return cast_to(u8, code(codes, i[0], i[1], 4));
  });
  tir::IterVarRef k = te::reduce_axis(size(32), "k"), g = te::reduce_axis(size(groups), "g");
  te::Tensor dot =
      te::reduce({.name = "dot", .axis = "i"}, {rows, size(columns), size(groups)}, [&](const te::Indices& i) {
        Expr at = i[2] * 32 + k->var;
        return te::reduce_sum(cast_to(i32, x({i[0], at})) * cast_to(i32, w({i[1], at})), {k});
      });
  te::Tensor y = te::reduce({.name = "y", .axis = "i"}, {rows, size(columns)}, [&](const te::Indices& i) {
    Expr product = cast_to(f32, dot({i[0], i[1], g->var}) - int_imm(7, i32) * sums({i[0], g->var}));
    return te::reduce_sum(product * in_panels(scale, i[1], g->var), {g});
  });
  return te::create_prim_func({x, codes, scale, sums, y});
}

}  // namespace sator::bench
