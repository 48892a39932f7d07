// Chips and schemes for a whole model: what prefill and decode take on each variant of a chip.
#pragma once

#include <map>

#include "base/file.h"
#include "explore/explore.h"
#include "study/study.h"

namespace sator::study {

struct PhaseKernel;

struct ModelSpaceOptions {
  fs::path model;  // a Hugging Face folder
  std::vector<std::string> schemes;
  int64_t prompt_len = 128, gen_len = 32;
  bool shapes_only = false;                  // config.json alone
  std::map<std::string, double> perplexity;  // measured, by scheme; empty: quality is no objective
  std::optional<double> max_perplexity;
  explore::Limits limits;
};

/// A space of chips and schemes. A point's latency and energy are those of a prompt and of gen_len decode steps at the mean
/// context, by the engine's mappings of every kernel.
class ModelSpace {
 public:
  /// Builds the program of every scheme. Errors: an unknown scheme or one without a perplexity where others have one; a model
  /// that cannot be read; lengths beyond its context.
  ModelSpace(explore::ChipSpace chips, const ModelSpaceOptions& options, const Progress& progress);
  ~ModelSpace();

  std::vector<explore::ChipSpace::Dimension> dimensions() const;
  std::vector<size_t> choices() const;
  explore::Design design(const explore::Point& point) const;
  /// {latency, energy, area} and, where it is known, perplexity.
  explore::Evaluated evaluate(const explore::Point& point) const;
  /// Kernels of all schemes that the engine cannot read from the program, with the reason.
  const std::vector<std::string>& refused() const { return refused_; }

  /// A program's functions as they stand before a schedule, as TVMScript.
  const std::string& program(size_t scheme) const { return programs_.at(scheme); }
  /// Functions that state what the runtime does: attention over the cache. By name.
  const std::map<std::string, std::string>& runtime_programs() const { return runtime_programs_; }
  /// The mappings of a point, as file names and steps of schedules of those functions: one per distinct kernel with
  /// a product. Replayed and read again they have the costs of the point. Errors: those of ChipCoster::cost.
  std::vector<std::pair<std::string, std::string>> schedules(const explore::Point& point) const;

 private:
  explore::ChipSpace chips_;
  ModelSpaceOptions options_;
  std::vector<std::vector<explore::Job>> jobs_;    // per scheme
  std::vector<std::vector<PhaseKernel>> kernels_;  // that the jobs were read from
  std::vector<std::string> programs_;              // per scheme
  std::map<std::string, std::string> runtime_programs_;
  std::vector<std::string> refused_;
};

/// Perplexities of a finished study, by scheme. Errors: no study.json in the folder, or one that is none.
std::map<std::string, double> perplexities_of(const fs::path& study_folder);

}  // namespace sator::study
