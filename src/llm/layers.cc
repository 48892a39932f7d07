#include "llm/layers.h"

#include <algorithm>

#include "llm/quantized_ops.h"
#include "relax/ops/table.h"

namespace sator::llm {

using namespace relax;

namespace {

Expr size_of(int64_t v) { return int_imm(v, i64); }
StructInfo matrix_info(const Expr& rows, int64_t cols, DType dtype = f32) {
  return tensor_info({rows, size_of(cols)}, dtype);
}

constexpr std::string_view kWeight = ".weight";

/// The layer that a tensor "<layer>.weight" is the weight of.
std::string layer_of(const std::string& tensor) {
  return tensor.ends_with(kWeight) ? tensor.substr(0, tensor.size() - kWeight.size()) : tensor;
}

/// Several tensors under one scale would be quantized otherwise than each by itself.
bool needs_own_scale(const std::optional<IntegerFormat>& f) {
  return f && (f->granularity == Granularity::tensor || f->granularity == Granularity::input || f->reordered);
}

/// A part of a quantized weight; null if the format has none.
RExpr part_of(const std::vector<std::pair<ParamPart, RExpr>>& parts, ParamPart which) {
  for (const auto& [part, value] : parts)
    if (part == which) return value;
  return nullptr;
}

}  // namespace

Expr rows_of(const RExpr& x) {
  const TensorInfo* info = x->sinfo.as<TensorInfo>();
  auto shape = info ? relax::shape_of(*info) : std::nullopt;
  if (!shape || shape->empty()) internal_error("a layer's input has no known shape");
  return shape->front();
}

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
  for (int64_t d : spec.shape) shape.push_back(size_of(d));
  StructInfo info = tensor_info(shape, spec.dtype);
  // In the round that finds out which parameters there are, each is a variable of its own.
  RExpr value =
      params_->sinfo.as<TupleInfo>()
          ? RExpr(out_.emit(with_sinfo(tuple_get(params_, static_cast<int>(index)), info), variable_name(spec.name)))
          : RExpr(make_rvar(variable_name(spec.name), info));
  parameters_.emplace(spec.name, value);
  return value;
}

RExpr Layers::plain(const std::string& name, const WeightSource& source, const runtime::Dims& shape, bool is_table) {
  const DType dtype = plain_dtype(scheme_, source.tensors.front());
  return parameter({.name = name, .shape = shape, .dtype = dtype, .source = source, .is_table = is_table});
}

RExpr Layers::widened(const RExpr& x) {
  return x->sinfo.as<TensorInfo>()->dtype == f32 ? x : op("astype", {x}, {{"dtype", "float32"}});
}

RExpr Layers::vector(const std::string& tensor, int64_t n) { return widened(plain(tensor, {{tensor}, false}, {n})); }

RExpr Layers::call_function(const tir::PrimFuncRef& func, const std::string& name, std::vector<RExpr> args,
                            StructInfo out, const std::string& layer) {
  RExpr callee = out_.add_function(func, name);
  RExpr call = with_sinfo(relax::call(op_ref("call_tir"), {callee, relax::tuple(std::move(args))}, {}, {out}), out);
  return out_.emit(call, variable_of(layer));
}

RExpr Layers::widened_where_read(const RExpr& x) {
  const TensorInfo& info = *x->sinfo.as<TensorInfo>();
  const Expr rows = rows_of(x);
  const int64_t cols = *as_int(relax::shape_of(info)->back());
  const Expr own_rows = as_int(rows) ? rows : Expr(make_size_var("n"));
  return call_function(widen_function(info.dtype, own_rows, cols), "widen", {x}, matrix_info(rows, cols));
}

RExpr Layers::weight_f32(const WeightSource& source, const std::string& name, int64_t rows, int64_t cols) {
  RExpr w = plain(text(name, kWeight), source, {rows, cols});
  return w->sinfo.as<TensorInfo>()->dtype == f32 ? w : widened_where_read(w);
}

RExpr Layers::product(const RExpr& x, const RExpr& w, const std::string& layer) {
  RExpr factor = x;
  if (scheme_.factors) factor = widened_where_read(op("astype", {x}, {{"dtype", scheme_.factors->name()}}));
  return op("matmul", {factor, op("permute_dims", {w})}, {}, layer);
}

