// Rewrite rules as data: a pattern with holes, what replaces it, and when.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "arith/kind.h"
#include "ir/expr.h"

namespace sator::arith {

class Rewriter;

// ---- Writing patterns. A pattern is an ordinary expression over holes; nothing is folded while it is written.

/// An expression of a pattern.
struct P {
  Expr e;
  P() = default;
  P(Expr e) : e(std::move(e)) {}
  P(int value) : e(int_imm(value)) {}
  explicit operator bool() const { return static_cast<bool>(e); }
};

namespace pattern {
/// x, y, z, ... match anything; c0 .. c3 match integer constants. A hole that occurs twice matches equal parts.
extern const P x, y, z, w, b1, b2, s1, s2;
extern const P c0, c1, c2, c3;
extern const P yes, no;  ///< the bool constants

inline P binary(Kind k, const P& a, const P& b) { return make_binary(k, a.e, b.e); }
inline P operator+(const P& a, const P& b) { return binary(Kind::add, a, b); }
inline P operator-(const P& a, const P& b) { return binary(Kind::sub, a, b); }
inline P operator*(const P& a, const P& b) { return binary(Kind::mul, a, b); }
inline P truncdiv(const P& a, const P& b) { return binary(Kind::div, a, b); }
inline P truncmod(const P& a, const P& b) { return binary(Kind::mod, a, b); }
inline P floordiv(const P& a, const P& b) { return binary(Kind::floordiv, a, b); }
inline P floormod(const P& a, const P& b) { return binary(Kind::floormod, a, b); }
inline P min(const P& a, const P& b) { return binary(Kind::min, a, b); }
inline P max(const P& a, const P& b) { return binary(Kind::max, a, b); }
inline P operator==(const P& a, const P& b) { return binary(Kind::eq, a, b); }
inline P operator!=(const P& a, const P& b) { return binary(Kind::ne, a, b); }
inline P operator<(const P& a, const P& b) { return binary(Kind::lt, a, b); }
inline P operator<=(const P& a, const P& b) { return binary(Kind::le, a, b); }
inline P operator>(const P& a, const P& b) { return binary(Kind::gt, a, b); }
inline P operator>=(const P& a, const P& b) { return binary(Kind::ge, a, b); }
inline P operator&&(const P& a, const P& b) { return binary(Kind::logical_and, a, b); }
inline P operator||(const P& a, const P& b) { return binary(Kind::logical_or, a, b); }
inline P operator!(const P& a) { return P(make<Not>(a.e)); }
inline P select(const P& c, const P& t, const P& f) { return P(make<Select>(c.e, t.e, f.e)); }
/// Vectors of any number of lanes, the same in the whole rule.
inline constexpr int kAnyLanes = 4;
inline P ramp(const P& base, const P& stride) { return P(make<Ramp>(base.e, stride.e, int{kAnyLanes})); }
inline P broadcast(const P& value) { return P(make<Broadcast>(value.e, int{kAnyLanes})); }
inline P divides(const P& d, const P& n) { return floormod(n, d) == 0; }
}  // namespace pattern

// ---- Rules.

inline constexpr int kHoles = 12;

/// What the holes of a pattern stand for.
struct Bindings {
  std::array<const ExprNode*, kHoles> hole{};
  Lanes lanes = 0;  ///< of the vectors that matched; 0: none did
  DType dtype;      ///< of the operands at the root: literals of the result take it

  Expr operator[](const P& hole_pattern) const;
  int64_t constant(const P& hole_pattern) const;
};

/// One row. The guards in `when` that are about constants are computed; the others (x >= 0, x < c0, x == 0) are proved by
/// the analyzer.
///   again     the result is simplified once more
///   compute   instead of `to`: builds the result from the bindings, or null to decline; `to` then is null
struct Rule {
  std::string_view name;
  std::vector<P> from;
  P to;
  std::vector<P> when = {};
  bool again = false;
  Expr (*compute)(const Bindings&, Rewriter&) = nullptr;
};
inline constexpr bool kAgain = true;

/// A pattern made ready for matching: its nodes in preorder.
class Pattern {
 public:
  Pattern() = default;
  explicit Pattern(const P& pattern);
  bool match(const Expr& e, Bindings& bindings) const;
  /// The expression with the holes filled and constants folded; null if a constant does not fit its dtype.
  Expr fill(const Bindings& bindings) const;
  /// The value of a pattern of constant holes only; nothing if it is not one, or is undefined.
  std::optional<int64_t> value(const Bindings& bindings) const;
  bool only_constants() const { return only_constants_; }
  Kind root() const { return nodes_.front().kind; }
  /// What operand `i` of the root must be; nothing if anything.
  std::optional<Kind> operand_kind(int i) const { return operand_[i]; }

 private:
  enum class Type : uint8_t { hole, constant_hole, literal, node };
  struct Node {
    Type type;
    Kind kind;  ///< of a node
    uint8_t hole = 0;
    bool boolean = false;
    int64_t value = 0;  ///< of a literal
  };
  void add(const Expr& e);
  bool match(const Node*& at, const Expr& e, Bindings& b) const;
  Expr fill(const Node*& at, const Bindings& b, DType dtype) const;
  std::optional<int64_t> value(const Node*& at, const Bindings& b) const;
  std::vector<Node> nodes_;
  std::optional<Kind> operand_[2];
  bool only_constants_ = true;
};

/// A table of rules made ready: rows are tried in their order, those that cannot match are skipped by the kinds of the
/// root and its operands.
class RuleSet {
 public:
  explicit RuleSet(const std::vector<Rule>& rules);
  /// The result of the first row that applies, or null.
  Expr apply(const Expr& e, Rewriter& rewriter) const;
  /// One alternative of one row.
  struct Compiled {
    const Rule* rule;
    const P* source;
    Pattern from, to;
    std::vector<Pattern> when;
  };
  const std::vector<Compiled>& rows() const { return rows_; }

 private:
  static constexpr Kind kAny = Kind::other;
  struct Key {
    Kind root, a, b;
  };
  std::vector<Key> keys_;  ///< parallel to rows_, small enough to scan
  std::vector<Compiled> rows_;
};

/// One list of rows and its prepared form.
struct RuleTable {
  std::string_view name;
  std::vector<Rule> rules;
  RuleSet set;
  RuleTable(std::string_view name, std::vector<Rule> rows) : name(name), rules(std::move(rows)), set(rules) {}
  RuleTable(const RuleTable&) = delete;
};

}  // namespace sator::arith
