#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dataflow/mapping/loop_limits.h"
#include "dataflow/programs/placement.h"
#include "dataflow/programs/work.h"

namespace sator::dataflow {

/// How the chip's PEs run the statement's precision, and what is made for them.
struct Pace {
  int64_t macs_per_stamp = 1;  // along a reduction iterator, in one PE
  int64_t cycles_per_stamp = 1;
  int sum_bits = 32;                              // of a partial sum
  std::optional<double> sustained_clock_hz = {};  // the precision's own
  /// Per access: cycles of the vector unit for one element that it makes on the way. Empty: none.
  std::vector<double> making_cycles;
};

/// What a kernel does beside a product: no mapping of the product changes it, but tiles say in which parts it is done.
struct Beside {
  /// Bits that move in and out of a memory, and those of them that it exchanges with one further out.
  struct Move {
    size_t memory = 0;
    double read_bits = 0, write_bits = 0;
    size_t from = 0;
    double in_bits = 0, out_bits = 0;
  };
  /// A statement on the vector unit.
  struct Step {
    double vector_cycles = 0;
    std::vector<size_t> accesses;  // of the product: it works in as many parts as the fewest of these tensors come in
    int64_t parts = 1;             // where there are none
    bool after = false;            // it takes what the product makes
    std::vector<Move> moves;
  };
  /// A tensor that the kernel makes and uses up: what of it stands at once needs room beside the product's tiles.
  struct Standing {
    std::string tensor;
    size_t memory = 0;             // on the chip, where it stands
    double bits = 0;               // of an element
    std::optional<size_t> access;  // of the product; absent: the vector unit makes it of what the product makes
    /// Iterators of the product that choose its elements, a bit each; and those of them along which it is used up part by
    /// part: outermost loops over these leave one part standing.
    uint64_t indexes = 0, in_parts = 0;
    double others = 1;     // elements for each choice of these
    bool running = false;  // sums to which more is added with each part of the output: they have to stay on the chip
    /// Where it stands outside: the vector unit's memory beside it, whether that unit makes it, and how often it reads it.
    size_t beside_vector_unit = 0;
    bool made_by_vector_unit = false;
    bool after = false;  // of what the product makes
    int64_t reads = 0;
  };
  std::vector<Step> steps;
  std::vector<Standing> standing;
  std::optional<ProductClass> kernel_class;  // of the kernel's first product, if that is another one
  /// Per access and iterator: whether the tensor's tiles along it come or go one after the other. Empty: all do.
  std::vector<std::vector<bool>> in_parts;
};

/// What a mapping is chosen for.
enum class Objective : uint8_t { latency, energy, edp };
struct Goal {
  Objective objective = Objective::latency;
  /// With Objective::latency: the least energy within this share of the best latency. Absent: within half a thousandth, by
  /// neighbours of the quickest.
  std::optional<double> energy_within;
  /// Of the loops of every product: what does not keep to them is not in the space that is searched.
  LoopLimits limits;

  bool only_latency() const { return objective == Objective::latency && !energy_within; }
};

/// "latency", "energy", "edp", or "energy within 2 % of the best latency".
std::string name_of(const Goal& goal);

/// Errors: a goal other than latency, or limits, on a chip whose mapping is given, by TENET's files or tiles.
void check_goal(const Chip& chip, const Goal& goal);

/// Whether iterator x numbers batches whose products a later statement sums up (groups of a scale): an output is complete
/// when all of them are through.
bool is_summed_later(const Product& product, const Beside& beside, size_t x);

/// Mappings for the chip's dataflow, the best for the goal by estimates first, at most `most` of them: two space
/// axes chosen from the product's access relations (outputs stay: one output axis of each factor; weights stay: a reduction
/// and an output axis of the weight) on all of the array or on part of it, tiles for the array and for every memory, and the
/// order of the loops.
/// The estimate follows KernelCost's formula by closed forms; it is exact where tiles divide and coordinates of tensors are
/// plain iterators.
/// Where the chip has several cores, output axes are cut into as many blocks of consecutive values, one per core. On a chip
/// with barrier_cycles also a reduction, where outputs leave half of the cores without work: each core then adds its part of
/// a sum to those in the first memory that all share.
/// Source: the traffic formula of nests of loops is Timeloop's (Parashar et al., ISPASS 2019).
/// Each states the lower bound of the space that was searched (Placement::Estimate).
/// Cost: hundreds to some thousand candidates and bounds of about a microsecond.
std::vector<Placement> placements(const Work& work, const Product& product, const Chip& chip, const Pace& pace,
                                  const Beside& beside, size_t most, const Goal& goal = {});

/// Whether the stamps of a mapping can be counted as its tensors will be: a way to share work among cores may cut an axis where
/// tiles do not end.
bool has_countable_stamps(const Work& work, const Placement& placement, const Chip& chip);

}  // namespace sator::dataflow
