// What the engine says of chips beside what was measured on them, one line per set of measured products, by the protocol that
// is printed above them.
//   engine_accuracy [--json] [--rows SET] [CASES]     CASES: the folder with the sets; tests/reference/cases/cost unless told
// --rows SET prints one set alone, with every row and the constants fitted to it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "../engine_bench.h"
#include "base/error.h"
#include "base/figures.h"
#include "base/file.h"
#include "base/text.h"
#include "dataflow/calibrate/gemm_row.h"
#include "dataflow/calibrate/models.h"
#include "dataflow/cost/cost.h"
#include "dataflow/programs/matmul.h"
#include "target/chip.h"

namespace {

using namespace sator;
using namespace sator::dataflow;

constexpr const char* kProtocol = R"(protocol, for this table and those that follow
  as shipped   what `estimate` and `study` print; no number of a chip's file comes from a row that is tested
  calibrated   at most four constants of a chip (times of array, outermost memory and vector unit, and a start that belongs to the
               measuring set) fitted to the rows of one model, the other models' rows estimated; none per shape, no
               residuals, no neighbours: M, N and K enter through the engine alone
  H200         fitted to Llama's shapes and tested on GPT-2's, and back; products of int8 are printed (engine_kernels), not
               counted: torch._int_mm is 1.86 times slower than the chip
  sets         all are development sets, looked at while the engine was made, but for the MI210's whole models: judged
               once (commit 7fe39f7, tag mi210-judged-once), nothing changed for them
  columns      mean of |estimate / measured - 1|; geometric mean of estimate / measured; share of rows within the 90 %
               interval; what was asked of the mean, and whether it is met

)";

/// A set of measured products: the rows of a file that one device has, and the shipped chip that stands for it.
struct Set {
  const char *name, *file, *device, *chip;
  std::vector<const char*> fit_to;                         // in turn: rows whose model, or shape, begins so
  std::optional<double> asked_large = {}, asked_fit = {};  // of the mean error: as shipped, M >= 1024; calibrated
  const char* section = "";                                // of the file
};
constexpr const char* kTriedForGemmini =
    "a request of the DMA for each row of a tile, of at least 64 bytes (a closed form over these rows: 14.6 and 24.1 "
    "%: 11 "
    "products settle neither the request's time nor where it hides; 150544 x 2 x 64 and 784 x 256 x 512 stay off by "
    "more than "
    "a third: their mappings are none of the engine's); the regression below (gemmini_rtl: such lines, the second "
    "level's "
    "misses, shortest instructions, each row's own mapping) has 12.8 and 12.3 % over all 222 layers";
constexpr const char* kGemmini = "Gemmini RTL, quickest mappings";
const Set kSets[] = {
    {"A100",
     "gpu_vidur_measured.jsonl",
     "A100-80GB",
     "a100",
     {"meta-llama/Llama-2-7b", "meta-llama/Llama-2-70b", "meta-llama/Meta-Llama-3"},
     0.18,
     0.12},
    {"H100",
     "gpu_vidur_measured.jsonl",
     "H100-80GB",
     "h100",
     {"meta-llama/Llama-2-7b", "meta-llama/Llama-2-70b"},
     0.18,
     0.12},
    {"A40", "gpu_vidur_measured.jsonl", "A40-48GB", "a40", {"meta-llama/Llama-2-7b"}, {}, 0.12},
    {"H200", "../gpu/h200-anchors.json", "", "h200", {"llama", "gpt2"}, 0.18, 0.12, "matmul_cublas"},
    // float32 without TF32: the multiprocessors' float32 lanes, no tensor cores. The set names no models to fit to.
    {"A100 float32", "gpu_neusight_ops_measured.jsonl", "NVIDIA A100 80GB PCIe", "a100", {}},
    {"H100 float32", "gpu_neusight_ops_measured.jsonl", "NVIDIA H100 80GB HBM3", "h100", {}},
    {"L4 float32", "gpu_neusight_ops_measured.jsonl", "NVIDIA L4", "l4", {}},
    {"V100 float32", "gpu_neusight_ops_measured.jsonl", "Tesla V100-PCIE-32GB", "v100", {}},
    {"T4 float32", "gpu_neusight_ops_measured.jsonl", "Tesla T4", "t4", {}},
    // RTL of DOSA's set, int8. Its layers have mappings of their own: of each product the quickest of them.
    {kGemmini, "gemmini_firesim_rtl_cycles.jsonl", "", "gemmini16", {"odd", "even"}, {}, 0.15},
};

