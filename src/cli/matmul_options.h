// Options of one matmul, which several commands take.
#pragma once

#include <string>
#include <vector>

#include "dataflow/programs/matmul.h"

namespace sator::cli {

/// "128,768,768", "16x16": `count` integers of at least `least` between separators. Errors: anything else, with the option's
/// name.
std::vector<int64_t> integers_of(const std::string& option, const std::string& given, char separator, size_t count,
                                 int64_t least);

/// A matmul of `size` (i, j, k) under a scheme of `sator schemes`. Errors: no such scheme.
dataflow::Matmul matmul_of(const std::vector<int64_t>& size, const std::string& scheme);

}  // namespace sator::cli
