#include "formats/scalesim/stream.h"

namespace sator::formats {
namespace {

/// (window, offset) pairs of one image axis that lie inside; with disjoint windows also the positions they cover. Only the
/// last window can reach over the edge, or lie beyond it.
int64_t inside(int64_t extent, int64_t filter, int64_t stride, int64_t windows) {
  return (windows - 1) * filter + std::clamp<int64_t>(extent - (windows - 1) * stride, 0, filter);
}

/// Positions of one image axis that any window covers.
int64_t covered(int64_t extent, int64_t filter, int64_t stride, int64_t windows) {
  if (stride >= filter) return inside(extent, filter, stride, windows);
  return std::min(extent, (windows - 1) * stride + filter);
}

}  // namespace

OperandStream::Axis OperandStream::pixels(const ScalesimLayer& layer) {
  Axis axis;
  axis.address.reserve(layer.m);
  for (int64_t row = 0; row < layer.ofmap_h; ++row)
    for (int64_t col = 0; col < layer.ofmap_w; ++col) {
      axis.address.push_back((row * layer.ifmap_w + col) * layer.stride * layer.channels);
      axis.row.push_back(row * layer.stride);
      axis.col.push_back(col * layer.stride);
    }
  return axis;
}

OperandStream::Axis OperandStream::window(const ScalesimLayer& layer) {
  Axis axis;
  axis.address.reserve(layer.k);
  for (int64_t row = 0; row < layer.filter_h; ++row)
    for (int64_t col = 0; col < layer.filter_w; ++col)
      for (int64_t channel = 0; channel < layer.channels; ++channel) {
        axis.address.push_back((row * layer.ifmap_w + col) * layer.channels + channel);
        axis.row.push_back(row);
        axis.col.push_back(col);
      }
  return axis;
}

void OperandStream::place(const ScalesimConfig& config, bool lanes_on_rows, bool stationary) {
  lanes_ = static_cast<int64_t>(lane_.address.size());
  steps_ = static_cast<int64_t>(step_.address.size());
  lanes_on_rows_ = lanes_on_rows;
  skewed_ = !stationary;
  width_ = lanes_on_rows ? config.rows : config.cols;
  block_ = config.rows;
  step_blocks_ = stationary ? (steps_ + block_ - 1) / block_ : 1;
  start_ = skewed_ && config.dataflow != Stationary::output ? config.rows : 0;  // after the preload
}

OperandStream OperandStream::ifmap(const ScalesimConfig& config, const ScalesimLayer& layer) {
  OperandStream stream;
  const bool pixels_are_lanes = config.dataflow != Stationary::weight;
  stream.lane_ = pixels_are_lanes ? pixels(layer) : window(layer);
  stream.step_ = pixels_are_lanes ? window(layer) : pixels(layer);
  stream.place(config, config.dataflow != Stationary::input, config.dataflow == Stationary::input);
  stream.words_ = layer.ifmap_h * layer.ifmap_w * layer.channels;
  stream.touched_ = covered(layer.ifmap_h, layer.filter_h, layer.stride, layer.ofmap_h) *
                    covered(layer.ifmap_w, layer.filter_w, layer.stride, layer.ofmap_w) * layer.channels;
  stream.pairs_ = inside(layer.ifmap_h, layer.filter_h, layer.stride, layer.ofmap_h) *
                  inside(layer.ifmap_w, layer.filter_w, layer.stride, layer.ofmap_w) * layer.channels;
  stream.clipped_ = stream.pairs_ != layer.m * layer.k;
  stream.height_ = layer.ifmap_h;
  stream.image_width_ = layer.ifmap_w;
  return stream;
}

OperandStream OperandStream::filter(const ScalesimConfig& config, const ScalesimLayer& layer) {
  OperandStream stream;
  Axis filters, weights;
  for (int64_t i = 0; i < layer.n; ++i) filters.address.push_back(i * layer.k);
  for (int64_t i = 0; i < layer.k; ++i) weights.address.push_back(i);
  const bool filters_are_lanes = config.dataflow != Stationary::input;
  stream.lane_ = filters_are_lanes ? std::move(filters) : std::move(weights);
  stream.step_ = filters_are_lanes ? std::move(weights) : std::move(filters);
  stream.place(config, config.dataflow == Stationary::input, config.dataflow == Stationary::weight);
  stream.words_ = stream.touched_ = stream.pairs_ = layer.k * layer.n;
  return stream;
}

int64_t OperandStream::sent_by(const Tile& tile, int64_t cycle) const {
  const int64_t t = cycle - first_cycle(tile) + 1;
  if (!skewed_) return std::clamp<int64_t>(t, 0, tile.steps) * tile.lanes;
  // Lattice points (lane, step) with lane + step < t: a triangle less what lies beyond the last step and the last lane.
  const auto triangle = [](int64_t n) { return n <= 0 ? 0 : n * (n + 1) / 2; };
  return triangle(t) - triangle(t - tile.steps) - triangle(t - tile.lanes) + triangle(t - tile.steps - tile.lanes);
}

int64_t OperandStream::cycle_of(const Tile& tile, int64_t count) const {
  int64_t low = first_cycle(tile), high = low + cycle_count(tile) - 1;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (sent_by(tile, middle) >= count)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

OperandStream::Tile OperandStream::tile(int64_t row_fold, int64_t col_fold) const {
  const int64_t lane_block = lanes_on_rows_ ? row_fold : col_fold;
  Tile tile;
  tile.lane = lane_block * width_;
  tile.lanes = std::min(width_, lanes_ - tile.lane);
  tile.steps = steps_;
  tile.index = lane_block;
  if (!skewed_) {
    tile.index = lane_block * step_blocks_ + row_fold;
    tile.step = row_fold * block_;
    tile.steps = std::min(block_, steps_ - tile.step);
  }
  return tile;
}

}  // namespace sator::formats
