#include "dataflow/matmul.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "dataflow/array_cost.h"
#include "dataflow/precision.h"

namespace sator::dataflow {

namespace {

// Operations of the vector unit per element.
constexpr double kDequantize = 2;            // convert, multiply
constexpr double kDequantizeAsymmetric = 3;  // subtract the zero point first
constexpr double kQuantize = 4;              // multiply, round, two comparisons of a clamp
constexpr double kLargest = 2;               // magnitude and comparison, for a row's own scale
constexpr double kRescale = 2;               // convert, multiply

void check(const Matmul& m) {
  auto refuse = [](std::string what, std::string needs) {
    fail({.what = std::move(what), .needs = std::move(needs), .hint = "as in 128,4096,4096 with int8-channel"});
  };
  if (m.i < 1 || m.j < 1 || m.k < 1) refuse(text("a matmul of ", m.i, " x ", m.j, " x ", m.k), "sizes of at least 1");
  if (m.float_bits < 1 || m.weight_bits < 1 || m.activation_bits < 0 || m.scale_bits < 1)
    refuse("a width is below 1 bit", "widths of at least 1 bit");
  if (m.scale == ScalePer::group && m.group < 1) refuse(text("a group of ", m.group), "groups of at least 1");
}

/// The scale's index for W[k,j].
Map scale_of(const Matmul& m, const QuasiAffine& j, const QuasiAffine& k) {
  switch (m.scale) {
    case ScalePer::none:
    case ScalePer::tensor: return {};
    case ScalePer::channel: return {j};
    case ScalePer::input: return {k};
    case ScalePer::group: return {floor_div(k, m.group), j};
  }
  return {};
}

class Builder {
 public:
  explicit Builder(const Matmul& matmul) : m_(matmul) {}

  Kernel run() {
    kernel_.name = "matmul";
    if (m_.activation_bits > 0 && m_.scale != ScalePer::none)
      integer_product();
    else
      float_product();
    return std::move(kernel_);
  }

 private:
  Operand values(bool internal = false, OperandKind kind = OperandKind::activation) const {
    return {.bits = m_.float_bits, .is_float = true, .kind = kind, .internal = internal};
  }
  Operand codes() const { return {.bits = m_.weight_bits, .kind = OperandKind::weight}; }
  Operand scale() const { return {.bits = m_.scale_bits, .is_float = true, .kind = OperandKind::scale}; }

  Work& add(const char* name, Domain domain, VectorWork kind, double operations) {
    Work& work = kernel_.work.emplace_back();
    work.statement.name = name;
    work.statement.domain = std::move(domain);
    work.vector_work = kind;
    work.vector_ops = operations;
    return work;
  }
  static void touch(Work& work, const char* tensor, Role role, Map at, Operand operand) {
    work.statement.accesses.push_back({tensor, role, {std::move(at)}});
    work.operands.push_back(operand);
  }

  void float_product() {
    const bool quantized = m_.scale != ScalePer::none;
    const QuasiAffine i = variable(0), j = variable(1), k = variable(2);
    if (quantized) {
      Work& make = add("dequantize",
                       Domain::box({"j", "k"}, {m_.j, m_.k}),
                       VectorWork::dequantize,
                       m_.asymmetric ? kDequantizeAsymmetric : kDequantize);
      const QuasiAffine n = variable(0), c = variable(1);
      touch(make, "codes", Role::read, {n, c}, codes());
      touch(make, "scale", Role::read, scale_of(m_, n, c), scale());
      if (m_.asymmetric) touch(make, "zero", Role::read, scale_of(m_, n, c), scale());
      touch(make, "W", Role::write, {n, c}, values(true, OperandKind::weight));
    }
    Work& product = add("matmul", Domain::box({"i", "j", "k"}, {m_.i, m_.j, m_.k}), VectorWork::elementwise, 0);
    product.multiply_accumulate = true;
    touch(product, "X", Role::read, {i, k}, values());
    touch(product, "W", Role::read, {j, k}, values(quantized, OperandKind::weight));
    touch(product, "Y", Role::write, {i, j}, values());
  }

