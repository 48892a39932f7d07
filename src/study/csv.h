// study.csv and kernels.csv, as spreadsheets and scripts read them (RFC 4180).
#pragma once

#include <utility>
#include <vector>

#include "study/result.h"

namespace sator::study {

/// One line per scheme, chip and phase. Weight bytes, scale traffic, dequantize and rescale have columns of their own, in
/// bytes and in cycles; `ratio_` columns are the baseline's figure over the line's. Every memory of a chip has columns,
/// which are empty for chips that lack it.
std::string study_csv(const Study& study);

/// One line per kernel, scheme, chip and phase; figures are those of one of its `count` calls.
std::string kernels_csv(const Study& study);

/// Each schedule of a kernel on a chip once: the file's name within the study's folder, as column `schedule` of kernels.csv
/// has it, and its text.
std::vector<std::pair<std::string, std::string>> schedule_files(const Study& study);

}  // namespace sator::study
