#include "study/explain_parts.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/figures.h"
#include "base/text.h"
#include "study/explain.h"
#include "study/page_figures.h"
#include "study/words.h"

namespace sator::study {

namespace explaining {

std::string item(std::string_view name, std::string_view words) {
  constexpr size_t kName = 34;
  return text("  ", display_width(name) < kName ? pad_right(name, kName) : text(name, "  "), words);
}

std::string place(const KernelRow& row) { return row.layer.empty() ? "outside of layers" : row.layer; }

std::string seconds_of(int64_t cycles, const ChipFacts& chip) {
  return quantity(static_cast<double>(cycles) / chip.clock_hz, "s");
}

std::string bytes_over_speed(double bytes, double bytes_per_s, double takes_s) {
  const double at_full_speed = bytes_per_s > 0 ? bytes / bytes_per_s : 0;
  if (std::abs(at_full_speed - takes_s) <= 0.005 * takes_s)
    return text(quantity(bytes, "B"), " / ", quantity(bytes_per_s, "B/s"), " = ", quantity(takes_s, "s"));
  return text(quantity(bytes, "B"),
              " take ",
              quantity(takes_s, "s"),
              " (on all ports at once: ",
              quantity(bytes, "B"),
              " / ",
              quantity(bytes_per_s, "B/s"),
              " = ",
              quantity(at_full_speed, "s"),
              ")");
}

void expect_sum(std::string_view what, int64_t parts, int64_t whole) {
  if (parts == whole) return;
  fail({.what = text(what, " add up to ", parts, ", but the whole is ", whole),
        .needs = "parts that add up: study.json and kernels.csv as `sator study` wrote them",
        .hint = "run `sator study` again"});
}

void add_components(Lines& lines, const Cost& cost, const ChipFacts& chip) {
  int64_t sum = 0;
  lines.push_back("parts of the time");
  for (const ComponentName& c : components()) {
    const int64_t cycles = at(cost.components, c.component).latency_cycles;
    sum += cycles;
    if (cycles > 0)
      lines.push_back(item(c.words,
                           text(seconds_of(cycles, chip),
                                ", ",
                                percent(static_cast<double>(cycles) / static_cast<double>(cost.latency_cycles)),
                                ": ",
                                c.means)));
  }
  expect_sum("the parts of the time", sum, cost.latency_cycles);
}

void add_energy_parts(Lines& lines, const Cost& cost) {
  double sum = 0, vector_ops = 0;
  for (const ComponentCost& c : cost.components) vector_ops += static_cast<double>(c.vector_ops);
  for (const EnergyShare& e : cost.energy) {
    sum += e.joules;
    if (!(e.joules > 0)) continue;
    std::string per;
    auto each = [&](double pieces, std::string_view words) {
      if (pieces > 0)
        per = text(" = ", quantity(pieces, ""), " ", words, " x ", significant(1e12 * e.joules / pieces), " pJ");
    };
    if (e.name == "mac") each(static_cast<double>(cost.macs), "MACs");
    if (e.name == "vector") each(vector_ops, "operations");
    for (const LevelCost& l : cost.levels)
      if (l.name == e.name) each(static_cast<double>(l.bits()), "bits");
    if (e.name == "static" && cost.latency_s > 0)
      per = text(" = ", quantity(e.joules / cost.latency_s, "W"), " x ", quantity(cost.latency_s, "s"));
    lines.push_back(item(e.name,
                         text(quantity(e.joules, "J"),
                              per,
                              ", ",
                              percent(e.joules / cost.energy_j),
                              e.source.empty() ? "" : "; " + e.source)));
  }
  if (cost.energy.empty() && cost.energy_j == 0)
    lines.push_back("  the chip's file states no energies");
  else if (cost.energy.empty())
    lines.push_back("  its parts are kept for whole phases: ask without --kernel");
  else if (std::abs(sum - cost.energy_j) > 1e-9 * cost.energy_j)
    expect_sum("the parts of the energy, in fJ,", std::llround(1e15 * sum), std::llround(1e15 * cost.energy_j));
}

void add_traffic(Lines& lines, const Cost& cost) {
  if (cost.levels.empty()) return;
  const LevelCost& outer = cost.levels.front();
  struct Kind {
    const char* name;
    int64_t bits;
  };
  const double whole = std::max(1.0, outer.bytes());
  for (const Kind& kind : {Kind{"weights", outer.by_kind.weight},
                           Kind{"scales", outer.by_kind.scale},
                           Kind{"activations", outer.by_kind.activation},
                           Kind{"KV cache", outer.by_kind.kv}})
    if (kind.bits > 0)
      lines.push_back(item(kind.name,
                           text(quantity(static_cast<double>(kind.bits) / 8, "B"),
                                ", ",
                                percent(static_cast<double>(kind.bits) / 8 / whole))));
  expect_sum(text("the kinds of bits of ", outer.name), outer.by_kind.total(), outer.bits());
  lines.push_back("by memory");
  for (const LevelCost& l : cost.levels)
    lines.push_back(
        item(l.name,
             text(quantity(static_cast<double>(l.read_bits) / 8, "B"),
                  " read + ",
                  quantity(static_cast<double>(l.write_bits) / 8, "B"),
                  " written = ",
                  quantity(l.bytes(), "B"),
                  l.compulsory_bytes > 0
                      ? text(", ", times(l.bytes() / static_cast<double>(l.compulsory_bytes)), " compulsory")
                      : "",
                  &l == &outer ? "" : text(", ", times(l.bytes() / whole), " what ", outer.name, " moves"),
                  "; ",
                  quantity(l.achieved_bytes_per_s, "B/s"),
                  " of ",
                  quantity(l.available_bytes_per_s, "B/s"))));
}

void add_tenet_delays(Lines& lines, const TenetTerms& t) {
  const int64_t longest = std::max({t.delay_in, t.delay_out, t.delay_compute});
  bool named = false;
  auto add = [&](std::string_view name, int64_t delay, const std::string& formula) {
    const bool binds = delay == longest && !named;
    named |= binds;
    lines.push_back(item(name, text(grouped(delay), " cycles = ", formula, binds ? ": the longest" : "")));
  };
  auto move = [&](std::string_view name, int64_t delay, int64_t items, std::string_view what) {
    const int64_t cycles =
        std::max<int64_t>(0, items * t.item_bits / std::max<int64_t>(1, t.bandwidth_bits) + t.wait_cycles - 1);
    expect_sum(text(name, " by its terms, in cycles,"), cycles, delay);
    add(name,
        delay,
        text(grouped(items),
             " items ",
             what,
             " x ",
             t.item_bits,
             " bits / ",
             t.bandwidth_bits,
             " bits per cycle + ",
             t.wait_cycles,
             " - 1"));
  };
  // Of equals the first is called the longest, as the engine does: array, in, out.
  expect_sum("delay compute by its terms, in cycles,", t.macs / std::max<int64_t>(1, t.pes), t.delay_compute);
  add("delay compute", t.delay_compute, text(grouped(t.macs), " MACs / ", grouped(t.pes), " PEs that ever work"));
  move("delay in", t.delay_in, t.items_in, "new to the PEs");
  move("delay out", t.delay_out, t.items_out, "that leave them");
}

void add_what_if(Lines& lines, const Cost& cost, const ChipFacts& chip) {
  std::vector<Gain> gains = gains_of(cost, chip);
  std::erase_if(gains, [](const Gain& g) { return g.share < 0.001; });
  if (gains.empty()) return;
  lines.push_back("at twice the speed (while the same parts bind; mostly less where another comes to)");
  for (const Gain& g : gains) {
    const double share = g.share / (1 - 1 / kFaster);  // the elasticity itself
    lines.push_back(item(g.name,
                         text(quantity(cost.latency_s, "s"),
                              " x (1 - ",
                              fixed(share, 3),
                              " / 2) = ",
                              quantity(cost.latency_s * (1 - share / 2), "s"))));
  }
}

}  // namespace explaining

using namespace explaining;

std::vector<std::string> explain_kernel(const KernelRow& row, const ChipFacts& chip, Figure figure) {
  const Cost& c = row.cost;
  const std::string name = text(row.function, row.layer.empty() ? "" : " in " + row.layer);
  if (!row.costed) return {text(name, " has no cost on ", chip.name, ": ", join(row.notes, "; "))};
  Lines lines;
  switch (figure) {
    case Figure::latency: {
      lines = {text(name,
                    " takes ",
                    quantity(c.latency_s, "s"),
                    " on ",
                    chip.name,
                    ": ",
                    grouped(c.latency_cycles),
                    " cycles at ",
                    quantity(chip.clock_hz, "Hz"),
                    row.count > 1 ? text(", ", row.count, " times") : "",
                    "; ",
                    c.bound,
                    " binds.")};
      if (c.latency_interval)
        lines.push_back(text("Measurements are expected between ",
                             quantity(c.latency_interval->low_s, "s"),
                             " and ",
                             quantity(c.latency_interval->high_s, "s"),
                             "; ",
                             chip.calibration,
                             "."));
      lines.push_back("the sum of");
      int64_t sum = 0;
      for (const ResourceCycles& p : c.latency_parts) {
        sum += p.cycles;
        lines.push_back(item(p.name,
                             text(grouped(p.cycles),
                                  " cycles, ",
                                  percent(static_cast<double>(p.cycles) /
                                          static_cast<double>(std::max<int64_t>(1, c.latency_cycles))))));
      }
      expect_sum("the parts of the latency", sum, c.latency_cycles);
      for (const TenetTerms& terms : row.tenet_terms) {
        lines.push_back("a product by TENET's formula: the longest of three delays, which overlap");
        add_tenet_delays(lines, terms);
      }
      lines.push_back("work of each resource, at the same time");
      for (const ResourceCycles& r : c.resources) {
        std::string words = text(grouped(r.cycles), " cycles");
        for (const LevelCost& l : c.levels)
          if (row.tenet_terms.empty() && l.name == r.name && l.bits() > 0)
            words += "; " + bytes_over_speed(
                                l.bytes(), l.available_bytes_per_s, static_cast<double>(r.cycles) / chip.clock_hz);
        if (r.name == "array" && c.macs > 0)
          words += text("; ",
                        quantity(static_cast<double>(c.macs), ""),
                        " MACs at full rate take ",
                        quantity(c.utilization * c.latency_s, "s"),
                        ", ",
                        significant(c.mac_units_used),
                        " PEs work on average");
        lines.push_back(item(r.name, words));
      }
      add_what_if(lines, c, chip);
      break;
    }
    case Figure::energy:
      if (!knows_energy(c)) {
        lines = {text("the energy of ", name, " on ", chip.name, " is not known: the chip's file states no energies")};
        break;
      }
      lines = {text(name, " takes ", energy_text(c), " on ", chip.name, ":")};
      add_energy_parts(lines, c);
      break;
    case Figure::bytes:
      lines = {text(name, " moves on ", chip.name, ":")};
      add_traffic(lines, c);
      break;
    case Figure::macs:
      lines = {text(name,
                    " does ",
                    grouped(c.macs),
                    " multiply-accumulates",
                    row.batch * row.i * row.j * row.k == c.macs && c.macs > 0
                        ? text(" = ", row.batch, " x ", row.i, " x ", row.j, " x ", row.k, " (batch, i, j, k)")
                        : "",
                    ".")};
      break;
    case Figure::utilization:
      lines = {text(name,
                    " uses ",
                    percent(c.utilization),
                    " of the array on ",
                    chip.name,
                    ": ",
                    grouped(c.macs),
                    " MACs at full rate take ",
                    quantity(c.utilization * c.latency_s, "s"),
                    ", and the latency is ",
                    quantity(c.latency_s, "s"),
                    "; ",
                    significant(c.mac_units_used),
                    " of ",
                    chip.rows,
                    " x ",
                    chip.columns,
                    " PEs work on average while the array does.")};
      for (const PrecisionUse& p : c.precisions)
        lines.push_back(item(p.asked, text("runs as ", p.ran, p.passes > 1 ? text(" in ", p.passes, " passes") : "")));
      break;
    default:
      fail({.what = "perplexity and weight_bytes are of a whole model",
            .needs = "a figure of a kernel: latency, energy, bytes, macs, utilization",
            .hint = "ask without --kernel"});
  }
  if (figure != Figure::latency) return lines;
  if (!row.tile.empty()) lines.push_back(text("mapping: ", row.tile));
  for (const std::string& note : row.notes) lines.push_back(text("note: ", note));
  return lines;
}

std::vector<const KernelRow*> kernels_named(const PhaseResult& phase, const std::string& name) {
  std::vector<const KernelRow*> found;
  std::vector<std::string> known;
  for (const KernelRow& row : phase.rows) {
    const bool by_layer = !row.layer.empty() && (row.layer == name || row.layer.ends_with("." + name));
    const bool twin = std::any_of(found.begin(), found.end(), [&](const KernelRow* f) {
      return f->function == row.function && f->cost == row.cost;
    });
    if ((row.function == name || by_layer) && !twin) found.push_back(&row);
    for (const std::string& word : {row.function, row.layer})
      if (!word.empty() && std::find(known.begin(), known.end(), word) == known.end()) known.push_back(word);
  }
  if (found.empty()) {
    std::vector<std::string> near = nearest_names(name, known);
    if (near.empty())
      near.assign(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(8, known.size())));
    fail(
        {.what = text("no kernel is called ", string_literal(name)),
         .needs = "a function or a layer of kernels.csv",
         .hint = known.empty() ? "the phase has no kernels" : text("of ", known.size(), " names: ", join(near, ", "))});
  }
  return found;
}

}  // namespace sator::study
