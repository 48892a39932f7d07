#include "frontend/hf_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "changed_config.h"
#include "frontend/safetensors.h"
#include "reference_data.h"
#include "temp_folder.h"

namespace sator {
namespace {

TEST(HfConfig, Gpt2) {
  ModelConfig model = read_with(kGpt2, "{}");
  EXPECT_EQ(model.hidden_size, 12);
  EXPECT_EQ(model.layers, 2);
  EXPECT_EQ(model.attention.heads, 3);
  EXPECT_EQ(model.attention.head_dim, 4);
  EXPECT_EQ(model.mlp.units, 48);
  EXPECT_EQ(model.mlp.activation, Activation::gelu_tanh);
  EXPECT_EQ(model.attention.scale, 0.5);
  EXPECT_EQ(model.vocab_size, 100);
  EXPECT_EQ(model.max_positions, 64);
  EXPECT_TRUE(model.tie_word_embeddings);  // Transformers' default where the member is absent
  EXPECT_EQ(model.eos_token_ids, std::vector<int64_t>{50256});
  EXPECT_FALSE(read_with(kGpt2, R"({"tie_word_embeddings":false})").tie_word_embeddings);
  EXPECT_EQ(read_with(kGpt2, R"({"n_inner":20})").mlp.units, 20);
  EXPECT_EQ(read_with(kGpt2, R"({"activation_function":"gelu"})").mlp.activation, Activation::gelu_erf);
  EXPECT_TRUE(read_with(kGpt2, R"({"scale_attn_by_inverse_layer_idx":true})").attention.scale_by_layer);
}

// sqrt(3072) = 55.4256..., between 55.25 and 55.5 in bfloat16: what the models were trained with.
TEST(HfConfig, GemmaScalesEmbeddingsInItsOwnDtype) {
  const char* gemma =
      R"({"model_type":"gemma","vocab_size":100,"hidden_size":3072,"intermediate_size":96,"num_hidden_layers":2,
  "num_attention_heads":16,"num_key_value_heads":16,"head_dim":256,"torch_dtype":"bfloat16"})";
  EXPECT_EQ(read_with(gemma, "{}").embedding_scale, 55.5);
  EXPECT_FLOAT_EQ(static_cast<float>(read_with(gemma, R"({"torch_dtype":"float32"})").embedding_scale), 55.425625f);
  EXPECT_EQ(read_with(gemma, R"({"torch_dtype":"float16"})").embedding_scale, 55.4375) << "11 bits: steps of 1/32";
}

// Qwen's cards say to add YaRN and to leave max_position_embeddings; files with linear scaling have it either way.
TEST(HfConfig, StretchedRotaryEmbeddingsTakeLongerContexts) {
  auto with = [](const char* scaling) {
    return read_with(kLlama, text(R"({"max_position_embeddings":32,"rope_scaling":)", scaling, "}").c_str());
  };
  const char* yarn = R"({"type":"yarn","factor":4.0,"original_max_position_embeddings":32})";
  EXPECT_EQ(with(yarn).max_positions, 128);
  EXPECT_EQ(with(yarn).longest_context(), 128);
  EXPECT_EQ(with(R"({"type":"yarn","factor":2.0,"original_max_position_embeddings":8})").max_positions, 32);
  for (const char* told : {R"({"type":"linear","factor":4.0})", R"({"type":"dynamic","factor":4.0})"}) {
    EXPECT_EQ(with(told).max_positions, 32);
    EXPECT_EQ(with(told).longest_context(), 128);
  }
  EXPECT_EQ(with("null").longest_context(), 32);
}

