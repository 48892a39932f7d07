// What can be said of integer index expressions: bounds, residues, simpler forms, proofs.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "arith/facts.h"
#include "ir/expr.h"

namespace sator::arith {

struct IntSet;

/// How hard `prove` tries: `simple` simplifies; `symbolic` also bounds a comparison by the symbolic ranges of its variables
/// (i0 * 32 + i1 < ceildiv(n, 32) * 32).
enum class Strength { simple, symbolic };

/// Facts about variables, and what follows from them for expressions. Index arithmetic (int32, int64) is taken not to
/// overflow; folding a constant never does. Size variables are >= 0; a divisor is not 0.
///
/// The forms that `simplify` leaves are TVM's: sums are ordered by scale, constants stand last, comparisons are < and <=.
/// Cost: a few microseconds for an index expression.
class Analyzer {
 public:
  Analyzer();
  ~Analyzer();
  Analyzer(const Analyzer&) = delete;
  Analyzer& operator=(const Analyzer&) = delete;

  // ---- Facts that hold from now on. A later fact about the same variable replaces the earlier.
  /// var is in [min, min + extent); an extent of 1 is a value.
  void bind(const VarRef& var, const RangeRef& range);
  /// var is `value`: simplify puts it in the variable's place.
  void bind(const VarRef& var, const Expr& value);
  void bind(const VarRef& var, Bounds bounds);
  void bind(const VarRef& var, Modular modular);
  /// A shape `value` (n, n * 4, n + 1) is >= 0: its one variable is bounded accordingly.
  void assume_size(const Expr& value);

  /// While this lives, its condition holds. Scopes nest: the last one made must end first.
  class Scope {
   public:
    Scope(Scope&& o) noexcept : analyzer_(std::exchange(o.analyzer_, nullptr)) {
      std::copy(o.marks_, o.marks_ + 5, marks_);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(Scope&&) = delete;
    ~Scope();

   private:
    friend class Analyzer;
    Scope(Analyzer& analyzer, const Expr& condition);
    Analyzer* analyzer_;
    size_t marks_[5];
  };
  [[nodiscard]] Scope with_constraint(const Expr& condition) { return Scope(*this, condition); }

  // ---- Forms.
  /// The canonical form, then rules and canonical form in turn, `steps` times.
  Expr simplify(const Expr& e, int steps = 2);
  /// By rewrite rules alone.
  Expr rewrite(const Expr& e);
  /// As a sum of scaled, split terms: (x // 4) * 4 + x % 4 is x.
  Expr canonical(const Expr& e);

  // ---- Proofs: true if it always holds; false means "not known".
  bool prove(const Expr& condition, Strength strength = Strength::simple);
  bool prove_equal(const Expr& a, const Expr& b);
  bool prove_ge(const Expr& e, int64_t bound);
  bool prove_lt(const Expr& e, int64_t bound);
  /// lhs <= shape, where an unknown symbolic factor of the shape counts as at least 1: 32 <= n * 32.
  bool prove_le_shape(const Expr& lhs, const Expr& shape);

  // ---- Facts of an expression.
  Bounds bounds(const Expr& e);
  Modular modular(const Expr& e);
  /// The symbolic interval over all values of the bound variables.
  IntSet set(const Expr& e);
  /// The same over the given domains instead of the bound ones.
  IntSet set(const Expr& e, const PooledMap<VarRef, IntSet>& domains);
  /// What is known from bindings and conditions of how a stands to b.
  Order known_order(const Expr& a, const Expr& b);

  // ---- Options.
  /// Also compare by chains of known inequalities: a <= b and b <= c give a <= c.
  bool chain_inequalities = false;
  /// In `a and b`, simplify each side under the other.
  bool constrain_branches = false;
  /// Called with the name of each rule that is applied.
  std::function<void(std::string_view)> on_rule;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace sator::arith
