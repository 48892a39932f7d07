// Products on a chip with TENET's files: mapped by them, counted exactly, timed by TENET's formula.
#pragma once

#include "dataflow/cost/cost.h"
#include "dataflow/counts/count_memo.h"
#include "dataflow/tenet/tenet_text.h"

namespace sator::dataflow {

/// The chip's files, read.
/// Errors: those of the reader, with file and line; a mapping of other iterators than i, j, k, or b, i, j, k.
TenetArray tenet_array_of(const Chip& chip);

/// A product on the array. The mapping's iterators are taken by position: rows, columns and reduction of the product, before
/// them its batch, if the mapping has four; else batches run in turn.
///   counts      of all tensors of the statement, codes and scales among them
///   tenet       delay_in, delay_out: items of 16 bits that are new to the PEs, over the bandwidth of pe_array, and the
///               latency - 1; delay_compute: MACs / PEs that ever work. Elements that are made on their way are no items
///   traffic     of the memory beside the array: what is new to the PEs; of those further out: each element once
/// Errors: the product is none of i, j, k; a count that the engine refuses.
/// Source: Lu et al., "TENET", ISCA 2021, and its program, branch master (metrics.h).
StatementCost cost_on_tenet_array(const Work& work, const Product& product, const PrecisionChoice& choice,
                                  const Chip& chip, const TenetArray& array, CountMemo& memo);

/// The statement's problem without elements that are made on their way: what TENET's files state.
Problem moved_alone(const StatementCost& cost, Problem problem);

/// Latency by TENET's formula: of each product the longest of delay_in, delay_out, delay_compute, one after the other.
/// Beside the formula stand what the vector unit does, after the products, and the launch. Memories other than the
/// one at the array take no time.
void find_tenet_latency(KernelCost& cost, const Chip& chip);

/// Items that the scratchpad can hand over and take in a cycle, both together.
double items_per_cycle(const Chip& chip);

}  // namespace sator::dataflow
