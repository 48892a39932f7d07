#include "dataflow/programs/masks.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "dataflow/counts/counts.h"

namespace sator::dataflow {

namespace {

/// Rows that are gone through one by one; beyond, boxes count.
constexpr double kMostRows = 1 << 22;

bool is_affine(const QuasiAffine& e) {
  return std::none_of(e.terms.begin(), e.terms.end(), [](const Term& t) { return t.division != nullptr; });
}

int64_t coefficient_of(const QuasiAffine& e, size_t x) {
  for (const Term& t : e.terms)
    if (t.variable == static_cast<int>(x)) return t.coefficient;
  return 0;
}

bool is_masked_by(const Work& work, size_t x) {
  return std::any_of(work.only_where.begin(), work.only_where.end(), [&](const QuasiAffine& e) {
    return mentions(e, static_cast<int>(x));
  });
}

int64_t count_points(const Work& work) {
  Statement bare{.name = work.statement.name, .domain = work.statement.domain, .accesses = {}};
  bare.domain.guards.insert(bare.domain.guards.end(), work.only_where.begin(), work.only_where.end());
  const Problem problem{std::move(bare), {{number(0)}, {number(0)}}, {Domain::box({"pe"}, {1}), {}}};
  auto counted = count(problem);
  if (auto* why_not = std::get_if<Reason>(&counted)) fail(std::move(*why_not));
  return std::get<Counts>(counted).macs;
}

}  // namespace

Span unmasked_span(const Work& work, size_t x, const std::vector<int64_t>& from, const std::vector<int64_t>& size) {
  const Domain& domain = work.statement.domain;
  Span span{domain.lower[x], domain.lower[x] + domain.extent[x]};
  for (const QuasiAffine& e : work.only_where) {
    if (!is_affine(e)) continue;
    int64_t most = e.constant;  // of all but x
    for (const Term& t : e.terms) {
      const auto y = static_cast<size_t>(t.variable);
      if (y != x) most += t.coefficient * (t.coefficient > 0 ? from[y] + size[y] - 1 : from[y]);
    }
    const int64_t c = coefficient_of(e, x);
    if (c > 0)
      span.begin = std::max(span.begin, -floor_quotient(most, c));
    else if (c < 0)
      span.end = std::min(span.end, floor_quotient(most, -c) + 1);
    else if (most < 0)
      span.end = span.begin;
  }
  span.end = std::max(span.begin, span.end);
  return span;
}

int64_t unmasked_instances(const Work& masked_work) {
  Work work{.statement = {.name = masked_work.statement.name, .domain = masked_work.statement.domain, .accesses = {}},
            .operands = {},
            .only_where = masked_work.only_where};
  Domain& domain = work.statement.domain;
  // The domain's own guards cut it in the same way.
  work.only_where.insert(work.only_where.end(), domain.guards.begin(), domain.guards.end());
  domain.guards.clear();
  std::vector<size_t> masked;
  bool affine = true;
  for (size_t x = 0; x < domain.extent.size(); ++x)
    if (is_masked_by(work, x)) masked.push_back(x);
  if (std::find(domain.extent.begin(), domain.extent.end(), 0) != domain.extent.end()) return 0;
  for (const QuasiAffine& e : work.only_where) affine &= is_affine(e);
  // Along one iterator what is left is a span, for each choice of the others that a guard looks at.
  const auto along = std::max_element(
      masked.begin(), masked.end(), [&](size_t a, size_t b) { return domain.extent[a] < domain.extent[b]; });
  double rows = 1;
  for (auto x = masked.begin(); x != masked.end(); ++x)
    if (x != along) rows *= static_cast<double>(domain.extent[*x]);
  if (!affine || (rows > kMostRows)) return count_points(work);
  __int128 points = masked.empty() ? 1 : 0;
  if (!masked.empty()) {
    std::vector<int64_t> at = domain.lower;
    const std::vector<int64_t> one(at.size(), 1);
    for (bool more = true; more;) {
      points += unmasked_span(work, *along, at, one).size();
      more = false;
      for (auto x = masked.begin(); x != masked.end() && !more; ++x) {
        if (x == along) continue;
        more = ++at[*x] < domain.lower[*x] + domain.extent[*x];
        if (!more) at[*x] = domain.lower[*x];
      }
    }
  }
  for (size_t x = 0; x < domain.extent.size(); ++x)
    if (std::find(masked.begin(), masked.end(), x) == masked.end()) points *= domain.extent[x];
  if (points > INT64_MAX)
    fail({.what = text("the instances of ", work.statement.name, " do not fit 64 bits"),
          .needs = "fewer than 2^63 instances",
          .hint = "use smaller extents"});
  return static_cast<int64_t>(points);
}

}  // namespace sator::dataflow
