// oneDNN's products and convolutions beside sums in double precision.
#include "runtime/dnnl.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.h"
#include "temp_folder.h"

namespace sator::runtime {
namespace {

class DnnlTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_dnnl()) GTEST_SKIP() << "oneDNN is not installed: apt install libdnnl-dev";
  }

  Ref<Tensor> drawn(const Dims& shape) {
    Ref<Tensor> t = Tensor::empty(shape, f32);
    std::uniform_real_distribution<float> draw(-1, 1);
    for (int64_t i = 0; i < t->num_elements(); ++i) t->data_as<float>()[i] = draw(random_);
    return t;
  }

  /// Runs the operation, and compares each element with a sum of products in double precision and what is done to it.
  ///   sum  (element, magnitude): the exact sum; adds the magnitudes of its terms to `magnitude`
  void expect_sums(const std::string& words, std::vector<Tensor*> operands, const Dims& shape, int64_t terms,
                   const std::function<double(int64_t, double&)>& sum) {
    Ref<Tensor> out = Tensor::empty(shape, f32);
    run_dnnl(words, operands, *out, 2);
    const DnnlOperation op = DnnlOperation::from_text(words);
    for (int64_t i = 0; i < out->num_elements(); ++i) {
      double magnitude = 0, value = sum(i, magnitude);
      if (op.activation == "relu") value = std::max(value, 0.0);
      if (op.activation == "gelu") value = 0.5 * value * (1 + std::erf(value / std::sqrt(2.0)));
      if (op.activation == "gelu_tanh")
        value = 0.5 * value * (1 + std::tanh(std::sqrt(2 / M_PI) * (value + 0.044715 * value * value * value)));
      // Each of the terms may be rounded twice, in any order; gelu's slope is below 1.13, and its own error a few last places.
      const double bound = 1.13 * (2.0 * static_cast<double>(terms) + 2) * 0x1p-24 * magnitude +
                           (op.activation.starts_with("gelu") ? 0x1p-20 * std::max(1.0, std::abs(value)) : 0);
      ASSERT_NEAR(out->data_as<float>()[i], value, bound) << words << ", element " << i;
    }
  }

  std::mt19937 random_{7};
};

TEST_F(DnnlTest, Version) { EXPECT_EQ(dnnl_version().substr(0, 2), "2."); }

TEST_F(DnnlTest, Products) {
  for (const auto& [m, k, n] : {std::array{1, 1, 1}, std::array{5, 33, 17}, std::array{64, 100, 3}}) {
    Ref<Tensor> x = drawn({m, k}), w = drawn({k, n}), t = drawn({n, k}), b = drawn({n});
    for (const bool turned : {false, true})
      for (const char* rest : {"", " bias=2", " bias=2 relu", " gelu", " bias=2 gelu_tanh"}) {
        const bool has_bias = std::string(rest).find("bias") != std::string::npos;
        const Tensor& factor = turned ? *t : *w;
        expect_sums(text("matmul x=0 w=1", turned ? " transposed" : "", rest),
                    {x.get(), turned ? t.get() : w.get(), b.get()},
                    {m, n},
                    k,
                    [&, k = k, n = n](int64_t at, double& magnitude) {
                      const int64_t i = at / n, j = at % n;
                      double sum = has_bias ? b->data_as<float>()[j] : 0.0;
                      magnitude = std::abs(sum);
                      for (int64_t l = 0; l < k; ++l) {
                        const double term = static_cast<double>(x->data_as<float>()[i * k + l]) *
                                            factor.data_as<float>()[turned ? j * k + l : l * n + j];
                        sum += term;
                        magnitude += std::abs(term);
                      }
                      return sum;
                    });
      }
  }
}

TEST_F(DnnlTest, BatchesAndRowsOfMore) {
  Ref<Tensor> x = drawn({2, 3, 4}), w = drawn({2, 4, 5}), one = drawn({4, 5});
  auto product = [&](const Tensor& factor, bool batched) {
    return [&factor, batched, &x](int64_t at, double& magnitude) {
      const int64_t batch = at / 15, i = at / 5, j = at % 5;
      double sum = 0;
      for (int64_t l = 0; l < 4; ++l) {
        const double term = static_cast<double>(x->data_as<float>()[i * 4 + l]) *
                            factor.data_as<float>()[(batched ? batch * 20 : 0) + l * 5 + j];
        sum += term;
        magnitude += std::abs(term);
      }
      return sum;
    };
  };
  expect_sums("matmul x=1 w=0", {w.get(), x.get()}, {2, 3, 5}, 4, product(*w, true));
  expect_sums("matmul x=0 w=1", {x.get(), one.get()}, {2, 3, 5}, 4, product(*one, false));
}

