#include "dataflow/counts/space_time.h"

#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <set>

#include "base/text.h"
#include "dataflow/counts/bounds.h"

namespace sator::dataflow {

namespace {

using Point = std::vector<int64_t>;

constexpr Wide kBusSources = 1 << 12;  // PEs among which sources of a bus are looked for

/// Searches in the domain of a statement, by halves.
class Search {
 public:
  Search(const Problem& problem, int64_t boxes) : problem_(problem), left_(boxes) {}

  /// The least stamp after `after`, or of all; nothing if there is none.
  /// Best-first by the lower bound of a box's stamps, raised to the least stamp that comes into question.
  std::optional<Point> next_stamp(const std::optional<Point>& after) {
    if (after && after->empty()) return {};  // there is but one stamp without coordinates
    Point least = after.value_or(Point());
    if (after) ++least.back();
    struct Candidate {
      Point bound;
      Wide volume;
      Box box;
    };
    auto later = [](const Candidate& a, const Candidate& b) {
      return a.bound != b.bound ? a.bound > b.bound : a.volume > b.volume;
    };
    std::priority_queue<Candidate, std::vector<Candidate>, decltype(later)> queue(later);
    auto offer = [&](Box box) {
      if (!possible(box)) return;
      Point low, high;
      for (const QuasiAffine& t : problem_.mapping.time) {
        const Interval i = bounds(t, box);
        low.push_back(i.lo), high.push_back(i.hi);
      }
      if (high < least) return;
      queue.push({std::max(low, least), volume(box), std::move(box)});
    };
    offer(box_of(problem_.statement.domain));
    while (!queue.empty()) {
      Candidate best = queue.top();
      queue.pop();
      if (best.volume == 1) {
        Point stamp = evaluate(problem_.mapping.time, point_of(best.box));
        if (stamp >= least) return stamp;
        continue;
      }
      auto [first, second] = halves(best.box);
      offer(std::move(first));
      offer(std::move(second));
    }
    return {};
  }

  /// Calls visit(instance) for each that runs on that PE at that stamp.
  template <class Visit>
  void each_at(const Point& pe, const Point& stamp, Visit visit) {
    std::vector<Box> open = {box_of(problem_.statement.domain)};
    while (!open.empty()) {
      Box box = std::move(open.back());
      open.pop_back();
      if (!possible(box) || !meets(problem_.mapping.space, pe, box) || !meets(problem_.mapping.time, stamp, box))
        continue;
      if (volume(box) == 1) {
        visit(point_of(box));  // bounds of a point are its values
        continue;
      }
      auto [first, second] = halves(box);
      open.push_back(std::move(first));
      open.push_back(std::move(second));
    }
  }

 private:
  Interval bounds(const QuasiAffine& e, const Box& box) {
    return bounds_of(e, box).value_or(Interval{INT64_MIN, INT64_MAX});  // excluded by `overflow`
  }
  /// Whether some point of the box may belong to the domain.
  bool possible(const Box& box) {
    if (--left_ < 0)
      fail({.what = "the mapping is too involved for a picture",
            .needs = "maps whose bounds tell where instances run",
            .hint = "draw a smaller problem of the same mapping"});
    if (is_empty(box)) return false;
    return std::all_of(problem_.statement.domain.guards.begin(),
                       problem_.statement.domain.guards.end(),
                       [&](const QuasiAffine& g) { return bounds(g, box).hi >= 0; });
  }
  bool meets(const Map& map, const Point& wanted, const Box& box) {
    for (size_t k = 0; k < map.size(); ++k) {
      const Interval i = bounds(map[k], box);
      if (wanted[k] < i.lo || wanted[k] > i.hi) return false;
    }
    return true;
  }
  static Point point_of(const Box& box) {
    Point x;
    for (Interval i : box) x.push_back(i.lo);
    return x;
  }
  static std::pair<Box, Box> halves(const Box& box) {
    const size_t longest = static_cast<size_t>(
        std::max_element(box.begin(), box.end(), [](Interval a, Interval b) { return a.size() < b.size(); }) -
        box.begin());
    std::pair<Box, Box> parts{box, box};
    const int64_t middle = box[longest].lo + (box[longest].size() - 1) / 2;
    parts.first[longest].hi = middle;
    parts.second[longest].lo = middle + 1;
    return parts;
  }

  const Problem& problem_;
  int64_t left_;
};

class Diagram {
 public:
  Diagram(const Problem& problem, const SpaceTimeLimits& limits) : problem_(problem), search_(problem, limits.boxes) {
    if (auto reason = mismatch(problem)) fail(*reason);
    if (auto reason = overflow(problem)) fail(*reason);
    choose_pes(limits.pes);
    for (std::optional<Point> stamp; result_.stamps.size() < limits.stamps;) {
      stamp = search_.next_stamp(stamp);
      if (!stamp) break;
      result_.stamps.push_back(*stamp);
    }
  }

  SpaceTime run() {
    for (const Access& access : problem_.statement.accesses)
      result_.tensors.push_back({access.tensor, access.role, {}});
    for (size_t p = 0; p < result_.pes.size(); ++p) {
      const Sources from = sources(result_.pes[p]);
      for (size_t s = 0; s < result_.stamps.size(); ++s) add_cells(p, s, from);
    }
    return std::move(result_);
  }

 private:
  /// PEs that supply another one, and whether it keeps what it has.
  struct Sources {
    std::vector<Point> neighbours;
    bool keeps = false;
  };
  using Elements = std::vector<std::set<Point>>;  // per access

