#include "dataflow/calibrate/nearby.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace sator::dataflow {

namespace {

constexpr double kNoise = 1;        // its variance, in that of the field
constexpr double kFurthest = 0.25;  // ln(measured / estimated): what is further off is an oddity of that sample

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  double square = 0;
  for (size_t i = 0; i < a.size(); ++i) square += (a[i] - b[i]) * (a[i] - b[i]);
  return std::exp(-square / 2);
}

}  // namespace

std::vector<CalibrationNeighbour> neighbours_of(const std::vector<Sample>& samples,
                                                const std::vector<double>& estimated) {
  std::map<std::string, size_t> counts, seen;
  for (const Sample& s : samples) counts[s.family] += !s.at.empty();
  std::vector<CalibrationNeighbour> out;
  for (size_t i = 0; i < samples.size(); ++i) {
    const Sample& s = samples[i];
    if (s.at.empty()) continue;
    const size_t every = (counts[s.family] + kMostNeighbours - 1) / kMostNeighbours;
    if (seen[s.family]++ % every != 0) continue;
    const double off = std::clamp(std::log(s.measured / estimated[i]), -kFurthest, kFurthest);
    out.push_back({s.family, s.at, std::exp(off)});
  }
  return out;
}

Nearby::Nearby(const std::vector<CalibrationNeighbour>& neighbours, std::vector<double> reach, const std::string& file)
    : reach_(std::move(reach)) {
  std::map<std::string, std::vector<double>> off;
  for (const CalibrationNeighbour& n : neighbours) {
    if (n.at.size() != reach_.size())
      fail({.what = text("a neighbour has ", n.at.size(), " extents"),
            .needs = text("the model's ", reach_.size()),
            .hint = "fit it again with `sator calibrate`",
            .where = file});
    families_[n.family].at.push_back(place(n.at));
    off[n.family].push_back(std::log(n.ratio));
  }
  for (auto& [name, family] : families_) {
    const size_t n = family.at.size();
    std::vector<std::vector<double>> a(n, std::vector<double>(n));
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j <= i; ++j)
        a[i][j] = a[j][i] = correlation(family.at[i], family.at[j]) + (i == j ? kNoise : 0);
    family.weights = solve_symmetric(std::move(a), std::move(off[name]));
  }
}

std::vector<double> Nearby::place(const std::vector<double>& at) const {
  std::vector<double> out;
  for (size_t i = 0; i < at.size(); ++i) out.push_back(std::log2(at[i]) / reach_[i]);
  return out;
}

double Nearby::factor(const Sample& sample) const {
  const auto found = families_.find(sample.family);
  if (found == families_.end() || sample.at.size() != reach_.size()) return 1;
  const Family& family = found->second;
  const std::vector<double> here = place(sample.at);
  double off = 0;
  for (size_t i = 0; i < family.weights.size(); ++i) off += family.weights[i] * correlation(here, family.at[i]);
  return std::exp(off);
}

}  // namespace sator::dataflow
