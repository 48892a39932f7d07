// Chips that share each layer: what they send each other.
#pragma once

#include <span>

#include "study/result.h"
#include "target/chip.h"

namespace sator::study {

/// Tensor parallelism: each of `chips` has its share of the heads and of the MLP, and after the layers that end these (the
/// output projection, the second linear layer of the MLP) all sum up their parts of the hidden states. Embedding and head are
/// whole on every chip.
struct Links {
  int64_t chips = 1;
  int64_t width = 0;                // of the hidden states
  int64_t bits = 32;                // of a number of them, as the program computes
  std::vector<std::string> layers;  // whose results are summed up, in the order of the model

  bool any() const { return chips > 1; }
};

/// One sum over all chips of `tokens` rows of hidden states, i x j numbers: all of its latency is the links'. Energy is one
/// chip's share.
/// Errors: those of dataflow::all_reduce_s.
KernelRow all_reduce_row(const Links& links, const std::string& layer, int64_t tokens, const Chip& chip);

/// Puts a sum behind the last kernel of each of these layers. `tokens`: of each step that the rows stand for.
void add_all_reduces(std::vector<KernelRow>& rows, const Links& links, std::span<const int64_t> tokens,
                     const Chip& chip);

}  // namespace sator::study
