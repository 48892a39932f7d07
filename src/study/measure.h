// The half of a study that runs the model on this machine.
#pragma once

#include "study/study.h"

namespace sator::study {

/// Compiles the model under the scheme, measures perplexity over the text's windows, the speed of the prompt and of the
/// generation, and sizes. With shapes_only: sizes alone, from config.json.
/// Errors: those of llm::open_model and of evaluation.
SchemeResult measure_scheme(const SchemeJob& job, const Progress& progress);

/// Parameters of the checkpoint; with shapes_only those that config.json implies.
int64_t count_parameters(const StudyOptions& options);

}  // namespace sator::study
