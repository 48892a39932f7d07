#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "formats/timeloop/spec.h"

namespace sator::formats::timeloop {

namespace {

std::string list(SpaceSet set, const Workload& w) {
  std::vector<std::string> names;
  for (size_t s = 0; s < w.spaces.size(); ++s)
    if (set >> s & 1) names.push_back(w.spaces[s].name);
  return text("[", join(names, ", "), "]");
}

void write_set(std::string& out, std::string_view key, SpaceSet set, const Workload& w) {
  if (set) out += text("    ", key, ": ", list(set, w), "\n");
}

void write_loops(std::string& out, const std::vector<Loop>& loops, const Workload& w) {
  std::vector<std::string> factors, order, bound(w.dimensions.size(), "1");
  std::vector<bool> placed(w.dimensions.size(), false);
  for (const Loop& loop : loops) {
    bound[loop.dimension] = text(loop.bound, loop.last > 0 && loop.last < loop.bound ? text(",", loop.last) : "");
    order.push_back(w.dimensions[loop.dimension]);
    placed[loop.dimension] = true;
  }
  for (size_t d = 0; d < w.dimensions.size(); ++d) {
    factors.push_back(text(w.dimensions[d], "=", bound[d]));
    if (!placed[d]) order.push_back(w.dimensions[d]);
  }
  bool single = true;  // Timeloop reads a permutation letter by letter
  for (const std::string& name : w.dimensions) single &= name.size() == 1;
  out += text("    factors: ", join(factors, " "), "\n");
  out +=
      single ? text("    permutation: ", join(order, ""), "\n") : text("    permutation: [", join(order, ", "), "]\n");
}

}  // namespace

std::string mapping_text(const Mapping& mapping, const Workload& w, const Architecture& a) {
  SpaceSet all = (SpaceSet{1} << w.spaces.size()) - 1;
  std::string out = "mapping:\n";
  for (size_t l = mapping.levels.size(); l-- > 0;) {
    const LevelMapping& level = mapping.levels[l];
    std::string head = text("  - target: ", a.levels[l].name, "\n    type: ");
    out +=
        text(head, "bypass\n    keep: ", list(level.keep & all, w), "\n    bypass: ", list(all & ~level.keep, w), "\n");
    out += text(head, "temporal\n");
    write_loops(out, level.temporal, w);
    write_set(out, "no_temporal_reuse", level.no_temporal_reuse, w);
    write_set(out, "rmw_first_update", level.rmw_first_update, w);
    if (level.spatial.empty() && !level.no_multicast && !level.no_link_transfer) continue;
    out += text(head, "spatial\n");
    write_loops(out, level.spatial, w);
    int64_t along_x = 0;
    for (const Loop& loop : level.spatial) along_x += !loop.on_y;
    out += text("    split: ", along_x, "\n");
    write_set(out, "no_reuse", level.no_multicast, w);
    write_set(out, "no_link_transfer", level.no_link_transfer, w);
  }
  return out;
}

std::string problem_text(const Workload& w) {
  std::string out =
      text("problem:\n  shape:\n    name: ", w.name, "\n    dimensions: [", join(w.dimensions, ", "), "]\n");
  out += "    data-spaces:\n";
  for (const DataSpace& space : w.spaces) {
    out += text("      - name: ", space.name, "\n        projection:\n");
    for (const std::vector<ProjectionTerm>& rank : space.ranks) {
      std::vector<std::string> terms;
      if (!std::all_of(rank.begin(), rank.end(), [](const ProjectionTerm& t) { return t.coefficient == 1; }))
        fail({.what = text("data space ", space.name, " has an index with a factor"),
              .needs = "indices that are sums of loops",
              .hint = "write the stride as a coefficient by hand"});
      for (const ProjectionTerm& t : rank) terms.push_back(text("[", w.dimensions[t.dimension], "]"));
      out += text("          - [", join(terms, ", "), "]\n");
    }
    if (space.read_write) out += "        read-write: True\n";
  }
  out += "  instance:\n";
  for (size_t d = 0; d < w.dimensions.size(); ++d) out += text("    ", w.dimensions[d], ": ", w.bounds[d], "\n");
  return out;
}

std::string architecture_text(const Architecture& a) {
  std::string out = "architecture:\n  version: 0.3\n  subtree:\n    - name: system\n      local:\n";
  for (size_t l = a.levels.size(); l-- > 0;) {
    const StorageLevel& level = a.levels[l];
    out +=
        text("        - name: ", level.name, level.instances > 1 ? text("[0..", level.instances - 1, "]") : "", "\n");
    out += text("          class: ", l + 1 == a.levels.size() ? "DRAM" : "SRAM", "\n          attributes:\n");
    out += text("            word-bits: ", level.word_bits, "\n            block-size: 1\n");
    if (level.instances > 1) out += text("            meshX: ", level.mesh_x, "\n");
  }
  const int64_t units = a.compute.instances;
  out += text("        - name: ", a.compute.name, units > 1 ? text("[0..", units - 1, "]") : "", "\n");
  out += text("          class: intmac\n          attributes:\n            datawidth: 8\n");
  if (units > 1) out += text("            meshX: ", a.compute.mesh_x, "\n");
  return out;
}

}  // namespace sator::formats::timeloop
