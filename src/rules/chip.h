// The default schedule of a product for a described chip: its loops on the array's PEs and in time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/node.h"

namespace sator::schedule {
class Schedule;
}

namespace sator::rules {

/// How the loops around a product run on an array of PEs. Loops are numbered from the outermost of the unscheduled nest.
struct ArrayNest {
  /// A loop over blocks of consecutive values; within a block run the next one of the same loop, the PEs, and what one PE
  /// does at one stamp.
  struct Turn {
    size_t loop = 0;
    int64_t block = 1;
  };
  /// PEs side by side along an axis of the array on which a loop's values lie, and how many consecutive ones each takes at
  /// once.
  struct Side {
    size_t loop = 0;
    int64_t values = 1, at_once = 1;
  };
  /// Blocks of consecutive values of a loop, one per core, and how many blocks there are.
  struct Share {
    size_t loop = 0;
    int64_t block = 1, parts = 1;
  };
  std::vector<Share> cores;         // the first one changes from core to core; none: one core does all
  std::vector<Turn> time;           // outermost first
  std::vector<Side> rows, columns;  // the first one changes from PE to PE; a loop on both has its outer digit on rows
  /// Of a loop that is on no axis: values that one PE takes at one stamp.
  std::vector<Side> at_once;
  /// Per memory of the chip, outermost first: loops of time around what it holds. 0: whole tensors.
  std::vector<int64_t> held_since;
  std::string weight;  // name of the buffer that lies where weights are held
  /// Buffers made and used inside of the function that stand in the chip's outermost memory all the same.
  std::vector<std::string> stored_outside;
};

/// Writes the nest as steps of the schedule: splits, a reorder, and the loops along the array bound to pe.x (rows) and pe.y
/// (columns), those over the cores' blocks to core.x, core.y, core.z. What one PE does at one stamp is unrolled; what memories hold stands on
/// the block, as kHeldSince, kWeight and, where something does, kStoredOutside.
/// Errors: a step is refused; the block's loops are not those of the nest.
void schedule_on_array(schedule::Schedule& s, const std::string& block, const ArrayNest& nest);

/// The same nest for an array that is called like an instruction: what the PEs do at one stamp, innermost, gives way to a
/// tensor intrinsic, whose implementation runs along pe.x and pe.y (array_intrin.h). The block is called `_o` then. Blocks of
/// cores are whole tiles of the intrinsic.
/// Errors: as schedule_on_array; loops along one axis are several, or one loop is along both; what the innermost loops
/// compute is not the intrinsic.
void tensorize_on_array(schedule::Schedule& s, const std::string& block, const ArrayNest& nest,
                        const std::string& tensor_intrin);

/// Rounds the extents of a product's iterators up to whole tiles, so that it can be tensorized: pad_einsum, with kPadding on
/// the blocks that fill up with zeros ("in") and bring back ("out"). For the cost engine these are no work: outside of the chip
/// the tensor lies as it is, and its zeros are made on the way in.
///   tiles   one per iterator of the block, in its order; 1 leaves an iterator as it is
/// Errors: as pad_einsum.
void pad_for_array(schedule::Schedule& s, const std::string& block, const std::vector<int64_t>& tiles);

inline constexpr const char* kPadding = "sator.padding";

/// Annotations of a block that schedule_on_array or tensorize_on_array has scheduled.
inline constexpr const char* kHeldSince = "sator.held_since";
inline constexpr const char* kWeight = "sator.weight";
inline constexpr const char* kStoredOutside = "sator.stored_outside";

}  // namespace sator::rules