  void integer_product() {
    const QuasiAffine x0 = variable(0), x1 = variable(1);
    if (m_.token_scales) {
      Work& largest = add("largest", Domain::box({"i", "k"}, {m_.i, m_.k}), VectorWork::quantize, kLargest);
      touch(largest, "X", Role::read, {x0, x1}, values());
      touch(largest, "x_scale", Role::write, {x0}, {.bits = 32, .is_float = true, .internal = true});
    }
    Work& quantize = add("quantize", Domain::box({"i", "k"}, {m_.i, m_.k}), VectorWork::quantize, kQuantize);
    touch(quantize, "X", Role::read, {x0, x1}, values());
    if (m_.token_scales) touch(quantize, "x_scale", Role::read, {x0}, {.bits = 32, .is_float = true, .internal = true});
    if (m_.scale == ScalePer::input) touch(quantize, "scale", Role::read, {x1}, scale());
    touch(quantize, "x_codes", Role::write, {x0, x1}, {.bits = m_.activation_bits, .internal = true});

    // Within a group the sum is one of integers; groups are scaled and summed after it.
    const bool groups = m_.scale == ScalePer::group && m_.group < m_.k;
    const int64_t inside = groups ? m_.group : m_.k, outside = groups ? (m_.k - 1) / m_.group + 1 : 1;
    const QuasiAffine i = variable(0), j = variable(1), g = variable(2), r = variable(3);
    const QuasiAffine k = g * inside + r;
    Domain domain = groups ? Domain::box({"i", "j", "g", "k"}, {m_.i, m_.j, outside, inside})
                           : Domain::box({"i", "j", "k"}, {m_.i, m_.j, m_.k});
    if (groups && m_.k % inside != 0) domain.guards.push_back(number(m_.k - 1) - k);
    Work& product = add("matmul", std::move(domain), VectorWork::elementwise, 0);
    product.multiply_accumulate = true;
    const QuasiAffine at = groups ? k : variable(2);
    const Map sum = groups ? Map{i, j, g} : Map{i, j};
    touch(product, "x_codes", Role::read, {i, at}, {.bits = m_.activation_bits, .internal = true});
    touch(product, "codes", Role::read, {j, at}, codes());
    touch(product, "sums", Role::write, sum, {.bits = 32, .internal = true});

    Work& rescale =
        add("rescale",
            groups ? Domain::box({"i", "j", "g"}, {m_.i, m_.j, outside}) : Domain::box({"i", "j"}, {m_.i, m_.j}),
            VectorWork::rescale,
            kRescale + (groups ? 1 : 0) + (m_.asymmetric ? 1 : 0));
    touch(rescale, "sums", Role::read, sum, {.bits = 32, .internal = true});
    const Map shared = groups ? Map{g, j} : m_.scale == ScalePer::channel ? Map{j} : Map{};
    if (m_.scale != ScalePer::input) touch(rescale, "scale", Role::read, shared, scale());
    if (m_.asymmetric) touch(rescale, "zero", Role::read, shared, scale());
    if (m_.token_scales) touch(rescale, "x_scale", Role::read, {i}, {.bits = 32, .is_float = true, .internal = true});
    touch(rescale, "Y", Role::write, {i, j}, values());
  }

