#include "formats/timeloop/answer.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/text_line.h"
#include "formats/input_keys.h"

namespace sator::formats {

using nlohmann::json;

namespace timeloop {

namespace {

json level_json(const Input& input, const Figures& figures, size_t l) {
  const StorageLevel& level = input.architecture.levels[l];
  const LevelFigures& f = figures.levels[l];
  bool energies = input.no_energy.empty();
  json out = {{"name", level.name}, {"instances", level.instances}, {"cycles", f.cycles}};
  if (energies) out["energy_pJ"] = f.energy_pj;
  for (size_t s = 0; s < input.workload.spaces.size(); ++s) {
    const SpaceFigures& g = f.spaces[s];
    if (!g.kept) continue;
    json& space = out[input.workload.spaces[s].name];
    space = {
        {"cap", g.tile_words}, {"inst", g.instances}, {"reads", g.reads}, {"fills", g.fills}, {"updates", g.updates}};
    if (energies) space["energy_pJ"] = g.energy_pj;
  }
  return out;
}

/// A data space is a key of its level, so it cannot have the name of another key.
void check_keys(const Workload& w) {
  for (const DataSpace& s : w.spaces)
    for (std::string_view key : {"name", "instances", "cycles", "energy_pJ"})
      if (s.name == key)
        fail({.what = text("a data space has the name ", key, ", which is a key of the answer"),
              .needs = "names other than name, instances, cycles, energy_pJ",
              .hint = "rename the data space",
              .where = "problem"});
}

}  // namespace

json to_json(const Input& input, const Figures& figures) {
  check_keys(input.workload);
  const ComputeLevel& compute = input.architecture.compute;
  bool energies = input.no_energy.empty();
  json notes = json::array();
  json arithmetic = {{"name", compute.name},
                     {"instances", compute.instances},
                     {"cycles", figures.compute_cycles},
                     {"Utilized instances", figures.working_units},
                     {"Computes (total)", figures.operations}};
  if (energies) arithmetic["Energy (total)"] = figures.compute_energy_pj;
  json levels = json::array({arithmetic});
  for (size_t l = 0; l < figures.levels.size(); ++l) levels.push_back(level_json(input, figures, l));
  json out = {{"cycles", figures.cycles}, {"utilization", figures.utilization}, {"operations", figures.operations}};
  if (energies)
    out["energy_pJ"] = figures.energy_pj;
  else
    notes.push_back(text("no energies: ", input.no_energy));
  if (figures.clamped)
    notes.push_back("a count of partial sums that Timeloop finds below zero (and prints as nearly 2^64) reads 0");
  out["levels"] = std::move(levels);
  if (!notes.empty()) out["notes"] = std::move(notes);
  return out;
}

}  // namespace timeloop

json answer_timeloop(const json& input) {
  InputKeys keys(input, "timeloop");
  if (input.contains("sparse_optimizations"))
    fail({.what = "the input has the key \"sparse_optimizations\"",
          .needs = "dense counts",
          .hint = "sparse optimizations are not modelled; remove the key to have the dense counts",
          .where = "input"});
  // What is not known may change the meaning of what is: layouts, constraints.
  keys.only({"architecture", "problem", "mapping", "ert", "release"});
  std::string architecture = keys.text("architecture"), problem = keys.text("problem"), mapping = keys.text("mapping"),
              energy = keys.text_or_empty("ert");
  bool master = keys.choice("release", {"v3.0.3", "master"}) == "master";
  timeloop::Input read = timeloop::parse({architecture, problem, mapping, energy});
  timeloop::Model model(
      read.workload, read.architecture, master ? timeloop::Release::master : timeloop::Release::v3_0_3);
  timeloop::Figures figures;
  if (auto refusal = model.evaluate(read.mapping, figures)) fail(std::move(*refusal));
  return to_json(read, figures);
}

}  // namespace sator::formats
