#include "dataflow/calibrate/published.h"

#include <algorithm>
#include <cmath>

#include "dataflow/cost/cost.h"

namespace sator::dataflow {

namespace {

std::string word(const Row& row, const char* key) {
  const auto at = row.fields.find(key);
  return at != row.fields.end() && at->is_string() ? at->get<std::string>() : "";
}

/// How Eyeriss cuts a layer into processing passes.
///   images, strip          of one pass: images one after the other, rows of outputs side by side
///   filters, channels      in one PE's scratchpads
///   more_channels, more_filters   sets of PEs that hold other ones at the same time
struct Passes {
  std::string_view layer;
  int64_t images, strip, filters, channels, more_channels, more_filters;
};
constexpr Passes kPasses[] = {{"CONV1", 1, 7, 16, 1, 1, 2},
                              {"CONV2", 1, 27, 16, 2, 1, 1},
                              {"CONV3", 4, 13, 16, 4, 1, 4},
                              {"CONV4", 4, 13, 16, 3, 2, 2},
                              {"CONV5", 4, 13, 16, 3, 2, 2}};

struct Shape {
  int64_t images, filters, out, channels, window, stride;  // of one group
};

double cycles_of(const Shape& s, const Passes& p) {
  const int64_t filters = p.filters * p.more_filters, channels = p.channels * p.more_channels;
  const double passes = static_cast<double>(ceil_div(s.filters, filters) * ceil_div(s.channels, channels) *
                                            ceil_div(s.out, p.strip) * ceil_div(s.images, p.images));
  const double macs = static_cast<double>(p.filters * p.channels * s.window * s.out * p.images);
  const double weights = static_cast<double>(filters * channels * s.window * s.window);
  const double inputs = static_cast<double>(((p.strip - 1) * s.stride + s.window) * channels * s.window);
  const double sums = static_cast<double>(filters * p.strip);
  return passes * (macs + weights / 4 + inputs + 2 * sums / 4);
}

int64_t active_pes(const Shape& s, CostEngine& engine) {
  Work w{.statement = {}, .operands = {}, .multiply_accumulate = true};
  w.statement.name = "convolution";
  w.statement.domain = Domain::box({"n", "k", "p", "q", "c", "r", "s"},
                                   {s.images, s.filters, s.out, s.out, s.channels, s.window, s.window});
  const QuasiAffine p = variable(2), q = variable(3);
  w.statement.accesses = {
      {"I", Role::read, {{variable(0), variable(4), p * s.stride + variable(5), q * s.stride + variable(6)}}},
      {"W", Role::read, {{variable(1), variable(4), variable(5), variable(6)}}},
      {"O", Role::write, {{variable(0), variable(1), p, q}}}};
  w.operands = {{.bits = 16}, {.bits = 16, .kind = OperandKind::weight}, {.bits = 16}};
  return engine.cost({"convolution", {w}}).statements[0].counts->space;
}

}  // namespace

std::vector<PublishedLayer> eyeriss_alexnet(const std::vector<Row>& rows) {
  CostEngine engine(find_chip("eyeriss_v1"));
  std::vector<PublishedLayer> layers;
  for (const Row& row : rows) {
    const auto shape = row.fields.find("shape");
    if (word(row, "chip") != "Eyeriss-v1" || word(row, "network") != "AlexNet" || shape == row.fields.end()) continue;
    auto of = [&](const char* key) { return static_cast<int64_t>(number(*shape, key)); };
    const int64_t stride = std::max<int64_t>(1, of("stride")), groups = std::max<int64_t>(1, of("groups"));
    const Shape s{.images = static_cast<int64_t>(number(row.fields, "batch")),
                  .filters = of("K_total") / groups,
                  .out = (of("H") - of("R")) / stride + 1,
                  .channels = of("C_per_group"),
                  .window = of("R"),
                  .stride = stride};
    for (const Passes& p : kPasses) {
      if (p.layer != word(row, "layer") || s.images < 1 || s.out < 1) continue;
      layers.push_back(
          {.name = word(row, "layer"),
           .active_pes = active_pes(s, engine),
           .measured_active_pes = static_cast<int64_t>(number(row.fields, "active_PEs")),
           .cycles = static_cast<double>(groups) * cycles_of(s, p),
           .measured_cycles = number(row.fields, "processing_latency_ms") * 1e-3 * engine.chip().clock_hz});
    }
  }
  return layers;
}

std::vector<PublishedApp> tpu_apps(const std::vector<Row>& rows) {
  const Chip chip = find_chip("tpuv1");
  const double load = static_cast<double>(chip.rows * chip.columns) / chip.memories[0].read_bytes_per_cycle;
  std::vector<const Row*> apps;
  double beside = 0;  // percent, of all applications
  for (const Row& row : rows)
    if (word(row, "chip") == "TPUv1") apps.push_back(&row), beside += number(row.fields, "non_matrix_pct");
  std::vector<PublishedApp> out;
  for (const Row* row : apps) {
    const std::string name = word(*row, "app");
    const double pace = name.starts_with("LSTM") ? 2 : 1;  // activations of 16 bits
    const double array = number(row->fields, "ops_per_weight_byte") * pace;
    const double total = name == "CNN1" ? array + load : std::max(array, load);
    const double others = (beside - number(row->fields, "non_matrix_pct")) / static_cast<double>(apps.size() - 1) / 100;
    out.push_back({name, array / total * (1 - others), number(row->fields, "array_active_pct") / 100});
  }
  return out;
}

}  // namespace sator::dataflow
