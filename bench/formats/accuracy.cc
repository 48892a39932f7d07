// How true estimates are: one line per set of measurements or of another program's outputs, met or not. Fits see training
// rows alone; what is held out is said. `./dev bench accuracy` runs it.
//   accuracy [--json] [CASES]     CASES: the folder with the complete sets; tests/reference/cases/cost, which has a part of each, unless told
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/figures.h"
#include "base/file.h"
#include "base/text.h"
#include "dataflow/calibrate/models.h"
#include "formats/format.h"
#include "published.h"

namespace {

using namespace sator;
using namespace sator::dataflow;
using namespace sator::formats;

struct Result {
  std::string set;
  Accuracy accuracy;
  size_t exact = 0;
  bool calibrated = true;  // an interval belongs to it
  std::string target;
  bool met = false;
  std::string remark;
};

class Bench {
 public:
  Bench(bool as_json, fs::path cases) : as_json_(as_json), cases_(std::move(cases)) {}

  int run() {
    if (!as_json_)
      std::printf("%-44s %6s %6s %8s %8s %8s %9s %9s  %-22s %s\n",
                  "set",
                  "rows",
                  "exact",
                  "mean",
                  "median",
                  "p90",
                  "log-corr",
                  "interval",
                  "target",
                  "met");
    gemmini();
    for (const char* device : {"A100-80GB", "H100-80GB", "A40-48GB"}) vidur(device);
    h200();
    neusight();
    llama_cpp();
    pooled();
    eyeriss();
    tpu();
    tenet();
    scalesim();
    return 0;
  }

 private:
  std::optional<std::vector<Row>> rows(const char* file) {
    const fs::path path = cases_ / file;
    if (!fs::exists(path)) {
      if (as_json_)
        std::printf("%s\n",
                    nlohmann::json{{"bench", "accuracy"}, {"case", file}, {"absent", "no file " + path.string()}}
                        .dump()
                        .c_str());
      else
        std::printf("%-44s not compared: no file %s\n", file, path.string().c_str());
      return {};
    }
    return parse_rows(read_file(path), file);
  }

  void print(const Result& r) {
    const Accuracy& a = r.accuracy;
    if (as_json_) {
      nlohmann::json j = {{"bench", "accuracy"},
                          {"case", r.set},
                          {"rows", a.rows},
                          {"exact", r.exact},
                          {"mean_error", a.mean},
                          {"median_error", a.median},
                          {"p90_error", a.p90},
                          {"log_correlation", a.log_correlation},
                          {"target", r.target},
                          {"met", r.met}};
      if (r.calibrated) j["interval_coverage"] = a.coverage;
      std::printf("%s\n", j.dump().c_str());
      return;
    }
    auto share = [](double v) { return std::isnan(v) ? "-" : percent(v); };
    const std::string correlation =
        std::isnan(a.log_correlation) ? "-" : text(std::round(a.log_correlation * 1e4) / 1e4);
    std::printf("%-44s %6zu %6zu %8s %8s %8s %9s %9s  %-22s %s%s%s\n",
                r.set.c_str(),
                a.rows,
                r.exact,
                share(a.mean).c_str(),
                share(a.median).c_str(),
                share(a.p90).c_str(),
                correlation.c_str(),
                r.calibrated ? share(a.coverage).c_str() : "-",
                r.target.c_str(),
                r.target.empty() ? "-"
                : r.met          ? "yes"
                                 : "NO",
                r.remark.empty() ? "" : ": ",
                r.remark.c_str());
    std::fflush(stdout);
  }

  /// Fits to some groups of samples and compares with the others.
  Result fitted(const char* model_name, const std::vector<Row>& all,
                const std::function<bool(const Row&, const Sample&)>& trains, std::string set, double most,
                std::string target) {
    const CalibrationModel& model = find_model(model_name);
    const BoundModel bound = model.bind(all, nullptr);
    std::vector<bool> training(all.size(), false), held_out(all.size(), false);
    for (size_t i = 0; i < bound.samples.size(); ++i)
      (trains(all[bound.rows[i]], bound.samples[i]) ? training : held_out)[bound.rows[i]] = true;
    const Calibration c = calibrate(model, only(bound, training), "any", "training rows");
    Result r{.set = std::move(set), .accuracy = accuracy(model, only(bound, held_out), c), .target = std::move(target)};
    r.met = r.accuracy.mean <= most;
    covered_ += r.accuracy.coverage * static_cast<double>(r.accuracy.rows);
    held_out_ += static_cast<double>(r.accuracy.rows);
    return r;
  }

