// Why a figure is what it is, in words and formulas with the numbers put in.
#pragma once

#include "study/result.h"

namespace sator::study {

/// What can be asked about.
enum class Figure : uint8_t { latency, energy, bytes, macs, utilization, perplexity, weight_bytes };
struct FigureName {
  Figure figure;
  std::string_view name;
  std::string_view asks;  // for --help
};
const std::vector<FigureName>& figures();

/// Answers from a study, line by line. Each number is one of the study's or computed from them; where parts make up a whole,
/// their sum is compared with it, and what does not add up is an error.
///   phase   of what is costed; ignored for perplexity and weight_bytes
std::vector<std::string> explain(const Study& study, size_t scheme, size_t chip, const PhaseName& phase, Figure figure);

/// The same of one kernel: one call of it. Perplexity and weight_bytes belong to a whole model.
std::vector<std::string> explain_kernel(const KernelRow& row, const ChipFacts& chip, Figure figure);

/// Kernels of a phase by the name of their function or their layer; of several equal ones the first.
/// Errors: there is none (with those there are).
std::vector<const KernelRow*> kernels_named(const PhaseResult& phase, const std::string& name);

}  // namespace sator::study
