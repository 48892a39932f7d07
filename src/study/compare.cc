#include "study/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/figures.h"
#include "base/text.h"

namespace sator::study {

namespace {

constexpr double kCloseToBest = 1.01;  // of the best perplexity
constexpr double kWorthSaying = 0.02;  // of the baseline's request
constexpr size_t kReasons = 3;

double component_s(const ChipResult& result, const Protocol& protocol, Component c, double clock_hz) {
  return (static_cast<double>(at(result.prefill.cost.components, c).latency_cycles) +
          static_cast<double>(protocol.gen_len) *
              static_cast<double>(at(result.decode.cost.components, c).latency_cycles)) /
         clock_hz;
}

/// Seconds of a request in which a resource works, whether it binds or not.
double resource_s(const ChipResult& result, const Protocol& protocol, const std::string& name, double clock_hz) {
  auto cycles = [&](const Cost& cost) {
    for (const ResourceCycles& r : cost.resources)
      if (r.name == name) return static_cast<double>(r.cycles);
    return 0.0;
  };
  return (cycles(result.prefill.cost) + static_cast<double>(protocol.gen_len) * cycles(result.decode.cost)) / clock_hz;
}

/// "weight bytes 2.10 ms instead of 8.20 ms, MAC array ..., though dequantize 0.3 ms instead of 0 s"
std::string reasons(const ChipResult& winner, const ChipResult& baseline, const Study& study, double clock_hz) {
  struct Change {
    Component component;
    std::string words;
    double before, after;
    double saved() const { return before - after; }
  };
  std::vector<Change> changes;
  for (const ComponentName& c : components())
    changes.push_back({c.component,
                       std::string(c.words),
                       component_s(baseline, study.protocol, c.component, clock_hz),
                       component_s(winner, study.protocol, c.component, clock_hz)});
  std::stable_sort(
      changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.saved() > b.saved(); });
  const double least = kWorthSaying * request_s(baseline, study.protocol);
  auto words = [](const Change& c) {
    return text(c.words, " ", quantity(c.after, "s"), " instead of ", quantity(c.before, "s"));
  };
  // An array that has no more to do takes more of the latency only because what hid it has gone.
  auto array_s = [&](const ChipResult& r) { return resource_s(r, study.protocol, "array", clock_hz); };
  const bool uncovered = array_s(winner) > 0 && array_s(winner) <= array_s(baseline) + least;
  std::string binds;
  std::vector<std::string> gains, losses;
  for (const Change& c : changes)
    if (c.saved() > least && gains.size() < kReasons) gains.push_back(words(c));
  for (auto c = changes.rbegin(); c != changes.rend(); ++c)
    if (-c->saved() > least && c->component == Component::array && uncovered)
      binds = text("; then the ", c->words, " binds, ", quantity(c->after, "s"));
    else if (-c->saved() > least && losses.size() < kReasons)
      losses.push_back(words(*c));
  std::string result = join(gains, ", ");
  if (!losses.empty()) result += (gains.empty() ? "" : ", though ") + join(losses, ", ");
  return result + binds;
}

std::string faster(double mine, double baseline, const std::string& baseline_name) {
  auto r = ratio(baseline, mine);
  return r ? text(times(r), " ", baseline_name, "'s speed") : "";
}

/// " (+0.31 % +- 0.05 %)": how much worse the scheme is than the best one; nothing for that itself.
std::string gap_words(const SchemeResult& scheme, const SchemeResult& best) {
  const std::optional<WindowMean> gap = quality_gap(scheme, best);
  if (!gap || &scheme == &best || !gap->error) return "";
  return text(" (", fixed(100 * gap->value, 2), " % +- ", fixed(100 * *gap->error, 2), " %)");
}

Verdict verdict_on(const Study& study, size_t chip) {
  const std::vector<SchemeResult>& schemes = study.schemes;
  const size_t base = baseline_of(study, chip);
  const SchemeResult& baseline = schemes[base];
  auto seconds = [&](size_t s) { return request_s(schemes[s].chips[chip], study.protocol); };
  Verdict v{.chip = study.chips[chip].name};
  // What has no cost takes no time: only schemes that lack the fewest kernels are compared.
  auto lacks = [&](size_t s) { return kernels_without_cost(schemes[s].chips[chip]); };
  int64_t fewest = INT64_MAX;
  for (size_t s = 0; s < schemes.size(); ++s)
    if (lacks(s) < fewest) fewest = lacks(s), v.winner = s;
  for (size_t s = 0; s < schemes.size(); ++s)
    if (lacks(s) == fewest && (seconds(s) < seconds(v.winner) ||
                               (seconds(s) == seconds(v.winner) && quality_order(schemes[s], schemes[v.winner]) < 0)))
      v.winner = s;

  std::optional<size_t> best;
  for (size_t s = 0; s < schemes.size(); ++s)
    if (schemes[s].perplexity && std::isfinite(*schemes[s].perplexity) &&
        (!best || *schemes[s].perplexity < *schemes[*best].perplexity))
      best = s;
  auto close = [&](size_t s) {
    return lacks(s) == fewest && is_surely_within(schemes[s], schemes[*best], kCloseToBest);
  };
  if (best && !close(v.winner)) {
    for (size_t s = 0; s < schemes.size(); ++s)
      if (close(s) && (!v.close_to_best || seconds(s) < seconds(*v.close_to_best))) v.close_to_best = s;
  }

  const SchemeResult& winner = schemes[v.winner];
  v.sentence = text(winner.name,
                    " is fastest on ",
                    v.chip,
                    ": ",
                    quantity(seconds(v.winner), "s"),
                    " for ",
                    study.protocol.prompt_len,
                    " + ",
                    study.protocol.gen_len,
                    " tokens");
  if (lacks(base) > fewest) {
    v.sentence += text("; ", baseline.name, ", the baseline, has kernels without a cost");
  } else if (v.winner == base) {
    v.sentence += schemes.size() > 1 ? ", and nothing beats the baseline" : ", the only scheme";
  } else {
    v.sentence += text(", ", faster(seconds(v.winner), seconds(base), baseline.name));
    const std::string why = reasons(winner.chips[chip], baseline.chips[chip], study, study.chips[chip].clock_hz);
    if (!why.empty()) v.sentence += text(" (", why, ")");
  }
  if (v.close_to_best && lacks(base) == fewest)
    v.sentence += text("; within 1 % of the best perplexity ",
                       schemes[*v.close_to_best].name,
                       gap_words(schemes[*v.close_to_best], schemes[*best]),
                       ", ",
                       faster(seconds(*v.close_to_best), seconds(base), baseline.name));
  v.sentence += ".";
  std::vector<std::string> left_out;
  for (size_t s = 0; s < schemes.size(); ++s)
    if (lacks(s) > fewest) left_out.push_back(schemes[s].name);
  if (!left_out.empty())
    v.sentence +=
        text(" Not compared, as kernels without a cost are left out of its latency: ", join(left_out, ", "), ".");
  return v;
}

}  // namespace