Layers::Quantized Layers::quantized_weight(const ParamSpec& like, int64_t rows, int64_t cols) {
  Quantized parts;
  for (const MatrixPart& p : parts_of(*like.format, rows, cols)) {
    ParamSpec spec = like;
    spec.name += p.ending;
    spec.part = p.part;
    spec.shape = p.shape;
    spec.dtype = p.dtype;
    parts.emplace_back(p.part, parameter(std::move(spec)));
  }
  return parts;
}

std::vector<size_t> Layers::joined(const Weight& weight) const {
  std::vector<size_t> ends;
  for (size_t i = 1; i <= weight.tensors.size(); ++i) {
    const std::optional<IntegerFormat> format = linear_format(scheme_, weight.tensors[i - 1]);
    const bool goes_on =
        i < weight.tensors.size() && !needs_own_scale(format) && linear_format(scheme_, weight.tensors[i]) == format &&
        (format || plain_dtype(scheme_, weight.tensors[i]) == plain_dtype(scheme_, weight.tensors[i - 1]));
    if (!goes_on) ends.push_back(i);
  }
  return ends;
}

RExpr Layers::linear(const RExpr& x, const Weight& weight, const std::string& layer) {
  std::vector<RExpr> parts;
  size_t from = 0;
  for (size_t end : joined(weight)) {
    auto own = [&](const std::vector<std::string>& all) {
      return std::vector(all.begin() + static_cast<ptrdiff_t>(from), all.begin() + static_cast<ptrdiff_t>(end));
    };
    WeightSource source{own(weight.tensors), weight.transposed};
    int64_t rows = 0;
    for (size_t j = from; j < end; ++j) rows += weight.outs[j];
    const bool whole = end - from == weight.tensors.size();
    const std::string name = whole && weight.tensors.size() > 1 ? layer : layer_of(weight.tensors[from]);
    if (observed_) {
      // Under the layer's name, and under those that its weights have where each is a layer of its own.
      RExpr range = op("max", {op("abs", {x})}, {{"axis", int64_t{0}}});
      std::vector<std::string> names;
      for (const std::string& tensor : weight.tensors) names.push_back(layer_of(tensor));
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      for (const std::string& n : names) {
        observed_->layers.push_back(n);
        observed_->ranges.push_back(range);
      }
    }
    RExpr y;
    if (const std::optional<IntegerFormat> format = linear_format(scheme_, weight.tensors[from])) {
      y = quantized_linear(x, source, rows, weight.in, *format, scheme_.activation, name, name);
    } else {
      y = product(x, weight_f32(source, name, rows, weight.in), layer);
    }
    if (!weight.biases.empty()) {
      const std::vector<std::string> biases = own(weight.biases);
      RExpr bias = plain(biases.size() == 1 ? biases[0] : name + ".bias", {biases, false}, {rows});
      y = op("add", {y, widened(bias)}, {}, layer);
    }
    parts.push_back(y);
    from = end;
  }
  if (parts.size() == 1) return parts.front();
  return op("concat", {Value(relax::tuple(parts))}, {{"axis", 1}}, layer);
}

