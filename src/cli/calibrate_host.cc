#include "cli/calibrate_host.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/error.h"
#include "base/figures.h"
#include "base/owned_folder.h"
#include "base/text.h"
#include "cli/progress.h"
#include "dataflow/cost/described_chip.h"
#include "study/host_calibration.h"
#include "study/host_machine.h"
#include "target/calibration.h"

namespace sator::cli {

namespace {

constexpr const char* kName = "host";
constexpr const char* kChipFile = "host.toml";
constexpr const char* kCalibrationFile = "host.calibration.toml";
constexpr const char* kKernelsFile = "kernels.jsonl";

void print(Streams& io, const study::HostMachine& m) {
  auto line = [&](const std::string& what, const std::string& value, double noise) {
    io.out << "  " << pad_right(what, 34) << pad_left(value, 14) << "   median " << times(noise) << " the best time\n";
  };
  io.out << m.cpu << ", " << m.threads << (m.threads == 1 ? " thread" : " threads") << ", a core's clock "
         << quantity(m.core_hz, "Hz") << "\n";
  line("multiply-adds, float32", quantity(m.f32.macs_per_s, "/s"), m.f32.noise);
  line("multiply-adds, int8", quantity(m.int8.macs_per_s, "/s"), m.int8.noise);
  for (const study::MemoryLevel& l : m.levels)
    line(text("read ",
              l.name,
              l.capacity_bytes > 0 ? text(", ", quantity(static_cast<double>(l.capacity_bytes), "B")) : "",
              l.per_core ? " per core" : ""),
         quantity(l.bytes_per_s, "B/s"),
         l.noise);
  line("a parallel loop", quantity(m.fork_join_s, "s"), m.fork_join_noise);
}

nlohmann::json to_json(const study::HostMachine& m) {
  nlohmann::json j = {{"cpu", m.cpu},
                      {"isa", m.isa},
                      {"threads", m.threads},
                      {"core_hz", m.core_hz},
                      {"float32_macs_per_s", m.f32.macs_per_s},
                      {"int8_macs_per_s", m.int8.macs_per_s},
                      {"fork_join_s", m.fork_join_s}};
  for (const study::MemoryLevel& l : m.levels)
    j["memories"].push_back({{"name", l.name},
                             {"capacity_bytes", l.capacity_bytes},
                             {"per_core", l.per_core},
                             {"read_bytes_per_s", l.bytes_per_s},
                             {"noise", l.noise}});
  return j;
}

void print(Streams& io, const study::HostFit& fit) {
  for (const study::HostAccuracy& row : fit.rows) {
    const dataflow::Accuracy& a = row.accuracy;
    io.out << pad_right(row.words, 20) << pad_left(text(a.rows), 5) << " kernels, mean error " << percent(a.mean)
           << ", median " << percent(a.median) << ", 90 % below " << percent(a.p90) << ", rank correlation "
           << fixed(row.rank_correlation, 3) << ", " << percent(a.coverage) << " within the interval\n";
    io.json["accuracy"].push_back({{"rows", row.words},
                                   {"kernels", a.rows},
                                   {"mean_error", a.mean},
                                   {"median_error", a.median},
                                   {"p90_error", a.p90},
                                   {"log_correlation", a.log_correlation},
                                   {"rank_correlation", row.rank_correlation},
                                   {"interval_coverage", a.coverage}});
  }
}

/// Of a step, the sum of its kernels' times: estimated and measured.
void print_steps(Streams& io, const std::vector<study::HostKernel>& kernels, const study::HostFit& fit) {
  struct Step {
    double measured = 0, estimated = 0;
  };
  std::map<std::tuple<std::string, std::string, int64_t>, Step> steps;
  for (size_t k = 0; k < kernels.size(); ++k) {
    Step& s = steps[{kernels[k].scheme, kernels[k].phase, kernels[k].context}];
    s.measured += measured_s(kernels[k]) * static_cast<double>(kernels[k].calls);
    s.estimated += fit.estimated_s[k] * static_cast<double>(kernels[k].calls);
  }
  io.out << "\n"
         << pad_right("all kernels of a step", 44) << pad_left("measured", 12) << pad_left("estimated", 12) << "\n";
  for (const auto& [key, s] : steps) {
    const auto& [scheme, phase, context] = key;
    io.out << pad_right(text(scheme, ", ", phase, phase == "decode" ? " at " : " of ", context), 44)
           << pad_left(quantity(s.measured, "s"), 12) << pad_left(quantity(s.estimated, "s"), 12)
           << pad_left(text(s.estimated >= s.measured ? "+" : "-", percent(std::abs(s.estimated / s.measured - 1))), 10)
           << "\n";
    io.json["steps"].push_back({{"scheme", scheme},
                                {"phase", phase},
                                {"context", context},
                                {"measured_s", s.measured},
                                {"estimated_s", s.estimated}});
  }
}

}  // namespace

void calibrate_host(const HostArguments& a, Streams& io) {
  const fs::path folder = a.folder;
  study::HostRuns runs = study::default_runs(a.model.value_or("examples/gpt2-stories"));
  if (!a.schemes.empty()) runs.schemes = a.schemes;
  runs.rounds = a.rounds;
  if (!fs::is_regular_file(runs.model / "config.json"))
    fail({.what = text("there is no model ", runs.model.string()),
          .needs = "a Hugging Face folder, with config.json",
          .hint = "name one: sator calibrate --host MODEL -o FOLDER"});
  // Whether the folder can be written is known before anything takes time.
  OwnedFolder results(folder, "calibrate", a.replace);
  results.require_free({kKernelsFile, kCalibrationFile, kChipFile});
  ProgressLines lines(io.notes);
  lines("measuring the machine", true);
  const study::HostMachine machine = study::measure_machine(a.threads);
  runs.threads = machine.threads;
  lines.end();
  print(io, machine);
  const std::string description = chip_text(machine, kName, "");
  const Chip chip = parse_chip(description, (folder / kChipFile).string());

  const std::vector<study::HostKernel> kernels =
      run_kernels(runs, chip, [&](const std::string& what) { lines(what, true); });
  lines("fitting", true);
  const std::string source = text("kernels of ", runs.model.filename().string(), ", ", join(runs.schemes, ", "));
  study::HostFit fit = fit_host(kernels, hold_out_shapes(kernels), chip, source);
  lines.end();
  fit.calibration.file = (folder / kCalibrationFile).string();

  const double noise = noise_of(kernels);
  io.out << "\n"
         << kernels.size() << " kernels of " << runs.model.string() << " under " << join(runs.schemes, ", ") << "; "
         << a.rounds << " rounds; a kernel's median is " << times(noise) << " its shortest time\n";
  io.json["machine"] = to_json(machine);
  io.json["kernels"] = kernels.size();
  io.json["noise"] = noise;
  print(io, fit);
  for (const CalibrationConstant& c : fit.calibration.constants) {
    io.out << "  " << c.name << " = " << text(c.value) << " " << c.unit << "\n";
    io.json["constants"][c.name] = c.value;
  }
  io.out << "  90 % of measurements between " << fixed(fit.calibration.low, 2) << " and "
         << fixed(fit.calibration.high, 2) << " times the estimate\n";
  for (const KindInterval& k : fit.calibration.kinds)
    io.out << "    of kernels of kind " << k.kind << ": between " << fixed(k.low, 2) << " and " << fixed(k.high, 2)
           << "\n";
  io.json["interval"] = {
      {"low", fit.calibration.low}, {"high", fit.calibration.high}, {"level", fit.calibration.level}};
  print_steps(io, kernels, fit);

  results.replace({{kCalibrationFile, to_toml(fit.calibration)},
                   {kKernelsFile, json_lines(kernels, fit, chip.clock_hz)},
                   {kChipFile, chip_text(machine, kName, kCalibrationFile)}});
  find_chip((folder / kChipFile).string());  // it reads back
  io.out << "\nwritten: " << (folder / kChipFile).string() << ", " << kCalibrationFile << ", " << kKernelsFile << "\n"
         << "sator study MODEL --chip " << (folder / kChipFile).string()
         << " sets estimates beside what is measured here\n";
}

}  // namespace sator::cli
