// Sorting in the runtime, beside std::stable_sort over the elements as they are.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "runtime/executable_builder.h"
#include "runtime/vm.h"
#include "temp_folder.h"

namespace sator::runtime {
namespace {

/// f(x, axis, descending, results...): one call of a builtin.
void call_builtin(const std::string& name, std::vector<Value> args) {
  ExecutableBuilder b;
  std::vector<std::string> params;
  std::vector<Arg> passed;
  for (size_t i = 0; i < args.size(); ++i) {
    params.push_back(text("p", i));
    passed.push_back(Arg::reg(static_cast<int64_t>(i)));
  }
  b.begin_function("f", params);
  b.call(b.builtin(name), passed);
  b.ret(Arg::reg(0));
  b.end_function();
  VirtualMachine vm(b.finish(), {}, ThreadPool::create(2));
  vm.call("f", args);
}

template <class T>
bool comes_before(T a, T b, bool descending) {
  if (std::isnan(static_cast<double>(a)) || std::isnan(static_cast<double>(b)))
    return descending ? std::isnan(static_cast<double>(a)) && !std::isnan(static_cast<double>(b))
                      : std::isnan(static_cast<double>(b)) && !std::isnan(static_cast<double>(a));
  return descending ? a > b : a < b;
}

/// Every line of x along the axis: its order, by comparisons.
template <class T>
std::vector<int64_t> expected_order(const Tensor& x, int64_t axis, bool descending) {
  std::vector<int64_t> out(static_cast<size_t>(x.num_elements()));
  int64_t inner = 1;
  for (int64_t d = axis + 1; d < x.rank(); ++d) inner *= x.dim(static_cast<size_t>(d));
  const int64_t n = x.dim(static_cast<size_t>(axis));
  for (int64_t line = 0; line < x.num_elements() / n; ++line) {
    const int64_t from = line / inner * n * inner + line % inner;
    std::vector<int64_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
      return comes_before(x.data_as<T>()[from + i * inner], x.data_as<T>()[from + j * inner], descending);
    });
    for (int64_t i = 0; i < n; ++i) out[static_cast<size_t>(from + i * inner)] = order[static_cast<size_t>(i)];
  }
  return out;
}

template <class T>
void expect_sorted(DType dtype, const Dims& shape, int64_t axis) {
  std::mt19937_64 random(7);
  Ref<Tensor> x = Tensor::empty(shape, dtype);
  for (int64_t i = 0; i < x->num_elements(); ++i)
    // Few different values, so that many are equal.
    x->data_as<T>()[i] = static_cast<T>(static_cast<int64_t>(random() % 41) - (dtype.is_uint() ? 0 : 20));
  if constexpr (std::is_floating_point_v<T>)
    for (int64_t i = 0; i < x->num_elements(); i += 11) {
      x->data_as<T>()[i] = i % 3 == 0   ? std::numeric_limits<T>::quiet_NaN()
                           : i % 3 == 1 ? -std::numeric_limits<T>::infinity()
                                        : T{0} * -1;
    }
  int64_t inner = 1;
  for (int64_t d = axis + 1; d < x->rank(); ++d) inner *= x->dim(static_cast<size_t>(d));
  const int64_t n = x->dim(static_cast<size_t>(axis));
  for (bool descending : {false, true}) {
    const std::vector<int64_t> order = expected_order<T>(*x, axis, descending);
    Ref<Tensor> indices = Tensor::empty(shape, i64), values = Tensor::empty(shape, dtype);
    call_builtin("vm.builtin.argsort", {x, axis, int64_t{descending}, indices});
    call_builtin("vm.builtin.sort", {x, axis, int64_t{descending}, values});
    for (int64_t i = 0; i < x->num_elements(); ++i) {
      ASSERT_EQ(indices->data_as<int64_t>()[i], order[static_cast<size_t>(i)]) << text(*x) << " at " << i;
      const int64_t line = i / (n * inner) * n * inner + i % inner;
      const T want = x->data_as<T>()[line + order[static_cast<size_t>(i)] * inner], got = values->data_as<T>()[i];
      ASSERT_TRUE(got == want || (got != got && want != want)) << text(*x) << " at " << i;
    }
    Dims few = shape;
    few[static_cast<size_t>(axis)] = std::min<int64_t>(n, 3);
    Ref<Tensor> best = Tensor::empty(few, dtype), where = Tensor::empty(few, i32);
    call_builtin("vm.builtin.topk", {x, axis, int64_t{descending}, best, where});
    const int64_t k = few[static_cast<size_t>(axis)];
    for (int64_t line = 0; line < x->num_elements() / n; ++line)
      for (int64_t i = 0; i < k; ++i)
        ASSERT_EQ(where->data_as<int32_t>()[line / inner * k * inner + line % inner + i * inner],
                  order[static_cast<size_t>(line / inner * n * inner + line % inner + i * inner)]);
  }
}

TEST(Sort, OrdersEveryDtypeAlongAnyAxis) {
  for (const Dims& shape : {Dims{1500}, Dims{3, 700}, Dims{700, 3}, Dims{2, 300, 2}, Dims{4, 5}, Dims{1, 1}})
    for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); ++axis) {
      expect_sorted<float>(f32, shape, axis);
      expect_sorted<double>(f64, shape, axis);
      expect_sorted<int8_t>(i8, shape, axis);
      expect_sorted<int16_t>(i16, shape, axis);
      expect_sorted<int32_t>(i32, shape, axis);
      expect_sorted<int64_t>(i64, shape, axis);
      expect_sorted<uint8_t>(u8, shape, axis);
      expect_sorted<uint32_t>(u32, shape, axis);
    }
}

TEST(Sort, RefusesWhatDoesNotFit) {
  const Ref<Tensor> x = Tensor::of(std::vector<float>{3, 1, 2}, {3}, f32);
  const auto refusal = [&](const std::vector<Value>& args) {
    return error_of([&] { call_builtin("vm.builtin.sort", args); });
  };
  EXPECT_NE(refusal({x, int64_t{1}, int64_t{0}, Tensor::empty({3}, f32)}).find("an axis of the tensor"),
            std::string::npos);
  EXPECT_NE(refusal({x, int64_t{0}, int64_t{0}, Tensor::empty({4}, f32)}).find("into float32[4]"), std::string::npos);
  EXPECT_NE(refusal({x, int64_t{0}, int64_t{0}, Tensor::empty({3}, f64)}).find("into float64[3]"), std::string::npos);
  const Ref<Tensor> none = Tensor::empty({0}, f32);
  EXPECT_EQ(refusal({none, int64_t{0}, int64_t{0}, Tensor::empty({0}, f32)}), "");
}

}  // namespace
}  // namespace sator::runtime