TEST(HfConfig, Llama) {
  ModelConfig model = read_with(kLlama, "{}");
  EXPECT_EQ(model.attention.head_dim, 8);
  EXPECT_EQ(model.attention.kv_heads, 2);
  EXPECT_EQ(model.attention.rope->theta, 500000);
  EXPECT_EQ(model.attention.rope->scaling, RopeScaling{});
  EXPECT_EQ(model.norm.epsilon, 1e-6);
  EXPECT_EQ(model.mlp.activation, Activation::silu);
  EXPECT_FALSE(model.tie_word_embeddings);
  EXPECT_EQ(model.eos_token_ids, (std::vector<int64_t>{7, 8, 9}));
  EXPECT_EQ(model.bos_token_id, 1);
  EXPECT_EQ(read_with(kLlama, R"({"num_key_value_heads":null})").attention.kv_heads, 6);
  EXPECT_EQ(read_with(kLlama, R"({"head_dim":10})").attention.head_dim, 10);
  EXPECT_TRUE(read_with(kLlama, R"({"eos_token_id":null})").eos_token_ids.empty());
}

Rope rope_of(std::string_view changes) { return *read_with(kLlama, changes).attention.rope; }

TEST(HfConfig, RotarySpellings) {
  RopeScaling linear{.kind = RopeScaling::Kind::linear, .factor = 4};
  RopeScaling llama3{.kind = RopeScaling::Kind::llama3,
                     .factor = 8,
                     .low_freq_factor = 1,
                     .high_freq_factor = 4,
                     .original_positions = 64};
  EXPECT_EQ(rope_of(R"({"rope_scaling":{"type":"linear","factor":4.0}})").scaling, linear);
  EXPECT_EQ(rope_of(R"({"rope_scaling":{"rope_type":"linear","factor":4}})").scaling, linear);
  Rope parameters =
      rope_of(R"({"rope_theta":null,"rope_parameters":{"rope_type":"linear","factor":4,"rope_theta":5000}})");
  EXPECT_EQ(parameters.scaling, linear);
  EXPECT_EQ(parameters.theta, 5000);
  const char* dict =
      R"("rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":64)";
  EXPECT_EQ(rope_of(text(R"({"rope_scaling":{)", dict, "}}")).scaling, llama3);
  Rope twice = rope_of(text(R"({"rope_scaling":{)", dict, R"(},"rope_parameters":{"rope_theta":500000,)", dict, "}}"));
  EXPECT_EQ(twice.scaling, llama3);
  EXPECT_EQ(twice.theta, 500000);
  // As Transformers 5 writes beside the old spelling.
  EXPECT_EQ(
      rope_of(
          R"({"rope_theta":null,"rope_scaling":null,"rope_parameters":{"rope_type":"default","rope_theta":20000.0}})")
          .theta,
      20000);
  EXPECT_EQ(
      rope_of(R"({"rope_scaling":{"type":"linear","factor":4},"rope_parameters":{"rope_type":"default"}})").scaling,
      linear);
}

// Source: _compute_dynamic_ntk_parameters of Transformers 5.24 reads no other number of positions.
TEST(HfConfig, DynamicScalingCountsFromAllPositions) {
  for (const char* changes :
       {R"({"rope_scaling":{"type":"dynamic","factor":4}})",
        R"({"rope_scaling":{"type":"dynamic","factor":4,"original_max_position_embeddings":16}})",
        R"({"rope_scaling":{"type":"dynamic","factor":4},"original_max_position_embeddings":16})"})
    EXPECT_EQ(rope_of(changes).scaling.original_positions, 256) << changes;
}

TEST(HfConfig, HeadsOfOtherTasksAreRefused) {
  auto error_with = [](const char* changes) { return error_of([&] { read_with(kLlama, changes); }); };
  const std::string error = error_with(R"({"architectures":["LlamaForSequenceClassification"]})");
  EXPECT_NE(error.find("architectures[0] is \"LlamaForSequenceClassification\", whose head predicts no tokens"),
            std::string::npos)
      << error;
  EXPECT_NE(error.find("name it LlamaForCausalLM"), std::string::npos) << error;
  for (const char* taken : {R"({"architectures":["LlamaForCausalLM"]})", R"({"architectures":["LlamaModel"]})"})
    EXPECT_EQ(error_with(taken), "");
}

