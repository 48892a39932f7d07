// What the engine says, as shipped, of an H200's other measured kernels: products of integers and of weights of 4 bits, attention,
// and fused kernels without a product. Mean of |estimate / measured - 1| and the geometric mean of estimate / measured.
//   engine_kernels [--json] [--rows SET] [CASES]     CASES: the folder with the sets; tests/reference/cases/cost unless told
// Attention is stated as the compiled function's causal products, which the chip runs in one pass. Of three libraries that measured it
// also the quickest of each shape stands by itself. Integers were multiplied by torch._int_mm, which is 1.86 times slower than the chip: not counted.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../engine_bench.h"
#include "base/error.h"
#include "base/figures.h"
#include "base/file.h"
#include "base/text.h"
#include "dataflow/calibrate/rows.h"
#include "dataflow/cost/cost.h"
#include "dataflow/programs/matmul.h"
#include "target/chip.h"

namespace {

using namespace sator;
using namespace sator::dataflow;
using nlohmann::json;

constexpr Operand kFloat16{.bits = 16, .is_float = true}, kSum{.bits = 32, .is_float = true, .internal = true};

struct Touch {
  const char* tensor;
  Role role;
  Map at;
  Operand operand;
};

Work work(const char* name, Domain domain, double operations, VectorWork kind, const std::vector<Touch>& touches) {
  Work w{.statement = {.name = name, .domain = std::move(domain), .accesses = {}},
         .operands = {},
         .multiply_accumulate = false,
         .vector_ops = operations,
         .vector_work = kind};
  for (const Touch& t : touches) {
    w.statement.accesses.push_back({t.tensor, t.role, {t.at}});
    w.operands.push_back(t.operand);
  }
  return w;
}

/// One pass over rows x columns.
Work pass(const json& row, int64_t columns, const char* name, double operations, VectorWork kind,
          const std::vector<Touch>& touches) {
  return work(name, Domain::box({"i", "j"}, {row.at("rows").get<int64_t>(), columns}), operations, kind, touches);
}

/// The statements of a kernel without a product, of numbers of one width; none where the op is not known.
std::vector<Work> without_product(const json& row, const Operand& number) {
  const auto op = row.at("op").get<std::string>();
  const auto columns = row.at("cols").get<int64_t>();
  const QuasiAffine i = variable(0), j = variable(1);
  const Touch x{"x", Role::read, {i, j}, number}, y{"y", Role::write, {i, j}, number};
  const Touch sum{"sum", Role::write, {i}, kSum}, of_row{"sum", Role::read, {i}, kSum};
  const Touch gain{"w", Role::read, {j}, {.bits = number.bits, .is_float = true, .kind = OperandKind::weight}};
  const auto reduce = VectorWork::reduce, each = VectorWork::elementwise;
  if (op == "rmsnorm")
    return {pass(row, columns, "squares", 2, reduce, {x, sum}),
            pass(row, columns, "scale", 2, each, {x, of_row, gain, y})};
  if (op == "add_rmsnorm") {
    const Touch r{"r", Role::read, {i, j}, number}, h{"h", Role::write, {i, j}, number},
        again{"h", Role::read, {i, j}, number};
    return {pass(row, columns, "add", 1, each, {x, r, h}),
            pass(row, columns, "squares", 2, reduce, {again, sum}),
            pass(row, columns, "scale", 2, each, {again, of_row, gain, y})};
  }
  if (op == "layernorm" || op == "softmax") {
    const Touch first{"first", Role::write, {i}, kSum}, read_first{"first", Role::read, {i}, kSum};
    return {pass(row, columns, "first", 1, reduce, {x, first}),
            pass(row, columns, "second", 4, reduce, {x, read_first, sum}),
            pass(row, columns, "scale", 4, each, {x, read_first, of_row, y})};
  }
  if (op == "gelu") return {pass(row, columns, "gelu", 10, each, {x, y})};
  if (op == "swiglu") {
    const Touch up{"x", Role::read, {i, j + columns / 2}, number};
    return {pass(row, columns / 2, "swiglu", 8, each, {x, up, y})};
  }
  return {};
}

std::vector<Work> fused(const json& row) { return without_product(row, kFloat16); }

/// A kernel of PyTorch in float32, as NeuSight measured it.
std::vector<Work> of_neusight(const json& row) {
  const auto op = row.at("op").get<std::string>();
  const auto at = [&](const char* key) { return row.at(key).get<int64_t>(); };
  constexpr Operand kFloat32{.bits = 32, .is_float = true};
  if (op != "bmm")
    return without_product({{"op", op == "ln" ? "layernorm" : op}, {"rows", at("B")}, {"cols", at("H")}}, kFloat32);
  const QuasiAffine b = variable(0), i = variable(1), j = variable(2), k = variable(3);
  std::vector<Work> product = {work("bmm",
                                    Domain::box({"b", "i", "j", "k"}, {at("B"), at("M"), at("N"), at("K")}),
                                    0,
                                    VectorWork::elementwise,
                                    {{"X", Role::read, {b, i, k}, kFloat32},
                                     {"W", Role::read, {b, k, j}, kFloat32},
                                     {"Y", Role::write, {b, i, j}, kFloat32}})};
  product[0].multiply_accumulate = true;
  return product;
}

/// Heads of queries share keys and values in groups.
std::vector<Work> attention(const json& row) {
  const auto at = [&](const char* key) { return row.at(key).get<int64_t>(); };
  const int64_t positions = at("S"), queries = row.at("kind") == "prefill" ? positions : 1, groups = at("H") / at("KV");
  const QuasiAffine b = variable(0), g = variable(1), q = variable(2), s = variable(3), d = variable(4);
  const Operand cache{.bits = 16, .is_float = true, .kind = OperandKind::kv};
  const Operand inside{.bits = 16, .is_float = true, .internal = true};
  const int64_t batch = at("B") * at("KV");
  const auto reduce = VectorWork::reduce, each = VectorWork::elementwise;
  const Domain scores = Domain::box({"b", "g", "q", "s"}, {batch, groups, queries, positions});
  const Domain all = Domain::box({"b", "g", "q", "s", "d"}, {batch, groups, queries, positions, at("D")});
  // What the compiled function does (llm/attention.h): an exponential is 8 operations, with what it subtracts and scales 10.
  std::vector<Work> works = {
      work("scores",
           all,
           0,
           each,
           {{"Q", Role::read, {b, g, q, d}, kFloat16},
            {"K", Role::read, {b, s, d}, cache},
            {"S", Role::write, {b, g, q, s}, kSum}}),
      work("largest", scores, 1, reduce, {{"S", Role::read, {b, g, q, s}, kSum}, {"m", Role::write, {b, g, q}, kSum}}),
      work("exponentials",
           scores,
           10,
           each,
           {{"S", Role::read, {b, g, q, s}, kSum},
            {"m", Role::read, {b, g, q}, kSum},
            {"P", Role::write, {b, g, q, s}, inside}}),
      work("total", scores, 1, reduce, {{"P", Role::read, {b, g, q, s}, inside}, {"l", Role::write, {b, g, q}, kSum}}),
      work("values",
           all,
           0,
           each,
           {{"P", Role::read, {b, g, q, s}, inside},
            {"V", Role::read, {b, s, d}, cache},
            {"W", Role::write, {b, g, q, d}, kSum}}),
      work("attention",
           Domain::box({"b", "g", "q", "d"}, {batch, groups, queries, at("D")}),
           1,
           each,
           {{"W", Role::read, {b, g, q, s}, kSum},
            {"l", Role::read, {b, g, q}, kSum},
            {"O", Role::write, {b, g, q, s}, kFloat16}})};
  works.front().multiply_accumulate = works[4].multiply_accumulate = true;
  if (queries > 1)
    for (size_t w = 0; w < 5; ++w) works[w].only_where = {q - s};  // no later position
  return works;
}

class Bench {
 public:
  explicit Bench(const EngineBenchArguments& a)
      : cases_(a.cases),
        json_(a.as_json),
        shown_(a.rows),
        h200_(find_chip("h200")),
        anchors_(json::parse(read_file(a.cases / "../gpu/h200-anchors.json"))) {}

