#pragma once

#include <variant>
#include <vector>

#include "base/error.h"
#include "dataflow/counts/boxes.h"
#include "dataflow/counts/digits.h"
#include "dataflow/counts/relation.h"

namespace sator::dataflow {

/// What an instance at distance d from another is to it.
enum ShiftKind : uint8_t {
  kSameStamp = 1,   // same PE, same time: another copy of the instance's stamp
  kSelfBefore = 2,  // same PE, one stamp ago: temporal reuse
  kNeighbour = 4,   // a wired PE, now or one stamp ago: spatial reuse
  kSupplies = 8,    // any of the places `unique` looks at
};

/// Where the instances of one piece find others: for n in `where` (digits of piece `from`), n + d lies in
/// piece `to`, and its stamp stands in the relation `kinds` to n's.
struct Shift {
  size_t from, to;
  std::vector<int64_t> d;
  Box where;
  uint8_t kinds;
};

/// Instances by their stamps. Digits that no stamp shows are hidden: they make several instances per stamp.
struct StampForm {
  struct Piece {
    Box visible, hidden;
    bool operator==(const Piece&) const = default;
  };
  std::vector<size_t> visible, hidden;  // numbers of digits
  std::vector<Piece> pieces;
  std::vector<Shift> shifts;
  Wide macs = 0, space = 0, time = 0, spacetime = 0, pe_array = 0;
  std::optional<Wide> work_cycles;  // sum over time of the most instances that one PE runs at that stamp
  bool outside_array = false;       // some work falls on PEs that the array does not have
};

struct StampLimits {
  size_t shifts = 1 << 17;
  size_t tries = 1 << 12;     // values of a free digit, per equation
  size_t meetings = 1 << 22;  // pairs of pieces of equal constants x wires x ways in time
};

/// form: digits of a problem whose first rows are the space map, then the time map.
/// Errors: stamps whose order or images are no boxes; too many shifts.
std::variant<StampForm, Reason> to_stamps(const DigitForm& form, size_t space_rows, size_t time_rows,
                                          const Array& array, const StampLimits& limits = {});

}  // namespace sator::dataflow
