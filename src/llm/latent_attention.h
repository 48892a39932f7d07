// Attention over latent vectors (LatentAttention in frontend/model_config.h).
#pragma once

#include "frontend/model_config.h"
#include "llm/layers.h"

namespace sator::llm {

/// Block i's attention of x [n, hidden] f32 over the cache -> [n, heads * value_dim], before the layer `out`. The cache has one
/// head of keys of rope->dims + rank elements: the shared rotated key, then the latent vector; its values are the same, of
/// which the first part is weighed in vain.
///   place   of the block's keys in the cache
RExpr latent_attention(Layers& layers, const ModelConfig& config, int64_t i, int64_t place, const RExpr& x,
                       const RExpr& cache);

}  // namespace sator::llm
