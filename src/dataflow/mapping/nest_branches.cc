// Branch and bound over sizes and orders of tiles.
#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <queue>
#include <utility>

#include "base/interrupt.h"
#include "dataflow/mapping/nest_search.h"

namespace sator::dataflow {

namespace {

constexpr double kWorthwhile = 0.0005;  // of the latency: what is no better than that is not looked for

}  // namespace

/// Boxes that may have a better mapping than those known, the one with the least bound first.
class NestSearch::Branches {
 public:
  explicit Branches(double known) : known_(known) {}

  void learn(double latency) { known_ = std::min(known_, latency); }
  bool may_be_better(double least) const { return least < (1 - kWorthwhile) * known_; }
  void add(Box box) {
    if (may_be_better(box.least)) {
      open_.push_back(std::move(box));
      std::push_heap(open_.begin(), open_.end(), Later());
    } else {
      cut(box.least);
    }
  }
  void cut(double least) { least_cut_ = std::min(least_cut_, least); }
  /// The box to look into next; nothing if none may be better.
  std::optional<Box> next() {
    if (open_.empty() || !may_be_better(open_.front().least)) return {};
    std::pop_heap(open_.begin(), open_.end(), Later());
    Box box = std::move(open_.back());
    open_.pop_back();
    return box;
  }
  double least_open() const { return open_.empty() ? kDoesNotFit : open_.front().least; }
  /// No mapping of all boxes that were added takes less, but for those that were tried.
  double least() const { return open_.empty() ? least_cut_ : std::min(least_cut_, open_.front().least); }