TEST_F(DnnlTest, Convolutions) {
  struct Row {
    int64_t channels, size, filters, kernel;
    std::vector<int64_t> strides, padding, dilation;
    int64_t groups;
  };
  const Row rows[] = {{3, 9, 8, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1},
                      {16, 8, 16, 1, {2, 2}, {0, 0, 0, 0}, {1, 1}, 1},
                      {8, 7, 8, 3, {2, 1}, {1, 0, 2, 1}, {1, 2}, 1},
                      {8, 6, 12, 3, {1, 1}, {1, 1, 1, 1}, {1, 1}, 4}};
  for (const Row& r : rows) {
    const int64_t inside = r.channels / r.groups, per_group = r.filters / r.groups;
    auto extent = [&](size_t d) {
      const int64_t window = r.dilation[d] * (r.kernel - 1) + 1;
      return (r.size + r.padding[d] + r.padding[d + 2] - window) / r.strides[d] + 1;
    };
    const int64_t height = extent(0), width = extent(1);
    Ref<Tensor> x = drawn({2, r.channels, r.size, r.size}), w = drawn({r.filters, inside, r.kernel, r.kernel}),
                b = drawn({1, r.filters, 1, 1});
    const std::string words = text("conv2d x=0 w=1 bias=2 strides=",
                                   join(r.strides, ","),
                                   " padding=",
                                   join(r.padding, ","),
                                   " dilation=",
                                   join(r.dilation, ","),
                                   " groups=",
                                   r.groups,
                                   " relu");
    expect_sums(words,
                {x.get(), w.get(), b.get()},
                {2, r.filters, height, width},
                inside * r.kernel * r.kernel,
                [&](int64_t at, double& magnitude) {
                  const int64_t column = at % width, row = at / width % height, f = at / (width * height) % r.filters,
                                image = at / (width * height * r.filters);
                  double sum = b->data_as<float>()[f];
                  magnitude = std::abs(sum);
                  for (int64_t c = 0; c < inside; ++c)
                    for (int64_t i = 0; i < r.kernel; ++i)
                      for (int64_t j = 0; j < r.kernel; ++j) {
                        const int64_t y = row * r.strides[0] - r.padding[0] + i * r.dilation[0],
                                      z = column * r.strides[1] - r.padding[1] + j * r.dilation[1];
                        if (y < 0 || z < 0 || y >= r.size || z >= r.size) continue;
                        const int64_t channel = f / per_group * inside + c;
                        const double term =
                            static_cast<double>(
                                x->data_as<float>()[((image * r.channels + channel) * r.size + y) * r.size + z]) *
                            w->data_as<float>()[((f * inside + c) * r.kernel + i) * r.kernel + j];
                        sum += term;
                        magnitude += std::abs(term);
                      }
                  return sum;
                });
  }
}

TEST_F(DnnlTest, RefusesShapesThatDoNotFit) {
  Ref<Tensor> x = drawn({2, 3}), w = drawn({4, 5}), out = drawn({2, 5}), b = drawn({4});
  std::vector<Tensor*> operands = {x.get(), w.get()};
  EXPECT_NE(error_of([&] { run_dnnl("matmul x=0 w=1", operands, *out, 1); }).find("float32[4, 5]"), std::string::npos);
  Ref<Tensor> fits = drawn({3, 5});
  operands = {x.get(), fits.get(), b.get()};
  EXPECT_NE(error_of([&] { run_dnnl("matmul x=0 w=1 bias=2", operands, *out, 1); }).find("float32[4]"),
            std::string::npos);
  EXPECT_NE(error_of([&] { run_dnnl("matmul x=0 w=7", operands, *out, 1); }).find("w=7"), std::string::npos);
}

TEST(DnnlOperation, Words) {
  const DnnlOperation op = DnnlOperation::from_text("conv2d x=1 w=0 strides=2,1 padding=1,2,3,4 groups=4 bias=2 gelu");
  EXPECT_EQ(op.x, 1u);
  EXPECT_EQ(op.padding, (std::vector<int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(op.activation, "gelu");
  EXPECT_NE(error_of([] { DnnlOperation::from_text("matmul x=0 w=1 softmax"); }).find("softmax"), std::string::npos);
  EXPECT_NE(error_of([] { DnnlOperation::from_text("x=0 w=1"); }).find("matmul, conv2d"), std::string::npos);
  EXPECT_NE(error_of([] { DnnlOperation::from_text("conv2d strides=2"); }).find("2 numbers"), std::string::npos);
}

TEST(DnnlOperation, SaysWhatToInstall) {
  if (has_dnnl()) GTEST_SKIP() << "oneDNN is installed";
  Ref<Tensor> x = Tensor::empty({1, 1}, f32);
  std::vector<Tensor*> operands = {x.get(), x.get()};
  EXPECT_NE(error_of([&] { run_dnnl("matmul x=0 w=1", operands, *x, 1); }).find("libdnnl"), std::string::npos);
}

}  // namespace
}  // namespace sator::runtime
