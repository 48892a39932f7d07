#include "formats/timeloop/movement.h"

#include <algorithm>
#include <cstdlib>

namespace sator::formats::timeloop {

namespace {

const Point kNowhere{};
constexpr int64_t kWidest = int64_t{1} << 61;

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

/// The range of the instances' places, rank by rank, and digits that make one number of a place; differences of places
/// have numbers of their own too.
bool TileMover::prepare_places() {
  instances_ = 1;
  low_ = span_ = weight_ = kNowhere;
  for (const TileStep& loop : m_->space) {
    instances_ *= loop.bound;
    for (int r = 0; r < m_->ranks; ++r) {
      int64_t reach = loop.shift[r] * (loop.bound - 1);
      if (reach < 0) low_[r] += reach;
      span_[r] += std::abs(reach);
    }
  }
  int64_t digits = 1;
  for (int r = 0; r < m_->ranks; ++r) {
    weight_[r] = digits;
    if (span_[r] > kWidest || __builtin_mul_overflow(digits, 2 * span_[r] + 1, &digits) || digits > kWidest)
      return false;
  }
  places_.clear();
  if (sharings_.empty()) sharings_.emplace_back();
  sharings_used_ = 1;
  Sharing& all = sharings_[0];
  if (group_apart(all)) return true;
  list_places();
  linked_.assign(places_.size(), 0);
  group(all);
  return true;
}

int64_t TileMover::key(const Point& shift) const {
  int64_t k = 0;
  for (int r = 0; r < m_->ranks; ++r) k += weight_[r] * shift[r];
  return k;
}

void TileMover::list_places() {
  if (!places_.empty()) return;
  places_.push_back(0);
  for (const TileStep& loop : m_->space) {
    size_t inner = places_.size();
    int64_t shift = key(loop.shift);
    for (int64_t i = 1; i < loop.bound; ++i)
      for (size_t p = 0; p < inner; ++p) places_.push_back(places_[p] + i * shift);
  }
}

/// The groups of all instances where each loop either leaves the place alone or steps over all that the loops before it
/// reach: then those of equal place differ in the former loops only.
bool TileMover::group_apart(Sharing& s) const {
  Point reach{};
  int64_t together = 1, apart = 1;
  for (const TileStep& loop : m_->space) {
    if (loop.shift == kNowhere || !m_->multicast) {
      (m_->multicast ? together : apart) *= loop.bound;
      continue;
    }
    bool over = false;
    for (int r = 0; r < m_->ranks; ++r) over |= std::abs(loop.shift[r]) > reach[r];
    if (!over) return false;
    for (int r = 0; r < m_->ranks; ++r) reach[r] += std::abs(loop.shift[r]) * (loop.bound - 1);
    apart *= loop.bound;
  }
  s.groups.assign(1, {together, apart, 0});
  s.distinct = apart;
  s.unlinked = instances_;
  return true;
}

/// Groups the instances that are not linked by the words they want.
void TileMover::group(Sharing& s) {
  s.groups.clear();
  s.distinct = 0;
  sorted_.clear();
  for (size_t i = 0; i < places_.size(); ++i)
    if (!linked_[i]) sorted_.push_back(places_[i]);
  s.unlinked = static_cast<int64_t>(sorted_.size());
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
  std::sort(sorted_.begin(), sorted_.end());
  for (size_t i = 0; i < sorted_.size();) {
    size_t end = i + 1;
    while (end < sorted_.size() && sorted_[end] == sorted_[i]) ++end;
    count(static_cast<int64_t>(end - i), 1);
    i = end;
  }
}

/// The sharing where the new words lie `shift` from those of the step before: an instance may take them from a
/// neighbour whose tile stood there. 0 if that saves no access.
int TileMover::sharing(const Point& shift) {
  if (!m_->neighbours || instances_ == 1) return 0;
  for (int r = 0; r < m_->ranks; ++r)
    if (std::abs(shift[r]) > span_[r]) return 0;
  for (size_t i = 1; i < sharings_used_; ++i)
    if (sharings_[i].shift == shift) return sharings_[i].distinct < sharings_[0].distinct ? static_cast<int>(i) : 0;
  list_places();
  linked_.resize(places_.size());
  const int64_t wanted = key(shift), width = m_->width;
  auto supplies = [&](int64_t from, int64_t to) {
    return from >= 0 && from < instances_ && places_[from] - places_[to] == wanted;
  };
  int64_t x = 0, y = 0;
  for (int64_t i = 0; i < instances_; ++i) {
    linked_[i] = (y > 0 && supplies(i - width, i)) || (y + 1 < m_->height && supplies(i + width, i)) ||
                 (x > 0 && supplies(i - 1, i)) || (x + 1 < width && supplies(i + 1, i));
    if (++x == width) x = 0, ++y;
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
  if (instances_ > 1) {
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

bool TileMover::count(const TileMoves& moves, Traffic& out) {
  m_ = &moves;
  prepare_carries();
  if (!prepare_places()) return false;
  size_t depth = moves.time.size();
  if (visits_.size() <= depth) visits_.resize(depth + 1);
  for (std::vector<Visit>& v : visits_) v.clear();
  State start{.shift = kNone, .words = instances_ > 1 ? 0 : kNone};
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
    out.passed += s.size_sum * static_cast<double>(instances_ - s.unlinked);
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
  return true;
}

}  // namespace sator::formats::timeloop
