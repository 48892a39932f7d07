#include "study/page_figures.h"

#include <algorithm>

#include "base/figures.h"
#include "base/text.h"
#include "dataflow/tenet/tenet_text.h"
#include "study/svg_space_time.h"
#include "study/words.h"

namespace sator::study {

namespace {

const Cost& cost_of(const SchemeResult& scheme, size_t chip, const PhaseName& phase) {
  return (scheme.chips[chip].*phase.result).cost;
}

constexpr double kWorthABar = 0.0005;  // of the latency

/// Where measurements say more than the estimate.
std::optional<Range> range_of(const std::optional<dataflow::LatencyInterval>& interval) {
  if (!interval || interval->low_s >= interval->high_s) return {};
  return Range{interval->low_s, interval->high_s};
}

std::vector<Segment> segments_of(const Components& parts, int64_t whole_cycles, double clock_hz) {
  std::vector<Segment> segments;
  for (const ComponentName& c : components()) {
    const int64_t cycles = at(parts, c.component).latency_cycles;
    if (cycles <= 0) continue;
    const double seconds = static_cast<double>(cycles) / clock_hz;
    const double share = whole_cycles ? static_cast<double>(cycles) / static_cast<double>(whole_cycles) : 0;
    segments.push_back({text("c-", c.key),
                        seconds,
                        text(c.words, ": ", quantity(seconds, "s"), ", ", percent(share)),
                        std::string(c.mark)});
  }
  return segments;
}

/// The last part of a layer's name begins after its block.
std::string_view without_prefix(std::string_view layer) {
  for (std::string_view prefix : {"transformer.", "model."})
    if (layer.starts_with(prefix)) layer.remove_prefix(prefix.size());
  return layer;
}

}  // namespace

std::string block_of(std::string_view layer) {
  if (layer.empty()) return "other";
  std::string name;
  for (std::string_view part : split(without_prefix(layer), '.')) {
    name += (name.empty() ? "" : ".") + std::string(part);
    if (!part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; })) break;
  }
  return name;
}

std::string place_in_block(std::string_view layer) {
  const std::string block = block_of(layer);
  const std::string_view rest = without_prefix(layer);
  return rest.size() > block.size() ? std::string(rest.substr(block.size() + 1)) : block;
}

std::string quality_plot(const Study& study, size_t chip, const PhaseName& phase) {
  std::vector<PlotPoint> points;
  std::vector<double> cost, loss;
  for (const SchemeResult& s : study.schemes) {
    if (!s.perplexity) continue;
    const Cost& c = cost_of(s, chip, phase);
    points.push_back(
        {.name = s.name,
         .title = text(s.name, ": perplexity ", perplexity_text(s.perplexity), ", ", quantity(c.latency_s, "s")),
         .x = c.latency_s,
         .y = *s.perplexity,
         .x_range = range_of(c.latency_interval)});
    cost.push_back(c.latency_s);
    loss.push_back(*s.perplexity);
  }
  for (size_t i : pareto_front(cost, loss)) points[i].on_front = true;
  const std::string what = text(phase.name, " latency");
  return scatter_plot(points,
                      {what, "s", "perplexity", ""},
                      text("perplexity against ", what, " on ", study.chips[chip].name, ", one point per scheme"));
}

std::string time_plot(const Study& study, size_t chip, const PhaseName& phase) {
  std::vector<StackedBar> bars;
  double fastest = 0;
  for (const SchemeResult& s : study.schemes) {
    const Cost& cost = cost_of(s, chip, phase);
    if (bars.empty() || cost.latency_s < fastest) fastest = cost.latency_s;
    bars.push_back({.name = s.name,
                    .figure = quantity(cost.latency_s, "s"),
                    .segments = segments_of(cost.components, cost.latency_cycles, study.chips[chip].clock_hz),
                    .range = range_of(cost.latency_interval)});
    if (bars.back().range)
      bars.back().figure +=
          text(" (", quantity(bars.back().range->low, "s"), " to ", quantity(bars.back().range->high, "s"), ")");
  }
  for (size_t s = 0; s < bars.size() && bars.size() > 1; ++s)
    bars[s].emphasized = cost_of(study.schemes[s], chip, phase).latency_s == fastest;
  return stacked_bars(
      bars, text("latency of ", phase.name, " on ", study.chips[chip].name, " by component, one bar per scheme"));
}

