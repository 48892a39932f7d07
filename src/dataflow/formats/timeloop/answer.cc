#include "dataflow/formats/timeloop/answer.h"

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace sator::dataflow {

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

namespace {

constexpr std::string_view kTexts[] = {"architecture", "problem", "mapping", "ert"};

void check_texts(const json& input) {
  if (!input.is_object())
    fail({.what = "the input is no object",
          .needs = "the keys architecture, problem, mapping and perhaps ert",
          .hint = "give the texts of Timeloop's files by these keys"});
  for (auto& [key, value] : input.items()) {
    bool known = key == "release";
    for (std::string_view k : kTexts) known |= key == k;
    if (!known)
      fail({.what = text("the input has the key ", sator::quoted(key)),
            .needs = "architecture, problem, mapping, ert, release",
            .hint = key == "sparse_optimizations" ? "sparse optimizations are not modelled; ask for the dense counts"
                                                  : "remove the key"});
    if (!value.is_string())
      fail({.what = text(key, " is no text"), .needs = "the text of the file", .hint = "give it as one string"});
  }
  for (std::string_view key : {"architecture", "problem", "mapping"})
    if (!input.contains(key))
      fail({.what = text("the input has no ", key),
            .needs = "architecture, problem and mapping",
            .hint = text("add the text of the ", key)});
}

timeloop::Release release_of(const json& input) {
  std::string name = input.value("release", "v3.0.3");
  if (name == "v3.0.3") return timeloop::Release::v3_0_3;
  if (name == "master") return timeloop::Release::master;
  fail({.what = text("there is no release ", sator::quoted(name)),
        .needs = "v3.0.3 or master",
        .hint = "leave the key out for the last release"});
}

}  // namespace

json answer_timeloop(const json& input) {
  check_texts(input);
  std::string texts[4];
  for (size_t i = 0; i < 4; ++i)
    if (input.contains(kTexts[i])) texts[i] = input[std::string(kTexts[i])].get<std::string>();
  timeloop::Input read = timeloop::parse({texts[0], texts[1], texts[2], texts[3]});
  timeloop::Model model(read.workload, read.architecture, release_of(input));
  timeloop::Figures figures;
  if (auto problem = model.evaluate(read.mapping, figures)) fail(std::move(*problem));
  return to_json(read, figures);
}

}  // namespace sator::dataflow
