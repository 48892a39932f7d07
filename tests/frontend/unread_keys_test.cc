#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "changed_config.h"
#include "reference_data.h"

namespace sator {
namespace {

/// What files published with a family say besides sizes, beside a file of tests/reference/models/published.
struct Published {
  const char *folder, *members;
};
const Published kPublished[] = {
    {"gpt-j-6b",
     R"({"_name_or_path":"x","architectures":["GPTJForCausalLM"],"attn_pdrop":0.0,"bos_token_id":50256,"embd_pdrop":0.0,
      "eos_token_id":50256,"gradient_checkpointing":false,"initializer_range":0.02,"n_inner":null,"resid_pdrop":0.0,
      "rotary":true,"scale_attn_weights":true,"summary_activation":null,"summary_first_dropout":0.1,
      "summary_proj_to_labels":true,"summary_type":"cls_index","summary_use_proj":true,
      "task_specific_params":{"text-generation":{"do_sample":true,"max_length":50,"temperature":1.0}},
      "tokenizer_class":"GPT2Tokenizer","transformers_version":"4.18.0.dev0","use_cache":true})"},
    {"phi-3-medium",
     R"({"attention_bias":false,"attention_dropout":0.0,"auto_map":{"AutoConfig":"configuration_phi3.Phi3Config"},
      "embd_pdrop":0.0,"resid_pdrop":0.0,"rms_norm_eps":1e-05,"rope_scaling":null,"pad_token_id":32000,
      "full_attn_mod":1,"interpolate_factor":1,"lm_head_bias":false,"mlp_bias":false,"partial_rotary_factor":1.0})"},
    {"gemma-7b",
     R"({"attention_bias":false,"hidden_act":"gelu","hidden_activation":null,"rope_scaling":null,"rms_norm_eps":1e-06})"},
    {"gemma-7b", R"({"hidden_act":"gelu_pytorch_tanh","hidden_activation":"gelu_pytorch_tanh"})"},
    {"gemma-2-27b",
     R"({"attention_bias":false,"cache_implementation":"hybrid","hidden_act":"gelu_pytorch_tanh","sliding_window_size":4096,
      "use_cache":true,"_attn_implementation":"eager","unsloth_version":"2024.9","unsloth_fixed":true})"},
    {"gemma-3-27b",
     R"({"attn_logit_softcapping":null,"final_logit_softcapping":null,"cache_implementation":"hybrid",
      "_sliding_window_pattern":6,"use_bidirectional_attention":false,"eos_token_id":[1,106]})"},
    {"opt-66b",
     R"({"_remove_final_layer_norm":false,"activation_dropout":0.0,"activation_function":"relu","attention_dropout":0.0,
      "do_layer_norm_before":true,"dropout":0.1,"init_std":0.02,"layerdrop":0.0,"pad_token_id":1,"prefix":"</s>",
      "use_cache":true,"enable_bias":true,"layer_norm_elementwise_affine":true,"learned_embeddings":true,
      "scale_embeddings":false,"output_projection":null})"},
    {"starcoder2-15b",
     R"({"activation_function":"gelu","attention_softmax_in_fp32":true,"embedding_dropout":0.1,"residual_dropout":0.1,
      "hidden_act":"gelu_pytorch_tanh","layer_norm_epsilon":1e-05,"norm_epsilon":1e-05,"mlp_type":"default",
      "norm_type":"layer_norm","scale_attention_softmax_in_fp32":true,"scale_attn_weights":true})"},
    {"granite-3.1-8b",
     R"({"attention_bias":false,"attention_dropout":0.1,"init_method":"mup","mlp_bias":false,"pad_token_id":0})"},
    {"stablelm-2-1.6b",
     R"({"hidden_dropout":0.0,"layer_norm_eps":1e-05,"qk_layernorm":false,"use_parallel_residual":false,
      "rotary_scaling_factor":1.0})"},
    {"smollm3-3b",
     R"({"max_window_layers":28,"pretraining_tp":2,"sliding_window":null,"mlp_bias":false,"attention_bias":false})"},
    {"glm-4-9b", R"({"attention_dropout":0.0,"eos_token_id":[151329,151336],"hidden_act":"silu","use_cache":true})"},
    {"command-r-plus", R"({"model_max_length":131072,"pretraining_tp":1,"attention_bias":false,"hidden_act":"silu"})"},
    {"command-r7b",
     R"({"layer_switch":4,"order_of_interleaved_layers":"local_attn_first","position_embedding_type":"rope_gptj",
      "rotary_pct":1.0,"use_embedding_sharing":true,"use_gated_activation":true,"use_parallel_block":true,
      "use_parallel_embedding":true,"head_dim":128,"cache_implementation":"hybrid"})"},
    {"phi-2", R"({"embd_pdrop":0.0,"resid_pdrop":0.1,"attention_dropout":0.0,"rope_scaling":null})"},
    {"gpt-neox-20b",
     R"({"attention_probs_dropout_prob":0,"hidden_dropout_prob":0,"classifier_dropout":0.1,"initializer_range":0.02})"},
    {"falcon-7b",
     R"({"apply_residual_connection_post_layernorm":false,"hidden_dropout":0.0,"auto_map":{"AutoConfig":"a.b"}})"},
    {"falcon-40b", R"({"ff_factor":4,"activation":"gelu","rope_scaling":null,"rope_theta":500042.0})"},
    {"bloom-176b",
     R"({"attention_softmax_in_fp32":true,"bias_dropout_fusion":true,"masked_softmax_fusion":true,"n_inner":null,
      "offset_alibi":100,"pretraining_tp":4,"skip_bias_add":true,"skip_bias_add_qkv":false,"slow_but_exact":false,
      "unk_token_id":0,"n_embed":14336})"},
    {"mistral-7b", R"({"attention_dropout":0.0,"head_dim":null,"rope_theta":10000.0,"rms_norm_eps":1e-05})"},
    {"mixtral-8x7b", R"({"router_jitter_noise":0.0,"output_router_logits":false,"router_aux_loss_coef":0.02})"},
    {"qwen2.5-7b",
     R"({"use_mrope":false,"attention_dropout":0.0,"layer_types":null,"rms_norm_eps":1e-06,"temperature":0.7,
      "top_p":0.8,"do_sample":true,"num_beams":1,"max_length":20,"repetition_penalty":1.05})"},
    {"qwen1.5-moe-a2.7b", R"({"qkv_bias":true,"max_window_layers":21,"mlp_only_layers":[],"sliding_window":32768})"},
    {"qwen3-30b-a3b", R"({"shared_expert_intermediate_size":0,"max_window_layers":48,"sliding_window":null})"},
    {"deepseek-v3",
     R"({"aux_loss_alpha":0.001,"ep_size":1,"moe_layer_freq":1,"num_nextn_predict_layers":1,"pretraining_tp":1,
      "scoring_func":"sigmoid","seq_aux":true,"topk_method":"noaux_tc","head_dim":64,"qk_head_dim":192,
      "quantization_config":{"activation_scheme":"dynamic","fmt":"e4m3","quant_method":"fp8",
                             "weight_block_size":[128,128]}})"},
    {"deepseek-v2-lite", R"({"aux_loss_alpha":0.001,"scoring_func":"softmax","seq_aux":true,"ep_size":1})"},
    {"gpt-oss-20b", "{}"},
    {"olmo-2-13b", R"({"clip_qkv":null,"rope_theta":500000,"attention_bias":false,"rms_norm_eps":1e-06})"}};

