// The tables of a study whose rows are schemes: their columns once, for the terminal and for the page.
#pragma once

#include <functional>

#include "study/result.h"

namespace sator::study {

/// A figure in a table: its words, and its value, by which the page sorts.
struct Figure {
  std::string words;
  std::optional<double> value;
};

struct FigureColumn {
  std::string head, below;            // in the terminal, in two lines
  size_t width = 0;                   // there; 0: the column is on the page alone
  std::string page_head, page_below;  // on the page; empty: as in the terminal
  std::function<Figure(const SchemeResult&)> figure;
  std::function<bool(const SchemeResult&)> is_best = {};  // what the page marks; absent: nothing
  bool begins_group = false;                              // the first of those that belong together
};

/// Perplexity, its difference to the reference, bytes.
std::vector<FigureColumn> quality_columns(const Study& study);

/// Speeds on this machine; none where no speed was measured.
std::vector<FigureColumn> speed_columns(const Study& study);

/// What prefill, and then decode, cost on a chip.
std::vector<FigureColumn> chip_columns(const Study& study, size_t chip);

}  // namespace sator::study