std::string layer_plot(const Study& study, const SchemeResult& scheme, size_t chip, const PhaseName& phase) {
  struct Block {
    std::string name;
    Components parts{};
    int64_t cycles = 0;
  };
  std::vector<Block> blocks;
  for (const KernelRow& row : (scheme.chips[chip].*phase.result).rows) {
    const std::string name = block_of(row.layer);
    auto block = std::find_if(blocks.begin(), blocks.end(), [&](const Block& b) { return b.name == name; });
    if (block == blocks.end()) block = blocks.insert(blocks.end(), {name});
    for (size_t c = 0; c < kComponentCount; ++c)
      block->parts[c].latency_cycles += row.cost.components[c].latency_cycles * row.count;
    block->cycles += row.cost.latency_cycles * row.count;
  }
  const double clock_hz = study.chips[chip].clock_hz;
  std::vector<StackedBar> bars;
  for (const Block& b : blocks)
    bars.push_back(
        {b.name, quantity(static_cast<double>(b.cycles) / clock_hz, "s"), segments_of(b.parts, b.cycles, clock_hz)});
  return stacked_bars(bars,
                      text("latency of ", phase.name, " per layer, ", scheme.name, " on ", study.chips[chip].name));
}

Roofline roofline_of(const Study& study, const SchemeResult& scheme, size_t chip) {
  Roofline r;
  for (const PeakRate& p : study.chips[chip].peaks) {
    // Precisions of one rate share a line.
    if (!r.ceilings.empty() && r.ceilings.back().macs_per_s == p.macs_per_s)
      r.ceilings.back().name += ", " + p.precision;
    else
      r.ceilings.push_back({p.precision, p.macs_per_s});
  }
  for (const LevelCost& l : scheme.chips[chip].prefill.cost.levels)
    r.slopes.push_back({l.name, l.available_bytes_per_s});
  std::vector<RooflinePoint> inner;
  for (int shape = 0; const PhaseName& phase : kPhases) {
    std::vector<std::string> named;
    for (const KernelRow& row : (scheme.chips[chip].*phase.result).rows) {
      if (row.cost.macs == 0 || row.cost.levels.empty()) continue;
      const auto macs = static_cast<double>(row.cost.macs);
      const std::string place = place_in_block(row.layer);
      RooflinePoint p{.title = text(place, ", ", phase.name, ": ", row.function, ", bound by ", row.cost.bound),
                      .macs_per_byte = macs / row.cost.levels[0].bytes(),
                      .macs_per_s = macs / row.cost.latency_s,
                      .shape = shape};
      for (const LevelCost& l : row.cost.levels)
        if (l.bits() > 0) p.title += text("; ", significant(macs / l.bytes()), " MACs per byte of ", l.name);
      p.title += text("; ", quantity(p.macs_per_s, "MAC/s"));
      const bool known = std::any_of(r.points.begin(), r.points.end(), [&](const RooflinePoint& o) {
        return o.shape == p.shape && o.macs_per_byte == p.macs_per_byte && o.macs_per_s == p.macs_per_s;
      });
      if (known) continue;  // the same kernel in another layer
      if (std::find(named.begin(), named.end(), place) == named.end()) p.name = named.emplace_back(place);
      r.points.push_back(p);
      for (size_t m = 1; m < row.cost.levels.size(); ++m)
        if (row.cost.levels[m].name == row.cost.bound && row.cost.levels[m].bits() > 0) {
          p.name.clear();
          p.macs_per_byte = macs / row.cost.levels[m].bytes();
          p.on = m;
          p.shape = shape + kShapes / 2;
          inner.push_back(p);
        }
    }
    shape += 2;  // a circle, a diamond
  }
  r.points.insert(r.points.end(), inner.begin(), inner.end());
  return r;
}

std::string energy_plot(const Study& study, const SchemeResult& scheme, size_t chip, const PhaseName& phase) {
  const Cost& cost = cost_of(scheme, chip, phase);
  std::vector<Step> steps;
  for (const EnergyShare& e : cost.energy) {
    if (!(e.joules > 0)) continue;
    const std::string key = e.name == "mac"                              ? "c-array"
                            : e.name == "vector"                         ? "c-vector"
                            : e.name == "registers" || e.name == "wires" ? "c-activations"
                            : e.name == "static"                         ? "c-launch"
                                                                         : "c-weights";
    auto known = std::find_if(steps.begin(), steps.end(), [&](const Step& s) { return s.name == e.name; });
    if (known == steps.end())
      steps.push_back({.name = e.name, .key = key, .value = e.joules});
    else
      known->value += e.joules;  // of several sources
  }
  for (Step& s : steps) {
    s.figure = text(quantity(s.value, "J"), ", ", percent(s.value / cost.energy_j));
    s.title = text(s.name, ": ", s.figure);
  }
  return waterfall(steps,
                   energy_text(cost),
                   text("energy of ", phase.name, " by part, ", scheme.name, " on ", study.chips[chip].name));
}

