// ./dev fuzz graphs: random graphs through random orders of passes, and through the whole pipeline to machine code. A pass
// refuses with an Error, or leaves a module that is well formed, reads back from its text, and computes the same in the
// interpreter; machine code computes what the interpreter says. A finding is shrunk and printed as a text test.
#include <iostream>

#include "base/error.h"
#include "base/text.h"
#include "cli/app.h"
#include "fuzz/graphs/cases.h"
#include "fuzz/report.h"

namespace sator::fuzz {
namespace {

struct Options {
  int64_t seed = 1, count = INT64_MAX;
  bool draw_seed = false, keep_going = false, verbose = false;
  std::optional<std::string> report;
};

std::string report_of(const Counts& c, int64_t cases, int64_t last) {
  return text(cases,
              " graphs, to seed ",
              last,
              ": ",
              c.passes_applied,
              " passes applied, ",
              c.compared,
              " results compared, ",
              c.passes_refused,
              " passes refused; ",
              c.compiled,
              " compiled and compared, ",
              c.not_compiled,
              " not compiled, ",
              c.not_run,
              " not run, ",
              c.calls_refused,
              " calls refused");
}

void run(const Options& o, cli::Streams& io) {
  if (o.report && is_left_out("graphs")) return write_report(*o.report, "graphs", Ran::left_out, "");
  const int64_t first = o.draw_seed ? new_seed() : o.seed;
  io.notes << text("graphs from seed ", first, "\n") << std::flush;
  Counts counts;
  std::string failure;
  int64_t found = 0, ran = 0;
  for (int64_t i = 0; i < o.count && (failure.empty() || o.keep_going); ++i) {
    const auto seed = static_cast<uint64_t>(first + i);
    begin_case(first + i);
    Draw draw(seed);
    ++ran;
    if (o.verbose) io.notes << text("seed ", seed, "\n") << std::flush;
    Finding finding = run_case(draw, seed, counts);
    if (o.verbose) io.notes << finding.program << std::flush;
    if (finding) {
      ++found;
      finding = shrink(std::move(finding), draw.taken, seed);
      failure = text(
          finding.what, "\n\n", as_test(finding, seed), "\n  repeat: ./dev fuzz graphs --seed ", seed, " --count 1\n");
      io.notes << failure << "\n" << std::flush;
    }
    if (i % 100 == 99 || i + 1 == o.count) io.notes << report_of(counts, i + 1, first + i) << "\n" << std::flush;
  }
  if (o.report) {
    const std::string note = text("from seed ", first, ": ", report_of(counts, ran, first + ran - 1));
    write_report(*o.report,
                 "graphs",
                 failure.empty() ? Ran::passed : Ran::failed,
                 failure.empty() ? note : note + "\n" + failure);
  }
  if (!failure.empty()) internal_error(text(found, " findings; the last one:\n", failure));
}

cli::Command command() {
  auto o = std::make_shared<Options>();
  return {.name = "fuzz_graphs",
          .does = "takes random graphs through random passes and to machine code until one computes something else",
          .options = {{"--seed N", "of the first case", &o->seed},
                      {"--count N", "how many cases", &o->count},
                      {"--draw-seed", "begin at a seed that is drawn and printed", &o->draw_seed},
                      {"--keep-going", "go on after a finding", &o->keep_going},
                      {"--verbose", "print each seed before its case, and its graph behind", &o->verbose},
                      {"--report FILE", "write the result as GoogleTest does", &o->report}},
          .run = [o](cli::Streams& io) { run(*o, io); }};
}

}  // namespace
}  // namespace sator::fuzz

int main(int argc, char** argv) {
  return sator::cli::run_single({argv + 1, argv + argc}, sator::fuzz::command(), std::cin, std::cout, std::cerr);
}
