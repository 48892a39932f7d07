// How true estimates are on this machine, as `sator calibrate --host` describes and fits it: kernels of gpt2-stories, every third
// shape held out. It measures anew where it runs. One line in the form of formats_accuracy_bench per kind of kernel.
//   host_accuracy [--json] [MODEL]     MODEL: examples/gpt2-stories unless told
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "base/figures.h"
#include "base/text.h"
#include "study/host_calibration.h"
#include "study/host_machine.h"

namespace {

using namespace sator;
using namespace sator::study;

void run(const fs::path& model, bool as_json) {
  if (!fs::is_regular_file(model / "config.json")) {
    if (!as_json) std::printf("%-44s not compared: no model %s\n", "this machine", model.string().c_str());
    return;
  }
  const HostMachine machine = measure_machine({});
  const Chip chip = parse_chip(chip_text(machine, "host", ""), "host.toml");
  HostRuns runs = default_runs(model);
  runs.rounds = 5;
  runs.threads = machine.threads;
  const std::vector<HostKernel> kernels = run_kernels(runs, chip, [](const std::string&) {});
  const HostFit fit = fit_host(kernels, hold_out_shapes(kernels), chip, "bench");
  const double noise = noise_of(kernels);
  for (const HostAccuracy& row : fit.rows) {
    const dataflow::Accuracy& a = row.accuracy;
    const std::string set = text("this machine, ", row.words);
    if (as_json)
      std::printf("%s\n",
                  nlohmann::json{{"bench", "accuracy"},
                                 {"case", set},
                                 {"rows", a.rows},
                                 {"mean_error", a.mean},
                                 {"median_error", a.median},
                                 {"p90_error", a.p90},
                                 {"log_correlation", a.log_correlation},
                                 {"rank_correlation", row.rank_correlation},
                                 {"interval_coverage", a.coverage},
                                 {"noise", noise}}
                      .dump()
                      .c_str());
    else
      std::printf("%-44s %6zu %6s %8s %8s %8s %9s %9s  rank correlation %s, median / shortest time %s\n",
                  set.c_str(),
                  a.rows,
                  "-",
                  percent(a.mean).c_str(),
                  percent(a.median).c_str(),
                  percent(a.p90).c_str(),
                  text(std::round(a.log_correlation * 1e4) / 1e4).c_str(),
                  percent(a.coverage).c_str(),
                  fixed(row.rank_correlation, 3).c_str(),
                  times(noise).c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  bool as_json = false;
  fs::path model = "examples/gpt2-stories";
  for (int i = 1; i < argc; ++i)
    if (std::string(argv[i]) == "--json")
      as_json = true;
    else
      model = argv[i];
  try {
    run(model, as_json);
    return 0;
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
