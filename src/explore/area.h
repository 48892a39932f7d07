// The area of a described chip, part by part.
#pragma once

#include <string>
#include <vector>

#include "target/chip.h"

namespace sator::explore {

struct AreaPart {
  std::string name;  // "array", "registers", "vector", or the memory's
  double mm2 = 0;
};

/// Area of what changes with a chip's sizes, at its node: MAC units, registers, lanes of the vector unit, memories on the
/// chip. Wires between them, controllers and pads are left out.
///   MAC units   integers of a and w bits: 111.7 + 13.25 (a + w) / 2 + 7.34 a w um^2 at 45 nm, which passes through
///               synthesised units of 4, 8 and 16 bits; 2.5 times that where units split for several widths. Floats: a
///               multiplier and an adder, 3,000 um^2 up to 16 bits, 11,884 um^2 up to 32
///   registers   2.5 um^2 per bit; memories 0.58 um^2 per bit: a cell of 0.346 um^2, 60 % of the array
///   node        in proportion to its square
/// Source: BitFusion's synthesis (Sharma et al., ISCA 2018); Horowitz, ISSCC 2014 (floats); Mistry et al., IEDM 2007 (cell).
/// Registers and the share of cells in a memory are assumptions.
std::vector<AreaPart> area_parts(const Chip& chip);

/// Area of a chip that differs from `base` in its sizes: what `base` states and the difference of their parts, or the sum of
/// the parts where it states nothing.
double area_mm2(const Chip& chip, const Chip& base);

}  // namespace sator::explore
