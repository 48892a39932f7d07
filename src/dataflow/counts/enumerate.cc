#include "dataflow/counts/enumerate.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "base/text.h"
#include "dataflow/counts/bounds.h"

namespace sator::dataflow {

namespace {

using Point = std::vector<int64_t>;

constexpr size_t kBusPes = 1 << 12;    // PEs whose pairs are listed for wires with free variables
constexpr int64_t kSearches = 1 << 6;  // looks into neighbours, per point that may be listed

struct PointHash {
  size_t operator()(const Point& p) const {
    uint64_t h = 0x9e3779b97f4a7c15ull;
    for (int64_t v : p) h = (h ^ static_cast<uint64_t>(v)) * 0xff51afd7ed558ccdull, h ^= h >> 32;
    return h;
  }
};

/// Points in the order of first sight.
class Numbering {
 public:
  int64_t of(const Point& p) { return numbers_.try_emplace(p, static_cast<int64_t>(numbers_.size())).first->second; }
  int64_t find(const Point& p) const {
    auto at = numbers_.find(p);
    return at == numbers_.end() ? -1 : at->second;
  }
  size_t size() const { return numbers_.size(); }
  const std::unordered_map<Point, int64_t, PointHash>& all() const { return numbers_; }

 private:
  std::unordered_map<Point, int64_t, PointHash> numbers_;
};

/// Calls visit(point) for every point of the domain; false if it has more than `limit` before guards.
template <class Visit>
bool for_each_point(const Domain& domain, int64_t limit, Visit visit) {
  if (std::find(domain.extent.begin(), domain.extent.end(), 0) != domain.extent.end()) return true;
  Wide points = 1;
  for (int64_t extent : domain.extent)
    if ((points *= extent) > limit) return false;
  Point x = domain.lower;
  while (true) {
    bool inside = std::all_of(
        domain.guards.begin(), domain.guards.end(), [&](const QuasiAffine& g) { return evaluate(g, x) >= 0; });
    if (inside) visit(x);
    size_t k = x.size();
    while (k > 0 && ++x[k - 1] == domain.lower[k - 1] + domain.extent[k - 1]) --k, x[k] = domain.lower[k];
    if (k == 0) return true;
  }
}

struct Instance {
  Point x;
  int64_t pe, time;
};

/// What every PE that works finds beside it, by number.
struct Wiring {
  std::vector<std::vector<int64_t>> neighbours;  // other PEs that supply
  std::vector<bool> keeps;                       // the PE supplies itself one stamp later
};

std::optional<Reason> wire(const Array& array, const Numbering& pes, Wiring& wiring) {
  wiring.neighbours.assign(pes.size(), {});
  wiring.keeps.assign(pes.size(), false);
  for (const auto& [p, number] : pes.all()) {
    const size_t self = static_cast<size_t>(number);
    bool declared = true;
    for (size_t k = 0; k < p.size(); ++k)
      declared &= p[k] >= array.pes.lower[k] && p[k] < array.pes.lower[k] + array.pes.extent[k];
    for (const QuasiAffine& g : array.pes.guards) declared = declared && evaluate(g, p) >= 0;
    wiring.keeps[self] = declared;
    for (const Link& link : array.interconnect) {
      auto supply = [&](const Point& values) {
        if (std::any_of(
                link.guards.begin(), link.guards.end(), [&](const QuasiAffine& g) { return evaluate(g, values) < 0; }))
          return false;
        int64_t q = pes.find(evaluate(link.source, values));
        if (q == number)
          wiring.keeps[self] = true;
        else if (q >= 0)
          wiring.neighbours[self].push_back(q);
        return true;
      };
      if (link.free_variables == 0) {
        supply(p);
        continue;
      }
      // Each free variable is a coordinate of the source, so the working PEs bound it.
      std::vector<size_t> coordinate(static_cast<size_t>(link.free_variables), p.size());
      for (size_t k = 0; k < link.source.size(); ++k)
        for (size_t f = 0; f < coordinate.size(); ++f)
          if (link.source[k] == variable(static_cast<int>(p.size() + f))) coordinate[f] = k;
      for (size_t k : coordinate)
        if (k == p.size() || pes.size() > kBusPes)
          return Reason{
              .what = "a free variable of the interconnect is no coordinate of the source, or the array is large",
              .needs = text("wires such as PE[i,j]->PE[i,x] : 0<=x<j, and at most ", kBusPes, " working PEs"),
              .hint = "use the free variable as a coordinate"};
      for (const auto& [q, other] : pes.all()) {
        Point values = p;
        for (size_t k : coordinate) values.push_back(q[k]);
        if (evaluate(link.source, values) == q) supply(values);
      }
    }
    auto& list = wiring.neighbours[self];
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return {};
}

Reason too_many(int64_t limit) {
  return {.what = text("there are more than ", limit, " points to list"),
          .needs = text("at most ", limit, " instances, and not many more triples and pairs of neighbours"),
          .hint = "use smaller extents, or maps that resolve into digits"};
}

class Enumerator {
 public:
  Enumerator(const Problem& problem, int64_t limit) : problem_(problem), limit_(limit) {}

  std::variant<Counts, Reason> run() {
    if (auto reason = mismatch(problem_)) return *reason;
    if (auto reason = overflow(problem_)) return *reason;
    if (!visit_instances()) return too_many(limit_);
    int64_t declared = 0;
    if (problem_.array.pes.guards.empty()) {
      // That it fits was checked with the rest of the problem.
      declared = static_cast<int64_t>(volume(box_of(problem_.array.pes)));
    } else if (!for_each_point(problem_.array.pes, limit_, [&](const Point&) { ++declared; })) {
      return too_many(limit_);
    }
    counts_.pe_array = declared;
    if (auto reason = wire(problem_.array, pes_, wiring_)) return *reason;
    for (const auto& [p, number] : pes_.all()) counts_.outside_array |= !inside(p);
    count_stamps();
    for (const Access& access : problem_.statement.accesses) {
      TensorCounts tensor{.tensor = access.tensor, .role = access.role};
      if (!count_access(access, tensor)) return too_many(limit_);
      counts_.tensors.push_back(std::move(tensor));
    }
    counts_.enumerated = true;
    return counts_;
  }

  std::optional<int64_t> work_cycles() {
    if (!visit_instances()) return std::nullopt;
    count_stamps();
    return counts_.work_cycles;
  }

 private:
  bool inside(const Point& p) const {
    const Domain& pes = problem_.array.pes;
    for (size_t k = 0; k < p.size(); ++k)
      if (p[k] < pes.lower[k] || p[k] >= pes.lower[k] + pes.extent[k]) return false;
    return std::all_of(pes.guards.begin(), pes.guards.end(), [&](const QuasiAffine& g) { return evaluate(g, p) >= 0; });
  }

  bool visit_instances() {
    std::vector<Point> stamps;
    Numbering times;
    bool fits = for_each_point(problem_.statement.domain, limit_, [&](const Point& x) {
      Point t = evaluate(problem_.mapping.time, x);
      int64_t time = times.of(t);
      if (time == static_cast<int64_t>(stamps.size())) stamps.push_back(std::move(t));
      instances_.push_back({x, pes_.of(evaluate(problem_.mapping.space, x)), time});
    });
    if (!fits) return false;
    // Stamps are numbered in their order, so that "one stamp ago" is one less.
    std::vector<int64_t> order(stamps.size()), rank(stamps.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return stamps[static_cast<size_t>(a)] < stamps[static_cast<size_t>(b)];
    });
    for (size_t i = 0; i < order.size(); ++i) rank[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    for (Instance& n : instances_) n.time = rank[static_cast<size_t>(n.time)];
    counts_.macs = static_cast<int64_t>(instances_.size());
    counts_.space = static_cast<int64_t>(pes_.size());
    counts_.time = static_cast<int64_t>(stamps.size());
    return true;
  }

  void count_stamps() {
    std::map<std::pair<int64_t, int64_t>, int64_t> work;  // (time, PE) -> instances
    for (const Instance& n : instances_) ++work[{n.time, n.pe}];
    counts_.spacetime = static_cast<int64_t>(work.size());
    std::map<int64_t, int64_t> most;
    for (const auto& [stamp, instances] : work) most[stamp.first] = std::max(most[stamp.first], instances);
    int64_t cycles = 0;
    for (const auto& [time, instances] : most) cycles += instances;
    counts_.work_cycles = cycles;
  }

  bool count_access(const Access& access, TensorCounts& out) {
    Numbering elements;
    // (element, time, PE) sorted, so that one binary search answers "does it exist".
    struct Triple {
      int64_t element, time, pe;
      auto operator<=>(const Triple&) const = default;
    };
    std::vector<Triple> triples;
    std::vector<int64_t> touched;
    for (const Instance& n : instances_) {
      touched.clear();
      for (const Map& reference : access.references) touched.push_back(elements.of(evaluate(reference, n.x)));
      std::sort(touched.begin(), touched.end());
      touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
      out.total += static_cast<int64_t>(touched.size());
      for (int64_t e : touched) triples.push_back({e, n.time, n.pe});
      if (static_cast<int64_t>(triples.size()) > 16 * limit_) return false;
    }
    std::sort(triples.begin(), triples.end());
    triples.erase(std::unique(triples.begin(), triples.end()), triples.end());
    auto exists = [&](const Triple& t) { return std::binary_search(triples.begin(), triples.end(), t); };
    for (const Triple& t : triples) {
      const size_t pe = static_cast<size_t>(t.pe);
      searches_ += static_cast<int64_t>(wiring_.neighbours[pe].size());
      if (searches_ > kSearches * limit_) return false;
      bool had = exists({t.element, t.time - 1, t.pe});
      bool near = std::any_of(wiring_.neighbours[pe].begin(), wiring_.neighbours[pe].end(), [&](int64_t q) {
        return exists({t.element, t.time, q}) || exists({t.element, t.time - 1, q});
      });
      out.temporal_hits += had;
      out.spatial_hits += near;
      out.unique += !(near || (had && wiring_.keeps[pe]));
    }
    out.assigned = static_cast<int64_t>(triples.size());
    out.footprint = static_cast<int64_t>(elements.size());
    return true;
  }

  const Problem& problem_;
  int64_t limit_, searches_ = 0;
  std::vector<Instance> instances_;
  Numbering pes_;
  Wiring wiring_;
  Counts counts_;
};

}  // namespace

std::variant<Counts, Reason> enumerate(const Problem& problem, int64_t limit) {
  return Enumerator(problem, limit).run();
}

std::optional<int64_t> list_work_cycles(const Problem& problem, int64_t limit) {
  if (mismatch(problem) || overflow(problem)) return std::nullopt;
  return Enumerator(problem, limit).work_cycles();
}

}  // namespace sator::dataflow
