#include "runtime/paged_sequences.h"

#include <algorithm>

#include "base/error.h"

namespace sator::runtime {

int64_t PagedSequences::most_pages(int64_t max_length, int64_t window, int64_t step) {
  const int64_t all = pages_for(max_length);
  if (window == 0) return all;
  // Of a step's first token, the window reaches back to within a block; its last token may begin a page.
  return std::min(all, pages_for(window - 1 + step) + kPagesOfBlock + 1);
}

PagedSequences::PagedSequences(int64_t num_pages, int64_t max_num_sequences, int64_t max_length, int64_t window)
    : max_num_sequences_(max_num_sequences), max_length_(max_length), window_(window) {
  refs_.resize(static_cast<size_t>(num_pages));
  writers_.resize(static_cast<size_t>(num_pages));
  free_.reserve(static_cast<size_t>(num_pages));
  copies_.reserve(static_cast<size_t>(max_num_sequences));
  fresh_.reserve(static_cast<size_t>(max_num_sequences));
  clear();
}

void PagedSequences::clear() {
  sequences_.clear();
  std::fill(refs_.begin(), refs_.end(), 0);
  free_.clear();
  for (size_t page = refs_.size(); page-- > 0;) free_.push_back(static_cast<int32_t>(page));  // page 0 is taken first
}

PagedSequences::Sequence& PagedSequences::find(int64_t id) {
  auto it = sequences_.find(id);
  if (it == sequences_.end())
    fail({.what = text("the KV cache has no sequence ", id),
          .needs = "a sequence that was added",
          .hint = "call add_sequence first"});
  return it->second;
}

PagedSequences::Sequence& PagedSequences::insert(int64_t id) {
  if (sequences_.contains(id))
    fail({.what = text("the KV cache already has a sequence ", id),
          .needs = "a new id",
          .hint = "remove the old one first"});
  if (num_sequences() >= max_num_sequences_)
    fail({.what = text("the KV cache already holds ", max_num_sequences_, " sequences"),
          .needs = "at most max_num_sequences of them",
          .hint = "remove one, or create the cache for more"});
  Sequence& sequence = sequences_[id];
  // Room for the longest sequence, so that growing allocates nothing.
  int64_t most = pages_for(max_length_);
  if (window_ == 0) most = std::min(most, static_cast<int64_t>(refs_.size()));
  sequence.pages.reserve(static_cast<size_t>(most));
  return sequence;
}

void PagedSequences::add(int64_t id) { insert(id); }

void PagedSequences::remove(int64_t id) {
  const Sequence& sequence = find(id);
  for (auto page = sequence.pages.begin() + sequence.given_back; page != sequence.pages.end(); ++page) drop_page(*page);
  sequences_.erase(id);
}

int64_t PagedSequences::unseen_pages(int64_t length) const {
  if (window_ == 0) return 0;
  return std::max<int64_t>(length - (window_ - 1), 0) / (kPagesOfBlock * kPageSize) * kPagesOfBlock;
}

bool PagedSequences::can_go_on_from(int64_t id, int64_t length) const {
  return find(id).given_back <= unseen_pages(length);
}

void PagedSequences::require_can_go_on_from(int64_t id, int64_t length) const {
  if (length == -1 || can_go_on_from(id, length)) return;
  fail({.what = text("sequence ",
                     id,
                     " cannot go on from position ",
                     length,
                     ": positions below ",
                     find(id).given_back * kPageSize,
                     " were given back"),
        .needs = text("the ", window_ - 1, " positions that the next token sees"),
        .hint = "begin the sequence anew"});
}

void PagedSequences::give_back(Sequence& sequence) {
  for (const int64_t unseen = unseen_pages(sequence.length); sequence.given_back < unseen; ++sequence.given_back)
    drop_page(std::exchange(sequence.pages[static_cast<size_t>(sequence.given_back)], -1));
}

void PagedSequences::fork(int64_t parent, int64_t child, int64_t length) {
  int64_t available = find(parent).length;
  if (length == -1) length = available;
  if (length < 0 || length > available)
    fail({.what = text("sequence ", parent, " of length ", available, " cannot be forked at ", length),
          .needs = "a position from 0 to its length, or -1 for all of it"});
  require_can_go_on_from(parent, length);
  Sequence& to = insert(child);
  const Sequence& from = find(parent);
  to.length = length;
  to.pages.assign(from.pages.begin(), from.pages.begin() + pages_for(length));
  to.given_back = from.given_back;
  for (auto page = to.pages.begin() + to.given_back; page != to.pages.end(); ++page)
    ++refs_[static_cast<size_t>(*page)];
}

void PagedSequences::popn(int64_t id, int64_t n) {
  Sequence& sequence = find(id);
  if (n < 0 || n > sequence.length)
    fail({.what = text(n, " positions cannot be dropped from sequence ", id, " of length ", sequence.length),
          .needs = "0 <= n <= length"});
  require_can_go_on_from(id, sequence.length - n);
  sequence.length -= n;
  while (static_cast<int64_t>(sequence.pages.size()) > pages_for(sequence.length)) {
    drop_page(sequence.pages.back());
    sequence.pages.pop_back();
  }
}

int64_t PagedSequences::total_length() const {
  int64_t total = 0;
  for (const auto& [id, sequence] : sequences_) total += sequence.length;
  return total;
}

int32_t PagedSequences::take_page() {
  int32_t page = free_.back();
  free_.pop_back();
  refs_[static_cast<size_t>(page)] = 1;
  return page;
}

void PagedSequences::drop_page(int32_t page) {
  if (--refs_[static_cast<size_t>(page)] == 0) free_.push_back(page);
}

int64_t PagedSequences::count_needed_pages(std::span<const int64_t> ids, std::span<const int64_t> append_lengths) {
  int64_t needed = 0;
  ++extends_;
  for (size_t i = 0; i < ids.size(); ++i) {
    Sequence& sequence = find(ids[i]);
    if (std::exchange(sequence.seen_in, extends_) == extends_)
      fail({.what = text("sequence ", ids[i], " is named twice in one step"), .needs = "each sequence at most once"});
    if (append_lengths[i] < 0 || append_lengths[i] > max_length_ - sequence.length)
      fail({.what = text("sequence ", ids[i], " of length ", sequence.length, " cannot grow by ", append_lengths[i]),
            .needs = text("a length of at most ", max_length_, ", max_total_seq_len"),
            .hint = "create the cache for longer sequences"});
    if (append_lengths[i] > 0) give_back(sequence);
    needed += pages_for(sequence.length + append_lengths[i]) - static_cast<int64_t>(sequence.pages.size());
  }
  // Of w sequences that write into a page with r references, w copy it; but if nobody else has it the last
  // one keeps it.
  auto writes_into_last_page = [&](size_t i) { return append_lengths[i] > 0 && find(ids[i]).length % kPageSize != 0; };
  for (size_t i = 0; i < ids.size(); ++i)
    if (writes_into_last_page(i)) ++writers_[static_cast<size_t>(find(ids[i]).pages.back())];
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!writes_into_last_page(i)) continue;
    auto page = static_cast<size_t>(find(ids[i]).pages.back());
    needed += std::min(std::exchange(writers_[page], 0), std::max(refs_[page] - 1, 0));
  }
  return needed;
}

