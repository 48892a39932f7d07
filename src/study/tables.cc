#include "study/tables.h"

#include <algorithm>

#include "base/figures.h"
#include "base/text.h"
#include "study/compare.h"
#include "study/words.h"

namespace sator::study {

namespace {

using Value = std::function<std::optional<double>(const SchemeResult&)>;

/// Whether a scheme has the least of the values that are there, if several schemes could have it.
std::function<bool(const SchemeResult&)> has_least(const Study& study, const Value& value) {
  std::optional<double> best;
  for (const SchemeResult& s : study.schemes)
    if (std::optional<double> v = value(s)) best = std::min(best.value_or(*v), *v);
  if (study.schemes.size() < 2 || !best) return {};
  return [=](const SchemeResult& s) { return value(s) == best; };
}

/// Whether the text does not tell a scheme from that of the least perplexity, or it is better still by quality_order.
std::function<bool(const SchemeResult&)> predicts_best(const Study& study) {
  const SchemeResult* best = nullptr;
  for (const SchemeResult& s : study.schemes)
    if (s.perplexity && (!best || *s.perplexity < *best->perplexity)) best = &s;
  if (study.schemes.size() < 2 || !best) return {};
  return [best](const SchemeResult& s) { return quality_order(s, *best) <= 0; };
}

/// Of what was compared with the reference; a dash elsewhere.
std::function<Figure(const SchemeResult&)> compared(const std::function<Figure(const Compared&)>& figure) {
  return [=](const SchemeResult& s) { return s.compared ? figure(*s.compared) : Figure{"-", {}}; };
}

Figure error(const std::optional<double>& e) { return {error_text(e), e}; }

/// "vs NAME" within eight columns: in the first line, in two, or not at all.
std::pair<std::string, std::string> ratio_head(const std::string& name) {
  const std::string versus = "vs " + name;
  if (display_width(versus) <= 6) return {versus, ""};
  if (display_width(name) <= 7) return {"vs", name};
  return {"ratio", ""};
}

void add_phase_columns(std::vector<FigureColumn>& columns, const Study& study, size_t chip, const PhaseName& phase) {
  auto cost = [=, result = phase.result](const SchemeResult& s) -> const Cost& { return (s.chips[chip].*result).cost; };
  const SchemeResult& base = study.schemes[baseline_of(study, chip)];
  const auto fastest = has_least(study, [=](const SchemeResult& s) { return std::optional(cost(s).latency_s); });
  const auto frugal = has_least(study, [=](const SchemeResult& s) {
    return knows_energy(cost(s)) ? std::optional(cost(s).energy_j) : std::nullopt;
  });
  auto add = [&](FigureColumn column, std::function<Figure(const Cost&)> figure) {
    column.figure = [=](const SchemeResult& s) { return figure(cost(s)); };
    columns.push_back(std::move(column));
  };
  add({.head = "latency",
       .width = phase.result == kPhases[0].result ? size_t{10} : size_t{11},
       .is_best = fastest,
       .begins_group = true},
      [](const Cost& c) { return Figure{quantity(c.latency_s, "s"), c.latency_s}; });
  add({.head = "MACs", .width = 8}, [](const Cost& c) {
    const auto macs = static_cast<double>(c.macs);
    return Figure{quantity(macs, ""), macs};
  });
  add({.head = "units", .below = "used", .width = 7, .page_head = "MAC units", .page_below = "used"},
      [](const Cost& c) { return Figure{significant(c.mac_units_used), c.mac_units_used}; });
  add({.head = "bandwidth", .width = 11, .page_head = "bandwidth", .page_below = "outside"}, [](const Cost& c) {
    const double bandwidth = c.levels.empty() ? 0 : c.levels.front().achieved_bytes_per_s;
    return Figure{quantity(bandwidth, "B/s"), bandwidth};
  });
  add({.head = "energy", .is_best = frugal},
      [](const Cost& c) { return Figure{energy_text(c), knows_energy(c) ? std::optional(c.energy_j) : std::nullopt}; });
  add({.head = "bound"}, [](const Cost& c) { return Figure{c.bound, {}}; });
  const auto [head, below] = ratio_head(base.name);
  add({.head = head, .below = below, .width = 8, .page_head = "vs " + base.name, .is_best = fastest},
      [whole = cost(base).latency_s](const Cost& c) {
        const auto faster = ratio(whole, c.latency_s);
        return Figure{times(faster), faster};
      });
}

}  // namespace

std::vector<FigureColumn> quality_columns(const Study& study) {
  const std::string& reference = study.protocol.reference;
  const std::string to = reference.empty() ? "" : "to " + reference,
                    from = reference.empty() ? "" : "from " + reference;
  auto bits = [](const SchemeResult& s) { return std::optional(s.bits_per_weight); };
  return {
      {.head = "perplexity",
       .width = 12,
       .figure = [](const SchemeResult& s) { return Figure{perplexity_text(s.perplexity), s.perplexity}; },
       .is_best = predicts_best(study)},
      {.head = "error",
       .width = 7,
       .page_head = "standard",
       .page_below = "error",
       .figure = [](const SchemeResult& s) { return error(s.standard_error); }},
      {.head = "difference", .below = to, .width = 12, .figure = compared([](const Compared& c) {
                                                         return Figure{signed_text(c.perplexity.value),
                                                                       c.perplexity.value};
                                                       })},
      {.head = "error", .below = "paired", .width = 10, .figure = compared([](const Compared& c) {
                                                          return error(c.perplexity.error);
                                                        })},
      {.head = "KL",
       .below = from,
       .width = 10,
       .page_head = "KL divergence",
       .page_below = from,
       .figure = compared([](const Compared& c) { return Figure{significant(c.kl.value), c.kl.value}; })},
      {.head = "error",
       .width = 10,
       .page_head = "error",
       .page_below = "nats",
       .figure = compared([](const Compared& c) { return error(c.kl.error); })},
      {.head = "same",
       .below = "top 1",
       .width = 9,
       .page_head = "same",
       .page_below = "top token",
       .figure = compared([](const Compared& c) { return Figure{percent(c.same_top), c.same_top}; })},
      {.head = "size",
       .width = 10,
       .page_head = "stored",
       .page_below = "bytes",
       .figure =
           [](const SchemeResult& s) {
             const auto bytes = static_cast<double>(s.weight_bytes);
             return Figure{quantity(bytes, "B"), bytes};
           }},
      {.head = "bits",
       .below = "per weight",
       .width = 12,
       .figure = [](const SchemeResult& s) { return Figure{fixed(s.bits_per_weight, 2), s.bits_per_weight}; },
       .is_best = has_least(study, bits)},
  };
}

std::vector<FigureColumn> speed_columns(const Study& study) {
  if (std::ranges::none_of(study.schemes, [](const SchemeResult& s) { return s.host_prefill || s.host_decode; }))
    return {};
  std::vector<FigureColumn> columns;
  auto add = [&](const char* phase, std::optional<HostSpeed> SchemeResult::* speed) {
    auto limit = [=](double HostSpeed::* of) {
      return [=](const SchemeResult& s) {
        const std::optional<HostSpeed>& v = s.*speed;
        return v ? Figure{significant((*v).*of), (*v).*of} : Figure{"-", {}};
      };
    };
    columns.push_back({.head = phase,
                       .below = "median",
                       .width = 13,
                       .figure =
                           [=](const SchemeResult& s) {
                             const std::optional<HostSpeed>& v = s.*speed;
                             return Figure{speed_text(v), v ? std::optional(v->median) : std::nullopt};
                           },
                       .is_best = has_least(study,
                                            [=](const SchemeResult& s) {
                                              return s.*speed ? std::optional(-(s.*speed)->median) : std::nullopt;
                                            }),
                       .begins_group = true});
    columns.push_back(
        {.below = "least", .width = 9, .page_head = phase, .page_below = "least", .figure = limit(&HostSpeed::least)});
    columns.push_back(
        {.below = "most", .width = 9, .page_head = phase, .page_below = "most", .figure = limit(&HostSpeed::most)});
  };
  add("prefill", &SchemeResult::host_prefill);
  add("decode", &SchemeResult::host_decode);
  columns.push_back({.head = "load", .below = "s", .width = 8, .figure = [](const SchemeResult& s) {
                       return Figure{or_dash(s.load_s, [](double v) { return fixed(v, 2); }), s.load_s};
                     }});
  return columns;
}

std::vector<FigureColumn> chip_columns(const Study& study, size_t chip) {
  std::vector<FigureColumn> columns;
  for (const PhaseName& phase : kPhases) add_phase_columns(columns, study, chip, phase);
  return columns;
}

}  // namespace sator::study
