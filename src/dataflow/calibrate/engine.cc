#include <memory>
#include <set>
#include <span>

#include "base/error.h"
#include "base/text.h"
#include "dataflow/calibrate/gemm_row.h"
#include "dataflow/calibrate/models.h"
#include "dataflow/cost/cost.h"
#include "dataflow/cost/latency.h"

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

/// Kernels, and a chip whose calibration is tried: a latency is put together again from the statements of a cost.
struct Trial {
  std::vector<KernelCost> costs;
  Chip chip;
  std::vector<double*> constants;  // of the chip's calibration, in the order of the parameters

  double seconds(size_t kernel) {
    KernelCost& cost = costs.at(kernel);
    cost.resources.clear(), cost.latency_parts.clear(), cost.latency_cycles = 0;
    find_latency(cost, chip);
    return cost.unrounded_cycles / chip.clock_hz;
  }
};

/// The member of a calibration that a parameter is.
double& member(ChipCalibration& c, std::string_view name) {
  if (name == "array_time") return c.array_time;
  if (name == "memory_time") return c.memory_time;
  if (name == "vector_time") return c.vector_time;
  if (name == "cache_time") return c.cache_time;
  if (name == "overhead") return c.overhead_s;
  for (size_t i = 0; i < c.array_time_of.size(); ++i)
    if (name == kArrayTimeOf[i]) return c.array_time_of[i];
  for (size_t i = 0; i < c.vector_time_of.size(); ++i)
    if (name == kVectorTimeOf[i]) return c.vector_time_of[i];
  internal_error(text("a calibration has no ", name));
}

void bind_to(BoundModel& bound, const std::shared_ptr<Trial>& trial) {
  trial->chip.calibration.emplace();
  for (const Parameter& p : bound.parameters) trial->constants.push_back(&member(*trial->chip.calibration, p.name));
  bound.predict = [trial](const std::vector<double>& values, const std::vector<double>& features) {
    for (size_t i = 0; i < values.size(); ++i) *trial->constants[i] = values[i];
    return trial->seconds(static_cast<size_t>(features[0]));
  };
}

/// Factors of which a fifth more moves no estimate of the chip as described by a hundredth: a fit would leave them anywhere.
void leave_out_undecided(BoundModel& bound, const std::shared_ptr<Trial>& trial) {
  const auto seconds_with = [&](const std::string& name, double value) {
    trial->chip.calibration.emplace();
    member(*trial->chip.calibration, name) = value;
    std::vector<double> seconds;
    for (size_t k = 0; k < trial->costs.size(); ++k) seconds.push_back(trial->seconds(k));
    return seconds;
  };
  std::erase_if(bound.parameters, [&](const Parameter& p) {
    if (p.name == "overhead") return false;
    const std::vector<double> less = seconds_with(p.name, 0.9), more = seconds_with(p.name, 1.1);
    for (size_t k = 0; k < less.size(); ++k)
      if (more[k] >= 1.01 * less[k]) return false;
    bound.undecided.push_back(p.name);
    return true;
  });
}

std::shared_ptr<Trial> trial_on(const Chip& chip) {
  auto trial = std::make_shared<Trial>();
  trial->chip = chip;
  trial->chip.calibration.reset();
  return trial;
}

}  // namespace

BoundModel bind_engine(const std::vector<Row>& rows, const Chip* chip) {
  if (!chip) fail({.what = "model engine has no chip", .needs = "a described chip", .hint = "name one with --chip"});
  auto trial = trial_on(*chip);
  CostEngine engine(trial->chip);
  BoundModel bound;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::optional<GemmRow> row = gemm_row(rows[i]);
    if (!row) continue;
    bound.samples.push_back({row->group, {static_cast<double>(trial->costs.size())}, row->seconds});
    bound.rows.push_back(i);
    trial->costs.push_back(engine.cost(gemm_kernel(*row)));
  }
  bound.parameters = {{"array_time", "times the description's", 1.2, 0.2, 20},
                      {"memory_time", "times the description's, outermost memory", 1.2, 0.2, 20},
                      {"vector_time", "times the description's", 1, 0.2, 20},
                      {"overhead", "s", 2e-6, 1e-9, 1e-2}};
  leave_out_undecided(bound, trial);
  bind_to(bound, trial);
  return bound;
}

BoundModel bind_kernels(std::vector<MeasuredKernel> kernels, const Chip& chip) {
  auto trial = trial_on(chip);
  BoundModel bound;
  // A factor that no kernel has work for is left at 1.
  std::set<std::string_view> used;
  for (MeasuredKernel& k : kernels) {
    const size_t number = trial->costs.size();
    bound.samples.push_back({k.group, {static_cast<double>(number)}, k.seconds});
    bound.rows.push_back(number);
    size_t of = std::size(kProductClasses);
    for (size_t s = k.cost.statements.size(); s-- > 0;) {
      const StatementCost& statement = k.cost.statements[s];
      if (!statement.on_array()) continue;
      of = static_cast<size_t>(class_of(statement.work, *statement.product));
      used.insert(kArrayTimeOf[of]);
    }
    for (const StatementCost& s : k.cost.statements)
      if (s.vector_cycles > 0) used.insert(kVectorTimeOf[of]);
    trial->costs.push_back(std::move(k.cost));
  }
  bound.parameters = {{"memory_time", "times the description's, outermost memory", 1, 0.02, 50},
                      {"cache_time", "times the description's, other memories", 1, 0.02, 50},
                      {"overhead", "s", 1e-6, 1e-9, 1e-2}};
  for (const auto& names :
       {std::span<const std::string_view>(kArrayTimeOf), std::span<const std::string_view>(kVectorTimeOf)})
    for (std::string_view name : names)
      if (used.contains(name)) bound.parameters.push_back({std::string(name), "times the description's", 1, 1e-3, 1e3});
  bind_to(bound, trial);
  return bound;
}

}  // namespace sator::dataflow
