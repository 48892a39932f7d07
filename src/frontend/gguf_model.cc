#include "frontend/gguf_model.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/error.h"

namespace sator {

namespace {

/// A key of the metadata, behind "<architecture>.", and what config.json calls it.
struct Key {
  std::string_view gguf, hf;
};

/// An architecture as llama.cpp names it, and the family that it is.
struct Architecture {
  std::string_view name, model_type;
  std::vector<Key> keys;               ///< beside those of all
  bool pairs_neighbours = false;       ///< rows of queries and keys were ordered for rotation in neighbouring pairs
  Json given = Json::object();         ///< what llama.cpp knows of it, and writes nowhere
  std::string_view with_experts = {};  ///< the family where the file has experts, if that is another
  bool norm_behind_attention = false;  ///< the norm before the MLP is called the one behind attention
  bool whole_yarn_ramp = true;         ///< YaRN's ramp is between whole dimensions
};

constexpr std::string_view kRmsNormEpsilon = "attention.layer_norm_rms_epsilon",
                           kLayerNormEpsilon = "attention.layer_norm_epsilon";

const std::vector<Key> kCommon = {{"context_length", "max_position_embeddings"},
                                  {"embedding_length", "hidden_size"},
                                  {"block_count", "num_hidden_layers"},
                                  {"feed_forward_length", "intermediate_size"},
                                  {"attention.head_count", "num_attention_heads"},
                                  {"attention.head_count_kv", "num_key_value_heads"},
                                  {"attention.key_length", "head_dim"},
                                  {kRmsNormEpsilon, "rms_norm_eps"},
                                  {"rope.freq_base", "rope_theta"},
                                  {"attention.sliding_window", "sliding_window"},
                                  {"expert_used_count", "num_experts_per_tok"},
                                  {"expert_feed_forward_length", "moe_intermediate_size"},
                                  {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"}};

const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> rows = {
      {.name = "llama", .model_type = "llama", .pairs_neighbours = true, .with_experts = "mixtral"},
      {"qwen2", "qwen2", {}},
      {"qwen3", "qwen3", {}},
      {"qwen2moe", "qwen2_moe", {}},
      {.name = "qwen3moe", .model_type = "qwen3_moe", .given = {{"norm_topk_prob", true}}},
      {.name = "gpt-oss", .model_type = "gpt_oss", .norm_behind_attention = true, .whole_yarn_ramp = false},
      {"gemma", "gemma", {}},
      {"gemma2",
       "gemma2",
       {{"attn_logit_softcapping", "attn_logit_softcapping"}, {"final_logit_softcapping", "final_logit_softcapping"}}},
      {"gemma3",
       "gemma3_text",
       {{"final_logit_softcapping", "final_logit_softcapping"}, {"rope.freq_base_swa", "rope_local_base_freq"}}},
      {"cohere2", "cohere2", {{kLayerNormEpsilon, "layer_norm_eps"}, {"logit_scale", "logit_scale"}}},
      {"glm4", "glm4", {}},
      {"phi3", "phi3", {}},
      {"gpt2", "gpt2", {{kLayerNormEpsilon, "layer_norm_epsilon"}}},
      {"starcoder2", "starcoder2", {{kLayerNormEpsilon, "norm_epsilon"}}},
      {"stablelm",
       "stablelm",
       {{kLayerNormEpsilon, "layer_norm_eps"}, {"use_parallel_residual", "use_parallel_residual"}}},
      {"olmo2", "olmo2", {}},
      {"granite",
       "granite",
       {{"embedding_scale", "embedding_multiplier"},
        {"residual_scale", "residual_multiplier"},
        {"attention.scale", "attention_multiplier"},
        {"logit_scale", "logits_scaling"}},
       true},
  };
  return rows;
}

/// Keys that say again what others or the tensors say, or that are read by name below.
constexpr std::string_view kReadElsewhere[] = {"vocab_size",
                                               "rope.dimension_count",
                                               "rope.scaling.type",
                                               "rope.scaling.factor",
                                               "rope.scaling.original_context_length",
                                               "rope.scaling.attn_factor",
                                               "rope.scaling.finetuned",
                                               "rope.scaling.yarn_beta_fast",
                                               "rope.scaling.yarn_beta_slow",
                                               "tensor_data_layout",
                                               "attention.value_length",
                                               "attention.causal",
                                               "expert_count"};

[[noreturn]] void fail_key(const GgufFile& file, const std::string& key, const std::string& problem,
                           const std::string& needs) {
  fail({.what = text(file.path().string(), ": ", key, " ", problem), .needs = needs});
}

const Architecture& architecture_of(const GgufFile& file) {
  const Json* name = file.find_value("general.architecture");
  if (!name || !name->is_string()) fail_key(file, "general.architecture", "is missing", "a model's file");
  std::vector<std::string_view> known;
  for (const Architecture& row : architectures()) {
    if (row.name == name->get<std::string>()) return row;
    known.push_back(row.name);
  }
  fail_key(file,
           "general.architecture",
           text("is ", string_literal(name->get<std::string>()), ", which is not supported"),
           text("one of ", join(known, ", ")));
}

/// The values of a small tensor of float32.
std::vector<double> numbers_of(const GgufFile& file, const GgufTensor& tensor) {
  if (tensor.type->name != "F32" || tensor.shape.size() != 1)
    fail_key(file, tensor.name, "is no vector of float32", "factors of the rotary frequencies");
  std::vector<double> out;
  for (int64_t i = 0; i < tensor.shape.front(); ++i) {
    float v;
    std::memcpy(&v, tensor.bytes.data() + 4 * i, 4);
    out.push_back(v);
  }
  return out;
}

/// `rope_scaling`, if the file has one.
std::optional<Json> rope_scaling_of(const GgufFile& file, const std::string& prefix, const Json& config) {
  auto value = [&](const char* key) { return file.find_value(prefix + key); };
  const Json *type = value("rope.scaling.type"), *factor = value("rope.scaling.factor"),
             *original = value("rope.scaling.original_context_length");
  const GgufTensor *freqs = file.find("rope_freqs.weight"), *longer = file.find("rope_factors_long.weight"),
                   *shorter = file.find("rope_factors_short.weight");
  if (freqs || (longer && shorter)) {
    Json out = {
        {"rope_type", "longrope"},
        {"short_factor", numbers_of(file, freqs ? *freqs : *shorter)},
        {"long_factor", numbers_of(file, freqs ? *freqs : *longer)},
        {"original_max_position_embeddings", original ? *original : config.value("max_position_embeddings", Json(1))}};
    // The factors of Llama 3 change frequencies alone.
    const Json* attention = value("rope.scaling.attn_factor");
    if (freqs || attention) out["attention_factor"] = attention && !freqs ? *attention : Json(1.0);
    return out;
  }
  const std::string kind = type && type->is_string() ? type->get<std::string>() : "none";
  if (kind == "none") return {};
  Json out = {{"rope_type", kind}};
  if (factor) out["factor"] = *factor;
  if (original) out["original_max_position_embeddings"] = *original;
  if (const Json* v = value("rope.scaling.yarn_beta_fast")) out["beta_fast"] = *v;
  if (const Json* v = value("rope.scaling.yarn_beta_slow")) out["beta_slow"] = *v;
  return out;
}

/// The one number of a key that may be a list with one per layer.
Json one_for_all(const GgufFile& file, const std::string& key, const Json& value) {
  if (!value.is_array()) return value;
  if (value.empty() || std::ranges::any_of(value, [&](const Json& v) { return v != value.front(); }))
    fail_key(file, key, "differs between layers, which is not supported", "the same for all layers");
  return value.front();
}

/// Which layers of a Gemma 3 or a Command-R7B have a window: a period, the family's unless told, or a list with one answer per layer.
/// Source: load_swa_pattern of llama.cpp.
void read_windows(const GgufFile& file, const std::string& prefix, Json& config) {
  if (config.value("sliding_window", Json(0)) == 0)
    fail_key(file, prefix + "attention.sliding_window", "is missing", "the window of some layers");
  const Json* pattern = file.find_value(prefix + "attention.sliding_window_pattern");
  if (!pattern) return;
  if (!pattern->is_array()) {
    config["sliding_window_pattern"] = *pattern;
    return;
  }
  config["layer_types"] = Json::array();
  for (const Json& slides : *pattern)
    config["layer_types"].push_back(slides == true || slides == 1 ? "sliding_attention" : "full_attention");
}

/// Roles of tensors in GGUF; behind "blk.<n>." those of a block. A star is the number of an expert: the tensor holds all.
struct RoleName {
  std::string hf, gguf;
  bool in_block = true, is_query = false, is_key = false;
  bool is_whole = false;  ///< the name here has no ".weight"
  bool is_row = false;    ///< a matrix of one row, which GGUF holds as a vector
};
std::vector<RoleName> roles_of(const TensorNames& names, const Architecture& row) {
  auto stem = [](const std::string& tensor) { return tensor.substr(0, tensor.rfind('.')); };
  std::vector<RoleName> out = {{names.embedding, "token_embd", false},
                               {names.positions, "position_embd", false},
                               {names.final_norm, "output_norm", false},
                               {names.head, "output", false},
                               {names.attention_norm, "attn_norm"},
                               {names.attention_post_norm, "post_attention_norm"},
                               {names.mlp_norm, row.norm_behind_attention ? "post_attention_norm" : "ffn_norm"},
                               {names.mlp_post_norm, "post_ffw_norm"},
                               {names.q_norm, "attn_q_norm"},
                               {names.k_norm, "attn_k_norm"},
                               {names.out, "attn_output"},
                               {names.mlp_out, "ffn_down"},
                               {names.router, "ffn_gate_inp"},
                               {stem(names.expert_out), "ffn_down_exps"},
                               {names.shared_out, "ffn_down_shexp"},
                               {.hf = names.shared_gate, .gguf = "ffn_gate_inp_shexp", .is_row = true},
                               {.hf = names.sinks, .gguf = "attn_sinks", .is_whole = true}};
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

}  // namespace

Json config_of_gguf(const GgufFile& file) {
  const Architecture& row = architecture_of(file);
  const std::string prefix = text(row.name, ".");
  Json config = row.given;
  config["model_type"] = row.model_type;
  std::set<std::string, std::less<>> read;
  for (const std::vector<Key>* keys : {&kCommon, &row.keys})
    for (const Key& key : *keys) {
      const std::string name = prefix + std::string(key.gguf);
      read.insert(name);
      if (const Json* value = file.find_value(name)) config[std::string(key.hf)] = one_for_all(file, name, *value);
    }
  // llama.cpp takes a model for none without its norms' epsilon, and rotates by 10000 where no base is given.
  const bool has_own_norm = std::ranges::count(row.keys, kLayerNormEpsilon, &Key::gguf) > 0;
  const std::string epsilon = text(prefix, has_own_norm ? kLayerNormEpsilon : kRmsNormEpsilon);
  if (!file.find_value(epsilon)) fail_key(file, epsilon, "is missing", "what is added to the variance in norms");
  if (row.model_type != "gpt2" && !config.contains("rope_theta")) config["rope_theta"] = 10000.0;
  for (std::string_view key : kReadElsewhere) read.insert(prefix + std::string(key));
  if (row.model_type == "gemma3_text" || row.model_type == "cohere2") {
    read_windows(file, prefix, config);
    read.insert(prefix + "attention.sliding_window_pattern");
  }
  for (const auto& [key, value] : file.metadata())
    if (key.starts_with(prefix) && !read.contains(key))
      fail_key(
          file, key, "may change the mathematics, and is not read", text("keys that ", row.name, " is known to have"));
  if (const Json* experts = file.find_value(prefix + "expert_count"); experts && *experts != 0) {
    config["num_experts"] = *experts;
    if (!row.with_experts.empty()) config["model_type"] = row.with_experts;
  } else {
    config.erase("num_experts_per_tok");
  }
  if (const Json* causal = file.find_value(prefix + "attention.causal"); causal && *causal == false)
    fail_key(
        file, prefix + "attention.causal", "is false, which is not supported", "tokens that see those before them");
  if (const Json* type = file.find_value("general.type"); type && *type != "model")
    fail_key(file, "general.type", text("is ", type->dump()), "a model's file");
  const GgufTensor* embedding = file.find("token_embd.weight");
  if (!embedding || embedding->shape.size() != 2)
    fail_key(file, "tensor token_embd.weight", "is missing", "the token embedding");
  config["vocab_size"] = embedding->shape.front();
  const Json* tokens = file.find_value("tokenizer.ggml.tokens");
  if (tokens && std::ssize(*tokens) != embedding->shape.front())
    fail_key(file,
             "tokenizer.ggml.tokens",
             text("has ", tokens->size(), " tokens, and tensor token_embd.weight ", embedding->shape.front(), " rows"),
             "a row for each token");
  config["tie_word_embeddings"] = file.find("output.weight") == nullptr;
  const bool has_bias = file.find("blk.0.attn_q.bias") != nullptr;
  config[row.model_type == "starcoder2" ? "use_bias"
         : row.model_type == "stablelm" ? "use_qkv_bias"
                                        : "attention_bias"] = has_bias;
  config["mlp_bias"] = file.find("blk.0.ffn_down.bias") != nullptr;
  if (row.model_type == "gpt2") {  // spells its sizes in its own way
    config["activation_function"] = "gelu_new";
    if (config.contains("intermediate_size")) config["n_inner"] = config["intermediate_size"];
  }
  if (config.contains("num_attention_heads") && config.contains("hidden_size") &&
      config["num_attention_heads"].is_number_unsigned() && config["num_attention_heads"] != 0 &&
      config["hidden_size"].is_number_unsigned()) {
    const uint64_t heads = config["num_attention_heads"], width = config["hidden_size"];
    const uint64_t head_dim = config.contains("head_dim") ? config["head_dim"].get<uint64_t>() : width / heads;
    if (const Json* rotated = file.find_value(prefix + "rope.dimension_count");
        rotated && rotated->is_number_unsigned() && head_dim > 0 && *rotated != head_dim)
      config["partial_rotary_factor"] = rotated->get<double>() / static_cast<double>(head_dim);
    if (const Json* values = file.find_value(prefix + "attention.value_length"); values && *values != head_dim)
      fail_key(file, prefix + "attention.value_length", text("is ", values->dump()), "values as long as keys");
    // What llama.cpp takes where the file does not say, whatever the family's own default is elsewhere.
    config.emplace("head_dim", head_dim);
    config.emplace("num_key_value_heads", heads);
    // llama.cpp knows the one Gemma 2, and the one Gemma 3, whose scores are scaled by the width by its depth.
    if (row.model_type == "gemma2" || row.model_type == "gemma3_text") {
      const int deep = row.model_type == "gemma2" ? 46 : 62;
      config["query_pre_attn_scalar"] = config.value("num_hidden_layers", 0) == deep ? width / heads : head_dim;
    }
  }
  if (auto scaling = rope_scaling_of(file, prefix, config)) {
    config["rope_scaling"] = *scaling;
    if (!row.whole_yarn_ramp) config["rope_scaling"]["truncate"] = false;
  } else if (row.model_type == "gpt_oss") {
    config["rope_scaling"] = {{"rope_type", "default"}};
  }
  if (const Json* v = file.find_value("tokenizer.ggml.bos_token_id")) config["bos_token_id"] = *v;
  Json ends = Json::array();
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"})
    if (const Json* v = file.find_value(key); v && std::ranges::find(ends, *v) == ends.end()) ends.push_back(*v);
  if (!ends.empty()) config["eos_token_id"] = ends;
  return config;
}

void describe_as_in_gguf(ModelConfig& config) {
  TensorNames& names = config.names;
  config.norm.weight_offset = 0;
  names.transposed = false;
  if (names.gate_up_by_unit) {
    names.gate_up_by_unit = false;
    const std::string gate = names.expert_in_layer + ".gate.*", up = names.expert_in_layer + ".up.*";
    names.expert_in = {gate + ".weight", up + ".weight"};
    names.expert_in_bias = {gate + ".bias", up + ".bias"};
  }
}

std::vector<GgufWeight> weights_of_gguf(const GgufFile& file, const ModelConfig& config) {
  const Architecture& row = architecture_of(file);
  const std::vector<RoleName> roles = roles_of(config.names, row);
  std::vector<GgufWeight> out;
  for (const GgufTensor& t : file.tensors()) {
    GgufWeight w{.name = t.name, .tensor = t};
    bool is_stack = false;
    std::string name = t.name, block;
    if (name.starts_with("blk.")) {
      const size_t dot = name.find('.', 4);
      if (dot == std::string::npos) continue;
      block = config.names.block + name.substr(4, dot - 4) + ".";
      name = name.substr(dot + 1);
    }
    const size_t dot = name.rfind('.');
    // Files of the first Mixtral have a tensor for each expert: "ffn_up.3.weight".
    if (const auto one = expert_of(name, dot)) {
      for (const RoleName& role : roles)
        if (role.gguf == one->stack) w.name = block + numbered(role.hf, one->number) + name.substr(dot);
      out.push_back(std::move(w));
      continue;
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
    const bool is_known = t.name.starts_with("rope_f");  // factors, which the configuration holds
    if (is_known) continue;
    if (is_stack)
      add_experts(w, out);
    else
      out.push_back(std::move(w));
  }
  return out;
}

std::string file_type_of_gguf(const GgufFile& file) {
  // Numbers of llama.cpp's LLAMA_FTYPE.
  static const std::map<int64_t, const char*> names = {
      {0, "F32"},     {1, "F16"},     {2, "Q4_0"},    {3, "Q4_1"},    {7, "Q8_0"},    {8, "Q5_0"},    {9, "Q5_1"},
      {10, "Q2_K"},   {11, "Q3_K_S"}, {12, "Q3_K_M"}, {13, "Q3_K_L"}, {14, "Q4_K_S"}, {15, "Q4_K_M"}, {16, "Q5_K_S"},
      {17, "Q5_K_M"}, {18, "Q6_K"},   {21, "Q2_K_S"}, {25, "IQ4_NL"}, {30, "IQ4_XS"}, {32, "BF16"},   {38, "MXFP4"}};
  const Json* type = file.find_value("general.file_type");
  if (!type || !type->is_number_integer()) return "gguf";
  auto at = names.find(type->get<int64_t>());
  return at == names.end() ? "gguf" : at->second;
}

}  // namespace sator
