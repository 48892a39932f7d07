#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/scalesim/memory.h"
#include "formats/scalesim/stream.h"

namespace sator::formats {

/// Half of an SRAM works, the other half is fetched; SCALE-Sim's share, not an option of its files.
struct ScalesimSram {
  int64_t words = 0;
  int64_t half() const { return (words + 1) / 2; }
};

/// What a fold's tile means to an SRAM: nothing (all is at hand), a known series of events, or every word looked up.
enum class Sending : uint8_t { nothing, events, words };

/// An operand's SRAM under CALC: what the array asks for arrives in time, and how fast that is gets reported. Words that
/// were missing form sets of 1/100 of the SRAM; a word is at hand while its set is in the window.
class EstimatedReads {
 public:
  EstimatedReads(const OperandStream& stream, const ScalesimSram& sram, int64_t words_per_cycle);

  /// Begins a fold whose cycle 0 is `now`.
  Sending begin(const OperandStream::Tile& tile, int64_t now);
  /// The next cycle of the fold in which something happens, where all words of the tile are missing.
  int64_t next_event() const { return event_; }
  /// Serves one cycle of a fold, in cycle `now` of the run. Never stalls.
  int64_t serve(const OperandStream::Tile& tile, int64_t cycle, int64_t now);
  /// After the last request: what is left is fetched. Errors: SCALE-Sim divides by zero.
  std::optional<Reason> finish();
  const ScalesimDram& dram() const { return dram_; }

 private:
  static constexpr int64_t kHalf = 50;  // sets
  /// What is known of a tile's words: the sets they came with, and, where all were missing when the tile was sent last, how
  /// many words were missing before the first of them; their sets then follow from their order.
  struct TileSets {
    int64_t oldest = -1, newest = -1;
    int64_t missed_before = -1;
  };
  Sending miss_all(const OperandStream::Tile& tile, int64_t now);
  void find_event(const OperandStream::Tile& tile);
  void name_sets(const OperandStream::Tile& tile);
  void request(int64_t word, int64_t now, TileSets& sets);
  void move_window(int64_t now);

  const OperandStream& stream_;
  int64_t set_words_ = 0, words_per_cycle_ = 0;
  bool fits_ = false, whole_tiles_ = false;
  std::vector<int64_t> set_of_;  // word -> the set it came with last, or -1; of tiles without missed_before
  std::vector<TileSets> tiles_;
  int64_t missed_ = 0, in_set_ = 0, set_ = 0, window_start_ = 0, first_request_ = -1;
  bool missing_ = false;  // all words of the tile under way
  int64_t event_ = INT64_MAX;
  int64_t prefetch_start_ = 0, prefetch_end_ = 0;  // cycles of the fetch under way
  bool filled_ = false, stuck_ = false;
  ScalesimDram dram_;
};

/// An operand's SRAM under USER: lines of 1/100 of it in the order of the prefetch matrix; half of them at hand, the next
/// ones under way.
class PrefetchedReads {
 public:
  PrefetchedReads(const OperandStream& stream, const ScalesimSram& sram, int64_t words_per_cycle);

  Sending begin(const OperandStream::Tile& tile, int64_t now);
  int64_t next_event() const { return INT64_MAX; }
  std::optional<Reason> finish() { return {}; }
  /// Serves the words of one cycle; the cycles by which the array stalls, which may be negative.
  int64_t serve(const OperandStream::Tile& tile, int64_t cycle, int64_t now);
  const ScalesimDram& dram() const { return dram_; }

 private:
  bool at_hand(int64_t line) const {
    const int64_t distance = line - window_start_;
    return (distance < 0 ? distance + lines_ : distance) < active_lines_;
  }
  bool holds(int64_t tile) const;
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

}  // namespace sator::formats
