#include "base/text.h"
#include "dataflow/formats/timeloop/spec.h"

namespace sator::dataflow::timeloop {

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
  std::vector<std::string> factors, order;
  std::vector<int64_t> bound(w.dimensions.size(), 1);
  std::vector<bool> placed(w.dimensions.size(), false);
  for (const Loop& loop : loops) {
    bound[loop.dimension] = loop.bound;
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

}  // namespace sator::dataflow::timeloop
