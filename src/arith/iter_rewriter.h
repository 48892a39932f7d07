// Rewrites index expressions into sums of iterator splits (internal to iter_map.h).
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "arith/analyzer.h"
#include "arith/iter_map.h"

namespace sator::arith {

// Expressions over which splits are built, with constants folded and dtypes brought together.
Expr iadd(const Expr& a, const Expr& b);
Expr isub(const Expr& a, const Expr& b);
Expr imul(const Expr& a, const Expr& b);
Expr ifloordiv(const Expr& a, const Expr& b);
Expr ifloormod(const Expr& a, const Expr& b);
Expr iceildiv(const Expr& a, const Expr& b);
/// a * b with the factors from left to right and the constant last: (lower_factor, extent, scale) multiply in this order.
Expr imul_normal(const Expr& a, const Expr& b);
/// The zero (one) of that dtype.
inline Expr zero_of(DType d) { return int_imm(0, d); }
inline Expr one_of(DType d) { return int_imm(1, d); }

IterSplit whole(const IterMarkRef& mark);
bool same_split(const IterSplit& a, const IterSplit& b, bool with_scale = true);
bool same_sum(const IterSum& a, const IterSum& b);
/// The same source and extent, though perhaps two objects.
bool same_mark(const IterMarkRef& a, const IterMarkRef& b);
/// Whether b surely divides a.
bool proves_divisible(const Expr& a, const Expr& b, Analyzer& analyzer);

/// Every mark that sums are built on, with the splits of it that are used.
class MarkSplits {
 public:
  explicit MarkSplits(const std::vector<IterSum>& sums);
  struct Entry {
    IterMarkRef mark;
    PooledVector<IterSplit> splits;
  };
  const PooledVector<Entry>& entries() const { return entries_; }
  const Entry* find(const IterMarkRef& mark) const;

 private:
  size_t visit(const IterMarkRef& mark);
  PooledVector<Entry> entries_;
};

class IterRewriter {
 public:
  /// What a part of an index is: free of iterators, one split, or a sum.
  using Value = std::variant<Expr, IterSplit, IterSum>;

  IterRewriter(Analyzer& analyzer, const RangeMap& iters, IterMapLevel level, bool simplify_trivial_iterators);

  /// The index as base + one split, fused if it is more.
  IterSum rewrite(const Expr& index);
  /// The same in the first of two rounds, in which iterators may be padded to what divides them.
  IterSum rewrite_and_pad(const Expr& index);
  /// Takes in that min <= expr < max (each may be null) holds.
  void constrain(const Expr& expr, Expr min, Expr max);
  /// As a sum, larger constant scales first.
  IterSum rewrite_to_sum(const Expr& index);

  /// Constrained expressions are nested or apart, never overlapping.
  bool constraints_are_disjoint() const;
  /// Whether a condition plays no part in the indices though they use its iterators: the map would be of iterations that
  /// do not run.
  bool loses_a_constraint(const std::vector<IterSum>& indices);
  /// Whether the splits of each mark fit together as the level asks.
  bool map_is_valid(const std::vector<IterSum>& indices, IterMapLevel level);

  bool requires_padding() const { return requires_padding_; }
  Expr padding_predicate() const { return padding_predicate_; }
  const std::string& error() const { return error_; }

 private:
  struct Padding {
    IterMarkRef mark;
    Expr factor;  ///< what all divisors met so far divide
    Expr left;    ///< points before the first
    IterMarkRef padded;
  };
  /// A mark made by fusing, with what must be added to its value.
  struct Fused {
    IterSum flattened;   ///< the plain splits it was made of
    IterSum structured;  ///< the same with constrained groups as marks of their own
    IterMarkRef mark;
    Expr offset;
  };

  void note_error(std::string what) {
    if (error_.empty()) error_ = std::move(what);
  }

  // Expressions (iter_rewriter.cc).
  Value value_of(const Expr& e);
  Value of_sum(const Expr& e, bool subtract);
  Value of_product(const Expr& e);
  Value of_division(const Expr& e, bool quotient);
  bool uses_iters(const Expr& e) const;
  /// Whether a cast to `dtype` changes none of the values of `inner`, of which v was found.
  bool keeps_values(const Value& v, const Expr& inner, DType dtype);
  static IterSum as_sum(const Value& v);
  static void add(IterSum& to, const IterSplit& split, bool subtract);
  std::optional<IterSum> one_split(const Value& dividend, const Expr& original);
  std::optional<Value> split_quotient(IterSplit lhs, Expr base, Expr divisor);
  std::optional<Value> split_remainder(IterSplit lhs, Expr base, Expr divisor);
  std::optional<std::pair<IterSplit, Expr>> pad_to_divisor(IterSplit split, const Expr& base, const Expr& divisor);
  void pad_mark(Padding& padding, const IterMarkRef& mark);

  // Fusing (iter_fuse.cc).
  IterSum normalized(IterSum sum);
  std::optional<IterSum> combine_same_source(const IterSum& sum) const;
  std::optional<IterSum> fuse(IterSum sum, bool early_exit);
  const IterSum* constraint_ending_in(const IterSplit& split) const;
  int base_iter(const IterSum& sum, const PooledVector<bool>& skip, const IterMark* source, int last) const;
  int iter_of_scale(const IterSum& sum, const PooledVector<bool>& skip, const Expr& scale, const IterMark* source,
                    int last, int first_unit) const;
  int iter_below_scale(const IterSum& sum, const PooledVector<bool>& skip, const Expr& limit, Expr& found) const;
  Fused* find_fused(const IterSum& flattened);

  // Checks (iter_check.cc).
  bool splits_fit(const IterMarkRef& mark, const PooledVector<IterSplit>& splits, IterMapLevel level);

  Padding* find_padding(const IterMarkRef& mark);
  /// How this mark was made from a shorter one, or null.
  const Padding* made_by_padding(const IterMarkRef& padded) const;

  Analyzer& analyzer_;
  IterMapLevel level_;
  PooledMap<VarRef, Value> vars_;
  PooledVector<IterMarkRef> inputs_;
  PooledVector<Padding> paddings_;
  PooledVector<Fused> fused_;
  struct Constrained {
    IterSum flattened;
    bool tightens;  ///< it takes iterations away, as far as is known
  };
  PooledVector<Constrained> constrained_;
  bool padding_round_ = false;
  bool requires_padding_ = false;
  Expr padding_predicate_ = bool_imm(false);
  std::string error_;
};

}  // namespace sator::arith
