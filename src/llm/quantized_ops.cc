#include "llm/quantized_ops.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "llm/quantize.h"
#include "llm/small_floats.h"
#include "passes/lower/lower.h"
#include "passes/op_pattern.h"
#include "rules/rule.h"
#include "tir/te.h"

namespace sator::llm {

using te::Indices;

namespace {

Expr i64c(int64_t v) { return int_imm(v, i64); }
Expr u32c(int64_t v) { return int_imm(v, u32); }

constexpr std::string_view kDequantize = "dequantize", kQuantize = "quantize";

tir::PrimFuncRef finished(const std::vector<te::Arg>& args, std::optional<std::string_view> role) {
  const tir::PrimFuncRef f = tir::without_symbol(te::create_prim_func(args));
  Attrs attrs = f->attrs;
  if (role) attrs["role"] = string_imm(std::string(*role));
  // What makes a product's factors joins the product (FuseDequantizeMatmulEwise), never what comes before it.
  if (role == kDequantize) attrs["op_pattern"] = int_imm(static_cast<int64_t>(passes::OpPattern::opaque));
  return with(f, &tir::PrimFunc::attrs, std::move(attrs));
}

/// Code k of row j as uint32.
Expr code(const te::Tensor& codes, const Expr& j, const Expr& k, int bits) {
  Expr mask = u32c((1 << bits) - 1);
  if (32 % bits == 0) {
    int64_t per_word = 32 / bits;
    Expr word = codes({j, floordiv(k, per_word)});
    Expr shift = cast_to(u32, floormod(k, per_word) * bits);
    return call(u32, "tir.bitwise_and", {call(u32, "tir.shift_right", {word, shift}), mask});
  }
  // A code may begin in one word and end in the next. Its low bits are the first word's highest; behind them come the second
  // word's lowest. Where both are one word, what the second shift brings lies above the mask.
  Expr bit = k * bits;
  Expr shift = cast_to(u32, floormod(bit, 32));
  Expr low = call(u32, "tir.shift_right", {codes({j, floordiv(bit, 32)}), shift});
  Expr high = call(u32, "tir.shift_left", {codes({j, floordiv(bit + (bits - 1), 32)}), u32c(1)});
  high = call(u32, "tir.shift_left", {high, u32c(31) - shift});  // in two steps, for 32 at once would be too far
  return call(u32, "tir.bitwise_and", {call(u32, "tir.bitwise_or", {low, high}), mask});
}

te::Tensor codes_input(const IntegerFormat& f, int64_t rows, int64_t cols) {
  return te::placeholder({i64c(rows), i64c(words_per_row(cols, f.bits))}, u32, "codes");
}

te::Tensor part_input(const MatrixPart& part) {
  std::vector<Expr> shape;
  for (int64_t d : part.shape) shape.push_back(i64c(d));
  // ".q_super_scale" is called "super_scale" here, ".q_weight" "codes".
  const std::string name = part.part == ParamPart::codes ? "codes" : std::string(part.ending).substr(3);
  return te::placeholder(shape, part.dtype, name);
}

Expr scale_at(const te::Tensor& scale, const IntegerFormat& f, const Expr& j, const Expr& k) {
  switch (f.granularity) {
    case Granularity::tensor: return scale({i64c(0)});
    case Granularity::channel: return scale({j});
    case Granularity::input: return scale({k});
    default: return scale({j, floordiv(k, f.group)});
  }
}
Expr zero_code(const IntegerFormat& f, DType dtype) { return constant(f.zero_code(), dtype); }

/// A codebook's values as bytes of four words, whole numbers of -128 to 255.
std::array<Expr, 4> words_of(const std::vector<float>& table) {
  auto is_byte = [](float v) { return v >= -128 && v <= 255 && v == std::trunc(v); };
  if (table.size() != 16 || !std::ranges::all_of(table, is_byte)) internal_error("a codebook that is not 16 bytes");
  std::array<Expr, 4> words;
  for (size_t w = 0; w < words.size(); ++w) {
    uint32_t bytes = 0;
    for (size_t i = 0; i < 4; ++i)
      bytes |= static_cast<uint32_t>(static_cast<uint8_t>(static_cast<int>(table[4 * w + i]))) << (8 * i);
    words[w] = u32c(bytes);
  }
  return words;
}

/// The value of a codebook that a code of 4 bits stands for, f32. The code's upper bits choose a word, the lower ones how far the byte is
/// shifted to the word's top, where its sign is.
Expr chosen(const std::vector<float>& table, const Expr& code) {
  auto bits = [&](const char* op, const Expr& a, uint32_t b) { return call(u32, op, {a, u32c(b)}); };
  auto has = [&](uint32_t bit) { return ne(bits("tir.bitwise_and", code, bit), u32c(0)); };
  const std::array<Expr, 4> word = words_of(table);
  Expr four = select(has(8), select(has(4), word[3], word[2]), select(has(4), word[1], word[0]));
  Expr shift = u32c(24) - bits("tir.bitwise_and", bits("tir.shift_left", code, 3), 24);
  Expr at_top = call(i32, "tir.reinterpret", {call(u32, "tir.shift_left", {four, shift})});
  return cast_to(f32, call(i32, "tir.shift_right", {at_top, int_imm(24, i32)}));
}

/// The value of an 8-bit float, f32. As float16 it has the same sign, exponent and mantissa: e5m2 is its upper byte; of e4m3
/// the exponent lies 8 too low, and float16 holds what is below its normal numbers exactly too.
Expr small_float(Codebook codebook, const Expr& code) {
  auto bits = [](const char* op, const Expr& a, uint32_t b) { return call(u32, op, {a, u32c(b)}); };
  const bool e5m2 = codebook == Codebook::e5m2;
  Expr half = e5m2 ? bits("tir.shift_left", code, 8)
                   : call(u32,
                          "tir.bitwise_or",
                          {bits("tir.shift_left", bits("tir.bitwise_and", code, 0x80), 8),
                           bits("tir.shift_left", bits("tir.bitwise_and", code, 0x7f), 7)});
  Expr value = cast_to(f32, call(f16, "tir.reinterpret", {cast_to(u16, half)}));
  return e5m2 ? value : value * constant(256, f32);
}

/// The value of a small float, f32: sign, exponent and mantissa go where float32 has them.
Expr small_float(const SmallFloat& small, const Expr& code) {
  auto moved = [&](uint32_t kept, int by) {
    Expr bits = call(u32, "tir.bitwise_and", {code, u32c(kept)});
    return by == 0 ? bits : call(u32, "tir.shift_left", {bits, u32c(by)});
  };
  Expr bits = call(u32,
                   "tir.bitwise_or",
                   {moved(small.sign(), 32 - small.bits), moved(small.largest(), 23 - small.mantissa_bits())});
  return call(f32, "tir.reinterpret", {bits}) * constant(small.unit(), f32);
}

}  // namespace

tir::PrimFuncRef dequantize_function(const IntegerFormat& f, int64_t rows, int64_t cols, bool with_scale,
                                     DType factors) {
  std::map<ParamPart, te::Tensor> parts;
  std::vector<te::Arg> args;
  for (const MatrixPart& part : parts_of(f, rows, cols)) {
    if ((part.part == ParamPart::scale && !with_scale) || part.part == ParamPart::order) continue;
    args.push_back(parts[part.part] = part_input(part));
  }
  auto number = [&](ParamPart own, ParamPart of_block, const Indices& i) {
    Expr v = cast_to(f32, scale_at(parts.at(own), f, i[0], i[1]));
    return f.super_block == 0 ? v : cast_to(f32, parts.at(of_block)({i[0], floordiv(i[1], f.super_block)})) * v;
  };
  te::Tensor w = te::compute({.name = "dequantize", .axis = "i"}, {i64c(rows), i64c(cols)}, [&](const Indices& i) {
    Expr c = code(parts.at(ParamPart::codes), i[0], i[1], f.bits), value;
    if (f.exponent_bits > 0) {
      value = small_float(SmallFloat{f.bits, f.exponent_bits}, c);
    } else if (f.codebook != Codebook::none) {
      const bool small = f.codebook == Codebook::e4m3 || f.codebook == Codebook::e5m2;
      value = small ? small_float(f.codebook, c) : chosen(values_of(f.codebook), c);
    } else {
      Expr z = f.asymmetric ? cast_to(f32, scale_at(parts.at(ParamPart::zero), f, i[0], i[1])) : zero_code(f, f32);
      value = f.zero_code() == 0 && !f.asymmetric ? cast_to(f32, c) : cast_to(f32, c) - z;
    }
    if (with_scale) value = value * number(ParamPart::scale, ParamPart::super_scale, i);
    if (f.minimum) value = value - number(ParamPart::minimum, ParamPart::super_minimum, i);
    if (with_scale && f.mlc) value = cast_to(f.scale_dtype, value);
    return cast_to(f32, cast_to(factors, value));
  });
  args.push_back(w);
  tir::PrimFuncRef function = finished(args, kDequantize);
  if (!with_scale || !rounds_to_float16(f)) return function;
  Attrs attrs = function->attrs;
  attrs[passes::kFiniteCasts] = int_imm(1, i64);  // require_finite() has seen to it
  return with(function, &tir::PrimFunc::attrs, std::move(attrs));
}

/// The values of a codebook as bytes: each is as much larger as `unpacked_zero` says.
static std::vector<float> unpacked_values(Codebook codebook) {
  std::vector<float> values = values_of(codebook);
  const float least = std::ranges::min(values);
  for (float& v : values) v -= least;
  return values;
}

int unpacked_zero(const IntegerFormat& f) {
  return f.codebook == Codebook::none ? f.zero_code() : static_cast<int>(-std::ranges::min(values_of(f.codebook)));
}

bool has_integer_values(const IntegerFormat& f) {
  return f.exponent_bits == 0 && f.codebook != Codebook::e4m3 && f.codebook != Codebook::e5m2 && !f.mlc;
}

tir::PrimFuncRef unpack_function(const IntegerFormat& f, int64_t rows, int64_t cols) {
  te::Tensor codes = codes_input(f, rows, cols), zero;
  std::vector<te::Arg> args = {codes};
  if (unpacks_zero(f)) args.push_back(zero = te::placeholder({i64c(cols)}, u8, "zero"));
  te::Tensor w = te::compute({.name = "unpack", .axis = "i"}, {i64c(rows), i64c(cols)}, [&](const Indices& i) {
    Expr c = code(codes, i[0], i[1], f.bits);
    if (f.codebook != Codebook::none) {
      const std::array<Expr, 4> words = words_of(unpacked_values(f.codebook));
      return call(u8, "tir.lookup16", {cast_to(u8, c), words[0], words[1], words[2], words[3]});
    }
    return unpacks_zero(f) ? cast_to(i16, c) - cast_to(i16, zero({i[1]})) : cast_to(u8, c);
  });
  args.push_back(w);
  return finished(args, kDequantize);
}

tir::PrimFuncRef widen_function(DType dtype, const Expr& rows, int64_t cols) {
  te::Tensor w16 = te::placeholder({rows, i64c(cols)}, dtype, "w");
  te::Tensor w = te::compute(
      {.name = "widen", .axis = "i"}, {rows, i64c(cols)}, [&](const Indices& i) { return cast_to(f32, w16(i)); });
  return finished({w16, w}, kDequantize);
}

namespace {

Expr to_code(const Expr& value, int bits) {
  Expr top = constant((1 << (bits - 1)) - 1, f32);
  Expr rounded = call(f32, "tir.nearbyint", {value});
  return cast_to(i8, max(min(rounded, top), -top));
}

/// By which the largest becomes the largest code.
Expr scale_of(const Expr& largest, int bits) { return largest * constant(1.0 / ((1 << (bits - 1)) - 1), f32); }
/// Where all are zeros the scale is 0, and so are the codes.
Expr inverse_of(const Expr& scale) {
  return call(f32, "tir.if_then_else", {gt(scale, constant(0, f32)), div(constant(1, f32), scale), constant(0, f32)});
}

}  // namespace

tir::PrimFuncRef quantize_token_function(const ActivationFormat& f, int64_t cols) {
  VarRef n = make_size_var("n");
  te::Tensor x = te::placeholder({n, i64c(cols)}, f32, "x");
  tir::IterVarRef k = te::reduce_axis(i64c(cols), "k");
  te::Tensor largest = te::reduce({.name = "largest", .axis = "i"}, {n}, [&](const Indices& i) {
    return te::reduce_max(call(f32, "tir.fabs", {x({i[0], k->var})}), {k});
  });
  te::Tensor scale =
      te::compute({.name = "scale", .axis = "i"}, {n}, [&](const Indices& i) { return scale_of(largest(i), f.bits); });
  te::Tensor codes = te::compute({.name = "quantize", .axis = "i"}, {n, i64c(cols)}, [&](const Indices& i) {
    return to_code(x(i) * inverse_of(scale({i[0]})), f.bits);
  });
  return finished({x, codes, scale}, kQuantize);
}

tir::PrimFuncRef quantize_group_function(const ActivationFormat& f, int64_t cols, int64_t group) {
  VarRef n = make_size_var("n");
  const int64_t groups = (cols + group - 1) / group;
  te::Tensor x = te::placeholder({n, i64c(cols)}, f32, "x");
  tir::IterVarRef k = te::reduce_axis(i64c(group), "k");
  te::Tensor largest = te::reduce({.name = "largest", .axis = "i"}, {n, i64c(groups)}, [&](const Indices& i) {
    Expr col = i[1] * group + k->var, value = call(f32, "tir.fabs", {x({i[0], col})});
    if (cols % group != 0) value = call(f32, "tir.if_then_else", {lt(col, i64c(cols)), value, constant(0, f32)});
    return te::reduce_max(value, {k});
  });
  te::Tensor scale = te::compute({.name = "scale", .axis = "i"}, {n, i64c(groups)}, [&](const Indices& i) {
    return scale_of(largest(i), f.bits);
  });
  te::Tensor codes = te::compute({.name = "quantize", .axis = "i"}, {n, i64c(cols)}, [&](const Indices& i) {
    return to_code(x(i) * inverse_of(scale({i[0], floordiv(i[1], group)})), f.bits);
  });
  return finished({x, codes, scale}, kQuantize);
}

tir::PrimFuncRef quantize_static_function(const ActivationFormat& f, int64_t cols) {
  VarRef n = make_size_var("n");
  const int64_t groups = f.num_scales(cols);
  te::Tensor x = te::placeholder({n, i64c(cols)}, f32, "x"), scale = te::placeholder({i64c(groups)}, f32, "scale");
  te::Tensor codes = te::compute({.name = "quantize", .axis = "i"}, {n, i64c(cols)}, [&](const Indices& i) {
    Expr s = groups == 1 ? scale({i64c(0)}) : groups == cols ? scale({i[1]}) : scale({floordiv(i[1] * groups, cols)});
    return to_code(div(x(i), s), f.bits);
  });
  return finished({x, scale, codes}, kQuantize);
}

tir::PrimFuncRef code_sums_function(int64_t cols, int64_t group) {
  VarRef n = make_size_var("n");
  int64_t groups = (cols + group - 1) / group;
  te::Tensor x = te::placeholder({n, i64c(cols)}, i8, "x");
  tir::IterVarRef k = te::reduce_axis(i64c(group), "k");
  te::Tensor sums = te::reduce({.name = "sums", .axis = "i"}, {n, i64c(groups)}, [&](const Indices& i) {
    Expr col = i[1] * group + k->var;
    if (cols % group == 0) return te::reduce_sum(cast_to(i32, x({i[0], col})), {k});
    Expr value = call(i32, "tir.if_then_else", {lt(col, i64c(cols)), cast_to(i32, x({i[0], col})), constant(0, i32)});
    return te::reduce_sum(value, {k});
  });
  return finished({x, sums}, {});
}

tir::PrimFuncRef integer_matmul_function(DType weight, int64_t rows, int64_t cols) {
  VarRef n = make_size_var("n");
  te::Tensor x = te::placeholder({n, i64c(cols)}, i8, "x"), w = te::placeholder({i64c(rows), i64c(cols)}, weight, "w");
  tir::IterVarRef k = te::reduce_axis(i64c(cols), "k");
  te::Tensor acc = te::reduce({.name = "NT_matmul", .axis = "i"}, {n, i64c(rows)}, [&](const Indices& i) {
    return te::reduce_sum(cast_to(i32, x({i[0], k->var})) * cast_to(i32, w({i[1], k->var})), {k});
  });
  return finished({x, w, acc}, {});
}

tir::PrimFuncRef grouped_matmul_function(const IntegerFormat& f, int64_t rows, int64_t cols, bool has_input_scales) {
  VarRef n = make_size_var("n");
  const int64_t g = f.group, groups = (cols + g - 1) / g;
  te::Tensor x = te::placeholder({n, i64c(cols)}, i8, "x"), w = te::placeholder({i64c(rows), i64c(cols)}, u8, "w");
  te::Tensor sums = te::placeholder({n, i64c(groups)}, i32, "sums");
  std::map<ParamPart, te::Tensor> parts;
  std::vector<te::Arg> args = {x, w};
  for (const MatrixPart& part : parts_of(f, rows, cols))
    if (part.part != ParamPart::codes && part.part != ParamPart::order)
      args.push_back(parts[part.part] = part_input(part));
  args.push_back(sums);
  te::Tensor input_scale = te::placeholder({n, i64c(groups)}, f32, "input_scale");
  if (has_input_scales) args.push_back(input_scale);
  tir::IterVarRef k = te::reduce_axis(i64c(g), "k");
  te::Tensor dot = te::reduce({.name = "group_dot", .axis = "i"}, {n, i64c(rows), i64c(groups)}, [&](const Indices& i) {
    Expr col = i[2] * g + k->var;
    if (cols % g == 0) return te::reduce_sum(cast_to(i32, x({i[0], col})) * cast_to(i32, w({i[1], col})), {k});
    Expr inside = lt(col, i64c(cols));
    Expr product = cast_to(i32, x({i[0], col})) * cast_to(i32, w({i[1], col}));
    return te::reduce_sum(call(i32, "tir.if_then_else", {inside, product, constant(0, i32)}), {k});
  });
  tir::IterVarRef gk = te::reduce_axis(i64c(groups), "g");
  auto number = [&](ParamPart own, ParamPart of_block, const Expr& row) {
    Expr v = cast_to(f32, parts.at(own)({row, gk->var}));
    return f.super_block == 0 ? v : cast_to(f32, parts.at(of_block)({row, floordiv(gk->var, f.super_block / g)})) * v;
  };
  te::Naming naming{.name = "NT_matmul", .axis = "i"};
  if (!f.asymmetric && unpacked_zero(f) != 0) naming.annotations[rules::kSubtractsSums] = int_imm(1);
  te::Tensor y = te::reduce(naming, {n, i64c(rows)}, [&](const Indices& i) {
    const Expr inputs = sums({i[0], gk->var});
    Expr z = f.asymmetric ? cast_to(i32, parts.at(ParamPart::zero)({i[1], gk->var})) : constant(unpacked_zero(f), i32);
    Expr codes = dot({i[0], i[1], gk->var});
    if (f.asymmetric || unpacked_zero(f) != 0) codes = codes - z * inputs;
    Expr value = cast_to(f32, codes) * number(ParamPart::scale, ParamPart::super_scale, i[1]);
    if (f.minimum) value = value - cast_to(f32, inputs) * number(ParamPart::minimum, ParamPart::super_minimum, i[1]);
    return te::reduce_sum(has_input_scales ? value * input_scale({i[0], gk->var}) : value, {gk});
  });
  args.push_back(y);
  return finished(args, {});
}

tir::PrimFuncRef rescale_function(const IntegerFormat& f, int64_t rows, bool has_scale, bool has_token_scale) {
  VarRef n = make_size_var("n");
  const bool has_sums = !unpacks_zero(f);
  const bool has_zero = f.asymmetric && has_sums, per_channel = f.granularity == Granularity::channel;
  std::vector<Expr> shape = {per_channel ? i64c(rows) : i64c(1)};
  te::Tensor acc = te::placeholder({n, i64c(rows)}, i32, "acc"), sums, scale, zero, token_scale;
  std::vector<te::Arg> args = {acc};
  if (has_sums) args.push_back(sums = te::placeholder({n, i64c(1)}, i32, "sums"));
  if (has_scale) args.push_back(scale = te::placeholder(shape, f.scale_dtype, "scale"));
  if (has_zero) args.push_back(zero = te::placeholder(shape, u8, "zero"));
  if (has_token_scale) args.push_back(token_scale = te::placeholder({n}, f32, "token_scale"));
  te::Tensor y = te::compute({.name = "rescale", .axis = "i"}, {n, i64c(rows)}, [&](const Indices& i) {
    Expr channel = per_channel ? i[1] : i64c(0), value = acc(i);
    if (has_sums) {
      Expr z = has_zero ? cast_to(i32, zero({channel})) : constant(unpacked_zero(f), i32);
      value = value - z * sums({i[0], i64c(0)});
    }
    value = cast_to(f32, value);
    if (has_scale) value = value * cast_to(f32, scale({channel}));
    return has_token_scale ? value * token_scale({i[0]}) : value;
  });
  args.push_back(y);
  return finished(args, {});
}

}  // namespace sator::llm
