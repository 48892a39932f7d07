#include "dataflow/formats/timeloop/movement.h"

#include <algorithm>
#include <cstdlib>

namespace sator::dataflow::timeloop {

namespace {

const Point kNowhere{};

void add(Point& a, const Point& b, int64_t factor = 1) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += factor * b[i];
}

double volume(const Point& extent, int ranks) {
  double v = 1;
  for (int r = 0; r < ranks; ++r) v *= static_cast<double>(extent[r]);
  return v;
}

}  // namespace

void TileMover::prepare_carries() {
  size_t loops = m_->time.size();
  carry_.assign(loops, kNowhere);
  same_carry_.resize(loops);
  words_.assign(loops + 1, {});
  words_[0] = {.extent = m_->extent, .size = volume(m_->extent, m_->ranks)};
  Point inner{};
  for (size_t j = 0; j < loops; ++j) {
    carry_[j] = m_->time[j].shift;
    add(carry_[j], inner, -1);
    add(inner, m_->time[j].shift);
    same_carry_[j] = carry_[j] == kNowhere
                         ? kStill
                         : static_cast<int>(std::find(carry_.begin(), carry_.begin() + j, carry_[j]) - carry_.begin());
    // Only a shift along one rank, by less than the tile, leaves words in place.
    Words& w = words_[j + 1] = words_[0];
    int moved = -1;
    for (int r = 0; r < m_->ranks; ++r)
      if (carry_[j][r] != 0) moved = moved == -1 ? r : -2;
    if (moved < 0 || std::abs(carry_[j][moved]) >= m_->extent[moved]) continue;
    w.extent[moved] = std::abs(carry_[j][moved]);
    if (carry_[j][moved] > 0) w.offset[moved] = m_->extent[moved] - carry_[j][moved];
    w.size = volume(w.extent, m_->ranks);
  }
}

void TileMover::prepare_places() {
  places_.assign(1, kNowhere);
  for (const TileStep& loop : m_->space) {
    size_t inner = places_.size();
    for (int64_t i = 1; i < loop.bound; ++i)
      for (size_t p = 0; p < inner; ++p) {
        places_.push_back(places_[p]);
        add(places_.back(), loop.shift, i);
      }
  }
  sharings_used_ = 0;
  if (sharings_.empty()) sharings_.resize(1);
  sharings_used_ = 1;
  linked_.assign(places_.size(), 0);
  group(sharings_[0]);
}

/// Groups the instances that are not linked by the words they want.
void TileMover::group(Sharing& s) {
  s.groups.clear();
  s.size_sum = 0;
  s.distinct = s.unlinked = 0;
  order_.clear();
  for (size_t i = 0; i < places_.size(); ++i)
    if (!linked_[i]) order_.push_back(static_cast<int64_t>(i));
  s.unlinked = static_cast<int64_t>(order_.size());
  auto count = [&](int64_t multicast, int64_t groups) {
    auto at = std::lower_bound(
        s.groups.begin(), s.groups.end(), multicast, [](const Delivery& d, int64_t m) { return d.multicast < m; });
    if (at == s.groups.end() || at->multicast != multicast) at = s.groups.insert(at, {multicast, 0, 0});
    at->scatter += groups;
    s.distinct += groups;
  };
  if (!m_->multicast) {
    if (s.unlinked) count(1, s.unlinked);
    return;
  }
  std::sort(order_.begin(), order_.end(), [&](int64_t a, int64_t b) { return places_[a] < places_[b]; });
  for (size_t i = 0; i < order_.size();) {
    size_t end = i + 1;
    while (end < order_.size() && places_[order_[end]] == places_[order_[i]]) ++end;
    count(static_cast<int64_t>(end - i), 1);
    i = end;
  }
}

/// The sharing where the new words lie `shift` from those of the step before: an instance may take them from a
/// neighbour whose tile stood there. 0 if that saves no access.
int TileMover::sharing(const Point& shift) {
  if (!m_->neighbours || places_.size() == 1) return 0;
  for (size_t i = 1; i < sharings_used_; ++i)
    if (sharings_[i].shift == shift) return sharings_[i].distinct < sharings_[0].distinct ? static_cast<int>(i) : 0;
  int64_t instances = static_cast<int64_t>(places_.size());
  auto supplies = [&](int64_t from, int64_t to) {
    if (from < 0 || from >= instances) return false;
    for (int r = 0; r < m_->ranks; ++r)
      if (places_[from][r] - places_[to][r] != shift[r]) return false;
    return true;
  };
  for (int64_t i = 0; i < instances; ++i) {
    int64_t x = i % m_->width, y = i / m_->width;
    linked_[i] = (m_->height > 1 &&
                  ((y > 0 && supplies(i - m_->width, i)) || (y + 1 < m_->height && supplies(i + m_->width, i)))) ||
                 (m_->width > 1 && ((x > 0 && supplies(i - 1, i)) || (x + 1 < m_->width && supplies(i + 1, i))));
  }
  if (sharings_.size() == sharings_used_) sharings_.emplace_back();
  Sharing& s = sharings_[sharings_used_++];
  s.shift = shift;
  group(s);
  return s.distinct < sharings_[0].distinct ? static_cast<int>(sharings_used_ - 1) : 0;
}

