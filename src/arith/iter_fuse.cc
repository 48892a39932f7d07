// Fusing the splits of a sum into one iterator.
#include <algorithm>

#include "arith/fold.h"
#include "arith/interval_eval.h"
#include "arith/iter_rewriter.h"
#include "arith/kind.h"
#include "arith/numbers.h"

namespace sator::arith {

namespace {

int first_unit_extent(const IterSum& sum) {
  for (size_t i = 0; i < sum.args.size(); ++i)
    if (is_one(sum.args[i].extent)) return static_cast<int>(i);
  return static_cast<int>(sum.args.size());
}

int factors_of(const Expr& e) {
  int n = 0;
  for_each_operand(e, Kind::mul, [&](const Expr&) { ++n; });
  return n;
}

}  // namespace

/// The split of the smallest scale: the smallest constant one (on ties a unit extent, which moves no other), else the one
/// with the fewest factors. Searched from `last` down, among those of one source if given.
int IterRewriter::base_iter(const IterSum& sum, const PooledVector<bool>& skip, const IterMark* source,
                            int last) const {
  auto eligible = [&](int i) { return !skip[i] && (!source || sum.args[i].source.get() == source); };
  int found = -1;
  int64_t least = 0;
  for (int i = last; i >= 0; --i) {
    auto scale = as_int(sum.args[i].scale);
    if (!eligible(i) || !scale) continue;
    bool tie_for_unit = found >= 0 && *scale == least && is_one(sum.args[i].extent) && !is_one(sum.args[found].extent);
    if (found < 0 || *scale < least || tie_for_unit) {
      least = *scale;
      found = i;
    }
  }
  if (found >= 0) return found;
  int fewest = 0;
  for (int i = last; i >= 0; --i) {
    if (!eligible(i)) continue;
    int n = factors_of(sum.args[i].scale);
    if (found < 0 || n < fewest) {
      fewest = n;
      found = i;
    }
  }
  return found;
}

/// The split with exactly that scale; unit extents are taken first, as they leave the expected scale as it is.
int IterRewriter::iter_of_scale(const IterSum& sum, const PooledVector<bool>& skip, const Expr& scale,
                                const IterMark* source, int last, int first_unit) const {
  int found = -1;
  for (int i = last; i >= 0; --i) {
    if (skip[i] || (source && sum.args[i].source.get() != source)) continue;
    if (!analyzer_.prove_equal(sum.args[i].scale, scale)) continue;
    if (is_one(sum.args[i].extent)) return i;
    if (found < 0) found = i;
    if (i <= first_unit) return found;
  }
  return found;
}

/// The split of the largest scale that is surely not above `limit`.
int IterRewriter::iter_below_scale(const IterSum& sum, const PooledVector<bool>& skip, const Expr& limit,
                                   Expr& found_scale) const {
  int found = -1;
  for (int i = static_cast<int>(sum.args.size()) - 1; i >= 0; --i) {
    const Expr& scale = sum.args[i].scale;
    if (skip[i] || !analyzer_.prove_ge(isub(limit, scale), 0) || !analyzer_.prove_ge(scale, 0)) continue;
    if (found < 0 || analyzer_.prove_lt(isub(found_scale, scale), 0)) {
      found = i;
      found_scale = scale;
    }
  }
  return found;
}

/// Joins splits of one source that follow each other: ((x // (c s)) % m) * s t + ((x // c) % s) * t is
/// ((x // c) % (m s)) * t. Nothing if no source occurs twice.
std::optional<IterSum> IterRewriter::combine_same_source(const IterSum& sum) const {
  const auto& args = sum.args;
  int n = static_cast<int>(args.size());
  auto uses = [&](const IterMarkRef& mark) {
    return std::ranges::count_if(args, [&](const IterSplit& s) { return s.source == mark; });
  };
  if (std::ranges::all_of(args, [&](const IterSplit& s) { return uses(s.source) == 1; })) return {};
  PooledVector<bool> visited(args.size(), false);
  PooledVector<IterSplit> reversed;
  int first_unit = first_unit_extent(sum);
  for (int last = n - 1; last >= 0; --last) {
    // A source's splits are joined when the search meets the last of them: others may remain for another round.
    while (!visited[last]) {
      const IterMark* source = args[last].source.get();
      if (uses(args[last].source) == 1) {
        reversed.push_back(args[last]);
        visited[last] = true;
        break;
      }
      int at = base_iter(sum, visited, source, last);
      visited[at] = true;
      IterSplit low = args[at];
      while (true) {
        int next = iter_of_scale(sum, visited, imul_normal(low.extent, low.scale), source, last, first_unit);
        if (next < 0) break;
        const IterSplit& high = args[next];
        if (!analyzer_.prove_equal(high.lower_factor, imul_normal(low.lower_factor, low.extent))) break;
        visited[next] = true;
        low.extent = imul_normal(high.extent, low.extent);
      }
      reversed.push_back(low);
    }
  }
  return IterSum{{reversed.rbegin(), reversed.rend()}, sum.base};
}

/// The longest constraint whose last (innermost) split is this one.
const IterSum* IterRewriter::constraint_ending_in(const IterSplit& split) const {
  const IterSum* longest = nullptr;
  for (const auto& [c, tightens] : constrained_)
    if (same_split(split, c.args.back(), false) && (!longest || longest->args.size() < c.args.size())) longest = &c;
  return longest;
}

IterRewriter::Fused* IterRewriter::find_fused(const IterSum& flattened) {
  for (Fused& f : fused_)
    if (same_sum(f.flattened, flattened)) return &f;
  return nullptr;
}

/// x1*c1 + x2*c2 + ... + xn*cn + base as y * cn + base, where y is one iterator: each scale must be the one below times its
/// extent. Where the map need not be bijective, a smaller scale (overlap) is taken too.
///   early_exit  a sum that is one split already is returned as it is
std::optional<IterSum> IterRewriter::fuse(IterSum sum, bool early_exit) {
  if (auto combined = combine_same_source(sum)) {
    sum = std::move(*combined);
    if (sum.args.size() <= 1 && early_exit) return sum;
  }
  const auto& args = sum.args;
  int last = static_cast<int>(args.size()) - 1;
  PooledVector<bool> visited(args.size(), false);
  int base = base_iter(sum, visited, nullptr, last);
  if (base < 0) return {};
  DType dtype = sum.base->dtype;
  const Expr base_scale = args[base].scale;
  Expr expected = base_scale, extra = zero_of(dtype), tail = zero_of(dtype);
  PooledVector<IterSplit> flat, grouped;  // from inner to outer
  int first_unit = first_unit_extent(sum);

  for (size_t taken = 0; taken < args.size();) {
    Expr scale;
    int at = taken == 0 ? base : iter_of_scale(sum, visited, expected, nullptr, last, first_unit);
    bool exact = at >= 0;
    if (exact)
      scale = expected;
    else if (level_ != IterMapLevel::bijective && is_one(base_scale))
      at = iter_below_scale(sum, visited, expected, scale);
    if (at < 0) return {};
    if (!exact) tail = iadd(tail, isub(expected, scale));
    if (const IterSum* constraint = constraint_ending_in(args[at])) {
      // i*9 + j*2 + k under j*2 + k < 9: the group's extent, 9, is what the next scale is measured by.
      for (auto it = constraint->args.rbegin(); it != constraint->args.rend(); ++it) {
        size_t k = 0;
        while (k < args.size() && (visited[k] || !same_split(args[k], *it, false) ||
                                   !analyzer_.prove_equal(imul(it->scale, scale), args[k].scale)))
          ++k;
        if (k == args.size()) return {};
        visited[k] = true;
        flat.push_back(args[k]);
      }
      const Fused* group = find_fused(*constraint);
      IterSplit split = whole(group->mark);
      split.scale = ifloordiv(scale, base_scale);
      grouped.push_back(split);
      extra = iadd(extra, imul(group->offset, scale));
      expected = imul_normal(group->mark->extent, scale);
      taken += constraint->args.size();
    } else {
      visited[at] = true;
      IterSplit split = args[at];
      split.scale = analyzer_.simplify(ifloordiv(split.scale, base_scale));
      flat.push_back(split);
      grouped.push_back(split);
      expected = imul_normal(args[at].extent, scale);
      ++taken;
    }
  }

  IterSum flattened{{flat.rbegin(), flat.rend()}, zero_of(dtype)};
  auto result = [&](const IterMarkRef& mark) {
    IterSplit split = whole(mark);
    split.scale = base_scale;
    return IterSum{{split}, iadd(sum.base, extra)};
  };
  if (Fused* old = find_fused(flattened)) {
    if (!analyzer_.prove_equal(extra, imul(old->offset, base_scale))) return {};
    return result(old->mark);
  }
  IterSum structured{{grouped.rbegin(), grouped.rend()}, zero_of(dtype)};
  IterMarkRef mark(new IterMark(structured, iadd(combine_exprs(Kind::div, expected, base_scale), tail)));
  fused_.push_back({std::move(flattened), std::move(structured), mark, extra});
  return result(mark);
}

void IterRewriter::constrain(const Expr& expr, Expr min, Expr max) {
  IterSum sum = as_sum(value_of(expr));
  if (!is_zero(sum.base)) {
    if (min) min = isub(min, sum.base);
    if (max) max = isub(max, sum.base);
    sum.base = zero_of(sum.base->dtype);
  }
  auto fused = sum.args.empty() ? std::nullopt : fuse(sum, false);
  if (!fused || !is_one(fused->args[0].scale)) {
    note_error("a condition is on an expression that is not one iterator of scale 1");
    return;
  }
  const IterMarkRef made = fused->args[0].source;
  auto at = std::ranges::find_if(fused_, [&](const Fused& f) { return f.mark == made; });
  if (at == fused_.end()) {
    note_error("a condition is on an expression that is not a sum of iterators");
    return;
  }
  Fused& f = *at;
  Expr low = f.offset, high = iadd(low, f.mark->extent), shift = zero_of(low->dtype);
  if (min) {
    Expr raised = analyzer_.prove(combine_exprs(Kind::ge, min, low)) ? min : combine_exprs(Kind::max, min, low);
    shift = isub(raised, low);
    low = raised;
  }
  if (max)  // most conditions tighten: where that is provable, the bound itself reads better than a minimum
    high = analyzer_.prove(combine_exprs(Kind::le, max, high)) ? max : combine_exprs(Kind::min, max, high);
  bool tightens = !is_zero(shift) || !analyzer_.prove_equal(high, iadd(f.offset, f.mark->extent));
  // The group starts at 0: the shift goes into its sum, and into the offset of its uses.
  if (!is_zero(shift)) f.structured.base = isub(f.structured.base, shift);
  f.mark = IterMarkRef(new IterMark(f.structured, isub(high, low)));
  f.offset = low;
  constrained_.push_back({f.flattened, tightens});
}

IterSum IterRewriter::normalized(IterSum sum) {
  if (auto combined = combine_same_source(sum)) sum = std::move(*combined);
  struct Item {
    int64_t constant;
    int symbols;
    IterSplit split;
  };
  std::vector<Item> items;
  for (IterSplit split : sum.args) {
    std::optional<int64_t> constant = 1;
    int symbols = 0;
    Expr symbol = one_of(split.scale->dtype);
    for_each_operand(split.scale, Kind::mul, [&](const Expr& f) {
      if (auto v = as_int(f)) {
        constant = constant ? checked_mul(*constant, *v) : std::nullopt;
      } else {
        symbol = imul(symbol, f);
        ++symbols;
      }
    });
    if (constant && fits(*constant, symbol->dtype)) split.scale = imul(symbol, int_imm(*constant, symbol->dtype));
    items.push_back({constant.value_or(0), symbols, std::move(split)});
  }
  std::ranges::stable_sort(items, [](const Item& a, const Item& b) {
    return a.constant != b.constant ? a.constant > b.constant : a.symbols > b.symbols;
  });
  sum.args.clear();
  for (Item& i : items) sum.args.push_back(std::move(i.split));
  return sum;
}

}  // namespace sator::arith
