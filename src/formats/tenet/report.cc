#include "formats/tenet/report.h"

#include <algorithm>

#include "base/figures.h"
#include "base/text.h"
#include "dataflow/counts/boxes.h"
#include "dataflow/tenet/metrics.h"
#include "formats/tenet/answer.h"

namespace sator::formats {

using namespace dataflow;

namespace {

/// Rows of cells; the first column to the left, the others to the right.
std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> width;
  for (const auto& row : rows)
    for (size_t c = 0; c < row.size(); ++c) {
      if (c == width.size()) width.push_back(0);
      width[c] = std::max(width[c], row[c].size());
    }
  std::string out;
  for (const auto& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string space(width[c] - row[c].size(), ' ');
      out += c == 0 ? row[c] + space : "  " + space + row[c];
    }
    out += "\n";
  }
  return out;
}

/// p + offset for all p.
bool is_shift(const Link& link, std::vector<int64_t>& offset) {
  offset.clear();
  if (link.free_variables != 0 || !link.guards.empty()) return false;
  for (size_t k = 0; k < link.source.size(); ++k) {
    const QuasiAffine moved = link.source[k] - variable(static_cast<int>(k));
    if (!moved.is_constant()) return false;
    offset.push_back(moved.constant);
  }
  return true;
}

std::vector<int64_t> negative(std::vector<int64_t> offset) {
  for (int64_t& v : offset) v = -v;
  return offset;
}

/// A wire between two PEs in each direction, or around a ring.
bool leads_in_circles(const dataflow::Array& array) {
  std::vector<std::vector<int64_t>> shifts;
  for (const Link& link : array.interconnect) {
    std::vector<int64_t> offset;
    if (is_shift(link, offset)) shifts.push_back(offset);
    for (const QuasiAffine& e : link.source)
      for (const Term& t : e.terms)
        if (t.division && t.division->remainder && t.division->inner.constant != 0) return true;
  }
  const std::vector<int64_t> zero(static_cast<size_t>(array.pes.rank()), 0);
  return std::any_of(shifts.begin(), shifts.end(), [&](const auto& s) {
    return s != zero && std::find(shifts.begin(), shifts.end(), negative(s)) != shifts.end();
  });
}

/// The same problem with every wire turned round; nothing if a wire is no shift.
std::optional<Problem> turned(const Problem& problem) {
  Problem other = problem;
  for (Link& link : other.array.interconnect) {
    std::vector<int64_t> offset;
    if (!is_shift(link, offset)) return std::nullopt;
    link = link::shift(negative(offset));
  }
  return other;
}

int64_t saturated_sum(const Counts& counts) {
  Wide sum = 0;
  for (const TensorCounts& t : counts.tensors) sum += t.unique;
  return static_cast<int64_t>(std::min<Wide>(sum, INT64_MAX));
}

}  // namespace

std::vector<std::string> tenet_notes(const TenetInput& input, const Counts& c) {
  std::vector<std::string> notes;
  if (c.macs == 0) notes.push_back("the domain is empty: nothing runs");
  if (c.enumerated) notes.push_back("counted point by point: the relations do not resolve into boxes");
  if (c.outside_array)
    notes.push_back(
        "some work is mapped to PEs that the array does not have; as in TENET it counts, but keeps nothing for "
        "itself");
  if (c.spacetime < c.macs)
    notes.push_back(text("a stamp is no cycle: a PE runs ",
                         fixed(static_cast<double>(c.macs) / static_cast<double>(c.spacetime), 2),
                         " instances per stamp on average",
                         c.work_cycles ? text("; its most loaded PEs need ", grouped(*c.work_cycles), " cycles") : ""));
  if (leads_in_circles(input.problem.array)) {
    notes.push_back(
        "the wires lead in circles: PEs name each other as the source of what they need in one stamp, and "
        "UniqueVolume leaves it out altogether");
  } else if (!c.enumerated && !input.problem.array.interconnect.empty()) {
    if (auto other = turned(input.problem)) {
      auto counted = count_by_boxes(*other);
      if (auto* less = std::get_if<Counts>(&counted); less && saturated_sum(*less) < saturated_sum(c))
        notes.push_back(
            text("wires are read as self -> supplier; turned round they would lower the sum of UniqueVolume from ",
                 grouped(saturated_sum(c)),
                 " to ",
                 grouped(saturated_sum(*less))));
    }
  }
  return notes;
}

std::string tenet_table(const TenetInput& input, const Counts& c) {
  const TenetMetrics m = tenet_metrics(c, input.hardware);
  std::string out = text("instances    ", grouped(c.macs), " (MACs)\n");
  out += text("PEs          ",
              grouped(c.space),
              " of ",
              grouped(c.pe_array),
              " work at least once, ",
              fixed(m.avg_active_pe, 2),
              " on average; utilization ",
              fixed(100 * m.utilization, 1),
              " %\n");
  out += text("time stamps  ", grouped(c.time), "; PE-stamps ", grouped(c.spacetime));
  out += c.work_cycles ? text("; cycles at one MAC per PE and cycle ", grouped(*c.work_cycles), "\n\n") : "\n\n";
  std::vector<std::vector<std::string>> rows = {
      {"tensor", "TotalVolume", "UniqueVolume", "ReuseFactor", "TemporalReuse", "SpatialReuse", "IBW", "SBW", "Delay"}};
  std::vector<std::vector<std::string>> raw = {{"tensor", "assigned", "temporal hits", "spatial hits", "footprint"}};
  for (size_t i = 0; i < c.tensors.size(); ++i) {
    const TensorCounts& t = c.tensors[i];
    const TenetTensorMetrics& f = m.tensors[i];
    rows.push_back({tenet_key(t),
                    grouped(t.total),
                    grouped(t.unique),
                    f.reuse_factor ? fixed(*f.reuse_factor, 4) : "inf",
                    fixed(f.temporal_reuse, 6),
                    fixed(f.spatial_reuse, 6),
                    fixed(f.ibw_per_cycle, 4),
                    fixed(f.sbw_per_cycle, 4),
                    grouped(f.delay_cycles)});
    raw.push_back(
        {tenet_key(t), grouped(t.assigned), grouped(t.temporal_hits), grouped(t.spatial_hits), grouped(t.footprint)});
  }
  out += aligned(rows) + "\n" + aligned(raw) + "\n";
  out += text(
      "volumes in items of 16 bits; reuse per instance; IBW, SBW in items per cycle between PEs and from the "
      "scratchpad;\ndelays in cycles at ",
      input.hardware.bandwidth_bits_per_cycle,
      " bits per cycle and a latency of ",
      input.hardware.latency_cycles,
      "\n\n");
  out += aligned(
      {{"delay", "in", "out", "compute", "latency"},
       {"by PEs that ever work",
        grouped(m.delay_in),
        grouped(m.delay_out),
        grouped(m.delay_compute_master),
        grouped(m.latency_master)},
       {"by average active PEs",
        grouped(m.delay_in),
        grouped(m.delay_out),
        fixed(m.delay_compute_unrounded, 1),
        fixed(std::max({static_cast<double>(m.delay_in), static_cast<double>(m.delay_out), m.delay_compute_unrounded}),
              1)}});
  if (c.work_cycles)
    out += text("cycles of work, stamp by stamp: ",
                grouped(*c.work_cycles),
                "; latency ",
                grouped(std::max({m.delay_in, m.delay_out, *c.work_cycles})),
                "\n");
  out += text("energy: ", fixed(m.energy_untruncated, 2), " MACs\n");
  return out;
}

}  // namespace sator::formats
