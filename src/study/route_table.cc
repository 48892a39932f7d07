#include "study/route_table.h"

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>

#include "base/figures.h"
#include "base/text.h"
#include "study/csv.h"
#include "study/words.h"

namespace sator::study {

namespace {

struct NamedStep {
  const char* name;
  RouteStep RouteCosts::* step;
};
constexpr NamedStep kSteps[] = {{"prefill", &RouteCosts::prefill}, {"decode", &RouteCosts::decode}};

void add_once(std::vector<std::string>& lines, const std::string& line) {
  if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
}

}  // namespace

std::vector<RoutesOnChip> compare_routes(const RouteQuestion& q, const Progress& progress) {
  std::vector<RoutesOnChip> all;
  std::deque<RouteCoster> costers;  // which cannot move
  for (const Chip& chip : q.chips) costers.emplace_back(chip, q.host);
  for (const llm::Scheme& scheme : q.schemes) {
    const ProgramAtPhase3 at = program_at_phase3(q.model, {.scheme = scheme});
    for (size_t c = 0; c < q.chips.size(); ++c) {
      RoutesOnChip on{.chip = q.chips[c].name, .scheme = scheme.name, .lengths = q.lengths, .routes = {}, .notes = {}};
      on.routes = costers[c].by_every_route(
          q.model,
          scheme,
          at,
          q.lengths,
          [&](const std::string& line, bool passing) { progress(text(line, " to ", on.chip), passing); },
          on.notes);
      all.push_back(std::move(on));
    }
  }
  return all;
}

std::string routes_table(const std::vector<RoutesOnChip>& all) {
  std::string out;
  for (const RoutesOnChip& on : all) {
    out += text("routes to ",
                on.chip,
                ", ",
                on.scheme,
                ": a prompt of ",
                on.lengths.prompt_len,
                " tokens, a token at a context of ",
                on.lengths.context,
                "\n");
    auto line = [&](const std::string& step,
                    const std::string& route,
                    const std::string& share,
                    const std::string& zeros,
                    const std::string& latency,
                    const std::string& host,
                    const std::string& bandwidth,
                    const std::string& launches) {
      out += text(pad_right("  " + step, 10),
                  pad_right(route, 11),
                  pad_left(share, 14),
                  pad_left(zeros, 8),
                  pad_left(latency, 10),
                  pad_left(host, 13),
                  pad_left(bandwidth, 11),
                  pad_left(launches, 17),
                  "\n");
    };
    line("step", "route", "MACs on chip", "zeros", "latency", "of it host", "bandwidth", "launches + host");
    std::vector<std::string> off, padded;
    for (const NamedStep& named : kSteps)
      for (const RouteCosts& by : on.routes) {
        const RouteStep& s = by.*named.step;
        line(&by == on.routes.data() ? named.name : "",
             std::string(name_of(by.route)),
             percent(s.share()),
             s.padded_share() > 0 ? percent(s.padded_share()) : "-",
             quantity(s.latency_s(), "s"),
             percent(s.latency_s() > 0 ? s.host_s / s.latency_s() : 0),
             quantity(s.bytes_per_s(), "B/s"),
             text(s.launches_on_chip, " + ", s.launches_on_host));
        for (const RouteKernel& kernel : s.kernels) {
          const std::string before = text("  ", name_of(by.route), ": ");
          if (!kernel.why.empty()) add_once(off, before + kernel.why);
          for (const std::string& words : kernel.padded) add_once(padded, before + words);
        }
      }
    auto list = [&](const char* title, const std::vector<std::string>& lines) {
      if (!lines.empty()) out += text(title, "\n", join(lines, "\n"), "\n");
    };
    list("  stays off the chip:", off);
    list("  padded to whole tiles:", padded);
    std::vector<std::string> notes;
    for (const std::string& note : on.notes) notes.push_back("  " + note);
    list("  not matched or not joined:", notes);
    out += "\n";
  }
  return out;
}

std::string routes_csv(const std::vector<RoutesOnChip>& all) {
  std::string out = "chip,scheme,step,route,kernel,count,on_chip,macs,macs_issued,latency_s,why,padded\n";
  for (const RoutesOnChip& on : all)
    for (const RouteCosts& by : on.routes)
      for (const NamedStep& named : kSteps)
        for (const RouteKernel& k : (by.*named.step).kernels)
          out += text(csv_field(on.chip),
                      ",",
                      csv_field(on.scheme),
                      ",",
                      named.name,
                      ",",
                      name_of(by.route),
                      ",",
                      csv_field(k.function),
                      ",",
                      k.count,
                      ",",
                      k.on_chip ? 1 : 0,
                      ",",
                      k.macs,
                      ",",
                      k.macs_issued,
                      ",",
                      k.latency_s,
                      ",",
                      csv_field(k.why),
                      ",",
                      csv_field(join(k.padded, "; ")),
                      "\n");
  return out;
}

nlohmann::json routes_json(const std::vector<RoutesOnChip>& all) {
  nlohmann::json out = nlohmann::json::array();
  for (const RoutesOnChip& on : all)
    for (const RouteCosts& by : on.routes)
      for (const NamedStep& named : kSteps) {
        const RouteStep& s = by.*named.step;
        nlohmann::json kernels = nlohmann::json::array();
        for (const RouteKernel& k : s.kernels)
          kernels.push_back({{"function", k.function},
                             {"count", k.count},
                             {"on_chip", k.on_chip},
                             {"macs", k.macs},
                             {"macs_issued", k.macs_issued},
                             {"latency_s", k.latency_s},
                             {"why", k.why},
                             {"padded", k.padded}});
        out.push_back({{"chip", on.chip},
                       {"scheme", on.scheme},
                       {"prompt_len", on.lengths.prompt_len},
                       {"context", on.lengths.context},
                       {"step", named.name},
                       {"route", std::string(name_of(by.route))},
                       {"macs", s.macs},
                       {"macs_on_chip", s.macs_on_chip},
                       {"macs_issued", s.macs_issued},
                       {"latency_s", s.latency_s()},
                       {"host_s", s.host_s},
                       {"outside_bytes", s.outside_bytes},
                       {"bandwidth_bytes_per_s", s.bytes_per_s()},
                       {"launches_on_chip", s.launches_on_chip},
                       {"launches_on_host", s.launches_on_host},
                       {"kernels", std::move(kernels)},
                       {"notes", on.notes}});
      }
  return out;
}

}  // namespace sator::study