 private:
  struct Later {
    bool operator()(const Box& a, const Box& b) const { return a.least > b.least; }
  };
  double known_, least_cut_ = kDoesNotFit;
  std::vector<Box> open_;  // a heap
};

/// Numbers of blocks from `least` on, below `end`, all with as many tiles, of which a tile of iterator x may begin evenly: the first
/// one that does is among them, and powers of two.
Few<int64_t, 64> NestSearch::even_candidates(size_t x, int64_t cover, int64_t least, int64_t end, int64_t tiles) const {
  Few<int64_t, 64> all;
  auto add = [&](int64_t blocks) {
    if (blocks >= least && blocks < end) all.push_back(blocks);
  };
  for (uint64_t power = std::bit_ceil(static_cast<uint64_t>(least)); power < static_cast<uint64_t>(end); power *= 2)
    add(static_cast<int64_t>(power));
  if (s_.parts[x] != 1) {  // they divide the extent
    add(s_.extent[x] / cover / tiles);
    return all;
  }
  int64_t step = 1, largest = 1;  // multiples of all grains, and what divides one of them
  for (int64_t g : grains_[x]) {
    if (g % cover == 0) step = std::lcm(step, g / cover);
    largest = std::max(largest, g / cover);
  }
  add(ceil_div(least, step) * step);
  for (int64_t blocks = least; blocks < std::min(end, largest + 1); ++blocks)
    if (begins_evenly(x, cover, blocks * cover)) {
      add(blocks);
      break;
    }
  return all;
}

/// Sizes of tiles of iterator x under a plan, in order: of those with the same number of tiles the smallest, which takes the
/// least room for the same turns. Of very many, those between few blocks and few tiles are powers of two alone.
const std::vector<int64_t>& NestSearch::sizes_of(size_t plan, size_t x) {
  constexpr int64_t kMany = 1 << 16;
  const auto [at, fresh] = sizes_.try_emplace({plan, x});
  std::vector<int64_t>& sizes = at->second;
  if (!fresh) return sizes;
  const int64_t cover = plans_[plan].cover[x], extent = s_.extent[x], whole = ceil_div(extent, cover);
  for (int64_t blocks = 1; blocks < whole;) {
    const int64_t tiles = ceil_div(whole, blocks), next = tiles > 1 ? ceil_div(whole, tiles - 1) : whole;
    std::optional<int64_t> first;
    for (int64_t b : even_candidates(x, cover, blocks, next, tiles)) {
      if (b * cover >= extent || !begins_evenly(x, cover, b * cover)) continue;
      if ((b & (b - 1)) == 0) sizes.push_back(b * cover);
      first = std::min(first.value_or(b), b);
    }
    if (first) sizes.push_back(*first * cover);
    blocks = next <= kMany || tiles <= kMany
                 ? next
                 : std::min(whole / kMany + 1, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(next))));
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  if (limits_.none()) return sizes;
  std::erase_if(sizes, [&](int64_t size) { return !limits_.allows_tile(x, size); });
  for (int64_t size : ends_of_limits(x, cover)) sizes.push_back(size);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

/// The choice with the box's smallest tiles (0), those in the middle (1), or its largest (2).
NestSearch::Choice NestSearch::choice_of(const Box& box, int corner) {
  Choice choice = box.choice;
  choice.order.clear();
  for (const Range& r : box.tiles) {
    const std::vector<int64_t>& sizes = sizes_of(choice.plan, r.iterator);
    const size_t at = corner == 0 ? r.least : corner == 1 ? (r.least + r.most) / 2 : r.most;
    choice.order.push_back({r.iterator, sizes[at]});
  }
  return choice;
}

double NestSearch::least_of(const Box& box) {
  use(box.choice.plan);
  return time_.least_latency(nest_of(choice_of(box, 2)), nest_of(choice_of(box, 0)));
}

/// All loops of a plan. A tile of what the array covers has no loop over the array within it, so it is a range of its own.
void NestSearch::add_boxes_of(size_t plan, Branches& branches) {
  const std::vector<size_t> main = roles_[plan].main;
  const Roles& roles = roles_[plan];
  auto is_in = [](const auto& all, size_t x) { return std::find(all.begin(), all.end(), x) != all.end(); };
  const std::vector<int64_t>& cover = plans_[plan].cover;
  for (size_t x = 0; x < s_.rank(); ++x)
    if (!is_in(main, x) && !may_stay_whole(x, cover[x])) return;  // nothing of this plan keeps to the limits
  use(plan);
  if (const double least = time_.least_of_plan(); !branches.may_be_better(least)) return branches.cut(least);
  auto add = [&](const Few<Range, 3>& tiles) {
    for (size_t x : main) {
      const bool tiled = std::any_of(tiles.begin(), tiles.end(), [&](const Range& r) { return r.iterator == x; });
      if (!tiled && !may_stay_whole(x, cover[x])) return;
    }
    for (const bool inside : {false, true})
      for (const bool reversed : {false, true}) {
        if ((inside && roles.summed.empty()) || (reversed && roles.folds.size() < 2)) continue;
        Box box{.choice = {.plan = plan, .folds_reversed = reversed, .summed_inside = inside, .order = {}, .inner = {}},
                .tiles = tiles};
        if (!keeps_to_limits(nest_of(choice_of(box, 0))))
          continue;  // whatever the sizes: their loops stand in this order
        box.least = least_of(box);
        ++boxes_;
        branches.add(std::move(box));
      }
  };
  // Every sequence of different iterators of `main`, each with its ranges.
  auto grow = [&](auto& self, const Few<Range, 3>& tiles) -> void {
    add(tiles);
    for (size_t x : main) {
      if (std::any_of(tiles.begin(), tiles.end(), [&](const Range& r) { return r.iterator == x; })) continue;
      const std::vector<int64_t>& sizes = sizes_of(plan, x);
      const size_t covers = !sizes.empty() && sizes[0] == cover[x] ? 1 : 0;
      for (const auto& [least, end] : {std::pair{size_t{0}, covers}, std::pair{covers, sizes.size()}}) {
        if (least >= end) continue;
        Few<Range, 3> more = tiles;
        more.push_back({x, least, end - 1});
        self(self, more);
      }
    }
  };
  grow(grow, {});
}

void NestSearch::begin_branches(double known) {
  branches_ = std::make_shared<Branches>(known);
  for (size_t p = 0, plans = plans_.size(); p < plans; ++p) {
    check_interrupt();
    add_boxes_of(p, *branches_);
  }
}

bool NestSearch::branch(double known) {
  branches_->learn(known);
  std::optional<Box> box = branches_->next();
  if (!box) return false;
  if (box->choices() == 1) {
    try_choice(choice_of(*box, 0));
    return true;
  }
  size_t widest = 0;
  for (size_t i = 1; i < box->tiles.size(); ++i)
    if (box->tiles[i].most - box->tiles[i].least > box->tiles[widest].most - box->tiles[widest].least) widest = i;
  const size_t middle = (box->tiles[widest].least + box->tiles[widest].most) / 2;
  Box halves[] = {*box, *box};
  halves[0].tiles[widest].most = middle;
  halves[1].tiles[widest].least = middle + 1;
  for (Box& half : halves) {
    half.least = std::max(box->least, least_of(half));
    ++boxes_;
    if (branches_->may_be_better(half.least)) {
      try_choice(choice_of(half, 1));
      branches_->learn(least_seen_);
    }
    branches_->add(std::move(half));
  }
  return true;
}

double NestSearch::least_latency_of_space() const { return std::min(branches_ ? branches_->least() : 0, least_seen_); }

double NestSearch::least_open() const { return branches_->least_open(); }

}  // namespace sator::dataflow
