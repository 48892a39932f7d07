// The program of `./dev test` and `./dev bless` for the text tests.
#include <cstdlib>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "cli/app.h"
#include "support/runners.h"
#include "support/texttest.h"

namespace sator::test {

static void run(const TextTestOptions& options, std::ostream& out) {
  int failed = run_text_tests(options, runners(), out);
  if (failed)
    fail({.what = text(failed, " of the text tests failed"),
          .needs = "results as the expectations say",
          .hint = "where a new result is right, `./dev bless FILTER` accepts it"});
}

static cli::Command texttest_command() {
  struct Args {
    TextTestOptions options;
    std::vector<std::string> roots;
    std::string report;
    bool list = false, together = false;
    int64_t jobs = 0;
  };
  auto a = std::make_shared<Args>();
  if (const char* filter = std::getenv("SATOR_TEST_FILTER")) a->options.filter = filter;
  return {
      .name = "sator_texttest",
      .does = "runs the text tests below folders",
      .options = {{"PATH", "folders or files with text tests", &a->roots},
                  {"--filter TEXT", "keep the cases whose tests/path.test:case contains this", &a->options.filter},
                  {"--bless", "write present results as expectations", &a->options.bless},
                  {"--runners", "list the kinds of cases", &a->list},
                  {"--together", "run all cases in this one process, for a debugger", &a->together},
                  {"-j,--jobs N", "processes at a time, 0 for one per core", &a->jobs},
                  {"--limit-s S", "seconds that a case may take", &a->options.limit_s},
                  {"--report FILE", "also write a report as GoogleTest's JSON", &a->report}},
      .run =
          [a](cli::Streams& io) {
            if (a->list) {
              for (const Runner& r : runners())
                io.out << text(
                    "--- ", r.section, "   ", r.does, r.inputs.empty() ? "" : "; reads ", join(r.inputs, ", "), "\n");
              return;
            }
            a->options.roots.assign(a->roots.begin(), a->roots.end());
            a->options.isolate = !a->together;
            a->options.jobs = static_cast<int>(a->jobs);
            a->options.report = a->report;
            run(a->options, io.out);
          },
  };
}

}  // namespace sator::test

int main(int argc, char** argv) {
  return sator::cli::run_single(
      {argv + 1, argv + argc}, sator::test::texttest_command(), std::cin, std::cout, std::cerr);
}
