#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/file.h"

namespace sator::formats {

struct BatchOptions {
  int threads = 2;  // that share the rows
  /// Called now and then with the rows answered and refused so far, and with how many lines there are.
  std::function<void(int64_t done, int64_t of)> progress;
};

struct BatchSummary {
  int64_t rows = 0, refused = 0;
};

/// Answers every line of a JSONL file, in order: {"id", "format", "input"} gives {"id", ...answer}, or {"id", "refused":
/// reason}. A line that is no such object gives {"id": null, "line", "refused"}; blank lines give nothing.
/// The output appears under its name when it is whole.
/// Errors: a file that cannot be read or written.
BatchSummary answer_batch(const fs::path& in, const fs::path& out, const BatchOptions& options = {});

/// The answer to one line of a batch.
///   file, number   what a refusal of the line itself calls its place
nlohmann::json answer_row(std::string_view line, const std::string& file, int64_t number);

}  // namespace sator::formats
