#include "study/explore_model.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "explore/area.h"
#include "frontend/hf_config.h"
#include "relax/print.h"
#include "study/cost_program.h"
#include "study/json.h"
#include "tir/print.h"

namespace sator::study {

namespace {

/// Kernels of equal work are one job.
void add_jobs(const std::vector<PhaseKernel>& kernels, double times, std::vector<explore::Job>& jobs,
              std::vector<PhaseKernel>& of_jobs, std::map<std::string, size_t>& known,
              std::vector<std::string>& refused) {
  for (const PhaseKernel& k : kernels) {
    if (!k.refused.empty()) {
      const std::string words = text(k.calls.function, " is not costed: ", k.refused);
      if (std::find(refused.begin(), refused.end(), words) == refused.end()) refused.push_back(words);
      continue;
    }
    std::string key = k.calls.function;
    for (const auto& [name, value] : k.facts.sizes) key += text(";", name, "=", value);
    for (const dataflow::ParamFacts& p : k.facts.params) key += text(";", name_of(p.kind), p.bits);
    const auto [at, fresh] = known.try_emplace(key, jobs.size());
    if (fresh) {
      jobs.push_back({k.work.kernel, 0});
      of_jobs.push_back(k);
    }
    jobs[at->second].times += times * static_cast<double>(k.calls.count);
  }
}

}  // namespace

ModelSpace::ModelSpace(explore::ChipSpace chips, const ModelSpaceOptions& options, const Progress& progress)
    : chips_(std::move(chips)), options_(options) {
  const ModelConfig config = read_model_config(options.model);
  if (options.prompt_len < 1 || options.gen_len < 1 || options.prompt_len > config.max_positions ||
      options.gen_len > config.max_positions - options.prompt_len)
    fail({.what = text("a prompt of ", options.prompt_len, " and ", options.gen_len, " generated tokens"),
          .needs =
              text("at least 1 of each, and together at most the ", config.max_positions, " positions of the model"),
          .hint = "leave --prompt-len and --gen-len out for their defaults"});
  const Chip& chip = chips_.base();
  for (const std::string& name : options.schemes) {
    if (!options.perplexity.empty() && !options.perplexity.contains(name))
      fail({.what = text("the study has no perplexity of ", name),
            .needs = "a study of all schemes that are explored",
            .hint = text("run `sator study` with --quant ", name, " too, or leave it out here")});
    progress(text("building the program of ", name), true);
    const ProgramAtPhase3 at =
        program_at_phase3(options.model, {.scheme = llm::parse_scheme(name), .program = {.alike_once = true}});
    const llm::Workload workload(at.module, at.program);
    std::vector<explore::Job> jobs;
    std::vector<PhaseKernel> kernels;
    std::map<std::string, size_t> known;
    auto add = [&](const llm::StepSize& step, double times) {
      std::vector<PhaseKernel> of_step = kernels_of(workload.calls(step), chip);
      for (PhaseKernel& k : of_step) k.calls.count *= at.program.repeats.times(k.calls.layer);
      add_jobs(of_step, times, jobs, kernels, known, refused_);
    };
    for (const llm::StepSize& step : prefill_steps(options.prompt_len, at.program.limits.prefill_chunk)) add(step, 1);
    const int64_t context = options.prompt_len + (options.gen_len + 1) / 2;
    add({.tokens = 1, .context = context}, static_cast<double>(options.gen_len));
    jobs_.push_back(std::move(jobs));
    kernels_.push_back(std::move(kernels));
    programs_.push_back(relax::to_script(*at.module));
    for (const PhaseKernel& k : kernels_.back())
      if (const auto own = at.module->functions.find(k.calls.function);
          own == at.module->functions.end() || !equal(own->second, k.func))
        runtime_programs_.try_emplace(k.calls.function, tir::to_script(*k.func));
  }
  if (jobs_.empty())
    fail({.what = "no scheme is given", .needs = "at least one", .hint = "--quant int8-channel,int4-group32"});
}

ModelSpace::~ModelSpace() = default;

std::vector<explore::ChipSpace::Dimension> ModelSpace::dimensions() const {
  std::vector<explore::ChipSpace::Dimension> all = chips_.dimensions();
  all.push_back({"scheme", options_.schemes});
  return all;
}

std::vector<size_t> ModelSpace::choices() const {
  std::vector<size_t> choices;
  for (const explore::ChipSpace::Dimension& d : dimensions()) choices.push_back(d.values.size());
  return choices;
}

explore::Design ModelSpace::design(const explore::Point& point) const {
  const Chip chip = chips_.at(point);
  dataflow::CostEngine engine(chip);
  explore::Design design{.area_mm2 = explore::area_mm2(chip, chips_.base()), .mapping = {}, .bound = {}};
  std::map<std::string, double> bound;  // seconds, by what binds
  for (const explore::Job& job : jobs_[point.back()]) {
    const dataflow::KernelCost cost = engine.cost(job.kernel);
    design.latency_s += job.times * cost.latency_s;
    design.energy_j += job.times * cost.energy_j;
    bound[cost.bound] += job.times * cost.latency_s;
  }
  double longest = 0;
  for (const auto& [name, seconds] : bound)
    if (seconds > longest) longest = seconds, design.bound = name;
  return design;
}

explore::Evaluated ModelSpace::evaluate(const explore::Point& point) const {
  try {
    explore::Evaluated e = explore::evaluated(design(point), options_.limits);
    if (!options_.perplexity.empty()) {
      const double perplexity = options_.perplexity.at(options_.schemes[point.back()]);
      e.objectives.push_back(perplexity);
      if (options_.max_perplexity && perplexity > *options_.max_perplexity)
        e.violation += perplexity / *options_.max_perplexity - 1;
    }
    return e;
  } catch (const Error& error) {
    return {.point = point, .objectives = {}, .refused = error.reason.what};
  }
}

std::vector<std::pair<std::string, std::string>> ModelSpace::schedules(const explore::Point& point) const {
  const std::vector<PhaseKernel>& kernels = kernels_[point.back()];
  ChipCoster coster(chips_.at(point));
  const PhaseResult phase = coster.cost(kernels);
  std::vector<std::pair<std::string, std::string>> files;
  std::map<std::string, int> taken;
  for (size_t k = 0; k < kernels.size(); ++k) {
    const KernelRow& row = phase.rows.at(k);
    if (row.schedule.empty()) continue;
    std::vector<std::string> sizes;
    for (const auto& [name, value] : kernels[k].facts.sizes) sizes.push_back(text(name, " = ", value));
    const int number = ++taken[row.function];
    files.emplace_back(
        text(row.function.substr(0, 100), number > 1 ? text("_", number) : "", ".py"),
        text("# ", row.function, sizes.empty() ? "" : ": " + join(sizes, ", "), "\n# ", row.tile, "\n", row.schedule));
  }
  return files;
}

std::map<std::string, double> perplexities_of(const fs::path& study_folder) {
  const fs::path file = study_folder / "study.json";
  if (!fs::is_regular_file(file))
    fail({.what = text("there is no ", file.string()),
          .needs = "the folder of a finished study",
          .hint = "run `sator study MODEL -o FOLDER` first"});
  const Study study = from_json(parse_json(read_file(file), file.string()), file.string());
  std::map<std::string, double> all;
  for (const SchemeResult& scheme : study.schemes)
    if (scheme.perplexity) all[scheme.name] = *scheme.perplexity;
  if (all.empty())
    fail({.what = text(file.string(), " has no perplexities"),
          .needs = "a study that has run its model",
          .hint = "run it without --shapes-only"});
  return all;
}

}  // namespace sator::study
