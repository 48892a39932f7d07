// The question that the project started from, answered for one model on one chip: which matrix products a language model runs,
// with which i, j, k, and what each costs under which kind of quantization.
#pragma once

#include <span>

#include "base/file.h"
#include "llm/workload.h"
#include "study/phase.h"
#include "study/routes.h"
#include "study/study.h"

namespace sator::study {

/// A kind of quantization: what shares one scale.
struct QuantizationKind {
  std::string_view kind;    // "per embedding"
  std::string_view scheme;  // that has it
  std::string_view of;      // "weights", or "weights and activations"
  std::string_view means;
};
/// Floats, then each kind for weights alone and with activations.
/// Source: Bondarenko et al., "Understanding and Overcoming the Challenges of Efficient Transformer Quantization", EMNLP 2021.
std::span<const QuantizationKind> quantization_kinds();

struct CaseStudyOptions {
  fs::path model;  // a Hugging Face folder; config.json suffices
  std::string chip = "edge_npu32";
  std::string host = "cpu_avx512_vnni";  // runs what a route leaves off the chip
  int64_t prompt_len = 128;
  std::vector<int64_t> contexts = {128, 256, 512, 1024};  // of decode steps: tokens attended to, the new one among them
};

/// A product of a kernel as the run's sizes make it.
struct ProductUse {
  std::string name;  // of its block
  ProductSize size;
  std::string tile;
  int64_t macs = 0;
};

/// A kernel that multiplies matrices, over the layers in which it does the same.
struct MatmulRow {
  KernelRow kernel;  // its layer with * for what differs; count over all layers, other figures of one call
  std::vector<ProductUse> products;
};

/// One step of the model.
struct StepCosts {
  llm::StepSize step;
  PhaseResult all;                 // every kernel
  std::vector<MatmulRow> matmuls;  // in the order of first sight
};

struct SchemeCosts {
  QuantizationKind kind;
  int64_t weight_bytes = 0;
  StepCosts prefill;
  std::vector<StepCosts> decode;  // one per context
};

struct CaseStudy {
  ModelFacts model;
  CaseStudyOptions options;
  ChipFacts chip;
  ChipFacts host;
  std::vector<SchemeCosts> schemes;   // the floats first
  std::vector<std::string> patterns;  // of the chip, by name
  std::string keeps_between;          // Chip::keeps_between
  std::vector<Route> by_routes;
  std::vector<RouteCosts> routes;          // of the floats and of the kinds with activations, each by every route
  std::vector<std::string> pattern_notes;  // of the passes, on parts of the graph that were not matched or not joined
};

/// Compiles the model under each kind and costs its steps, from the sizes that its calls have. Nothing is run.
/// Errors: those of llm::program_of; a context outside of the model's or below 1; a prompt longer than it; no such chip.
CaseStudy make_case_study(const CaseStudyOptions& options, const Progress& progress);

/// The same as a document in Markdown. Its sentences are made from its numbers.
///   command   that makes it again
std::string case_study_text(const CaseStudy& study, const std::string& command);

}  // namespace sator::study
