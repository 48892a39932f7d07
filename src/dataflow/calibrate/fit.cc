#include "dataflow/calibrate/fit.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/text.h"

namespace sator::dataflow {

namespace {

class Fit {
 public:
  Fit(const std::vector<Parameter>& parameters, const Predict& predict, const std::vector<Sample>& samples,
      const FitOptions& options)
      : parameters_(parameters), predict_(predict), samples_(samples), options_(options) {}

  std::vector<double> run() {
    std::vector<double> at;
    for (const Parameter& p : parameters_) at.push_back(std::log(p.start));
    double damping = 1e-2, best = loss(residuals(at), at);
    for (int step = 0; step < options_.steps && damping < 1e10; ++step) {
      const std::vector<double> r = residuals(at);
      const std::vector<std::vector<double>> slopes = slopes_at(at);
      const size_t n = at.size();
      std::vector<std::vector<double>> a(n, std::vector<double>(n, 0));
      std::vector<double> b(n, 0);
      for (size_t s = 0; s < r.size(); ++s) {
        const double w = weight(r[s]);
        for (size_t i = 0; i < n; ++i) {
          b[i] -= w * slopes[i][s] * r[s];
          for (size_t j = 0; j <= i; ++j) a[i][j] += w * slopes[i][s] * slopes[j][s];
        }
      }
      for (size_t i = 0; i < n; ++i) {
        a[i][i] += stiffness(i), b[i] -= stiffness(i) * (at[i] - std::log(parameters_[i].start));
        for (size_t j = 0; j < i; ++j) a[j][i] = a[i][j];
      }
      bool better = false;
      while (!better && damping < 1e10) {
        std::vector<std::vector<double>> damped = a;
        for (size_t i = 0; i < n; ++i) damped[i][i] += damping * a[i][i] + 1e-9;
        std::vector<double> to = solve_symmetric(std::move(damped), b);
        if (!to.empty()) {
          for (size_t i = 0; i < n; ++i)
            to[i] = std::clamp(at[i] + to[i], std::log(parameters_[i].low), std::log(parameters_[i].high));
          const double now = loss(residuals(to), to);
          if (now < best) {
            better = true;
            const bool still = best - now < options_.still * best;
            best = now;
            at = to;
            if (still) return constants(at);
          }
        }
        damping = better ? std::max(1e-9, damping / 4) : damping * 4;
      }
    }
    return constants(at);
  }

 private:
  static std::vector<double> constants(const std::vector<double>& at) {
    std::vector<double> c;
    for (double v : at) c.push_back(std::exp(v));
    return c;
  }

  std::vector<double> residuals(const std::vector<double>& at) const {
    const std::vector<double> c = constants(at);
    std::vector<double> r;
    for (const Sample& s : samples_) r.push_back(std::log(std::max(1e-300, predict_(c, s.features)) / s.measured));
    return r;
  }

  /// slopes[i][s]: of residual s along the logarithm of constant i.
  std::vector<std::vector<double>> slopes_at(const std::vector<double>& at) const {
    constexpr double kStep = 1e-4;
    std::vector<std::vector<double>> slopes;
    for (size_t i = 0; i < at.size(); ++i) {
      std::vector<double> up = at, down = at;
      up[i] += kStep, down[i] -= kStep;
      std::vector<double> slope = residuals(up);
      const std::vector<double> below = residuals(down);
      for (size_t s = 0; s < slope.size(); ++s) slope[s] = (slope[s] - below[s]) / (2 * kStep);
      slopes.push_back(std::move(slope));
    }
    return slopes;
  }

  double weight(double r) const { return std::min(1.0, options_.linear_beyond / std::max(1e-12, std::abs(r))); }

  /// How much of the loss a constant's distance from its start costs: half of this times its square.
  double stiffness(size_t i) const {
    const double spread = parameters_[i].spread;
    return spread > 0 ? std::pow(options_.linear_beyond / spread, 2) : 0;
  }

  double loss(const std::vector<double>& residuals, const std::vector<double>& at) const {
    double sum = 0;
    const double d = options_.linear_beyond;
    for (double r : residuals) sum += std::abs(r) <= d ? r * r / 2 : d * (std::abs(r) - d / 2);
    for (size_t i = 0; i < at.size(); ++i)
      sum += stiffness(i) * std::pow(at[i] - std::log(parameters_[i].start), 2) / 2;
    return sum;
  }

