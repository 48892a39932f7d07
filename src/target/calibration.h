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
  double level = 0.9;
  double low = 1, high = 1;
  double mean_error = 0;  // mean of |estimated / measured - 1| over groups that were left out of the fit in turn

  /// Errors: there is no such constant.
  double constant(std::string_view name) const;
};

/// A calibration from the text of its file. `file` is what messages call it.
/// Errors: as parse_chip.
Calibration parse_calibration(std::string_view toml, const std::string& file);

/// The text of a calibration's file; reads back as the same.
std::string to_toml(const Calibration& calibration);

/// A calibration of the cost engine, for a chip.
/// Errors: it is one of another chip, or of another model.
ChipCalibration for_chip(const Calibration& calibration, const Chip& chip);

/// "calibrated on 208 rows of x.jsonl: 90 % of measurements lie between 0.93 and 1.08 times the estimate"; without one
/// "not calibrated to silicon".
std::string calibration_words(const Chip& chip);

}  // namespace sator
