#include "frontend/mlc_config.h"

#include <algorithm>

#include "base/error.h"
#include "base/figures.h"
#include "frontend/hf_config.h"
#include "frontend/text_part.h"

namespace sator {

namespace {

/// A field that MLC-LLM calls otherwise than config.json does.
struct Alias {
  const char* mlc;
  const char* hf;
};
constexpr Alias kAliases[] = {
    {"context_window_size", "max_position_embeddings"},
    {"context_window_size", "n_positions"},
    {"position_embedding_base", "rope_theta"},
};

constexpr const char* kTokenizerFiles[] = {
    "tokenizer.model", "tokenizer.json", "vocab.json", "merges.txt", "added_tokens.json", "tokenizer_config.json"};

constexpr int64_t kLargestChunk = 8192, kMostDevices = 1024;

Json end_tokens(const GenerationConfig& generation, const ModelConfig& config) {
  const std::vector<int64_t>& ids = generation.eos_token_ids.empty() ? config.eos_token_ids : generation.eos_token_ids;
  if (ids.size() == 1) return ids.front();
  return ids.empty() ? Json(nullptr) : Json(ids);
}

}  // namespace

const std::vector<std::string>& mlc_conv_templates() {
  static const std::vector<std::string> names = {"LM",
                                                 "aya-23",
                                                 "chatml",
                                                 "chatml_nosystem",
                                                 "codellama_completion",
                                                 "codellama_instruct",
                                                 "conv_one_shot",
                                                 "deepseek",
                                                 "deepseek_r1_llama",
                                                 "deepseek_r1_qwen",
                                                 "deepseek_v2",
                                                 "deepseek_v3",
                                                 "dolly",
                                                 "gemma3_instruction",
                                                 "gemma_instruction",
                                                 "glm",
                                                 "gorilla",
                                                 "gorilla-openfunctions-v2",
                                                 "gpt2",
                                                 "gpt_bigcode",
                                                 "guanaco",
                                                 "hermes2_pro_llama3",
                                                 "hermes3_llama-3_1",
                                                 "llama-2",
                                                 "llama-3",
                                                 "llama-3_1",
                                                 "llama-4",
                                                 "llama_default",
                                                 "llava",
                                                 "minigpt",
                                                 "ministral3",
                                                 "ministral3_reasoning",
                                                 "mistral_default",
                                                 "moss",
                                                 "nemotron",
                                                 "neural_hermes_mistral",
                                                 "oasst",
                                                 "olmo",
                                                 "open_hermes_mistral",
                                                 "orion",
                                                 "phi-2",
                                                 "phi-3",
                                                 "phi-3-vision",
                                                 "phi-4",
                                                 "qwen2",
                                                 "redpajama_chat",
                                                 "rwkv",
                                                 "rwkv_world",
                                                 "stablecode_completion",
                                                 "stablecode_instruct",
                                                 "stablelm",
                                                 "stablelm-2",
                                                 "stablelm-3b",
                                                 "tinyllama_v1_0",
                                                 "vicuna_v1.1",
                                                 "wizard_coder_or_math",
                                                 "wizardlm_7b"};
  return names;
}

std::vector<std::string> tokenizer_files_of(const fs::path& folder) {
  std::vector<std::string> found;
  for (const char* name : kTokenizerFiles)
    if (fs::is_regular_file(folder / name)) found.emplace_back(name);
  std::vector<std::string> ranks;
  if (fs::is_directory(folder))
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path().extension() == ".tiktoken") ranks.push_back(entry.path().filename().string());
  std::ranges::sort(ranks);
  found.insert(found.end(), ranks.begin(), ranks.end());
  return found;
}

Json mlc_chat_config(const fs::path& folder, const MlcConfigOptions& options,
                     const std::vector<std::string>& tokenizer_files) {
  const ModelConfig config = read_model_config(folder);
  const GenerationConfig generation = read_generation_config(folder);
  const fs::path file = folder / "config.json";
  Json model = config_of_text_part(parse_json(read_regular_file(file), file.string()), file.string());
  const int64_t context = options.context_window_size.value_or(config.max_positions);
  if (context < 1 || context > config.longest_context())
    fail({.what = text("a context window of ", context, " tokens is asked for"),
          .needs =
              text("1 to ", counted(config.longest_context(), "token"), ", the positions that the model was made for"),
          .hint = "leave --context-window-size out"});
  const int64_t chunk = options.prefill_chunk_size.value_or(std::min(context, kLargestChunk));
  if (chunk < 1 || chunk > context)
    fail({.what = text("a prefill chunk of ", chunk, " tokens is asked for"),
          .needs = "at least one token, at most the context window",
          .hint = "leave --prefill-chunk-size out"});
  if (!config.tie_word_embeddings) model["tie_word_embeddings"] = false;  // as the weights are, whatever the file says
  model["context_window_size"] = context;
  model["prefill_chunk_size"] = chunk;
  model["max_batch_size"] = options.max_batch_size.value_or(1);
  model["tensor_parallel_shards"] = 1;
  if (config.attention.rope) {
    model["position_embedding_base"] = config.attention.rope->theta;
    if (!config.attention.latent) {
      model["head_dim"] = config.attention.head_dim;
      model["num_key_value_heads"] = config.attention.kv_heads;
    }
  }
  Json out = {{"version", "0.1.0"},
              {"model_type", config.model_type},
              {"quantization", options.quantization},
              {"model_config", model},
              {"vocab_size", config.vocab_size},
              {"context_window_size", context},
              {"sliding_window_size", -1},
              {"prefill_chunk_size", chunk},
              {"attention_sink_size", -1},
              {"tensor_parallel_shards", 1},
              {"pipeline_parallel_stages", 1},
              {"temperature", generation.temperature.value_or(1.0)},
              {"presence_penalty", 0.0},
              {"frequency_penalty", 0.0},
              {"repetition_penalty", generation.repetition_penalty.value_or(1.0)},
              {"top_p", generation.top_p.value_or(1.0)},
              {"tokenizer_files", tokenizer_files},
              {"conv_template", options.conv_template}};
  if (generation.pad_token_id) out["pad_token_id"] = *generation.pad_token_id;
  if (auto bos = generation.bos_token_id ? generation.bos_token_id : config.bos_token_id) out["bos_token_id"] = *bos;
  if (Json end = end_tokens(generation, config); !end.is_null()) out["eos_token_id"] = end;
  return out;
}

