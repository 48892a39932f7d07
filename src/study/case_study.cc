#include "study/case_study.h"

#include <algorithm>

#include "base/error.h"
#include "dataflow/cost/described_chip.h"
#include "frontend/hf_config.h"
#include "study/cost_program.h"
#include "study/measure.h"

namespace sator::study {

std::span<const QuantizationKind> quantization_kinds() {
  static constexpr QuantizationKind kinds[] = {
      {"none", "f16", "", "16-bit floats, which the others are compared with"},
      {"per tensor", "int8-tensor+embed", "weights", "one scale per matrix"},
      {"per embedding", "int8-input+embed", "weights", "one scale per input feature, a column of W[out, in]"},
      {"per token",
       "int8-channel+embed",
       "weights",
       "one scale per row of W[out, in]: in embedding and head per token of the vocabulary"},
      {"per group of embeddings", "int8-group32+embed", "weights", "one scale per 32 input features of a row"},
      {"per tensor", "int8-tensor+embed+a8-tensor", "weights and activations", "one scale for all inputs of a layer"},
      {"per embedding",
       "int8-channel+embed+a8-embedding",
       "weights and activations",
       "one scale per input feature of a layer, multiplied into the weights before these are quantized per row"},
      {"per token",
       "int8-channel+embed+a8-token",
       "weights and activations",
       "one scale per token, taken from its row"},
      {"per group of embeddings",
       "int8-channel+embed+a8-peg8",
       "weights and activations",
       "one scale per eighth of a layer's input features, multiplied into the weights"},
  };
  return kinds;
}

namespace {

/// "transformer.h.*.mlp.c_fc" of a layer and others that differ in their number alone.
std::string layer_family(const std::string& layer) {
  std::vector<std::string> words;
  for (std::string_view word : split(layer, '.'))
    words.emplace_back(
        !word.empty() && std::ranges::all_of(word, [](unsigned char c) { return std::isdigit(c); }) ? "*" : word);
  return join(words, ".");
}

/// Costs the steps of one program on one chip.
class StepCoster {
 public:
  StepCoster(dataflow::CostEngine& engine, const llm::Workload& workload) : engine_(engine), workload_(workload) {}

  StepCosts cost(const std::string& function, const std::vector<llm::StepSize>& steps) {
    StepCosts out{.step = steps.back(), .all = {}, .matmuls = {}};
    std::vector<llm::KernelCall> calls;
    for (const llm::StepSize& step : steps)
      for (llm::KernelCall& call : workload_.calls(function, step)) {
        call.layer = layer_family(call.layer);
        calls.push_back(std::move(call));
      }
    std::vector<KernelRow> rows;
    for (const PhaseKernel& kernel : kernels_of(calls, engine_.chip())) rows.push_back(row_of(kernel, out.matmuls));
    out.all = sum_of(std::move(rows), engine_.chip());
    return out;
  }

 private:
  KernelRow row_of(const PhaseKernel& kernel, std::vector<MatmulRow>& matmuls) {
    try {
      if (!kernel.refused.empty()) return uncosted_row(kernel.calls, kernel.refused);
      const dataflow::KernelCost cost = engine_.cost(kernel.work.kernel, kernel.work.placements);
      KernelRow row = kernel_row(kernel.calls, kernel.work.kernel, cost, engine_.chip());
      std::vector<ProductUse> products;
      for (const dataflow::StatementCost& s : cost.statements)
        if (s.on_array()) products.push_back({s.name, product_size(s), s.placement->words, s.macs});
      if (!products.empty()) matmuls.push_back({row, std::move(products)});
      return row;
    } catch (const Error& error) {
      return uncosted_row(kernel.calls, error.reason.what);
    }
  }

  dataflow::CostEngine& engine_;
  const llm::Workload& workload_;
};

void check_lengths(const CaseStudyOptions& options, const ModelConfig& config) {
  auto refuse = [&](const std::string& what, const char* option) {
    fail({.what = what,
          .needs = text("1 to ", config.max_positions, " tokens, the model's positions"),
          .hint = text("use another ", option)});
  };
  if (options.prompt_len < 1 || options.prompt_len > config.max_positions)
    refuse(text("a prompt of ", options.prompt_len, " tokens"), "--prompt-len");
  if (options.contexts.empty()) refuse("no context for a decode step", "--context");
  for (int64_t context : options.contexts)
    if (context < 1 || context > config.max_positions)
      refuse(text("a decode step at ", context, " tokens"), "--context");
}

}  // namespace

CaseStudy make_case_study(const CaseStudyOptions& options, const Progress& progress) {
  const ModelConfig config = read_model_config(options.model);
  check_lengths(options, config);
  const Chip chip = dataflow::described_chip(options.chip), host = dataflow::described_chip(options.host);
  const StudyOptions shapes{.model = options.model, .shapes_only = true};
  CaseStudy study{.model = {.name = fs::canonical(options.model).filename().string(),
                            .type = config.model_type,
                            .layers = config.layers,
                            .vocab_size = config.vocab_size,
                            .max_positions = config.max_positions,
                            .parameters = count_parameters(shapes)},
                  .options = options,
                  .chip = facts_of(chip),
                  .host = facts_of(host),
                  .schemes = {},
                  .patterns = {},
                  .keeps_between = chip.keeps_between,
                  .by_routes = routes_of(chip),
                  .routes = {},
                  .pattern_notes = {}};
  for (const ChipPattern& p : chip.patterns) study.patterns.push_back(p.name);
  dataflow::CostEngine engine(chip);
  RouteCoster routes(chip, host);
  for (const QuantizationKind& kind : quantization_kinds()) {
    progress(text(kind.scheme, ": costing on ", chip.name), true);
    const llm::Scheme quantization = llm::parse_scheme(kind.scheme);
    const ProgramAtPhase3 at = program_at_phase3(options.model, {.scheme = quantization});
    const llm::Workload workload(at.module, at.program);
    StepCoster coster(engine, workload);
    SchemeCosts scheme{.kind = kind, .weight_bytes = sizes_of_shapes(options.model, quantization).weight_bytes};
    scheme.prefill = coster.cost("prefill", prefill_steps(options.prompt_len, at.program.limits.prefill_chunk));
    for (int64_t context : options.contexts)
      scheme.decode.push_back(coster.cost("decode", {{.tokens = 1, .context = context}}));
    study.schemes.push_back(std::move(scheme));
    if (kind.of == "weights") continue;
    std::vector<RouteCosts> all =
        routes.by_every_route(options.model,
                              quantization,
                              at,
                              {.prompt_len = options.prompt_len, .context = options.contexts.front()},
                              progress,
                              study.pattern_notes);
    study.routes.insert(study.routes.end(), std::make_move_iterator(all.begin()), std::make_move_iterator(all.end()));
  }
  return study;
}

}  // namespace sator::study