std::vector<Gain> gains_of(const Cost& cost, const ChipFacts& chip) {
  const double shortened = 1 - 1 / kFaster;
  std::vector<Gain> gains;
  for (const Elasticity& e : cost.elasticities) {
    const bool memory =
        std::any_of(cost.levels.begin(), cost.levels.end(), [&](const LevelCost& l) { return l.name == e.name; });
    const std::string name = memory               ? text(e.name, " bandwidth")
                             : e.name == "array"  ? text("array of ", chip.rows, "x", chip.columns)
                             : e.name == "vector" ? "vector unit"
                                                  : e.name;
    gains.push_back({name, e.value * shortened});
  }
  std::stable_sort(gains.begin(), gains.end(), [](const Gain& a, const Gain& b) { return a.share > b.share; });
  gains.insert(gains.begin(), {text("clock of ", quantity(chip.clock_hz, "Hz")), cost.clock_elasticity * shortened});
  return gains;
}

std::vector<Gain> larger_memory_gains(const PhaseResult& phase) {
  std::vector<Gain> gains;
  for (const LargerMemory& m : phase.larger)
    gains.push_back({text(m.name, " of ", grouped(m.capacity_bytes), " B"),
                     phase.cost.latency_s > 0 ? 1 - m.latency_s / phase.cost.latency_s : 0});
  return gains;
}

std::string sensitivity_plot(const Study& study, const SchemeResult& scheme, size_t chip, const PhaseName& phase) {
  std::vector<StackedBar> bars;
  for (const Gain& g : gains_of(cost_of(scheme, chip, phase), study.chips[chip])) {
    const bool clock = bars.empty();
    if (!clock && g.share < kWorthABar) continue;
    const std::string figure = g.share > 0 ? text("-", percent(g.share)) : "0 %";
    bars.push_back({.name = g.name,
                    .figure = figure,
                    .segments = {{clock ? "c-launch" : "c-scales", g.share, text("latency ", figure)}}});
  }
  for (const Gain& g : larger_memory_gains(scheme.chips[chip].*phase.result)) {
    const std::string figure = g.share > 0 ? text("-", percent(g.share)) : "0 %";
    bars.push_back(
        {.name = g.name, .figure = figure, .segments = {{"c-activations", g.share, text("latency ", figure)}}});
  }
  return stacked_bars(bars,
                      text("what each part of ",
                           study.chips[chip].name,
                           " takes off the latency of ",
                           phase.name,
                           " if it is faster, or a memory larger, by a tenth, ",
                           scheme.name));
}

std::string pareto_plot(const Study& study, const std::vector<Candidate>& all) {
  std::vector<PlotPoint> points;
  const bool some_known = std::any_of(all.begin(), all.end(), [](const Candidate& c) { return c.energy_j > 0; });
  for (const Candidate& c : all) {
    const SchemeResult& s = study.schemes[c.scheme];
    if (c.energy_j == 0 && some_known) continue;
    points.push_back({.name = c.best ? s.name : "",
                      .title = text(s.name,
                                    " on ",
                                    study.chips[c.chip].name,
                                    ": ",
                                    quantity(c.latency_s, "s"),
                                    ", ",
                                    energy_text(c.energy_j),
                                    c.perplexity ? text(", perplexity ", perplexity_text(c.perplexity)) : ""),
                      .x = c.latency_s,
                      .y = c.energy_j,
                      .on_front = c.best,
                      .shape = static_cast<int>(c.chip),
                      .x_range = range_of(c.latency_interval)});
  }
  return scatter_plot(points,
                      {"latency of a request", "s", "energy of a request", "J"},
                      "energy against latency of a request, all schemes on all chips",
                      FrontLine::none);
}

std::optional<ProductFigure> space_time_figure(const Study& study, const SchemeResult& scheme, size_t chip,
                                               const PhaseName& phase) {
  const KernelRow* largest = nullptr;
  for (const KernelRow& row : (scheme.chips[chip].*phase.result).rows)
    if (!row.tenet.empty() && (!largest || row.cost.macs > largest->cost.macs)) largest = &row;
  if (!largest) return {};
  ProductFigure found{
      .title = text(
          place_in_block(largest->layer), ", ", phase.name, ": ", largest->i, " x ", largest->j, " x ", largest->k),
      .figure = {}};
  const std::string about = text("PEs and stamps of ", found.title, " on ", study.chips[chip].name, ", ", scheme.name);
  const TenetTexts& texts = largest->tenet.front();
  try {
    const dataflow::Problem problem =
        dataflow::parse_tenet({texts.pe_array, texts.mapping, texts.statement, "array", "mapping", "statement"})
            .problem;
    const auto counted = dataflow::count(problem);
    if (const auto* reason = std::get_if<Reason>(&counted)) throw Error(*reason);
    found.figure = space_time_plot(
        dataflow::space_time(problem, {.stamps = 48, .pes = 32}), std::get<dataflow::Counts>(counted), about);
  } catch (const Error& error) {
    found.figure = text("<p class=\"caption\">", escaped(error.reason.what), "</p>");
  }
  return found;
}

}  // namespace sator::study