  const std::vector<Parameter>& parameters_;
  const Predict& predict_;
  const std::vector<Sample>& samples_;
  const FitOptions& options_;
};

double quantile(const std::vector<double>& sorted, double share) {
  const double at =
      std::clamp(share * static_cast<double>(sorted.size()) - 0.5, 0.0, static_cast<double>(sorted.size() - 1));
  const size_t below = static_cast<size_t>(at), above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

std::vector<double> solve_symmetric(std::vector<std::vector<double>> a, std::vector<double> b) {
  const size_t n = b.size();
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      double sum = a[i][j];
      for (size_t k = 0; k < j; ++k) sum -= a[i][k] * a[j][k];
      if (i != j) {
        a[i][j] = sum / a[j][j];
      } else {
        if (!(sum > 0)) return {};
        a[i][i] = std::sqrt(sum);
      }
    }
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; ++k) b[i] -= a[k][i] * b[k];
    b[i] /= a[i][i];
  }
  return b;
}

std::vector<double> fit(const std::vector<Parameter>& parameters, const Predict& predict,
                        const std::vector<Sample>& samples, const FitOptions& options) {
  if (samples.empty())
    fail({.what = "there are no measurements to fit to",
          .needs = "at least one row that the model can read",
          .hint = "look at the filters of rows, and at what the model takes"});
  for (const Sample& s : samples)
    if (!(s.measured > 0) || !std::isfinite(s.measured))
      fail({.what = text("a measurement of ", s.group, " is ", s.measured),
            .needs = "a positive number",
            .hint = "remove the row"});
  return Fit(parameters, predict, samples, options).run();
}

Accuracy accuracy_of(const std::vector<double>& estimated, const std::vector<double>& measured, double low,
                     double high) {
  Accuracy a;
  a.rows = measured.size();
  if (a.rows == 0) return a;
  const double n = static_cast<double>(a.rows);
  std::vector<double> errors;
  double sx = 0, sy = 0, sxx = 0, syy = 0, sxy = 0;
  for (size_t i = 0; i < a.rows; ++i) {
    errors.push_back(std::abs(estimated[i] / measured[i] - 1));
    a.mean += errors.back() / n;
    const double ratio = measured[i] / estimated[i];
    if (ratio >= low && ratio <= high) a.coverage += 1 / n;
    const double x = std::log(estimated[i]), y = std::log(measured[i]);
    sx += x, sy += y, sxx += x * x, syy += y * y, sxy += x * y;
  }
  std::sort(errors.begin(), errors.end());
  a.median = quantile(errors, 0.5);
  a.p90 = quantile(errors, 0.9);
  const double vx = sxx - sx * sx / n, vy = syy - sy * sy / n;
  a.log_correlation = vx > 0 && vy > 0 ? (sxy - sx * sy / n) / std::sqrt(vx * vy) : 0;
  return a;
}

std::vector<double> left_out_ratios(const std::vector<Sample>& samples, const Learn& learn) {
  std::map<std::string, std::vector<size_t>> groups;
  for (size_t i = 0; i < samples.size(); ++i) groups[samples[i].group].push_back(i);
  if (groups.size() < 2) {
    groups.clear();
    for (size_t i = 0; i < samples.size(); ++i) groups[text(i % 5)].push_back(i);
  }
  std::vector<double> ratios(samples.size(), 1);
  for (const auto& [name, members] : groups) {
    std::vector<Sample> others;
    for (size_t i = 0, next = 0; i < samples.size(); ++i)
      if (next < members.size() && members[next] == i)
        ++next;
      else
        others.push_back(samples[i]);
    if (others.empty()) continue;
    const Estimate estimate = learn(others);
    for (size_t i : members) ratios[i] = samples[i].measured / estimate(samples[i]);
  }
  return ratios;
}

std::vector<double> left_out_ratios(const std::vector<Parameter>& parameters, const Predict& predict,
                                    const std::vector<Sample>& samples, const FitOptions& options) {
  return left_out_ratios(samples, [&](const std::vector<Sample>& training) -> Estimate {
    return [&predict, constants = fit(parameters, predict, training, options)](const Sample& s) {
      return predict(constants, s.features);
    };
  });
}

std::pair<double, double> interval_of(std::vector<double> values, double level) {
  if (values.empty()) return {1, 1};
  std::sort(values.begin(), values.end());
  // Each side leaves out (1 - level) / 2 of n + 1 values, the further one among them.
  const double n = static_cast<double>(values.size()), side = (1 - level) / 2 * (n + 1);
  const size_t below = static_cast<size_t>(std::max(1.0, std::floor(side + 1e-9))) - 1;
  const size_t skipped = std::min(below, values.size() - 1);
  return {values[skipped], values[values.size() - 1 - skipped]};
}

}  // namespace sator::dataflow
