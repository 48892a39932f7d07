#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sator::formats {

/// A layer of a SCALE-Sim topology: a convolution without padding, or a matrix product C[M,N] += A[M,K] B[K,N] written
/// as one (the filter covers a row of an M x K image).
struct ScalesimLayer {
  std::string name;
  bool gemm = false;
  int64_t ifmap_h = 1, ifmap_w = 1;
  int64_t filter_h = 1, filter_w = 1;
  int64_t channels = 1, filters = 1;
  int64_t stride = 1;  // in both directions

  // Derived. Output positions round up: a window that starts inside counts even where it reaches over the edge.
  int64_t ofmap_h = 1, ofmap_w = 1;
  int64_t m = 1;  // output positions of one filter
  int64_t n = 1;  // filters
  int64_t k = 1;  // elements of a window
};

/// Reads a topology CSV: a heading line, then one layer a line,
///   name, H, W, filter height, filter width, channels, filters, stride, [N:M,]    or, where `gemm`, name, M, N, K, [N:M,]
/// The sparsity ratio N:M has no effect while the configuration switches sparsity off. A name that holds "DP" is a
/// depthwise convolution and becomes one layer per channel.
/// Errors: each names line and column: wrong number of fields, no positive integer, a filter larger than its input,
/// no layer at all, sizes whose products pass 64 bits.
std::vector<ScalesimLayer> parse_scalesim_topology(std::string_view text, bool gemm,
                                                   std::string_view file = "topology");

/// The CSV back; reading it gives equal layers (names with "DP" apart: reading adds the channel's number again).
std::string scalesim_topology_text(const std::vector<ScalesimLayer>& layers, bool gemm);

}  // namespace sator::formats
