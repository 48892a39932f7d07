#include "llm/layers.h"

#include <algorithm>

#include "llm/quantized_ops.h"
#include "relax/ops/table.h"

namespace sator::llm {

using namespace relax;

namespace {

Expr i64c(int64_t v) { return int_imm(v, i64); }
StructInfo matrix_info(const Expr& rows, int64_t cols, DType dtype = f32) {
  return tensor_info({rows, i64c(cols)}, dtype);
}

Expr rows_of(const RExpr& x) {
  const TensorInfo* info = x->sinfo.as<TensorInfo>();
  auto shape = info ? relax::shape_of(*info) : std::nullopt;
  if (!shape || shape->empty()) internal_error("a layer's input has no known shape");
  return shape->front();
}

/// Several tensors under one scale would be quantized otherwise than each by itself.
bool needs_own_scale(const std::optional<IntegerFormat>& f) {
  return f && (f->granularity == Granularity::tensor || f->granularity == Granularity::input);
}

}  // namespace

std::string variable_name(const std::string& layer) {
  std::string name = layer;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

std::string Layers::variable_of(const std::string& layer) {
  if (!layer.empty() && std::ranges::find(names_, layer) == names_.end()) names_.push_back(layer);
  return variable_name(layer);
}

RExpr Layers::op(const std::string& name, const std::vector<Value>& positional,
                 const std::vector<std::pair<std::string, Value>>& keywords, const std::string& layer) {
  return out_.emit(make_call(name, positional, keywords), variable_of(layer));
}

RExpr Layers::parameter(ParamSpec spec) {
  if (auto at = parameters_.find(spec.name); at != parameters_.end()) return at->second;
  size_t index = parameters_.size();
  if (index == specs_.size()) specs_.push_back(spec);
  if (specs_[index].name != spec.name) internal_error("the functions of a program disagree about its parameters");
  std::vector<Expr> shape;
  for (int64_t d : spec.shape) shape.push_back(i64c(d));
  StructInfo info = tensor_info(shape, spec.dtype);
  // In the round that finds out which parameters there are, each is a variable of its own.
  RExpr value =
      params_->sinfo.as<TupleInfo>()
          ? RExpr(out_.emit(with_sinfo(tuple_get(params_, static_cast<int>(index)), info), variable_name(spec.name)))
          : RExpr(make_rvar(variable_name(spec.name), info));
  parameters_.emplace(spec.name, value);
  return value;
}

RExpr Layers::vector(const std::string& tensor, int64_t n) {
  DType dtype = scheme_.storage.value_or(checkpoint_dtype_(tensor));
  RExpr v = parameter({.name = tensor, .shape = {n}, .dtype = dtype, .source = {{tensor}, false}});
  return dtype == f32 ? v : op("astype", {v}, {{"dtype", "float32"}});
}

RExpr Layers::matrix(const std::string& tensor, int64_t rows, int64_t cols) {
  DType dtype = scheme_.storage.value_or(checkpoint_dtype_(tensor));
  return parameter({.name = tensor, .shape = {rows, cols}, .dtype = dtype, .source = {{tensor}, false}});
}

RExpr Layers::call_function(const tir::PrimFuncRef& func, const std::string& name, std::vector<RExpr> args,
                            StructInfo out, const std::string& layer) {
  RExpr callee = out_.add_function(func, name);
  RExpr call = with_sinfo(relax::call(op_ref("call_tir"), {callee, relax::tuple(std::move(args))}, {}, {out}), out);
  return out_.emit(call, variable_of(layer));
}

RExpr Layers::weight_f32(const WeightSource& source, const std::string& name, int64_t rows, int64_t cols) {
  DType dtype = scheme_.storage.value_or(checkpoint_dtype_(source.tensors.front()));
  RExpr w = parameter({.name = name + ".weight", .shape = {rows, cols}, .dtype = dtype, .source = source});
  if (dtype == f32) return w;
  return call_function(widen_function(dtype, rows, cols), "widen", {w}, matrix_info(i64c(rows), cols));
}

RExpr Layers::linear(const RExpr& x, const Weight& weight, const std::string& layer) {
  bool apart = weight.tensors.size() > 1 && needs_own_scale(scheme_.linear);
  std::vector<std::string> biases = weight.biases;
  if (!weight.bias.empty()) biases = {weight.bias};
  std::vector<RExpr> parts;
  for (size_t i = 0; i < (apart ? weight.tensors.size() : 1); ++i) {
    WeightSource source{apart ? std::vector{weight.tensors[i]} : weight.tensors, weight.transposed};
    int64_t rows = 0;
    for (size_t j = 0; j < weight.outs.size(); ++j) rows += apart && j != i ? 0 : weight.outs[j];
    std::string name = weight.tensors[i];
    if (name.ends_with(".weight")) name.resize(name.size() - 7);
    if (!apart && weight.tensors.size() > 1) name = layer;
    if (observed_) {
      // Under the layer's name, and under those that its weights have where each is a layer of its own.
      RExpr range = op("max", {op("abs", {x})}, {{"axis", int64_t{0}}});
      std::vector<std::string> names = weight.tensors;
      for (std::string& n : names) n = n.ends_with(".weight") ? n.substr(0, n.size() - 7) : n;
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      for (const std::string& n : names) {
        observed_->layers.push_back(n);
        observed_->ranges.push_back(range);
      }
    }
    RExpr y;
    if (scheme_.linear) {
      y = quantized_linear(x, source, rows, weight.in, *scheme_.linear, scheme_.activation, name);
    } else {
      RExpr w = op("permute_dims", {weight_f32(source, name, rows, weight.in)});
      y = op("matmul", {x, w}, {}, layer);
    }
    if (!biases.empty()) {
      std::vector<std::string> own = apart ? std::vector{biases[i]} : biases;
      RExpr bias;
      if (own.size() == 1) {
        bias = vector(own[0], rows);
      } else {
        DType dtype = scheme_.storage.value_or(checkpoint_dtype_(own[0]));
        bias = parameter({.name = name + ".bias", .shape = {rows}, .dtype = dtype, .source = {own, false}});
        if (dtype != f32) bias = op("astype", {bias}, {{"dtype", "float32"}});
      }
      y = op("add", {y, bias}, {}, layer);
    }
    parts.push_back(y);
  }
  if (parts.size() == 1) return parts.front();
  return op("concat", {Value(relax::tuple(parts))}, {{"axis", 1}}, layer);
}

RExpr Layers::quantized_linear(const RExpr& x, const WeightSource& source, int64_t rows, int64_t cols,
                               const IntegerFormat& f, const std::optional<ActivationFormat>& activation,
                               const std::string& layer) {
  const Expr n = rows_of(x);
  auto part = [&](ParamPart which, const char* ending, runtime::Dims shape, DType dtype) {
    return parameter({.name = text(layer, ".", ending),
                      .part = which,
                      .shape = shape,
                      .dtype = dtype,
                      .source = source,
                      .format = f,
                      .activation = activation && activation->is_static() ? activation : std::nullopt,
                      .layer = layer});
  };
  const int64_t groups = f.granularity == Granularity::group ? (cols + f.group - 1) / f.group : 0;
  runtime::Dims scale_dims = f.granularity == Granularity::tensor    ? runtime::Dims{1}
                             : f.granularity == Granularity::channel ? runtime::Dims{rows}
                             : f.granularity == Granularity::input   ? runtime::Dims{cols}
                                                                     : runtime::Dims{rows, groups};
  RExpr codes = part(ParamPart::codes, "q_weight", {rows, words_per_row(cols, f.bits)}, u32);
  RExpr scale = part(ParamPart::scale, "q_scale", scale_dims, f.scale_dtype);
  RExpr zero = f.asymmetric ? part(ParamPart::zero, "q_zero", scale_dims, u8) : nullptr;
  auto f32_scale = [&] { return f.scale_dtype == f32 ? scale : op("astype", {scale}, {{"dtype", "float32"}}); };
  const bool grouped = f.granularity == Granularity::group, per_input = f.granularity == Granularity::input;

  // A scale per input feature goes to the input; the sum cannot give it back.
  RExpr input = per_input ? op("multiply", {x, f32_scale()}) : x;

  if (!activation) {
    std::vector<RExpr> args = {codes};
    if (grouped) args.push_back(scale);
    if (zero) args.push_back(zero);
    RExpr w =
        call_function(dequantize_function(f, rows, cols, grouped), "dequantize", args, matrix_info(i64c(rows), cols));
    RExpr y = op("matmul", {input, op("permute_dims", {w})}, {}, layer);
    return grouped || per_input ? y : op("multiply", {y, f32_scale()}, {}, layer);
  }

  RExpr q, token_scale;
  if (activation->is_static()) {
    int64_t count = activation->granularity == Granularity::tensor  ? 1
                    : activation->granularity == Granularity::input ? cols
                                                                    : activation->groups;
    RExpr s = part(ParamPart::activation_scale, "act_scale", {count}, f32);
    q = call_function(quantize_static_function(*activation, cols), "quantize", {input, s}, matrix_info(n, cols, i8));
  } else {
    StructInfo both = tuple_info({matrix_info(n, cols, i8), tensor_info({n}, f32)});
    RExpr pair = call_function(quantize_token_function(*activation, cols), "quantize", {input}, both);
    q = out_.emit(tuple_get(pair, 0));
    token_scale = out_.emit(tuple_get(pair, 1));
  }
  std::vector<RExpr> unpack_args = {codes};
  if (unpacks_zero(f)) unpack_args.push_back(zero);
  DType weight_dtype = unpacks_zero(f) ? i16 : u8;
  RExpr w =
      call_function(unpack_function(f, rows, cols), "unpack", unpack_args, matrix_info(i64c(rows), cols, weight_dtype));
  if (grouped) {
    RExpr sums = call_function(code_sums_function(cols, f.group), "code_sums", {q}, matrix_info(n, groups, i32));
    std::vector<RExpr> args = {q, w, scale};
    if (zero) args.push_back(zero);
    args.push_back(sums);
    RExpr y = call_function(grouped_matmul_function(f, rows, cols), "NT_matmul", args, matrix_info(n, rows), layer);
    if (!token_scale) return y;
    RExpr column = op("expand_dims", {token_scale}, {{"axis", 1}});
    return op("multiply", {y, column}, {}, layer);
  }
  RExpr acc = call_function(
      integer_matmul_function(weight_dtype, rows, cols), "NT_matmul", {q, w}, matrix_info(n, rows, i32), layer);
  std::vector<RExpr> args = {acc};
  if (!unpacks_zero(f))
    args.push_back(call_function(code_sums_function(cols, cols), "code_sums", {q}, matrix_info(n, 1, i32)));
  if (!per_input) args.push_back(scale);
  if (zero && !unpacks_zero(f)) args.push_back(zero);
  if (token_scale) args.push_back(token_scale);
  return call_function(rescale_function(f, rows, token_scale != nullptr), "rescale", args, matrix_info(n, rows), layer);
}

RExpr Layers::plain_embedding(const RExpr& ids, const std::string& tensor, int64_t rows, int64_t width) {
  RExpr table = matrix(tensor, rows, width);
  RExpr x = op("take", {table, ids}, {{"axis", 0}});
  return scheme_.storage.value_or(checkpoint_dtype_(tensor)) == f32 ? x : op("astype", {x}, {{"dtype", "float32"}});
}

RExpr Layers::embedding(const RExpr& ids, const std::string& tensor, int64_t vocab, int64_t width) {
  if (!scheme_.embedding) {
    std::string name = tensor.ends_with(".weight") ? tensor.substr(0, tensor.size() - 7) : tensor;
    DType dtype = scheme_.storage.value_or(checkpoint_dtype_(tensor));
    RExpr table =
        parameter({.name = name + ".weight", .shape = {vocab, width}, .dtype = dtype, .source = {{tensor}, false}});
    RExpr x = op("take", {table, ids}, {{"axis", 0}});
    return dtype == f32 ? x : op("astype", {x}, {{"dtype", "float32"}});
  }
  const IntegerFormat& f = *scheme_.embedding;
  std::string name = tensor.ends_with(".weight") ? tensor.substr(0, tensor.size() - 7) : tensor;
  const int64_t groups = f.granularity == Granularity::group ? (width + f.group - 1) / f.group : 0;
  runtime::Dims scale_dims = f.granularity == Granularity::tensor    ? runtime::Dims{1}
                             : f.granularity == Granularity::channel ? runtime::Dims{vocab}
                             : f.granularity == Granularity::input   ? runtime::Dims{width}
                                                                     : runtime::Dims{vocab, groups};
  auto part = [&](ParamPart which, const char* ending, runtime::Dims shape, DType dtype) {
    return parameter({.name = text(name, ".", ending),
                      .part = which,
                      .shape = shape,
                      .dtype = dtype,
                      .source = {{tensor}, false},
                      .format = f,
                      .layer = name});
  };
  std::vector<RExpr> args = {part(ParamPart::codes, "q_weight", {vocab, words_per_row(width, f.bits)}, u32),
                             part(ParamPart::scale, "q_scale", scale_dims, f.scale_dtype)};
  if (f.asymmetric) args.push_back(part(ParamPart::zero, "q_zero", scale_dims, u8));
  RExpr table =
      call_function(dequantize_function(f, vocab, width, true), "dequantize", args, matrix_info(i64c(vocab), width));
  return op("take", {table, ids}, {{"axis", 0}});
}

RExpr Layers::head(const RExpr& x, const std::string& tensor, int64_t vocab, int64_t width) {
  std::string name = tensor.ends_with(".weight") ? tensor.substr(0, tensor.size() - 7) : tensor;
  WeightSource source{{tensor}, false};
  if (scheme_.embedding) return quantized_linear(x, source, vocab, width, *scheme_.embedding, std::nullopt, name);
  RExpr w = weight_f32(source, name, vocab, width);
  return op("matmul", {x, op("permute_dims", {w})}, {}, "head");
}

RExpr Layers::positions(const RExpr& cache, const Expr& n) {
  StructInfo info = tensor_info(std::vector<Expr>{n}, i32);
  RExpr call = with_sinfo(relax::call(op_ref("call_pure_packed"),
                                      {extern_func("vm.builtin.attention_kv_cache_get_query_positions"), cache},
                                      {},
                                      {info}),
                          info);
  return out_.emit(call, "positions");
}

RExpr Layers::attention(const RExpr& qkv, const RExpr& cache, int64_t layer_index, int64_t heads, int64_t kv_heads,
                        int64_t head_dim, double scale, const std::string& layer) {
  const Expr n = rows_of(qkv);
  RExpr split = op("reshape", {qkv, Value(relax::shape_expr({n, i64c(heads + 2 * kv_heads), i64c(head_dim)}))});
  StructInfo info = tensor_info({n, i64c(heads), i64c(head_dim)}, f32);
  RExpr args = relax::tuple({cache, prim_value(layer_index), prim_value(float_imm(scale, f32)), split});
  RExpr call = with_sinfo(relax::call(op_ref("call_dps_packed"),
                                      {extern_func("vm.builtin.attention_kv_cache_attention_with_fused_qkv"), args},
                                      {},
                                      {info}),
                          info);
  RExpr o = out_.emit(call, variable_of(layer));
  return op("reshape", {o, Value(relax::shape_expr({n, i64c(heads * head_dim)}))});
}

}  // namespace sator::llm
