// Chips that differ from a described one in their sizes.
#pragma once

#include "explore/search.h"
#include "target/chip.h"

namespace sator::explore {

/// What may vary; an empty list keeps what the chip has.
struct ChipAxes {
  struct Array {
    int64_t rows = 0, columns = 0;
  };
  struct Buffer {
    std::string memory;
    std::vector<int64_t> bytes;
  };
  std::vector<Array> arrays;
  std::vector<Stationary> dataflows;
  std::vector<Buffer> buffers;
  std::vector<double> bandwidths;  // of the outermost memory, bytes/s
  std::vector<int64_t> cores;
};

/// The chips of a base and its axes.
class ChipSpace {
 public:
  struct Dimension {
    std::string name;
    std::vector<std::string> values;  // for people
  };

  /// Errors: a memory that the chip lacks or that has no size of its own; a size, bandwidth, number of PEs or cores that no
  /// chip has.
  ChipSpace(Chip base, ChipAxes axes);

  const Chip& base() const { return base_; }
  const std::vector<Dimension>& dimensions() const { return dimensions_; }
  /// Energy per bit of a memory grows with the square root of its size, as wires do. Ports keep their widths.
  ///   point   of these dimensions; further ones are ignored
  Chip at(const Point& point) const;

 private:
  Chip base_;
  ChipAxes axes_;
  std::vector<Dimension> dimensions_;
};

}  // namespace sator::explore
