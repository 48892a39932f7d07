// What keeps finished parts of a study for the next run.
#pragma once

#include <functional>

#include "base/file_cache.h"
#include "study/result.h"
#include "target/chip.h"

namespace sator::study {

/// Hash of the files that shape a model: weights, configuration, tokenizer; with shapes_only config.json alone.
/// Errors: the folder or config.json cannot be read.
std::string model_hash(const fs::path& folder, bool shapes_only);

/// Processor and instruction sets of this machine, in words.
std::string host_name();

/// Whether the chip is what `sator calibrate --host` measured on this processor with as many threads.
bool is_host(const Chip& chip, int64_t threads);

/// Speeds on this machine of schemes that were measured in turns.
struct SpeedRun {
  std::vector<SchemeResult> schemes;  // names and figures of speed
  std::string measured_at;            // clock.h
  int64_t rounds = 0;
};

/// Finished parts as a cache in one folder, by name and key.
class PartStore {
 public:
  ///   remark   told of parts that were damaged
  /// Errors: the folder cannot be made or written.
  explicit PartStore(
      const fs::path& folder, std::function<void(const std::string&)> remark = [](const std::string&) {});

  /// A scheme's own figures, without chips.
  std::optional<SchemeResult> find_scheme(const std::string& name, const std::string& key) const;
  void keep_scheme(const SchemeResult& scheme, const std::string& key) const;
  /// Speeds of all these schemes from one run in turns, which is at most `age_s` seconds old.
  std::optional<SpeedRun> find_speeds(const std::vector<std::string>& schemes, const std::string& key,
                                      int64_t age_s) const;
  void keep_speeds(const SpeedRun& run, const std::string& key) const;
  /// A scheme on one chip, with its kernels.
  std::optional<ChipResult> find_chip(const std::string& scheme, const std::string& chip, const std::string& key) const;
  void keep_chip(const std::string& scheme, const ChipResult& chip, const std::string& key) const;

 private:
  fs::path file(const std::string& name, const std::string& key) const;
  std::optional<Study> find(const std::string& name, const std::string& key) const;
  void keep(const Study& part, const std::string& name, const std::string& key) const;

  FileCache cache_;
  std::function<void(const std::string&)> remark_;
};

}  // namespace sator::study
