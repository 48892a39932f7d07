#include "arith/and_of_ors.h"

#include <algorithm>

#include "arith/fold.h"
#include "arith/kind.h"

namespace sator::arith {
namespace {

constexpr size_t kMaxGroups = 64;

using Group = std::vector<Expr>;  ///< the terms of a disjunction

/// Whether evaluating it can go wrong nowhere: loads are of constant places inside of their buffers.
bool cannot_fail(const Expr& e) {
  bool safe = true;
  walk(
      e,
      [&](const BufferLoad& n) {
        for (size_t d = 0; d < n.indices.size(); ++d) {
          auto i = as_int(n.indices[d]), extent = as_int(n.buffer->shape[d]);
          safe &= i && extent && *i >= 0 && *i < *extent;
        }
        return false;
      },
      [&](const Div&) { safe = false; },
      [&](const Mod&) { safe = false; },
      [&](const FloorDiv& n) { safe &= as_int(n.b).value_or(0) != 0; },
      [&](const FloorMod& n) { safe &= as_int(n.b).value_or(0) != 0; },
      [&](const Call&) { safe = false; });
  return safe;
}

bool has(const Group& group, const Expr& term) {
  return std::ranges::any_of(group, [&](const Expr& e) { return same(e, term); });
}

/// False if there are too many groups.
bool collect(const Expr& e, std::vector<Group>& out) {
  Kind kind = kind_of(e);
  if (kind == Kind::logical_and) {
    Operands o = operands(*e, kind);
    return collect(o.a, out) && collect(o.b, out);
  }
  if (kind != Kind::logical_or) {
    out.push_back({e});
    return out.size() <= kMaxGroups;
  }
  Operands o = operands(*e, kind);
  std::vector<Group> a, b;
  if (!collect(o.a, a) || !collect(o.b, b) || a.size() * b.size() > kMaxGroups) return false;
  for (const Group& x : a) {
    for (const Group& y : b) {
      Group both = x;
      for (const Expr& term : y) {
        if (!has(both, term)) both.push_back(term);
      }
      out.push_back(std::move(both));
    }
  }
  return out.size() <= kMaxGroups;
}

/// What two terms come to together, if that is one term; null if not.
Expr joined(Kind kind, const Expr& a, const Expr& b, Analyzer& analyzer) {
  Expr together = analyzer.simplify(make_binary(kind, a, b));
  return kind_of(together) == Kind::logical_and || kind_of(together) == Kind::logical_or ? nullptr : together;
}

/// The later of two terms that can be joined stands for both.
void join_terms(Group& group, Analyzer& analyzer) {
  for (size_t i = 0; i < group.size();) {
    bool gone = false;
    for (size_t j = i + 1; j < group.size() && !gone; ++j) {
      Expr together = joined(Kind::logical_or, group[i], group[j], analyzer);
      if (!together) continue;
      group[j] = together;
      group.erase(group.begin() + static_cast<std::ptrdiff_t>(i));
      gone = true;
    }
    if (!gone) ++i;
  }
}

/// The one term of `a` that `b` does not have, as an index; nothing if there is another number of them.
std::optional<size_t> odd_term(const Group& a, const Group& b) {
  std::optional<size_t> out;
  for (size_t i = 0; i < a.size(); ++i) {
    if (has(b, a[i])) continue;
    if (out) return {};
    out = i;
  }
  return out;
}

bool all_in(const Group& a, const Group& b) {
  return std::ranges::all_of(a, [&](const Expr& term) { return has(b, term); });
}

/// Groups that say no more than an earlier one go; of two that differ in one term the later stands for both, if these terms join.
void join_groups(std::vector<Group>& groups, Analyzer& analyzer) {
  for (size_t i = 0; i < groups.size(); ++i) {
    for (size_t j = i + 1; j < groups.size();) {
      if (groups[i].size() == groups[j].size() && all_in(groups[i], groups[j]))
        groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(j));
      else
        ++j;
    }
  }
  for (size_t i = 0; i < groups.size();) {
    bool gone = false;
    for (size_t j = i + 1; j < groups.size() && !gone; ++j) {
      if (groups[i].size() != groups[j].size()) continue;
      auto a = odd_term(groups[i], groups[j]), b = odd_term(groups[j], groups[i]);
      if (!a || !b) continue;
      Expr together = joined(Kind::logical_and, groups[i][*a], groups[j][*b], analyzer);
      if (!together) continue;
      groups[j][*b] = together;
      groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(i));
      gone = true;
    }
    if (!gone) ++i;
  }
}

}  // namespace

Expr as_and_of_ors(const Expr& condition, Analyzer& analyzer) {
  Kind kind = kind_of(condition);
  if ((kind != Kind::logical_and && kind != Kind::logical_or) || !cannot_fail(condition)) return condition;
  std::vector<Group> groups;
  if (!collect(condition, groups)) return condition;
  for (Group& g : groups) join_terms(g, analyzer);
  join_groups(groups, analyzer);
  Expr all;
  for (const Group& g : groups) {
    Expr any;
    for (const Expr& term : g) any = any ? logical_or(any, term) : term;
    all = all ? logical_and(all, any) : any;
  }
  return same(all, condition) ? condition : all;
}

}  // namespace sator::arith
