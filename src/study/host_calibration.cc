#include "study/host_calibration.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/text.h"

namespace sator::study {

namespace {

using dataflow::Accuracy;
using dataflow::BoundModel;

// Kernels scatter by more than a fit could still gain.
constexpr dataflow::FitOptions kFit{.steps = 60, .linear_beyond = 0.3, .from_the_fit = true, .still = 1e-5};
constexpr size_t kLeastOfKind = 20;  // of which the outermost on each side is left out of the interval
constexpr size_t kLeastKernels = 24, kLeastShapes = 3;

std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> out(values.size());
  for (size_t i = 0; i < order.size();) {
    size_t j = i;
    while (j < order.size() && values[order[j]] == values[order[i]]) ++j;
    for (size_t k = i; k < j; ++k) out[order[k]] = static_cast<double>(i + j - 1) / 2;
    i = j;
  }
  return out;
}

/// Kinds of kernels differ in how far estimates are off: those with enough of them get an interval of their own.
void add_kinds(Calibration& calibration, const std::vector<HostKernel>& kernels, const std::vector<bool>& held_out,
               const std::vector<double>& ratios) {
  std::map<std::string, std::vector<double>> of_kind;
  for (size_t k = 0, next = 0; k < kernels.size(); ++k)
    if (!held_out[k]) of_kind[kernels[k].kind].push_back(ratios[next++]);
  for (std::string_view kind : kKernelKinds) {
    const std::vector<double>& values = of_kind[std::string(kind)];
    if (values.size() < kLeastOfKind) continue;
    const auto [low, high] = dataflow::interval_of(values, calibration.level);
    calibration.kinds.push_back({std::string(kind), low, high});
  }
}

HostAccuracy accuracy_among(std::string words, const std::vector<HostKernel>& kernels, const HostFit& fit,
                            const std::function<bool(size_t)>& chosen) {
  std::vector<double> estimated, measured;
  size_t within = 0;
  for (size_t k = 0; k < kernels.size(); ++k) {
    if (!chosen(k)) continue;
    estimated.push_back(fit.estimated_s[k]), measured.push_back(measured_s(kernels[k]));
    const auto [low, high] = interval_for(fit.calibration, kernels[k].kind);
    within += measured.back() >= low * estimated.back() && measured.back() <= high * estimated.back();
  }
  HostAccuracy out{.words = std::move(words)};
  if (measured.empty()) return out;
  out.accuracy = dataflow::accuracy_of(estimated, measured, fit.calibration.low, fit.calibration.high);
  out.accuracy.coverage = static_cast<double>(within) / static_cast<double>(measured.size());
  out.rank_correlation = rank_correlation(estimated, measured);
  return out;
}

}  // namespace

std::pair<double, double> interval_for(const Calibration& calibration, std::string_view kind) {
  for (const KindInterval& k : calibration.kinds)
    if (k.kind == kind) return {k.low, k.high};
  return {calibration.low, calibration.high};
}

double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() < 2) return 1;
  const std::vector<double> x = ranks(a), y = ranks(b);
  const double mean = static_cast<double>(a.size() - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < a.size(); ++i)
    xy += (x[i] - mean) * (y[i] - mean), xx += (x[i] - mean) * (x[i] - mean), yy += (y[i] - mean) * (y[i] - mean);
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

double measured_s(const HostKernel& kernel) { return kernel.median_us * 1e-6; }

std::vector<bool> hold_out_shapes(const std::vector<HostKernel>& kernels) {
  // Per kind of shape: shapes by the least work that was seen of each.
  std::map<std::string, std::map<std::string, double>> work;
  auto family = [](const HostKernel& k) {
    return k.kind == "batched" || k.kind == "other" ? k.kind : std::string("weights");
  };
  for (const HostKernel& k : kernels) {
    double volume = static_cast<double>(k.cost.macs);
    for (const dataflow::StatementCost& s : k.cost.statements) volume += static_cast<double>(s.vector_ops) * 1e-6;
    auto [at, fresh] = work[family(k)].try_emplace(k.shape, volume);
    if (!fresh) at->second = std::min(at->second, volume);
  }
  std::set<std::pair<std::string, std::string>> out;
  for (const auto& [name, shapes] : work) {
    std::vector<std::pair<double, std::string>> order;
    for (const auto& [shape, volume] : shapes) order.emplace_back(volume, shape);
    std::sort(order.begin(), order.end());
    for (size_t i = 1; i < order.size(); i += 3) out.emplace(name, order[i].second);
  }
  std::vector<bool> held;
  for (const HostKernel& k : kernels) held.push_back(out.contains({family(k), k.shape}));
  return held;
}

