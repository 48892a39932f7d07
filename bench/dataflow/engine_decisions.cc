// Whether the engine takes the right one of two: each pair was measured on both sides, and the engine, as shipped, says which is
// quicker. A pair whose sides were measured within 1 % of each other decides nothing and is left out.
//   engine_decisions [--json] [CASES]     CASES: the folder with the sets; tests/reference/cases/cost unless told
// The reference is the fastest measured kernel of a kind. Integers of 4 bits with 16 rows and more have no good one: printed,
// not counted. Beside what is right stands how many always the same answer would have right. Last the energy of a product at the board's power limit.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "../engine_bench.h"
#include "base/error.h"
#include "base/figures.h"
#include "base/file.h"
#include "base/text.h"
#include "dataflow/calibrate/gemm_row.h"
#include "dataflow/cost/cost.h"
#include "dataflow/programs/matmul.h"
#include "target/chip.h"

namespace {

using namespace sator;
using namespace sator::dataflow;
using nlohmann::json;

using Shape = std::tuple<int64_t, int64_t, int64_t>;  // M, N, K
std::string words_of(const Shape& s) { return text(std::get<0>(s), " x ", std::get<1>(s), " x ", std::get<2>(s)); }

/// One side of a decision, in seconds.
struct Side {
  double measured_s = 0, estimated_s = 0;
};

constexpr double kDecidesNothing = 1.01, kClear = 1.15;  // the slower / the faster, as measured

class Decisions {
 public:
  Decisions(std::string name, bool counted, bool as_json) : name_(std::move(name)), counted_(counted), json_(as_json) {}

  void add(const std::string& words, const Side& a, const Side& b) {
    const double measured = a.measured_s / b.measured_s, estimated = a.estimated_s / b.estimated_s;
    if (std::max(measured, 1 / measured) < kDecidesNothing) return;
    ++pairs_, first_quicker_ += measured < 1;
    if ((measured < 1) == (estimated < 1)) return;
    const bool clear = std::max(measured, 1 / measured) > kClear;
    ++wrong_, clearly_wrong_ += clear;
    lines_.push_back(text("    ",
                          clear ? "wrong: " : "close: ",
                          words,
                          ": measured ",
                          three(measured),
                          ", estimated ",
                          three(estimated)));
  }

  void print() const {
    if (json_) {
      std::printf("%s\n",
                  json{{"bench", "engine_decisions"},
                       {"case", name_},
                       {"counted", counted_},
                       {"rows", pairs_},
                       {"right", pairs_ - wrong_},
                       {"right_by_one_answer", one_answer()},
                       {"wrong_above_15_percent", clearly_wrong_}}
                      .dump()
                      .c_str());
      return;
    }
    std::printf("%-52s %6d %6d %10d %10d   %s\n",
                name_.c_str(),
                pairs_,
                pairs_ - wrong_,
                one_answer(),
                clearly_wrong_,
                counted_ ? "" : "not counted");
    for (const std::string& line : lines_) std::printf("%s\n", line.c_str());
  }

 private:
  /// How many who always gives the commoner answer has right.
  int one_answer() const { return std::max(first_quicker_, pairs_ - first_quicker_); }
  static std::string three(double v) {
    char out[32];
    std::snprintf(out, sizeof out, "%.3f", v);
    return out;
  }
  std::string name_;
  bool counted_, json_;
  int pairs_ = 0, first_quicker_ = 0, wrong_ = 0, clearly_wrong_ = 0;
  std::vector<std::string> lines_;
};

class Bench {
 public:
  explicit Bench(const EngineBenchArguments& a)
      : cases_(a.cases),
        json_(a.as_json),
        h200_(find_chip("h200")),
        anchors_(json::parse(read_file(a.cases / "../gpu/h200-anchors.json"))) {}

  void run() {
    if (!json_)
      std::printf("%-52s %6s %6s %10s %10s\n",
                  "decisions: which is quicker, ratio of times",
                  "pairs",
                  "right",
                  "one answer",
                  "wrong >15%");
    narrow_floats();
    integers();
    for (bool counted : {true, false}) weights_of_four_bits(counted);
    for (auto [a, b] : {std::pair{"A100-80GB", "H100-80GB"}, {"A100-80GB", "A40-48GB"}, {"H100-80GB", "A40-48GB"}})
      chips(a, b);
    energy();
  }

 private:
  using Times = std::map<Shape, double>;

  static Shape shape_of(const json& row, const char* m) {
    return {row.at(m).get<int64_t>(), row.at("N").get<int64_t>(), row.at("K").get<int64_t>()};
  }
  static void keep_fastest(Times& times, const Shape& shape, double seconds) {
    const auto [at, fresh] = times.try_emplace(shape, seconds);
    if (!fresh) at->second = std::min(at->second, seconds);
  }

