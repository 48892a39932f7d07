#include "formats/scalesim/compute.h"

#include "base/error.h"
#include "base/text_line.h"

namespace sator::formats {
namespace {

/// 64-bit arithmetic that refuses what does not fit.
struct Checked {
  const ScalesimLayer& layer;
  int64_t product(int64_t a, int64_t b) const {
    int64_t out = 0;
    if (__builtin_mul_overflow(a, b, &out)) overflow();
    return out;
  }
  int64_t sum(int64_t a, int64_t b) const {
    int64_t out = 0;
    if (__builtin_add_overflow(a, b, &out)) overflow();
    return out;
  }
  [[noreturn]] void overflow() const {
    fail({.what = text("layer ", shown(layer.name), " gives counts of more than 64 bits on this array"),
          .needs = "every count below 2^63",
          .hint = "use a smaller array or a smaller layer"});
  }
};

}  // namespace

SystolicShape systolic_shape(const ScalesimConfig& config, const ScalesimLayer& layer) {
  SystolicShape shape{.rows = config.rows, .cols = config.cols};
  switch (config.dataflow) {
    case Stationary::output: shape.along_rows = layer.m, shape.along_cols = layer.n, shape.streamed = layer.k; break;
    case Stationary::weight:
      shape.along_rows = layer.k, shape.along_cols = layer.n, shape.streamed = layer.m, shape.preload = true;
      break;
    default:  // input: a configuration says nothing else
      shape.along_rows = layer.k, shape.along_cols = layer.m, shape.streamed = layer.n, shape.preload = true;
      break;
  }
  return shape;
}

ScalesimCompute scalesim_compute(const ScalesimConfig& config, const ScalesimLayer& layer) {
  const Checked checked{layer};
  // fold_cycles adds at most four sizes: with these bounds it cannot pass 64 bits, nor can rounding up.
  constexpr int64_t kLargest = int64_t{1} << 60;
  if (config.rows > kLargest || config.cols > kLargest || layer.m > kLargest || layer.n > kLargest ||
      layer.k > kLargest)
    checked.overflow();
  const SystolicShape shape = systolic_shape(config, layer);
  const int64_t row_folds = shape.row_folds(), col_folds = shape.col_folds();
  ScalesimCompute out;
  out.folds = checked.product(row_folds, col_folds);
  out.cycles = checked.product(out.folds, shape.fold_cycles()) - 1;
  const int64_t pes = checked.product(config.rows, config.cols);
  const int64_t ifmap = checked.product(layer.m, layer.k), filter = checked.product(layer.k, layer.n),
                ofmap = checked.product(layer.m, layer.n);
  out.macs = checked.product(ofmap, layer.k);
  switch (config.dataflow) {
    case Stationary::output:
      out.ifmap_sram_reads = checked.product(ifmap, col_folds);
      out.filter_sram_reads = checked.product(filter, row_folds);
      out.ofmap_sram_writes = ofmap;
      break;
    case Stationary::weight:
      out.ifmap_sram_reads = checked.product(ifmap, col_folds);
      out.filter_sram_reads = filter;
      out.ofmap_sram_writes = checked.product(ofmap, row_folds);
      break;
    default:  // input
      out.ifmap_sram_reads = ifmap;
      out.filter_sram_reads = checked.product(filter, col_folds);
      out.ofmap_sram_writes = checked.product(ofmap, row_folds);
      break;
  }
  out.ofmap_sram_writes_reported = out.ofmap_sram_writes;
  if (config.dataflow == Stationary::output)
    out.ofmap_sram_writes_reported =
        checked.sum(out.ofmap_sram_writes, checked.product(out.folds, config.rows + config.cols));
  // The used rows of all row folds add up to along_rows, and so do the columns.
  out.mapping_efficiency = static_cast<double>(shape.along_rows) * static_cast<double>(shape.along_cols) /
                           (static_cast<double>(pes) * static_cast<double>(out.folds));
  const double reported_cycles =
      static_cast<double>(shape.fold_cycles()) + (shape.preload ? static_cast<double>(config.cols - 1) : 0.0);
  out.compute_utilization = out.mapping_efficiency * static_cast<double>(shape.streamed) / reported_cycles;
  return out;
}

}  // namespace sator::formats