  const Matmul& m_;
  Kernel kernel_;
};

}  // namespace

Kernel matmul_kernel(const Matmul& matmul) {
  check(matmul);
  return Builder(matmul).run();
}

namespace {

/// Tiles of the three tensors in a memory, in bits.
double tile_bits(const Matmul& m, const Memory& memory, const std::array<int64_t, 3>& tile, int sum_bits) {
  auto elements = [&](size_t a, size_t b) { return static_cast<double>(tile[a]) * static_cast<double>(tile[b]); };
  const bool coded = m.scale != ScalePer::none;
  const int x_bits = coded && m.activation_bits > 0 ? m.activation_bits : m.float_bits;
  double bits = 0;
  if (memory.holds_activations) bits += elements(0, 2) * x_bits;
  if (memory.holds_weights) bits += elements(2, 1) * (coded ? m.weight_bits : m.float_bits);
  if (memory.holds_outputs) bits += elements(0, 1) * std::max(sum_bits, m.float_bits);
  return bits;
}

void check_room(const Matmul& m, const Chip& chip, const std::array<int64_t, 3>& tile, bool whole, int sum_bits) {
  for (size_t level = 1; level < chip.memories.size(); ++level) {
    const Memory& memory = chip.memories[level];
    if (!memory.capacity_bytes) continue;
    const double bytes = tile_bits(m, memory, tile, sum_bits) / 8;
    const double room = static_cast<double>(*memory.capacity_bytes) / (memory.double_buffered && !whole ? 2 : 1);
    if (bytes > room)
      fail({.what = text("tiles of ",
                         join(tile, " x "),
                         " take ",
                         static_cast<int64_t>(bytes),
                         " bytes of ",
                         memory.name,
                         ", which has room for ",
                         static_cast<int64_t>(room)),
            .needs = memory.double_buffered ? "tiles that fit half of a double-buffered memory"
                                            : "tiles that fit the memory",
            .hint = "give smaller tiles, or none: then they are chosen"});
  }
}

}  // namespace

Placement matmul_placement(const Matmul& m, const Chip& chip, const std::array<int64_t, 3>& asked) {
  check(m);
  const bool integers = m.activation_bits > 0 && m.scale != ScalePer::none;
  if (integers && m.scale == ScalePer::group && m.group < m.k)
    fail({.what = "tiles are given for a product of integers with a scale per group",
          .needs = "a scheme whose product has the iterators i, j, k",
          .hint = "leave --tile out: then the tiles are chosen"});
  const std::array<int64_t, 3> extent = {m.i, m.j, m.k};
  std::array<int64_t, 3> tile = asked;
  for (size_t x = 0; x < 3; ++x) {
    if (tile[x] < 0)
      fail({.what = text("a tile of ", tile[x]), .needs = "tiles of at least 1, or 0 for the whole", .hint = {}});
    if (tile[x] == 0 || tile[x] > extent[x]) tile[x] = extent[x];
  }
  const int weight_bits = m.scale != ScalePer::none && integers ? m.weight_bits : m.float_bits;
  const Pace pace =
      pace_of(choose_precision(chip, weight_bits, !integers, integers ? m.activation_bits : m.float_bits, !integers));

  Placement placement;
  Map& time = placement.mapping.time;
  std::array<QuasiAffine, 3> inner;  // what runs within a tile
  std::vector<std::string> words;
  static constexpr const char* kNames[] = {"i", "j", "k"};
  for (size_t x = 0; x < 3; ++x) {
    const QuasiAffine v = variable(static_cast<int>(x));
    inner[x] = tile[x] < extent[x] ? mod(v, tile[x]) : v;
    if (tile[x] == extent[x]) continue;
    time.push_back(floor_div(v, tile[x]));
    words.push_back(text(kNames[x], " by ", tile[x]));
  }
  const size_t outer = time.size();
  check_room(m, chip, tile, outer == 0, pace.sum_bits);
  placement.held_since.assign(chip.memories.size(), outer);
  placement.held_since[0] = 0;
  placement.weight = 1;

  const Kernel kernel = matmul_kernel(m);
  const auto of_product =
      std::find_if(kernel.work.begin(), kernel.work.end(), [](const Work& w) { return w.multiply_accumulate; });
  const Stationary stays = chip.dataflow_for(class_of(*of_product, *product_of(*of_product)));
  const bool outputs = stays == Stationary::output || stays == Stationary::schedule;
  const size_t column = stays == Stationary::input ? 0 : 1;
  const size_t row = outputs ? 0 : 2, streamed = 3 - row - column;
  // A PE takes several values of the reduction at one stamp where it has the units for it.
  const int64_t lanes = std::min(pace.macs_per_stamp, tile[2]);
  inner[2] = floor_div(inner[2], lanes);
  placement.mapping.space = {mod(inner[row], chip.rows), mod(inner[column], chip.columns)};
  const Map folds = {floor_div(inner[row], chip.rows), floor_div(inner[column], chip.columns)};
  auto fold = [&](size_t x, int64_t pes, const QuasiAffine& e) {
    if ((tile[x] - 1) / (x == 2 ? lanes : 1) >= pes) time.push_back(e);
  };
  if (outputs) fold(row, chip.rows, folds[0]);
  fold(column, chip.columns, folds[1]);
  if (!outputs) fold(row, chip.rows, folds[0]);
  time.push_back(inner[streamed]);
  placement.words = text("for ",
                         words.empty() ? "one tile" : join(words, ", "),
                         "; rows ",
                         kNames[row],
                         ", columns ",
                         kNames[column],
                         ", ",
                         kNames[streamed],
                         " streams");
  return placement;
}

}  // namespace sator::dataflow
