// A model family and a quantization scheme as one graph program.
#pragma once

#include "engine/session.h"
#include "frontend/hf_config.h"
#include "ir/module.h"
#include "llm/attention.h"
#include "llm/params.h"
#include "llm/repeats.h"

namespace sator::llm {

/// Tokens of one step at most, unless told.
inline constexpr int64_t kPrefillChunk = 512;

struct ProgramOptions {
  std::optional<int64_t> context_window;  ///< positions; the model's own unless told (a larger one is an error)
  std::optional<int64_t> prefill_chunk;   ///< tokens of one step at most; the smaller of context and 512 unless told
  std::optional<DType> cache_dtype;       ///< of the KV cache: float32, float16 or bfloat16; cache_dtype_of unless told
  bool alike_once = false;                ///< of blocks that are alike few: costs need no more (Repeats::alike)
  int64_t chips = 1;                      ///< that share each layer: the program is that of one of them (part_of)
};

/// The layer that makes logits, also where it reads the embedding's weights.
inline constexpr const char* kHeadLayer = "lm_head";

/// The program of a model under a scheme, before any pass.
///   module   functions create_kv_cache, prefill, decode, verify (see engine/session.h); the kernels kv_append and
///            attention; each quantized layer's weights behind a function with the attribute `role: dequantize`
///   params   what the tuple `params` of these functions holds, in order
///   limits   what a session must know
///   attention  of each block: heads, sizes, window, rotary embedding
///   cache_kernels  of each block: the functions that the cache calls for it
///   layers   names of the layers that bind results, "transformer.h.0.attn.c_attn", in the order of the model
///   summed_layers  of all of the model's those whose results chips that share each layer add up
///   repeats  which blocks it has, and for how many each stands
struct Program {
  struct CacheKernels {
    std::string kv_append, attention;
  };
  ModuleRef module;
  std::vector<ParamSpec> params;
  ModelLimits limits;
  std::vector<AttentionShape> attention;
  std::vector<CacheKernels> cache_kernels;
  std::vector<std::string> layers;
  std::vector<std::string> summed_layers;
  Repeats repeats;
};

/// Bytes of a model's weights under its program's scheme, blocks that others stand for included.
int64_t weight_bytes(const Program& program);

/// Bytes of a KV cache of one sequence: of `positions` positions, of which layers with a window keep those that a step of
/// `prefill_chunk` tokens sees.
int64_t cache_bytes(const Program& program, int64_t positions);

/// What one of `chips` chips has of a model under tensor parallelism: its heads, its share of the MLP; embedding, norms and
/// head are whole. The sums over chips behind attention and MLP are no part of its program.
/// Errors: heads, heads of keys and values or the MLP's width do not divide.
/// Source: Shoeybi et al., "Megatron-LM", 2019.
ModelConfig part_of(const ModelConfig& config, int64_t chips);

/// Of the KV cache of a program under a scheme: what the options say, else the dtype of the scheme's factors, else float32 under `f32`,
/// which is exact, and of a model in float32, else bfloat16 beside inputs that are integers, else the model's own. An unknown dtype is
/// float32, but bfloat16 beside inputs that are integers.
DType cache_dtype_of(const ModelConfig& config, const Scheme& scheme, const ProgramOptions& options);

/// Builds the program.
/// Errors: those of part_of; context_window beyond the model's; a scheme that this family cannot have.
Program build_program(const ModelConfig& config, const Scheme& scheme, const ProgramOptions& options = {});

/// The exact program with one function more, `observe`: int32[n], cache, params -> a tuple of f32[in], the largest |x| of
/// each input feature of each linear layer inside the blocks over the step. `layers` receives their names.
Program build_observer(const ModelConfig& config, const ProgramOptions& options, std::vector<std::string>& layers);

}  // namespace sator::llm
