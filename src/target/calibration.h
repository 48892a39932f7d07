#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "target/chip.h"

namespace sator {

/// One fitted number of a calibration.
struct CalibrationConstant {
  std::string name;
  double value = 0;
  std::string unit;
};

/// Kernels by the class of their products, in the order of the enum; last those without a product.
inline constexpr std::string_view kKernelKinds[] = {"gemm", "gemv", "batched", "other"};

/// Between which multiples of an estimate measurements of one kind of kernels lie.
struct KindInterval {
  std::string kind;
  double low = 1, high = 1;
};

/// A measured workload, and what the estimate by the constants alone is off by there: estimates of workloads near to it are
/// changed as it is (dataflow/calibrate/nearby.h).
///   family   what it is a neighbour of: "A100 16 bits"
///   at       its extents: M, N, K
///   ratio    measured / estimated
struct CalibrationNeighbour {
  std::string family;
  std::vector<double> at;
  double ratio = 1;
};

/// Of one family: what they say is found by solving as many equations.
inline constexpr size_t kMostNeighbours = 1000;

/// What was fitted from measurements of one chip or one family of chips, and how well it holds.
///   model      whose constants these are; "engine": those of the cost engine (for_chip)
///   groups     what was measured, among all that the source holds: "Llama-2-7b", "V100"
///   low, high  measured / estimated: the given share of measurements lies between
struct Calibration {
  std::string file;
  std::string model, chip, source;
  int64_t rows = 0;
  std::vector<std::string> groups;
  std::vector<CalibrationConstant> constants;
  std::vector<CalibrationNeighbour> neighbours;  // of models whose kernels are chosen by what stands near them
  double level = 0.9;
  double low = 1, high = 1;
  std::vector<KindInterval> kinds;  // where kinds of kernels have intervals of their own
  double mean_error = 0;  // mean of |estimated / measured - 1| over groups that were left out of the fit in turn

  /// Errors: there is no such constant.
  double constant(std::string_view name) const;
  double constant_or(std::string_view name, double otherwise) const;
};

/// A calibration from the text of its file. `file` is what messages call it.
/// Errors: as parse_chip.
Calibration parse_calibration(std::string_view toml, const std::string& file);

/// The text of a calibration's file; reads back as the same.
std::string to_toml(const Calibration& calibration);

/// Factors of a calibration of the cost engine that a file may leave out: they are 1 then. In the order of
/// ChipCalibration::array_time_of and vector_time_of.
inline constexpr std::string_view kArrayTimeOf[] = {"array_time_gemm", "array_time_gemv", "array_time_batched"};
inline constexpr std::string_view kVectorTimeOf[] = {
    "vector_time_gemm", "vector_time_gemv", "vector_time_batched", "vector_time_alone"};

/// The chip of a calibration that was fitted without one: of models that know theirs by the rows.
inline constexpr std::string_view kAnyChip = "any";

/// A calibration may be used for this model, and on this chip (null: none was named).
/// Errors: it is one of another model, or of another chip by name and aliases.
void require(const Calibration& calibration, std::string_view model, const Chip* chip);

/// A calibration of the cost engine, for a chip.
/// Errors: those of `require`.
ChipCalibration for_chip(const Calibration& calibration, const Chip& chip);

/// "calibrated on 208 rows of x.jsonl: 90 % of measurements lie between 0.93 and 1.08 times the estimate"; without one
/// "not calibrated to silicon".
std::string calibration_words(const Chip& chip);

}  // namespace sator
