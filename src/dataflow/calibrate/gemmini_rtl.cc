#include <array>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "dataflow/calibrate/models.h"

namespace sator::dataflow {

namespace {

constexpr std::string_view kDims = "CKNPQRS";
constexpr double kDim = 16, kLine = 64, kSecondLevel = 512 * 1024;  // PEs of a side; bytes; bytes

struct Loop {
  size_t dim;
  double count;
};

/// "L3[WIO] K48 - L2[WI] N1 K16X - L1[O] C48 P16 C16X - L0[W] P8": per level, outermost first.
std::optional<std::vector<std::vector<Loop>>> parse_mapping(const std::string& words) {
  std::vector<std::vector<Loop>> levels;
  for (std::string_view word : split(words, ' ')) {
    if (word.empty() || word == "-") continue;
    if (word[0] == 'L') {
      levels.emplace_back();
      continue;
    }
    const size_t dim = kDims.find(word[0]);
    std::string_view digits = word.substr(1);
    if (digits.ends_with('X')) digits.remove_suffix(1);
    double count = 0;
    for (char c : digits) {
      if (c < '0' || c > '9') return {};
      count = count * 10 + (c - '0');
    }
    if (dim == std::string_view::npos || levels.empty() || !(count >= 1 && count < 1e9)) return {};
    levels.back().push_back({dim, count});
  }
  if (levels.size() != 4) return {};
  return levels;
}

enum Dim { C, K, N, P, Q, R, S };
enum TileFeature { kFull, kRest, kRestRows, kLines, kMisses, kOutputLines, kTileCount };

/// What one tile of DRAM's loops is, and how often it is loaded anew.
class Layer {
 public:
  Layer(const std::vector<std::vector<Loop>>& levels, const std::array<double, 7>& size, double stride_h,
        double stride_w)
      : outer_(levels[0]), size_(size) {
    tile_.fill(1);
    for (size_t l = 1; l < levels.size(); ++l)
      for (const Loop& loop : levels[l]) tile_[loop.dim] *= loop.count;
    for (const Loop& loop : outer_) tiles_ *= loop.count;
    high_ = (tile_[P] - 1) * stride_h + tile_[R];
    wide_ = (tile_[Q] - 1) * stride_w + tile_[S];
    whole_input_ = size[C] * ((size[P] - 1) * stride_h + size[R]) * ((size[Q] - 1) * stride_w + size[S]);
  }

  std::vector<double> features() const {
    const double weight_rows = tile_[C] * tile_[R] * tile_[S], input_rows = high_ * wide_ * tile_[N];
    const double weight_lines = weight_rows * std::ceil(tile_[K] / kLine);
    const double input_lines = input_rows * std::ceil(tile_[C] / kLine);
    const double working_set = (weight_lines + input_lines) * kLine;
    auto misses = [&](double lines, double rows, double bytes, double loads, double whole) {
      if (working_set > kSecondLevel) return tiles_ * lines;
      return whole > kSecondLevel ? std::max(loads * rows * bytes, whole) / kLine : whole / kLine;
    };
    const double weights = size_[C] * size_[K] * size_[R] * size_[S];
    const double missed =
        std::min(tiles_ * weight_lines, misses(weight_lines, weight_rows, tile_[K], loads({C, K, R, S}), weights)) +
        misses(input_lines, input_rows, tile_[C], loads({N, C, P, Q, R, S}), whole_input_);
    double output_tiles = 1;
    for (const Loop& loop : outer_)
      if (loop.dim == N || loop.dim == K || loop.dim == P || loop.dim == Q) output_tiles *= loop.count;
    const double output_lines = output_tiles * tile_[P] * tile_[Q] * tile_[N] * std::ceil(tile_[K] / kLine);
    // An instruction takes up to 16 positions of one row of outputs, for 16 input and 16 output channels.
    const double blocks =
        std::ceil(tile_[K] / kDim) * std::ceil(tile_[C] / kDim) * tile_[R] * tile_[S] * tile_[N] * tiles_ * tile_[Q];
    const double rest = std::fmod(tile_[P], kDim);
    return {blocks * std::floor(tile_[P] / kDim),
            rest > 0 ? blocks : 0,
            rest,
            tiles_ * (weight_lines + input_lines),
            missed,
            output_lines,
            tiles_};
  }

 private:
  /// Tiles of a tensor that come one after the other and differ.
  double loads(std::initializer_list<Dim> dims) const {
    size_t last = outer_.size();
    auto moves = [&](size_t d) { return std::find(dims.begin(), dims.end(), static_cast<Dim>(d)) != dims.end(); };
    while (last > 0 && !moves(outer_[last - 1].dim)) --last;
    double n = 1;
    for (size_t i = 0; i < last; ++i) n *= outer_[i].count;
    return n;
  }

  const std::vector<Loop>& outer_;
  std::array<double, 7> size_, tile_{};
  double tiles_ = 1, high_ = 1, wide_ = 1, whole_input_ = 1;
};

double cycles(const std::vector<double>& c, const std::vector<double>& f) {
  const double array = f[kFull] * std::max(c[0], kDim + c[1]) + f[kRest] * std::max(c[0], f[kRestRows] + c[1]);
  const double dma = f[kLines] * c[2] + f[kMisses] * c[3] + f[kOutputLines] * c[4];
  const double beside = std::pow(std::pow(array, c[5]) + std::pow(dma, c[5]), 1 / c[5]);
  return beside + std::min(array, dma) / f[kTileCount] * c[7] + c[6];
}

}  // namespace

BoundModel bind_gemmini_rtl(const std::vector<Row>& rows, const Chip*) {
  BoundModel bound{.parameters = {{"least_instruction", "cycles", 7.7, 0.1, 50},
                                  {"per_instruction", "cycles beside its rows", 0.6, 1e-3, 10},
                                  {"line", "cycles of DMA", 6, 0.1, 100},
                                  {"miss", "cycles of DMA", 14, 0.1, 100},
                                  {"output_line", "cycles of DMA", 8, 0.1, 100},
                                  {"overlap", "norm of array and DMA", 3, 1.2, 12},
                                  {"start", "cycles", 2000, 1, 1e5},
                                  {"first_tile", "of the shorter of both", 1, 1e-3, 3}},
                   .predict = cycles,
                   .samples = {},
                   .rows = {}};
  for (size_t i = 0; i < rows.size(); ++i) {
    const nlohmann::json& f = rows[i].fields;
    const double measured = number(f, "gemmini_rtl_cycles");
    const auto prob = f.find("prob"), mapping = f.find("mapping"), arch = f.find("arch");
    if (!(measured > 0) || prob == f.end() || !prob->is_object() || mapping == f.end() || !mapping->is_string())
      continue;
    if (arch != f.end() && arch->is_object() && number(*arch, "meshX") != kDim) continue;
    const auto levels = parse_mapping(mapping->get<std::string>());
    std::array<double, 7> size{};
    bool whole = levels.has_value();
    std::string group;
    for (size_t d = 0; d < kDims.size(); ++d) {
      size[d] = number(*prob, std::string(1, kDims[d]).c_str());
      whole &= size[d] >= 1;
      group += text(kDims[d], static_cast<int64_t>(size[d]), " ");
    }
    if (!whole) continue;
    const double stride_h = std::max(1.0, number(*prob, "Hstride")), stride_w = std::max(1.0, number(*prob, "Wstride"));
    bound.samples.push_back({text(group, stride_h), Layer(*levels, size, stride_h, stride_w).features(), measured});
    bound.rows.push_back(i);
  }
  return bound;
}

}  // namespace sator::dataflow
