// What the texts of the kernels of a paged KV cache share (kv_append.cc, attention.cc, attention_work.cc): the holes that a shape fills, and
// the parameter that some have more.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "llm/attention.h"

namespace sator::llm {

using Holes = std::vector<std::pair<std::string, std::string>>;

/// Internal error: heads or sizes that do not fit each other.
void check_shape(const AttentionShape& shape);

/// The function of a text whose holes are those of a shape: {H}, {G}, {D}, {R} as AttentionShape says, {T} the pages' dtype, {K_PAGES} and
/// {V_PAGES} the pages' shapes. A text is read once: the programs of a model's schemes have the same.
tir::PrimFuncRef attention_function(const std::string& source, const AttentionShape& shape);

/// The parameter of a shape with additions to its scores, or with sinks: the handle, the buffer, what a block reads. Empty without.
struct ExtraParam {
  const char *handle = "", *buffer = "", *read = "";
};
ExtraParam extra_param(const AttentionShape& shape);

/// Rows of queries of one sequence that pass over the cache together: tokens of one head, or heads of one token that share keys.
struct QueryRows {
  std::string suffix;         ///< {S}, which ends the names of their buffers
  std::string first;          ///< the token of row 0
  bool of_one_token = false;  ///< rows are heads
  int64_t rows = 1;           ///< {R}; those beyond the last token, or the last head that shares the keys, repeat it
  std::string many = {};  ///< what the number of tokens is called, where it varies and none is repeated; empty: `rows`
};

constexpr int64_t kPagesOfBlock = 4;  ///< {B}: pages between two corrections of the running maximum

/// What a text says of row r, and of the position `at` whose product with its query, scaled, is `score`:
///   {TOKEN}, {HEAD}, {LAST}      its token, its head, the token of the last row
///   {SCORE}, {SEEN}              the score with what the shape adds to it; whether the row sees the position
///   {FROM}                       the first block of pages with a position that row 0, the earliest, sees. Where a window masks a whole
///                                block for a later row, its weights are wiped out by the first block with a position that is seen:
///                                each row sees its own
///   {FIRST_PEAK}, {FIRST_WEIGHT} the largest score before all positions, and a statement with its weight
///   {PEAKS}, {STORE}             the end of a block's search for the largest scores; a row's result
///   {S}, {R}, {B}, {16B}         see above; 16 B positions
Holes row_holes(const AttentionShape& shape, const QueryRows& rows, const std::string& at, std::string score);

/// How a page is asked for before it is read. One token waits for memory, and the run of a head in a page is too short for the CPU's own
/// prefetching: while it passes over a block's keys it asks for as much of the block's values, then for as much of the next block's keys.
struct Asking {
  explicit Asking(const AttentionShape& shape);
  /// The statement that asks for the line with unit `at` of "k_pages" or "v_pages" at the indices `page`; units, elements or pairs of them,
  /// are counted along the page past the ends of its rows.
  std::string statement(const char* pages, const std::string& page, const std::string& at) const;
  /// Lines of so many units, one at least.
  int64_t lines(int64_t units) const;

  int64_t units_of_line;
  bool in_pairs;
};

/// Heads of one token that pass over the cache together.
int64_t heads_together(const AttentionShape& shape);

/// The largest number up to `limit` that divides n.
int64_t largest_divisor(int64_t n, int64_t limit);

/// Attention in pairs whose products run on matrix tiles (attention_on_tiles.cc): the loops of the kernel's text.
std::string attention_on_tiles(const AttentionShape& shape);

/// The lines of a text that are not empty, each behind so many spaces.
std::string indented(const std::string& source, size_t spaces);

}  // namespace sator::llm
