#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace sator::runtime {

/// Which pages hold which sequence: reference counts, sharing, copies on write. Knows nothing of what pages
/// contain. Page p of a sequence holds its positions [p * 16, p * 16 + 16).
///
/// With a window w, a token sees itself and the w - 1 positions before it, and pages are given back once no token to come can
/// see them: in blocks of 64 positions, for kernels pass over whole blocks.
class PagedSequences {
 public:
  static constexpr int64_t kPageSize = 16;
  static constexpr int64_t kPagesOfBlock = 4;
  static int64_t pages_for(int64_t length) { return (length + kPageSize - 1) / kPageSize; }
  /// Pages that one sequence of up to `max_length` positions holds at most while it grows by up to `step` at a time.
  static int64_t most_pages(int64_t max_length, int64_t window, int64_t step);

  ///   window   0: every token sees all positions
  PagedSequences(int64_t num_pages, int64_t max_num_sequences, int64_t max_length, int64_t window = 0);

  // Errors of all: an unknown id, an id that is taken, too many sequences, positions that are not there.
  void clear();
  void add(int64_t id);
  void remove(int64_t id);
  /// The child holds the first `length` positions of the parent, all of them for -1, in the same pages.
  /// Errors: a position that the next token of the child would see was given back.
  void fork(int64_t parent, int64_t child, int64_t length);
  /// Errors: as of fork.
  void popn(int64_t id, int64_t n);
  /// Whether a sequence can go on from its first `length` positions: what the next token sees is still there.
  bool can_go_on_from(int64_t id, int64_t length) const;
  /// The same with words. -1: from all of it.
  void require_can_go_on_from(int64_t id, int64_t length) const;

  /// Whether sequences can be extended; gives back pages that they do not see any more.
  /// Errors: besides those above, an id given twice, a length below 0, a sequence longer than the limit, too few free pages.
  void require_room(std::span<const int64_t> ids, std::span<const int64_t> append_lengths);
  /// Extends sequences. Afterwards each owns the pages it will write into alone. The spans hold until the next call.
  /// Errors (no sequence has grown then): those of require_room.
  struct Growth {
    struct Copy {
      int32_t from, to;
    };
    std::span<const Copy> copies;    ///< pages to copy before anything is written
    std::span<const int32_t> fresh;  ///< pages that were taken and will not be filled to their end
  };
  Growth extend(std::span<const int64_t> ids, std::span<const int64_t> append_lengths);

  int64_t length(int64_t id) const { return find(id).length; }
  /// All pages of a sequence from its beginning on; -1 for those that were given back.
  std::span<const int32_t> pages(int64_t id) const { return find(id).pages; }
  int64_t num_sequences() const { return static_cast<int64_t>(sequences_.size()); }
  int64_t num_available_pages() const { return static_cast<int64_t>(free_.size()); }
  int64_t total_length() const;

 private:
  struct Sequence {
    std::vector<int32_t> pages;  // pages_for(length) of them
    int64_t given_back = 0;      // the first so many are -1
    int64_t length = 0;
    int64_t seen_in = 0;  // the number of the last `extend` that named it
  };
  Sequence& find(int64_t id);
  const Sequence& find(int64_t id) const { return const_cast<PagedSequences*>(this)->find(id); }
  Sequence& insert(int64_t id);
  /// Pages that no token from position `length` on sees.
  int64_t unseen_pages(int64_t length) const;
  void give_back(Sequence& sequence);
  int64_t count_needed_pages(std::span<const int64_t> ids, std::span<const int64_t> append_lengths);
  int32_t take_page();
  void drop_page(int32_t page);

  int64_t max_num_sequences_, max_length_, window_;
  std::unordered_map<int64_t, Sequence> sequences_;
  std::vector<int32_t> free_;     // the next one last
  std::vector<int32_t> refs_;     // by page
  std::vector<int32_t> writers_;  // by page: sequences of one `extend` that write into it; all 0 in between
  std::vector<Growth::Copy> copies_;
  std::vector<int32_t> fresh_;
  int64_t extends_ = 0;
};

}  // namespace sator::runtime
