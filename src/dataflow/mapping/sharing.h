#pragma once

#include <cstdint>
#include <vector>

#include "dataflow/mapping/mapper.h"

namespace sator::dataflow {

/// Elements of an access when each iterator runs over `block` consecutive values from an aligned start.
double elements_of(const Access& access, const std::vector<int64_t>& block);

/// Cycles in which a memory moves bits in and out.
inline double transfer_cycles(const Memory& memory, double read_bits, double write_bits) {
  const double reads = read_bits / 8 / memory.read_bytes_per_cycle,
               writes = write_bits / 8 / memory.write_bytes_per_cycle;
  return memory.shared_port ? reads + writes : (reads > writes ? reads : writes);
}

/// Ways to cut output axes of a product among the chip's cores: per iterator the size of the blocks of consecutive values
/// that each core takes one of; long ones are whole tiles along one side of the array or the other. Of those with the least
/// work for the busiest core, and then the least to fetch, a few. With one core there is one way. What is summed later stays with one core.
/// On a chip with barrier_cycles, where the best of these leaves cores waiting for operands or without work, also ways
/// that cut the longest reduction in 2, 4, 8 ..., in whole rows of the array.
///   grain   per iterator: blocks are whole multiples of it, the product's extents too; empty: of 1
std::vector<std::vector<int64_t>> ways_to_share(const Work& work, const Product& product, const Chip& chip,
                                                const Beside& beside, const std::vector<int64_t>& grain = {});

}  // namespace sator::dataflow
