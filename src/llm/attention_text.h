// What the texts of the kernels of a paged KV cache share (kv_append.cc, attention.cc, attention_work.cc): the holes that a shape fills, and
// the parameter that some have more.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "llm/attention.h"

namespace sator::llm {

using Holes = std::vector<std::pair<std::string, std::string>>;

/// Internal error: heads or sizes that do not fit each other.
void check_shape(const AttentionShape& shape);

/// The function of a text whose holes are those of a shape: {H}, {G}, {D}, {R} as AttentionShape says, {T} the pages' dtype, {K_PAGES} and
/// {V_PAGES} the pages' shapes. A text is read once: the programs of a model's schemes have the same.
tir::PrimFuncRef attention_function(const std::string& source, const AttentionShape& shape);

/// The parameter of a shape with additions to its scores, or with sinks: the handle, the buffer, what a block reads. Empty without.
struct ExtraParam {
  const char *handle = "", *buffer = "", *read = "";
};
ExtraParam extra_param(const AttentionShape& shape);

/// The lines of a text that are not empty, each behind so many spaces.
std::string indented(const std::string& source, size_t spaces);

}  // namespace sator::llm