std::string field(const Row& row, const char* key) {
  const auto at = row.fields.find(key);
  return at != row.fields.end() && at->is_string() ? at->get<std::string>() : "";
}

/// One matmul as `estimate --workload M,N,K` costs it, in seconds.
double estimated_s(CostEngine& engine, const GemmRow& row) {
  const auto extent = [](double v) { return static_cast<int64_t>(v); };
  const Matmul m{
      .i = extent(row.m * row.batch), .j = extent(row.n), .k = extent(row.k), .float_bits = static_cast<int>(row.bits)};
  return engine.cost(matmul_kernel(m)).latency_s;
}

/// The product alone, as the engine costs it on the chip as described.
double uncalibrated_s(const Chip& chip, const Row& row) {
  const BoundModel bound = find_model("engine").bind({row}, &chip);
  std::vector<double> as_described;
  for (const Parameter& p : bound.parameters) as_described.push_back(p.name == "overhead" ? 0 : 1);
  return bound.predict(as_described, bound.samples.front().features);
}

/// Of Gemmini's layers those that are one matrix product, Y[P Q, K] = X[P Q, C] W[C, K]: of each the quickest that was run.
/// Every other one is "odd".
std::vector<Row> products_of_gemmini(const std::vector<Row>& layers) {
  std::vector<Row> products;
  for (const Row& layer : layers) {
    const nlohmann::json& p = layer.fields.at("prob");
    if (!field(layer, "kind").starts_with("firesim_test") || p.at("R") != 1 || p.at("S") != 1 || p.at("N") != 1 ||
        p.at("Hstride") != 1 || p.at("Wstride") != 1)
      continue;
    const int64_t m = p.at("P").get<int64_t>() * p.at("Q").get<int64_t>();
    const double us = layer.fields.at("gemmini_rtl_cycles").get<double>() / 1e3;  // of its chip's clock, 1 GHz
    const nlohmann::json product = {{"M", m}, {"N", p.at("K")}, {"K", p.at("C")}, {"dtype", "int8"}, {"us", us}};
    const auto known = std::find_if(products.begin(), products.end(), [&](const Row& r) {
      return r.fields["M"] == m && r.fields["N"] == p.at("K") && r.fields["K"] == p.at("C");
    });
    if (known == products.end())
      products.push_back({product, layer.where});
    else if (us < known->fields["us"].get<double>())
      known->fields = product;
  }
  for (size_t i = 0; i < products.size(); ++i) products[i].fields["shape"] = i % 2 == 0 ? "even" : "odd";
  return products;
}

struct Pair {
  std::string words;
  double m = 0, estimated_s = 0, measured_s = 0;
  double ratio() const { return estimated_s / measured_s; }
};

class Bench {
 public:
  explicit Bench(const EngineBenchArguments& a) : cases_(a.cases), as_json_(a.as_json), shown_(a.rows) {}

  void run() {
    if (!as_json_) std::printf("%s", kProtocol);
    head("as shipped");
    for (const Set& set : kSets)
      if (wanted(set)) as_shipped(set);
    head("calibrated, other models' rows");
    for (const Set& set : kSets)
      for (const char* fit_to : set.fit_to)
        if (wanted(set)) calibrated(set, fit_to);
    if (as_json_ || missed_.empty()) return;
    std::printf("\nmissed, and what was tried\n");
    for (const auto& [set, tried] : missed_) std::printf("  %s: %s\n", set.c_str(), tried.c_str());
    std::printf("\n");
  }

 private:
  bool wanted(const Set& set) const { return shown_.empty() || shown_ == set.name; }

  /// Products of floats with one matrix of weights: the library that multiplied the integers here is 1.86 times slower
  /// than the chip.
  std::vector<Row> rows_of(const Set& set) const {
    if (set.name == std::string_view(kGemmini))
      return products_of_gemmini(parse_rows(read_file(cases_ / set.file), set.file));
    std::vector<Row> rows;
    for (Row& row : parse_rows(read_file(cases_ / set.file), set.file)) {
      if (field(row, "device") != set.device || field(row, "section") != set.section) continue;
      if (const auto gemm = gemm_row(row); gemm && gemm->is_float && gemm->weights_shared)
        rows.push_back(std::move(row));
    }
    return rows;
  }