  void run() {
    if (!json_)
      std::printf(
          "%-46s %6s %10s %10s\n", "other kernels, as shipped (H200 unless named)", "rows", "mean", "geo. ratio");
    const auto of_dtype = [](const char* dtype) { return [dtype](const json& r) { return r.at("dt") == dtype; }; };
    set("int8 (torch._int_mm), not counted", "matmul_cublas", of_dtype("int8"), [](const json& r) {
      return matmul_kernel(
                 with_shape(
                     r, {.scale = ScalePer::channel, .weight_bits = 8, .activation_bits = 8, .token_scales = false}))
          .work;
    });
    for (bool few : {true, false})
      set(
          few ? "int4 weights, fewer than 16 rows" : "int4 weights, 16 rows and more",
          "int4",
          [few](const json& r) { return (r.at("M").get<int64_t>() < 16) == few; },
          [](const json& r) {
            return matmul_kernel(with_shape(r,
                                            {.scale = ScalePer::group,
                                             .weight_bits = 4,
                                             .group = r.at("G").get<int64_t>(),
                                             .scale_bits = 16}))
                .work;
          });
    for (const char* kind : {"decode", "prefill"}) {
      set(text("attention, ", kind), "attention", [kind](const json& r) { return r.at("kind") == kind; }, attention);
      set(
          text("attention, ", kind, ", quickest of a shape"),
          "attention",
          [&](const json& r) { return r.at("kind") == kind && is_quickest(r); },
          attention);
    }
    set("fused (torch.compile)", "fused_torch_compile", [](const json&) { return true; }, fused);
    neusight();
  }

