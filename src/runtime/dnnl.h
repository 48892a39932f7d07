// oneDNN, a library of kernels for CPUs, opened when a program calls it first. Sator does not need it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/tensor.h"

namespace sator::runtime {

/// What a call of the library computes, as its text says it: words with blanks between.
///   matmul                    x [..., m, k] times w [k, n] or [..., k, n]
///   conv2d                    x [n, c, h, w], w [o, c / groups, h, w]
///   x=0 w=1 bias=2            which argument each operand is; without `bias` there is none
///   transposed                w lies as [n, k] (of matmul)
///   strides=1,1 padding=1,1,1,1 dilation=1,1 groups=1    of conv2d: top, left, bottom, right
///   relu, gelu or gelu_tanh   of the sum
struct DnnlOperation {
  std::string kind, activation;
  size_t x = 0, w = 1;
  int bias = -1;
  bool is_transposed = false;
  std::vector<int64_t> strides = {1, 1}, padding = {0, 0, 0, 0}, dilation = {1, 1};
  int64_t groups = 1;

  /// Errors: an unknown word; neither matmul nor conv2d.
  static DnnlOperation from_text(const std::string& words);
};

/// Runs the operation on float32 tensors, which are dense and row-major, the result behind the operands.
///   num_threads  that the library may use
/// Errors: oneDNN is not installed, or Sator was built without its header; operands of other dtypes or shapes than the text
/// asks for; the library's own.
void run_dnnl(const std::string& words, std::span<Tensor* const> operands, Tensor& out, int num_threads);

/// The library's version ("2.6.3"), opened. Errors: it is not there.
std::string dnnl_version();
/// Whether it can be opened.
bool has_dnnl();

}  // namespace sator::runtime
