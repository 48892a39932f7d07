// Elements of arrays as numbers, and arrays as the lines of text tests.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "runtime/tensor.h"

namespace sator::test {

/// One element in memory. 64-bit integers beyond 2^53 lose bits.
double read_element(const void* p, DType d);
void write_element(void* p, double v, DType d);
inline double element(const runtime::Tensor& t, int64_t i) {
  return read_element(t.data_as<char>() + i * t.dtype().bytes(), t.dtype());
}
inline void set_element(const runtime::Tensor& t, int64_t i, double v) {
  write_element(t.data_as<char>() + i * t.dtype().bytes(), v, t.dtype());
}

/// "A float32[2, 3] = 1 2 3 4 5 6": one number alone fills the array; nan and inf are numbers.
struct ArrayLine {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<double> values;  ///< none, one, or as many as elements
};
/// Errors: the line is of another form, or has another number of values.
ArrayLine parse_array_line(std::string_view line);

}  // namespace sator::test