  /// Each group of samples is estimated by a fit to the others.
  static Result left_out(const CalibrationModel& model, const BoundModel& bound, std::string set, std::string target) {
    const Calibration c = calibrate(model, bound, "any", "all rows: for the interval");
    const std::vector<double> ratios = left_out_ratios(bound);
    std::vector<double> estimated, measured;
    for (size_t i = 0; i < ratios.size(); ++i) {
      measured.push_back(bound.samples[i].measured);
      estimated.push_back(measured.back() / ratios[i]);
    }
    return {.set = std::move(set),
            .accuracy = accuracy_of(estimated, measured, c.low, c.high),
            .target = std::move(target)};
  }

  /// Of all rows that were held out: how many lie within the interval that came from the training rows.
  void pooled() {
    if (held_out_ == 0) return;
    Result r{.set = "90 % intervals, all held-out rows above", .target = "88 .. 94 %"};
    r.accuracy = {.rows = static_cast<size_t>(held_out_),
                  .mean = std::nan(""),
                  .median = std::nan(""),
                  .p90 = std::nan(""),
                  .log_correlation = std::nan(""),
                  .coverage = covered_ / held_out_};
    r.met = r.accuracy.coverage >= 0.88 && r.accuracy.coverage <= 0.94;
    print(r);
  }

  static std::string field(const Row& row, const char* key) {
    const auto at = row.fields.find(key);
    return at != row.fields.end() && at->is_string() ? at->get<std::string>() : "";
  }

  // Layers of equal shape are on one side: half of the shapes, in their order, are held out, then the other half.
  void gemmini() {
    const auto all = rows("gemmini_firesim_rtl_cycles.jsonl");
    if (!all) return;
    std::vector<Row> test;
    for (const Row& row : *all)  // the fourth kind repeats the others
      if (field(row, "kind").starts_with("firesim_test") && field(row, "kind") != "firesim_test_dataset")
        test.push_back(row);
    const BoundModel bound = find_model("gemmini_rtl").bind(test, nullptr);
    std::set<std::string> shapes;
    for (const Sample& s : bound.samples) shapes.insert(s.group);
    for (size_t half : {0, 1}) {
      std::set<std::string> trained;
      size_t i = 0;
      for (const std::string& shape : shapes)
        if (i++ % 2 == half) trained.insert(shape);
      Result r = fitted(
          "gemmini_rtl",
          test,
          [&](const Row&, const Sample& s) { return trained.contains(s.group); },
          text("Gemmini RTL, other ", half ? "even" : "odd", " shapes"),
          0.15,
          "15 %, log-corr .99");
      r.met &= r.accuracy.log_correlation >= 0.99;
      print(r);
    }
  }

  void vidur(const std::string& device) {
    const auto all = rows("gpu_vidur_measured.jsonl");
    if (!all) return;
    std::vector<Row> of_device;
    for (const Row& row : *all)
      if (field(row, "device") == device) of_device.push_back(row);
    // Every model with enough rows is the one to fit to in its turn.
    for (const char* trained : {"Llama-2-7b", "Llama-2-70b", "Meta-Llama-3-8B"}) {
      auto trains = [&](const Row& row, const Sample&) {
        return field(row, "model").find(trained) != std::string::npos;
      };
      if (std::none_of(of_device.begin(), of_device.end(), [&](const Row& row) { return trains(row, {}); })) continue;
      print(fitted("gpu_gemm", of_device, trains, text("Vidur ", device, ", fit to ", trained), 0.06, "6 %"));
    }
  }

