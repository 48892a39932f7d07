#pragma once

#include <string>
#include <string_view>

#include "dataflow/counts/relation.h"

namespace sator::dataflow {

/// The four numbers that end a pe_array file. TENET reads the two sizes and never uses them.
struct TenetHardware {
  int64_t l1_size = 0;
  int64_t l2_size = 0;
  int64_t bandwidth_bits_per_cycle = 64;
  int64_t latency_cycles = 0;
};

/// The texts of TENET's three files, and what messages call them.
struct TenetTexts {
  std::string_view pe_array, mapping, statement;
  std::string pe_array_name = "pe_array", mapping_name = "mapping", statement_name = "statement";
};

struct TenetInput {
  Problem problem;
  TenetHardware hardware;
};

/// Reads TENET's three files: tuples, floor(e/c), e%c, + - *, chained comparisons joined by `and`, unions by
/// `;`. Errors: each names the file, the line and the column, and what is allowed there. Beyond TENET's own
/// reader, which silently counts nothing, it is an error if tuple names or ranks of the three files disagree.
TenetInput parse_tenet(const TenetTexts& texts);

/// An array and a mapping, for statements of `rank` iterators that are still to come.
struct TenetArray {
  Array array;
  TenetHardware hardware;
  Mapping mapping;
  std::string tuple;  // "S"
  size_t rank = 0;
};

/// Reads pe_array and mapping alone; `statement` is not looked at. Errors: as parse_tenet's.
TenetArray parse_tenet_array(const TenetTexts& texts);

/// The same files back; parsing them gives an equal problem.
std::string tenet_array_text(const Array& array, const TenetHardware& hardware);
std::string tenet_mapping_text(const Problem& problem);
std::string tenet_statement_text(const Statement& statement);

}  // namespace sator::dataflow