static std::optional<size_t> scheme_named(const Study& study, std::string_view name) {
  for (size_t s = 0; s < study.schemes.size(); ++s)
    if (study.schemes[s].name == name) return s;
  return {};
}

size_t baseline_of(const Study& study) { return scheme_named(study, "f16").value_or(0); }

size_t baseline_of(const Study& study, size_t chip) {
  if (study.chips.at(chip).is_16_bit)
    if (const std::optional<size_t> s = scheme_named(study, kBaseline16Bit)) return *s;
  return baseline_of(study);
}

std::optional<double> ratio(double baseline, double scheme) {
  if (!(scheme > 0) || !(baseline > 0)) return {};
  return baseline / scheme;
}

int64_t kernels_without_cost(const ChipResult& result) {
  return result.prefill.kernels - result.prefill.kernels_costed + result.decode.kernels - result.decode.kernels_costed;
}

double of_request(const ChipResult& result, const Protocol& protocol, double Cost::* figure) {
  return result.prefill.cost.*figure + static_cast<double>(protocol.gen_len) * (result.decode.cost.*figure);
}

static std::optional<dataflow::LatencyInterval> interval_of_request(const ChipResult& result,
                                                                    const Protocol& protocol) {
  const auto &prefill = result.prefill.cost.latency_interval, &decode = result.decode.cost.latency_interval;
  if (!prefill || !decode) return {};
  const auto steps = static_cast<double>(protocol.gen_len);
  return dataflow::LatencyInterval{prefill->low_s + steps * decode->low_s, prefill->high_s + steps * decode->high_s};
}

double request_s(const ChipResult& result, const Protocol& protocol) {
  return of_request(result, protocol, &Cost::latency_s);
}

