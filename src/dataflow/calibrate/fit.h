// Few constants from many measurements: deterministic least squares on the logarithm of estimated / measured.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace sator::dataflow {

/// A constant to be fitted. It is positive, and stays within its bounds.
struct Parameter {
  std::string name, unit;
  double start = 1, low = 1e-12, high = 1e12;
  /// What is known beforehand: ln(constant / start) lies so far from 0, give or take. Being as far off costs what a row costs
  /// whose residual is FitOptions::linear_beyond, so that measurements which say little of a constant leave it near its
  /// start. 0: nothing is known.
  double spread = 0;
};

/// One measurement, as a model sees it.
struct Sample {
  std::string group;             // what is left out together: a model, a GPU, a layer
  std::vector<double> features;  // of the workload, and of the chip; what each is, the model knows
  double measured = 0;           // in the model's unit
  /// Where its neighbours are looked for (nearby.h): among samples of the same family, and at these extents.
  std::string family = {};
  std::vector<double> at = {};
};

using Predict = std::function<double(const std::vector<double>& constants, const std::vector<double>& features)>;

struct FitOptions {
  int steps = 200;
  /// Residuals beyond this weigh like their absolute value and not their square, so that a few odd rows do not bend the rest.
  double linear_beyond = 0.05;
  bool from_the_fit = false;  // calibrate: fits that leave a group out begin where the one to all has ended
  double still = 1e-10;       // ends once a step takes less than this share off the sum
};

/// x of a x = b for a symmetric positive definite matrix, by Cholesky's method; empty if it is not.
std::vector<double> solve_symmetric(std::vector<std::vector<double>> a, std::vector<double> b);

/// Constants with the smallest sum over samples of the (softened) squares of ln(estimated / measured), by Levenberg and
/// Marquardt's method from the parameters' starts, in the logarithms of the constants. The same on every machine up to
/// rounding of ln and exp.
/// Errors: no samples; a sample that is not positive.
std::vector<double> fit(const std::vector<Parameter>& parameters, const Predict& predict,
                        const std::vector<Sample>& samples, const FitOptions& options = {});

/// How estimates lie beside measurements.
struct Accuracy {
  size_t rows = 0;
  double mean = 0, median = 0, p90 = 0;  // of |estimated / measured - 1|
  double log_correlation = 0;            // Pearson's, of the logarithms
  double coverage = 0;                   // share of rows within the interval
};

/// The share of measurements between low and high times the estimate is the coverage.
Accuracy accuracy_of(const std::vector<double>& estimated, const std::vector<double>& measured, double low,
                     double high);

/// What estimates a sample; and what learns to from others.
using Estimate = std::function<double(const Sample&)>;
using Learn = std::function<Estimate(const std::vector<Sample>& training)>;

/// measured / estimated of every sample when its group is left out of what is learned from; in the order of the samples. With
/// one group alone, groups are made of every fifth sample.
std::vector<double> left_out_ratios(const std::vector<Sample>& samples, const Learn& learn);

/// The same of a fit.
std::vector<double> left_out_ratios(const std::vector<Parameter>& parameters, const Predict& predict,
                                    const std::vector<Sample>& samples, const FitOptions& options = {});

/// Bounds between which the share `level` of the values lies, as much left out below as above, with the correction for the
/// number of values that makes it hold for a further one.
/// Source: Vovk et al., "Algorithmic Learning in a Random World", 2005 (conformal prediction).
std::pair<double, double> interval_of(std::vector<double> values, double level);

}  // namespace sator::dataflow
