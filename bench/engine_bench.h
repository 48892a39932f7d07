// What the benchmarks of the cost engine against measured sets share: their arguments and their end.
#pragma once

#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include "base/figures.h"
#include "base/file.h"
#include "base/text.h"

namespace sator {

/// [--json] [--rows SET] [CASES]
struct EngineBenchArguments {
  bool as_json = false;
  std::string rows;                               // the one set of which every row is printed
  fs::path cases = "tests/reference/cases/cost";  // from the root of the checkout: what it has of the sets
};

/// What was asked of a set's error, and whether it is met: "12.0 % yes"; "-" where nothing was asked.
inline std::string against(std::optional<double> asked, double error) {
  return asked ? text(percent(*asked), error <= *asked ? " yes" : " NO") : "-";
}

/// Runs Bench(arguments).run(); an error goes to standard error.
template <class Bench>
int run_engine_bench(int argc, char** argv) {
  EngineBenchArguments arguments;
  for (int i = 1; i < argc; ++i)
    if (const std::string word = argv[i]; word == "--json")
      arguments.as_json = true;
    else if (word == "--rows" && i + 1 < argc)
      arguments.rows = argv[++i];
    else
      arguments.cases = word;
  try {
    Bench(arguments).run();
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}

}  // namespace sator
