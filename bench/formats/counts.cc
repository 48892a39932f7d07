// How many mappings are counted per second on one thread: by closed form, by the general engine, and with reading TENET's
// files; beside the seconds that TENET took for the same files. Usage: formats_counts_bench [--json]
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "dataflow/counts/gemm_forms.h"
#include "formats/batch.h"
#include "formats/tenet/answer.h"

using namespace sator;
using namespace sator::dataflow;
using namespace sator::formats;

namespace {

const char* const kSamples = "tests/reference/cases/tenet/tenet-samples.jsonl";  // from the root of the checkout

bool as_json = false;

/// Seconds of this thread: other programs on the machine disturb less.
double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

void report(const std::string& name, nlohmann::ordered_json figures) {
  nlohmann::ordered_json row = {{"bench", "formats_counts"}, {"case", name}};
  row.update(figures);
  if (as_json)
    printf("%s\n", row.dump().c_str());
  else
    printf("%-44s %s\n", name.c_str(), figures.dump().c_str());
}

/// Calls `work(n)` for n = 0, 1, ... for about a second; calls per second.
template <class Work>
double rate(const Work& work) {
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const double start = now();
    size_t calls = 0;
    double spent = 0;
    while (spent < 0.2) {
      for (int i = 0; i < 16; ++i) work(calls++);
      spent = now() - start;
    }
    best = std::max(best, static_cast<double>(calls) / spent);
  }
  return best;
}

std::vector<GemmNest> nests() {
  std::vector<GemmNest> all;
  for (auto [i, j, k] : {std::array<int64_t, 3>{1, 4096, 4096},
                         {512, 4096, 4096},
                         {128, 11008, 4096},
                         {37, 29, 53},
                         {512, 32000, 4096},
                         {1000, 777, 1234}})
    for (auto stays : {GemmNest::Stays::outputs, GemmNest::Stays::weights, GemmNest::Stays::inputs})
      for (int64_t side : {8, 32, 128})
        for (bool skewed : {true, false})
          all.push_back({.i = i,
                         .j = j,
                         .k = k,
                         .rows = side,
                         .columns = side,
                         .stays = stays,
                         .skewed = skewed,
                         .row_tiles_inside = stays != GemmNest::Stays::outputs});
  return all;
}

void closed_forms() {
  const std::vector<GemmNest> all = nests();
  int64_t sum = 0;
  const double per_second = rate([&](size_t n) {
    GemmNest nest = all[n % all.size()];
    nest.i += static_cast<int64_t>(n % 1000);  // never the same mapping twice in a row
    if (auto counts = gemm_counts(nest)) sum += counts->a.unique + counts->time;
  });
  report("closed form, a GEMM's mapping",
         {{"per_second", per_second}, {"ratio", per_second / 1e6}, {"reach", 1}, {"checksum", sum % 1000}});
}

void general_engine() {
  std::vector<Problem> plain, ragged, grouped;
  for (const GemmNest& nest : nests()) {
    Problem p = problem_of(nest);
    const bool divides = nest.i % nest.rows == 0 && nest.j % nest.columns == 0 && nest.k % nest.rows == 0;
    (divides ? plain : ragged).push_back(p);
    p.statement.accesses.push_back({"Sc", Role::read, {{floor_div(variable(2), 32), variable(1)}}});
    grouped.push_back(std::move(p));
  }
  auto measure = [](const char* name, const std::vector<Problem>& problems) {
    int64_t sum = 0;
    const double per_second = rate([&](size_t n) {
      auto counts = count(problems[n % problems.size()]);
      if (auto* c = std::get_if<Counts>(&counts)) sum += c->time;
    });
    report(name, {{"per_second", per_second}, {"ratio", per_second / 1e4}, {"reach", 1}, {"checksum", sum % 1000}});
  };
  measure("engine, GEMM, tiles divide", plain);
  measure("engine, GEMM, ragged", ragged);
  std::vector<Problem> both = plain;
  both.insert(both.end(), ragged.begin(), ragged.end());
  measure("engine, GEMM, all", both);
  measure("engine, GEMM with group scales", grouped);
}

void beside_tenet() {
  std::ifstream in(kSamples);
  if (!in) {
    report("TENET's samples", {{"absent", std::string(kSamples) + " is not there"}});
    return;
  }
  std::vector<double> ours, engine, stock, all_metrics;
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    nlohmann::json c = nlohmann::json::parse(line);
    const std::string pe = c["input"]["pe_array"], mapping = c["input"]["mapping"], statement = c["input"]["statement"];
    const TenetInput read = parse_tenet({pe, mapping, statement});
    double best_engine = 1e9, best = 1e9;
    for (int repeat = 0; repeat < 5; ++repeat) {
      double start = now();
      const Counts counts = tenet_counts(read);
      best_engine = std::min(best_engine, now() - start);
      start = now();
      const std::string answer = answer_tenet(c["input"]).dump();
      best = std::min(best, now() - start);
    }
    engine.push_back(best_engine);
    ours.push_back(best);
    // Where TENET aborted or passed its limit, there is no figure of its own.
    if (c["seconds"].contains("tenet_cli")) stock.push_back(c["seconds"]["tenet_cli"]);
    if (c["seconds"].contains("tenet_all_metrics")) all_metrics.push_back(c["seconds"]["tenet_all_metrics"]);
    lines.push_back(nlohmann::json{{"id", c["id"]}, {"format", "tenet"}, {"input", c["input"]}}.dump());
  }
  auto figures = [](std::vector<double> v) -> nlohmann::ordered_json {
    if (v.empty()) return {{"absent", "the samples that are here have no such times"}};
    std::sort(v.begin(), v.end());
    double sum = 0;
    for (double s : v) sum += s;
    return {{"samples", v.size()}, {"median_s", v[v.size() / 2]}, {"max_s", v.back()}, {"sum_s", sum}};
  };
  report("TENET's samples: TENET, stock output", figures(stock));
  report("TENET's samples: TENET, all metrics", figures(all_metrics));
  report("TENET's samples: ours, counts", figures(engine));
  report("TENET's samples: ours, text to all metrics", figures(ours));
  const double per_second = rate([&](size_t n) { answer_row(lines[n % lines.size()], "batch", 1).dump(); });
  report("rows of a batch, TENET's samples", {{"per_second", per_second}});
}

}  // namespace

int main(int argc, char** argv) {
  as_json = argc > 1 && std::strcmp(argv[1], "--json") == 0;
  closed_forms();
  general_engine();
  beside_tenet();
}
