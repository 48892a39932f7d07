#include "llm/layers.h"

#include <algorithm>

#include "llm/expert_ops.h"
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

/// Of numbered tensors the name of all.
std::string name_of_all(std::string tensors) {
  if (const size_t at = tensors.find("*."); at != tensors.npos) tensors.erase(at, 2);
  return tensors;
}

/// The layer that a tensor "<layer>.weight" is the weight of; all experts are one.
std::string layer_of(const std::string& tensor) {
  const std::string all = name_of_all(tensor);
  return all.ends_with(kWeight) ? all.substr(0, all.size() - kWeight.size()) : all;
}

/// The tensors of each expert in turn.
std::vector<std::string> of_experts(const std::vector<std::string>& tensors, int64_t experts) {
  if (experts == 0) return tensors;
  std::vector<std::string> all;
  for (int64_t e = 0; e < experts; ++e)
    for (const std::string& name : tensors) all.push_back(numbered(name, e));
  return all;
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

std::vector<int64_t> rows_of_tensors(std::vector<int64_t> parts, size_t tensors) {
  if (tensors == 1)
    for (size_t i = 1; i < parts.size(); ++i) parts[0] += parts[i];
  parts.resize(tensors);
  return parts;
}

RExpr number(double value) {
  return relax::constant(runtime::Tensor::of(std::vector<float>{static_cast<float>(value)}, {1}, f32));
}

Expr rows_of(const RExpr& x) {
  const TensorInfo* info = x->sinfo.as<TensorInfo>();
  auto shape = info ? relax::shape_of(*info) : std::nullopt;
  if (!shape || shape->empty()) internal_error("a layer's input has no known shape");
  return shape->front();
}

/// How scripts call what belongs to a layer or a parameter: "model_layers_0_mlp_down_proj".
static std::string variable_name(std::string name) {
  std::ranges::replace(name, '.', '_');
  return name;
}

RExpr Layers::emit(RExpr value, const std::string& layer) {
  if (!layer.empty() && std::ranges::find(names_, layer) == names_.end()) names_.push_back(layer);
  return out_.emit(std::move(value), variable_name(layer), layer);
}

RExpr Layers::op(const std::string& name, const std::vector<Value>& positional,
                 const std::vector<std::pair<std::string, Value>>& keywords, const std::string& layer) {
  return emit(make_call(name, positional, keywords), layer);
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

/// The dtype that holds the tensors of one parameter as they are.
static DType dtype_of_all(const Scheme& scheme, const std::vector<std::string>& tensors) {
  const DType first = plain_dtype(scheme, tensors.front());
  const bool alike =
      std::ranges::all_of(tensors, [&](const std::string& t) { return plain_dtype(scheme, t) == first; });
  return alike ? first : f32;
}

RExpr Layers::plain(const std::string& name, const WeightSource& source, const runtime::Dims& shape, bool is_table,
                    double read_share) {
  const DType dtype = dtype_of_all(scheme_, source.tensors);
  return parameter(
      {.name = name, .shape = shape, .dtype = dtype, .source = source, .is_table = is_table, .read_share = read_share});
}

RExpr Layers::widened(const RExpr& x) {
  return x->sinfo.as<TensorInfo>()->dtype == f32 ? x : op("astype", {x}, {{"dtype", "float32"}});
}

RExpr Layers::vector(const std::string& tensor, int64_t n) { return widened(plain(tensor, {{tensor}, false}, {n})); }

RExpr Layers::vectors(const std::string& tensors, int64_t count, int64_t n) {
  return widened(plain(name_of_all(tensors), {of_experts({tensors}, count), false}, {n}));
}

RExpr Layers::call_function(const tir::PrimFuncRef& func, const std::string& name, std::vector<RExpr> args,
                            StructInfo out, const std::string& layer) {
  RExpr callee = out_.add_function(func, name);
  RExpr call = with_sinfo(relax::call(op_ref("call_tir"), {callee, relax::tuple(std::move(args))}, {}, {out}), out);
  return emit(call, layer);
}

RExpr Layers::widened_where_read(const RExpr& x) {
  const TensorInfo& info = *x->sinfo.as<TensorInfo>();
  std::vector<Expr> shape = *relax::shape_of(info);
  const Expr rows = shape[shape.size() - 2];
  const int64_t cols = *as_int(shape.back());
  tir::PrimFuncRef f = widen_function(info.dtype, as_int(rows) ? rows : Expr(make_size_var("n")), cols);
  if (shape.size() > 2) f = for_each_expert(f, *as_int(shape[0]));
  return call_function(f, "widen", {x}, tensor_info(shape, f32));
}

RExpr Layers::weight_f32(const Matrix& w) {
  runtime::Dims shape = {w.rows, w.cols};
  if (w.experts.count > 0) shape = {w.experts.count, w.rows, w.cols};
  RExpr weight = plain(text(w.name, kWeight), w.source, shape, false, w.experts.read_share());
  return weight->sinfo.as<TensorInfo>()->dtype == f32 ? weight : widened_where_read(weight);
}

RExpr Layers::call_by_row(const tir::PrimFuncRef& func, const std::string& name, std::vector<RExpr> args,
                          const std::vector<size_t>& weights, StructInfo out, const Experts& experts,
                          const std::string& layer) {
  if (experts.count == 0) return call_function(func, name, std::move(args), std::move(out), layer);
  args.push_back(experts.of_row);
  return call_function(by_expert_of_row(func, experts.count, weights), name, std::move(args), std::move(out), layer);
}

RExpr Layers::product(const RExpr& x, const RExpr& w, const Matrix& like) {
  RExpr factor = x;
  if (scheme_.factors) factor = widened_where_read(op("astype", {x}, {{"dtype", scheme_.factors->name()}}));
  if (like.experts.count == 0) return op("matmul", {factor, op("permute_dims", {w})}, {}, like.layer);
  return call_by_row(matmul_function(like.rows, like.cols),
                     "NT_matmul",
                     {factor, w},
                     {1},
                     matrix_info(rows_of(x), like.rows),
                     like.experts,
                     like.layer);
}

RExpr Layers::made_of_codes(const tir::PrimFuncRef& func, const std::string& name, std::vector<RExpr> args,
                            const Matrix& w, DType dtype) {
  if (w.experts.count == 0)
    return call_function(func, name, std::move(args), matrix_info(size_of(w.rows), w.cols, dtype));
  const std::vector<Expr> shape = {size_of(w.experts.count), size_of(w.rows), size_of(w.cols)};
  return call_function(for_each_expert(func, w.experts.count), name, std::move(args), tensor_info(shape, dtype));
}

RExpr Layers::with_vector(const char* op_name, const RExpr& x, const RExpr& vector, const Experts& experts,
                          const std::string& layer) {
  if (experts.count == 0) return op(op_name, {x, widened(vector)}, {}, layer);
  const TensorInfo& info = *vector->sinfo.as<TensorInfo>();
  const int64_t cols = *as_int(relax::shape_of(*x->sinfo.as<TensorInfo>())->back());
  return call_by_row(vector_function(op_name, cols, *as_int(relax::shape_of(info)->back()), info.dtype),
                     op_name,
                     {x, vector},
                     {1},
                     x->sinfo,
                     experts,
                     layer);
}

Layers::Quantized Layers::quantized_weight(const ParamSpec& like, int64_t rows, int64_t cols) {
  Quantized parts;
  for (const MatrixPart& p : parts_of(*like.format, rows, cols)) {
    ParamSpec spec = like;
    spec.name += p.ending;
    spec.part = p.part;
    std::vector<int64_t> shape(p.shape.begin(), p.shape.end());
    if (like.source.experts > 0) shape.insert(shape.begin(), like.source.experts);
    spec.shape = runtime::Dims(std::span<const int64_t>(shape));
    spec.dtype = p.dtype;
    parts.emplace_back(p.part, parameter(std::move(spec)));
  }
  return parts;
}

std::optional<IntegerFormat> Layers::format_of(const std::string& tensor, const Experts& experts) const {
  if (scheme_.experts_only && experts.count == 0) return {};
  const std::vector<std::string> all = of_experts({tensor}, experts.count);
  const std::optional<IntegerFormat> format = linear_format(scheme_, all.front());
  for (const std::string& other : all)
    if (linear_format(scheme_, other) != format)
      fail({.what = text("tensors ", all.front(), " and ", other, " are quantized in different formats"),
            .needs = "experts of one layer that are stored alike",
            .hint = "use the checkpoint before it was quantized"});
  if (experts.count > 0 && format && format->reordered)
    fail({.what = text("the inputs of tensor ", all.front(), " are reordered (act-order)"),
          .needs = "experts whose inputs stand in one order",
          .hint = "quantize the checkpoint without act-order"});
  return format;
}

std::vector<size_t> Layers::joined(const Weight& weight) const {
  auto dtype_of = [&](size_t i) {
    return dtype_of_all(scheme_, of_experts({weight.tensors[i]}, weight.experts.count));
  };
  std::vector<size_t> ends;
  for (size_t i = 1; i <= weight.tensors.size(); ++i) {
    const std::optional<IntegerFormat> format = format_of(weight.tensors[i - 1], weight.experts);
    const bool goes_on = i < weight.tensors.size() && !needs_own_scale(format) &&
                         format_of(weight.tensors[i], weight.experts) == format &&
                         (format || dtype_of(i) == dtype_of(i - 1));
    if (!goes_on) ends.push_back(i);
  }
  return ends;
}

/// Under the layer's name, and under those that its weights have where each is a layer of its own.
void Layers::observe_input(const RExpr& x, const Weight& weight, const std::string& name) {
  RExpr range = op("max", {op("abs", {x})}, {{"axis", int64_t{0}}});
  std::vector<std::string> names;
  for (const std::string& tensor : weight.tensors) names.push_back(layer_of(tensor));
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  for (const std::string& n : names) {
    observed_->layers.push_back(n);
    observed_->ranges.push_back(range);
  }
}

RExpr Layers::with_bias(const RExpr& y, const Weight& weight, const std::vector<std::string>& biases, int64_t rows,
                        const std::string& name, const std::string& layer) {
  const int64_t experts = weight.experts.count;
  const runtime::Dims shape = experts > 0 ? runtime::Dims{experts, rows} : runtime::Dims{rows};
  const RExpr bias = plain(experts == 0 && biases.size() == 1 ? biases[0] : name + ".bias",
                           {of_experts(biases, experts), false, experts, weight.rows},
                           shape,
                           false,
                           weight.experts.read_share());
  return with_vector("add", y, bias, weight.experts, layer);
}

RExpr Layers::linear(const RExpr& x, const Weight& weight, const std::string& layer) {
  std::vector<RExpr> parts;
  size_t from = 0;
  for (size_t end : joined(weight)) {
    auto own = [&](const std::vector<std::string>& all) {
      return std::vector(all.begin() + static_cast<ptrdiff_t>(from), all.begin() + static_cast<ptrdiff_t>(end));
    };
    Matrix w{.source = {of_experts(own(weight.tensors), weight.experts.count),
                        weight.transposed,
                        weight.experts.count,
                        weight.rows},
             .cols = weight.in,
             .experts = weight.experts};
    for (size_t j = from; j < end; ++j) w.rows += weight.outs[j];
    const bool whole = end - from == weight.tensors.size();
    w.name = whole && weight.tensors.size() > 1 ? layer : layer_of(weight.tensors[from]);
    if (observed_) observe_input(x, weight, w.name);
    RExpr y;
    if (const std::optional<IntegerFormat> format = format_of(weight.tensors[from], weight.experts)) {
      w.layer = w.name;
      y = quantized_linear(x, w, *format, scheme_.activation);
    } else {
      w.layer = layer;
      y = product(x, weight_f32(w), w);
    }
    if (!weight.biases.empty()) y = with_bias(y, weight, own(weight.biases), w.rows, w.name, layer);
    parts.push_back(y);
    from = end;
  }
  if (parts.size() == 1) return parts.front();
  return op("concat", {Value(relax::tuple(parts))}, {{"axis", 1}}, layer);
}

RExpr Layers::plain_linear(const RExpr& x, const Weight& weight, const std::string& layer) {
  const Matrix w{.source = {weight.tensors, weight.transposed},
                 .rows = weight.outs.front(),
                 .cols = weight.in,
                 .name = layer,
                 .layer = layer};
  RExpr y = product(x, weight_f32(w), w);
  return weight.biases.empty() ? y : with_bias(y, weight, weight.biases, w.rows, layer, layer);
}

RExpr Layers::quantized_linear(const RExpr& x, const Matrix& w, const IntegerFormat& f,
                               const std::optional<ActivationFormat>& activation) {
  const Expr n = rows_of(x);
  const int64_t rows = w.rows, cols = w.cols;
  ParamSpec like{
      .name = w.name, .source = w.source, .format = f, .layer = w.name, .read_share = w.experts.read_share()};
  if (activation && activation->is_static()) like.activation = activation;
  const Quantized weight = quantized_weight(like, rows, cols);
  const RExpr codes = part_of(weight, ParamPart::codes), scale = part_of(weight, ParamPart::scale),
              zero = part_of(weight, ParamPart::zero);
  const bool grouped = f.granularity == Granularity::group, per_input = f.granularity == Granularity::input;

  // A scale per input feature goes to the input; the sum cannot give it back.
  RExpr input = per_input ? with_vector("multiply", x, scale, w.experts, "") : x;
  if (RExpr order = part_of(weight, ParamPart::order)) input = op("take", {input, order}, {{"axis", int64_t{1}}});

  if (!activation) {
    std::vector<RExpr> args;
    for (const auto& [part, value] : weight)
      if ((grouped || part != ParamPart::scale) && part != ParamPart::order) args.push_back(value);
    const DType factors = scheme_.factors.value_or(f32);
    RExpr y = product(
        input, made_of_codes(dequantize_function(f, rows, cols, grouped, factors), "dequantize", args, w, f32), w);
    return grouped || per_input ? y : with_vector("multiply", y, scale, w.experts, w.layer);
  }

  if (!has_integer_values(f))
    fail({.what = text("the weight of ", w.name, " is stored as values that are no integers times a scale"),
          .needs = "codes of integers, where inputs are integers too",
          .hint = text("leave +a", activation->bits, " out")});
  const bool by_group = activation->granularity == Granularity::group;
  if (by_group && !grouped)
    fail({.what = text("the weight of ", w.name, " has no groups of inputs, whose scales ", scheme_.name, " asks for"),
          .needs = "weights with a scale for each group of inputs",
          .hint = text("leave -group out: +a", activation->bits, " has one scale per token")});
  RExpr q, dynamic_scale /* of tokens, or of their groups */, output_scale = per_input ? nullptr : scale;
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
    const StructInfo scales =
        by_group ? matrix_info(n, scale_dims(f, rows, cols)[1]) : StructInfo(tensor_info({n}, f32));
    RExpr pair = call_function(
        by_group ? quantize_group_function(*activation, cols, f.group) : quantize_token_function(*activation, cols),
        "quantize",
        {input},
        tuple_info({matrix_info(n, cols, i8), scales}));
    q = out_.emit(tuple_get(pair, 0));
    dynamic_scale = out_.emit(tuple_get(pair, 1));
  }
  std::vector<RExpr> unpack_args = {codes};
  if (unpacks_zero(f)) unpack_args.push_back(zero);
  DType weight_dtype = unpacks_zero(f) ? i16 : u8;
  RExpr bytes = made_of_codes(unpack_function(f, rows, cols), "unpack", unpack_args, w, weight_dtype);
  if (grouped) {
    RExpr sums = call_function(
        code_sums_function(cols, f.group), "code_sums", {q}, matrix_info(n, scale_dims(f, rows, cols)[1], i32));
    std::vector<RExpr> args = {q, bytes};
    for (const auto& [part, value] : weight)
      if (part != ParamPart::codes && part != ParamPart::order) args.push_back(value);
    std::vector<size_t> weights;
    for (size_t i = 1; i < args.size(); ++i) weights.push_back(i);
    args.push_back(sums);
    if (by_group) args.push_back(dynamic_scale);
    RExpr y = call_by_row(grouped_matmul_function(f, rows, cols, by_group),
                          "NT_matmul",
                          args,
                          weights,
                          matrix_info(n, rows),
                          w.experts,
                          w.layer);
    if (!dynamic_scale || by_group) return y;
    RExpr column = op("expand_dims", {dynamic_scale}, {{"axis", 1}});
    return op("multiply", {y, column}, {}, w.layer);
  }
  RExpr acc = call_by_row(integer_matmul_function(weight_dtype, rows, cols),
                          "NT_matmul",
                          {q, bytes},
                          {1},
                          matrix_info(n, rows, i32),
                          w.experts,
                          w.layer);
  std::vector<RExpr> args = {acc};
  if (!unpacks_zero(f))
    args.push_back(call_function(code_sums_function(cols, cols), "code_sums", {q}, matrix_info(n, 1, i32)));
  std::vector<size_t> weights;
  auto add_weight = [&](const RExpr& part, bool of_expert) {
    if (of_expert) weights.push_back(args.size());
    args.push_back(part);
  };
  if (output_scale) add_weight(output_scale, !per_input);
  if (zero && !unpacks_zero(f)) add_weight(zero, true);
  if (dynamic_scale) args.push_back(dynamic_scale);
  const tir::PrimFuncRef rescale = rescale_function(f, rows, output_scale != nullptr, dynamic_scale != nullptr);
  const StructInfo out = matrix_info(n, rows);
  if (weights.empty()) return call_function(rescale, "rescale", args, out, w.layer);
  return call_by_row(rescale, "rescale", args, weights, out, w.experts, w.layer);
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

RExpr Layers::head(const RExpr& x, const std::string& tensor, const std::string& bias, int64_t vocab, int64_t width) {
  const std::string name = layer_of(tensor);
  // A tied head reads the embedding's weights, but is a layer of its own.
  const Matrix w{.source = {{tensor}, false}, .rows = vocab, .cols = width, .name = name, .layer = kHeadLayer};
  const std::optional<IntegerFormat> format = embedding_format(scheme_, tensor);
  RExpr y = format ? quantized_linear(x, w, *format, activation_of_head(scheme_)) : product(x, weight_f32(w), w);
  return bias.empty() ? y : op("add", {y, vector(bias, vocab)}, {}, w.layer);
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

RExpr Layers::attention(const RExpr& qkv, const RExpr& cache, int64_t place, int64_t heads, int64_t kv_heads,
                        int64_t head_dim, double scale, const RExpr& sinks, const std::string& layer) {
  const Expr n = rows_of(qkv);
  RExpr split = op("reshape", {qkv, Value(relax::shape_expr({n, size_of(heads + 2 * kv_heads), size_of(head_dim)}))});
  StructInfo info = tensor_info({n, size_of(heads), size_of(head_dim)}, f32);
  std::vector<RExpr> args = {cache, prim_value(place), prim_value(float_imm(scale, f32)), split};
  if (sinks) args.push_back(sinks);
  RExpr call = with_sinfo(
      relax::call(op_ref("call_dps_packed"),
                  {extern_func("vm.builtin.attention_kv_cache_attention_with_fused_qkv"), relax::tuple(args)},
                  {},
                  {info}),
      info);
  RExpr o = emit(call, layer);
  return op("reshape", {o, Value(relax::shape_expr({n, size_of(heads * head_dim)}))});
}

}  // namespace sator::llm
