// The engine's constants for this machine's own description, from kernels that ran here.
#pragma once

#include "study/host_kernels.h"

namespace sator::study {

/// How estimates of some kernels lie beside their measurements.
struct HostAccuracy {
  std::string words;  // "held out", "gemm, held out"
  dataflow::Accuracy accuracy;
  double rank_correlation = 0;  // Spearman's
};

struct HostFit {
  Calibration calibration;
  std::vector<bool> held_out;       // per kernel
  std::vector<double> estimated_s;  // likewise, with the calibration
  std::vector<HostAccuracy> rows;   // trained on, held out, held out by kind
};

/// The measurement that the constants are fitted to.
double measured_s(const HostKernel& kernel);

/// Which kernels no fit may see: of weights, of attention's sizes and of the extents of other kernels, in the order of their work, every
/// third shape with all its kernels.
std::vector<bool> hold_out_shapes(const std::vector<HostKernel>& kernels);

/// Fits to the kernels that are not held out. The interval is that of fits which leave each of their shapes out in turn.
/// Errors: fewer than 24 kernels or 3 shapes to fit to.
HostFit fit_host(const std::vector<HostKernel>& kernels, const std::vector<bool>& held_out, const Chip& chip,
                 const std::string& source);

/// Measured / estimated of kernels of a kind: the interval of the kind, or that of all.
std::pair<double, double> interval_for(const Calibration& calibration, std::string_view kind);

/// One JSON object per kernel and line: what it is, measured, estimated, low, high; and how long each resource
/// would work by the description alone.
std::string json_lines(const std::vector<HostKernel>& kernels, const HostFit& fit, double clock_hz);

/// Spearman's correlation: Pearson's of the ranks; equal values share their mean rank. Of fewer than two, 1.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace sator::study
