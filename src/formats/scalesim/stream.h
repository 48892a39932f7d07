#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "formats/scalesim/compute.h"

namespace sator::formats {

/// How one operand enters the array: words by (lane, step). A skewed stream sends step t into lane l at cycle
/// start + t + l of a fold; a stationary operand moves in as whole rows of lanes, its last step first.
class OperandStream {
 public:
  static OperandStream ifmap(const ScalesimConfig& config, const ScalesimLayer& layer);
  static OperandStream filter(const ScalesimConfig& config, const ScalesimLayer& layer);

  int64_t words() const { return words_; }            // of the operand in DRAM
  bool clipped() const { return clipped_; }           // windows reach over the edge
  int64_t touched_words() const { return touched_; }  // of those, the ones that any window covers
  int64_t pairs() const { return pairs_; }            // (lane, step) that hold a word
  int64_t tiles() const { return lane_blocks() * step_blocks_; }
  int64_t lane_blocks() const { return (lanes_ + width_ - 1) / width_; }
  /// Rows of the prefetch matrix: the steps of every block of lanes, each `width` lanes wide, unused ones empty.
  int64_t prefetch_rows() const { return lane_blocks() * steps_; }
  int64_t width() const { return width_; }
  bool skewed() const { return skewed_; }

  /// The part that one fold sends.
  struct Tile {
    int64_t index = 0;
    int64_t lane = 0, lanes = 0;  // first, and how many
    int64_t step = 0, steps = 0;
  };
  Tile tile(int64_t row_fold, int64_t col_fold) const;

  /// Cycles of a fold in which the tile sends anything: [first, first + count).
  int64_t first_cycle(const Tile& tile) const { return skewed_ ? start_ : block_ - tile.steps; }
  int64_t cycle_count(const Tile& tile) const { return skewed_ ? tile.steps + tile.lanes - 1 : tile.steps; }

  /// Whether no word belongs to two tiles, nor twice to one.
  bool disjoint() const { return pairs_ == touched_; }
  int64_t words_of(const Tile& tile) const { return tile.lanes * tile.steps; }
  /// The cycle of a fold by which the tile has sent `count` words, 1 <= count <= words_of(tile); where none is clipped.
  int64_t cycle_of(const Tile& tile, int64_t count) const;

  /// Calls use(word) for every word that the tile sends at `cycle` of its fold, lanes ascending.
  template <class Use>
  void at_cycle(const Tile& tile, int64_t cycle, const Use& use) const;
  /// Calls use(word, tile index) for every word in the order of SCALE-Sim's prefetch matrix: along its anti-diagonals
  /// from the lower left if skewed, else row by row.
  template <class Use>
  void in_prefetch_order(const Use& use) const;

 private:
  int64_t sent_by(const Tile& tile, int64_t cycle) const;
  /// Tables of what the two indices add to an address; where windows reach over the edge, also their positions.
  struct Axis {
    std::vector<int64_t> address, row, col;
  };
  template <class Use>
  void visit(int64_t lane, int64_t step, const Use& use) const {
    if (!clipped_ || (lane_.row[lane] + step_.row[step] < height_ && lane_.col[lane] + step_.col[step] < image_width_))
      use(lane_.address[lane] + step_.address[step]);
  }
  /// Lays lanes and steps on the array: lanes along rows or columns, the steps streamed or (stationary) along the rows.
  void place(const ScalesimConfig& config, bool lanes_on_rows, bool stationary);
  static Axis pixels(const ScalesimLayer& layer);
  static Axis window(const ScalesimLayer& layer);

  Axis lane_, step_;
  int64_t lanes_ = 0, steps_ = 0;
  int64_t width_ = 0;        // lanes of a fold
  int64_t block_ = 0;        // steps of a fold if stationary
  int64_t step_blocks_ = 1;  // of a stationary operand
  int64_t start_ = 0;
  int64_t words_ = 0, touched_ = 0, pairs_ = 0;
  int64_t height_ = 0, image_width_ = 0;
  bool skewed_ = true, lanes_on_rows_ = true, clipped_ = false;
};

template <class Use>
void OperandStream::at_cycle(const Tile& tile, int64_t cycle, const Use& use) const {
  if (!skewed_) {
    const int64_t step = block_ - 1 - cycle;
    if (step < 0 || step >= tile.steps) return;
    for (int64_t lane = 0; lane < tile.lanes; ++lane) visit(tile.lane + lane, tile.step + step, use);
    return;
  }
  const int64_t at = cycle - start_;
  const int64_t last = std::min(tile.lanes - 1, at);
  for (int64_t lane = std::max<int64_t>(0, at - tile.steps + 1); lane <= last; ++lane)
    visit(tile.lane + lane, at - lane, use);
}

template <class Use>
void OperandStream::in_prefetch_order(const Use& use) const {
  const int64_t rows = prefetch_rows();
  const auto cell = [&](int64_t row, int64_t col) {
    const int64_t block = row / steps_, step = row % steps_, lane = block * width_ + col;
    if (lane < lanes_)
      visit(lane, step, [&](int64_t word) { use(word, skewed_ ? block : block * step_blocks_ + step / block_); });
  };
  if (!skewed_) {
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t col = 0; col < width_; ++col) cell(row, col);
    return;
  }
  for (int64_t diagonal = 0; diagonal < rows + width_ - 1; ++diagonal)
    for (int64_t row = std::min(diagonal, rows - 1); row >= std::max<int64_t>(0, diagonal - width_ + 1); --row)
      cell(row, diagonal - row);
}

}  // namespace sator::formats
