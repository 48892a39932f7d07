#include "study/explain.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/figures.h"
#include "base/text.h"
#include "study/compare.h"
#include "study/explain_parts.h"
#include "study/words.h"

namespace sator::study {

namespace {

using namespace explaining;

/// Where the question is about: names in sentences.
struct Subject {
  const Study& study;
  const SchemeResult& scheme;
  const ChipFacts& chip;
  std::string_view phase;
  const PhaseResult& result;
  const Cost& cost;

  std::string of(std::string_view figure) const {
    return text(phase, " ", figure, " of ", scheme.name, " on ", chip.name);
  }
};

/// Kernels of one function: what a program calls again and again.
struct Group {
  std::string function;
  int64_t calls = 0;
  double value = 0;
  bool alike = true;  // each call has the same
  const KernelRow* first = nullptr;
  std::set<std::string> layers;  // a prompt in chunks has a row of a layer for each length of its own
};

template <class Value>
std::vector<Group> groups_of(const PhaseResult& phase, Value value) {
  std::vector<Group> groups;
  for (const KernelRow& row : phase.rows) {
    auto g = std::find_if(groups.begin(), groups.end(), [&](const Group& k) { return k.function == row.function; });
    if (g == groups.end()) g = groups.insert(groups.end(), Group{.function = row.function, .first = &row});
    const double each = value(row);
    g->alike &= each == value(*g->first);
    g->calls += row.count;
    g->value += each * static_cast<double>(row.count);
    g->layers.insert(row.layer);
  }
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.value > b.value; });
  return groups;
}

/// The kernels that make up most of a figure, each as "calls x figure of one = sum".
template <class Value>
void add_kernels_by(Lines& lines, const Subject& s, double whole, std::string_view unit, Value value,
                    std::string_view head = "by kernel") {
  constexpr size_t kMost = 6;
  if (s.result.rows.empty() || !(whole > 0)) return;
  lines.emplace_back(head);
  const std::vector<Group> groups = groups_of(s.result, value);
  double rest = whole;
  int64_t rest_calls = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    const Group& g = groups[i];
    if (i >= kMost || g.value <= 0) {
      rest_calls += g.calls;
      continue;
    }
    rest -= g.value;
    const double each = value(*g.first);
    std::string words = g.calls == 1 ? quantity(g.value, unit)
                        : g.alike    ? text(g.calls, " x ", quantity(each, unit), " = ", quantity(g.value, unit))
                                     : text(g.calls, " calls, ", quantity(g.value, unit));
    lines.push_back(
        item(text(words, ", ", percent(g.value / whole)),
             text(g.function,
                  g.layers.size() > 1 ? text(" (", g.layers.size(), " layers)") : text(" (", place(*g.first), ")"),
                  g.first->cost.bound.empty() ? "" : ", bound by " + g.first->cost.bound)));
  }
  if (rest_calls > 0 && rest > 1e-9 * whole)
    lines.push_back(
        item(text(quantity(rest, unit), ", ", percent(rest / whole)), text(rest_calls, " calls of other kernels")));
}

void add_bounds(Lines& lines, const Subject& s) {
  struct Bound {
    int64_t calls = 0, cycles = 0, work = 0;
    double bytes = 0, macs = 0, full_rate_s = 0, bytes_per_s = 0;
    TenetTerms delays;  // sums over products, by TENET's formula
    bool by_formula = false;
  };
  std::map<std::string, Bound> bounds;
  int64_t calls = 0;
  for (const KernelRow& row : s.result.rows) {
    Bound& b = bounds[row.cost.bound.empty() ? "nothing" : row.cost.bound];
    const auto times = static_cast<double>(row.count);
    b.calls += row.count, calls += row.count;
    b.cycles += row.count * row.cost.latency_cycles;
    b.macs += times * static_cast<double>(row.cost.macs);
    b.full_rate_s += times * row.cost.utilization * row.cost.latency_s;
    for (const TenetTerms& t : row.tenet_terms) {
      b.by_formula = true;
      for (const TenetTermName& term : kTenetTerms) b.delays.*term.value += row.count * t.*term.value;
    }
    for (const ResourceCycles& r : row.cost.resources)
      if (r.name == row.cost.bound) b.work += row.count * r.cycles;
    for (const LevelCost& l : row.cost.levels)
      if (l.name == row.cost.bound) b.bytes += times * l.bytes(), b.bytes_per_s = l.available_bytes_per_s;
  }
  std::vector<std::pair<std::string, Bound>> sorted(bounds.begin(), bounds.end());
  std::stable_sort(
      sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second.cycles > b.second.cycles; });
  if (!sorted.empty()) lines.push_back("what binds");
  for (const auto& [name, b] : sorted) {
    const double share =
        s.cost.latency_cycles ? static_cast<double>(b.cycles) / static_cast<double>(s.cost.latency_cycles) : 0;
    std::string words = text(b.calls, " of ", calls, " calls, ", seconds_of(b.cycles, s.chip), ", ", percent(share));
    if (b.by_formula)
      words += text("; by TENET's formula the longest of three delays per product, in sum ",
                    grouped(b.delays.delay_compute),
                    " cycles of MACs / PEs, ",
                    grouped(b.delays.delay_in),
                    " of items in, ",
                    grouped(b.delays.delay_out),
                    " of items out");
    else if (b.bytes > 0)
      words += text("; ", bytes_over_speed(b.bytes, b.bytes_per_s, static_cast<double>(b.work) / s.chip.clock_hz));
    else if (name == "array")
      words += text("; ",
                    quantity(b.macs, ""),
                    " MACs at the array's full rate take ",
                    quantity(b.full_rate_s, "s"),
                    ", fill, drain, loads and idle PEs make it ",
                    seconds_of(b.work, s.chip));
    else if (name == "launch")
      words += "; no resource takes as long as it takes to begin";
    else
      words += text("; it works ", seconds_of(b.work, s.chip));
    lines.push_back(item(name, words));
  }
}

