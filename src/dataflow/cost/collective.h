#pragma once

#include <cstdint>

#include "target/chip.h"

namespace sator::dataflow {

/// Seconds in which `chips` chips, each with `bytes` of its own, all have the sum: tensor parallelism does this twice per
/// layer. A ring passes 2 (n - 1) / n of the bytes over each link, in 2 (n - 1) messages.
/// Errors: the chip has no link, or links fewer chips.
/// Source: Thakur et al., "Optimization of Collective Communication Operations in MPICH", 2005 (ring, Rabenseifner).
double all_reduce_s(const Chip& chip, int64_t chips, double bytes);

/// Energy of the same, over all links, in joules.
double all_reduce_j(const Chip& chip, int64_t chips, double bytes);

}  // namespace sator::dataflow
