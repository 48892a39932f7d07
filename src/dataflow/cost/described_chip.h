// The chip that a command's options describe.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "target/chip.h"

namespace sator::dataflow {

/// What options change of a described chip.
struct ChipChanges {
  std::optional<std::array<int64_t, 2>> pe;  // rows, columns of the array (of each core)
  std::optional<Stationary> dataflow;        // of all classes of products
  std::optional<std::array<int64_t, 3>> tile;
  int64_t chips = 1;  // that share each layer, over the chip's link

  bool any() const { return pe || dataflow || tile || chips != 1; }
};

/// A chip by name, by the path of its file, or by a folder with TENET's files; with the changes, and then with a name of its
/// own: "edge_npu32[16x16 ws]".
///
/// A folder holds one file of the array (pe_array, pe_array.p or any *.p) and one of the mapping (mapping, mapping.m or any
/// *.m), and perhaps chip.toml. That is a whole chip file, whose array has the size of the PE set; or it has no array, and
/// says what differs from the chip `base`, or without it from a plain one (1 GHz, one memory of the bandwidth of pe_array, no
/// vector unit, no energies): `name`, `description`, `source`, `clock_hz`, `launch_cycles` and [vector].
///
/// Errors: those of find_chip and of tenet_array_of; no or several such files; changes of a chip whose mapping is fixed by
/// files; an array of more than 65536 rows or columns; several chips without a link, or more than it joins.
Chip described_chip(const std::string& name_or_path, const ChipChanges& changes = {});

/// A described chip with changes. Errors: as described_chip's.
Chip changed(Chip chip, const ChipChanges& changes);

}  // namespace sator::dataflow
