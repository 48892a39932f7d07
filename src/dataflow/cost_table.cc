#include "dataflow/cost_table.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace sator::dataflow {

namespace {

std::string fixed(double v, int digits) {
  char out[64];
  std::snprintf(out, sizeof out, "%.*f", digits, v);
  return out;
}

/// Three digits and a unit with a prefix: 12.3 us, 4.56 GB/s.
std::string quantity(double v, const char* unit) {
  struct Prefix {
    double size;
    const char* name;
  };
  static constexpr Prefix kPrefixes[] = {
      {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}, {1e-3, "m"}, {1e-6, "u"}, {1e-9, "n"}};
  for (const Prefix& p : kPrefixes)
    if (std::abs(v) >= p.size) {
      char out[64];
      std::snprintf(out, sizeof out, "%.3g %s%s", v / p.size, p.name, unit);
      return out;
    }
  char out[64];
  std::snprintf(out, sizeof out, "%.3g %s", v, unit);
  return out;
}

std::string padded(std::string s, size_t width) {
  if (s.size() < width) s.append(width - s.size(), ' ');
  return s;
}
std::string right(const std::string& s, size_t width) {
  return s.size() < width ? std::string(width - s.size(), ' ') + s : s;
}

}  // namespace

std::string cost_table(const KernelCost& c, const Chip& chip) {
  std::string out = text("chip         ",
                         chip.name,
                         ": ",
                         chip.rows,
                         " x ",
                         chip.columns,
                         " PEs at ",
                         quantity(chip.clock_hz, "Hz"),
                         "\n");
  for (const StatementCost& s : c.statements)
    if (s.placement) out += text("mapping      ", s.placement->words, "\n");
  out += text("MACs         ",
              grouped(c.macs),
              "; ",
              fixed(c.mac_units_used, 1),
              " PEs at work on average; utilization ",
              fixed(100 * c.utilization, 1),
              " %\n");
  out += text("latency      ", grouped(c.latency_cycles), " cycles, ", quantity(c.latency_s, "s"), "\n");
  for (const CyclePart& part : c.latency_parts)
    out += text("  ",
                padded(part.name, 34),
                right(grouped(part.cycles), 18),
                " cycles  ",
                right(fixed(100.0 * static_cast<double>(part.cycles) /
                                static_cast<double>(std::max<int64_t>(1, c.latency_cycles)),
                            1),
                      5),
                " %\n");
  out += text("bound by     ", c.bound, "\n");
  for (const ResourceCost& r : c.resources) {
    const double slack = static_cast<double>(c.latency_cycles - r.cycles);
    out += text("  ",
                padded(r.name, 34),
                right(grouped(r.cycles), 18),
                " cycles  ",
                r.name == c.bound
                    ? "binds"
                    : text(fixed(100 * slack / static_cast<double>(std::max<int64_t>(1, c.latency_cycles)), 1),
                           " % of the latency is free"),
                "\n");
  }
  out += "memory\n";
  for (const MemoryCost& m : c.memories)
    out += text("  ",
                padded(m.name, 16),
                right(grouped(m.read_bytes), 18),
                " B read ",
                right(grouped(m.write_bytes), 18),
                " B written, ",
                quantity(m.achieved_bytes_per_s, "B/s"),
                " of ",
                quantity(m.available_bytes_per_s, "B/s"),
                "\n");
  out += text("energy       ", quantity(c.energy_j, "J"), " at ", c.energy_node_nm, " nm\n");
  for (const EnergyPart& part : c.energy_parts)
    out += text("  ", padded(part.name, 16), right(quantity(part.joules, "J"), 12), "  ", part.source, "\n");
  return out;
}

nlohmann::json cost_json(const KernelCost& c, const Chip& chip) {
  nlohmann::json parts = nlohmann::json::array(), resources = parts, memories = parts, energy = parts, mappings = parts;
  for (const CyclePart& p : c.latency_parts) parts.push_back({{"name", p.name}, {"cycles", p.cycles}});
  for (const ResourceCost& r : c.resources)
    resources.push_back({{"name", r.name}, {"cycles", r.cycles}, {"slack_cycles", c.latency_cycles - r.cycles}});
  for (const MemoryCost& m : c.memories)
    memories.push_back({{"name", m.name},
                        {"read_bytes", m.read_bytes},
                        {"write_bytes", m.write_bytes},
                        {"required_bytes_per_s", m.required_bytes_per_s},
                        {"achieved_bytes_per_s", m.achieved_bytes_per_s},
                        {"available_bytes_per_s", m.available_bytes_per_s}});
  for (const EnergyPart& e : c.energy_parts)
    energy.push_back({{"name", e.name}, {"energy_j", e.joules}, {"source", e.source}});
  for (const StatementCost& s : c.statements)
    if (s.placement) mappings.push_back({{"statement", s.name}, {"words", s.placement->words}});
  return {{"chip", chip.name},
          {"macs", c.macs},
          {"latency_cycles", c.latency_cycles},
          {"latency_s", c.latency_s},
          {"latency_parts", parts},
          {"bound", c.bound},
          {"resources", resources},
          {"mac_units_used", c.mac_units_used},
          {"utilization", c.utilization},
          {"memories", memories},
          {"energy_j", c.energy_j},
          {"energy_node_nm", c.energy_node_nm},
          {"energy_parts", energy},
          {"mappings", mappings},
          {"notes", c.notes}};
}

}  // namespace sator::dataflow