std::optional<WindowMean> quality_gap(const SchemeResult& scheme, const SchemeResult& other) {
  if (!scheme.perplexity || !other.perplexity) return {};
  if (!std::isfinite(*scheme.perplexity) || !std::isfinite(*other.perplexity)) return {};
  if (scheme.window_nats.size() == other.window_nats.size() && !scheme.window_nats.empty())
    return mean_difference(scheme.window_nats, other.window_nats);
  return WindowMean{std::log(*scheme.perplexity / *other.perplexity), {}};
}

int quality_order(const SchemeResult& a, const SchemeResult& b) {
  const std::optional<WindowMean> gap = quality_gap(a, b);
  if (!gap) {
    const double worst = std::numeric_limits<double>::infinity();
    const double of_a = a.perplexity.value_or(worst), of_b = b.perplexity.value_or(worst);
    return of_a < of_b ? -1 : of_a > of_b ? 1 : 0;
  }
  const double unsure = kSure * gap->error.value_or(0);
  return gap->value < -unsure ? -1 : gap->value > unsure ? 1 : 0;
}

bool is_surely_within(const SchemeResult& scheme, const SchemeResult& other, double factor) {
  const std::optional<WindowMean> gap = quality_gap(scheme, other);
  return gap && gap->value + kSure * gap->error.value_or(0) <= std::log(factor) + 1e-12;
}

std::vector<Candidate> candidates(const Study& study) {
  std::vector<Candidate> all;
  for (size_t s = 0; s < study.schemes.size(); ++s)
    for (size_t c = 0; c < study.schemes[s].chips.size(); ++c) {
      auto of = [&](double Cost::* figure) { return of_request(study.schemes[s].chips[c], study.protocol, figure); };
      all.push_back({.scheme = s,
                     .chip = c,
                     .latency_s = of(&Cost::latency_s),
                     .energy_j = of(&Cost::energy_j),
                     .latency_interval = interval_of_request(study.schemes[s].chips[c], study.protocol),
                     .perplexity = study.schemes[s].perplexity});
    }
  // An energy that is not known is no small one.
  auto energy = [](const Candidate& c) {
    return c.energy_j > 0 ? c.energy_j : std::numeric_limits<double>::infinity();
  };
  auto beats = [&](const Candidate& a, const Candidate& b) {
    const int quality = quality_order(study.schemes[a.scheme], study.schemes[b.scheme]);
    if (!(a.latency_s <= b.latency_s) || !(energy(a) <= energy(b)) || quality > 0) return false;
    return a.latency_s < b.latency_s || energy(a) < energy(b) || quality < 0;
  };
  for (Candidate& c : all)
    c.best = !std::isnan(c.latency_s) && std::ranges::none_of(all, [&](const Candidate& o) { return beats(o, c); });
  return all;
}

std::vector<size_t> pareto_front(std::span<const double> cost, std::span<const double> loss) {
  std::vector<size_t> order;
  for (size_t i = 0; i < cost.size(); ++i)
    if (std::isfinite(cost[i]) && std::isfinite(loss[i])) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return cost[a] != cost[b] ? cost[a] < cost[b] : loss[a] < loss[b];
  });
  std::vector<size_t> front;
  for (size_t i : order) {
    const bool better = front.empty() || loss[i] < loss[front.back()];
    const bool equal = !front.empty() && loss[i] == loss[front.back()] && cost[i] == cost[front.back()];
    if (better || equal) front.push_back(i);
  }
  return front;
}

std::vector<Verdict> verdicts(const Study& study) {
  std::vector<Verdict> all;
  if (study.schemes.empty()) return all;
  for (size_t chip = 0; chip < study.chips.size(); ++chip) all.push_back(verdict_on(study, chip));
  return all;
}

std::vector<std::string> precision_remarks(const ChipResult& result) {
  std::vector<std::string> remarks;
  for (const PhaseName& phase : kPhases)
    for (const PrecisionUse& p : (result.*phase.result).cost.precisions) {
      if (p.exact()) continue;
      std::string remark = text(p.asked, " runs as ", p.ran);
      if (p.passes > 1) remark += text(" in ", p.passes, " passes");
      if (std::find(remarks.begin(), remarks.end(), remark) == remarks.end()) remarks.push_back(std::move(remark));
    }
  return remarks;
}

}  // namespace sator::study
