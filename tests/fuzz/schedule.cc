// ./dev fuzz schedule: random programs, random schedules. Each primitive must refuse with an Error, or leave a program that
// is well formed, reads back from its text, and computes the same in the interpreter; lowered and compiled for every level
// of this CPU, the result must compute what the interpreter says. A finding is shrunk and printed as a text test.

#include <iostream>

#include "cli/app.h"
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
              c.not_lowered,
              " refused by the lowering\n");
}

cli::Command command() {
  static int64_t seed = 1, count = INT64_MAX;
  return {.name = "fuzz_schedule",
          .does = "schedules and compiles random programs at random until one computes something else",
          .options = {{"--seed N", "of the first case", &seed}, {"--count N", "how many cases", &count}},
          .run = [](cli::Streams& io) {
            Counts counts;
            for (int64_t i = 0; i < count; ++i) {
              const auto now = static_cast<uint64_t>(seed + i);
              Draw draw(now);
              if (Finding found = run_case(draw, now, counts)) {
                found = shrink(std::move(found), draw.taken, now);
                internal_error(text(
                    found.what, "\n\n", as_test(found, now), "\n  repeat: --seed ", now, " --count 1"));
              }
              if (i % 100 == 99 || i + 1 == count) io.notes << summary(i + 1, seed, counts) << std::flush;
            }
          }};
}

}  // namespace
}  // namespace sator

int main(int argc, char** argv) {
  return sator::cli::run_single({argv + 1, argv + argc}, sator::command(), std::cin, std::cout, std::cerr);
}
