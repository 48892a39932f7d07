// Functions that rules schedule, built as the frontends build them.
#pragma once

#include "rules/rule.h"
#include "tir/te.h"

namespace sator::rules {

inline Expr size(int64_t v) { return int_imm(v, i64); }

/// n rows; a symbolic number of them where n is 0.
inline Expr rows_of(int64_t n) { return n != 0 ? size(n) : Expr(make_size_var("n")); }

/// W [columns, depth] in panels of 32 columns: [ceil(columns / 32), depth, 32].
inline te::Tensor panels(int64_t columns, int64_t depth, DType dtype) {
  return te::placeholder({size((columns + 31) / 32), size(depth), size(32)}, dtype, "w");
}
inline Expr in_panels(const te::Tensor& w, const Expr& j, const Expr& k) {
  return w({floordiv(j, 32), k, floormod(j, 32)});
}

/// y[i, j] = max(sum over k of x[i, k] * w[j, k] + 1, 0) with w as a row-major matrix: [columns, depth], or [depth, columns].
inline tir::PrimFuncRef plain_product(int64_t n, int64_t columns, int64_t depth, bool transposed) {
  Expr rows = rows_of(n);
  te::Tensor x = te::placeholder({rows, size(depth)}, f32, "x"),
             w = transposed ? te::placeholder({size(columns), size(depth)}, f32, "w")
                            : te::placeholder({size(depth), size(columns)}, f32, "w");
  tir::IterVarRef k = te::reduce_axis(size(depth), "k");
  te::Tensor sum = te::reduce({.name = "product", .axis = "i"}, {rows, size(columns)}, [&](const te::Indices& i) {
    const Expr weight = transposed ? w({i[1], k->var}) : w({k->var, i[1]});
    return te::reduce_sum(x({i[0], k->var}) * weight, {k});
  });
  te::Tensor y = te::compute({.name = "relu", .axis = "i"}, {rows, size(columns)}, [&](const te::Indices& i) {
    return max(sum(i) + constant(1, f32), constant(0, f32));
  });
  return te::create_prim_func({x, w, y});
}

/// y[i, j] = max(sum over k of x[i, k] * w[j, k] + b[j], 0), w in panels.
inline tir::PrimFuncRef float_product(int64_t n, int64_t columns, int64_t depth) {
  Expr rows = rows_of(n);
  te::Tensor x = te::placeholder({rows, size(depth)}, f32, "x"), w = panels(columns, depth, f32),
             b = te::placeholder({size(columns)}, f32, "b");
  tir::IterVarRef k = te::reduce_axis(size(depth), "k");
  te::Tensor sum = te::reduce({.name = "product", .axis = "i"}, {rows, size(columns)}, [&](const te::Indices& i) {
    return te::reduce_sum(x({i[0], k->var}) * in_panels(w, i[1], k->var), {k});
  });
  te::Tensor biased = te::compute(
      {.name = "bias", .axis = "i"}, {rows, size(columns)}, [&](const te::Indices& i) { return sum(i) + b({i[1]}); });
  te::Tensor y = te::compute({.name = "relu", .axis = "i"}, {rows, size(columns)}, [&](const te::Indices& i) {
    return max(biased(i), constant(0, f32));
  });
  return te::create_prim_func({x, w, b, y});
}

/// y[i, j] = sum over k of x[i, k] * w[j, k], bfloat16 in float32, w in panels of pairs: [ceil(columns / 32), depth / 2, 32, 2].
inline tir::PrimFuncRef bf16_product(int64_t n, int64_t columns, int64_t depth) {
  Expr rows = rows_of(n);
  te::Tensor x = te::placeholder({rows, size(depth)}, bf16, "x"),
             w = te::placeholder({size((columns + 31) / 32), size(depth / 2), size(32), size(2)}, bf16, "w");
  te::Tensor wide = te::compute({.name = "widen", .axis = "i"}, {rows, size(depth)}, [&](const te::Indices& i) {
    return cast_to(f32, x({i[0], i[1]}));
  });
  tir::IterVarRef k = te::reduce_axis(size(depth), "k");
  te::Tensor y = te::reduce({.name = "product", .axis = "i"}, {rows, size(columns)}, [&](const te::Indices& i) {
    const Expr weight = w({floordiv(i[1], 32), floordiv(k->var, 2), floormod(i[1], 32), floormod(k->var, 2)});
    return te::reduce_sum(wide({i[0], k->var}) * cast_to(f32, weight), {k});
  });
  return te::create_prim_func({x, w, y});
}

/// y[i, j] = (sum over k of x[i, k] * code(j, k)) * 0.5: int8 x by codes of `bits` bits in words, in panels.
inline tir::PrimFuncRef code_product(int64_t n, int64_t columns, int64_t depth, int bits) {
  Expr rows = rows_of(n);
  const int64_t per_word = 32 / bits;
  te::Tensor x = te::placeholder({rows, size(depth)}, i8, "x"), codes = panels(columns, depth / per_word, u32);
  te::Tensor w = te::compute({.name = "unpack", .axis = "i"}, {size(columns), size(depth)}, [&](const te::Indices& i) {
    Expr shift = cast_to(u32, floormod(i[1], per_word) * bits);
    Expr code = call(u32, "tir.shift_right", {in_panels(codes, i[0], floordiv(i[1], per_word)), shift});
    return cast_to(u8, call(u32, "tir.bitwise_and", {code, int_imm((1 << bits) - 1, u32)}));
  });
  tir::IterVarRef k = te::reduce_axis(size(depth), "k");
  te::Tensor sum = te::reduce({.name = "product", .axis = "i"}, {rows, size(columns)}, [&](const te::Indices& i) {
    return te::reduce_sum(cast_to(i32, x({i[0], k->var})) * cast_to(i32, w({i[1], k->var})), {k});
  });
  te::Tensor y = te::compute({.name = "rescale", .axis = "i"}, {rows, size(columns)}, [&](const te::Indices& i) {
    return cast_to(f32, sum(i)) * constant(0.5, f32);
  });
  return te::create_prim_func({x, codes, y});
}

/// y[i, j] = sum over k of x[i, k] * (code(j, k) - 7) * scale[j, k / 32], in float32: 4-bit codes and scales in panels.
inline tir::PrimFuncRef scaled_product(int64_t n, int64_t columns, int64_t groups) {
  Expr rows = rows_of(n);
  const int64_t depth = groups * 32;
  te::Tensor x = te::placeholder({rows, size(depth)}, f32, "x"), codes = panels(columns, depth / 8, u32),
             scale = panels(columns, groups, f32);
  te::Tensor w =
      te::compute({.name = "dequantize", .axis = "i"}, {size(columns), size(depth)}, [&](const te::Indices& i) {
        Expr shift = cast_to(u32, floormod(i[1], 8) * 4);
        Expr code = call(u32, "tir.shift_right", {in_panels(codes, i[0], floordiv(i[1], 8)), shift});
        Expr value = cast_to(f32, call(u32, "tir.bitwise_and", {code, int_imm(15, u32)})) - constant(7, f32);
        return value * in_panels(scale, i[0], floordiv(i[1], 32));
      });
  tir::IterVarRef k = te::reduce_axis(size(depth), "k");
  te::Tensor y = te::reduce({.name = "product", .axis = "i"}, {rows, size(columns)}, [&](const te::Indices& i) {
    return te::reduce_sum(x({i[0], k->var}) * w({i[1], k->var}), {k});
  });
  return te::create_prim_func({x, codes, scale, y});
}

struct Groups {
  int64_t count;
  int64_t length = 32;
  int zero = 0;  ///< of the codes: less so many times sums[i, g], the sum of the group's x, which the function is given
  bool scales_rows = false;  ///< each row's sums of a group are multiplied by row_scale[i, g], too
};

/// y[i, j] = (sum over groups g of scale[j, g] * (sum over k of the group of x[i, k] * code(j, k))) + x0[i]: int8 x by
/// 4-bit codes in panels.
inline tir::PrimFuncRef grouped_product(int64_t n, int64_t columns, const Groups& groups) {
  Expr rows = rows_of(n);
  const int64_t depth = groups.count * groups.length;
  te::Tensor x = te::placeholder({rows, size(depth)}, i8, "x"), codes = panels(columns, depth / 8, u32),
             scale = panels(columns, groups.count, f32), offset = te::placeholder({rows}, f32, "offset"),
             x_sums = te::placeholder({rows, size(groups.count)}, i32, "sums"),
             row_scale = te::placeholder({rows, size(groups.count)}, f32, "row_scale");
  te::Tensor w = te::compute({.name = "unpack", .axis = "i"}, {size(columns), size(depth)}, [&](const te::Indices& i) {
    Expr shift = cast_to(u32, floormod(i[1], 8) * 4);
    Expr code = call(u32, "tir.shift_right", {in_panels(codes, i[0], floordiv(i[1], 8)), shift});
    return cast_to(u8, call(u32, "tir.bitwise_and", {code, int_imm(15, u32)}));
  });
  tir::IterVarRef k = te::reduce_axis(size(groups.length), "k");
  te::Tensor dot =
      te::reduce({.name = "dot", .axis = "i"}, {rows, size(columns), size(groups.count)}, [&](const te::Indices& i) {
        Expr at = i[2] * int_imm(groups.length, i[2]->dtype) + k->var;
        return te::reduce_sum(cast_to(i32, x({i[0], at})) * cast_to(i32, w({i[1], at})), {k});
      });
  tir::IterVarRef g = te::reduce_axis(size(groups.count), "g");
  te::Naming naming{.name = "sum", .axis = "i"};
  if (groups.zero != 0) naming.annotations[kSubtractsSums] = int_imm(1);
  te::Tensor sum = te::reduce(naming, {rows, size(columns)}, [&](const te::Indices& i) {
    Expr whole = dot({i[0], i[1], g->var});
    if (groups.zero != 0) whole = whole - constant(groups.zero, i32) * x_sums({i[0], g->var});
    Expr scaled = cast_to(f32, whole) * in_panels(scale, i[1], g->var);
    if (groups.scales_rows) scaled = scaled * row_scale({i[0], g->var});
    return te::reduce_sum(scaled, {g});
  });
  te::Tensor y = te::compute({.name = "offset_sum", .axis = "i"}, {rows, size(columns)}, [&](const te::Indices& i) {
    return sum(i) + offset({i[0]});
  });
  std::vector<te::Arg> all = {x, codes, scale, offset};
  if (groups.zero != 0) all.push_back(x_sums);
  if (groups.scales_rows) all.push_back(row_scale);
  all.push_back(y);
  return te::create_prim_func(all);
}

/// Each row in 8 bits: scale[i] = max |x[i, :]| / 127, codes[i, j] = round(x[i, j] / scale[i]).
inline tir::PrimFuncRef quantized_rows(int64_t n, int64_t columns) {
  Expr rows = rows_of(n);
  te::Tensor x = te::placeholder({rows, size(columns)}, f32, "x");
  tir::IterVarRef k = te::reduce_axis(size(columns), "k");
  te::Tensor largest = te::reduce({.name = "largest", .axis = "i"}, {rows}, [&](const te::Indices& i) {
    return te::reduce_max(call(f32, "tir.fabs", {x({i[0], k->var})}), {k});
  });
  te::Tensor scale = te::compute({.name = "scale", .axis = "i"}, {rows}, [&](const te::Indices& i) {
    return largest(i) * constant(1.0 / 127, f32);
  });
  te::Tensor codes = te::compute({.name = "codes", .axis = "i"}, {rows, size(columns)}, [&](const te::Indices& i) {
    return cast_to(i8, call(f32, "tir.nearbyint", {div(x(i), scale({i[0]}) + constant(1, f32))}));
  });
  return te::create_prim_func({x, scale, codes});
}

/// tanh(x) less its row's mean of squares: an expensive value with two readers, and a sum.
inline tir::PrimFuncRef centred_rows(int64_t n, int64_t columns) {
  Expr rows = rows_of(n);
  te::Tensor x = te::placeholder({rows, size(columns)}, f32, "x");
  te::Tensor t = te::compute({.name = "tanh", .axis = "i"}, {rows, size(columns)}, [&](const te::Indices& i) {
    return call(f32, "tir.nearbyint", {call(f32, "tir.tanh", {x(i)}) * constant(8, f32)});
  });
  tir::IterVarRef k = te::reduce_axis(size(columns), "k");
  te::Tensor sum = te::reduce({.name = "sum", .axis = "i"}, {rows}, [&](const te::Indices& i) {
    return te::reduce_sum(t({i[0], k->var}) * t({i[0], k->var}), {k});
  });
  te::Tensor y = te::compute({.name = "centred", .axis = "i"}, {rows, size(columns)}, [&](const te::Indices& i) {
    return t(i) - sum({i[0]}) * constant(1.0 / static_cast<double>(columns), f32);
  });
  return te::create_prim_func({x, y});
}

}  // namespace sator::rules
