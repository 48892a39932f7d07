// The tensors of a GGUF file by the names that a Hugging Face checkpoint has for them.
#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "frontend/gguf_architectures.h"
#include "frontend/gguf_model.h"

namespace sator {

namespace {

/// Roles of tensors in GGUF; behind "blk.<n>." those of a block. A star is the number of an expert: the tensor holds all.
struct RoleName {
  std::string hf, gguf;
  bool in_block = true, is_query = false, is_key = false;
  bool is_whole = false;  ///< the name here has no ".weight"
  bool is_row = false;    ///< a matrix of one row, which GGUF holds as a vector
};
std::vector<RoleName> roles_of(const TensorNames& names, const GgufArchitecture& row) {
  auto stem = [](const std::string& tensor) { return tensor.substr(0, tensor.rfind('.')); };
  std::vector<RoleName> out = {
      {names.embedding, "token_embd", false},
      {names.positions, "position_embd", false},
      {names.embedding_norm, "token_embd_norm", false},
      {names.final_norm, "output_norm", false},
      {names.head, "output", false},
      {names.attention_norm, std::string(names.mlp_norm.empty() ? "attn_norm" : row.attention_norm)},
      {names.attention_post_norm, "post_attention_norm"},
      {names.mlp_norm, std::string(row.mlp_norm)},
      {names.mlp_post_norm, "post_ffw_norm"},
      {names.q_norm, "attn_q_norm"},
      {names.k_norm, "attn_k_norm"},
      {names.query_down, "attn_q_a"},
      {names.query_norm, "attn_q_a_norm"},
      {names.query_up, names.query_down.empty() ? "attn_q" : "attn_q_b"},
      {names.latent_down, "attn_kv_a_mqa"},
      {names.latent_norm, "attn_kv_a_norm"},
      {stem(names.key_up), "attn_k_b"},
      {stem(names.value_up), "attn_v_b"},
      {names.out, "attn_output"},
      {names.mlp_out, "ffn_down"},
      {names.router, "ffn_gate_inp"},
      {stem(names.expert_out), "ffn_down_exps"},
      {names.shared_out, "ffn_down_shexp"},
      {.hf = names.shared_gate, .gguf = "ffn_gate_inp_shexp", .is_row = true},
      {.hf = names.selection_bias, .gguf = "exp_probs_b", .is_whole = true},
      {.hf = names.sinks, .gguf = "attn_sinks", .is_whole = true}};
  // Older files hold the matrices of all heads as the checkpoints do.
  if (!names.key_up.empty()) out.push_back({stem(names.expert_stacks.front().all), "attn_kv_b"});
  if (names.qkv.size() == 1) {
    out.push_back({names.qkv[0], "attn_qkv"});
  } else if (names.qkv.size() == 3) {
    out.push_back({.hf = names.qkv[0], .gguf = "attn_q", .is_query = true});
    out.push_back({.hf = names.qkv[1], .gguf = "attn_k", .is_key = true});
    out.push_back({names.qkv[2], "attn_v"});
  }
  auto add_in = [&](const std::vector<std::string>& in, const char* gate, const char* up) {
    if (!in.empty()) out.push_back({in.back(), up});
    if (in.size() == 2) out.push_back({in.front(), gate});
  };
  add_in(names.mlp_in, "ffn_gate", "ffn_up");
  add_in(names.shared_in, "ffn_gate_shexp", "ffn_up_shexp");
  std::vector<std::string> experts;
  for (const std::string& tensor : names.expert_in) experts.push_back(stem(tensor));
  add_in(experts, "ffn_gate_exps", "ffn_up_exps");
  std::erase_if(out, [](const RoleName& r) { return r.hf.empty(); });
  return out;
}

/// Row h D + p D/2 + i of the model is row h D + 2 i + p of the file.
std::vector<int64_t> halves_of_pairs(int64_t rows, int64_t head_dim) {
  std::vector<int64_t> order(static_cast<size_t>(rows));
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t in_head = row % head_dim, half = head_dim / 2;
    order[static_cast<size_t>(row)] = row - in_head + 2 * (in_head % half) + in_head / half;
  }
  return order;
}

/// Rows of a matrix, or elements of a vector, as a tensor of that name.
GgufTensor rows_of(const GgufTensor& t, std::string name, int64_t first, int64_t count) {
  const size_t row = t.bytes.size() / static_cast<size_t>(t.shape.front());
  GgufTensor out = t;
  out.name = std::move(name);
  out.shape.front() = count;
  out.bytes = t.bytes.subspan(static_cast<size_t>(first) * row, static_cast<size_t>(count) * row);
  return out;
}

/// The tensors that llama.cpp's converter makes one of, and files hold as one or as several: queries, keys and values; gate and up
/// of all experts, here for each expert as the first Mixtral's files have them.
/// Errors: it is no tensor of these.
std::vector<GgufTensor> unfused(const GgufTensor& t, const ModelConfig& config) {
  const size_t end = t.name.rfind('.'),
               begin = end == t.name.npos || end == 0 ? t.name.npos : t.name.rfind('.', end - 1);
  if (!t.name.starts_with("blk.") || begin == t.name.npos) return {t};
  const std::string block = t.name.substr(0, begin + 1), part = t.name.substr(begin + 1, end - begin - 1),
                    ending = t.name.substr(end);
  const AttentionConfig& a = config.attention;
  auto refuse = [&](const std::string& needs) {
    fail({.what = text("tensor ", t.name, " is [", join(t.shape, ", "), "]"), .needs = needs});
  };
  std::vector<GgufTensor> out;
  if (part == "attn_qkv" && config.names.qkv.size() == 3) {
    const int64_t q = a.heads * a.head_dim, kv = a.kv_heads * a.head_dim;
    if (t.shape.front() != q + 2 * kv) refuse(text(q, " + ", kv, " + ", kv, " rows: queries, keys, values"));
    return {rows_of(t, block + "attn_q" + ending, 0, q),
            rows_of(t, block + "attn_k" + ending, q, kv),
            rows_of(t, block + "attn_v" + ending, q + kv, kv)};
  }
  if (part != "ffn_gate_up_exps" || config.names.expert_in.size() != 2) return {t};
  const int64_t units = config.experts.units, experts = t.shape.front();
  if (t.shape.size() < 2 || t.shape[1] != 2 * units) refuse(text(units, " + ", units, " rows of each expert"));
  for (int64_t e = 0; e < experts; ++e) {
    GgufTensor one = rows_of(t, "", e, 1);
    one.shape.erase(one.shape.begin());
    out.push_back(rows_of(one, text(block, "ffn_gate.", e, ending), 0, units));
    out.push_back(rows_of(one, text(block, "ffn_up.", e, ending), units, units));
  }
  return out;
}

/// Whether a tensor is of a layer behind the model's own, which predicts further tokens.
bool is_of_later_layer(const GgufFile& file, const GgufTensor& t, const GgufArchitecture& row,
                       const ModelConfig& config) {
  const Json* later = file.find_value(text(row.name, ".nextn_predict_layers"));
  int64_t block = 0;
  return later && *later != 0 && t.name.starts_with("blk.") &&
         std::from_chars(t.name.data() + 4, t.name.data() + t.name.size(), block).ec == std::errc() &&
         block >= config.layers;
}

/// Expert by expert what a tensor holds of all: [experts, ...].
void add_experts(const GgufWeight& stack, std::vector<GgufWeight>& out) {
  const GgufTensor& t = stack.tensor;
  if (t.shape.size() < 2 || t.shape.front() == 0)
    fail({.what = text("tensor ", t.name, " is [", join(t.shape, ", "), "]"),
          .needs = "a matrix or a vector for each expert"});
  const size_t size = t.bytes.size() / static_cast<size_t>(t.shape.front());
  for (int64_t e = 0; e < t.shape.front(); ++e) {
    GgufWeight one{.name = numbered(stack.name, e), .tensor = t};
    one.tensor.shape.erase(one.tensor.shape.begin());
    one.tensor.bytes = t.bytes.subspan(static_cast<size_t>(e) * size, size);
    out.push_back(std::move(one));
  }
}

/// The stack that a tensor of one expert belongs to, and the expert's number.
struct OneExpert {
  std::string stack;
  int64_t number = 0;
};
/// Of "ffn_up.3.weight", whose last dot is at `dot`; nothing for other names.
std::optional<OneExpert> expert_of(std::string_view name, size_t dot) {
  if (dot == std::string_view::npos || dot == 0) return {};
  const size_t before = name.rfind('.', dot - 1);
  if (before == std::string_view::npos) return {};
  const std::string_view digits = name.substr(before + 1, dot - before - 1);
  OneExpert one{text(name.substr(0, before), "_exps")};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), one.number);
  if (error != std::errc() || end != digits.data() + digits.size() || one.number < 0) return {};
  return one;
}