 private:
  static Matmul with_shape(const json& row, Matmul m) {
    m.i = row.at("M").get<int64_t>(), m.j = row.at("N").get<int64_t>(), m.k = row.at("K").get<int64_t>();
    return m;
  }

  /// Whether no other library ran attention of this shape in less time.
  bool is_quickest(const json& row) const {
    for (const json& other : anchors_.at("attention")) {
      bool same = true;
      for (const char* key : {"kind", "B", "H", "KV", "S", "D"}) same &= other.at(key) == row.at(key);
      if (same && other.at("us") < row.at("us")) return false;
    }
    return true;
  }

  template <class Wanted, class Works>
  void set(const std::string& name, const char* section, Wanted&& wanted, Works&& works_of) {
    set(name, h200_, anchors_.at(section), wanted, works_of);
  }

  /// Kernels of PyTorch in float32 that NeuSight measured beside products with weights (engine_accuracy has those).
  void neusight() {
    json rows = json::array();
    const char* file = "gpu_neusight_ops_measured.jsonl";
    for (Row& row : parse_rows(read_file(cases_ / file), file)) rows.push_back(std::move(row.fields));
    for (const auto& [device, chip] : {std::pair{"NVIDIA A100 80GB PCIe", "a100"},
                                       {"NVIDIA A100-PCIE-40GB", "a100"},
                                       {"NVIDIA H100 80GB HBM3", "h100"},
                                       {"NVIDIA L4", "l4"},
                                       {"Tesla V100-PCIE-32GB", "v100"},
                                       {"Tesla T4", "t4"}}) {
      CostEngine engine(find_chip(chip));
      for (const char* op : {"bmm", "softmax", "ln"})
        set(
            text(device, ", ", op),
            engine,
            rows,
            [&](const json& r) { return r.at("device") == device && r.at("op") == op; },
            of_neusight);
    }
  }

  template <class Wanted, class Works>
  void set(const std::string& name, CostEngine& engine, const json& all, Wanted&& wanted, Works&& works_of) {
    double error = 0, log = 0;
    int rows = 0;
    for (const json& row : all) {
      if (!wanted(row)) continue;
      const std::vector<Work> works = works_of(row);
      if (works.empty()) continue;
      const double measured =
          row.contains("us") ? row.at("us").get<double>() * 1e-6 : row.at("latency_ms").get<double>() * 1e-3;
      const double said = engine.cost({name, works, true}).latency_s;
      error += std::abs(said / measured - 1), log += std::log(said / measured), ++rows;
      if (name == shown_)
        std::printf("  %9.1f us, measured %9.1f, ratio %.3f  %s\n",
                    said * 1e6,
                    measured * 1e6,
                    said / measured,
                    row.dump().c_str());
    }
    if (rows == 0) return;
    if (json_)
      std::printf("%s\n",
                  json{{"bench", "engine_kernels"},
                       {"case", name},
                       {"rows", rows},
                       {"mean_error", error / rows},
                       {"geometric_mean_ratio", std::exp(log / rows)}}
                      .dump()
                      .c_str());
    else
      std::printf("%-46s %6d %10s %10.3f\n", name.c_str(), rows, percent(error / rows).c_str(), std::exp(log / rows));
  }

  fs::path cases_;
  bool json_;
  std::string shown_;
  CostEngine h200_;
  json anchors_;
};

}  // namespace

int main(int argc, char** argv) { return run_engine_bench<Bench>(argc, argv); }
