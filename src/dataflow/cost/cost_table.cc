#include "dataflow/cost/cost_table.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/figures.h"
#include "base/text.h"
#include "dataflow/cost/tenet_array.h"
#include "target/calibration.h"

namespace sator::dataflow {

namespace {

/// What is known of the best mapping of the space that was searched; up to three digits of a percent, rounded up.
std::string gap_words(double gap) {
  const double percent = std::max(0.0, std::ceil(gap * 1e4 - 1e-6) / 100);
  return text("no mapping of this space is more than ", fixed(percent, 2), " % faster");
}

/// Whether the chip states any energy of what the kernel did: 0 J would be a claim.
bool knows_energy(const KernelCost& c) { return c.energy_j > 0; }

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
                         chip.cores > 1 ? text(", on each of ", chip.cores, " cores") : "",
                         "\n");
  for (const StatementCost& s : c.statements)
    if (s.placement) {
      out += text("mapping      ", s.placement->words, "\n");
      if (const auto gap = s.placement->estimate.gap()) out += text("             ", gap_words(*gap), "\n");
    }
  out += text("MACs         ",
              grouped(c.macs),
              "; ",
              fixed(c.mac_units_used, 1),
              " PEs at work on average; utilization ",
              fixed(100 * c.utilization, 1),
              " %\n");
  out += text("latency      ", grouped(c.latency_cycles), " cycles, ", quantity(c.latency_s, "s"), "\n");
  if (c.latency_interval)
    out += text("  ",
                fixed(100 * chip.calibration->level, 0),
                " % of measurements lie between ",
                quantity(c.latency_interval->low_s, "s"),
                " and ",
                quantity(c.latency_interval->high_s, "s"),
                "\n");
  for (const CyclePart& part : c.latency_parts)
    out += text("  ",
                pad_right(part.name, 34),
                pad_left(grouped(part.cycles), 18),
                " cycles  ",
                pad_left(fixed(100.0 * static_cast<double>(part.cycles) /
                                   static_cast<double>(std::max<int64_t>(1, c.latency_cycles)),
                               1),
                         5),
                " %\n");
  out += text("bound by     ", c.bound, "\n");
  for (const ResourceCost& r : c.resources) {
    const double slack = static_cast<double>(c.latency_cycles - r.cycles);
    out += text("  ",
                pad_right(r.name, 34),
                pad_left(grouped(r.cycles), 18),
                " cycles  ",
                r.name == c.bound
                    ? "binds"
                    : text(fixed(100 * slack / static_cast<double>(std::max<int64_t>(1, c.latency_cycles)), 1),
                           " % of the latency is free"),
                "; 1 % faster saves ",
                fixed(r.elasticity, 2),
                " %\n");
  }
  if (c.bound == "launch")
    out += text("  launch: no resource works in it, and all are shorter; 1 % faster saves ",
                fixed(c.launch_elasticity, 2),
                " %\n");
  out += "memory\n";
  for (const MemoryCost& m : c.memories)
    out += text(
        "  ",
        pad_right(m.name, 16),
        pad_left(grouped(m.read_bytes), 18),
        " B read ",
        pad_left(grouped(m.write_bytes), 18),
        " B written, ",
        quantity(m.achieved_bytes_per_s, "B/s"),
        " of ",
        quantity(m.available_bytes_per_s, "B/s"),
        chip.tenet && &m == &c.memories.back() && m.available_bytes_per_s > 0
            ? text(": ",
                   fixed(items_per_cycle(chip) * m.achieved_bytes_per_s / m.available_bytes_per_s, 2),
                   " of ",
                   fixed(items_per_cycle(chip), 2),
                   " items per cycle")
            : "",
        m.compulsory_bytes > 0
            ? text(
                  "; ",
                  fixed(static_cast<double>(m.read_bytes + m.write_bytes) / static_cast<double>(m.compulsory_bytes), 2),
                  " x compulsory")
            : "",
        "\n");
  out += knows_energy(c) ? text("energy       ", quantity(c.energy_j, "J"), " at ", c.energy_node_nm, " nm\n")
                         : "energy       -: no energy is known of this chip\n";
  for (const EnergyPart& part : c.energy_parts)
    out += text("  ", pad_right(part.name, 16), pad_left(quantity(part.joules, "J"), 12), "  ", part.source, "\n");
  return out + (chip.tenet ? "estimate by TENET's formula\n" : text("estimate, ", calibration_words(chip), "\n"));
}

nlohmann::json cost_json(const KernelCost& c, const Chip& chip) {
  nlohmann::json parts = nlohmann::json::array(), resources = parts, memories = parts, energy = parts, mappings = parts;
  for (const CyclePart& p : c.latency_parts) parts.push_back({{"name", p.name}, {"cycles", p.cycles}});
  for (const ResourceCost& r : c.resources)
    resources.push_back(
        {{"name", r.name}, {"cycles", r.cycles}, {"slack_cycles", r.slack_cycles}, {"elasticity", r.elasticity}});
  for (const MemoryCost& m : c.memories)
    memories.push_back({{"name", m.name},
                        {"read_bytes", m.read_bytes},
                        {"write_bytes", m.write_bytes},
                        {"compulsory_bytes", m.compulsory_bytes},
                        {"required_bytes_per_s", m.required_bytes_per_s},
                        {"achieved_bytes_per_s", m.achieved_bytes_per_s},
                        {"available_bytes_per_s", m.available_bytes_per_s}});
  for (const EnergyPart& e : c.energy_parts)
    energy.push_back({{"name", e.name}, {"energy_j", e.joules}, {"source", e.source}});
  for (const StatementCost& s : c.statements) {
    if (!s.placement) continue;
    const Placement::Estimate& estimate = s.placement->estimate;
    const std::optional<double> gap = estimate.gap();
    mappings.push_back({{"statement", s.name},
                        {"words", s.placement->words},
                        {"estimated_cycles", estimate.cycles > 0 ? nlohmann::json(estimate.cycles) : nlohmann::json()},
                        {"least_cycles_of_space", gap ? nlohmann::json(estimate.least_cycles) : nlohmann::json()},
                        {"gap", gap ? nlohmann::json(*gap) : nlohmann::json()},
                        {"accumulator_bits_needed", s.accumulator_bits_needed}});
  }
  return {{"chip", chip.name},
          {"macs", c.macs},
          {"latency_cycles", c.latency_cycles},
          {"latency_s", c.latency_s},
          {"latency_low_s", c.latency_interval ? nlohmann::json(c.latency_interval->low_s) : nlohmann::json()},
          {"latency_high_s", c.latency_interval ? nlohmann::json(c.latency_interval->high_s) : nlohmann::json()},
          {"calibration", calibration_words(chip)},
          {"latency_parts", parts},
          {"bound", c.bound},
          {"launch_elasticity", c.launch_elasticity},
          {"resources", resources},
          {"mac_units_used", c.mac_units_used},
          {"utilization", c.utilization},
          {"memories", memories},
          {"energy_j", knows_energy(c) ? nlohmann::json(c.energy_j) : nlohmann::json()},
          {"energy_node_nm", knows_energy(c) ? nlohmann::json(c.energy_node_nm) : nlohmann::json()},
          {"energy_parts", energy},
          {"mappings", mappings},
          {"notes", c.notes}};
}

}  // namespace sator::dataflow