Json config_of_mlc(const Json& chat_config, std::string_view source) {
  const JsonAt chat(chat_config, source);
  Json config = chat.at("model_config").json();
  if (!config.is_object())
    chat.at("model_config").fail("is no object", "the fields of the architecture", "write it with `sator gen_config`");
  config["model_type"] = chat.at("model_type").string();
  for (const Alias& alias : kAliases)
    if (config.contains(alias.mlc) && !config.contains(alias.hf)) config[alias.hf] = config[alias.mlc];
  for (const Alias& alias : kAliases) config.erase(alias.mlc);
  if (auto window = JsonAt(config, source).find("sliding_window_size")) {
    const int64_t positions = window->integer(-1);
    config.emplace("sliding_window", positions > 0 ? Json(positions) : Json());
    config.erase("sliding_window_size");
  }
  for (const char* id : {"eos_token_id", "bos_token_id"})
    if (auto given = chat.find(id)) config[id] = given->json();
  if (!config.contains("vocab_size")) config["vocab_size"] = chat.at("vocab_size").integer();
  return config;
}

const MlcScheme* mlc_scheme(std::string_view name) {
  using Kind = MlcScheme::Kind;
  static const MlcScheme rows[] = {
      {"q0f16"},
      {"q0bf16"},
      {"q0f32"},
      {"q3f16_0", Kind::group, 3, 40, f16, true},
      {"q3f16_1", Kind::group, 3, 40, f16},
      {"q4f16_0", Kind::group, 4, 32, f16, true},
      {"q4f16_1", Kind::group, 4, 32, f16},
      {"q4f16_2", Kind::group, 4, 32, f16},
      {"q4bf16_0", Kind::group, 4, 32, bf16, true},
      {"q4bf16_1", Kind::group, 4, 32, bf16},
      {"q4f32_1", Kind::group, 4, 32, f32},
      {"q4f16_autoawq", Kind::awq, 4, 128, f16},
      {"q4f16_awq", Kind::awq, 4, 128, f16},
      {"e4m3_e4m3_f16", Kind::tensor, 8},
      {"e4m3_e4m3_f16_max_calibrate", Kind::tensor, 8},
      {"e5m2_e5m2_f16", Kind::tensor, 8},
      {"fp8_e4m3fn_bf16_block_scale", Kind::block, 8, 128},
      {"fp8_e4m3fn_bf16_block_scale_static_activation", Kind::block, 8, 128},
  };
  if (name == "q4f16_ft")
    fail({.what = "the weights are quantized as q4f16_ft, whose codes are permuted for one kind of GPU",
          .needs = "another of MLC-LLM's schemes",
          .hint = "convert the original checkpoint with q4f16_1"});
  const auto* found = std::ranges::find(rows, name, &MlcScheme::name);
  return found == std::end(rows) ? nullptr : found;
}

const MlcScheme* mlc_checkpoint_scheme(const fs::path& folder) {
  const bool has_weights =
      fs::is_regular_file(folder / "tensor-cache.json") || fs::is_regular_file(folder / "ndarray-cache.json");
  if (!has_weights || fs::exists(folder / ".sator-convert_weight.json")) return nullptr;
  const std::optional<MlcModel> model = read_mlc_model(folder);
  return model ? mlc_scheme(model->quantization) : nullptr;
}

void describe_as_in_mlc(ModelConfig& config) {
  config.norm.weight_offset = 0;    // is added
  config.names.transposed = false;  // [out, in] all of them
  config.quantization.reset();
}

std::optional<MlcModel> read_mlc_model(const fs::path& folder) {
  const fs::path file = folder / kMlcConfigFile;
  if (!fs::exists(file)) return {};
  const std::string source = file.string();
  const Json tree = parse_json(read_regular_file(file), source);
  const JsonAt chat(tree, source);
  auto size = [&](std::string_view name) -> std::optional<int64_t> {
    const auto given = chat.find(name);
    if (!given || given->integer(-1, kMaxPositions) == -1) return {};
    return given->integer(1, kMaxPositions);
  };
  // The model's own sizes, which these go before; MLC-LLM takes 0 for what the model was made for.
  if (const auto model = chat.find("model_config")) {
    for (const char* name : {"context_window_size", "prefill_chunk_size"})
      model->integer_or(name, 0, -1, kMaxPositions);
    model->integer_or("tensor_parallel_shards", 1, 1, kMostDevices);
  }
  return MlcModel{.quantization = chat.at("quantization").string(),
                  .context_window_size = size("context_window_size"),
                  .prefill_chunk_size = size("prefill_chunk_size"),
                  .devices = chat.integer_or("tensor_parallel_shards", 1, 1, kMostDevices) *
                             chat.integer_or("pipeline_parallel_stages", 1, 1, kMostDevices)};
}

}  // namespace sator
