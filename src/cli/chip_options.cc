#include "cli/chip_options.h"

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

dataflow::Goal goal_of(const GoalArguments& a) {
  dataflow::Goal goal;
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
