#include "dataflow/counts/links.h"

#include <map>

#include "base/text.h"
#include "dataflow/counts/bounds.h"
#include "dataflow/counts/timeline.h"

namespace sator::dataflow {

namespace {

/// p + offset for all p: the common case, needs no listing.
bool constant_shift(const Link& link, size_t rank, Hop& hop) {
  if (link.free_variables != 0 || !link.guards.empty()) return false;
  hop = {std::vector<int64_t>(rank), Box(rank, kAnyValue)};
  for (size_t k = 0; k < rank; ++k) {
    const QuasiAffine& e = link.source[k];
    if (e.terms.size() != 1 || e.terms[0].division || e.terms[0].variable != static_cast<int>(k) ||
        e.terms[0].coefficient != 1)
      return false;
    hop.offset[k] = e.constant;
  }
  return true;
}

/// If coordinate `axis` of the source depends on nothing but that coordinate and at most one free variable
/// which is the coordinate itself: its pairs (p, q) as shifts with intervals.
constexpr int64_t kAxisPairs = 1 << 22;  // (p, q) that one axis may list

struct AxisHop {
  int64_t offset;
  Interval when;
};

bool only_mentions(const QuasiAffine& e, int axis, int free, int variables) {
  for (int v = 0; v < variables; ++v)
    if (v != axis && v != free && mentions(e, v)) return false;
  return true;
}

std::vector<AxisHop> compress(const std::map<int64_t, std::vector<int64_t>>& by_offset) {
  std::vector<AxisHop> hops;
  for (const auto& [offset, at] : by_offset)
    for (int64_t p : at) {
      if (!hops.empty() && hops.back().offset == offset && hops.back().when.hi + 1 == p)
        hops.back().when.hi = p;
      else
        hops.push_back({offset, {p, p}});
    }
  return hops;
}

/// The link as a product of one-axis relations; false if its axes depend on each other.
bool per_axis(const Link& link, BoxView reach, std::vector<std::vector<AxisHop>>& axes) {
  const int rank = static_cast<int>(reach.size()), variables = rank + link.free_variables;
  std::vector<bool> guard_used(link.guards.size(), false);
  std::vector<bool> free_used(static_cast<size_t>(link.free_variables), false);
  for (int axis = 0; axis < rank; ++axis) {
    const QuasiAffine& e = link.source[static_cast<size_t>(axis)];
    int free = -1;  // the free variable this coordinate is
    if (e.constant == 0 && e.terms.size() == 1 && !e.terms[0].division && e.terms[0].coefficient == 1 &&
        e.terms[0].variable >= rank)
      free = e.terms[0].variable;
    if (free >= 0) {
      if (free_used[static_cast<size_t>(free - rank)]) return false;
      free_used[static_cast<size_t>(free - rank)] = true;
    }
    if (!only_mentions(e, axis, free, variables)) return false;
    std::vector<const QuasiAffine*> guards;
    for (size_t g = 0; g < link.guards.size(); ++g) {
      bool here = mentions(link.guards[g], axis) || (free >= 0 && mentions(link.guards[g], free));
      if (!here) continue;
      if (guard_used[g] || !only_mentions(link.guards[g], axis, free, variables)) return false;
      guard_used[g] = true;
      guards.push_back(&link.guards[g]);
    }
    std::vector<int64_t> values(static_cast<size_t>(variables), 0);
    std::map<int64_t, std::vector<int64_t>> by_offset;
    Interval span = reach[static_cast<size_t>(axis)];
    const Wide pairs = static_cast<Wide>(span.size()) * (free < 0 ? 1 : span.size());
    if (pairs > kAxisPairs) return false;
    for (int64_t p = span.lo; p <= span.hi; ++p) {
      values[static_cast<size_t>(axis)] = p;
      auto add = [&](int64_t q) {
        if (q < span.lo || q > span.hi) return;
        if (free >= 0) values[static_cast<size_t>(free)] = q;
        for (const QuasiAffine* g : guards)
          if (evaluate(*g, values) < 0) return;
        by_offset[q - p].push_back(p);
      };
      if (free < 0)
        add(evaluate(e, values));
      else
        for (int64_t q = span.lo; q <= span.hi; ++q) add(q);
    }
    axes.push_back(compress(by_offset));
  }
  // A guard on free variables that no coordinate shows, or on constants, is left to the general listing.
  for (bool used : guard_used)
    if (!used) return false;
  for (bool used : free_used)
    if (!used) return false;
  return true;
}

/// Appends combinations until there are more than `limit`.
void product(const std::vector<std::vector<AxisHop>>& axes, size_t axis, size_t limit, Hop& partial,
             std::vector<Hop>& out) {
  if (axis == axes.size()) {
    out.push_back(partial);
    return;
  }
  for (const AxisHop& hop : axes[axis]) {
    if (out.size() > limit) return;
    partial.offset.push_back(hop.offset);
    partial.when.push_back(hop.when);
    product(axes, axis + 1, limit, partial, out);
    partial.offset.pop_back();
    partial.when.pop_back();
  }
}

/// The volume of a box, or `most` if it is larger.
Wide bounded_volume(BoxView box, Wide most) {
  Wide product = 1;
  for (Interval i : box) product = std::min(product * i.size(), most);
  return product;
}

/// Next point of a box in lexicographic order; false after the last.
bool next_point(BoxView box, std::vector<int64_t>& point) {
  for (size_t k = box.size(); k-- > 0;) {
    if (++point[k] <= box[k].hi) return true;
    point[k] = box[k].lo;
  }
  return false;
}

std::vector<int64_t> corner(BoxView box) {
  std::vector<int64_t> point;
  for (Interval i : box) point.push_back(i.lo);
  return point;
}

/// Free variables can be listed only where each is a coordinate of the source: then the array bounds it.
bool free_variables_are_coordinates(const Link& link, int rank) {
  for (int x = rank; x < rank + link.free_variables; ++x)
    if (std::none_of(link.source.begin(), link.source.end(), [&](const QuasiAffine& e) { return e == variable(x); }))
      return false;
  return true;
}

bool list_pairs(const Link& link, BoxView reach, size_t limit, std::vector<Hop>& out) {
  const size_t rank = reach.size();
  if (!free_variables_are_coordinates(link, static_cast<int>(rank))) return false;
  const auto most = static_cast<Wide>(limit);
  Wide tries = bounded_volume(reach, most + 1);
  if (link.free_variables > 0) tries *= tries;
  if (tries > most) return false;
  // A free variable takes the values of PE coordinates: it is bounded by the reach of all of them.
  Interval widest = reach.empty() ? Interval{0, 0} : reach[0];
  for (Interval i : reach) widest = {std::min(widest.lo, i.lo), std::max(widest.hi, i.hi)};
  Box free_box(static_cast<size_t>(link.free_variables), widest);
  if (volume(reach) * bounded_volume(free_box, most * 16) > most * 16) return false;
  std::map<std::vector<int64_t>, std::vector<std::vector<int64_t>>> by_offset;
  std::vector<int64_t> p = corner(reach);
  do {
    std::vector<int64_t> x = corner(free_box);
    do {
      std::vector<int64_t> values = p;
      values.insert(values.end(), x.begin(), x.end());
      bool holds = std::all_of(
          link.guards.begin(), link.guards.end(), [&](const QuasiAffine& g) { return evaluate(g, values) >= 0; });
      if (!holds) continue;
      std::vector<int64_t> q = evaluate(link.source, values);
      for (size_t k = 0; k < rank; ++k) q[k] -= p[k];
      auto& at = by_offset[q];
      if (at.empty() || at.back() != p) at.push_back(p);
    } while (next_point(free_box, x));
  } while (next_point(reach, p));
  for (const auto& [offset, points] : by_offset) {
    size_t first = out.size();
    for (const std::vector<int64_t>& at : points) {
      // Runs along the last axis become one box.
      bool joins = out.size() > first && out.back().when.back().hi + 1 == at.back();
      for (size_t k = 0; joins && k + 1 < rank; ++k) joins = out.back().when[k].lo == at[k];
      if (joins) {
        out.back().when.back().hi = at.back();
        continue;
      }
      Hop hop{offset, {}};
      for (int64_t v : at) hop.when.push_back({v, v});
      out.push_back(std::move(hop));
    }
  }
  return true;
}

}  // namespace

std::variant<std::vector<Hop>, Reason> hops_of(const std::vector<Link>& interconnect, BoxView reach, size_t limit) {
  std::vector<Hop> hops;
  for (const Link& link : interconnect)
    if (link.source.size() != reach.size())
      return Reason{.what = text("a wire names ", link.source.size(), " coordinates, but PEs have ", reach.size()),
                    .needs = "an interconnect of the PEs' rank",
                    .hint = "give every wire one source coordinate per PE coordinate"};
  if (auto reason = overflow(interconnect, reach)) return *reason;
  for (const Link& link : interconnect) {
    Hop hop;
    std::vector<std::vector<AxisHop>> axes;
    if (constant_shift(link, reach.size(), hop)) {
      hops.push_back(std::move(hop));
    } else if (per_axis(link, reach, axes)) {
      Hop partial;
      product(axes, 0, limit, partial, hops);
    } else if (!list_pairs(link, reach, limit, hops)) {
      return Reason{
          .what = "a wire of the interconnect is no shift, ring, leader or bus, and cannot be listed",
          .needs = text("free variables that are coordinates of the source, and at most ", limit, " PE pairs"),
          .hint = "write the interconnect with shifts, (i+a)%R, constants and 0<=x<j"};
    }
    if (hops.size() > limit)
      return Reason{.what = text("the interconnect has more than ", limit, " different wires"),
                    .needs = "an interconnect of few shifts",
                    .hint = "use a smaller array or a chain instead of a bus"};
  }
  return hops;
}

}  // namespace sator::dataflow
