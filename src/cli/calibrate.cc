#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/figures.h"
#include "base/file.h"
#include "base/staged_file.h"
#include "base/text.h"
#include "cli/calibrate_host.h"
#include "cli/commands.h"
#include "dataflow/calibrate/models.h"
#include "dataflow/cost/described_chip.h"

namespace sator::cli {

namespace {

using namespace dataflow;

/// Of fewer rows no one lies beyond the twentieth on either side: an interval of 90 % spans all.
constexpr size_t kRowsForInterval = 19;

/// Of a file of measurements: half a million rows.
constexpr size_t kMostRowBytes = size_t{64} << 20;

struct CalibrateArguments {
  std::string model = "engine";
  std::optional<std::string> data, chip, output, use, estimates;
  std::vector<std::string> where, train;
  bool host = false;
  HostArguments of_host;
};

/// The options of one of the two kinds of run that were given without the other kind's.
void check(const CalibrateArguments& a) {
  if (a.host) {
    if (a.data || a.chip || a.use || a.estimates || !a.where.empty() || !a.train.empty())
      fail({.what = "--host is given beside options for a file of measurements",
            .needs = "--host alone: it measures, and describes the chip itself",
            .hint = "leave --data, --chip, --use, --estimates, --where and --train out"});
    if (!a.output)
      fail({.what = "--host has no folder for its files",
            .needs = "-o FOLDER",
            .hint = "sator calibrate --host -o here"});
    return;
  }
  if (!a.data)
    fail({.what = "there are no measurements",
          .needs = "--data FILE, or --host to measure this machine",
          .hint = "sator calibrate --host -o FOLDER"});
  if (a.of_host.model || !a.of_host.schemes.empty() || a.of_host.threads)
    fail({.what = "a model, --quant or --threads is given without --host",
          .needs = "--host, which runs a model's kernels",
          .hint = "add --host, or leave them out"});
}

std::vector<bool> chosen(const std::vector<Row>& rows, const std::vector<std::string>& words) {
  std::vector<RowFilter> filters;
  for (const std::string& w : words) filters.push_back(parse_filter(w));
  std::vector<bool> keep;
  // Filters on one key are alternatives; different keys must all hold.
  for (const Row& row : rows) {
    bool all = true;
    for (const RowFilter& f : filters)
      all &= std::any_of(
          filters.begin(), filters.end(), [&](const RowFilter& g) { return g.key == f.key && g.holds(row); });
    keep.push_back(all);
  }
  return keep;
}

nlohmann::json to_json(const Accuracy& a) {
  return {{"rows", a.rows},
          {"mean_error", a.mean},
          {"median_error", a.median},
          {"p90_error", a.p90},
          {"log_correlation", a.log_correlation},
          {"interval_coverage", a.coverage}};
}

void print(Streams& io, const char* name, const Accuracy& a) {
  io.out << name << ": " << a.rows << " rows, mean error " << percent(a.mean) << ", median " << percent(a.median)
         << ", 90 % below " << percent(a.p90) << ", log-correlation " << text(std::round(a.log_correlation * 1e4) / 1e4)
         << ", " << percent(a.coverage) << " within the interval\n";
}

/// Rows that the model cannot read: how many, and the first of them.
void say_what_is_left_out(Streams& io, const CalibrationModel& model, const std::vector<Row>& rows,
                          const BoundModel& bound) {
  if (bound.rows.size() == rows.size()) return;
  const std::set<size_t> read(bound.rows.begin(), bound.rows.end());
  size_t first = 0;
  while (read.contains(first)) ++first;
  io.notes << "note: " << rows.size() - read.size() << " of " << rows.size() << " rows are left out, the first at "
           << rows[first].where << ": model " << model.name << " takes " << model.takes << "\n";
}

/// Constants that a fit left at an end of what it may try.
void say_what_is_at_its_bound(Streams& io, const BoundModel& bound, const Calibration& c) {
  for (const Parameter& p : bound.parameters) {
    const double value = c.constant(p.name);
    if (value > p.low * 1.001 && value < p.high / 1.001) continue;
    io.notes << "note: " << p.name << " is " << text(value) << ", the " << (value < p.start ? "least" : "most")
             << " that a fit takes: something else of the description keeps the estimates off\n";
  }
}

/// One line per row: what was measured, what is estimated, and between what.
void write_estimates(const std::string& file, const BoundModel& bound, const std::vector<Row>& rows,
                     const std::vector<double>& estimated, const Calibration& c, std::string_view unit) {
  std::string lines;
  for (size_t i = 0; i < estimated.size(); ++i) {
    const nlohmann::json line = {{"row", rows[bound.rows[i]].where},
                                 {"unit", unit},
                                 {"measured", bound.samples[i].measured},
                                 {"estimated", estimated[i]},
                                 {"low", estimated[i] * c.low},
                                 {"high", estimated[i] * c.high},
                                 {"level", c.level}};
    lines += line.dump() + "\n";
  }
  write_file(file, lines);
}

void run(const CalibrateArguments& a, Streams& io) {
  check(a);
  if (a.host) {
    HostArguments host = a.of_host;
    host.folder = *a.output;
    calibrate_host(host, io);
    return;
  }
  const CalibrationModel& model = find_model(a.model);
  const std::vector<Row> rows = parse_rows(read_file(*a.data, kMostRowBytes), fs::path(*a.data).filename().string());
  std::optional<Chip> chip;
  if (a.chip) chip = described_chip(*a.chip);
  std::vector<bool> used = chosen(rows, a.where), training = chosen(rows, a.train);
  std::vector<Row> kept;
  std::vector<bool> trains;
  for (size_t i = 0; i < rows.size(); ++i)
    if (used[i]) kept.push_back(rows[i]), trains.push_back(training[i]);
  if (kept.empty())
    fail({.what = "no row passes the filters",
          .needs = text("rows with ", join(a.where, ", ")),
          .hint = "look at the rows' fields",
          .where = *a.data});
  const BoundModel all = model.bind(kept, chip ? &*chip : nullptr);
  if (all.samples.empty())
    fail({.what = text("model ", model.name, " can read none of ", kept.size(), " rows"),
          .needs = text("rows with ", model.takes),
          .hint = "choose another model or other rows",
          .where = *a.data});
  say_what_is_left_out(io, model, kept, all);
  Calibration calibration;
  std::vector<bool> held_out(kept.size(), true);
  if (a.use) {
    calibration = parse_calibration(read_file(*a.use), *a.use);
    require(calibration, model.name, chip ? &*chip : nullptr);
  } else {
    for (size_t i = 0; i < kept.size(); ++i) held_out[i] = !trains[i];
    const BoundModel fitted = only(all, trains);
    std::string source = fs::path(*a.data).filename().string();
    for (const auto* words : {&a.where, &a.train})
      if (!words->empty()) source += text("; ", join(*words, ", "));
    calibration = calibrate(model, fitted, chip ? chip->name : std::string(kAnyChip), source);
    print(io, "fitted to", accuracy(model, fitted, calibration));
    io.json["training"] = to_json(accuracy(model, fitted, calibration));
    if (!all.undecided.empty())
      io.notes << "note: these rows do not say " << join(all.undecided, ", ") << ": left as the chip is described\n";
    say_what_is_at_its_bound(io, fitted, calibration);
    if (fitted.samples.size() < kRowsForInterval)
      io.notes << "note: " << fitted.samples.size()
               << " rows are too few for an interval of 90 %: it spans all of them\n";
    io.out << "  groups left out in turn: mean error " << percent(calibration.mean_error) << " of "
           << calibration.groups.size() << " groups\n";
  }
  const BoundModel test = only(all, held_out);
  if (!test.samples.empty()) {
    print(io, "held out", accuracy(model, test, calibration));
    io.json["held_out"] = to_json(accuracy(model, test, calibration));
  }
  for (const CalibrationConstant& c : calibration.constants) {
    io.out << "  " << c.name << " = " << text(c.value) << " " << c.unit << "\n";
    io.json["constants"][c.name] = c.value;
  }
  if (!calibration.neighbours.empty()) {
    io.out << "  " << calibration.neighbours.size()
           << " measured rows: what is estimated near them is off as they are\n";
    io.json["neighbours"] = calibration.neighbours.size();
  }
  io.out << "  " << percent(calibration.level) << " of measurements lie between " << text(calibration.low) << " and "
         << text(calibration.high) << " times the estimate\n";
  io.json["interval"] = {{"level", calibration.level}, {"low", calibration.low}, {"high", calibration.high}};
  if (a.estimates)
    write_estimates(*a.estimates,
                    test.samples.empty() ? all : test,
                    kept,
                    estimates(model, test.samples.empty() ? all : test, calibration),
                    calibration,
                    model.unit);
  if (a.output) {
    write_file_synced(*a.output, to_toml(calibration));
    io.out << "written: " << *a.output << "\n";
  }
}

}  // namespace

Command calibrate_command() {
  auto a = std::make_shared<CalibrateArguments>();
  std::vector<std::string> models;
  std::string details = "Models:\n";
  for (const CalibrationModel& m : calibration_models()) {
    models.emplace_back(m.name);
    details += text("  ", m.name, ": ", m.does, "\n    rows with ", m.takes, "\n");
  }
  details +=
      "Rows that --train names are fitted to, the others of --where are only compared. A calibration of model engine "
      "is "
      "used\nby naming it behind a chip: --chip NAME@FILE; every estimate then comes with its interval.\n"
      "\n--host writes host.toml, a chip's file with what was measured of this processor (multiply-adds per precision, "
      "\nreading from each cache and memory, a parallel loop), host.calibration.toml, which it names, and "
      "kernels.jsonl. "
      "Kernels of\nthe model run under several schemes, for prompts of 8 to 256 tokens and decode steps at 16 to 448; "
      "every "
      "third shape of\nweights, attention and other kernels is held out of the fit and compared. Use: --chip "
      "FOLDER/host.toml.";
  return {.name = "calibrate",
          .does = "fits a model's constants to measurements, with an interval that holds on others",
          .options =
              {
                  {"MODEL", "with --host: whose kernels run; examples/gpt2-stories unless told", &a->of_host.model},
                  {"--host", "measures and describes this machine, and fits to kernels that run here", &a->host},
                  {"--data FILE",
                   "measurements: one JSON object per line, or a table with names in its first line (*.csv)",
                   &a->data},
                  {.name = "--model MODEL", .help = "whose constants", .into = &a->model, .choices = models},
                  {"--chip CHIP", "a described chip, by name or file", &a->chip},
                  {"--where KEY=VALUE", "rows that count, may be repeated; VALUE* begins so", &a->where},
                  {"--train KEY=VALUE", "rows to fit to, may be repeated; all unless told", &a->train},
                  {"--use FILE", "a calibration to compare, instead of a fit", &a->use},
                  {"--quant SCHEME",
                   "with --host: a scheme to run, may be repeated; f32, int8-channel, int8-channel+a8 and int4-group32 "
                   "unless told",
                   &a->of_host.schemes},
                  {"--threads N",
                   "with --host: threads; those that models use unless told",
                   &a->of_host.threads,
                   false,
                   {},
                   between(1, 1024)},
                  {"--replace",
                   "with --host: replace files that it did not write and that stand where its own go",
                   &a->of_host.replace},
                  {"--rounds N",
                   "with --host: how often each kernel runs in each step",
                   &a->of_host.rounds,
                   false,
                   {},
                   between(1, 1000)},
                  {"-o,--output FILE", "where the calibration goes, TOML; with --host a folder", &a->output},
                  {"--estimates FILE", "one JSON line per compared row: measured, estimated, low, high", &a->estimates},
              },
          .run = [a](Streams& io) { run(*a, io); },
          .details = details};
}

}  // namespace sator::cli