  // Another GPU of the same family, by the fit to one model on H100: no row of it is fitted.
  void h200() {
    const auto vidur = rows("gpu_vidur_measured.jsonl");
    const auto measured = rows("../gpu/h200-anchors.json");
    if (!vidur || !measured) return;
    std::vector<Row> all;
    for (const Row& row : *vidur)
      if (field(row, "device") == "H100-80GB" && field(row, "model").find("Llama-2-7b") != std::string::npos)
        all.push_back(row);
    for (Row row : *measured) {
      if (field(row, "section") != "matmul_cublas") continue;
      row.fields["device"] = "H200";
      row.fields["model"] = field(row, "shape");
      all.push_back(std::move(row));
    }
    const auto trains = [](const Row& row, const Sample&) { return field(row, "device") != "H200"; };
    Result r = fitted("gpu_gemm", all, trains, "H200 cuBLAS GEMMs, fit to H100", 1, "");
    std::vector<Row> floats = all;  // the training rows have no integers, which this library multiplies otherwise
    std::erase_if(floats, [](const Row& row) { return field(row, "dt") == "int8"; });
    const CalibrationModel& model = find_model("gpu_gemm");
    const BoundModel bound = model.bind(floats, nullptr);
    std::vector<bool> training(floats.size());
    for (size_t i = 0; i < floats.size(); ++i) training[i] = trains(floats[i], {});
    const Calibration c = calibrate(model, only(bound, training), "any", "training rows");
    training.flip();
    const Accuracy a = accuracy(model, only(bound, training), c);
    r.remark = text("without int8 ", percent(a.mean), ", interval ", percent(a.coverage));
    print(r);
    std::erase_if(all, [](const Row& row) { return field(row, "device") != "H200"; });
    print(left_out(model, model.bind(all, nullptr), "H200 cuBLAS GEMMs, shapes left out in turn", ""));
  }

  void neusight() {
    const auto all = rows("gpu_neusight_ops_measured.jsonl");
    if (!all) return;
    std::vector<Row> linear;
    for (const Row& row : *all)
      if (field(row, "op") == "linear") linear.push_back(row);
    print(fitted(
        "gpu_gemm",
        linear,
        [](const Row& row, const Sample&) {
          const std::string device = field(row, "device");
          return device.find("H100") == std::string::npos && device.find("L4") == std::string::npos;
        },
        "NeuSight linear, unseen H100 and L4",
        0.12,
        "12 %"));
  }

  // Each format is left out in turn.
  void llama_cpp() {
    const auto all = rows("quant_published.jsonl");
    if (!all) return;
    const CalibrationModel& model = find_model("quantized_decode");
    const BoundModel bound = model.bind(*all, nullptr);
    Result r = left_out(model, bound, "llama.cpp decode, formats left out in turn", "10 % each");
    const std::vector<double> ratios = left_out_ratios(bound.parameters, bound.predict, bound.samples);
    for (size_t i = 0; i < ratios.size(); ++i)
      if (std::abs(1 / ratios[i] - 1) > 0.1)
        r.remark += text(r.remark.empty() ? "beyond: " : ", ", bound.samples[i].group);
    r.met = r.remark.empty();
    print(r);
  }

  void eyeriss() {
    const auto all = rows("chips_published.jsonl");
    if (!all) return;
    Result r = of_published("Eyeriss AlexNet, processing time", eyeriss_alexnet(*all));
    r.target = "4 %";
    r.met = r.accuracy.mean <= 0.04;
    print(r);
  }

  void tpu() {
    const auto all = rows("chips_published.jsonl");
    if (!all) return;
    const std::vector<PublishedFigure> apps = tpu_apps(*all);
    auto miss = [](const PublishedFigure& f) { return std::abs(f.estimated - f.measured); };
    const PublishedFigure& worst = *std::ranges::max_element(apps, {}, miss);
    Result r = of_published("TPUv1 active share, apps left out in turn", apps);
    r.target = "3 points";
    r.met = miss(worst) <= 0.03;
    r.remark = text("furthest ", worst.name, ", ", std::round(miss(worst) * 1e3) / 10, " points");
    print(r);
  }

