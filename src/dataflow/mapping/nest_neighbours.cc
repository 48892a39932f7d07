// Choices beside one: other sizes and orders of tiles, other parts of the array.
#include <algorithm>
#include <utility>

#include "dataflow/mapping/nest_search.h"
#include "dataflow/mapping/sharing.h"

namespace sator::dataflow {

/// Sizes beside one: twice and half as large, a block more and less, and even cuts into a tile more and less.
Few<int64_t, 8> NestSearch::next_sizes(size_t x, int64_t cover, int64_t size) const {
  const int64_t extent = s_.extent[x], whole = ceil_div(extent, cover), blocks = size > 0 ? size / cover : whole;
  const int64_t tiles = ceil_div(whole, std::max<int64_t>(1, blocks));
  Few<int64_t, 8> next = {blocks * 2, blocks / 2, blocks + 1, blocks - 1, ceil_div(whole, tiles + 1), 1};
  if (tiles > 1) next.push_back(ceil_div(whole, tiles - 1));
  next.sort_unique();
  Few<int64_t, 8> sizes;
  for (int64_t b : next) {
    if (b < 1 || b == blocks || b * cover >= extent) continue;
    if (begins_evenly(x, cover, b * cover)) sizes.push_back(b * cover);
  }
  if (size > 0) sizes.push_back(0);
  return sizes;
}

std::vector<NestSearch::Choice> NestSearch::neighbours(const Choice& of) {
  std::vector<Choice> all;
  const SpacePlan& plan = plans_[of.plan];
  const Roles& roles = roles_[of.plan];
  for (size_t x : roles.main)
    for (int64_t size : next_sizes(x, plan.cover[x], of.tile(x))) {
      Choice next = of;
      size_t tiled = 0;
      while (tiled < of.order.size() && of.order[tiled].iterator != x) ++tiled;
      if (size == 0) {
        next.order.erase(tiled);
      } else if (tiled < of.order.size()) {
        next.order[tiled].size = size;
      } else {
        for (size_t at = 0; at < of.order.size(); ++at) {
          Choice inserted = of;
          inserted.order.insert(at, {x, size});
          all.push_back(inserted);
        }
        next.order.push_back({x, size});
      }
      all.push_back(next);
    }
  for (size_t at = 1; at < of.order.size(); ++at) {
    Choice next = of;
    std::swap(next.order[at - 1], next.order[at]);
    all.push_back(next);
  }
  if (roles.folds.size() > 1) {
    Choice next = of;
    next.folds_reversed = !of.folds_reversed;
    all.push_back(next);
  }
  if (!roles.summed.empty()) {
    Choice next = of;
    next.summed_inside = !of.summed_inside;
    all.push_back(next);
  }
  if (tiles_ == Tiles::of_each_memory) add_inner_tiles(of, all);
  // Parts of the array: as few PEs as take no more turns, and half of those used.
  auto parts = [&](const std::vector<rules::ArrayNest::Side>& sides, int64_t used) {
    Few<int64_t, 2> sizes = {used / 2};
    if (sides.size() == 1) {
      const int64_t values = ceil_div(s_.extent[sides[0].loop], sides[0].at_once);
      sizes.push_back(ceil_div(values, ceil_div(values, used)));
    }
    sizes.sort_unique();
    return sizes;
  };
  for (int64_t rows : parts(plan.rows, plan.rows_used))
    if (auto next = on_plan(of, rows, plan.most_columns)) all.push_back(std::move(*next));
  for (int64_t columns : parts(plan.columns, plan.columns_used))
    if (auto next = on_plan(of, plan.most_rows, columns)) all.push_back(std::move(*next));
  if (plan.most_rows < s_.chip.rows)
    if (auto next = on_plan(of, s_.chip.rows, plan.most_columns)) all.push_back(std::move(*next));
  if (plan.most_columns < s_.chip.columns)
    if (auto next = on_plan(of, plan.most_rows, s_.chip.columns)) all.push_back(std::move(*next));
  return all;
}

/// Whether a second tile of so many values fits the first without a rest: rests within rests are seldom countable.
bool NestSearch::divides_tile(const Choice& of, size_t x, int64_t size) const {
  return (of.tile(x) == 0 || of.tile(x) % size == 0) && begins_evenly(x, plans_[of.plan].cover[x], size);
}

/// Second tiles of any of the iterators, in any order, coarsely: one alone seldom pays.
void NestSearch::search_inner_tiles(const Choice& from) {
  constexpr int64_t kSizes = 4;
  const SpacePlan& plan = plans_[from.plan];
  const std::vector<size_t>& main = roles_[from.plan].main;
  std::vector<std::vector<int64_t>> sizes;  // per iterator of main, with none as 0
  for (size_t x : main) {
    std::vector<int64_t>& of_x = sizes.emplace_back(1, 0);
    const int64_t cover = plan.cover[x], whole = from.tile(x) > 0 ? from.tile(x) : s_.extent[x];
    int64_t doublings = 0;
    while (doublings < 40 && cover << (doublings + 1) < whole) ++doublings;
    for (int64_t d = 0; d <= doublings; d += doublings / kSizes + 1)
      if (cover << d < whole && divides_tile(from, x, cover << d)) of_x.push_back(cover << d);
  }
  std::vector<size_t> pick(main.size(), 0);
  while (true) {
    Choice choice = from;
    choice.inner.clear();
    for (size_t i = 0; i < main.size(); ++i)
      if (sizes[i][pick[i]] > 0) choice.inner.push_back({main[i], sizes[i][pick[i]]});
    std::sort(choice.inner.begin(), choice.inner.end());
    do {
      try_choice(choice);
    } while (std::next_permutation(choice.inner.begin(), choice.inner.end()));
    size_t i = 0;
    while (i < pick.size() && ++pick[i] == sizes[i].size()) pick[i++] = 0;
    if (i == pick.size()) return;
  }
}

/// A second tile of an iterator within its first, or none again, and their order: a memory near the array can then hold
/// another tile than one further out.
void NestSearch::add_inner_tiles(const Choice& of, std::vector<Choice>& all) const {
  const SpacePlan& plan = plans_[of.plan];
  for (size_t x : roles_[of.plan].main) {
    const int64_t cover = plan.cover[x], whole = of.tile(x) > 0 ? of.tile(x) : s_.extent[x];
    size_t at = 0;
    while (at < of.inner.size() && of.inner[at].iterator != x) ++at;
    if (at < of.inner.size()) {
      for (int64_t size : next_sizes(x, cover, of.inner[at].size)) {
        Choice next = of;
        if (size == 0 || size >= whole || !divides_tile(of, x, size))
          next.inner.erase(at);
        else
          next.inner[at].size = size;
        all.push_back(next);
      }
      continue;
    }
    Few<int64_t, 5> sizes;
    for (int64_t blocks : {whole / cover / 2, whole / cover / 4, int64_t{4}, int64_t{2}, int64_t{1}})
      if (blocks >= 1 && blocks * cover < whole && begins_evenly(x, cover, blocks * cover))
        sizes.push_back(blocks * cover);
    sizes.sort_unique();
    for (int64_t size : sizes)
      for (size_t before = 0; before <= of.inner.size(); ++before) {
        Choice next = of;
        next.inner.insert(before, {x, size});
        all.push_back(next);
      }
  }
  for (size_t at = 1; at < of.inner.size(); ++at) {
    Choice next = of;
    std::swap(next.inner[at - 1], next.inner[at]);
    all.push_back(next);
  }
}

/// The choice on another part of the array, its tiles rounded up to whole turns of it.
std::optional<NestSearch::Choice> NestSearch::on_plan(const Choice& of, int64_t rows, int64_t columns) {
  const SpacePlan& plan = plans_[of.plan];
  if (plan.most_rows == 0 || rows < 1 || columns < 1 || (rows == plan.most_rows && columns == plan.most_columns))
    return {};
  const auto [at, fresh] = plan_of_.try_emplace({plan.stationary, plan.swapped, rows, columns}, plans_.size());
  if (fresh) {
    plans_.push_back(on_part(s_, plans_[of.plan], rows, columns));
    roles_.push_back(roles_of(plans_.back()));
  }
  const SpacePlan& other = plans_[at->second];
  for (size_t x = 0; x < s_.rank(); ++x)
    if (s_.parts[x] > 1 && s_.extent[x] % other.cover[x] != 0)
      return {};  // digits of a core's block that cannot be told apart
  Choice next{.plan = at->second,
              .folds_reversed = of.folds_reversed && roles_[at->second].folds.size() > 1,
              .summed_inside = of.summed_inside && !roles_[at->second].summed.empty(),
              .order = {},
              .inner = {}};
  for (const auto& [x, size] : of.order) {
    const int64_t tile = ceil_div(size, other.cover[x]) * other.cover[x];
    const std::vector<size_t>& main = roles_[at->second].main;
    if (tile >= s_.extent[x] || std::find(main.begin(), main.end(), x) == main.end()) continue;
    if (!begins_evenly(x, other.cover[x], tile)) continue;
    next.order.push_back({x, tile});
  }
  return next;
}

}  // namespace sator::dataflow
