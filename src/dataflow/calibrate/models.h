// What measurements can be calibrated with: each model knows which rows it can read, and has few constants of its own.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "dataflow/calibrate/fit.h"
#include "dataflow/calibrate/rows.h"
#include "dataflow/cost/cost.h"
#include "target/calibration.h"

namespace sator::dataflow {

/// A model on given rows: those it can read, as samples, in their order.
struct BoundModel {
  std::vector<Parameter> parameters;
  Predict predict;
  std::vector<Sample> samples;
  std::vector<size_t> rows;  // per sample: the number of its row
  /// Octaves of each extent of a sample within which measured ones say what it is off by (nearby.h); empty: they do not.
  std::vector<double> reach = {};
  std::vector<std::string> undecided = {};  // constants that the rows say nothing of: they are left out
};

struct CalibrationModel {
  std::string_view name, does;
  std::string_view takes;  // fields of a row
  std::string_view unit;   // of measurements and estimates
  /// Errors: the model needs a chip, and there is none.
  BoundModel (*bind)(const std::vector<Row>& rows, const Chip* chip);
};

/// GEMMs on a GPU: tiles on multiprocessors in waves, beside memory; s.
///   time = (start + longer(tiles, memory) + what of the shorter is not hidden) * what neighbours are off by
/// Tiles: of all sizes and cuts of the reduction the quickest; a tile's operands cost beside its multiply-accumulates in
/// proportion to 1/height + 1/width; the multiprocessors' rate is the smaller of the peak's share and what the power allows.
BoundModel bind_gpu_gemm(const std::vector<Row>& rows, const Chip* chip);

/// Layers on Gemmini's RTL under a mapping of DOSA's notation; cycles.
///   time = p-norm(array, DMA) + the part of the shorter before the first tile + start
/// Array: instructions of at most 16 rows, each at least as long as the next weights' load. DMA: 64-byte lines that hit or
/// miss the second level, per tile, and rows of outputs.
BoundModel bind_gemmini_rtl(const std::vector<Row>& rows, const Chip* chip);

/// Tokens of a model under llama.cpp's quantized formats; s per token.
///   time = start + bytes / rate + weights * work of the format's class
BoundModel bind_quantized_decode(const std::vector<Row>& rows, const Chip* chip);

/// The cost engine on a chip's description; s. Its calibration is one of the chip (target/calibration.h). Times that the rows do
/// not depend on stay as described.
BoundModel bind_engine(const std::vector<Row>& rows, const Chip* chip);

/// A kernel that ran on the chip itself, as the description costs it without a calibration.
struct MeasuredKernel {
  KernelCost cost;
  std::string group;
  double seconds = 0;
};

/// Model "engine" on kernels: factors by the class of products, as far as there are kernels with such work. Rows are the kernels' numbers.
BoundModel bind_kernels(std::vector<MeasuredKernel> kernels, const Chip& chip);

std::span<const CalibrationModel> calibration_models();

/// Errors: there is no such model (with those there are).
const CalibrationModel& find_model(std::string_view name);

/// The samples of some of the rows.
///   chosen   per row
BoundModel only(const BoundModel& model, const std::vector<bool>& chosen);

/// What estimates samples as the training ones say: constants fitted to them, and neighbours among them. The bound model must
/// outlive it.
Estimate learn(const BoundModel& model, const std::vector<Sample>& training, const FitOptions& options = {});

/// measured / estimated of every sample when its group is left out.
std::vector<double> left_out_ratios(const BoundModel& model, const FitOptions& options = {});

/// Fits, and finds the interval from fits that leave each group out in turn.
///   ratios   if not null: measured / estimated of each sample by the fit that has left its group out
Calibration calibrate(const CalibrationModel& model, const BoundModel& training, const std::string& chip,
                      const std::string& source, const FitOptions& options = {}, std::vector<double>* ratios = nullptr);

/// Estimates of the samples with a calibration's constants.
/// Errors: the calibration is another model's.
std::vector<double> estimates(const CalibrationModel& model, const BoundModel& bound, const Calibration& calibration);

/// Of estimates beside the samples' measurements, within the calibration's interval.
Accuracy accuracy(const CalibrationModel& model, const BoundModel& bound, const Calibration& calibration);

}  // namespace sator::dataflow
