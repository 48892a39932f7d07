// From the cost engine's results per kernel to a phase of the model.
#pragma once

#include "dataflow/cost/cost.h"
#include "study/result.h"

namespace sator::study {

/// What a run says of the calls of one kernel in one layer.
struct KernelCalls {
  std::string function, layer;
  int64_t count = 1;
  std::optional<double> duration_us;  // of one call, measured on this machine
};

/// The sizes of a product, read off which iterators index which of its tensors: Y[b,i,j] += X[b,i,k] * W[b,k,j], where W is
/// the factor that lies where weights are held. An iterator that several roles share counts in one of them.
struct ProductSize {
  int64_t batch = 1, i = 1, j = 1, k = 1;
  bool operator==(const ProductSize&) const = default;
};
/// Of a statement that runs on the array.
ProductSize product_size(const dataflow::StatementCost& statement);

/// A kernel's latency by what its cycles are spent on, as in a row.
Components components_of(const dataflow::KernelCost& cost);

/// The kernel's row: widths, sizes and the named components derived from the cost's statements.
///   components   Latency that the array binds is `array`; that the vector unit binds is split among its kinds of work by
///                their cycles; that a memory binds is split among what it moves by bits. Fractions of a cycle go to the
///                largest remainders, so that the parts sum to the whole. In kernels that touch the KV cache all of it
///                is `attention`.
///   checked      its counts were confirmed by listing every instance (check.h)
KernelRow kernel_row(const KernelCalls& calls, const dataflow::Kernel& kernel, const dataflow::KernelCost& cost,
                     const Chip& chip, bool checked = false);

/// The row of a kernel that the engine refused, with its words.
KernelRow uncosted_row(const KernelCalls& calls, std::string why);

/// The sum over kernels, each taken `count` times; kernels run one after the other.
///   latency, MACs, energy, bits, cycles of resources and components   add
///   ends of the interval of latency    add: a chip's model errs on all kernels alike
///   elasticities        the kernels' weighted by latency
///   achieved bytes/s    bytes / latency; required: bytes / the time that array or vector unit work, per kernel the longer
///   utilization         MAC slots used / MAC slots that the array had, at the precision of each kernel: the kernels'
///                       utilizations weighted by latency = macs / (latency_cycles * the array's MACs per cycle)
///   mac_units_used      the kernels' weighted by the stamps in which their arrays work
///   bound               the resource that binds the largest share of the cycles
///   precisions          MACs by widths asked and run
PhaseResult sum_of(std::vector<KernelRow> rows, const Chip& chip);

/// What reports say of a chip.
ChipFacts facts_of(const Chip& chip);

}  // namespace sator::study
