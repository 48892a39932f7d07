#include "study/route_table.h"

#include <algorithm>
#include <deque>

#include "base/figures.h"
#include "base/text.h"
#include "study/csv_table.h"
#include "study/words.h"

namespace sator::study {

namespace {

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
                counted(on.lengths.prompt_len, "token"),
                ", a token at a context of ",
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
    for (const RouteStepName& named : kRouteSteps)
      for (const RouteCosts& by : on.routes) {
        const RouteStep& s = by.*named.step;
        line(&by == on.routes.data() ? std::string(named.name) : "",
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

std::string routes_csv(std::vector<RoutesOnChip> all) {
  CsvTable table;
  auto add = [&](const RoutesOnChip& on, const RouteCosts& by, std::string_view step, RouteKernel& kernel) {
    table.begin();
    CsvWriter w(table);
    w(csv_only("chip"), on.chip);
    w(csv_only("scheme"), on.scheme);
    w(csv_only("step"), std::string(step));
    w(csv_only("route"), std::string(name_of(by.route)));
    describe(w, kernel);
  };
  RouteKernel kernel;
  add({}, {}, "", kernel);
  table.keep_head_alone();
  for (RoutesOnChip& on : all)
    for (RouteCosts& by : on.routes)
      for (const RouteStepName& named : kRouteSteps)
        for (RouteKernel& k : (by.*named.step).kernels) add(on, by, named.name, k);
  return table.words();
}

}  // namespace sator::study
