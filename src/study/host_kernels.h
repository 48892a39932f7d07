// Kernels of models as they run on this machine, with the work that they do.
#pragma once

#include <functional>
#include <optional>

#include "base/file.h"
#include "dataflow/calibrate/models.h"
#include "target/chip.h"

namespace sator::study {

/// Of kernels that take less, the duration is mostly that of looking at the clock: they are not compared.
inline constexpr double kLeastCompared_us = 1;

/// A kernel at one size, over all its calls of a step and over all runs.
///   shape      what is held out together: the weight's "256x1024", attention's tokens and positions, else the extents
///   kind       "gemm", "gemv" or "batched" by the class of its product, "other" without one
///   median_us  of the calls; least_us: the shortest of them
struct HostKernel {
  std::string model, scheme, phase, function, kind, shape;
  int64_t tokens = 0, context = 0;
  int64_t batch = 0, i = 0, j = 0, k = 0;  // of its first product
  int64_t calls = 0;                       // of one step
  double least_us = 0, median_us = 0;
  dataflow::KernelCost cost;  // on the description, not calibrated
};

struct HostRuns {
  fs::path model;
  std::vector<std::string> schemes;
  std::vector<int64_t> prefills, contexts;  // tokens of a prompt; tokens that a decode step attends to
  int64_t rounds = 7;
  int64_t threads = 1;
};

/// What is run unless told: four schemes, prompts of 8 to 256 tokens, decode steps at 16 to 448.
HostRuns default_runs(const fs::path& model);

/// The median over kernels of the median time / the shortest time.
double noise_of(const std::vector<HostKernel>& kernels);

/// Runs every step once in each round, the schemes in turn. Sizes beyond the model's, and kernels that
/// take less than a microsecond, are left out.
/// Errors: those of opening the model and of the cost engine.
std::vector<HostKernel> run_kernels(const HostRuns& runs, const Chip& chip,
                                    const std::function<void(const std::string&)>& progress);

}  // namespace sator::study
