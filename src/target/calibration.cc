#include "target/calibration.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "target/chip_file.h"

namespace sator {

namespace {

constexpr Unit kRows{"rows", 1, 1e9};
constexpr Unit kAny{"in the constant's unit", -1e30, 1e30};
constexpr Unit kRatio{"measured / estimated", 1e-6, 1e6};
constexpr Unit kShare{"of the measurements", 0.01, 0.999};
constexpr Unit kError{"mean relative error", 0, 1e6};
constexpr Unit kExtent{"elements", 1, 1e12};
constexpr Unit kFactor{"times the description's", 1e-9, 1e9};
constexpr Unit kOverheadSeconds{"s", 0, 1e6};

/// A constant of model engine: its name is one of those that for_chip reads, its value one that a time can be multiplied with.
void check_engine_constant(KeyReader& in) {
  std::vector<std::string_view> names = {"array_time", "memory_time", "vector_time", "cache_time", "overhead"};
  names.insert(names.end(), std::begin(kArrayTimeOf), std::end(kArrayTimeOf));
  names.insert(names.end(), std::begin(kVectorTimeOf), std::end(kVectorTimeOf));
  const bool overhead = names[in.choice("name", names)] == "overhead";
  in.number("value", overhead ? kOverheadSeconds : kFactor);
}

}  // namespace

double Calibration::constant(std::string_view name) const {
  std::vector<std::string> names;
  for (const CalibrationConstant& c : constants) {
    if (c.name == name) return c.value;
    names.push_back(c.name);
  }
  fail({.what = text("the calibration has no constant ", name),
        .needs = text("constants of model ", model, ": among them ", name),
        .hint = text("it has ", join(names, ", "), "; fit it again with `sator calibrate`"),
        .where = file});
}

double Calibration::constant_or(std::string_view name, double otherwise) const {
  for (const CalibrationConstant& c : constants)
    if (c.name == name) return c.value;
  return otherwise;
}

Calibration parse_calibration(std::string_view source, const std::string& file) {
  toml::table root = parse_toml(source, file, "write it with `sator calibrate`");
  KeyReader in(root, file, "");
  Calibration c;
  c.file = file;
  c.model = in.string("model");
  c.chip = in.string("chip");
  c.source = in.string("source");
  c.rows = in.integer("rows", kRows);
  c.groups = in.strings("groups");
  KeyReader interval = in.table("interval");
  c.level = interval.number("level", kShare);
  c.low = interval.number("low", kRatio);
  c.high = interval.number("high", kRatio);
  if (c.low > c.high)
    interval.fail_at("low", text("the value is ", c.low, ", but high is ", c.high), "low <= high", "exchange them");
  interval.finish();
  if (in.has("interval_of"))
    for (KeyReader& reader : in.tables("interval_of")) {
      KindInterval k{std::string(kKernelKinds[reader.choice("kernels", kKernelKinds)]),
                     reader.number("low", kRatio),
                     reader.number("high", kRatio)};
      reader.finish();
      if (k.low > k.high)
        reader.fail_at("low", text("the value is ", k.low, ", but high is ", k.high), "low <= high", "exchange them");
      c.kinds.push_back(std::move(k));
    }
  c.mean_error = in.number_or("mean_error", kError, 0);
  for (KeyReader& reader : in.tables("constant")) {
    CalibrationConstant k{reader.string("name"), reader.number("value", kAny), reader.string("unit")};
    reader.finish();
    if (c.model == "engine") check_engine_constant(reader);
    for (const CalibrationConstant& known : c.constants)
      if (known.name == k.name)
        reader.fail_at("name", text("two constants are called ", k.name), "distinct names", "remove one");
    c.constants.push_back(std::move(k));
  }
  if (in.has("neighbour")) {
    std::map<std::string, size_t> counts;
    for (KeyReader& reader : in.tables("neighbour")) {
      CalibrationNeighbour n{reader.string("family"), {}, reader.number("ratio", kRatio)};
      for (int64_t extent : reader.integers("at", kExtent)) n.at.push_back(static_cast<double>(extent));
      reader.finish();
      if (++counts[n.family] > kMostNeighbours)
        reader.fail_at("family",
                       text("there are more than ", kMostNeighbours, " neighbours of family ", n.family),
                       text("at most ", kMostNeighbours, " of one family"),
                       "remove some");
      c.neighbours.push_back(std::move(n));
    }
  }
  in.finish();
  return c;
}

std::string to_toml(const Calibration& c) {
  auto list = [](const std::vector<std::string>& names) {
    std::vector<std::string> out;
    for (const std::string& n : names) out.push_back(string_literal(n));
    return text("[", join(out, ", "), "]");
  };
  // A TOML number with a fraction needs its point.
  auto number = [](double v) {
    std::string s = text(v);
    return s.find_first_of(".en") == std::string::npos ? s + ".0" : s;
  };
  std::string out = text("# Written by `sator calibrate`.\nmodel = ",
                         string_literal(c.model),
                         "\nchip = ",
                         string_literal(c.chip),
                         "\nsource = ",
                         string_literal(c.source),
                         "\nrows = ",
                         c.rows,
                         "\ngroups = ",
                         list(c.groups),
                         "\nmean_error = ",
                         number(c.mean_error),
                         "  # of groups left out of the fit in turn\n");
  out += text("\n[interval]  # measured / estimated\nlevel = ",
              number(c.level),
              "\nlow = ",
              number(c.low),
              "\nhigh = ",
              number(c.high),
              "\n");
  for (const KindInterval& k : c.kinds)
    out += text("\n[[interval_of]]\nkernels = ",
                string_literal(k.kind),
                "\nlow = ",
                number(k.low),
                "\nhigh = ",
                number(k.high),
                "\n");
  for (const CalibrationConstant& k : c.constants)
    out += text("\n[[constant]]\nname = ",
                string_literal(k.name),
                "\nvalue = ",
                number(k.value),
                "\nunit = ",
                string_literal(k.unit),
                "\n");
  for (const CalibrationNeighbour& n : c.neighbours) {
    std::vector<std::string> at;
    for (double extent : n.at) at.push_back(text(static_cast<int64_t>(extent)));
    out += text("\n[[neighbour]]\nfamily = ",
                string_literal(n.family),
                "\nat = [",
                join(at, ", "),
                "]\nratio = ",
                number(n.ratio),
                "\n");
  }
  return out;
}

void require(const Calibration& c, std::string_view model, const Chip* chip) {
  const bool named = !chip || c.chip == kAnyChip || c.chip == chip->name ||
                     std::find(chip->aliases.begin(), chip->aliases.end(), c.chip) != chip->aliases.end();
  if (c.model == model && named) return;
  fail({.what = text("the calibration is of model ", c.model, " for chip ", c.chip),
        .needs = text("model ", model, chip ? text(", chip ", chip->name) : ""),
        .hint = text("`sator calibrate --model ", model, chip ? text(" --chip ", chip->name) : "", "` fits one"),
        .where = c.file});
}

ChipCalibration for_chip(const Calibration& c, const Chip& chip) {
  require(c, "engine", &chip);
  ChipCalibration out{.file = c.file,
                      .source = c.source,
                      .rows = c.rows,
                      .array_time = c.constant_or("array_time", 1),
                      .memory_time = c.constant_or("memory_time", 1),
                      .vector_time = c.constant_or("vector_time", 1),
                      .cache_time = c.constant_or("cache_time", 1),
                      .overhead_s = c.constant("overhead"),
                      .level = c.level,
                      .low = c.low,
                      .high = c.high};
  for (const KindInterval& k : c.kinds)
    for (size_t i = 0; i < out.low_of.size(); ++i)
      if (k.kind == kKernelKinds[i]) out.low_of[i] = k.low, out.high_of[i] = k.high;
  for (size_t i = 0; i < out.array_time_of.size(); ++i) out.array_time_of[i] = c.constant_or(kArrayTimeOf[i], 1);
  for (size_t i = 0; i < out.vector_time_of.size(); ++i) out.vector_time_of[i] = c.constant_or(kVectorTimeOf[i], 1);
  return out;
}

std::string calibration_words(const Chip& chip) {
  if (!chip.calibration) return "not calibrated to silicon";
  const ChipCalibration& c = *chip.calibration;
  auto rounded = [](double v) { return std::round(v * 1e3) / 1e3; };
  std::vector<std::string> kinds;
  for (size_t i = 0; i < c.low_of.size(); ++i)
    if (c.low_of[i] > 0)
      kinds.push_back(text(kKernelKinds[i], " ", rounded(c.low_of[i]), " to ", rounded(c.high_of[i])));
  return text("calibrated on ",
              c.rows,
              " rows of ",
              c.source,
              ": ",
              rounded(100 * c.level),
              " % of measurements lie between ",
              rounded(c.low),
              " and ",
              rounded(c.high),
              " times the estimate",
              kinds.empty() ? "" : text(" (", join(kinds, ", "), ")"));
}

}  // namespace sator