Lines latency(const Subject& s) {
  Lines lines = {text(s.of("latency"),
                      " is ",
                      quantity(s.cost.latency_s, "s"),
                      ": ",
                      grouped(s.cost.latency_cycles),
                      " cycles at ",
                      quantity(s.chip.clock_hz, "Hz"),
                      ", the sum of ",
                      s.result.launches,
                      " kernel calls that run one after the other.")};
  if (s.cost.latency_interval && s.cost.latency_interval->low_s < s.cost.latency_interval->high_s)
    lines.push_back(text("Measurements are expected between ",
                         quantity(s.cost.latency_interval->low_s, "s"),
                         " and ",
                         quantity(s.cost.latency_interval->high_s, "s"),
                         "; ",
                         s.chip.calibration,
                         "."));
  add_bounds(lines, s);
  add_components(lines, s.cost, s.chip);
  add_kernels_by(lines, s, s.cost.latency_s, "s", [](const KernelRow& row) { return row.cost.latency_s; });
  add_what_if(lines, s.cost, s.chip);
  if (!s.result.larger.empty())
    lines.emplace_back("with a memory larger by a tenth (the same ports; its kernels mapped anew)");
  for (const LargerMemory& m : s.result.larger)
    lines.push_back(item(text(m.name, " of ", grouped(m.capacity_bytes), " B"),
                         m.latency_s < s.cost.latency_s ? text(quantity(s.cost.latency_s, "s"),
                                                               " - ",
                                                               quantity(s.cost.latency_s - m.latency_s, "s"),
                                                               " = ",
                                                               quantity(m.latency_s, "s"))
                                                        : text(quantity(m.latency_s, "s"), ": no better mapping")));
  lines.push_back(text("checked: the parts",
                       s.result.rows.empty() ? "" : " and the kernels",
                       " add up to ",
                       grouped(s.cost.latency_cycles),
                       " cycles"));
  return lines;
}

Lines energy(const Subject& s) {
  if (!knows_energy(s.cost)) return {text(s.of("energy"), " is not known: the chip's file states no energies")};
  Lines lines = {text(
      s.of("energy"), " is ", quantity(s.cost.energy_j, "J"), ", with figures of ", s.cost.energy_node_nm, " nm:")};
  add_energy_parts(lines, s.cost);
  add_kernels_by(lines, s, s.cost.energy_j, "J", [](const KernelRow& row) { return row.cost.energy_j; });
  return lines;
}

Lines bytes(const Subject& s) {
  Lines lines;
  if (s.cost.levels.empty()) return {text(s.of("traffic"), ": the chip has no memory.")};
  const LevelCost& outer = s.cost.levels.front();
  lines.push_back(text(s.of("traffic"), " is ", quantity(outer.bytes(), "B"), " of ", outer.name, ":"));
  add_traffic(lines, s.cost);
  const double weights = static_cast<double>(outer.by_kind.weight + outer.by_kind.scale) / 8;
  const auto stored = static_cast<double>(s.scheme.weight_bytes);
  if (stored > 0)
    lines.push_back(
        text("The model's weights are stored in ",
             quantity(stored, "B"),
             "; ",
             s.phase,
             " moves ",
             quantity(weights, "B"),
             " of weights and scales, ",
             times(weights / stored),
             " that: of an embedding only the rows that are looked up, of others what no buffer could hold again."));
  add_kernels_by(lines, s, outer.bytes(), "B", [](const KernelRow& row) {
    return row.cost.levels.empty() ? 0 : row.cost.levels.front().bytes();
  });
  return lines;
}

