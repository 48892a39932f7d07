// Patterns of a chip's file that are graphs: lines with names for values.
#pragma once

#include "target/chip_pattern.h"

namespace sator {

/// Reads `graph` and `results` of a table [[pattern]].
///
///     line:  NAMES = VALUE            several names are the items of an op with several results, _ one that nothing reads
///     VALUE: OPS(VALUE, ...)          OPS is an op, `a|b` either; with ? behind, the first argument may stand in its place
///            VALUE * VALUE, VALUE + VALUE, (VALUE)
///            NAME                     of a line before; else of a value from outside, wherever it stands the same
///            _                        any value from outside
///
/// The last line's value leaves the pattern; several do where `results` names them.
/// Errors, at the line: none of these; a name given twice, or before its line; one that is neither read nor a result; more
/// than kMostOpsOfGraph ops; several results of which one is optional.
void read_graph(KeyReader& in, ChipPattern& p);

inline constexpr size_t kMostOpsOfGraph = 32;

}  // namespace sator
