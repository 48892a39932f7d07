// From the description of a model to its graph: embedding, blocks, head.
#pragma once

#include "frontend/model_config.h"
#include "llm/layers.h"

namespace sator::llm {

/// ids int32 [n] -> hidden states [n, width], the final norm applied.
///   blocks   numbers of the blocks that are there; the i-th of them has the i-th place in the cache
relax::RExpr hidden_states(Layers& layers, const ModelConfig& config, const std::vector<int64_t>& blocks,
                           const relax::RExpr& ids, const relax::RExpr& cache, const Expr& n);
/// Hidden states [m, width] -> logits [m, vocab].
relax::RExpr logits(Layers& layers, const ModelConfig& config, const relax::RExpr& hidden);

/// The layers whose results are sums over the units of a block: with several chips that share each layer, these are added up
/// over the chips.
std::vector<std::string> summed_layers(const ModelConfig& config);

/// Frequencies of a rotary embedding, angle per position, for contexts of at most so many tokens.
std::vector<float> rope_frequencies(const Rope& rope, int64_t context_window);
/// The slope of each head's linear bias, as Alibi says.
std::vector<float> alibi_slopes(int64_t heads);

}  // namespace sator::llm
