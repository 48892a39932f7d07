#include "llm/blocks.h"

#include "base/text.h"
#include "llm/latent_attention.h"
#include "llm/mlp.h"
#include "runtime/tensor.h"

namespace sator::llm {

using namespace relax;

namespace {

std::string weight(const std::string& layer) { return layer + ".weight"; }

/// The parts of one model, emitted one after the other.
class Blocks {
  using QkNorm = AttentionConfig::QkNorm;

 public:
  Blocks(Layers& layers, const ModelConfig& config)
      : l_(layers), c_(config), a_(config.attention), names_(config.names) {}

  RExpr embedded(const RExpr& ids, const RExpr& cache, const Expr& n) {
    const bool is_head = c_.tie_word_embeddings;
    RExpr x = l_.embedding(ids, weight(names_.embedding), c_.vocab_size, c_.embedding_width(), is_head);
    x = scaled(x, c_.embedding_scale, "");
    if (!names_.project_in.empty()) x = projected(x, names_.project_in, c_.hidden_size, c_.embedding_width());
    if (!names_.embedding_norm.empty()) x = norm(x, names_.embedding_norm, c_.hidden_size);
    if (names_.positions.empty()) return x;
    RExpr at = l_.positions(cache, n);
    if (c_.position_offset != 0) {
      const std::vector<int32_t> offset{static_cast<int32_t>(c_.position_offset)};
      at = l_.op("add", {at, relax::constant(runtime::Tensor::of(offset, {1}, i32))});
    }
    RExpr p = l_.plain_embedding(at, weight(names_.positions), c_.max_positions + c_.position_offset, c_.hidden_size);
    return l_.op("add", {x, p}, {}, names_.embedding_layer);
  }

  /// Block i, whose keys and values have a place in the cache.
  RExpr block(RExpr x, const RExpr& cache, int64_t i, int64_t place) {
    h_ = text(names_.block, i, ".");
    const RExpr in = norm_if_named(x, names_.attention_norm);
    const RExpr attended = attention(in, cache, i, place);
    if (c_.parallel) {
      const RExpr m =
          mlp_of_layer(l_, c_, i, names_.mlp_norm.empty() ? in : norm(x, h_ + names_.mlp_norm, c_.hidden_size));
      auto plus = [&](const RExpr& half, const std::string& layer) {
        return l_.op("add", {scaled(half, c_.residual_scale, layer), x}, {}, layer);
      };
      x = plus(attended, h_ + names_.out);
      return plus(m, h_ + mlp_result(c_, i));
    }
    x = added(attended, names_.attention_post_norm, x, names_.out);
    x = norm_if_named(x, names_.attention_sum_norm);
    const RExpr m = mlp_of_layer(l_, c_, i, norm_if_named(x, names_.mlp_norm));
    return norm_if_named(added(m, names_.mlp_post_norm, x, mlp_result(c_, i)), names_.mlp_sum_norm);
  }

  /// x [n, ins] through a matrix outside of the blocks -> [n, outs].
  RExpr projected(const RExpr& x, const std::string& name, int64_t outs, int64_t ins) {
    return l_.linear(x, {.tensors = {weight(name)}, .outs = {outs}, .in = ins}, name);
  }

  RExpr norm(const RExpr& x, const std::string& name, int64_t width) {
    RExpr w = norm_weight(name, width);
    if (c_.norm.kind == NormConfig::Kind::rms) return rms_norm(x, w, name);
    return layer_norm(x, w, c_.norm.bias ? l_.vector(name + ".bias", width) : nullptr, name);
  }

  RExpr scaled(const RExpr& x, double factor, const std::string& layer) {
    return factor == 1 ? x : l_.op("multiply", {x, number(factor)}, {}, layer);
  }

 private:
  RExpr norm_weight(const std::string& name, int64_t width) {
    RExpr w = l_.vector(weight(name), width);
    return c_.norm.weight_offset == 0 ? w : l_.op("add", {w, number(c_.norm.weight_offset)});
  }

