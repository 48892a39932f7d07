#include "formats/scalesim/sram_reads.h"

namespace sator::formats {

EstimatedReads::EstimatedReads(const OperandStream& stream, const ScalesimSram& sram, int64_t words_per_cycle)
    : stream_(stream), set_words_(sram.words / 100), words_per_cycle_(words_per_cycle) {
  fits_ = stream.touched_words() / set_words_ < kHalf;  // the first half is never full: nothing is ever dropped
  if (fits_) {
    missed_ = stream.touched_words();
    set_ = missed_ / set_words_;
    in_set_ = missed_ % set_words_;
    return;
  }
  whole_tiles_ = stream.disjoint() && !stream.clipped();
  tiles_.resize(static_cast<size_t>(stream.tiles()));
}

Sending EstimatedReads::begin(const OperandStream::Tile& tile, int64_t now) {
  missing_ = false;
  event_ = INT64_MAX;
  if (fits_) return Sending::nothing;
  TileSets& sets = tiles_[tile.index];
  if (sets.oldest >= window_start_) return Sending::nothing;
  // Words that come again in the order they were missing in, half an SRAM of misses later or more: each has left the window
  // when its turn comes.
  const bool again = sets.missed_before >= 0 && missed_ - sets.missed_before >= kHalf * set_words_;
  if (whole_tiles_ && (again || sets.newest < window_start_)) return miss_all(tile, now);
  if (set_of_.empty()) set_of_.assign(static_cast<size_t>(stream_.words()), -1);
  if (sets.missed_before >= 0) name_sets(tile);
  sets = {.oldest = INT64_MAX};
  return Sending::words;
}

Sending EstimatedReads::miss_all(const OperandStream::Tile& tile, int64_t now) {
  missing_ = true;
  if (first_request_ < 0) first_request_ = now + stream_.first_cycle(tile);
  const int64_t before = missed_;
  missed_ += stream_.words_of(tile);
  tiles_[tile.index] = {.oldest = before / set_words_, .newest = (missed_ - 1) / set_words_, .missed_before = before};
  find_event(tile);
  set_ = missed_ / set_words_;
  in_set_ = missed_ % set_words_;
  return Sending::events;
}

/// When the words of the tile fill the window.
void EstimatedReads::find_event(const OperandStream::Tile& tile) {
  const int64_t full = (window_start_ + kHalf) * set_words_ - tiles_[tile.index].missed_before;
  event_ = full > stream_.words_of(tile) ? INT64_MAX : stream_.cycle_of(tile, full);
}

/// Writes down the set of each word of a tile that was missing as a whole.
void EstimatedReads::name_sets(const OperandStream::Tile& tile) {
  int64_t missed = tiles_[tile.index].missed_before;
  const int64_t first = stream_.first_cycle(tile);
  for (int64_t cycle = first; cycle < first + stream_.cycle_count(tile); ++cycle)
    stream_.at_cycle(tile, cycle, [&](int64_t word) { set_of_[word] = missed++ / set_words_; });
}

int64_t EstimatedReads::serve(const OperandStream::Tile& tile, int64_t cycle, int64_t now) {
  if (missing_) {
    while (cycle == event_) {
      move_window(now);
      find_event(tile);
    }
    return 0;
  }
  TileSets& sets = tiles_[tile.index];
  stream_.at_cycle(tile, cycle, [&](int64_t word) { request(word, now, sets); });
  return 0;
}

void EstimatedReads::request(int64_t word, int64_t now, TileSets& sets) {
  if (first_request_ < 0) first_request_ = now;
  int64_t& set = set_of_[word];
  if (set < window_start_) {
    set = set_;
    ++missed_;
    if (++in_set_ == set_words_) {
      in_set_ = 0;
      if (++set_ == window_start_ + kHalf) move_window(now);
    }
  }
  if (set < sets.oldest) sets.oldest = set;
  if (set > sets.newest) sets.newest = set;
}

void EstimatedReads::move_window(int64_t now) {
  if (!filled_) {
    prefetch_end_ = first_request_ - 2;
    const int64_t cycles = (kHalf * set_words_ + words_per_cycle_ - 1) / words_per_cycle_;
    dram_.start_cycle = prefetch_end_ - cycles + 2;
    filled_ = true;
  } else if (prefetch_end_ < prefetch_start_) {
    stuck_ = true;
  }
  window_start_ += kHalf;
  prefetch_start_ = prefetch_end_ + 1;
  prefetch_end_ = now;
}

std::optional<Reason> EstimatedReads::finish() {
  dram_.words = missed_;
  if (!filled_) {
    prefetch_end_ = -2;
    const int64_t sets = set_ + (in_set_ > 0);
    const int64_t cycles = (sets * set_words_ + words_per_cycle_ - 1) / words_per_cycle_;
    dram_.start_cycle = prefetch_end_ - cycles + 2;
  } else if (prefetch_end_ < prefetch_start_) {
    stuck_ = true;
  }
  dram_.stop_cycle = prefetch_end_ + 1;
  if (!stuck_) return {};
  return Reason{.what = "half of an SRAM is used up within one cycle; SCALE-Sim then divides by zero",
                .needs = "half of each SRAM lasts more than a cycle",
                .hint = "use a larger SRAM or a smaller array"};
}

PrefetchedReads::PrefetchedReads(const OperandStream& stream, const ScalesimSram& sram, int64_t words_per_cycle)
    : stream_(stream), words_per_cycle_(words_per_cycle) {
  const int64_t line_words = (sram.words + 99) / 100;
  const int64_t half_lines = (sram.half() + line_words - 1) / line_words;
  lines_ = stream.pairs() / line_words + 1;
  active_lines_ = std::min(half_lines, lines_);
  next_lines_ = std::min(((sram.words - sram.half()) + line_words - 1) / line_words, lines_ - active_lines_);
  fetch_rows_ = (sram.half() + words_per_cycle - 1) / words_per_cycle;
  const int64_t cells = stream.prefetch_rows() * stream.width();
  const int64_t first_rows = std::min(fetch_rows_, (cells + words_per_cycle - 1) / words_per_cycle);
  dram_ = {.words = first_rows * words_per_cycle, .start_cycle = -first_rows, .stop_cycle = -1};
  if (active_lines_ < lines_) index_lines(line_words);
}

void PrefetchedReads::index_lines(int64_t line_words) {
  line_of_.assign(static_cast<size_t>(stream_.words()), -1);
  first_line_.assign(static_cast<size_t>(stream_.tiles()), INT32_MAX);
  last_line_.assign(static_cast<size_t>(stream_.tiles()), -1);
  int64_t count = 0;
  stream_.in_prefetch_order([&](int64_t word, int64_t tile) {
    const int32_t line = static_cast<int32_t>(count++ / line_words);
    int32_t& first = line_of_[word];
    if (first < 0)
      first = line;
    else if (first != line)
      more_lines_.emplace_back(word, line);
    first_line_[tile] = std::min(first_line_[tile], first);
    last_line_[tile] = std::max(last_line_[tile], first);
  });
  std::sort(more_lines_.begin(), more_lines_.end());
}

Sending PrefetchedReads::begin(const OperandStream::Tile& tile, int64_t) {
  return holds(tile.index) ? Sending::nothing : Sending::words;
}

bool PrefetchedReads::holds(int64_t tile) const {
  if (line_of_.empty()) return true;
  const int64_t first = first_line_[tile], length = last_line_[tile] - first;
  const int64_t distance = first < window_start_ ? first - window_start_ + lines_ : first - window_start_;
  return distance + length < active_lines_;
}

bool PrefetchedReads::word_at_hand(int64_t word) const {
  if (at_hand(line_of_[word])) return true;
  if (more_lines_.empty()) return false;
  for (auto it = std::lower_bound(more_lines_.begin(), more_lines_.end(), std::pair(word, int32_t{0}));
       it != more_lines_.end() && it->first == word;
       ++it)
    if (at_hand(it->second)) return true;
  return false;
}

void PrefetchedReads::rotate() {
  window_start_ = (window_start_ + next_lines_) % lines_;
  dram_.words += fetch_rows_ * words_per_cycle_;
  last_cycle_ += fetch_rows_ + 1;
  dram_.stop_cycle = last_cycle_;
}

int64_t PrefetchedReads::serve(const OperandStream::Tile& tile, int64_t cycle, int64_t now) {
  constexpr int64_t kHitLatency = 1;
  int64_t latency = kHitLatency;
  stream_.at_cycle(tile, cycle, [&](int64_t word) {
    while (!word_at_hand(word)) {
      rotate();
      // SCALE-Sim moves the answer to the arrival, also backwards, and then adds a wait once more.
      const int64_t wait = last_cycle_ - (now + latency);
      latency += wait > 0 ? 2 * wait : wait;
    }
  });
  return latency - kHitLatency;
}

}  // namespace sator::formats
