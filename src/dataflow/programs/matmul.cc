#include "dataflow/programs/matmul.h"

#include "base/error.h"
#include "base/text.h"

namespace sator::dataflow {

namespace {

// Operations of the vector unit per element.
constexpr double kDequantize = 2;            // convert, multiply
constexpr double kDequantizeAsymmetric = 3;  // subtract the zero point first
constexpr double kQuantize = 4;              // multiply, round, two comparisons of a clamp
constexpr double kLargestOfRow = 2;          // magnitude and comparison, for a row's own scale
constexpr double kRescaleSum = 2;            // convert, multiply
constexpr double kTakeOff = 1;               // a zero point from a code; from a sum, multiplied into it
constexpr double kSum = 1;                   // of a code to its row's others

void check(const Matmul& m) {
  auto refuse = [](std::string what, std::string needs) {
    fail({.what = std::move(what), .needs = std::move(needs), .hint = "as in 128,4096,4096 with int8-channel"});
  };
  if (m.i < 1 || m.j < 1 || m.k < 1) refuse(text("a matmul of ", m.i, " x ", m.j, " x ", m.k), "sizes of at least 1");
  if (m.float_bits < 1 || m.weight_bits < 1 || m.activation_bits < 0 || m.scale_bits < 1 || m.zero_bits < 1)
    refuse("a width is below 1 bit", "widths of at least 1 bit");
  if (m.static_scales < 1) refuse(text(m.static_scales, " scales of the inputs"), "at least one");
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

class KernelBuilder {
 public:
  explicit KernelBuilder(const Matmul& matmul) : m_(matmul) {}

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
  Operand zero() const { return {.bits = m_.zero_bits, .kind = OperandKind::scale}; }

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
      if (m_.asymmetric) touch(make, "zero", Role::read, scale_of(m_, n, c), zero());
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
      Work& largest = add("largest", Domain::box({"i", "k"}, {m_.i, m_.k}), VectorWork::quantize, kLargestOfRow);
      touch(largest, "X", Role::read, {x0, x1}, values());
      touch(largest, "x_scale", Role::write, {x0}, row_value(true));
    }
    Work& quantize = add("quantize", Domain::box({"i", "k"}, {m_.i, m_.k}), VectorWork::quantize, kQuantize);
    touch(quantize, "X", Role::read, {x0, x1}, values());
    if (m_.token_scales)
      touch(quantize, "x_scale", Role::read, {x0}, row_value(true));
    else
      touch(quantize,
            "static_scale",
            Role::read,
            static_scale_of(x1),
            {.bits = 32, .is_float = true, .kind = OperandKind::scale});
    if (m_.scale == ScalePer::input) touch(quantize, "scale", Role::read, {x1}, scale());
    touch(quantize, "x_codes", Role::write, {x0, x1}, {.bits = m_.activation_bits, .internal = true});
    if (unpacks_zero(m_)) take_off_zeros();

    // Within a group the sum is one of integers; groups are scaled and summed after it.
    const bool groups = m_.scale == ScalePer::group && m_.group < m_.k, sums_codes = m_.asymmetric && !unpacks_zero(m_);
    const int64_t inside = groups ? m_.group : m_.k, outside = groups ? (m_.k - 1) / m_.group + 1 : 1;
    if (sums_codes) sum_codes(groups, inside, outside);
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
    if (unpacks_zero(m_))
      touch(product, "W", Role::read, {j, at}, unpacked());
    else
      touch(product, "codes", Role::read, {j, at}, codes());
    touch(product, "sums", Role::write, sum, {.bits = 32, .internal = true});

    Work& rescale =
        add("rescale",
            groups ? Domain::box({"i", "j", "g"}, {m_.i, m_.j, outside}) : Domain::box({"i", "j"}, {m_.i, m_.j}),
            VectorWork::rescale,
            kRescaleSum + (groups ? 1 : 0) + (sums_codes ? kTakeOff : 0));
    touch(rescale, "sums", Role::read, sum, {.bits = 32, .internal = true});
    // A group as long as the sum is a scale per output, as that of a channel is.
    const bool per_output = m_.scale == ScalePer::channel || m_.scale == ScalePer::group;
    const Map shared = groups ? Map{g, j} : per_output ? Map{j} : Map{};
    if (m_.scale != ScalePer::input) touch(rescale, "scale", Role::read, shared, scale());
    if (sums_codes) {
      touch(rescale, "zero", Role::read, shared, zero());
      touch(rescale, "code_sums", Role::read, groups ? Map{i, g} : Map{i}, row_value(false));
    }
    if (m_.token_scales) touch(rescale, "x_scale", Role::read, {i}, row_value(true));
    touch(rescale, "Y", Role::write, {i, j}, values());
  }

  /// Of a row of X, made and used inside.
  static Operand row_value(bool is_float) { return {.bits = 32, .is_float = is_float, .internal = true}; }
  /// A code less its zero point, as the compiled program has it.
  static Operand unpacked() { return {.bits = 16, .kind = OperandKind::weight, .internal = true}; }

  Map static_scale_of(const QuasiAffine& k) const {
    if (m_.static_scales == 1) return {};
    if (m_.static_scales >= m_.k) return {k};
    return {floor_div(k * m_.static_scales, m_.k)};
  }

  void take_off_zeros() {
    Work& make = add("unpack", Domain::box({"j", "k"}, {m_.j, m_.k}), VectorWork::dequantize, kTakeOff);
    touch(make, "codes", Role::read, {variable(0), variable(1)}, codes());
    touch(make, "zero", Role::read, {variable(1)}, zero());
    touch(make, "W", Role::write, {variable(0), variable(1)}, unpacked());
  }

  /// What zero points are multiplied with: the sum of the row's (or group's) codes of X.
  void sum_codes(bool groups, int64_t inside, int64_t outside) {
    const QuasiAffine i = variable(0), g = variable(1), k = groups ? g * inside + variable(2) : variable(1);
    Domain domain =
        groups ? Domain::box({"i", "g", "k"}, {m_.i, outside, inside}) : Domain::box({"i", "k"}, {m_.i, m_.k});
    if (groups && m_.k % inside != 0) domain.guards.push_back(number(m_.k - 1) - k);
    Work& sum = add("sum_codes", std::move(domain), VectorWork::quantize, kSum);
    touch(sum, "x_codes", Role::read, {i, k}, {.bits = m_.activation_bits, .internal = true});
    touch(sum, "code_sums", Role::write, groups ? Map{i, g} : Map{i}, row_value(false));
  }

  const Matmul& m_;
  Kernel kernel_;
};

}  // namespace

Kernel matmul_kernel(const Matmul& matmul) {
  check(matmul);
  return KernelBuilder(matmul).run();
}

}  // namespace sator::dataflow