void add_weights(const GgufTensor& t, const GgufArchitecture& row, const std::vector<RoleName>& roles,
                 const ModelConfig& config, std::vector<GgufWeight>& out) {
  GgufWeight w{.name = t.name, .tensor = t};
  bool is_stack = false;
  std::string name = t.name, block;
  if (name.starts_with("blk.")) {
    const size_t dot = name.find('.', 4);
    if (dot == std::string::npos) return;
    block = config.names.block + name.substr(4, dot - 4) + ".";
    name = name.substr(dot + 1);
  }
  const size_t dot = name.rfind('.');
  // Files of the first Mixtral have a tensor for each expert: "ffn_up.3.weight".
  if (const auto one = expert_of(name, dot)) {
    for (const RoleName& role : roles)
      if (role.gguf == one->stack) w.name = block + numbered(role.hf, one->number) + name.substr(dot);
    out.push_back(std::move(w));
    return;
  }
  for (const RoleName& role : roles) {
    if (dot == std::string::npos || role.gguf != name.substr(0, dot) || role.in_block == block.empty()) continue;
    w.name = block + role.hf + (role.is_whole ? "" : name.substr(dot));
    is_stack = role.hf.find('*') != role.hf.npos;
    if (role.is_row && t.shape.size() == 1) w.tensor.shape.insert(w.tensor.shape.begin(), 1);
    if (row.pairs_neighbours && (role.is_query || role.is_key) && config.attention.head_dim % 2 == 0 &&
        t.shape.front() % config.attention.head_dim == 0)
      w.row_order = halves_of_pairs(t.shape.front(), config.attention.head_dim);
  }
  if (is_stack)
    add_experts(w, out);
  else
    out.push_back(std::move(w));
}

}  // namespace

std::vector<GgufWeight> weights_of_gguf(const GgufFile& file, const ModelConfig& config) {
  const GgufArchitecture& row = architecture_of_gguf(file);
  const std::vector<RoleName> roles = roles_of(config.names, row);
  std::vector<GgufWeight> out;
  for (const GgufTensor& t : file.tensors()) {
    const bool is_factors = t.name.starts_with("rope_f");  // which the configuration holds
    if (is_factors || is_of_later_layer(file, t, row, config)) continue;
    for (const GgufTensor& part : unfused(t, config)) add_weights(part, row, roles, config, out);
  }
  return out;
}

}  // namespace sator
