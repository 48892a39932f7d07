// Tables of the page: the figures of schemes, sortable where the page's script runs.
#pragma once

#include "study/result.h"

namespace sator::study {

/// A cell of a table.
///   value   by which rows are sorted; absent: by the words
struct TableCell {
  std::string words;
  std::optional<double> value = {};
  bool best = false;      // of its column
  bool of_phase = false;  // the first of a phase's columns
};
std::string cell(const TableCell& c);

/// A table that page_script() lets readers sort by a column; `heads` and `body` are its rows.
///   css     further classes of what it scrolls in: "wide"
std::string sortable_table(const std::string& heads, const std::string& body, std::string_view css = "");

/// Perplexity, its difference to the reference, divergence and sizes of each scheme.
std::string quality_section(const Study& study);
/// Speeds on this machine with their limits; empty where none was measured.
std::string speed_section(const Study& study);
/// What each scheme costs on a chip, both phases.
std::string chip_table(const Study& study, size_t chip);

/// Sorts the tables of the page: each head of a column becomes a button. Without it the page reads the same.
std::string_view page_script();

}  // namespace sator::study
