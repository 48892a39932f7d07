#include <memory>

#include "base/error.h"
#include "base/text.h"
#include "dataflow/calibrate/gemm_row.h"
#include "dataflow/calibrate/models.h"
#include "dataflow/cost.h"
#include "dataflow/latency.h"

namespace sator::dataflow {

namespace {

Kernel gemm_kernel(const GemmRow& row) {
  const auto extent = [](double v) { return static_cast<int64_t>(v); };
  const bool batched = !row.weights_shared && row.batch > 1;
  const int64_t m = extent(batched ? row.m : row.m * row.batch);
  Work w{.statement = {}, .operands = {}, .multiply_accumulate = true};
  w.statement.domain =
      Domain::box({"b", "i", "j", "k"}, {batched ? extent(row.batch) : 1, m, extent(row.n), extent(row.k)});
  const QuasiAffine b = variable(0), i = variable(1), j = variable(2), k = variable(3);
  w.statement.accesses = {
      {"A", Role::read, {{b, i, k}}}, {"B", Role::read, {{b, j, k}}}, {"C", Role::write, {{b, i, j}}}};
  const int bits = static_cast<int>(row.bits);
  w.operands = {
      {.bits = bits, .is_float = row.is_float},
      {.bits = bits, .is_float = row.is_float, .kind = batched ? OperandKind::activation : OperandKind::weight},
      {.bits = static_cast<int>(row.bits_out), .is_float = true}};
  return {"gemm", {w}};
}

}  // namespace

BoundModel bind_engine(const std::vector<Row>& rows, const Chip* chip) {
  if (!chip) fail({.what = "model engine has no chip", .needs = "a described chip", .hint = "name one with --chip"});
  Chip plain = *chip;
  plain.calibration.reset();
  CostEngine engine(plain);
  auto costs = std::make_shared<std::vector<KernelCost>>();
  BoundModel bound;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::optional<GemmRow> row = gemm_row(rows[i]);
    if (!row) continue;
    KernelCost cost = engine.cost(gemm_kernel(*row));
    // What the constants change is put together again from the statements.
    cost.resources.clear(), cost.latency_parts.clear(), cost.latency_cycles = 0;
    bound.samples.push_back({row->group, {static_cast<double>(costs->size())}, row->seconds});
    bound.rows.push_back(i);
    costs->push_back(std::move(cost));
  }
  bound.parameters = {{"array_time", "times the description's", 1.2, 0.2, 20},
                      {"memory_time", "times the description's, outermost memory", 1.2, 0.2, 20},
                      {"vector_time", "times the description's", 1, 0.2, 20},
                      {"overhead", "s", 2e-6, 1e-9, 1e-2}};
  bound.predict = [costs, plain](const std::vector<double>& c, const std::vector<double>& f) {
    Chip measured = plain;
    measured.calibration =
        ChipCalibration{.array_time = c[0], .memory_time = c[1], .vector_time = c[2], .overhead_s = c[3]};
    KernelCost cost = costs->at(static_cast<size_t>(f[0]));
    find_latency(cost, measured);
    return cost.unrounded_cycles / plain.clock_hz;
  };
  return bound;
}

}  // namespace sator::dataflow