Lines macs(const Subject& s) {
  Lines lines = {text(s.of("work"), " is ", grouped(s.cost.macs), " multiply-accumulates:")};
  int64_t sum = 0;
  for (const Group& g : groups_of(s.result, [](const KernelRow& row) { return static_cast<double>(row.cost.macs); })) {
    if (g.value <= 0) continue;
    const KernelRow& row = *g.first;
    const auto value = static_cast<int64_t>(g.value);
    sum += value;
    const bool plain = row.batch * row.i * row.j * row.k == row.cost.macs;
    const std::string size = plain
                                 ? text(row.batch > 1 ? text(row.batch, " x ") : "", row.i, " x ", row.j, " x ", row.k)
                                 : "several products";
    lines.push_back(item(g.function,
                         g.alike ? text(g.calls, " x (", size, ") = ", grouped(value))
                                 : text(g.calls, " calls of different sizes, ", grouped(value))));
  }
  if (!s.result.rows.empty()) expect_sum("the kernels' MACs", sum, s.cost.macs);
  return lines;
}

Lines utilization(const Subject& s) {
  double full_rate_s = 0;
  for (const KernelRow& row : s.result.rows)
    full_rate_s += row.cost.utilization * row.cost.latency_s * static_cast<double>(row.count);
  Lines lines = {text(s.of("utilization"),
                      " is ",
                      percent(s.cost.utilization),
                      ": ",
                      grouped(s.cost.macs),
                      " MACs at the array's full rate, for the precisions that run, take ",
                      quantity(full_rate_s, "s"),
                      ", and the latency is ",
                      quantity(s.cost.latency_s, "s"),
                      "."),
                 text("While the array works, ",
                      significant(s.cost.mac_units_used),
                      " of its ",
                      s.chip.rows,
                      " x ",
                      s.chip.columns,
                      " PEs do, on average.")};
  for (const PrecisionUse& p : s.cost.precisions)
    lines.push_back(item(p.asked,
                         text("runs as ",
                              p.ran,
                              p.passes > 1 ? text(" in ", p.passes, " passes") : "",
                              ", ",
                              percent(s.cost.macs ? static_cast<double>(p.macs) / static_cast<double>(s.cost.macs) : 0),
                              " of the MACs")));
  for (const PeakRate& p : s.chip.peaks)
    lines.push_back(item(p.precision, text("at most ", quantity(p.macs_per_s, "MAC/s"))));
  if (!s.result.rows.empty() && s.cost.latency_s > 0 &&
      std::abs(full_rate_s / s.cost.latency_s - s.cost.utilization) > 1e-6)
    expect_sum("the kernels' time at full rate, in parts of 10^6",
               std::llround(1e6 * full_rate_s / s.cost.latency_s),
               std::llround(1e6 * s.cost.utilization));
  double lost_s = s.cost.latency_s - full_rate_s;
  if (lost_s > 0) {
    add_kernels_by(
        lines,
        s,
        lost_s,
        "s",
        [](const KernelRow& row) { return (1 - row.cost.utilization) * row.cost.latency_s; },
        "time in which the array could have done more");
  }
  return lines;
}

/// " +- 0.031", where there is an error.
std::string with_error(const std::optional<double>& error) { return error ? " +- " + significant(*error) : ""; }

/// What the scheme's predictions are beside those of the reference.
void add_compared(Lines& lines, const Study& study, const SchemeResult& scheme) {
  const Compared& c = *scheme.compared;
  const std::string& reference = study.protocol.reference;
  std::string sure;
  if (c.perplexity.error && *c.perplexity.error > 0)
    sure = std::abs(c.perplexity.value) > kSure * *c.perplexity.error
               ? text(", ", significant(std::abs(c.perplexity.value) / *c.perplexity.error), " times its error")
               : ": this text does not tell them apart";
  lines.push_back(text("On the same windows it differs by ",
                       signed_text(c.perplexity.value),
                       with_error(c.perplexity.error),
                       " (paired) from ",
                       reference,
                       "'s ",
                       perplexity_text(*scheme.perplexity - c.perplexity.value),
                       sure,
                       "."));
  lines.push_back(text("KL divergence from ",
                       reference,
                       "'s predictions: ",
                       significant(c.kl.value),
                       with_error(c.kl.error),
                       " nats per token; the most likely token is the same for ",
                       percent(c.same_top),
                       " of ",
                       grouped(scheme.predictions),
                       " tokens."));
}

