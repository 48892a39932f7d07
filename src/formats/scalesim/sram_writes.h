#pragma once

#include <cstdint>
#include <deque>

#include "formats/scalesim/memory.h"
#include "formats/scalesim/sram_reads.h"

namespace sator::formats {

/// The SRAM of the outputs: words gather to lines as wide as the interface; once half of it is full, half drains, a line a
/// cycle. A line that a drain cuts short counts in full where it is not the last one of its drain.
class DrainedWrites {
 public:
  DrainedWrites(const ScalesimSram& sram, int64_t words_per_cycle);
  /// Takes `words` in cycle `now`; the cycle in which the last one is in.
  int64_t write(int64_t words, int64_t now);
  /// For how many cycles from `now` on `words` a cycle go in without a drain or a wait; write_quietly takes them.
  int64_t quiet_cycles(int64_t words, int64_t now) const;
  void write_quietly(int64_t words) { append(words); }
  /// Drains all that is left, from cycle `now` on.
  void finish(int64_t now);
  const ScalesimDram& dram() const { return dram_; }

 private:
  struct CutLine {
    int64_t line = 0, words = 0;
  };
  void append(int64_t words);
  void close_line();
  void drain(int64_t now);

  int64_t half_ = 0, drain_lines_ = 0, width_ = 0;
  int64_t free_ = 0;
  int64_t lines_ = 0, in_line_ = 0, drained_ = 0;  // lines closed, words of the open one, lines drained
  std::deque<CutLine> cut_;
  int64_t drain_end_ = 0;
  bool any_ = false;
  ScalesimDram dram_;
};

}  // namespace sator::formats
