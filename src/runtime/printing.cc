#include "runtime/printing.h"

#include <charconv>
#include <cstdio>

#include "base/error.h"
#include "base/float16.h"
#include "base/float8.h"
#include "runtime/scalars.h"

namespace sator::runtime {

namespace {

constexpr int64_t kMostElements = 1000, kEdge = 3;

template <class T>
T element(const Tensor& t, int64_t i) {
  return t.data_as<T>()[i];
}

/// The shortest decimal that reads back as the same number of its type; with a point, as Python has it.
template <class T>
std::string number(T value) {
  char digits[32];
  const auto [end, error] = std::to_chars(digits, digits + sizeof(digits), value);
  std::string out(digits, end);
  return out.find_first_of(".eni") == out.npos ? out + ".0" : out;
}

std::string element_shown(const Tensor& t, int64_t i) {
  const DType d = t.dtype();
  if (d.is_bool()) return element<uint8_t>(t, i) ? "True" : "False";
  if (d == f16) return number(f16_to_f32(element<uint16_t>(t, i)));
  if (d == bf16) return number(bf16_to_f32(element<uint16_t>(t, i)));
  if (d == f32) return number(element<float>(t, i));
  if (d == f64) return number(element<double>(t, i));
  if (d.is_float8()) return number(f8_to_f32(element<uint8_t>(t, i), d.code));
  const int64_t whole = integer_at(t.data_as<char>() + i * d.element_bytes(), d);
  return d == u64 ? text(static_cast<uint64_t>(whole)) : text(whole);
}

void show_axis(const Tensor& t, size_t axis, int64_t first, int64_t elements, std::string& out) {
  if (axis == static_cast<size_t>(t.rank())) {
    out += element_shown(t, first);
    return;
  }
  const int64_t extent = t.dim(axis), step = extent == 0 ? 0 : elements / extent;
  const bool is_cut = t.num_elements() > kMostElements && extent > 2 * kEdge;
  out += '[';
  for (int64_t i = 0; i < extent; ++i) {
    if (i > 0) out += axis + 1 == static_cast<size_t>(t.rank()) ? ", " : ",\n" + std::string(axis + 1, ' ');
    if (is_cut && i == kEdge) {
      out += "...";
      i = extent - kEdge - 1;
      continue;
    }
    show_axis(t, axis + 1, first + i * step, step, out);
  }
  out += ']';
}

std::string joined(std::string_view open, const std::vector<std::string>& items, std::string_view close) {
  return text(open, join(items, ", "), close);
}

void to_standard_output(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

PrintFn print_to = to_standard_output;

}  // namespace

std::string shown(const Value& value) {
  if (const int64_t* v = value.as_int()) return text(*v);
  if (const double* v = value.as_float()) return number(*v);
  if (const DType* v = value.as_dtype()) return text(*v);
  if (const std::string* v = value.as_string()) return *v;
  std::vector<std::string> items;
  if (const Shape* v = value.as<Shape>()) {
    for (int64_t extent : v->dims) items.push_back(text(extent));
    return joined("[", items, "]");
  }
  if (const Tuple* v = value.as<Tuple>()) {
    for (const Value& field : v->fields) items.push_back(shown(field));
    return joined("(", items, items.size() == 1 ? ",)" : ")");
  }
  const Tensor* tensor = value.as<Tensor>();
  if (!tensor) return value.describe();
  std::string out;
  show_axis(*tensor, 0, 0, tensor->num_elements(), out);
  return out;
}

std::string formatted(std::string_view format, std::span<const Value* const> values) {
  std::string out;
  size_t next = 0, from = 0;
  for (size_t at = format.find("{}"); at != format.npos && next < values.size(); at = format.find("{}", from)) {
    out += format.substr(from, at - from);
    out += shown(*values[next++]);
    from = at + 2;
  }
  out += format.substr(from);
  for (; next < values.size(); ++next) {
    if (!out.empty()) out += ' ';
    out += shown(*values[next]);
  }
  return out;
}

void set_print(PrintFn print) { print_to = print ? print : to_standard_output; }

void print_line(const std::string& line) { print_to(line); }

void require_assertion(const Value& condition, std::string_view format, std::span<const Value* const> values) {
  const Tensor* tensor = condition.as<Tensor>();
  const int64_t* number = condition.as_int();
  const bool is_one = tensor && tensor->num_elements() == 1 && tensor->dtype().is_bool();
  if (!number && !is_one) fail({.what = text("an assertion about ", condition.describe()), .needs = "one truth value"});
  if (number ? *number != 0 : *tensor->data_as<uint8_t>() != 0) return;
  const std::string message = formatted(format, values);
  fail({.what = message.empty() ? std::string("an assertion failed") : text("an assertion failed: ", message),
        .needs = "a condition that holds",
        .hint = "check the inputs"});
}

}  // namespace sator::runtime
