// The logits of a run over a task, for another run to be compared with.
#pragma once

#include <memory>

#include "base/digest.h"
#include "base/staged_file.h"
#include "engine/divergence.h"

namespace sator {

/// A file of logits: the line "sator reference run 2", a line "{"vocab": V, "task": "<digest>"}", float32[predictions, V],
/// little-endian, and the seal of all this (base/digest.h).
class ReferenceWriter {
 public:
  ///   task  a digest of what is predicted: runs of other tasks are refused
  ReferenceWriter(const fs::path& path, int64_t vocab, const std::string& task);
  void add(std::span<const float> logits);
  void finish();

 private:
  void write(std::string_view bytes);

  Digest digest_;
  StagedFile file_;
};

class ReferenceRun {
 public:
  /// Errors: no such file, or none that a ReferenceWriter wrote; it is of another vocabulary or task; it is cut off or damaged.
  ReferenceRun(const fs::path& path, int64_t vocab, const std::string& task);
  int64_t predictions() const { return predictions_; }
  /// [vocab]
  std::span<const float> logits(int64_t prediction);

 private:
  Ref<MappedFile> file_;
  size_t begin_ = 0;
  int64_t predictions_ = 0;
  std::vector<float> row_;
};

}  // namespace sator
