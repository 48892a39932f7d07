// The half of a study that runs the model on this machine.
#pragma once

#include "study/study.h"

namespace sator::study {

/// Compiles the model under each scheme, measures speeds of prompt and generation in turns (speed.h), and perplexity and
/// divergence over the text's windows, each window of each scheme once, beside the reference's. All schemes are open at one
/// time; where memory lacks, some after the others, each group with the reference. With shapes_only: sizes alone, from
/// config.json. A scheme that fails leaves the others to be finished.
///   →   rounds in turns behind each speed; 0 where none was measured
/// Errors: those of the reference.
int64_t measure_schemes(const MeasureJob& job, const TakeMeasured& take, const Progress& progress);

/// The sizes that config.json implies.
SchemeResult sizes_of_shapes(const fs::path& model, const llm::Scheme& scheme);

/// Parameters of the checkpoint; with shapes_only those that config.json implies.
int64_t count_parameters(const StudyOptions& options);

}  // namespace sator::study
