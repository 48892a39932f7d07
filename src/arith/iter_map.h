// Quasi-affine maps of iterators: which index expressions walk a box exactly, and what undoes them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "arith/intset.h"
#include "base/object.h"
#include "ir/expr.h"

namespace sator::arith {

class Analyzer;
struct IterMark;
struct IterSplit;
using IterMarkRef = Ref<const IterMark>;

/// args[0] + args[1] + ... + base; the base holds no iterator.
struct IterSum {
  PooledVector<IterSplit> args;
  Expr base;
};

/// An iterator that runs over [0, extent): an expression (an input variable, or `var - min`), or a sum of splits.
/// Marks are compared by identity: one object stands for one iterator.
struct IterMark final : Object {
  Expr expr;  ///< null if the source is `sum`
  IterSum sum;
  Expr extent;
  bool of_split = false;  ///< the sum is one split that was cut again with padding

  IterMark(Expr expr, Expr extent);
  IterMark(IterSum sum, Expr extent);
  ~IterMark() override;
  bool is_sum() const { return !expr; }
  DType dtype() const;
};

/// ((source // lower_factor) % extent) * scale
struct IterSplit {
  IterMarkRef source;
  Expr lower_factor, extent, scale;
  Expr shift = nullptr;  ///< while padding is being found: how far the source was moved for this split; null is 0
};

enum class IterMapLevel {
  bijective,   ///< every point of the image comes from exactly one iteration
  surjective,  ///< every point of the box of the indices' extents is reached
  no_check,
};

/// What detect_iter_map found: the indices as sums, or why there is no such map.
///   padding_predicate  true for points of the image that come from no iteration (i // 4, i % 4 with i in [0, 18))
struct IterMap {
  std::vector<IterSum> indices;
  Expr padding_predicate;
  std::string error;
  bool ok() const { return error.empty(); }
};

/// The indices as a quasi-affine map of the iterators: sums of splits (`//`, `%`, `*` by a factor) in which each iterator's
/// splits fit together, and the indices are independent.
///   iters      the iterators with their ranges, which may not depend on each other
///   predicate  comparisons `expr < c`, `expr >= c`, ... joined by `and` (null: none): only such iterations count
///   simplify_trivial_iterators  iterators of extent 1 are replaced by their one value
/// Source: the class and its normal form are those of TensorIR (Feng et al., "TensorIR", ASPLOS 2023, section 3.3).
IterMap detect_iter_map(const std::vector<Expr>& indices, const RangeMap& iters, const Expr& predicate,
                        IterMapLevel level, Analyzer& analyzer, bool simplify_trivial_iterators = true);

/// Simplifies the indices through their map; the indices themselves where there is none.
std::vector<Expr> iter_map_simplify(const std::vector<Expr>& indices, const RangeMap& iters, const Expr& predicate,
                                    IterMapLevel level, Analyzer& analyzer, bool simplify_trivial_iterators = true);

/// One index as a sum of splits, larger scales first, without any check; parts that are not of that form stay in the base.
IterSum normalize_to_iter_sum(const Expr& index, const RangeMap& iters, Analyzer& analyzer);

/// The ordinary expression.
Expr to_expr(const IterSplit& split, Analyzer& analyzer);
Expr to_expr(const IterSum& sum, Analyzer& analyzer);
Expr normalize_iter_map_to_expr(const IterSum& sum);

/// The value of each input variable, given the values of the indices.
///   map  as detect_iter_map(bijective) gives it
using Inverse = VarMap;
/// Errors (as text): a sum that is not a plain fusion.
struct InverseResult {
  Inverse values;
  std::string error;
  bool ok() const { return error.empty(); }
};
InverseResult inverse_affine_iter_map(const std::vector<IterSum>& map, const std::vector<Expr>& outputs);

/// binding = outer * inner_extent + inner, where `inner` uses only the given iterators and `outer` none of them.
struct Division {
  Expr outer, outer_extent, inner, inner_extent;
};
struct SubspaceDivision {
  std::vector<Division> bindings;
  Expr outer_predicate, inner_predicate;
  std::string error;
  bool ok() const { return error.empty(); }
};
/// Divides bindings (a quasi-affine map) into the part over `sub_iters` and the rest, as blockize needs it.
SubspaceDivision subspace_divide(const std::vector<Expr>& bindings, const RangeMap& iters,
                                 const std::vector<VarRef>& sub_iters, const Expr& predicate, IterMapLevel level,
                                 Analyzer& analyzer, bool simplify_trivial_iterators = true);

}  // namespace sator::arith