RExpr Layers::quantized_linear(const RExpr& x, const WeightSource& source, int64_t rows, int64_t cols,
                               const IntegerFormat& f, const std::optional<ActivationFormat>& activation,
                               const std::string& name, const std::string& layer) {
  const Expr n = rows_of(x);
  ParamSpec like{.name = name, .source = source, .format = f, .layer = name};
  if (activation && activation->is_static()) like.activation = activation;
  const Quantized weight = quantized_weight(like, rows, cols);
  const RExpr codes = part_of(weight, ParamPart::codes), scale = part_of(weight, ParamPart::scale),
              zero = part_of(weight, ParamPart::zero);
  auto f32_scale = [&] { return widened(scale); };
  const bool grouped = f.granularity == Granularity::group, per_input = f.granularity == Granularity::input;

  // A scale per input feature goes to the input; the sum cannot give it back.
  RExpr input = per_input ? op("multiply", {x, f32_scale()}) : x;
  if (RExpr order = part_of(weight, ParamPart::order)) input = op("take", {input, order}, {{"axis", int64_t{1}}});

  if (!activation) {
    std::vector<RExpr> args;
    for (const auto& [part, value] : weight)
      if ((grouped || part != ParamPart::scale) && part != ParamPart::order) args.push_back(value);
    RExpr w = call_function(dequantize_function(f, rows, cols, grouped, scheme_.factors.value_or(f32)),
                            "dequantize",
                            args,
                            matrix_info(size_of(rows), cols));
    RExpr y = product(input, w, layer);
    return grouped || per_input ? y : op("multiply", {y, f32_scale()}, {}, layer);
  }

  RExpr q, token_scale, output_scale = per_input ? nullptr : scale;
  if (activation->is_static()) {
    auto extra = [&](ParamPart which, const char* ending, int64_t count) {
      ParamSpec spec = like;
      spec.name += ending;
      spec.part = which;
      spec.shape = {count};
      spec.dtype = f32;
      return parameter(std::move(spec));
    };
    RExpr s = extra(ParamPart::activation_scale, ".act_scale", activation->num_scales(cols));
    if (per_input) output_scale = extra(ParamPart::rescale, ".act_rescale", 1);
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
  RExpr w = call_function(
      unpack_function(f, rows, cols), "unpack", unpack_args, matrix_info(size_of(rows), cols, weight_dtype));
  if (grouped) {
    RExpr sums = call_function(
        code_sums_function(cols, f.group), "code_sums", {q}, matrix_info(n, scale_dims(f, rows, cols)[1], i32));
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
  if (output_scale) args.push_back(output_scale);
  if (zero && !unpacks_zero(f)) args.push_back(zero);
  if (token_scale) args.push_back(token_scale);
  return call_function(rescale_function(f, rows, output_scale != nullptr, token_scale != nullptr),
                       "rescale",
                       args,
                       matrix_info(n, rows),
                       layer);
}

RExpr Layers::plain_embedding(const RExpr& ids, const std::string& tensor, int64_t rows, int64_t width, bool is_head) {
  return widened(op("take", {plain(tensor, {{tensor}, false}, {rows, width}, !is_head), ids}, {{"axis", 0}}));
}

RExpr Layers::embedding(const RExpr& ids, const std::string& tensor, int64_t vocab, int64_t width, bool is_head) {
  const std::optional<IntegerFormat> format = embedding_format(scheme_, tensor);
  if (!format) return plain_embedding(ids, tensor, vocab, width, is_head);
  const std::string name = layer_of(tensor);
  std::vector<RExpr> args;
  for (const auto& [part, value] : quantized_weight(
           {.name = name, .source = {{tensor}, false}, .format = format, .layer = name, .is_table = !is_head},
           vocab,
           width))
    args.push_back(value);
  RExpr table = call_function(
      dequantize_function(*format, vocab, width, true), "dequantize", args, matrix_info(size_of(vocab), width));
  return op("take", {table, ids}, {{"axis", 0}});
}

RExpr Layers::head(const RExpr& x, const std::string& tensor, int64_t vocab, int64_t width) {
  const std::string name = layer_of(tensor);
  WeightSource source{{tensor}, false};
  // A tied head reads the embedding's weights, but is a layer of its own.
  const std::string layer = kHeadLayer;
  if (const std::optional<IntegerFormat> format = embedding_format(scheme_, tensor))
    return quantized_linear(x, source, vocab, width, *format, std::nullopt, name, layer);
  return product(x, weight_f32(source, name, vocab, width), layer);
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
  RExpr split = op("reshape", {qkv, Value(relax::shape_expr({n, size_of(heads + 2 * kv_heads), size_of(head_dim)}))});
  StructInfo info = tensor_info({n, size_of(heads), size_of(head_dim)}, f32);
  RExpr args = relax::tuple({cache, prim_value(layer_index), prim_value(float_imm(scale, f32)), split});
  RExpr call = with_sinfo(relax::call(op_ref("call_dps_packed"),
                                      {extern_func("vm.builtin.attention_kv_cache_attention_with_fused_qkv"), args},
                                      {},
                                      {info}),
                          info);
  RExpr o = out_.emit(call, variable_of(layer));
  return op("reshape", {o, Value(relax::shape_expr({n, size_of(heads * head_dim)}))});
}

}  // namespace sator::llm