  /// LayerNorm; without a bias if that is null.
  RExpr layer_norm(const RExpr& x, const RExpr& w, const RExpr& bias, const std::string& name) {
    return l_.op("nn.layer_norm",
                 {x, w, bias ? bias : w},
                 {{"axes", relax::Value(int64_t{-1})}, {"epsilon", c_.norm.epsilon}, {"center", bias != nullptr}},
                 name);
  }

  RExpr rms_norm(const RExpr& x, const RExpr& w, const std::string& name) {
    return l_.op("nn.rms_norm", {x, w}, {{"axes", relax::Value(int64_t{-1})}, {"epsilon", c_.norm.epsilon}}, name);
  }

  RExpr norm_if_named(const RExpr& x, const std::string& name) {
    return name.empty() ? x : norm(x, h_ + name, c_.hidden_size);
  }

  /// x plus what one half of the block gives.
  RExpr added(RExpr half, const std::string& post_norm, const RExpr& x, const std::string& layer) {
    half = scaled(norm_if_named(half, post_norm), c_.residual_scale, h_ + layer);
    return l_.op("add", {half, x}, {}, h_ + layer);
  }

  RExpr linear(const RExpr& x, const std::vector<std::string>& tensors, std::vector<int64_t> outs, int64_t ins,
               bool bias, const std::string& layer, const GroupedRows& rows = {}) {
    Layers::Weight w{.outs = rows_of_tensors(std::move(outs), tensors.size()),
                     .in = ins,
                     .transposed = names_.transposed,
                     .rows = rows};
    for (const std::string& name : tensors) {
      w.tensors.push_back(weight(h_ + name));
      if (bias) w.biases.push_back(h_ + name + ".bias");
    }
    return l_.linear(x, w, h_ + layer);
  }

  RExpr attention(const RExpr& x, const RExpr& cache, int64_t i, int64_t place) {
    if (a_.latent)
      return linear(latent_attention(l_, c_, i, place, x, cache),
                    {names_.out},
                    {c_.hidden_size},
                    a_.heads * a_.latent->value_dim,
                    a_.out_bias,
                    names_.out);
    const int64_t q = a_.heads * a_.head_dim, kv = a_.kv_heads * a_.head_dim;
    GroupedRows rows;
    if (names_.qkv_by_group) rows = {.groups = a_.kv_heads, .parts = {q / a_.kv_heads, a_.head_dim, a_.head_dim}};
    RExpr qkv = linear(x, names_.qkv, {q, kv, kv}, c_.hidden_size, a_.qkv_bias, names_.qkv_layer, rows);
    if (a_.qk_norm != QkNorm::none) qkv = with_normed_heads(qkv);
    const double scale = a_.scale_by_layer ? a_.scale / static_cast<double>(i + 1) : a_.scale;
    const RExpr sinks = names_.sinks.empty() ? nullptr : l_.vector(h_ + names_.sinks, a_.heads);
    RExpr o =
        l_.attention(qkv, cache, place, a_.heads, a_.kv_heads, a_.head_dim, scale, sinks, h_ + names_.attention_layer);
    return linear(o, {names_.out}, {c_.hidden_size}, q, a_.out_bias, names_.out);
  }

