// ./dev fuzz schedule: random programs, random schedules. Each primitive must refuse with an Error, or leave a program that
// is well formed, reads back from its text, and computes the same in the interpreter; lowered and compiled for every level
// of this CPU, the result must compute what the interpreter says. A finding is shrunk and printed as a text test.

#include <iostream>

#include "cli/app.h"
#include "fuzz/report.h"
#include "fuzz/schedule/cases.h"

namespace sator {
namespace {

using namespace fuzz;

std::string summary(int64_t cases, int64_t first, const Counts& c) {
  return text(cases,
              " programs, seeds ",
              first,
              " to ",
              first + cases - 1,
              ": ",
              c.applied,
              " steps applied, ",
              c.compared,
              " of them compared, ",
              c.refused,
              " refused; ",
              c.compiled,
              " programs compared as machine code, ",
              c.wide,
              " checked at large sizes, ",
              c.not_lowered,
              " refused by the lowering");
}

void run(int64_t seed, int64_t count, const std::string& report, bool verbose, std::ostream& notes) {
  if (!report.empty() && is_left_out("schedule")) return write_report(report, "schedule", Ran::left_out, "");
  Counts counts;
  for (int64_t i = 0; i < count; ++i) {
    const auto now = static_cast<uint64_t>(seed + i);
    begin_case(seed + i);
    Draw draw(now);
    if (Finding found = run_case(draw, now, counts, verbose ? &notes : nullptr)) {
      found = shrink(std::move(found), draw.taken, now);
      std::string words = text(found.what, "\n\n", as_test(found, now), "\n  repeat: --seed ", now, " --count 1");
      if (!report.empty()) write_report(report, "schedule", Ran::failed, words);
      internal_error(words);
    }
    if (i % 100 == 99 || i + 1 == count) notes << summary(i + 1, seed, counts) << std::endl;
  }
  if (!report.empty()) write_report(report, "schedule", Ran::passed, summary(count, seed, counts));
}

cli::Command command() {
  static int64_t seed = 1, count = INT64_MAX;
  static bool draw_seed = false, verbose = false;
  static std::string report;
  return {.name = "fuzz_schedule",
          .does = "schedules and compiles random programs at random until one computes something else",
          .options = {{"--seed N", "of the first case", &seed},
                      {"--count N", "how many cases", &count},
                      {"--draw-seed", "draw the first seed, and print it", &draw_seed},
                      {"--verbose", "print each case before it is lowered", &verbose},
                      {"--report FILE", "also write a report as GoogleTest's JSON", &report}},
          .run = [](cli::Streams& io) {
            if (draw_seed) {
              seed = new_seed();
              io.notes << text("the first seed is ", seed, "\n");
            }
            run(seed, count, report, verbose, io.notes);
          }};
}

}  // namespace
}  // namespace sator

int main(int argc, char** argv) {
  return sator::cli::run_single({argv + 1, argv + argc}, sator::command(), std::cin, std::cout, std::cerr);
}
