#include "frontend/unread_keys.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "frontend/families/keys.h"
#include "frontend/generation_keys.h"

namespace sator {

namespace {

/// Keys that leave what a model computes as it is, whatever their value. Names that begin with "_" are notes of programs.
constexpr std::string_view kNeutral[] = {
    // what the file and the model are called, and which programs wrote it
    "architectures",
    "auto_map",
    "custom_pipelines",
    "finetuning_task",
    "is_llama_config",
    "language",
    "model_name",
    "model_type",
    "name_or_path",
    "revision",
    "source",
    "tags",
    "transformers_version",
    "transformers.js_config",
    "version",
    // dtypes, and how the same is computed
    "attention_softmax_in_fp32",
    "attn_impl",
    "attn_implementation",
    "bias_dropout_fusion",
    "bf16",
    "dtype",
    "chunk_size_feed_forward",
    "enable_flash_attn",
    "experts_implementation",
    "flash_attention",
    "flash_attn",
    "fp16",
    "fp32",
    "fused_bias_fc",
    "fused_dropout_add_ln",
    "fused_mlp",
    "init_device",
    "kv_cache_dtype",
    "low_cpu_mem_usage",
    "masked_softmax_fusion",
    "offset_alibi",
    "pretraining_tp",
    "quantization_config",
    "reorder_and_upcast_attn",
    "scale_attention_softmax_in_fp32",
    "skip_bias_add",
    "skip_bias_add_qkv",
    "slow_but_exact",
    "softmax_in_fp32",
    "torch_dtype",
    "use_bfloat16",
    "use_flash_attention",
    "use_flash_attention_2",
    "use_flash_attn",
    "use_fused_cross_entropy",
    "use_fused_rms_norm",
    "use_fused_rope",
    "use_kernels",
    "use_parallel_embedding",
    "use_sdpa",
    "use_triton",
    "use_xformers",
    // parts of a machine
    "context_window_size",
    "disaggregation",
    "ep_size",
    "kv_state_kind",
    "max_batch_size",
    "pipeline_parallel_stages",
    "prefill_chunk_size",
    "sequence_parallel",
    "tensor_parallel_shards",
    "tensor_parallel_size",
    "tp_size",
    "world_size",
    // training: dropouts, first values, losses, precautions
    "activation_dropout",
    "attention_dropout",
    "attention_dropout_prob",
    "attention_probs_dropout_prob",
    "attn_dropout",
    "attn_dropout_prob",
    "attn_pdrop",
    "aux_loss_alpha",
    "classifier_dropout",
    "classifier_dropout_prob",
    "dropout",
    "dropout_rate",
    "emb_dropout_prob",
    "embd_pdrop",
    "embedding_dropout",
    "emb_pdrop",
    "ffn_dropout",
    "gradient_checkpointing",
    "hidden_dropout",
    "hidden_dropout_prob",
    "init_method",
    "init_method_std",
    "init_std",
    "initializer_factor",
    "initializer_range",
    "label_smoothing",
    "layerdrop",
    "load_balancing_loss_coef",
    "mlp_dropout",
    "neftune_noise_alpha",
    "num_mtp_layers",
    "num_nextn_predict_layers",
    "output_router_logits",
    "recompute_granularity",
    "resid_dropout",
    "resid_dropout_prob",
    "resid_pdrop",
    "residual_dropout",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "router_z_loss_coef",
    "seq_aux",
    "use_recompute",
    "z_loss_coefficient",
    "z_loss_weight",
    // other heads than that of language, and lists of labels
    "id2label",
    "label2id",
    "mc_token_id",
    "n_special",
    "num_labels",
    "predict_special_tokens",
    "problem_type",
    "task_specific_params",
    // lengths of texts: a bound, or what the model was trained on
    "initial_context_length",
    "max_context_length",
    "max_length",
    "max_position_embeddings",
    "max_seq_len",
    "max_seq_length",
    "max_sequence_length",
    "model_max_length",
    "n_ctx",
    "n_positions",
    "original_max_position_embeddings",
    "sample_seq_len",
    "seq_len",
    "seq_length",
    "training_length",
    // ids and tokenizers
    "begin_suppress_tokens",
    "bos_token",
    "bos_token_id",
    "cls_token_id",
    "decoder_start_token_id",
    "eod_token_id",
    "eos_token",
    "eos_token_id",
    "eot_token_id",
    "image_token_id",
    "mask_token_id",
    "pad_token",
    "pad_token_id",
    "prefix",
    "sep_token_id",
    "tokenizer_class",
    "tokenizer_model_max_length",
    "tokenizer_padding_side",
    "unk_token",
    "unk_token_id",
    // what a call returns
    "keys_to_ignore_at_inference",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "output_projection",  // of OPT's makers: whether there is a head
    "return_dict",
    "tf_legacy_loss",
    "torchscript",
    "use_cache",
    "use_return_dict",
    // of rotary dictionaries
    "finetuned"};

/// Beginnings of such names.
constexpr std::string_view kNeutralBeginnings[] = {"_", "summary_", "unsloth_"};

/// Switches that say something when they are off: by default they are on.
constexpr std::string_view kOnByDefault[] = {"causal",
                                             "do_layer_norm_before",
                                             "elementwise_affine",
                                             "gated_mlp",
                                             "is_causal",
                                             "layer_norm_elementwise_affine",
                                             "learned_embeddings",
                                             "normalize_before",
                                             "pre_norm",
                                             "prenorm",
                                             "rope",
                                             "rotary",
                                             "scale_attn",
                                             "scale_attn_weights",
                                             "use_causal_mask",
                                             "use_gated_activation",
                                             "use_gated_mlp",
                                             "use_pre_norm",
                                             "use_rms_norm",
                                             "use_rope",
                                             "use_rotary",
                                             "use_rotary_embeddings"};

struct NeutralValue {
  std::string_view name;
  Json value;
};

/// Keys that change what a model computes, with the value at which they do not.
const std::vector<NeutralValue>& values_of_no_effect() {
  static const std::vector<NeutralValue> rows = {{"embedding_multiplier", 1},
                                                 {"residual_multiplier", 1},
                                                 {"logits_scaling", 1},
                                                 {"logit_scale", 1},
                                                 {"scale_emb", 1},
                                                 {"embedding_scale", 1},
                                                 {"rope_ratio", 1},
                                                 {"rotary_scaling_factor", 1},
                                                 {"interpolate_factor", 1},
                                                 {"full_attn_mod", 1},
                                                 {"moe_layer_freq", 1},
                                                 {"decoder_sparse_step", 1},
                                                 {"routed_scaling_factor", 1},
                                                 {"n_group", 1},
                                                 {"topk_group", 1},
                                                 {"factor", 1},                // of a rotary dictionary
                                                 {"extrapolation_factor", 1},  // likewise
                                                 {"attention_factor", 1},      // likewise
                                                 {"scale_attn_weights", true},
                                                 {"is_causal", true},
                                                 {"causal", true},
                                                 {"num_experts", 0},
                                                 {"num_local_experts", 0},
                                                 {"n_routed_experts", 0},
                                                 {"n_shared_experts", 0},
                                                 {"shared_expert_intermediate_size", 0},
                                                 {"num_experts_per_tok", 0},
                                                 {"sliding_window", 0},
                                                 {"sliding_window_size", -1},
                                                 {"attention_sink_size", -1},
                                                 {"attn_logit_softcapping", 0},
                                                 {"final_logit_softcapping", 0},
                                                 {"logits_soft_cap", 0},
                                                 {"pruned_heads", Json::object()},
                                                 {"mlp_only_layers", Json::array()}};
  return rows;
}

/// What the model is in the words of some family; null where the model has no such thing.
Json restated(std::string_view name, const ModelConfig& model) {
  using families::read_activation;
  const AttentionConfig& a = model.attention;
  struct Row {
    std::initializer_list<std::string_view> names;
    Json value;
  };
  const bool plain_mlp = model.mlp.in_bias == model.mlp.out_bias && model.experts.count == 0;
  const bool same_bias = a.qkv_bias == a.out_bias;
  const Row rows[] = {
      {{"hidden_size", "n_embd", "n_embed", "d_model", "dim"}, model.hidden_size},
      {{"num_hidden_layers", "n_layer", "n_layers", "num_layers"}, model.layers},
      {{"num_attention_heads", "n_head", "n_heads", "num_heads"}, a.heads},
      {{"num_key_value_heads", "num_kv_heads", "n_head_kv", "n_kv_heads"}, a.latent ? a.heads : a.kv_heads},
      {{"head_dim", "attention_head_dim", "kv_channels"}, a.latent ? Json() : Json(a.head_dim)},
      {{"intermediate_size", "ffn_dim", "ffn_hidden_size", "n_inner", "d_ff"}, model.mlp.units},
      {{"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_eps", "norm_epsilon"}, model.norm.epsilon},
      {{"rope_theta", "rotary_emb_base"}, a.rope ? Json(a.rope->theta) : Json()},
      {{"rotary_dim"}, a.rope ? Json(a.rope->dims) : Json()},
      {{"partial_rotary_factor", "rotary_pct", "rope_pct"},
       a.rope && !a.latent ? Json(static_cast<double>(a.rope->dims) / static_cast<double>(a.head_dim)) : Json()},
      {{"rotary", "use_rope", "use_rotary"}, a.rope.has_value()},
      {{"rope_interleaved", "rope_interleave"}, a.rope && a.rope->interleaved},
      {{"alibi"}, a.alibi.has_value()},
      {{"attention_bias", "qkv_bias", "use_qkv_bias"}, a.qkv_bias},
      {{"mlp_bias"}, plain_mlp ? Json(model.mlp.in_bias) : Json()},
      {{"use_bias", "bias", "enable_bias"},
       plain_mlp && same_bias && a.qkv_bias == model.mlp.in_bias ? Json(a.qkv_bias) : Json()},
      {{"lm_head_bias"}, model.head_bias},
      {{"sliding_window", "sliding_window_size"}, a.window},
      {{"num_experts", "num_local_experts", "n_routed_experts"}, model.experts.count},
      {{"num_experts_per_tok", "experts_per_token"}, model.experts.per_token},
      {{"moe_intermediate_size"}, model.experts.units},
      {{"norm_topk_prob"}, model.experts.normalized},
      {{"use_parallel_residual", "parallel_attn", "use_parallel_block"}, model.parallel},
      {{"use_qk_norm", "qk_layernorm", "qk_norm"}, a.qk_norm != AttentionConfig::QkNorm::none},
      {{"position_embedding_type"},
       a.rope    ? Json("rope")
       : a.alibi ? Json("alibi")
                 : Json("absolute")},
      {{"norm_type", "normalization_type"},
       model.norm.kind == NormConfig::Kind::rms ? Json("rmsnorm") : Json("layernorm")},
  };
  for (const Row& row : rows)
    if (std::ranges::find(row.names, name) != row.names.end()) return row.value;
  return {};
}

bool restates_activation(std::string_view name, const JsonAt& at, const ModelConfig& model) {
  constexpr std::string_view kNames[] = {"hidden_act", "hidden_activation", "activation_function", "activation"};
  if (std::ranges::find(kNames, name) == std::end(kNames) || !at.is_string()) return false;
  const std::optional<Activation> activation = families::activation_of(at.string());
  return activation && *activation == model.mlp.activation;
}

bool leaves_the_mathematics(const std::string& name, const JsonAt& at, const ModelConfig& model) {
  if (at.json().is_null() || std::ranges::find(kNeutral, name) != std::end(kNeutral)) return true;
  if (is_generation_key(name) && name != "is_encoder_decoder") return true;
  for (std::string_view beginning : kNeutralBeginnings)
    if (name.starts_with(beginning)) return true;
  if (at.json() == false && std::ranges::find(kOnByDefault, name) == std::end(kOnByDefault)) return true;
  for (const NeutralValue& row : values_of_no_effect())
    if (row.name == name && row.value == at.json()) return true;
  const Json same = restated(name, model);
  return (!same.is_null() && same == at.json()) || restates_activation(name, at, model);
}

void refuse_unread_below(const JsonAt& object, const JsonReads& reads, const ModelConfig& model) {
  object.each_member([&](const std::string& name, const JsonAt& at) {
    if (!reads.contains(at.json())) {
      if (leaves_the_mathematics(name, at, model)) return;
      const std::string value = at.json().dump(-1, ' ', true, Json::error_handler_t::replace);
      at.fail(text("is ",
                   value.size() <= 60 ? value : value.substr(0, 57) + "...",
                   ", which is not done for ",
                   model.model_type,
                   ": it may change what the model computes"),
              text("keys that are read of a ", model.model_type, ", and those that change nothing"),
              "take it out if the model was trained without it");
    }
    if (at.is_object() && name != "quantization_config") refuse_unread_below(at, reads, model);
  });
}

}  // namespace

void refuse_unread(const JsonAt& config, const JsonReads& reads, const ModelConfig& model) {
  refuse_unread_below(config, reads, model);
}

/// Sources: the configurations of AutoGPTQ 0.7, GPTQModel 2, AutoAWQ 0.2, compressed-tensors 0.9 and transformers 4.50.
constexpr std::string_view kNeutralOfQuantization[] = {
    "_config_name",
    "act_group_aware",
    "activation_scale_ub",
    "activation_scheme",
    "autofill_length",
    "backend",
    "batch_size",
    "block_name_to_quantize",
    "cache_block_outputs",
    "checkpoint_format",
    "damp_auto_increment",
    "damp_percent",
    "dataset",
    "dequantize",
    "desc_act",
    "device",
    "disable_exllama",
    "do_fuse",
    "dynamic",
    "exllama_config",
    "fmt",
    "format",
    "fuse_max_seq_len",
    "global_compression_ratio",
    "ignore",
    "ignored_layers",
    "is_marlin_format",
    "kv_cache_scheme",
    "kv_cache_quant_algo",
    "lm_head",
    "max_input_length",
    "meta",
    "method",
    "model_file_base_name",
    "model_name_or_path",
    "model_seqlen",
    "module_name_preceding_first_block",
    "modules_in_block_to_quantize",
    "modules_to_fuse",
    "modules_to_not_convert",
    "mse",
    "observer",
    "observer_kwargs",
    "offload_to_disk",
    "pack_dtype",
    "pad_token_id",
    "parallel_packing",
    "quant_method",
    "quantization_status",
    "rotation",
    "scale_dtype",
    "sparsity_config",
    "static_groups",
    "sym",
    "targets",
    "tokenizer",
    "true_sequential",
    "use_cuda_fp16",
    "use_exllama",
    "vram_strategy",
    "zp_dtype",
};

static void note_unread(const JsonAt& object, const JsonReads& reads, const std::string& before,
                        std::vector<std::string>& out) {
  object.each_member([&](const std::string& name, const JsonAt& at) {
    const bool is_neutral = std::ranges::find(kNeutralOfQuantization, name) != std::end(kNeutralOfQuantization);
    if (is_neutral || at.json().is_null()) return;
    // The groups of config_groups have names of their own; what is asked of activations is not done as a whole.
    if (at.is_object() && (name == "config_groups" || name == "weights" || before == "config_groups."))
      note_unread(at, reads, before + name + ".", out);
    else if (!reads.contains(at.json()))
      out.push_back(before + name);
  });
}

std::vector<std::string> unread_of_quantization(const JsonAt& quantization, const JsonReads& reads) {
  std::vector<std::string> out;
  note_unread(quantization, reads, "", out);
  return out;
}

}  // namespace sator
