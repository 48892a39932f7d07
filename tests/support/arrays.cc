#include "support/arrays.h"

#include <cstring>

#include "base/error.h"
#include "base/float16.h"
#include "base/text.h"

namespace sator::test {

double read_element(const void* p, DType d) {
  auto as = [&]<class T>(T v) {
    std::memcpy(&v, p, sizeof v);
    return v;
  };
  if (d == f32) return as(float());
  if (d == f64) return as(double());
  if (d.is_bfloat()) return bf16_to_f32(as(uint16_t()));
  if (d.is_float()) return f16_to_f32(as(uint16_t()));
  switch (d.element_bytes()) {
    case 1: return d.is_int() ? static_cast<double>(as(int8_t())) : static_cast<double>(as(uint8_t()));
    case 2: return d.is_int() ? static_cast<double>(as(int16_t())) : static_cast<double>(as(uint16_t()));
    case 4: return d.is_int() ? static_cast<double>(as(int32_t())) : static_cast<double>(as(uint32_t()));
    default: return static_cast<double>(as(int64_t()));
  }
}

void write_element(void* p, double v, DType d) {
  auto put = [&](auto x) { std::memcpy(p, &x, sizeof x); };
  if (d == f32)
    put(static_cast<float>(v));
  else if (d == f64)
    put(v);
  else if (d.is_bfloat())
    put(f32_to_bf16(static_cast<float>(v)));
  else if (d.is_float())
    put(f32_to_f16(static_cast<float>(v)));
  else if (d.element_bytes() == 1)
    put(static_cast<uint8_t>(static_cast<int64_t>(v)));
  else if (d.element_bytes() == 2)
    put(static_cast<uint16_t>(static_cast<int64_t>(v)));
  else if (d.element_bytes() == 4)
    put(static_cast<uint32_t>(static_cast<int64_t>(v)));
  else
    put(static_cast<int64_t>(v));
}

ArrayLine parse_array_line(std::string_view line) {
  size_t equals = line.find('=');
  std::string_view head = trim(line.substr(0, equals)), values = equals == line.npos ? "" : line.substr(equals + 1);
  size_t space = head.find(' '), open = head.find('['), close = head.find(']');
  auto refuse = [&](std::string what) {
    fail({.what = std::move(what), .needs = "NAME dtype[extents] = values", .hint = "correct the line"});
  };
  if (space == head.npos || open == head.npos || close == head.npos)
    refuse(text("cannot read the argument ", string_literal(head)));
  auto number = [](std::string_view s) { return std::stod(std::string(s)); };
  ArrayLine out{.name = std::string(head.substr(0, space)),
                .dtype = DType::parse(trim(head.substr(space, open - space))).value()};
  int64_t count = 1;
  for (std::string_view extent : split(head.substr(open + 1, close - open - 1), ',')) {
    if (trim(extent).empty()) continue;
    out.shape.push_back(static_cast<int64_t>(number(trim(extent))));
    count *= out.shape.back();
  }
  for (std::string_view word : split(values, ' ')) {
    if (!word.empty()) out.values.push_back(number(word));
  }
  if (out.values.size() > 1 && static_cast<int64_t>(out.values.size()) != count)
    refuse(text(out.values.size(), " values for ", count, " elements of ", out.name));
  return out;
}

}  // namespace sator::test
