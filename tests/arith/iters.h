// Iterators written as text, and walks over all of their iterations, for the tests of quasi-affine maps.
#pragma once

#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "arith/eval.h"
#include "arith/iter_map.h"
#include "arith/text_form.h"

namespace sator::arith {

inline constexpr auto kSurjective = IterMapLevel::surjective;
inline constexpr auto kBijective = IterMapLevel::bijective;

/// The iterators of a row: "x:3 y:c0" are ranges from 0, "c0" alone is a size variable.
struct Iters {
  Names names;
  RangeMap ranges;
  explicit Iters(const std::string& spec, DType dtype = i32) {
    std::istringstream in(spec);
    std::vector<std::string> words;
    for (std::string w; in >> w;) {
      std::string name = w.substr(0, w.find(':'));
      names.add(name, dtype, w.find(':') == w.npos);
      if (w.find(':') != w.npos) words.push_back(w);
    }
    for (const std::string& w : words) {
      size_t colon = w.find(':');
      Expr extent = cast_to(dtype, parse_expr(w.substr(colon + 1), names));
      ranges[names[w.substr(0, colon)]] = range_of(extent);
    }
  }
  Expr expr(const std::string& s) { return parse_expr(s, names); }
  std::vector<Expr> exprs(const std::vector<std::string>& list) {
    std::vector<Expr> out;
    for (const auto& s : list) out.push_back(expr(s));
    return out;
  }
};

/// Every iteration's indices, if the ranges are constant and few enough.
inline std::optional<std::vector<std::vector<int64_t>>> walk_all(const Iters& iters, const std::vector<Expr>& exprs,
                                                                 const Expr& predicate) {
  std::vector<std::pair<VarRef, int64_t>> loops;
  int64_t total = 1;
  for (const auto& [v, r] : iters.ranges) {
    auto n = as_int(r->extent);
    if (!n || !is_zero(r->min)) return {};
    loops.emplace_back(v, *n);
    total *= *n;
  }
  if (total > 40000) return {};
  std::vector<std::vector<int64_t>> out;
  for (int64_t k = 0; k < total; ++k) {
    Values values;
    int64_t rest = k;
    for (const auto& [v, n] : loops) {
      values[v] = rest % n;
      rest /= n;
    }
    auto holds = evaluate(predicate, values);
    if (!holds) return {};  // a free variable
    if (!*holds) continue;
    std::vector<int64_t> point;
    for (const Expr& e : exprs) {
      auto v = evaluate(e, values);
      if (!v) return {};
      point.push_back(*v);
    }
    out.push_back(point);
  }
  return out;
}

/// The fusion ((n0, n1), m1) of extents 2, 4, 3 that the larger examples are built on.
inline std::string complex_l2() { return "((n0 * 4 + n1) * 3 + m1)"; }

}  // namespace sator::arith
