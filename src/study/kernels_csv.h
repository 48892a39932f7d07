// kernels.csv back into rows.
#pragma once

#include "study/result.h"

namespace sator::study {

/// One record of a CSV text after the other, by RFC 4180: fields in quotes may hold commas, line ends and doubled quotes.
/// Errors: a quote that does not end; text behind a closing quote; each names the source and the line.
std::vector<std::vector<std::string>> parse_csv(std::string_view csv, std::string_view source);

/// Gives each phase of the study its kernels from the text of kernels.csv: every field that has a column (fields.h). Schedules,
/// TENET's texts, energies by part and what inner memories move by kind have none.
/// Errors: a column is missing; a figure is none; a line names a scheme, chip or phase that the study lacks; a phase's kernels
/// do not add up to its cycles: the files are of different runs. Each names the source and the line.
void add_kernels(Study& study, std::string_view csv, std::string_view source);

}  // namespace sator::study
