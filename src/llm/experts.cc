// Mixtures of experts: which experts a token takes, and the products of those alone.
// Source: Shazeer et al., "Outrageously Large Neural Networks: The Sparsely-Gated Mixture-of-Experts Layer", 2017.
#include "base/text.h"
#include "llm/expert_ops.h"
#include "llm/mlp.h"

namespace sator::llm {

using namespace relax;

namespace {

class Mixture {
 public:
  Mixture(Layers& layers, const ModelConfig& config, int64_t layer)
      : l_(layers), c_(config), e_(config.experts), names_(config.names), h_(text(names_.block, layer, ".")) {}

  RExpr emit(const RExpr& x) {
    n_ = rows_of(x);
    route(x);
    const RExpr y = is_one_token() ? of_one(x) : of_many(x);
    if (e_.shared_units == 0) return y;
    return l_.op("add", {y, shared(x)}, {}, h_ + names_.expert_out_layer);
  }

 private:
  static Expr size(int64_t v) { return int_imm(v, i64); }
  bool is_one_token() const { return is_one(n_); }

  RExpr shaped(const RExpr& x, std::vector<Expr> shape) {
    return l_.op("reshape", {x, relax::Value(shape_expr(std::move(shape)))});
  }

  /// The experts of each token [n, k] int32, and what weighs their results [n, k] f32.
  void route(const RExpr& x) {
    const std::string layer = h_ + names_.router;
    Layers::Weight router{.tensors = {layer + ".weight"}, .outs = {e_.count}, .in = c_.hidden_size};
    if (e_.router_bias) router.biases = {layer + ".bias"};
    RExpr scores = l_.plain_linear(x, router, layer);
    scores = e_.sigmoid ? l_.op("sigmoid", {scores}) : l_.op("nn.softmax", {scores}, {{"axis", int64_t{-1}}});
    const RExpr best = e_.groups > 1 || e_.selection_bias
                           ? chosen_from_groups(scores, layer)
                           : l_.op("topk", {scores}, {{"k", e_.per_token}, {"axis", int64_t{-1}}});
    weights_ = l_.out().emit(tuple_get(best, 0));
    chosen_ = l_.out().emit(tuple_get(best, 1));
    if (e_.normalized) {
      RExpr sum = l_.op("sum", {weights_}, {{"axis", int64_t{-1}}, {"keepdims", true}});
      weights_ = l_.op("divide", {weights_, sum});
    }
    if (e_.scale != 1) weights_ = l_.op("multiply", {weights_, number(e_.scale)});
  }

  RExpr chosen_from_groups(const RExpr& scores, const std::string& layer) {
    const RExpr bias =
        e_.selection_bias
            ? l_.vector(h_ + names_.selection_bias, e_.count)
            : relax::constant(runtime::Tensor::of(std::vector<float>(static_cast<size_t>(e_.count)), {e_.count}, f32));
    auto info = [&](DType dtype) { return tensor_info(std::vector<Expr>{n_, size(e_.per_token)}, dtype); };
    return l_.call_function(
        choose_experts_function(e_), "choose_experts", {scores, bias}, tuple_info({info(f32), info(i32)}), layer);
  }

  std::string named(const std::string& tensor) const { return tensor.empty() ? "" : h_ + tensor; }

  /// The result of each row [m, width] f32 -> [m, width], given the expert of each, int32 [m].
  RExpr expert_mlp(const RExpr& rows, const RExpr& expert) {
    MlpTensors t{.out = h_ + names_.expert_out,
                 .out_bias = named(names_.expert_out_bias),
                 .units = e_.units,
                 .in_layer = h_ + names_.expert_in_layer,
                 .activation_layer = h_ + names_.expert_in_layer,
                 .out_layer = h_ + names_.expert_out_layer,
                 .experts = {e_.count, e_.per_token, expert}};
    for (const std::string& name : names_.expert_in) t.in.push_back(h_ + name);
    for (const std::string& name : names_.expert_in_bias) t.in_bias.push_back(h_ + name);
    return mlp(l_, c_, t, rows);
  }

  /// The weighted sum over the experts of each token: y [n, k, width] -> [n, width].
  RExpr summed(const RExpr& y) {
    RExpr weighted = l_.op("multiply", {y, l_.op("expand_dims", {weights_}, {{"axis", int64_t{2}}})});
    return l_.op("sum", {weighted}, {{"axis", int64_t{1}}}, h_ + names_.expert_out_layer);
  }

  /// The experts of one token are all different: a row each, in any order.
  RExpr of_one(const RExpr& x) {
    RExpr rows = l_.op("broadcast_to", {x, relax::Value(shape_expr({size(e_.per_token), size(c_.hidden_size)}))});
    RExpr y = expert_mlp(rows, shaped(chosen_, {size(e_.per_token)}));
    return summed(shaped(y, {n_, size(e_.per_token), size(c_.hidden_size)}));
  }

  /// A row for each pair of a token and an expert of its own, those of an expert side by side.
  RExpr of_many(const RExpr& x) {
    const Expr pairs = n_ * size(e_.per_token);
    const StructInfo info = tensor_info(std::vector<Expr>{pairs}, i32);
    RExpr sorted = l_.call_function(sort_by_expert_function(e_.count, e_.per_token),
                                    "sort_by_expert",
                                    {shaped(chosen_, {pairs})},
                                    tuple_info({info, info, info}));
    RExpr expert = l_.out().emit(tuple_get(sorted, 0)), token = l_.out().emit(tuple_get(sorted, 1)),
          row = l_.out().emit(tuple_get(sorted, 2));
    RExpr y = expert_mlp(l_.op("take", {x, token}, {{"axis", int64_t{0}}}), expert);
    y = l_.op("take", {y, row}, {{"axis", int64_t{0}}});
    return summed(shaped(y, {n_, size(e_.per_token), size(c_.hidden_size)}));
  }

  /// What every token takes.
  RExpr shared(const RExpr& x) {
    MlpTensors t{.out = h_ + names_.shared_out + ".weight",
                 .units = e_.shared_units,
                 .in_layer = h_ + names_.shared_in_layer,
                 .activation_layer = h_ + names_.shared_in_layer,
                 .out_layer = h_ + names_.shared_out};
    for (const std::string& name : names_.shared_in) t.in.push_back(h_ + name + ".weight");
    RExpr y = mlp(l_, c_, t, x);
    if (!e_.shared_gate) return y;
    const std::string gate = h_ + names_.shared_gate;
    RExpr open = l_.plain_linear(x, {.tensors = {gate + ".weight"}, .outs = {1}, .in = c_.hidden_size}, gate);
    return l_.op("multiply", {y, l_.op("sigmoid", {open})}, {}, h_ + names_.shared_out);
  }

  Layers& l_;
  const ModelConfig& c_;
  const ExpertsConfig& e_;
  const TensorNames& names_;
  std::string h_;  ///< "model.layers.0."
  Expr n_;         ///< tokens
  RExpr chosen_, weights_;
};

}  // namespace

RExpr experts(Layers& layers, const ModelConfig& config, int64_t layer, const RExpr& x) {
  return Mixture(layers, config, layer).emit(x);
}

}  // namespace sator::llm
