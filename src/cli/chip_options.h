// Options that name a described chip and change it, as several commands take them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/command.h"
#include "dataflow/cost/described_chip.h"
#include "dataflow/mapping/mapper.h"

namespace sator::cli {

inline constexpr const char* kChipHelp =
    "a described chip: its name, its file, or a folder with TENET's pe_array and mapping";

/// What the options below hold, as they were given.
struct ChipArguments {
  std::optional<std::string> pe, dataflow, tile;
};

/// --pe, --dataflow, --tile.
std::vector<Option> chip_options(ChipArguments& a);

/// Errors: a value that is not of its option's form.
dataflow::ChipChanges changes_of(const ChipArguments& a);

/// --objective, --energy-within: what searched mappings are chosen for; --loop-order, --tile-bounds: what they keep to.
struct GoalArguments {
  std::optional<std::string> objective;
  std::optional<double> energy_within;  // percent
  std::optional<std::string> loop_order, tile_bounds;
};
/// The first two; the other two.
std::vector<Option> goal_options(GoalArguments& a);
std::vector<Option> limit_options(GoalArguments& a);

/// Errors: --energy-within beside an objective that is not the latency; an order or a bound that cannot be read.
dataflow::Goal goal_of(const GoalArguments& a);

/// --routes, --routes-host.
struct RouteArguments {
  bool compare = false;
  std::string host = "cpu_avx512_vnni";
};
std::vector<Option> route_options(RouteArguments& a);

}  // namespace sator::cli
