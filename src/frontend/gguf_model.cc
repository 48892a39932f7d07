#include "frontend/gguf_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "base/error.h"
#include "base/figures.h"
#include "frontend/gguf_architectures.h"

namespace sator {

namespace {

const std::vector<GgufKey> kCommon = {{"context_length", "max_position_embeddings", true},
                                      {"embedding_length", "hidden_size", true},
                                      {"block_count", "num_hidden_layers", true},
                                      {"feed_forward_length", "intermediate_size"},
                                      {"attention.head_count", "num_attention_heads"},
                                      {"attention.head_count_kv", "num_key_value_heads"},
                                      {"attention.key_length", "head_dim"},
                                      {kGgufRmsNormEpsilon, "rms_norm_eps"},
                                      {"rope.freq_base", "rope_theta"},
                                      {"attention.sliding_window", "sliding_window"},
                                      {"expert_used_count", "num_experts_per_tok"},
                                      {"expert_feed_forward_length", "moe_intermediate_size"},
                                      {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"}};

/// Keys that say again what others or the tensors say, or that are read by name below.
constexpr std::string_view kReadElsewhere[] = {"vocab_size",
                                               "rope.dimension_count",
                                               "rope.scaling.type",
                                               "rope.scaling.factor",
                                               "rope.scale_linear",
                                               "rope.scaling.original_context_length",
                                               "rope.scaling.attn_factor",
                                               "rope.scaling.finetuned",
                                               "rope.scaling.yarn_beta_fast",
                                               "rope.scaling.yarn_beta_slow",
                                               "tensor_data_layout",
                                               "attention.value_length",
                                               "attention.causal",
                                               "expert_count"};
constexpr std::string_view kReadOfDeepseek[] = {"attention.key_length_mla",
                                                "attention.value_length_mla",
                                                "rope.scaling.yarn_log_multiplier",
                                                "expert_gating_func",
                                                "expert_weights_norm",
                                                "nextn_predict_layers"};
constexpr std::string_view kWindowPattern = "attention.sliding_window_pattern";

bool has_windows(const GgufArchitecture& row) { return row.model_type == "gemma3_text" || row.model_type == "cohere2"; }
bool is_deepseek(const GgufArchitecture& row) { return row.name == "deepseek2"; }

/// The one number of a key that may be a list with one per layer.
Json one_for_all(const GgufFile& file, const std::string& key, const Json& value) {
  if (!value.is_array()) return value;
  if (value.empty() || std::ranges::any_of(value, [&](const Json& v) { return v != value.front(); }))
    fail_gguf_key(file, key, "differs between layers, which is not supported", "the same for all layers");
  return value.front();
}

/// The keys of a file behind "<architecture>.".
class ArchitectureKeys {
 public:
  explicit ArchitectureKeys(const GgufFile& file)
      : file_(file), row_(architecture_of_gguf(file)), prefix_(text(row_.name, ".")) {}

  const GgufFile& file() const { return file_; }
  const GgufArchitecture& row() const { return row_; }
  const std::string& prefix() const { return prefix_; }
  const Json* find(std::string_view key) const { return file_.find_value(prefix_ + std::string(key)); }
  [[noreturn]] void fail(std::string_view key, const std::string& problem, const std::string& needs) const {
    fail_gguf_key(file_, prefix_ + std::string(key), problem, needs);
  }
  [[noreturn]] void fail_missing(std::string_view key) const {
    fail(key, "is missing", text("what llama.cpp takes no ", row_.name, " without"));
  }
  /// A whole number; nothing where there is no such key. Errors: it is another value, or below `least` or above 2^24.
  std::optional<int64_t> size(std::string_view key, int64_t least = 1) const {
    const Json* given = find(key);
    if (!given) return {};
    constexpr int64_t kMost = int64_t{1} << 24;
    const Json v = one_for_all(file_, prefix_ + std::string(key), *given);
    if (!v.is_number_integer() || v < least || v > kMost)
      fail(key, text("is ", shown(v)), text("a whole number from ", least, " to ", kMost));
    return v.get<int64_t>();
  }
  /// Errors: it is no number.
  std::optional<double> number(std::string_view key) const {
    const Json* v = find(key);
    if (!v) return {};
    if (!v->is_number()) fail(key, text("is ", shown(*v)), "a number");
    return v->get<double>();
  }
  /// Errors: it is neither true nor false.
  bool flag(std::string_view key, bool otherwise) const {
    const Json* v = find(key);
    if (v && !v->is_boolean()) fail(key, text("is ", shown(*v)), "true or false");
    return v ? v->get<bool>() : otherwise;
  }
  static std::string shown(const Json& v) {
    return v.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 60);
  }

 private:
  const GgufFile& file_;
  const GgufArchitecture& row_;
  std::string prefix_;
};

/// The values of a small tensor of float32.
std::vector<double> numbers_of(const GgufFile& file, const GgufTensor& tensor) {
  if (tensor.type->name != "F32" || tensor.shape.size() != 1)
    fail_gguf_key(file, tensor.name, "is no vector of float32", "factors of the rotary frequencies");
  std::vector<double> out;
  for (int64_t i = 0; i < tensor.shape.front(); ++i) {
    float v;
    std::memcpy(&v, tensor.bytes.data() + 4 * i, 4);
    out.push_back(v);
  }
  return out;
}

/// `rope_scaling`, if the file has one.
std::optional<Json> rope_scaling_of(const ArchitectureKeys& keys, const Json& config) {
  const Json *type = keys.find("rope.scaling.type"), *factor = keys.find("rope.scaling.factor"),
             *original = keys.find("rope.scaling.original_context_length");
  if (!factor) factor = keys.find("rope.scale_linear");  // as files of 2023 call it
  const GgufFile& file = keys.file();
  const GgufTensor *freqs = file.find("rope_freqs.weight"), *longer = file.find("rope_factors_long.weight"),
                   *shorter = file.find("rope_factors_short.weight");
  const std::optional<double> attention = keys.number("rope.scaling.attn_factor");
  if (freqs || (longer && shorter)) {
    Json out = {
        {"rope_type", "longrope"},
        {"short_factor", numbers_of(file, freqs ? *freqs : *shorter)},
        {"long_factor", numbers_of(file, freqs ? *freqs : *longer)},
        {"original_max_position_embeddings", original ? *original : config.value("max_position_embeddings", Json(1))}};
    // The factors of Llama 3 change frequencies alone.
    if (freqs || attention) out["attention_factor"] = attention && !freqs ? *attention : 1.0;
    return out;
  }
  if (type && !type->is_string())
    keys.fail("rope.scaling.type", text("is ", ArchitectureKeys::shown(*type)), "the name of a scaling");
  // llama.cpp divides positions by a factor of no type.
  const std::string kind = type ? type->get<std::string>() : factor ? "linear" : "none";
  if (attention && *attention != 1 && kind != "yarn")
    keys.fail("rope.scaling.attn_factor", text("is ", *attention, " for scaling of type ", kind), "yarn, or 1");
  if (kind == "none") return {};
  Json out = {{"rope_type", kind}};
  if (factor) out["factor"] = *factor;
  if (original) out["original_max_position_embeddings"] = *original;
  if (const Json* v = keys.find("rope.scaling.yarn_beta_fast")) out["beta_fast"] = *v;
  if (const Json* v = keys.find("rope.scaling.yarn_beta_slow")) out["beta_slow"] = *v;
  if (attention && *attention != 1)
    out["attention_factor"] =
        *attention * (1 + 0.1 * std::log(std::max(1.0, keys.number("rope.scaling.factor").value_or(1))));
  return out;
}

/// Which layers of a Gemma 3 or a Command-R7B have a window: a period, the family's unless told, or a list with one answer per layer.
/// Source: load_swa_pattern of llama.cpp.
void read_windows(const ArchitectureKeys& keys, Json& config) {
  if (config.value("sliding_window", Json(0)) == 0)
    keys.fail("attention.sliding_window", "is missing", "the window of some layers");
  const Json* pattern = keys.find(kWindowPattern);
  if (!pattern) return;
  if (!pattern->is_array()) {
    config["sliding_window_pattern"] = *pattern;
    return;
  }
  config["layer_types"] = Json::array();
  for (const Json& slides : *pattern)
    config["layer_types"].push_back(slides == true || slides == 1 ? "sliding_attention" : "full_attention");
}

/// Every key that is read as config.json has it.
/// Errors: one is missing that llama.cpp needs; one is known to nobody here.
void read_keys(const ArchitectureKeys& keys, Json& config) {
  const GgufArchitecture& row = keys.row();
  std::vector<GgufKey> known = kCommon;
  known.insert(known.end(), row.keys.begin(), row.keys.end());
  std::set<std::string, std::less<>> read;
  auto count_as_read = [&](std::string_view key) { read.insert(keys.prefix() + std::string(key)); };
  for (const GgufKey& key : known) count_as_read(key.gguf);
  for (std::string_view key : kReadElsewhere) count_as_read(key);
  if (is_deepseek(row))
    for (std::string_view key : kReadOfDeepseek) count_as_read(key);
  if (has_windows(row)) count_as_read(kWindowPattern);
  for (const auto& [key, value] : keys.file().metadata()) {
    if (!key.starts_with(keys.prefix())) continue;
    if (!read.contains(key))
      fail_gguf_key(keys.file(),
                    key,
                    "may change the mathematics, and is not read",
                    text("keys that ", row.name, " is known to have"));
    if (value.is_number_float() && !std::isfinite(value.get<double>()))
      fail_gguf_key(keys.file(), key, text("is ", value.get<double>()), "a finite number");
  }
  for (const GgufKey& key : known) {
    if (const Json* value = keys.find(key.gguf))
      config[std::string(key.hf)] = one_for_all(keys.file(), keys.prefix() + std::string(key.gguf), *value);
    else if (key.required)
      keys.fail_missing(key.gguf);
  }
  // Converters write 0 for a model without a window (Phi-4).
  if (config.value("sliding_window", Json()) == 0) config.erase("sliding_window");
  // llama.cpp takes a model for none without its norms' epsilon, and rotates by 10000 where no base is given.
  const bool has_own_norm = std::ranges::count(row.keys, kGgufLayerNormEpsilon, &GgufKey::gguf) > 0;
  const std::string_view epsilon = has_own_norm ? kGgufLayerNormEpsilon : kGgufRmsNormEpsilon;
  if (!keys.find(epsilon)) keys.fail(epsilon, "is missing", "what is added to the variance in norms");
  if (row.has_rotary && !config.contains("rope_theta")) config["rope_theta"] = 10000.0;
  if (has_windows(row)) read_windows(keys, config);
  if (const Json* experts = keys.find("expert_count"); experts && *experts != 0) {
    config["num_experts"] = *experts;
    if (!row.with_experts.empty()) config["model_type"] = row.with_experts;
  } else {
    config.erase("num_experts_per_tok");
  }
  if (!keys.flag("attention.causal", true))
    keys.fail("attention.causal", "is false, which is not supported", "tokens that see those before them");
  if (const Json* type = keys.file().find_value("general.type"); type && *type != "model")
    fail_gguf_key(keys.file(), "general.type", text("is ", ArchitectureKeys::shown(*type)), "a model's file");
}

/// What the tensors say.
void read_tensors(const ArchitectureKeys& keys, Json& config) {
  const GgufFile& file = keys.file();
  const GgufTensor* embedding = file.find("token_embd.weight");
  if (!embedding || embedding->shape.size() != 2)
    fail_gguf_key(file, "tensor token_embd.weight", "is missing", "the token embedding");
  config["vocab_size"] = embedding->shape.front();
  const Json* tokens = file.find_value("tokenizer.ggml.tokens");
  if (tokens && std::ssize(*tokens) != embedding->shape.front())
    fail_gguf_key(file,
                  "tokenizer.ggml.tokens",
                  text("has ",
                       counted(std::ssize(*tokens), "token"),
                       ", and tensor token_embd.weight ",
                       embedding->shape.front(),
                       " rows"),
                  "a row for each token");
  config["tie_word_embeddings"] = file.find("output.weight") == nullptr;
  if (keys.row().needs_head && !file.find("output.weight"))
    fail_gguf_key(file, "tensor output.weight", "is missing", text("the head, which ", keys.row().name, " has"));
  config["attention_bias"] = file.find("blk.0.attn_q.bias") || file.find("blk.0.attn_qkv.bias");
  config["mlp_bias"] = file.find("blk.0.ffn_down.bias") != nullptr;
  if (keys.row().model_type == "cohere") config["use_qk_norm"] = file.find("blk.0.attn_q_norm.weight") != nullptr;
  if (keys.row().model_type == "falcon")
    config["num_ln_in_parallel_attn"] = file.find("blk.0.attn_norm_2.weight") ? 2 : 1;
}

/// Heads and what of them is rotated.
void read_heads(const ArchitectureKeys& keys, Json& config) {
  const std::optional<int64_t> heads = keys.size("attention.head_count"), width = keys.size("embedding_length");
  if (!heads || !width) return;
  const int64_t head_dim = keys.size("attention.key_length").value_or(*width / *heads);
  if (head_dim == 0) keys.fail("attention.head_count", text("is ", *heads), text("at most ", *width, " heads"));
  if (const auto rotated = keys.size("rope.dimension_count"); rotated && *rotated != head_dim) {
    const auto all = static_cast<double>(head_dim);
    double share = static_cast<double>(*rotated) / all;
    if (share * all < static_cast<double>(*rotated)) share = std::nextafter(share, share + 1);
    config["partial_rotary_factor"] = share;
  }
  if (const Json* values = keys.find("attention.value_length"); values && *values != head_dim)
    keys.fail("attention.value_length", text("is ", ArchitectureKeys::shown(*values)), "values as long as keys");
  // What llama.cpp takes where the file does not say, whatever the family's own default is elsewhere.
  config.emplace("head_dim", head_dim);
  config.emplace("num_key_value_heads", *heads);
  // llama.cpp knows the one Gemma 2, and the one Gemma 3, whose scores are scaled by the width by its depth.
  if (keys.row().model_type == "gemma2" || keys.row().model_type == "gemma3_text") {
    const int64_t deep = keys.row().model_type == "gemma2" ? 46 : 62;
    config["query_pre_attn_scalar"] = keys.size("block_count").value_or(0) == deep ? *width / *heads : head_dim;
  }
}

/// DeepSeek's heads. Files with a matrix for each head hold the lengths of the latent key and value as key_length and value_length,
/// and those of a head under names of their own; older files hold these alone.
void read_latent_heads(const ArchitectureKeys& keys, Json& config) {
  const auto needed = [&](std::string_view key) {
    const std::optional<int64_t> v = keys.size(key);
    if (!v) keys.fail_missing(key);
    return *v;
  };
  const int64_t rotated = needed("rope.dimension_count"), rank = needed("attention.kv_lora_rank");
  const bool by_head = keys.find("attention.key_length_mla") != nullptr;
  const std::string_view key_length = by_head ? "attention.key_length_mla" : "attention.key_length";
  const int64_t key = needed(key_length),
                value = needed(by_head ? "attention.value_length_mla" : "attention.value_length");
  if (key <= rotated)
    keys.fail(key_length, text("is ", key, ", of which ", rotated, " are rotated"), "some that are not");
  if (by_head)
    for (const auto& [name, length] :
         {std::pair{"attention.key_length", rank + rotated}, {"attention.value_length", rank}})
      if (needed(name) != length)
        keys.fail(name,
                  text("is ", needed(name), " with a latent vector of ", rank, " and ", rotated, " rotated elements"),
                  text(length));
  config["qk_rope_head_dim"] = rotated;
  config["qk_nope_head_dim"] = key - rotated;
  config["v_head_dim"] = value;
  if (keys.file().find("blk.0.attn_q.weight") || keys.size("attention.q_lora_rank", 0).value_or(0) == 0)
    config["q_lora_rank"] = nullptr;
  for (const char* other : {"head_dim", "num_key_value_heads"}) config.erase(other);
}

/// DeepSeek's experts.
void read_deepseek_experts(const ArchitectureKeys& keys, Json& config) {
  const int64_t later = keys.size("nextn_predict_layers", 0).value_or(0), layers = keys.size("block_count").value_or(1);
  if (later >= layers) keys.fail("nextn_predict_layers", text("is ", later, " of ", layers), "some layers before them");
  config["num_hidden_layers"] = layers - later;
  config.erase("num_experts");
  if (keys.size("expert_count", 0).value_or(0) == 0) {
    config["n_routed_experts"] = nullptr;
    for (const char* key : {"moe_intermediate_size",
                            "n_shared_experts",
                            "n_group",
                            "topk_group",
                            "routed_scaling_factor",
                            "first_k_dense_replace"})
      config.erase(key);
    return;
  }
  config["n_routed_experts"] = *keys.size("expert_count");
  config.emplace("first_k_dense_replace", 0);
  if (config.value("routed_scaling_factor", Json(0)) == 0) config["routed_scaling_factor"] = 1;  // as in llama.cpp
  if (keys.size("expert_group_count", 0).value_or(0) > 1) {
    if (!keys.find("expert_group_used_count")) keys.fail_missing("expert_group_used_count");
    config["topk_method"] = "group_limited_greedy";
  } else {
    config["n_group"] = config["topk_group"] = 1;
  }
  // By llama.cpp's numbers. The files that do not say are DeepSeek-V2's, and the first of GLM 4.7 Flash, known by its sizes.
  const bool is_glm = (layers - later == 47 || layers - later == 48) && config["vocab_size"] == 154880;
  int64_t gating = keys.size("expert_gating_func", 0).value_or(0);
  if (gating == 0) gating = is_glm ? 2 : 1;
  if (gating > 2) keys.fail("expert_gating_func", text("is ", gating), "1 (softmax) or 2 (sigmoid)");
  if (gating < 2) return;
  config["model_type"] = "deepseek_v3";
  config.erase("topk_method");
}

/// What a stretched rotary embedding does to DeepSeek's scores. The file has a tenth of what config.json calls mscale_all_dim; llama.cpp
/// takes mscale for the same, and without both scales scores by YaRN's own factor.
void read_deepseek_scaling(const ArchitectureKeys& keys, Json& rope) {
  if (rope["rope_type"] != "yarn")
    keys.fail("rope.scaling.type", text("is ", ArchitectureKeys::shown(rope["rope_type"])), "none or yarn");
  if (rope.contains("attention_factor"))
    keys.fail("rope.scaling.attn_factor", "is given, which is not supported", "rope.scaling.yarn_log_multiplier");
  if (const double log = keys.number("rope.scaling.yarn_log_multiplier").value_or(0); log != 0)
    rope["mscale"] = rope["mscale_all_dim"] = log / 0.1;
  else
    rope["mscale_all_dim"] = 1.0;
}

}  // namespace

Json config_of_gguf(const GgufFile& file) {
  const ArchitectureKeys keys(file);
  const GgufArchitecture& row = keys.row();
  Json config = row.given;
  config["model_type"] = row.model_type;
  read_keys(keys, config);
  read_tensors(keys, config);
  if (is_deepseek(row)) {
    read_latent_heads(keys, config);
    read_deepseek_experts(keys, config);
  } else {
    read_heads(keys, config);
  }
  if (auto scaling = rope_scaling_of(keys, config)) {
    if (is_deepseek(row)) read_deepseek_scaling(keys, *scaling);
    config["rope_scaling"] = *scaling;
    if (!row.whole_yarn_ramp) config["rope_scaling"]["truncate"] = false;
  } else if (row.model_type == "gpt_oss") {
    config["rope_scaling"] = {{"rope_type", "default"}};
  }
  for (const auto& [llama, own] : row.spelled)
    if (auto at = config.find(llama); at != config.end()) {
      config[std::string(own)] = *at;
      config.erase(std::string(llama));
    }
  if (const Json* v = file.find_value("tokenizer.ggml.bos_token_id")) config["bos_token_id"] = *v;
  Json ends = Json::array();
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"})
    if (const Json* v = file.find_value(key); v && std::ranges::find(ends, *v) == ends.end()) ends.push_back(*v);
  if (!ends.empty()) config["eos_token_id"] = ends;
  return config;
}

void describe_as_in_gguf(const GgufFile& file, ModelConfig& config) {
  TensorNames& names = config.names;
  config.norm.weight_offset = 0;
  names.transposed = names.qkv_by_group = false;
  config.dtype_unknown = std::ranges::any_of(
      file.tensors(), [](const GgufTensor& t) { return t.shape.size() > 1 && t.type->name != "F32"; });
  if (names.gate_up_by_unit) {
    names.gate_up_by_unit = false;
    const std::string gate = names.expert_in_layer + ".gate.*", up = names.expert_in_layer + ".up.*";
    names.expert_in = {gate + ".weight", up + ".weight"};
    names.expert_in_bias = {gate + ".bias", up + ".bias"};
  }
  if (config.attention.latent) config.attention.latent->norm_epsilon = config.norm.epsilon;
  const ArchitectureKeys keys(file);
  if (!is_deepseek(keys.row()) || config.experts.count == 0) return;
  // llama.cpp takes these each by itself, whichever of the DeepSeeks it is.
  ExpertsConfig& e = config.experts;
  e.normalized = keys.flag("expert_weights_norm", false);
  e.two_of_group = true;
  e.selection_bias =
      std::ranges::any_of(file.tensors(), [](const GgufTensor& t) { return t.name.ends_with(".exp_probs_b.bias"); });
  names.selection_bias = e.selection_bias ? "mlp.gate.e_score_correction_bias" : "";
}

const std::map<int64_t, std::string>& gguf_file_types() {
  static const std::map<int64_t, std::string> names = {
      {0, "F32"},     {1, "F16"},     {2, "Q4_0"},    {3, "Q4_1"},    {7, "Q8_0"},    {8, "Q5_0"},    {9, "Q5_1"},
      {10, "Q2_K"},   {11, "Q3_K_S"}, {12, "Q3_K_M"}, {13, "Q3_K_L"}, {14, "Q4_K_S"}, {15, "Q4_K_M"}, {16, "Q5_K_S"},
      {17, "Q5_K_M"}, {18, "Q6_K"},   {21, "Q2_K_S"}, {25, "IQ4_NL"}, {30, "IQ4_XS"}, {32, "BF16"},   {38, "MXFP4"}};
  return names;
}

std::string file_type_of_gguf(const GgufFile& file) {
  const Json* type = file.find_value("general.file_type");
  if (!type || !type->is_number_integer()) return "gguf";
  auto at = gguf_file_types().find(type->get<int64_t>());
  return at == gguf_file_types().end() ? "gguf" : at->second;
}

}  // namespace sator
