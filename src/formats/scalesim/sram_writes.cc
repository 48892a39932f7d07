#include "formats/scalesim/sram_writes.h"

#include <algorithm>

namespace sator::formats {

DrainedWrites::DrainedWrites(const ScalesimSram& sram, int64_t words_per_cycle)
    : half_(sram.half()),
      drain_lines_((sram.words - sram.half() + words_per_cycle - 1) / words_per_cycle),
      width_(words_per_cycle),
      free_(sram.words) {}

void DrainedWrites::append(int64_t words) {
  free_ -= words;
  in_line_ += words;
  lines_ += in_line_ / width_;
  in_line_ %= width_;
}

void DrainedWrites::close_line() {
  if (in_line_ == 0) return;
  cut_.push_back({lines_++, in_line_});
  in_line_ = 0;
}

int64_t DrainedWrites::write(int64_t words, int64_t now) {
  while (words > 0) {
    if (now < drain_end_) {  // a drain is under way: words fit until all is full
      const int64_t part = std::min(words, std::max<int64_t>(1, free_));
      append(part);
      words -= part;
      if (free_ <= 0) now = drain_end_;
    } else {
      const int64_t part = std::min(words, std::max<int64_t>(1, free_ - half_ + 1));
      append(part);
      words -= part;
      if (free_ < half_) {
        close_line();
        drain(now);
      }
    }
  }
  return now;
}

int64_t DrainedWrites::quiet_cycles(int64_t words, int64_t now) const {
  if (now < drain_end_) return std::min(drain_end_ - now, std::max<int64_t>(0, free_ - 1) / words);
  return std::max<int64_t>(0, free_ - half_) / words;
}

void DrainedWrites::drain(int64_t now) {
  const int64_t end = std::min(drained_ + drain_lines_, lines_);
  const int64_t count = end - drained_;
  int64_t words = count * width_;
  while (!cut_.empty() && cut_.front().line < end) {
    if (cut_.front().line == end - 1) words -= width_ - cut_.front().words;
    cut_.pop_front();
  }
  dram_.words += words;
  free_ += words;
  drained_ = end;
  drain_end_ = now + count - 1;
  dram_.start_cycle = any_ ? std::min(dram_.start_cycle, now) : now;
  dram_.stop_cycle = any_ ? std::max(dram_.stop_cycle, drain_end_) : drain_end_;
  any_ = true;
}

void DrainedWrites::finish(int64_t now) {
  close_line();
  while (drained_ < lines_) {
    drain(now);
    now = drain_end_ + 1;
  }
}

}  // namespace sator::formats
