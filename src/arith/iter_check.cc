// Do the splits of the iterators fit together?
#include <algorithm>

#include "arith/interval_eval.h"
#include "arith/iter_rewriter.h"
#include "arith/kind.h"

namespace sator::arith {

MarkSplits::MarkSplits(const std::vector<IterSum>& sums) {
  for (const IterSum& sum : sums) {
    for (const IterSplit& split : sum.args) {
      size_t at = visit(split.source);
      entries_[at].splits.push_back(split);
    }
  }
}

size_t MarkSplits::visit(const IterMarkRef& mark) {
  for (size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].mark == mark) return i;
  size_t at = entries_.size();
  entries_.push_back({mark, {}});
  if (mark->is_sum() && !mark->of_split) {
    for (const IterSplit& split : mark->sum.args) {
      size_t inner = visit(split.source);
      entries_[inner].splits.push_back(split);
    }
  }
  return at;
}

const MarkSplits::Entry* MarkSplits::find(const IterMarkRef& mark) const {
  for (const Entry& e : entries_)
    if (e.mark == mark) return &e;
  return nullptr;
}

/// Whether the splits can be digits of one number that runs over the mark's extent: sorted from the lowest, each lower
/// factor is the product of what is below it. Where the map need not be bijective, digits may be missing.
bool IterRewriter::splits_fit(const IterMarkRef& mark, const PooledVector<IterSplit>& splits, IterMapLevel level) {
  PooledVector<bool> used(splits.size(), false);
  Expr expected = one_of(mark->dtype());
  // The unused split of the least lower factor, if all of those are multiples of what is expected.
  auto skip_to = [&]() -> size_t {
    size_t least = splits.size();
    for (size_t i = 0; i < splits.size(); ++i) {
      if (used[i]) continue;
      if (!proves_divisible(splits[i].lower_factor, expected, analyzer_)) return splits.size();
      if (least == splits.size() || proves_divisible(splits[least].lower_factor, splits[i].lower_factor, analyzer_))
        least = i;
    }
    return least;
  };
  for (size_t taken = 0; taken < splits.size(); ++taken) {
    size_t at = 0;
    while (at < splits.size() && (used[at] || !analyzer_.prove_equal(splits[at].lower_factor, expected))) ++at;
    if (at == splits.size()) {
      if (level == IterMapLevel::bijective) return false;
      at = skip_to();
      if (at == splits.size()) return false;
    }
    used[at] = true;
    expected = imul(splits[at].lower_factor, splits[at].extent);
  }
  const Padding* padding = made_by_padding(mark);
  bool full = analyzer_.prove_equal(expected, mark->extent);
  if (level == IterMapLevel::bijective) return !padding && full;
  bool divides = full || proves_divisible(mark->extent, expected, analyzer_);
  if (!padding) return divides;
  if (level != IterMapLevel::surjective) return true;
  // A padded iterator walks only [left, left + n) of its extent. If n points cover a whole period of the digits, all are
  // reached; else only one digit, the highest, may be used, and its first and last value must have a point.
  const Expr& n = padding->mark->extent;
  auto is = [&](Kind kind, const Expr& a, const Expr& b) { return analyzer_.prove(combine_exprs(kind, a, b)); };
  if (divides && is(Kind::ge, n, expected)) return true;
  if (!full || splits.size() != 1) return false;
  const Expr& lower = splits[0].lower_factor;
  return is(Kind::lt, padding->left, lower) && is(Kind::gt, iadd(iadd(padding->left, n), lower), mark->extent);
}

bool IterRewriter::map_is_valid(const std::vector<IterSum>& indices, IterMapLevel level) {
  MarkSplits marks(indices);
  for (const auto& e : marks.entries())
    if (!splits_fit(e.mark, e.splits, level)) return false;
  if (level != IterMapLevel::bijective) return true;
  return std::ranges::all_of(inputs_, [&](const IterMarkRef& m) { return is_one(m->extent) || marks.find(m); });
}

namespace {

/// The iterators at the bottom of a mark.
void collect_inputs(const IterMarkRef& mark, PooledVector<const IterMark*>& out) {
  if (!mark->is_sum()) {
    out.push_back(mark.get());
    return;
  }
  for (const IterSplit& s : mark->sum.args) collect_inputs(s.source, out);
}

}  // namespace

bool IterRewriter::loses_a_constraint(const std::vector<IterSum>& indices) {
  if (constrained_.empty()) return false;
  MarkSplits marks(indices);
  PooledVector<const IterMark*> used;
  for (const auto& e : marks.entries()) collect_inputs(e.mark, used);
  for (const Constrained& c : constrained_) {
    if (!c.tightens || marks.find(find_fused(c.flattened)->mark)) continue;
    PooledVector<const IterMark*> own;
    for (const IterSplit& s : c.flattened.args) collect_inputs(s.source, own);
    for (const IterMark* m : own)
      if (std::ranges::find(used, m) != used.end()) return true;
  }
  return false;
}

bool IterRewriter::constraints_are_disjoint() const {
  for (size_t i = 0; i < constrained_.size(); ++i) {
    for (size_t j = i + 1; j < constrained_.size(); ++j) {
      // The shorter comes first: all of its splits are in the longer one, or none.
      size_t common = 0;
      for (const IterSplit& a : constrained_[i].flattened.args)
        common +=
            std::ranges::any_of(constrained_[j].flattened.args, [&](const IterSplit& b) { return same_split(a, b); });
      if (common != 0 && common != constrained_[i].flattened.args.size()) return false;
    }
  }
  return true;
}

}  // namespace sator::arith
