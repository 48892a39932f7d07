#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dataflow/formats/scalesim/memory.h"
#include "dataflow/formats/scalesim/stream.h"

namespace sator::dataflow {

/// Half of an SRAM works, the other half is fetched; SCALE-Sim's share, not an option of its files.
struct ScalesimSram {
  int64_t words = 0;
  int64_t half() const { return (words + 1) / 2; }
};

/// An operand's SRAM under CALC: what the array asks for arrives in time, and how fast that is gets reported. Words that
/// were missing form sets of 1/100 of the SRAM; a word is at hand while its set is in the window.
class EstimatedReads {
 public:
  EstimatedReads(const OperandStream& stream, const ScalesimSram& sram, int64_t words_per_cycle);

  /// Whether every word of the tile is at hand, so that sending it changes nothing.
  bool holds(int64_t tile) const { return oldest_[tile] >= window_start_; }
  void begin(int64_t tile) { oldest_[tile] = kNever; }
  /// Serves the words of one cycle of a fold; `now` counts the whole run's cycles.
  void serve(const OperandStream::Tile& tile, int64_t cycle, int64_t now);
  /// After the last request: what is left is fetched. Errors: SCALE-Sim divides by zero.
  std::optional<Reason> finish();
  const ScalesimDram& dram() const { return dram_; }

 private:
  static constexpr int64_t kNever = INT64_MAX;
  static constexpr int64_t kHalf = 50;  // sets
  void request(int64_t word, int64_t now, int64_t& oldest);
  void complete_set(int64_t now);

  const OperandStream& stream_;
  int64_t set_words_ = 0, words_per_cycle_ = 0;
  std::vector<int64_t> set_of_;  // word -> the set it came with last, or -1; empty where the operand fits
  std::vector<int64_t> oldest_;  // tile -> the oldest set among its words when it was sent last, or -1
  int64_t missed_ = 0, in_set_ = 0, set_ = 0, window_start_ = 0, first_request_ = -1;
  int64_t prefetch_start_ = 0, prefetch_end_ = 0;  // cycles of the fetch under way
  bool filled_ = false, stuck_ = false;
  ScalesimDram dram_;
};

/// An operand's SRAM under USER: lines of 1/100 of it in the order of the prefetch matrix; half of them at hand, the next
/// ones under way.
class PrefetchedReads {
 public:
  PrefetchedReads(const OperandStream& stream, const ScalesimSram& sram, int64_t words_per_cycle);

  bool holds(int64_t tile) const;
  /// Serves the words of one cycle; the cycles by which the array stalls, which may be negative.
  int64_t serve(const OperandStream::Tile& tile, int64_t cycle, int64_t now);
  const ScalesimDram& dram() const { return dram_; }

 private:
  bool at_hand(int64_t line) const {
    const int64_t distance = line - window_start_;
    return (distance < 0 ? distance + lines_ : distance) < active_lines_;
  }
  bool word_at_hand(int64_t word) const;
  void index_lines(int64_t line_words);
  void rotate();

  const OperandStream& stream_;
  int64_t words_per_cycle_ = 0;
  int64_t lines_ = 1, active_lines_ = 1, next_lines_ = 0, window_start_ = 0;
  int64_t fetch_rows_ = 0;                               // rows of the prefetch matrix that fill half of the SRAM
  int64_t last_cycle_ = -1;                              // when the fetch under way arrives
  std::vector<int32_t> line_of_;                         // word -> its first line; empty where all lines are at hand
  std::vector<std::pair<int64_t, int32_t>> more_lines_;  // further lines of words that windows share, sorted
  std::vector<int32_t> first_line_, last_line_;          // tile -> range of its words' first lines
  ScalesimDram dram_;
};

}  // namespace sator::dataflow