  /// Queries and keys through a norm, each head or each row by itself.
  RExpr with_normed_heads(const RExpr& qkv) {
    const int64_t q = a_.heads * a_.head_dim, kv = a_.kv_heads * a_.head_dim;
    RExpr parts = l_.op(
        "split", {qkv}, {{"indices_or_sections", relax::Value(relax::Value::List{q, q + kv})}, {"axis", int64_t{1}}});
    auto part = [&](int index) { return RExpr(l_.out().emit(tuple_get(parts, index))); };
    auto normed = [&](const RExpr& x, int64_t heads, const std::string& name) {
      if (a_.qk_norm == QkNorm::row) return rms_norm(x, norm_weight(h_ + name, heads * a_.head_dim), h_ + name);
      const Expr n = rows_of(x);
      auto shaped = [&](const RExpr& value, std::vector<Expr> dims) {
        return l_.op("reshape", {value, relax::Value(relax::shape_expr(std::move(dims)))});
      };
      RExpr by_head = shaped(x, {n, int_imm(heads, i64), int_imm(a_.head_dim, i64)});
      if (a_.qk_norm == QkNorm::head) {
        by_head = rms_norm(by_head, norm_weight(h_ + name, a_.head_dim), h_ + name);
      } else if (a_.qk_norm == QkNorm::shared_layer) {
        const RExpr bias = l_.vector(h_ + name + ".bias", a_.head_dim);
        by_head = layer_norm(by_head, norm_weight(h_ + name, a_.head_dim), bias, h_ + name);
      } else {
        // The weights differ from head to head: they follow the norm.
        const RExpr ones = relax::constant(
            runtime::Tensor::of(std::vector<float>(static_cast<size_t>(a_.head_dim), 1.f), {a_.head_dim}, f32));
        const bool each = name.find('*') != name.npos;
        const RExpr w = each ? l_.vectors(weight(h_ + name), heads, heads * a_.head_dim)
                             : norm_weight(h_ + name, heads * a_.head_dim);
        by_head = layer_norm(by_head, ones, nullptr, h_ + name);
        by_head =
            l_.op("multiply", {by_head, shaped(w, {int_imm(heads, i64), int_imm(a_.head_dim, i64)})}, {}, h_ + name);
      }
      return shaped(by_head, {n, int_imm(heads * a_.head_dim, i64)});
    };
    RExpr queries = normed(part(0), a_.heads, names_.q_norm), keys = normed(part(1), a_.kv_heads, names_.k_norm);
    return l_.op("concat", {relax::Value(relax::tuple({queries, keys, part(2)}))}, {{"axis", 1}});
  }

  Layers& l_;
  const ModelConfig& c_;
  const AttentionConfig& a_;
  const TensorNames& names_;
  std::string h_;  ///< "model.layers.0.": what the block's names begin with
};

}  // namespace

RExpr hidden_states(Layers& layers, const ModelConfig& config, const std::vector<int64_t>& blocks, const RExpr& ids,
                    const RExpr& cache, const Expr& n) {
  Blocks parts(layers, config);
  RExpr x = parts.embedded(ids, cache, n);
  for (size_t i = 0; i < blocks.size(); ++i) x = parts.block(x, cache, blocks[i], static_cast<int64_t>(i));
  return config.names.final_norm.empty() ? x : parts.norm(x, config.names.final_norm, config.hidden_size);
}

RExpr logits(Layers& layers, const ModelConfig& config, const RExpr& hidden) {
  const std::string& table = config.tie_word_embeddings ? config.names.embedding : config.names.head;
  const std::string bias = config.head_bias ? text(config.names.head, ".bias") : "";
  Blocks blocks(layers, config);
  const int64_t width = config.embedding_width();
  RExpr x = hidden;
  if (!config.names.project_out.empty()) x = blocks.projected(x, config.names.project_out, width, config.hidden_size);
  RExpr y = layers.head(x, weight(table), bias, config.vocab_size, width);
  y = blocks.scaled(y, config.logit_scale, kHeadLayer);
  if (config.final_soft_cap == 0) return y;
  y = layers.op("tanh", {layers.op("multiply", {y, number(1 / config.final_soft_cap)})});
  return layers.op("multiply", {y, number(config.final_soft_cap)}, {}, kHeadLayer);
}

std::vector<std::string> summed_layers(const ModelConfig& config) {
  std::vector<std::string> out;
  for (int64_t i = 0; i < config.layers; ++i)
    for (const std::string& name : {config.names.out, mlp_result(config, i)})
      out.push_back(text(config.names.block, i, ".", name));
  return out;
}

}  // namespace sator::llm
