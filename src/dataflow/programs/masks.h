// Work that a program masks: causal attention computes no score of a later position.
#pragma once

#include "dataflow/programs/work.h"

namespace sator::dataflow {

/// Values from `begin` on, those from `end` on not any more.
struct Span {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

/// The values of iterator x at which an instance may count, where iterator y lies in from[y] .. from[y] + size[y] - 1: each
/// of `only_where` by itself rules out what is outside. Where all others have one value and everything is affine, exactly
/// the values at which an instance counts.
Span unmasked_span(const Work& work, size_t x, const std::vector<int64_t>& from, const std::vector<int64_t>& size);

/// How many instances count: the points of the domain at which nothing of `only_where` is below 0.
/// Errors: a set that the engine cannot count.
int64_t unmasked_instances(const Work& work);

}  // namespace sator::dataflow