void PagedSequences::require_room(std::span<const int64_t> ids, std::span<const int64_t> append_lengths) {
  if (int64_t needed = count_needed_pages(ids, append_lengths); needed > num_available_pages())
    fail({.what = text("the step needs ", needed, " pages of the KV cache, but ", num_available_pages(), " are free"),
          .needs = text("enough free pages of ", kPageSize, " positions"),
          .hint = "remove sequences, or create the cache for a larger max_total_seq_len"});
}

PagedSequences::Growth PagedSequences::extend(std::span<const int64_t> ids, std::span<const int64_t> append_lengths) {
  require_room(ids, append_lengths);
  copies_.clear();
  fresh_.clear();
  for (size_t i = 0; i < ids.size(); ++i) {
    if (append_lengths[i] == 0) continue;
    Sequence& sequence = find(ids[i]);
    if (sequence.length % kPageSize != 0 && refs_[static_cast<size_t>(sequence.pages.back())] > 1) {
      int32_t copy = take_page();
      copies_.push_back({sequence.pages.back(), copy});
      drop_page(sequence.pages.back());
      sequence.pages.back() = copy;
    }
    sequence.length += append_lengths[i];
    size_t before = sequence.pages.size();
    while (static_cast<int64_t>(sequence.pages.size()) < pages_for(sequence.length))
      sequence.pages.push_back(take_page());
    if (sequence.pages.size() > before && sequence.length % kPageSize != 0) fresh_.push_back(sequence.pages.back());
  }
  return {copies_, fresh_};
}

}  // namespace sator::runtime