// As google/gemma-3-4b-it has it: most sizes are those of Transformers' class.
TEST(HfConfig, TheTextPartOfAModelOfPictures) {
  Json file = Json::parse(R"({"architectures":["Gemma3ForConditionalGeneration"],"boi_token_index":255999,
    "eoi_token_index":256000,"eos_token_id":[1,106],"image_token_index":262144,"initializer_range":0.02,
    "mm_tokens_per_image":256,"model_type":"gemma3","torch_dtype":"bfloat16","transformers_version":"4.50.0.dev0",
    "text_config":{"hidden_size":2560,"intermediate_size":10240,"model_type":"gemma3_text","num_hidden_layers":34,
      "rope_scaling":{"factor":8.0,"rope_type":"linear"},"sliding_window":1024},
    "vision_config":{"hidden_size":1152,"image_size":896,"model_type":"siglip_vision_model"}})");
  const ModelConfig model = read_with(file.dump().c_str(), "{}");
  EXPECT_EQ(model.model_type, "gemma3_text");
  EXPECT_EQ(model.vocab_size, 262208);
  EXPECT_EQ(model.layers, 34);
  EXPECT_EQ(model.attention.heads, 8);
  EXPECT_EQ(model.attention.kv_heads, 4);
  EXPECT_EQ(model.attention.head_dim, 256);
  EXPECT_EQ(model.attention.window, 1024);
  EXPECT_EQ(model.attention.rope->scaling.factor, 8);
  EXPECT_EQ(model.eos_token_ids, (std::vector<int64_t>{1, 106}));
  EXPECT_EQ(model.dtype, bf16);
  auto error_with = [&](const char* changes) { return error_of([&] { read_with(file.dump().c_str(), changes); }); };
  EXPECT_NE(error_with(R"({"text_config":null})").find("has no \"text_config\""), std::string::npos);
  EXPECT_NE(error_with(R"({"text_config":{"model_type":"llama"}})").find("text_config.model_type is \"llama\""),
            std::string::npos);
  EXPECT_NE(error_with(R"({"wormhole":3})").find("wormhole is 3"), std::string::npos);
  EXPECT_NE(
      error_with(R"({"model_type":"llava"})").find("its text part is a gemma3_text, which runs where it is saved"),
      std::string::npos);
}

