#include "llm/latent_attention.h"

#include "base/text.h"

namespace sator::llm {

using namespace relax;

namespace {

class Latent {
 public:
  Latent(Layers& layers, const ModelConfig& config, int64_t block, int64_t place)
      : l_(layers),
        c_(config),
        a_(config.attention),
        latent_(*config.attention.latent),
        names_(config.names),
        h_(text(names_.block, block, ".")),
        place_(place) {}

  RExpr emit(const RExpr& x, const RExpr& cache) {
    n_ = rows_of(x);
    const int64_t rotated = a_.rope->dims;
    const auto [plain, turned] =
        halves(shaped(queries(x), {n_, size(a_.heads), size(latent_.plain_dim + rotated)}), latent_.plain_dim, 2);
    // q . (K c) = (K^T q) . c
    const RExpr q = joined({turned, by_head(plain, names_.key_up, latent_.plain_dim, latent_.rank)}, 2);
    const auto [compressed, key] =
        halves(linear(x, names_.latent_down, latent_.rank + rotated, c_.hidden_size, a_.qkv_bias), latent_.rank, 1);
    const RExpr k =
        shaped(joined({key, norm(compressed, names_.latent_norm, latent_.rank)}, 1), {n_, size(1), size(a_.head_dim)});
    const RExpr qkv = shaped(joined({q, k, k}, 1), {n_, size((a_.heads + 2) * a_.head_dim)});
    const RExpr o =
        l_.attention(qkv, cache, place_, a_.heads, 1, a_.head_dim, a_.scale, nullptr, h_ + names_.attention_layer);
    const RExpr weighed = halves(shaped(o, {n_, size(a_.heads), size(a_.head_dim)}), rotated, 2).second;
    return shaped(by_head(weighed, names_.value_up, latent_.rank, latent_.value_dim),
                  {n_, size(a_.heads * latent_.value_dim)});
  }

 private:
  static Expr size(int64_t v) { return int_imm(v, i64); }

  RExpr shaped(const RExpr& x, std::vector<Expr> dims) {
    return l_.op("reshape", {x, relax::Value(shape_expr(std::move(dims)))});
  }
  RExpr joined(std::vector<RExpr> parts, int64_t axis) {
    return l_.op("concat", {relax::Value(relax::tuple(std::move(parts)))}, {{"axis", axis}});
  }
  std::pair<RExpr, RExpr> halves(const RExpr& x, int64_t at, int64_t axis) {
    const RExpr parts =
        l_.op("split", {x}, {{"indices_or_sections", relax::Value(relax::Value::List{at})}, {"axis", axis}});
    return {l_.out().emit(tuple_get(parts, 0)), l_.out().emit(tuple_get(parts, 1))};
  }

  RExpr linear(const RExpr& x, const std::string& name, int64_t outs, int64_t ins, bool bias = false) {
    Layers::Weight w{.tensors = {h_ + name + ".weight"}, .outs = {outs}, .in = ins};
    if (bias) w.biases = {h_ + name + ".bias"};
    return l_.linear(x, w, h_ + name);
  }

  RExpr norm(const RExpr& x, const std::string& name, int64_t width) {
    return l_.op("nn.rms_norm",
                 {x, l_.vector(h_ + name + ".weight", width)},
                 {{"axes", relax::Value(int64_t{-1})}, {"epsilon", latent_.norm_epsilon}},
                 h_ + name);
  }

  RExpr queries(const RExpr& x) {
    const int64_t outs = a_.heads * (latent_.plain_dim + a_.rope->dims);
    if (latent_.query_rank == 0) return linear(x, names_.query_up, outs, c_.hidden_size);
    const RExpr low = linear(x, names_.query_down, latent_.query_rank, c_.hidden_size, a_.qkv_bias);
    return linear(norm(low, names_.query_norm, latent_.query_rank), names_.query_up, outs, latent_.query_rank);
  }

  /// Each head through a matrix of its own: x [n, heads, ins] -> [n, heads, outs]. Heads are the experts of their rows, which stand
  /// head by head.
  RExpr by_head(const RExpr& x, const std::string& tensor, int64_t ins, int64_t outs) {
    std::vector<int32_t> numbers;
    for (int64_t h = 0; h < a_.heads; ++h) numbers.push_back(static_cast<int32_t>(h));
    const RExpr each = relax::constant(runtime::Tensor::of(numbers, {a_.heads, 1}, i32));
    const Expr rows = n_ * size(a_.heads);
    const RExpr head_of_row =
        shaped(l_.op("broadcast_to", {each, relax::Value(shape_expr({size(a_.heads), n_}))}), {rows});
    const RExpr by_rows = shaped(swapped(x), {rows, size(ins)});
    const RExpr y =
        l_.linear(by_rows,
                  {.tensors = {h_ + tensor}, .outs = {outs}, .in = ins, .experts = {a_.heads, a_.heads, head_of_row}},
                  h_ + tensor.substr(0, tensor.find(".*")));
    return swapped(shaped(y, {size(a_.heads), n_, size(outs)}));
  }
  RExpr swapped(const RExpr& x) {
    return l_.op("permute_dims", {x}, {{"axes", relax::Value(relax::Value::List{int64_t{1}, int64_t{0}, int64_t{2}})}});
  }

  Layers& l_;
  const ModelConfig& c_;
  const AttentionConfig& a_;
  const LatentAttention& latent_;
  const TensorNames& names_;
  std::string h_;  ///< "model.layers.0."
  int64_t place_;
  Expr n_;  ///< tokens
};

}  // namespace

RExpr latent_attention(Layers& layers, const ModelConfig& config, int64_t i, int64_t place, const RExpr& x,
                       const RExpr& cache) {
  return Latent(layers, config, i, place).emit(x, cache);
}

}  // namespace sator::llm
