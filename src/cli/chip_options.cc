#include "cli/chip_options.h"

#include <charconv>

#include "base/error.h"
#include "base/text.h"
#include "cli/matmul_options.h"

namespace sator::cli {

std::vector<Option> chip_options(ChipArguments& a) {
  return {{"--pe ROWSxCOLUMNS", "another size of the chip's array", &a.pe},
          {"--dataflow WHAT", "what stays in the PEs", &a.dataflow, false, {"os", "ws", "is"}},
          {"--tile I,J,K", "tiles of matmuls in the chip's memories; 0 for a whole extent", &a.tile}};
}

std::vector<Option> route_options(RouteArguments& a) {
  return {
      {"--routes", "compare the ways to bring the chip into the program: schedule, tensorize, patterns", &a.compare},
      {"--routes-host CHIP", text("the described chip that runs what a route leaves off [", a.host, "]"), &a.host}};
}

std::vector<Option> goal_options(GoalArguments& a) {
  return {{"--objective WHAT",
           "what mappings are chosen for; edp: energy times latency [latency]",
           &a.objective,
           false,
           {"latency", "energy", "edp"}},
          {"--energy-within PERCENT",
           "the least energy within so many percent of the best latency",
           &a.energy_within,
           false,
           {},
           at_least(0)}};
}

std::vector<Option> limit_options(GoalArguments& a) {
  return {{"--loop-order LIST", "iterators whose outermost loops stand in this order: k,i", &a.loop_order},
          {"--tile-bounds LIST", "limits of searched tiles: i=64,j<=256,k>=32", &a.tile_bounds}};
}

namespace {

/// "i=64", "j<=256" or "k>=32".
dataflow::LoopLimits::TileBounds bounds_of(std::string_view given, const std::string& list) {
  dataflow::LoopLimits::TileBounds bounds;
  const size_t sign = given.find_first_of("<>=");
  const std::string_view rest = sign == given.npos ? "" : given.substr(sign);
  const std::string_view relation = rest.starts_with("<=") || rest.starts_with(">=") ? rest.substr(0, 2)
                                    : rest.starts_with("=")                          ? rest.substr(0, 1)
                                                                                     : "";
  const std::string_view number = trim(rest.substr(relation.size()));
  int64_t value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  bounds.iterator = std::string(trim(given.substr(0, sign)));
  if (relation.empty() || bounds.iterator.empty() || error != std::errc() || end != number.data() + number.size() ||
      value < 1)
    fail({.what = text("--tile-bounds ", list, ": ", string_literal(std::string(given))),
          .needs = "an iterator, one of = <= >=, and an integer of at least 1; commas between limits",
          .hint = "as in --tile-bounds i=64,j<=256; a shell wants quotes around < and >"});
  if (relation != "<=") bounds.least = value;
  if (relation != ">=") bounds.most = value;
  return bounds;
}

}  // namespace

dataflow::Goal goal_of(const GoalArguments& a) {
  dataflow::Goal goal;
  if (a.loop_order)
    for (std::string_view name : split(*a.loop_order, ',')) goal.limits.order.emplace_back(trim(name));
  if (a.tile_bounds)
    for (std::string_view bound : split(*a.tile_bounds, ','))
      goal.limits.tiles.push_back(bounds_of(trim(bound), *a.tile_bounds));
  if (a.objective == "energy") goal.objective = dataflow::Objective::energy;
  if (a.objective == "edp") goal.objective = dataflow::Objective::edp;
  if (!a.energy_within) return goal;
  if (goal.objective != dataflow::Objective::latency)
    fail({.what = text("--energy-within is given with --objective ", *a.objective),
          .needs = "a latency to stay close to",
          .hint = "leave one of them out"});
  goal.energy_within = *a.energy_within / 100;
  return goal;
}

dataflow::ChipChanges changes_of(const ChipArguments& a) {
  dataflow::ChipChanges changes;
  if (a.pe) {
    const std::vector<int64_t> size = integers_of("--pe", *a.pe, 'x', 2, 1);
    changes.pe = {size[0], size[1]};
  }
  struct Word {
    const char* word;
    Stationary means;
  };
  static constexpr Word kWords[] = {{"os", Stationary::output}, {"ws", Stationary::weight}, {"is", Stationary::input}};
  for (const Word& w : kWords)
    if (a.dataflow == w.word) changes.dataflow = w.means;
  if (a.tile) {
    const std::vector<int64_t> tile = integers_of("--tile", *a.tile, ',', 3, 0);
    changes.tile = {tile[0], tile[1], tile[2]};
  }
  return changes;
}

}  // namespace sator::cli