TEST(HfConfig, RefusesWhatItDoesNotCompute) {
  struct Case {
    const char *base, *changes, *says;
  };
  const Case cases[] = {
      {kLlama, R"({"model_type":"mamba"})", "one of gpt2, llama"},
      {kLlama, R"({"model_type":null})", "has no \"model_type\""},
      {kLlama, R"({"hidden_size":null})", "has no \"hidden_size\""},
      {kLlama, R"({"hidden_size":"48"})", "hidden_size is \"48\""},
      {kLlama, R"({"hidden_size":0})", "hidden_size is 0"},
      {kLlama, R"({"hidden_size":-48})", "hidden_size is -48"},
      {kLlama, R"({"hidden_size":1152921504606846976})", "hidden_size is 1152921504606846976"},
      {kLlama, R"({"hidden_size":50})", "not a multiple of num_attention_heads = 6"},
      {kLlama, R"({"num_key_value_heads":4})", "not a multiple of num_key_value_heads = 4"},
      {kLlama, R"({"model_type":"mistral","num_key_value_heads":null})", "mistral's own 8 do not divide 6 heads"},
      {kLlama, R"({"head_dim":7})", "rotated elements of a head = 7"},
      {kLlama, R"({"num_hidden_layers":100000})", "num_hidden_layers is 100000"},
      {kLlama, R"({"vocab_size":2.5})", "vocab_size is 2.5"},
      {kLlama, R"({"hidden_act":"mish"})", "\"mish\""},
      {kLlama, R"({"rms_norm_eps":0})", "rms_norm_eps is 0"},
      {kLlama, R"({"rope_theta":-1})", "rope_theta is -1"},
      {kLlama, R"({"rope_parameters":{"rope_type":"default","rope_theta":1000}})", "another place of the file gives"},
      {kLlama, R"({"rope_scaling":{"type":"linear","factor":4,"rope_theta":1000}})", "another place of the file gives"},
      {kLlama, R"({"logits_scaling":8})", "logits_scaling is 8, which is not done for llama"},
      {kLlama, R"({"attention_multiplier":0.1})", "attention_multiplier is 0.1, which is not done for llama"},
      {kLlama, R"({"rope_interleaved":true})", "rope_interleaved is true, which is not done for llama"},
      {kLlama, R"({"rope_scaling":{"type":"ntk","factor":4}})", "\"ntk\""},
      {kLlama, R"({"model_type":"phi3","partial_rotary_factor":0.1})", "rotates no element"},
      {kLlama, R"({"model_type":"phi3","partial_rotary_factor":2})", "above 0, at most 1"},
      {kLlama, R"({"model_type":"qwen2","partial_rotary_factor":0.5})", "which qwen2 does not"},
      {kLlama, R"({"model_type":"mistral","sliding_window":0})", "sliding_window is 0"},
      {kLlama,
       R"({"model_type":"gemma2","sliding_window":8,"sliding_window_pattern":0})",
       "sliding_window_pattern is 0"},
      {kLlama,
       R"({"model_type":"opt","ffn_dim":96,"layer_norm_elementwise_affine":false})",
       "elementwise_affine is false"},
      {kLlama, R"({"model_type":"qwen3","num_experts":8})", "num_experts is 8, which is not done for qwen3"},
      {kLlama, R"({"rope_scaling":{"type":"yarn","factor":0}})", "factor is 0"},
      {kLlama, R"({"rope_parameters":{"rope_type":"longrope"}})", "has no \"original_max_position_embeddings\""},
      {kLlama,
       R"({"rope_parameters":{"rope_type":"longrope","original_max_position_embeddings":64,"short_factor":[1],"long_factor":[1]}})",
       "one for each of the 4 pairs"},
      {kLlama, R"({"rope_parameters":{"full_attention":{"rope_type":"default"}}})", "each kind of layer"},
      {kLlama, R"({"rope_scaling":{"type":"linear"}})", "rope_scaling has no \"factor\""},
      {kLlama, R"({"rope_scaling":{"rope_type":"llama3","factor":8}})", "has no \"low_freq_factor\""},
      {kLlama,
       R"({"rope_scaling":{"type":"linear","factor":2},"rope_parameters":{"rope_type":"linear","factor":4}})",
       "two different rotary scalings"},
      {kLlama, R"({"rope_parameters":{"partial_rotary_factor":0.5}})", "partial_rotary_factor"},
      {kLlama, R"({"sliding_window":128})", "sliding window"},
      {kLlama, R"({"layer_types":["full_attention","sliding_attention"]})", "layer_types[1]"},
      {kLlama, R"({"layer_types":["full_attention"]})", "has 1 entries"},
      {kLlama, R"({"quantization_config":{"quant_method":"bitsandbytes"}})", "\"bitsandbytes\": such weights"},
      {kLlama, R"({"quantization_config":{"quant_method":"awq"}})", "has no \"w_bit\""},
      // What is arithmetic of its own when the model runs.
      {kLlama,
       R"({"quantization_config":{"quant_method":"gptq","bits":4,"rotation":"hadamard"}})",
       "rotation is given"},
      {kLlama, R"({"quantization_config":{"quant_method":"gptq","bits":4,"adapter":{"rank":8}}})", "adapter is given"},
      {kLlama,
       R"({"quantization_config":{"quant_method":"gptq","bits":4,"dynamic":{"-:.*(down":{}}}})",
       "dynamic.-:.*(down cannot be read as a regular expression"},
      {kLlama,
       R"({"quantization_config":{"quant_method":"gptq","bits":4,"is_marlin_format":true}})",
       "is_marlin_format"},
      {kLlama,
       R"({"quantization_config":{"quant_method":"compressed-tensors","format":"pack-quantized","transform_config":{"config_groups":{"u":{}}}}})",
       "transform_config is given"},
      {kLlama,
       R"({"quantization_config":{"quant_method":"compressed-tensors","format":"pack-quantized","sparsity_config":{"format":"sparse-24-bitmask"}}})",
       "sparse-24-bitmask"},
      {kLlama,
       R"({"rope_scaling":{"type":"linear","factor":3},"rope_theta":null,"rope_parameters":{"rope_type":"default","rope_theta":5000}})",
       "beside rope_parameters, whose rope_theta would be lost"},
      {kLlama, R"({"quantization_config":{"quant_method":"awq","bits":4,"version":"gemv"}})", "version is \"gemv\""},
      {kLlama, R"({"quantization_config":{"quant_method":"gptq","bits":5}})", "bits is 5"},
      {kLlama, R"({"quantization_config":{"quant_method":"gptq","bits":4,"group_size":0}})", "group_size is 0"},
      {kLlama,
       R"({"quantization_config":{"quant_method":"gptq","bits":4,"checkpoint_format":"marlin"}})",
       "\"marlin\""},
      {kLlama,
       R"({"quantization_config":{"quant_method":"compressed-tensors","format":"nvfp4-pack-quantized"}})",
       "\"nvfp4-pack-quantized\""},
      {kLlama,
       R"({"quantization_config":{"quant_method":"compressed-tensors","format":"int-quantized","config_groups":{"g":
          {"weights":{"num_bits":8,"type":"int","strategy":"channel"},"input_activations":{"num_bits":4}}}}})",
       "num_bits is 4"},
      {kLlama, R"({"tie_word_embeddings":1})", "tie_word_embeddings is 1"},
      {kGpt2, R"({"n_embd":13})", "not a multiple of n_head = 3"},
      {kGpt2, R"({"n_positions":null,"n_ctx":null})", "has no \"n_positions\""},
      {kGpt2, R"({"add_cross_attention":true})", "add_cross_attention is true"},
      {kGpt2, R"({"activation_function":"quick_gelu"})", "\"quick_gelu\""},
      {kGpt2, R"({"eos_token_id":"x"})", "eos_token_id is \"x\""},
  };
  for (const Case& c : cases) {
    std::string error = error_of([&] { read_with(c.base, c.changes); });
    EXPECT_NE(error.find(c.says), std::string::npos) << c.changes << "\n" << error;
  }
  EXPECT_EQ(error_of([] { read_with(kLlama, R"({"sliding_window":128,"use_sliding_window":false})"); }), "");
  TempFolder folder;
  EXPECT_NE(error_of([&] { read_model_config(folder.path()); }).find("there is no"), std::string::npos);
  EXPECT_NE(error_of([&] { read_model_config(folder.write("config.json", "[]")); }).find("an object"),
            std::string::npos);
}

