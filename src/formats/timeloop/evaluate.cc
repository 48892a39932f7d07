#include "formats/timeloop/evaluate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/text.h"

namespace sator::formats::timeloop {

namespace {

/// Accesses of `count` words where one access moves `block`, 2^shift where shift is not negative.
double vector_accesses(int64_t count, int64_t block, int shift) {
  if (shift >= 0) return static_cast<double>((count + block - 1) >> shift);
  return static_cast<double>(count / block + (count % block != 0));
}

}  // namespace

Reason beyond_62_bits(std::string_view what) {
  return {.what = text(what, " needs more than 62 bits"),
          .needs = "sizes and counts below 2^62",
          .hint = "check the extents; a smaller problem of the same shape scales"};
}

Model::Model(const Workload& workload, const Architecture& architecture, Release release)
    : w_(workload),
      a_(architecture),
      levels_(architecture.levels.size()),
      spaces_(workload.spaces.size()),
      mover_(release) {
  if (levels_ > kMaxLevels || spaces_ > kMaxSpaces || w_.dimensions.size() > kMaxDimensions)
    internal_error("a Timeloop input is larger than its reader admits");
  double operations = 1;
  for (int64_t bound : w_.bounds) operations *= static_cast<double>(bound);
  if (operations > kLargestCount) fail(beyond_62_bits("the number of operations"));
  for (size_t s = 0; s < spaces_; ++s) {
    double words = 1;
    for (const auto& rank : w_.spaces[s].ranks) {
      for (const ProjectionTerm& t : rank) box_terms_[s].push_back({t.dimension, false, std::abs(t.coefficient)});
      if (!rank.empty()) box_terms_[s].back().ends_rank = true;
      slides_[s] = slides_[s] || rank.size() > 1;
      double width = 1;
      for (const ProjectionTerm& t : rank) {
        if (t.coefficient != 0) relevant_[s] |= uint32_t{1} << t.dimension;
        width += std::abs(static_cast<double>(t.coefficient)) * static_cast<double>(w_.bounds[t.dimension] - 1);
      }
      words *= width;
    }
    if (words > kLargestCount) fail(beyond_62_bits(text("the size of ", w_.spaces[s].name)));
  }
  has_energy_ = a_.compute.energy_pj.has_value() && a_.wire_energy.empty();
  dimensions_ = w_.dimensions.size();
  for (size_t l = 0; l < levels_; ++l) {
    const StorageLevel& level = a_.levels[l];
    LevelFacts& f = facts_[l];
    f.room_words = level.size_words ? std::floor(static_cast<double>(*level.size_words) / level.multiple_buffering)
                                    : std::numeric_limits<double>::infinity();
    f.least_words = level.size_words ? f.room_words * level.min_utilization : 0;
    if (std::has_single_bit(static_cast<uint64_t>(level.block_size)))
      f.block_shift = std::countr_zero(static_cast<uint64_t>(level.block_size));
    f.limited = level.read_bandwidth || level.write_bandwidth || level.shared_bandwidth;
    f.clusters = static_cast<double>(level.instances / level.cluster_size);
    for (size_t gate = 0; gate < levels_ && !level.power_gated_at.empty(); ++gate) {
      if (a_.levels[gate].name != level.power_gated_at) continue;
      f.gate = static_cast<int>(gate);
      f.per_gate = static_cast<double>(level.instances) / static_cast<double>(a_.levels[gate].instances);
    }
    latency_cycles_ += level.fill_latency_cycles + level.drain_latency_cycles;
  }
}

std::optional<Reason> Model::check_fits(const Mapping& mapping, size_t l) const {
  const StorageLevel& level = a_.levels[l];
  if (mesh_x_[l] > level.mesh_x || mesh_y_[l] > level.mesh_y)
    return Reason{.what = text("the mapping needs ", mesh_x_[l], " x ", mesh_y_[l], " instances of ", level.name),
                  .needs = text("at most ", level.mesh_x, " x ", level.mesh_y),
                  .hint = "lower the spatial factors above it, or move loops between X and Y"};
  const LevelFacts& facts = facts_[l];
  double words = 0;
  for (size_t s = 0; s < spaces_; ++s)
    if (mapping.levels[l].keep >> s & 1) words += static_cast<double>(flow_[s][l].words);
  double room = facts.room_words;
  if (words > room)
    return Reason{.what = text("the tiles at ", level.name, " have ", grouped(static_cast<int64_t>(words)), " words"),
                  .needs = text("at most ", grouped(static_cast<int64_t>(room)), ", the size that one buffer has"),
                  .hint = "lower the factors at or below it, or bypass a data space"};
  if (words < facts.least_words)
    return Reason{.what = text("the tiles at ",
                               level.name,
                               " fill ",
                               grouped(static_cast<int64_t>(words)),
                               " words of ",
                               grouped(static_cast<int64_t>(room))),
                  .needs = text("min_utilization, ", level.min_utilization),
                  .hint = "raise the factors at or below it, or lower min_utilization"};
  return {};
}

void Model::time_and_energy(Figures& out) {
  double compute_cycles = static_cast<double>(out.compute_cycles);
  int64_t cycles = out.compute_cycles;
  bool energies = has_energy_;
  for (size_t l = 0; l < levels_; ++l) {
    const StorageLevel& level = a_.levels[l];
    SpaceSet kept = 0;
    for (size_t s = 0; s < spaces_; ++s) kept |= SpaceSet{out.levels[l].spaces[s].kept} << s;
    double slowdown = 1;
    if (facts_[l].limited) {
      double read = 0, write = 0;
      for (size_t s = 0; s < spaces_; ++s) {
        const SpaceFigures& g = out.levels[l].spaces[s];
        // Quotients one by one, as Timeloop rounds them.
        double scale = level.bandwidth_scale[s];
        if (g.reads) read += static_cast<double>(g.reads) / compute_cycles * scale;
        if (g.fills + g.updates) write += static_cast<double>(g.fills + g.updates) / compute_cycles * scale;
      }
      auto bound = [&](const std::optional<double>& bandwidth, double wanted) {
        if (bandwidth && *bandwidth < wanted) slowdown = std::min(slowdown, *bandwidth / wanted);
      };
      bound(level.read_bandwidth, read);
      bound(level.write_bandwidth, write);
      bound(level.shared_bandwidth, read + write);
    }
    out.levels[l].cycles =
        slowdown == 1 ? out.compute_cycles : static_cast<int64_t>(std::ceil(compute_cycles / slowdown));
    cycles = std::max(cycles, out.levels[l].cycles);
    energies &= !kept || level.energy.has_value();
  }
  double total = 0;
  out.compute_energy_pj = 0;
  if (energies) {
    out.compute_energy_pj = static_cast<double>(out.operations) * *a_.compute.energy_pj;
    total = out.compute_energy_pj;
  }
  for (size_t l = 0; l < levels_; ++l) {
    const StorageLevel& level = a_.levels[l];
    LevelFigures& figures = out.levels[l];
    figures.energy_pj = 0;
    if (!energies || !level.energy) continue;
    const LevelEnergy& e = *level.energy;
    const LevelFacts& facts = facts_[l];
    double clusters = std::min(static_cast<double>(instances_[l]), facts.clusters);
    for (size_t s = 0; s < spaces_; ++s) {
      SpaceFigures& g = figures.spaces[s];
      if (!g.kept) continue;
      auto energy = [&](int64_t count, double each) {
        return count == 0 ? 0.0 : vector_accesses(count, level.block_size, facts.block_shift) * each;
      };
      g.energy_pj = (energy(g.reads, e.read) + energy(g.fills, e.fill) + energy(g.updates, e.update)) * clusters;
      figures.energy_pj += g.energy_pj;
      if (level.address_energy_pj > 0)
        figures.energy_pj += static_cast<double>(g.fills + (w_.spaces[s].read_write ? g.updates : g.reads)) *
                             level.address_energy_pj * clusters;
    }
    double leaking = static_cast<double>(instances_[l]);
    if (facts.per_gate > 1) leaking = facts.per_gate * static_cast<double>(instances_[facts.gate]);
    figures.energy_pj += e.leak * static_cast<double>(cycles) * leaking;
    total += figures.energy_pj;
  }
  out.energy_pj = total;
  out.cycles = cycles + latency_cycles_;
  out.utilization =
      static_cast<double>(out.operations) / static_cast<double>(a_.compute.instances) / static_cast<double>(out.cycles);
}

std::optional<Reason> Model::evaluate(const Mapping& mapping, Figures& out) {
  out.levels.resize(levels_);
  out.clamped = false;
  if (auto problem = place(mapping, out)) return problem;
  for (size_t s = 0; s < spaces_; ++s) measure(mapping, s);
  count_boxes(mapping);
  for (size_t l = 0; l < levels_; ++l) {
    SpaceSet moving = l == 0 ? ~SpaceSet{0} : mapping.levels[l - 1].no_temporal_reuse;
    for (size_t s = 0; s < spaces_; ++s) {
      // Tiles of plain boxes may come from a neighbour only where nothing stays in place by itself.
      bool lasting = !(moving >> s & 1) || mapping.levels[l].spatial.empty();
      if (!slides_[s] && lasting) continue;
      if (auto problem = count_slides(mapping, s, l)) return problem;
    }
  }
  for (size_t l = 0; l < levels_; ++l)
    if (auto problem = check_fits(mapping, l)) return problem;
  for (size_t s = 0; s < spaces_; ++s) {
    bypass(mapping, s);
    if (auto problem = split(mapping, s, out)) return problem;
  }
  time_and_energy(out);
  return {};
}

}  // namespace sator::formats::timeloop