Lines perplexity(const Study& study, const SchemeResult& scheme) {
  if (!scheme.perplexity)
    return {text("perplexity of ", scheme.name, " was not measured: the study ran nothing (--shapes-only).")};
  Lines lines = {text("perplexity of ",
                      scheme.name,
                      " is ",
                      perplexity_text(scheme.perplexity),
                      " = exp(",
                      fixed(std::log(*scheme.perplexity), 4),
                      "): the mean negative log-likelihood of ",
                      grouped(scheme.predictions),
                      " tokens in ",
                      scheme.windows,
                      " windows of ",
                      study.protocol.text,
                      ".")};
  if (scheme.standard_error)
    lines.push_back(text("Its standard error over that text is ",
                         significant(*scheme.standard_error),
                         "; schemes see the same windows, so their differences are surer than that."));
  else
    lines.emplace_back("One window has no standard error.");
  if (scheme.compared) add_compared(lines, study, scheme);
  const SchemeResult& base = study.schemes[baseline_of(study)];
  if (base.name != scheme.name && base.perplexity) {
    lines.push_back(text(base.name,
                         " has ",
                         perplexity_text(base.perplexity),
                         ": the scheme costs ln(",
                         perplexity_text(scheme.perplexity),
                         " / ",
                         perplexity_text(base.perplexity),
                         ") = ",
                         fixed(std::log(*scheme.perplexity / *base.perplexity), 4),
                         " nats per token, ",
                         percent(*scheme.perplexity / *base.perplexity - 1),
                         " of perplexity."));
  }
  lines.push_back(
      text("The scheme: ", scheme.description, "; ", fixed(scheme.bits_per_weight, 2), " bits per weight."));
  return lines;
}

Lines weight_bytes(const Study& study, const SchemeResult& scheme) {
  const double computed = static_cast<double>(scheme.parameters) * scheme.bits_per_weight / 8;
  const auto stored = static_cast<double>(scheme.weight_bytes);
  if (std::abs(computed - stored) > 1e-6 * stored + 1)
    expect_sum("parameters x bits / 8", std::llround(computed), scheme.weight_bytes);
  Lines lines = {text("weights of ",
                      scheme.name,
                      " take ",
                      quantity(stored, "B"),
                      " = ",
                      grouped(scheme.parameters),
                      " parameters x ",
                      fixed(scheme.bits_per_weight, 3),
                      " bits / 8, scales and zero points included.")};
  const SchemeResult& base = study.schemes[baseline_of(study)];
  if (base.name != scheme.name && stored > 0)
    lines.push_back(text(base.name,
                         " takes ",
                         quantity(static_cast<double>(base.weight_bytes), "B"),
                         ", ",
                         times(static_cast<double>(base.weight_bytes) / stored),
                         " that."));
  lines.push_back(text("The scheme: ", scheme.description, "."));
  return lines;
}

}  // namespace

const std::vector<FigureName>& figures() {
  static const std::vector<FigureName> rows = {
      {Figure::latency, "latency", "what binds, the parts of the time, the kernels, what would change it"},
      {Figure::energy, "energy", "the parts of the energy, each per piece of its work"},
      {Figure::bytes, "bytes", "what moves through each memory"},
      {Figure::macs, "macs", "the products behind the multiply-accumulates"},
      {Figure::utilization, "utilization", "where the array could have done more"},
      {Figure::perplexity, "perplexity", "what the scheme costs in quality"},
      {Figure::weight_bytes, "weight_bytes", "what the weights take"},
  };
  return rows;
}

std::vector<std::string> explain(const Study& study, size_t scheme, size_t chip, const PhaseName& phase,
                                 Figure figure) {
  const SchemeResult& of = study.schemes.at(scheme);
  if (figure == Figure::perplexity) return perplexity(study, of);
  if (figure == Figure::weight_bytes) return weight_bytes(study, of);
  const PhaseResult& result = of.chips.at(chip).*phase.result;
  const Subject s{study, of, study.chips.at(chip), phase.name, result, result.cost};
  switch (figure) {
    case Figure::latency: return latency(s);
    case Figure::energy: return energy(s);
    case Figure::bytes: return bytes(s);
    case Figure::macs: return macs(s);
    default: return utilization(s);
  }
}

}  // namespace sator::study