TEST(UnreadKeys, WhatPublishedFilesSayIsTaken) {
  for (const Published& p : kPublished) {
    const Json config =
        parse_json(read_file(reference_data("models") / "published" / p.folder / "config.json"), p.folder);
    EXPECT_EQ(error_of([&] { read_with(config.dump().c_str(), p.members); }), "") << p.folder;
  }
  // SmolLM2, Llama 3.1, Vicuna, fine-tuned ones.
  EXPECT_EQ(error_of([] {
              read_with(kLlama,
                        R"({"is_llama_config":true,"rope_interleaved":false,"transformers.js_config":{"dtype":"q4"},
          "pretraining_tp":1,"mlp_bias":false,"attention_bias":false,"head_dim":8,"max_sequence_length":2048,
          "tie_encoder_decoder":false,"is_decoder":false,"torchscript":false,"pruned_heads":{},"chunk_size_feed_forward":0,
          "output_attentions":false,"return_dict":true,"id2label":{"0":"a"},"problem_type":null,"use_flash_attn":true,
          "attn_implementation":"sdpa","num_return_sequences":1,"sliding_window":0,"n_ctx":256,"max_window_layers":28,
          "layer_types":["full_attention","full_attention"],
          "rope_scaling":{"type":"yarn","rope_type":"yarn","factor":2.0,"finetuned":true,"beta_fast":32,
                          "original_max_position_embeddings":128}})");
            }),
            "");
}

