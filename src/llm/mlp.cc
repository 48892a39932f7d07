#include "llm/mlp.h"

#include "base/text.h"

namespace sator::llm {

using namespace relax;

namespace {

const char* activation_op(Activation a) {
  switch (a) {
    case Activation::gelu_tanh: return "nn.gelu_tanh";
    case Activation::gelu_erf: return "nn.gelu";
    case Activation::relu: return "nn.relu";
    case Activation::silu: return "nn.silu";
  }
  internal_error("an activation without an op");
}

RExpr clamped(Layers& l, const ClampedGate& c, const RExpr& gate, const RExpr& up, const std::string& layer) {
  const RExpr g = l.op("minimum", {gate, number(c.limit)});
  const RExpr u = l.op("clip", {up}, {{"min", -c.limit}, {"max", c.limit}});
  const RExpr open = l.op("sigmoid", {l.op("multiply", {g, number(c.alpha)})});
  return l.op("multiply", {l.op("add", {u, number(1)}), l.op("multiply", {g, open})}, {}, layer);
}

}  // namespace

RExpr mlp(Layers& l, const ModelConfig& config, const MlpTensors& t, const RExpr& x) {
  const MlpConfig& m = config.mlp;
  const int64_t width = config.hidden_size;
  std::vector<int64_t> ins = {t.units};
  if (m.gated) ins.push_back(t.units);
  const Layers::Weight in{.tensors = t.in,
                          .outs = rows_of_tensors(ins, t.in.size()),
                          .in = width,
                          .transposed = config.names.transposed,
                          .biases = t.in_bias,
                          .experts = t.experts,
                          .rows = config.names.gate_up_by_unit ? GroupedRows{t.units, {1, 1}} : GroupedRows{}};
  RExpr y = l.linear(x, in, t.in_layer);
  if (m.gated) {
    RExpr halves = l.op("split", {y}, {{"indices_or_sections", int64_t{2}}, {"axis", int64_t{1}}});
    RExpr gate = l.out().emit(tuple_get(halves, 0)), up = l.out().emit(tuple_get(halves, 1));
    y = m.clamped ? clamped(l, *m.clamped, gate, up, t.activation_layer)
                  : l.op("multiply", {l.op(activation_op(m.activation), {gate}), up}, {}, t.activation_layer);
  } else {
    y = l.op(activation_op(m.activation), {y}, {}, t.activation_layer);
  }
  Layers::Weight out{
      .tensors = {t.out}, .outs = {width}, .in = t.units, .transposed = config.names.transposed, .experts = t.experts};
  if (!t.out_bias.empty()) out.biases = {t.out_bias};
  return l.linear(y, out, t.out_layer);
}

RExpr mlp_of_layer(Layers& layers, const ModelConfig& config, int64_t layer, const RExpr& x) {
  if (config.has_experts(layer)) return experts(layers, config, layer, x);
  const TensorNames& names = config.names;
  const std::string h = text(names.block, layer, ".");
  MlpTensors t{.out = h + names.mlp_out + ".weight",
               .units = config.mlp.units,
               .in_layer = h + names.mlp_in_layer,
               .activation_layer = h + names.activation_layer,
               .out_layer = h + names.mlp_out};
  if (config.mlp.out_bias) t.out_bias = h + names.mlp_out + ".bias";
  for (const std::string& name : names.mlp_in) {
    t.in.push_back(h + name + ".weight");
    if (config.mlp.in_bias) t.in_bias.push_back(h + name + ".bias");
  }
  return mlp(layers, config, t, x);
}

const std::string& mlp_result(const ModelConfig& config, int64_t layer) {
  return config.has_experts(layer) ? config.names.expert_out_layer : config.names.mlp_out;
}

}  // namespace sator::llm