  static std::string words_of(const GemmRow& g) { return text(g.bits, " bits ", g.m, " x ", g.n, " x ", g.k); }

  static void show(const Pair& p) {
    std::printf("%-40s %9.1f us, measured %9.1f, ratio %.3f\n",
                p.words.c_str(),
                p.estimated_s * 1e6,
                p.measured_s * 1e6,
                p.ratio());
  }

  void as_shipped(const Set& set) {
    const Chip chip = find_chip(set.chip);
    CostEngine engine(chip);
    std::vector<Pair> pairs, large;
    for (const Row& row : rows_of(set)) {
      const GemmRow g = *gemm_row(row);
      // Codes that come as codes: `estimate --workload` would make them of floats first.
      const double said = g.is_float ? estimated_s(engine, g) : uncalibrated_s(chip, row);
      pairs.push_back({words_of(g), g.m, said, g.seconds});
      if (set.name == shown_) show(pairs.back());
    }
    print(set.name, pairs);
    std::copy_if(pairs.begin(), pairs.end(), std::back_inserter(large), [](const Pair& p) { return p.m >= 1024; });
    print(text(set.name, ", M >= 1024"), large, {}, set.asked_large);
  }

  void calibrated(const Set& set, const std::string& fit_to) {
    const Chip chip = find_chip(set.chip);
    const std::vector<Row> rows = rows_of(set);
    const CalibrationModel& model = find_model("engine");
    const BoundModel bound = model.bind(rows, &chip);
    std::vector<bool> training, held_out;
    for (const Row& row : rows) {
      training.push_back((field(row, "model") + field(row, "shape")).starts_with(fit_to));
      held_out.push_back(!training.back());
    }
    const Calibration c = calibrate(model, only(bound, training), set.chip, fit_to);
    const BoundModel rest = only(bound, held_out);
    const std::vector<double> estimated = estimates(model, rest, c);
    std::vector<Pair> pairs;
    for (size_t i = 0; i < estimated.size(); ++i)
      pairs.push_back({words_of(*gemm_row(rows[rest.rows[i]])), 0, estimated[i], rest.samples[i].measured});
    if (set.name == shown_) {
      for (const CalibrationConstant& k : c.constants)
        std::printf("%s = %.4g %s\n", k.name.c_str(), k.value, k.unit.c_str());
      for (const Pair& p : pairs) show(p);
    }
    print(text(set.name, " by ", fit_to), pairs, accuracy(model, rest, c).coverage, set.asked_fit);
  }

  void head(const char* words) const {
    if (!as_json_)
      std::printf("%-38s %6s %10s %10s %10s  %s\n", words, "rows", "mean", "geo. ratio", "interval", "asked, met");
  }

  void print(const std::string& set, const std::vector<Pair>& pairs, std::optional<double> coverage = {},
             std::optional<double> asked = {}) {
    if (pairs.empty()) return;
    double error = 0, log = 0;
    for (const Pair& p : pairs) error += std::abs(p.ratio() - 1), log += std::log(p.ratio());
    const double n = static_cast<double>(pairs.size());
    if (asked && error / n > *asked)
      missed_.emplace_back(set, set.starts_with(kGemmini) ? kTriedForGemmini : "nothing yet");
    if (as_json_) {
      nlohmann::json j = {{"bench", "engine_accuracy"},
                          {"case", set},
                          {"rows", pairs.size()},
                          {"mean_error", error / n},
                          {"geometric_mean_ratio", std::exp(log / n)}};
      if (coverage) j["interval_coverage"] = *coverage;
      if (asked) j["asked"] = *asked, j["met"] = error / n <= *asked;
      std::printf("%s\n", j.dump().c_str());
      return;
    }
    std::printf("%-38s %6zu %10s %10.3f %10s  %s\n",
                set.c_str(),
                pairs.size(),
                percent(error / n).c_str(),
                std::exp(log / n),
                coverage ? percent(*coverage).c_str() : "-",
                against(asked, error / n).c_str());
  }

  fs::path cases_;
  bool as_json_;
  std::string shown_;
  std::vector<std::pair<std::string, std::string>> missed_;  // sets, and what was tried
};

}  // namespace

int main(int argc, char** argv) { return run_engine_bench<Bench>(argc, argv); }