TEST(HfConfig, AHeadIsTiedUnlessItDiffers) {
  TempFolder folder;
  Json config = Json::parse(kLlama);
  config["tie_word_embeddings"] = true;
  folder.write("config.json", config.dump());
  const std::vector<float> a = {1, 2, 3}, b = {1, 2, 4};
  auto tied_with = [&](const std::vector<float>& head) {
    const SafeTensor tensors[] = {{"model.embed_tokens.weight", f32, {3, 1}, std::as_bytes(std::span(a))},
                                  {"lm_head.weight", f32, {3, 1}, std::as_bytes(std::span(head))}};
    write_safetensors(folder.path() / "model.safetensors", tensors);
    return read_model_config(folder.path()).tie_word_embeddings;
  };
  EXPECT_TRUE(read_model_config(folder.path()).tie_word_embeddings);  // no weights
  EXPECT_TRUE(tied_with(a));
  EXPECT_FALSE(tied_with(b));
  folder.write("model.safetensors", "damaged");
  EXPECT_TRUE(read_model_config(folder.path()).tie_word_embeddings);  // who opens the weights says so
}

TEST(HfConfig, AFolderIsNamedByItsConfiguration) {
  TempFolder folder;
  folder.write("config.json", kGpt2);
  folder.write("mlc-chat-config.json", "{}");
  folder.write("model.txt", "");
  EXPECT_EQ(model_folder(folder.path()), folder.path());
  EXPECT_EQ(model_folder(folder.path() / "config.json"), folder.path());
  EXPECT_EQ(model_folder(folder.path() / "mlc-chat-config.json"), folder.path());
  EXPECT_NE(error_of([&] { model_folder(folder.path() / "model.txt"); }).find("neither a folder nor"),
            std::string::npos);
  EXPECT_NE(error_of([&] { model_folder(folder.path() / "none/config.json"); }).find("there is no"), std::string::npos);
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  EXPECT_EQ(model_folder("config.json"), ".");
  EXPECT_EQ(read_model_config(model_folder("config.json")).vocab_size, 100);
  fs::current_path(before);
}

