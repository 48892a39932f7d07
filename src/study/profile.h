// One run of a model, kernel call by kernel call: how long each took here, what work it was, what it would cost on a chip.
#pragma once

#include "llm/open.h"
#include "llm/workload.h"
#include "runtime/profiler.h"
#include "study/result.h"
#include "target/chip.h"

namespace sator::study {

/// A tensor that a kernel reads or writes.
///   bits    per number as it is stored; words of packed codes hold several
///   bytes   that the call touches, each element once: all of the tensor, or the rows that are looked up
struct WorkOperand {
  std::string name, kind;  // weight | scale | kv | activation
  DType dtype;
  int64_t bits = 0;
  std::vector<int64_t> shape;
  int64_t bytes = 0;
};

/// A kernel call as a workload.
struct WorkloadRecord {
  std::string phase, function, layer;
  std::map<std::string, int64_t> sizes;
  std::vector<std::pair<std::string, std::vector<std::pair<std::string, int64_t>>>> domains;  // statements: iterators
  int64_t batch = 0, i = 0, j = 0, k = 0;  // of the first product; 0: there is none
  int64_t macs = 0;
  std::vector<WorkOperand> operands;
  double duration_us = 0;
  std::optional<KernelRow> on_chip;
};

struct ModelProfile {
  runtime::Profile prefill, decode;  // their tables have the estimates as columns, with a chip
  std::vector<WorkloadRecord> records;
};

struct ProfileOptions {
  int64_t prompt_len = 128;  // of the prefill; the decode step follows it
  std::optional<Chip> chip;
  /// How often both phases run after a warm-up; a call's duration is the median. The tables' totals are those of the last run.
  int64_t rounds = 1;
};

/// Tokens of the longest prompt that a profile can take: one step's, with room for a token behind them.
int64_t longest_prompt(const ModelLimits& limits);

/// Profiles a prefill of prompt_len tokens and the decode step after it, after a warm-up. Random token ids.
/// Errors: a prompt longer than one step takes in; no rounds; calls that differ from those that the program states (InternalError).
ModelProfile profile_model(const fs::path& folder, const llm::OpenModel& model, const ProfileOptions& options);

/// A run's kernels beside their estimates, as a table: per phase and function the calls, microseconds measured and estimated of
/// all of them, the interval, the error; and the sums. Empty without a chip.
std::string comparison_table(const ModelProfile& profile);

/// One JSON object per line and record.
std::string json_lines(const std::vector<WorkloadRecord>& records);

}  // namespace sator::study