  static Result of_published(const std::string& set, const std::vector<PublishedFigure>& figures) {
    std::vector<double> estimated, measured;
    for (const PublishedFigure& f : figures) {
      estimated.push_back(f.estimated);
      measured.push_back(f.measured);
    }
    return {.set = set, .accuracy = accuracy_of(estimated, measured, 1, 1), .calibrated = false};
  }

  /// Answers of another program that ours must equal: every key of `stored` that the answer has, too.
  void compare(const std::string& set, const std::vector<std::pair<nlohmann::json, nlohmann::json>>& cases,
               const char* format,
               const std::function<bool(const nlohmann::json& answer, const nlohmann::json& stored)>& equal) {
    Result r{.set = set, .calibrated = false, .target = "all equal"};
    for (const auto& [input, stored] : cases) {
      ++r.accuracy.rows;
      try {
        r.exact += equal(find_format(format).answer(input), stored);
      } catch (const Error& e) {
        if (r.remark.empty()) r.remark = text("refused: ", e.reason.what);
      }
    }
    r.accuracy.mean = r.accuracy.median = r.accuracy.p90 = std::nan("");
    r.accuracy.log_correlation = std::nan("");
    r.met = r.exact == r.accuracy.rows;
    print(r);
  }

  void tenet() {
    const fs::path path = cases_ / "../tenet/tenet-samples.jsonl";
    if (!fs::exists(path)) return;
    std::vector<std::pair<nlohmann::json, nlohmann::json>> cases;
    for (const Row& row : parse_rows(read_file(path), "tenet-samples.jsonl"))
      if (row.fields.contains("input") && row.fields.contains("counts"))
        cases.emplace_back(row.fields["input"], row.fields["counts"]);
    compare("TENET counts", cases, "tenet", [](const nlohmann::json& answer, const nlohmann::json& stored) {
      return answer.contains("counts") && answer["counts"] == stored;
    });
  }

  void scalesim() {
    const auto all = rows("scalesim_v3_compute.jsonl");
    if (!all) return;
    std::vector<std::pair<nlohmann::json, nlohmann::json>> cases;
    for (const Row& row : *all) {
      const nlohmann::json& f = row.fields;
      const std::string config = text("[general]\nrun_name = r\n[architecture_presets]\nArrayHeight = ",
                                      f["array_h"].get<int64_t>(),
                                      "\nArrayWidth = ",
                                      f["array_w"].get<int64_t>(),
                                      "\nIfmapSramSzkB = 64\nFilterSramSzkB = 64\nOfmapSramSzkB = 64\nIfmapOffset = 0\n"
                                      "FilterOffset = 10000000\nOfmapOffset = 20000000\nBandwidth = 10\nDataflow = ",
                                      f["dataflow"].get<std::string>(),
                                      "\nMemoryBanks = 1\n[run_presets]\nInterfaceBandwidth = CALC\n");
      const std::string csv = text("Layer, M, N, K,\nl, ",
                                   f["M"].get<int64_t>(),
                                   ", ",
                                   f["N"].get<int64_t>(),
                                   ", ",
                                   f["K"].get<int64_t>(),
                                   ",\n");
      cases.emplace_back(nlohmann::json{{"config", config}, {"topology", csv}, {"gemm", true}}, f);
    }
    compare("SCALE-Sim cycles and words",
            cases,
            "scalesim",
            [](const nlohmann::json& answer, const nlohmann::json& stored) {
              const nlohmann::json& layer = answer.at("layers").at(0);
              for (const char* key : {"compute_cycles", "ifmap_sram_reads", "filter_sram_reads", "ofmap_sram_writes"})
                if (!layer.contains(key) || layer[key] != stored[key]) return false;
              return true;
            });
  }

  bool as_json_;
  fs::path cases_;
  double covered_ = 0, held_out_ = 0;  // rows
};

}  // namespace

int main(int argc, char** argv) {
  bool as_json = false;
  fs::path cases = "tests/reference/cases/cost";  // from the root of the checkout
  for (int i = 1; i < argc; ++i)
    if (std::string(argv[i]) == "--json")
      as_json = true;
    else
      cases = argv[i];
  try {
    return Bench(as_json, cases).run();
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