HostFit fit_host(const std::vector<HostKernel>& kernels, const std::vector<bool>& held_out, const Chip& chip,
                 const std::string& source) {
  std::vector<dataflow::MeasuredKernel> measured;
  std::set<std::string> shapes;
  size_t training = 0;
  for (size_t k = 0; k < kernels.size(); ++k) {
    measured.push_back({kernels[k].cost, kernels[k].shape, measured_s(kernels[k])});
    if (!held_out[k]) shapes.insert(kernels[k].shape), ++training;
  }
  if (training < kLeastKernels || shapes.size() < kLeastShapes)
    fail({.what = text(training, " kernels of ", shapes.size(), " shapes are left to fit to"),
          .needs = text("at least ", kLeastKernels, " kernels of ", kLeastShapes, " shapes"),
          .hint = "calibrate with a model of more layers' shapes, or with more schemes"});
  const dataflow::CalibrationModel& model = dataflow::find_model("engine");
  const BoundModel all = bind_kernels(std::move(measured), chip);
  std::vector<bool> trains(held_out.size());
  for (size_t k = 0; k < trains.size(); ++k) trains[k] = !held_out[k];
  std::vector<double> ratios;
  HostFit fit{.calibration = calibrate(model, only(all, trains), chip.name, source, kFit, &ratios),
              .held_out = held_out};
  add_kinds(fit.calibration, kernels, held_out, ratios);
  fit.estimated_s = estimates(model, all, fit.calibration);
  auto add = [&](const std::string& words, const std::function<bool(size_t)>& chosen) {
    HostAccuracy row = accuracy_among(words, kernels, fit, chosen);
    if (row.accuracy.rows > 0) fit.rows.push_back(std::move(row));
  };
  add("fitted to", [&](size_t k) { return !held_out[k]; });
  add("held out", [&](size_t k) { return held_out[k]; });
  for (const char* kind : {"gemm", "gemv", "batched", "other"})
    add(text("held out, ", kind), [&](size_t k) { return held_out[k] && kernels[k].kind == kind; });
  return fit;
}

std::string json_lines(const std::vector<HostKernel>& kernels, const HostFit& fit, double clock_hz) {
  std::string out;
  for (size_t n = 0; n < kernels.size(); ++n) {
    const HostKernel& k = kernels[n];
    const double estimated_us = fit.estimated_s[n] * 1e6;
    nlohmann::ordered_json j = {{"model", k.model},
                                {"scheme", k.scheme},
                                {"phase", k.phase},
                                {"tokens", k.tokens},
                                {"context", k.context},
                                {"function", k.function},
                                {"kind", k.kind},
                                {"shape", k.shape}};
    if (k.k > 0) j["batch"] = k.batch, j["i"] = k.i, j["j"] = k.j, j["k"] = k.k;
    j["calls"] = k.calls;
    j["least_us"] = k.least_us;
    j["median_us"] = k.median_us;
    j["measured_us"] = measured_s(k) * 1e6;
    j["estimated_us"] = estimated_us;
    const auto [low, high] = interval_for(fit.calibration, k.kind);
    j["low_us"] = estimated_us * low;
    j["high_us"] = estimated_us * high;
    j["bound"] = k.cost.bound;
    for (const dataflow::ResourceCost& r : k.cost.resources)
      j["described_us"][r.name] = static_cast<double>(r.cycles) / clock_hz * 1e6;
    j["held_out"] = static_cast<bool>(fit.held_out[n]);
    out += j.dump() + "\n";
  }
  return out;
}

}  // namespace sator::study
