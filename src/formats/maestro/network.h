#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sator::formats::maestro {

/// The dimensions of MAESTRO's layers. A GEMM has m, n and k; a convolution the others: batch n, groups g, output channels
/// k, input channels c, filter r x s, input y x x, and the output's out_y x out_x (written Y' and X').
enum class Dim : uint8_t { c, g, k, m, n, r, s, x, y, out_x, out_y };
constexpr int kDims = 11;
std::string_view name_of(Dim dim);

/// A value for each dimension.
template <class T>
struct PerDim : std::array<T, kDims> {
  T& operator[](Dim dim) { return std::array<T, kDims>::operator[](static_cast<size_t>(dim)); }
  const T& operator[](Dim dim) const { return std::array<T, kDims>::operator[](static_cast<size_t>(dim)); }
};

enum class LayerType : uint8_t { conv, dsconv, ngconv, gemm };

/// Where the user wrote something.
struct Place {
  int64_t line = 1, column = 1;
};

/// TemporalMap(size, offset) dim: tiles of `size`, each `offset` after the one before, one after another in time.
/// SpatialMap(size, offset) dim: the same over the sub-clusters, then in time. Cluster(size, P): what follows describes the
/// inside of clusters of `size` units.
struct Directive {
  enum class Kind : uint8_t { temporal, spatial, cluster };
  Kind kind = Kind::temporal;
  int64_t size = 1, offset = 1;
  Dim dim = Dim::k;
  Place place;
};

struct Layer {
  std::string name;
  LayerType type = LayerType::conv;
  PerDim<int64_t> size{};    // 0: the layer does not have it
  PerDim<int64_t> stride{};  // 1 unless given
  std::vector<Directive> dataflow;
  Place place;
};

struct Network {
  std::string name;
  std::vector<Layer> layers;
};

/// Reads a MAESTRO mapping file (.m): Network NAME { Layer NAME { Type: .. Stride {..} Dimensions {..} Dataflow {..} } },
/// with `Constant NAME value` before it. Types CONV, DSCONV, NGCONV, TRCONV (which MAESTRO treats as CONV) and GEMM.
/// Errors: each names line and column; types that MAESTRO names and does not model, and a layer without a Dataflow of its
/// own, are refused.
Network parse_network(std::string_view text, std::string_view file = "mapping");

/// The file back; reading it gives an equal network (comments, constants and Sz(..) are written as what they stand for).
std::string network_text(const Network& network);

/// The hardware of a mapping, as MAESTRO's hardware file gives it.
struct Hardware {
  int64_t pes = 1;
  int64_t l1_bytes = INT32_MAX, l2_bytes = INT32_MAX;  // read; MAESTRO only warns of them
  int64_t noc_words_per_cycle = INT32_MAX;
  int64_t noc_latency_cycles = 1;  // NoC_NumHops, at a cycle a hop
  int64_t offchip_words_per_cycle = INT32_MAX;
};

/// Reads a hardware file: lines `num_pes: 256`, `l1_size_cstr`, `l2_size_cstr`, `noc_bw_cstr`, `offchip_bw_cstr`,
/// `NoC_NumHops`. Errors: each names line and column; a key twice; num_pes missing.
Hardware parse_hardware(std::string_view text, std::string_view file = "hardware");
std::string hardware_text(const Hardware& hardware);

}  // namespace sator::formats::maestro