  /// A corner of the array, about as long as wide; of several cores the first.
  void choose_pes(size_t most) {
    Box reach;
    const Box domain = box_of(problem_.statement.domain);
    if (is_empty(domain)) return;
    for (const QuasiAffine& s : problem_.mapping.space) reach.push_back(*bounds_of(s, domain));
    Point sizes(reach.size(), 1);
    for (size_t area = 1;;) {
      size_t grows = reach.size();
      for (size_t k = reach.size() < 2 ? 0 : reach.size() - 2; k < reach.size(); ++k)
        if (sizes[k] < reach[k].size() &&
            area / static_cast<size_t>(sizes[k]) * static_cast<size_t>(sizes[k] + 1) <= most &&
            (grows == reach.size() || sizes[k] <= sizes[grows]))
          grows = k;
      if (grows == reach.size()) break;
      area = area / static_cast<size_t>(sizes[grows]) * static_cast<size_t>(sizes[grows] + 1);
      ++sizes[grows];
    }
    Point p;
    for (Interval i : reach) p.push_back(i.lo);
    while (true) {
      result_.pes.push_back(p);
      size_t k = p.size();
      while (k > 0 && ++p[k - 1] == reach[k - 1].lo + sizes[k - 1]) --k, p[k] = reach[k].lo;
      if (k == 0) break;
    }
  }

  bool declared(const Point& p) const {
    const Domain& pes = problem_.array.pes;
    for (size_t k = 0; k < p.size(); ++k)
      if (p[k] < pes.lower[k] || p[k] >= pes.lower[k] + pes.extent[k]) return false;
    return std::all_of(pes.guards.begin(), pes.guards.end(), [&](const QuasiAffine& g) { return evaluate(g, p) >= 0; });
  }

  Sources sources(const Point& p) {
    Sources found{.keeps = declared(p)};
    auto supply = [&](const Link& link, const Point& values) {
      for (const QuasiAffine& g : link.guards)
        if (evaluate(g, values) < 0) return;
      Point q = evaluate(link.source, values);
      if (q == p)
        found.keeps = true;
      else
        found.neighbours.push_back(std::move(q));
    };
    for (const Link& link : problem_.array.interconnect) {
      if (link.free_variables == 0)
        supply(link, p);
      else
        each_bus_source(link, p, supply);
    }
    std::sort(found.neighbours.begin(), found.neighbours.end());
    found.neighbours.erase(std::unique(found.neighbours.begin(), found.neighbours.end()), found.neighbours.end());
    return found;
  }

  /// Each free variable is a coordinate of the source, which the PEs that work bound.
  template <class Supply>
  void each_bus_source(const Link& link, const Point& p, Supply supply) {
    Box reach;
    for (const QuasiAffine& s : problem_.mapping.space)
      reach.push_back(*bounds_of(s, box_of(problem_.statement.domain)));
    std::vector<size_t> coordinate(static_cast<size_t>(link.free_variables), p.size());
    for (size_t k = 0; k < link.source.size(); ++k)
      for (size_t f = 0; f < coordinate.size(); ++f)
        if (link.source[k] == variable(static_cast<int>(p.size() + f))) coordinate[f] = k;
    if (volume(reach) > kBusSources || std::find(coordinate.begin(), coordinate.end(), p.size()) != coordinate.end())
      fail({.what = "a free variable of the interconnect is no coordinate of the source, or the array is large",
            .needs = text(
                "wires such as PE[i,j]->PE[i,x] : 0<=x<j, and at most ", static_cast<int64_t>(kBusSources), " PEs"),
            .hint = "use the free variable as a coordinate"});
    Point x;
    for (size_t k : coordinate) x.push_back(reach[k].lo);
    while (true) {
      Point values = p;
      values.insert(values.end(), x.begin(), x.end());
      supply(link, values);
      size_t f = x.size();
      while (f > 0 && ++x[f - 1] > reach[coordinate[f - 1]].hi) --f, x[f] = reach[coordinate[f]].lo;
      if (f == 0) break;
    }
  }

  const Elements& at(const Point& pe, size_t stamp) {
    auto [found, fresh] = touched_.try_emplace({pe, stamp});
    if (!fresh) return found->second;
    Elements& elements = found->second;
    elements.resize(problem_.statement.accesses.size());
    search_.each_at(pe, result_.stamps[stamp], [&](const Point& x) {
      for (size_t a = 0; a < elements.size(); ++a)
        for (const Map& reference : problem_.statement.accesses[a].references)
          elements[a].insert(evaluate(reference, x));
    });
    return elements;
  }

  void add_cells(size_t p, size_t s, const Sources& from) {
    const Elements& mine = at(result_.pes[p], s);
    for (size_t a = 0; a < mine.size(); ++a) {
      SpaceTimeCell cell{.pe = p, .stamp = s};
      for (const Point& element : mine[a]) {
        auto has = [&](const Point& pe, size_t stamp) { return at(pe, stamp)[a].count(element) > 0; };
        if (s > 0 && from.keeps && has(result_.pes[p], s - 1))
          ++cell.kept;
        else if (std::any_of(from.neighbours.begin(), from.neighbours.end(), [&](const Point& q) {
                   return has(q, s) || (s > 0 && has(q, s - 1));
                 }))
          ++cell.neighbour;
        else
          ++cell.memory;
      }
      if (!mine[a].empty()) result_.tensors[a].cells.push_back(cell);
    }
  }

  const Problem& problem_;
  Search search_;
  SpaceTime result_;
  std::map<std::pair<Point, size_t>, Elements> touched_;
};

}  // namespace

SpaceTime space_time(const Problem& problem, const SpaceTimeLimits& limits) { return Diagram(problem, limits).run(); }

}  // namespace sator::dataflow