TEST(HfConfig, GenerationConfig) {
  TempFolder folder;
  EXPECT_TRUE(read_generation_config(folder.path()).eos_token_ids.empty());
  auto read = [&](std::string_view json) {
    folder.write("generation_config.json", json);
    return read_generation_config(folder.path());
  };
  GenerationConfig g = read(
      R"({"eos_token_id":[128001,128009],"bos_token_id":128000,"do_sample":true,"temperature":0.6,"top_p":0.9,"top_k":50})");
  EXPECT_EQ(g.eos_token_ids, (std::vector<int64_t>{128001, 128009}));
  EXPECT_EQ(g.bos_token_id, 128000);
  EXPECT_EQ(g.do_sample, true);
  EXPECT_EQ(g.temperature, 0.6);
  EXPECT_EQ(g.top_p, 0.9);
  EXPECT_EQ(g.top_k, 50);
  EXPECT_NE(error_of([&] { read(R"({"top_p":1.5})"); }).find("top_p is 1.5"), std::string::npos);
  EXPECT_NE(error_of([&] { read(R"({"temperature":-1})"); }).find("temperature is -1"), std::string::npos);
  EXPECT_NE(error_of([&] { read(R"({"top_k":-1})"); }).find("top_k is -1"), std::string::npos);
}

TEST(HfConfig, ModelsOfTransformers) {
  const fs::path models = reference_data("models");
  // tests/reference/README.md states the shapes.
  ModelConfig gpt2 = read_model_config(fs::path(SATOR_SOURCE_DIR) / "examples" / "gpt2-stories");
  EXPECT_EQ(gpt2.layers, 8);
  EXPECT_EQ(gpt2.hidden_size, 256);
  EXPECT_EQ(gpt2.max_positions, 512);
  EXPECT_TRUE(gpt2.tie_word_embeddings);
  ModelConfig llama = read_model_config(models / "llama-stories");
  EXPECT_EQ(llama.layers, 9);
  EXPECT_EQ(llama.attention.kv_heads, 2);
  EXPECT_EQ(llama.mlp.units, 768);
  EXPECT_FALSE(llama.tie_word_embeddings);
  EXPECT_EQ(read_generation_config(models / "llama-stories").eos_token_ids, std::vector<int64_t>{2});
  EXPECT_EQ(read_model_config(models / "tiny" / "llama-a").attention.head_dim, 16);
  EXPECT_EQ(read_model_config(models / "tiny" / "gpt2-a").attention.heads, 5);
  EXPECT_EQ(read_model_config(models / "tiny" / "falcon-a").attention.kv_heads, 1);
}