  /// Of each shape the fastest measured kernel of a number format on the H200, by any library or kernel.
  Times fastest(const std::string& dtype) const {
    Times times;
    for (const json& row : anchors_.at("matmul_cublas"))
      if (row.at("dt") == dtype) keep_fastest(times, shape_of(row, "M"), row.at("us").get<double>() * 1e-6);
    for (const char* section : {"splitk_and_small_m", "final_interleaved"})
      for (const json& row : anchors_.at("spike").at(section))
        if (row.value("dt", "") == dtype && row.contains("M") && row.contains("us"))
          keep_fastest(times, shape_of(row, "M"), row.at("us").get<double>() * 1e-6);
    return times;
  }

  double estimated(const Shape& s, Matmul m) {
    std::tie(m.i, m.j, m.k) = s;
    return h200_.cost(matmul_kernel(m)).latency_s;
  }

  void compare(const std::string& name, const Times& narrow, const Matmul& as, const Times& wide, bool counted = true) {
    Decisions decisions(name, counted, json_);
    for (const auto& [shape, seconds] : narrow)
      if (const auto other = wide.find(shape); other != wide.end())
        decisions.add(words_of(shape), {seconds, estimated(shape, as)}, {other->second, estimated(shape, {})});
    decisions.print();
  }

  void narrow_floats() { compare("H200: fp8 / bf16", fastest("fp8"), {.float_bits = 8}, fastest("bf16")); }

  void integers() {
    const Matmul int8{.scale = ScalePer::channel, .weight_bits = 8, .activation_bits = 8};
    compare("H200: int8 / bf16", fastest("s8"), int8, fastest("bf16"));
  }

  /// Groups of 128 codes of 4 bits beside 16-bit inputs. With few rows there are kernels that read at the memory's speed.
  void weights_of_four_bits(bool counted) {
    Times times;
    if (counted) {
      for (const json& row : anchors_.at("spike").at("int4_gemv"))
        if (row.value("G", 0) == 128 && row.contains("us"))
          keep_fastest(times, shape_of(row, "MB"), row.at("us").get<double>() * 1e-6);
    } else {
      for (const json& row : anchors_.at("int4"))
        if (row.value("G", 0) == 128 && row.at("M").get<int64_t>() >= 16)
          keep_fastest(times, shape_of(row, "M"), row.at("us").get<double>() * 1e-6);
    }
    const Matmul int4{.scale = ScalePer::group, .weight_bits = 4, .group = 128, .scale_bits = 16};
    compare(counted ? "H200: int4 weights / bf16, fewer than 16 rows" : "H200: int4 weights / bf16, 16 rows and more",
            times,
            int4,
            fastest("bf16"),
            counted);
  }

  static std::string shipped_as(const std::string& device) {
    std::string name = device.substr(0, device.find('-'));
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    return name;
  }

  /// The same product of a model's layer on two chips.
  void chips(const std::string& first, const std::string& second) {
    std::map<std::string, Times> measured;
    for (const Row& row : parse_rows(read_file(cases_ / "gpu_vidur_measured.jsonl"), "gpu_vidur_measured.jsonl"))
      if (const auto g = gemm_row(row); g && g->is_float)
        keep_fastest(measured[g->device],
                     {static_cast<int64_t>(g->m), static_cast<int64_t>(g->n), static_cast<int64_t>(g->k)},
                     g->seconds);
    CostEngine a(find_chip(shipped_as(first))), b(find_chip(shipped_as(second)));
    Decisions decisions(text(first, " / ", second, " (Vidur)"), true, json_);
    for (const auto& [shape, seconds] : measured[first])
      if (const auto other = measured[second].find(shape); other != measured[second].end()) {
        const auto [m, n, k] = shape;
        const Kernel kernel = matmul_kernel({.i = m, .j = n, .k = k});
        decisions.add(words_of(shape), {seconds, a.cost(kernel).latency_s}, {other->second, b.cost(kernel).latency_s});
      }
    decisions.print();
  }

  /// An H200 at its limit of 700 W spends 146 mJ in the 208 us that 4096 cubed take under sustained load (bfloat16).
  void energy() {
    const double measured = 700 * 208e-6;
    const double said = h200_.cost(matmul_kernel({.i = 4096, .j = 4096, .k = 4096})).energy_j;
    if (json_)
      std::printf(
          "%s\n",
          json{
              {"bench", "engine_energy"}, {"case", "H200 4096^3 bf16"}, {"measured_j", measured}, {"estimated_j", said}}
              .dump()
              .c_str());
    else
      std::printf(
          "energy: H200, 4096 x 4096 x 4096 bf16: %.0f mJ, measured %.0f (700 W for 208 us): %s off, asked %s\n",
          said * 1e3,
          measured * 1e3,
          percent(std::abs(said / measured - 1)).c_str(),
          against(0.25, std::abs(said / measured - 1)).c_str());
  }

  fs::path cases_;
  bool json_;
  CostEngine h200_;
  json anchors_;
};

}  // namespace

int main(int argc, char** argv) { return run_engine_bench<Bench>(argc, argv); }
