#include "dataflow/calibrate/models.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "dataflow/calibrate/nearby.h"

namespace sator::dataflow {

std::span<const CalibrationModel> calibration_models() {
  static constexpr CalibrationModel kModels[] = {
      {"gpu_gemm",
       "GEMMs on GPUs: tiles in waves beside memory, under a power limit",
       "device, M, N, K (B), dtype or dt, latency_ms or us",
       "s",
       bind_gpu_gemm},
      {"gemmini_rtl",
       "layers on Gemmini's RTL: instructions beside DMA lines",
       "prob, arch, mapping, gemmini_rtl_cycles",
       "cycles",
       bind_gemmini_rtl},
      {"quantized_decode",
       "token times under llama.cpp's formats: bytes, and work per weight by class of format",
       "quant, bits_per_weight, size_GiB, tg128_tok_s",
       "s",
       bind_quantized_decode},
      {"engine",
       "GEMMs by the cost engine on a chip's description",
       "M, N, K (B), dtype or dt, latency_ms or us",
       "s",
       bind_engine},
  };
  return kModels;
}

const CalibrationModel& find_model(std::string_view name) {
  std::vector<std::string> names;
  for (const CalibrationModel& m : calibration_models()) {
    if (m.name == name) return m;
    names.emplace_back(m.name);
  }
  const std::vector<std::string> near = nearest_names(name, names);
  fail({.what = text("there is no model ", name),
        .needs = text("one of ", join(names, ", ")),
        .hint = near.empty() ? "choose one of them" : text("did you mean ", near[0], "?")});
}

BoundModel only(const BoundModel& model, const std::vector<bool>& chosen) {
  BoundModel some{
      .parameters = model.parameters, .predict = model.predict, .samples = {}, .rows = {}, .reach = model.reach};
  for (size_t i = 0; i < model.samples.size(); ++i)
    if (chosen.at(model.rows[i])) {
      some.samples.push_back(model.samples[i]);
      some.rows.push_back(model.rows[i]);
    }
  return some;
}

namespace {

std::vector<CalibrationNeighbour> neighbours_by(const BoundModel& model, const std::vector<double>& constants,
                                                const std::vector<Sample>& samples) {
  if (model.reach.empty()) return {};
  std::vector<double> estimated;
  for (const Sample& s : samples) estimated.push_back(model.predict(constants, s.features));
  return neighbours_of(samples, estimated);
}

/// What share of rows an interval must hold so that it holds `level` of those of a further group, whose rows are off together.
/// Fewer than ten groups cannot say it: then it holds for rows.
/// Source: after Lee, Barber and Willett, "Distribution-free inference with hierarchical data", 2023.
double level_for_a_group(double level, size_t groups) {
  const double asked = level * (1 + 1 / static_cast<double>(groups));
  return asked < 1 ? asked : level;
}

}  // namespace

Estimate learn(const BoundModel& model, const std::vector<Sample>& training, const FitOptions& options) {
  const std::vector<double> constants = fit(model.parameters, model.predict, training, options);
  return [&model, constants, nearby = Nearby(neighbours_by(model, constants, training), model.reach)](const Sample& s) {
    return model.predict(constants, s.features) * nearby.factor(s);
  };
}

std::vector<double> left_out_ratios(const BoundModel& model, const FitOptions& options) {
  return left_out_ratios(model.samples,
                         [&](const std::vector<Sample>& training) { return learn(model, training, options); });
}

Calibration calibrate(const CalibrationModel& model, const BoundModel& training, const std::string& chip,
                      const std::string& source, const FitOptions& options, std::vector<double>* out_ratios) {
  if (training.samples.size() < training.parameters.size())
    fail({.what = text(training.samples.size(), " rows are too few for ", training.parameters.size(), " constants"),
          .needs = text("as many rows as model ", model.name, " has constants, and rather some for each"),
          .hint = "measure more, or choose more rows with --where and --train"});
  const std::vector<double> constants = fit(training.parameters, training.predict, training.samples, options);
  BoundModel from = training;
  if (options.from_the_fit)
    for (size_t i = 0; i < constants.size(); ++i)
      if (from.parameters[i].spread == 0) from.parameters[i].start = constants[i];
  const std::vector<double> ratios = left_out_ratios(from, options);
  if (out_ratios) *out_ratios = ratios;
  Calibration c{.model = std::string(model.name),
                .chip = chip,
                .source = source,
                .rows = static_cast<int64_t>(training.samples.size())};
  std::set<std::string> groups;
  for (const Sample& s : training.samples) groups.insert(s.group);
  c.groups.assign(groups.begin(), groups.end());
  for (size_t i = 0; i < constants.size(); ++i)
    c.constants.push_back({training.parameters[i].name, constants[i], training.parameters[i].unit});
  c.neighbours = neighbours_by(training, constants, training.samples);
  std::tie(c.low, c.high) = interval_of(ratios, level_for_a_group(c.level, groups.size()));
  for (double r : ratios) c.mean_error += std::abs(1 / r - 1) / static_cast<double>(ratios.size());
  return c;
}

std::vector<double> estimates(const CalibrationModel& model, const BoundModel& bound, const Calibration& calibration) {
  if (calibration.model != model.name)
    fail({.what = text("the calibration is one of model ", calibration.model),
          .needs = text("a calibration of model ", model.name),
          .hint = text("use --model ", calibration.model),
          .where = calibration.file});
  std::vector<double> constants, out;
  for (const Parameter& p : bound.parameters) constants.push_back(calibration.constant(p.name));
  const Nearby nearby(calibration.neighbours, bound.reach, calibration.file);
  for (const Sample& s : bound.samples) out.push_back(bound.predict(constants, s.features) * nearby.factor(s));
  return out;
}

Accuracy accuracy(const CalibrationModel& model, const BoundModel& bound, const Calibration& calibration) {
  std::vector<double> measured;
  for (const Sample& s : bound.samples) measured.push_back(s.measured);
  return accuracy_of(estimates(model, bound, calibration), measured, calibration.low, calibration.high);
}

}  // namespace sator::dataflow