TEST(GenerationConfig, SaysWhatIsNotDone) {
  TempFolder folder;
  folder.write("generation_config.json", R"({"repetition_penalty": 1.1, "no_repeat_ngram_size": 3, "min_p": 0.05,
    "max_new_tokens": 40, "num_beams": 4, "typical_p": 1.0, "suppress_tokens": [], "force_words_ids": [[1, 2]],
    "penalty_alpha": null, "transformers_version": "4.40", "max_length": 20, "wormhole": true})");
  const GenerationConfig g = read_generation_config(folder.path());
  EXPECT_EQ(g.repetition_penalty, 1.1);
  EXPECT_EQ(g.no_repeat_ngram_size, 3);
  EXPECT_EQ(g.min_p, 0.05);
  EXPECT_EQ(g.max_new_tokens, 40);
  EXPECT_EQ(g.max_length, 20);
  EXPECT_EQ(g.not_done,
            (std::vector<std::string>{"force_words_ids [[1,2]]", "num_beams 4", "wormhole true (unknown)"}));
  for (const char* wrong : {R"({"repetition_penalty": 0})", R"({"min_p": 1.5})", R"({"no_repeat_ngram_size": -1})"}) {
    folder.write("generation_config.json", wrong);
    EXPECT_NE(error_of([&] { read_generation_config(folder.path()); }), "") << wrong;
  }
}

TEST(GenerationConfig, SequencesAndMinima) {
  TempFolder folder;
  folder.write("generation_config.json", R"({"bad_words_ids": [[5], [1, 2]], "min_new_tokens": 3, "min_length": 7,
    "sequence_bias": [[[4, 9], -1.5], [[3], 2], [[4, 9], 0.5]]})");
  const GenerationConfig g = read_generation_config(folder.path());
  EXPECT_EQ(g.min_new_tokens, 3);
  EXPECT_EQ(g.min_length, 7);
  const std::vector<std::vector<int32_t>> words = {{5}, {1, 2}};
  EXPECT_EQ(g.bad_words, words);
  using Row = std::pair<std::vector<int32_t>, double>;
  const std::vector<Row> biases = {{{3}, 2}, {{4, 9}, 0.5}};  // the later of two for one sequence
  EXPECT_EQ(g.sequence_bias, biases);
  EXPECT_EQ(g.not_done, std::vector<std::string>{});
  for (const char* wrong : {R"({"bad_words_ids": [[]]})",
                            R"({"bad_words_ids": [5]})",
                            R"({"bad_words_ids": [[-1]]})",
                            R"({"sequence_bias": [[[4, 9]]]})",
                            R"({"sequence_bias": [[[], 1.0]]})",
                            R"({"sequence_bias": [[[4], "1"]]})",
                            R"j({"sequence_bias": {"(4, 9)": 1.0}})j",
                            R"({"min_new_tokens": -1})"}) {
    folder.write("generation_config.json", wrong);
    EXPECT_NE(error_of([&] { read_generation_config(folder.path()); }), "") << wrong;
  }
}