TileMover::Outcome TileMover::step(State state, size_t loop) {
  const Point& carry = carry_[loop];
  int shift = same_carry_[loop];
  // What is new if the last tile may stay: nothing, or the box without the one before.
  int rest = shift == kStill ? kNone : shift + 1;
  Outcome out{.after = state, .words = 0};
  if (m_->resident) {
    if (shift == kStill && release_ == Release::master) {
      out.words = rest;
    } else if (state.shift == kNone || state.shift == shift) {
      out.words = rest;
      out.after.shift = shift;
    } else {
      out.after.shift = kNone;
    }
  }
  if (places_.size() > 1) {
    if (out.words >= 0 && state.words >= 0 && words_[out.words].extent == words_[state.words].extent) {
      Point shift = carry;
      add(shift, words_[out.words].offset);
      add(shift, words_[state.words].offset, -1);
      out.sharing = sharing(shift);
    }
    out.after.words = out.words;
  }
  return out;
}

int TileMover::visit(size_t depth, State state) {
  if (depth == 0) return -1;
  std::vector<Visit>& known = visits_[depth];
  for (size_t i = 0; i < known.size(); ++i)
    if (known[i].state == state) return static_cast<int>(i);
  Visit v{.state = state};
  v.before = visit(depth - 1, state);
  State at_step = v.before < 0 ? state : visits_[depth - 1][v.before].after;
  v.step = step(at_step, depth - 1);
  v.behind = visit(depth - 1, v.step.after);
  v.after = v.behind < 0 ? v.step.after : visits_[depth - 1][v.behind].after;
  known.push_back(v);
  return static_cast<int>(known.size() - 1);
}

void TileMover::count(const TileMoves& moves, Traffic& out) {
  m_ = &moves;
  prepare_carries();
  prepare_places();
  size_t depth = moves.time.size();
  if (visits_.size() <= depth) visits_.resize(depth + 1);
  for (std::vector<Visit>& v : visits_) v.clear();
  State start{.shift = kNone, .words = places_.size() > 1 ? 0 : kNone};
  int root = visit(depth, start);
  for (size_t i = 0; i < sharings_used_; ++i) sharings_[i].size_sum = 0;
  sharings_[0].size_sum = words_[0].size;  // the first tile comes whole
  if (root >= 0) visits_[depth][root].weight = 1;
  for (size_t d = depth; d > 0; --d)
    for (const Visit& v : visits_[d]) {
      double later = v.weight * static_cast<double>(moves.time[d - 1].bound - 1);
      if (v.step.words >= 0) sharings_[v.step.sharing].size_sum += later * words_[v.step.words].size;
      if (v.before >= 0) visits_[d - 1][v.before].weight += v.weight;
      if (v.behind >= 0) visits_[d - 1][v.behind].weight += later;
    }
  out.deliveries.clear();
  out.passed = 0;
  for (size_t i = 0; i < sharings_used_; ++i) {
    const Sharing& s = sharings_[i];
    if (s.size_sum == 0) continue;
    out.passed += s.size_sum * static_cast<double>(static_cast<int64_t>(places_.size()) - s.unlinked);
    for (const Delivery& g : s.groups) {
      auto at =
          std::lower_bound(out.deliveries.begin(), out.deliveries.end(), g, [](const Delivery& a, const Delivery& b) {
            return a.multicast != b.multicast ? a.multicast < b.multicast : a.scatter < b.scatter;
          });
      if (at == out.deliveries.end() || at->multicast != g.multicast || at->scatter != g.scatter)
        at = out.deliveries.insert(at, {g.multicast, g.scatter, 0});
      at->accesses += s.size_sum * static_cast<double>(g.scatter);
    }
  }
}

}  // namespace sator::dataflow::timeloop