// transformers 5 writes which layers have a window, and keeps the period in Cohere's words.
TEST(UnreadKeys, LayerTypesStandBesideThePeriod) {
  Json config = parse_json(read_file(reference_data("models") / "published/command-r7b/config.json"), "config.json");
  config.erase("sliding_window_pattern");
  config["layer_switch"] = 4;
  config["layer_types"] = Json::array();
  for (int64_t layer = 0; layer < config["num_hidden_layers"].get<int64_t>(); ++layer)
    config["layer_types"].push_back(layer % 4 == 3 ? "full_attention" : "sliding_attention");
  const ModelConfig model = read_with(config.dump().c_str(), "{}");
  EXPECT_EQ(std::ssize(model.attention.window_layers), model.layers * 3 / 4);
}

TEST(UnreadKeys, RefusesWhatNobodyReads) {
  struct Case {
    const char *base, *changes, *says;
  };
  const Case cases[] = {
      {kLlama, R"({"attention_scale":0.5})", "attention_scale is 0.5, which is not done for llama"},
      {kLlama, R"({"attn_scale":0.1})", "attn_scale is 0.1"},
      {kLlama, R"({"embedding_scale":8.0})", "embedding_scale is 8.0"},
      {kLlama, R"({"logits_soft_cap":30})", "logits_soft_cap is 30"},
      {kLlama, R"({"attention_chunk_size":8192})", "attention_chunk_size is 8192"},
      {kLlama, R"({"attn_temperature_tuning":true})", "attn_temperature_tuning is true"},
      {kLlama, R"({"qk_norm":true})", "qk_norm is true"},
      {kLlama, R"({"norm_type":"layer_norm"})", "norm_type is \"layer_norm\""},
      {kLlama, R"({"qkv_bias":true})", "qkv_bias is true"},
      {kLlama, R"({"scale_attn_weights":false})", "scale_attn_weights is false"},
      {kLlama, R"({"hidden_activation":"gelu"})", "hidden_activation is \"gelu\""},
      {kLlama, R"({"rotary_emb_base":5000})", "rotary_emb_base is 5000"},
      {kLlama, R"({"partial_rotary_factor":0.5})", "partial_rotary_factor"},
      {kLlama, R"({"layer_norm_eps":0.001})", "layer_norm_eps is 0.001"},
      {kLlama, R"({"wormhole":3})", "wormhole is 3"},
      {kLlama,
       R"({"rope_scaling":{"type":"linear","factor":4,"llama_4_scaling_beta":0.1}})",
       "rope_scaling.llama_4_scaling_beta is 0.1"},
      {kLlama, R"({"rope_scaling":{"type":"default","factor":4}})", "rope_scaling.factor is 4"},
      {kLlama, R"({"rope_scaling":{"factor":4}})", "rope_scaling.factor is 4"},
      {kLlama, R"({"rope_parameters":{"rope_type":"default","mrope_section":[1,2]}})", "mrope_section is [1,2]"},
      {kLlama, R"({"model_type":"qwen2","use_qk_norm":true})", "use_qk_norm is true, which is not done for qwen2"},
      {kLlama, R"({"model_type":"mistral","sliding_window_pattern":2})", "sliding_window_pattern is 2"},
      {kLlama, R"({"model_type":"mistral","attention_bias":true})", "attention_bias is true"},
      {kLlama,
       R"({"model_type":"mistral","sliding_window":64,"use_sliding_window":false})",
       "use_sliding_window is false"},
      {kLlama, R"({"model_type":"gemma2","sliding_window_pattern":3})", "sliding_window_pattern is 3"},
      {kLlama, R"({"model_type":"gemma","hidden_activation":"relu"})", "hidden_activation is \"relu\""},
      {kLlama, R"({"model_type":"cohere2","layer_switch":3})", "layer_switch is 3"},
      {kLlama, R"({"model_type":"starcoder2","norm_type":"rms_norm"})", "norm_type is \"rms_norm\""},
      {kLlama, R"({"model_type":"gpt_oss","experts_per_token":2})", "experts_per_token is 2"},
      {kLlama, R"({"model_type":"gpt_neox","num_key_value_heads":2})", "num_key_value_heads is 2"},
      {kGpt2, R"({"pruned_heads":{"0":[1]}})", "pruned_heads is {\"0\":[1]}, which is not done for gpt2"},
      {kGpt2, R"({"attention_scale":0.5})", "attention_scale is 0.5"},
      {kGpt2, R"({"alibi":true})", "alibi is true"},
      {kGpt2, R"({"rope_theta":10000})", "rope_theta is 10000"},
  };
  for (const Case& c : cases) {
    const std::string error = error_of([&] { read_with(c.base, c.changes); });
    EXPECT_NE(error.find(c.says), std::string::npos) << c.changes << "\n" << error;
  }
}

}  // namespace
}  // namespace sator