// Source: the configuration classes of transformers 5.24, for files that leave these members out.
TEST(HfConfig, WindowsOfQwen) {
  const auto window = [](const char* changes) {
    const AttentionConfig a = read_with(kLlama, changes).attention;
    return std::pair(a.window, a.window_layers);
  };
  using Layers = std::vector<int64_t>;
  const Layers all;
  EXPECT_EQ(window(R"({"model_type":"qwen2","sliding_window":4})"), std::pair(int64_t{0}, all));
  EXPECT_EQ(window(R"({"model_type":"qwen3","sliding_window":4,"max_window_layers":1})"), std::pair(int64_t{0}, all));
  EXPECT_EQ(window(R"({"model_type":"qwen2","sliding_window":4,"use_sliding_window":true,"max_window_layers":1})"),
            std::pair(int64_t{4}, Layers{1}));
  EXPECT_EQ(window(R"({"model_type":"mistral","sliding_window":4})"), std::pair(int64_t{4}, all));
  const std::string experts =
      R"("num_experts":4,"num_experts_per_tok":2,"moe_intermediate_size":16,)"
      R"("num_hidden_layers":5,"sliding_window":4,"use_sliding_window":true,"max_window_layers":3)";
  EXPECT_EQ(window((R"({"model_type":"qwen3_moe",)" + experts + "}").c_str()), std::pair(int64_t{4}, all));
  EXPECT_EQ(window((R"({"model_type":"qwen2_moe","shared_expert_intermediate_size":16,)" + experts + "}").c_str()),
            std::pair(int64_t{4}, Layers{0, 2}));
}

TEST(HfConfig, MembersThatAFamilyHasOfItsOwn) {
  const ModelConfig mixtral =
      read_with(kLlama, R"({"model_type":"mixtral","rope_theta":null,"num_local_experts":4,"num_experts_per_tok":2})");
  EXPECT_EQ(mixtral.norm.epsilon, 1e-5);
  EXPECT_EQ(mixtral.attention.rope->theta, 1e6);
  EXPECT_EQ(read_with(kLlama, R"({"model_type":"gemma2"})").attention.soft_cap, 50);
  EXPECT_EQ(read_with(kLlama, R"({"model_type":"gemma2"})").final_soft_cap, 30);
  // Gemma3Attention of Transformers 5.24 keeps the number and passes it on to nothing.
  EXPECT_EQ(read_with(kLlama, R"({"model_type":"gemma3_text","attn_logit_softcapping":2})").attention.soft_cap, 0);
  EXPECT_EQ(read_with(kLlama, R"({"model_type":"gemma2","final_logit_softcapping":20})").final_soft_cap, 20);
}

// As AutoGPTQ, AutoAWQ and llm-compressor write them, and with a key more that may mean something.
TEST(HfConfig, KeysOfAQuantizationConfigThatNobodyReadAreNamed) {
  const std::pair<const char*, std::vector<std::string>> cases[] = {
      {R"({"quant_method":"gptq","bits":4,"group_size":128,"damp_percent":0.1,"desc_act":true,"static_groups":false,"sym":true,
        "true_sequential":true,"model_name_or_path":null,"model_file_base_name":"model","checkpoint_format":"gptq",
        "meta":{"quantizer":["gptqmodel:1.7.4"],"mse":0.0},"lm_head":false})",
       {}},
      {R"({"quant_method":"awq","bits":4,"group_size":128,"zero_point":true,"version":"gemm","modules_to_not_convert":null,
        "backend":"autoawq","do_fuse":false})",
       {}},
      {R"({"quant_method":"compressed-tensors","format":"pack-quantized","kv_cache_scheme":null,"quantization_status":"compressed",
        "global_compression_ratio":1.9,"ignore":["lm_head"],"config_groups":{"group_0":{"input_activations":null,
        "output_activations":null,"targets":["Linear"],"weights":{"actorder":null,"block_structure":null,"dynamic":false,
        "group_size":128,"num_bits":4,"observer":"minmax","observer_kwargs":{},"strategy":"group","symmetric":true,"type":"int",
        "codebook":[1,2]}}}})",
       {"config_groups.group_0.weights.codebook"}},
      {R"({"quant_method":"gptq","bits":4,"group_size":128,"outliers":0.01})", {"outliers"}},
  };
  for (const auto& [stored, unread] : cases)
    EXPECT_EQ(read_with(kLlama, text(R"({"quantization_config":)", stored, "}")).quantization->unread, unread)
        << stored;
}

}  // namespace
}  // namespace sator
