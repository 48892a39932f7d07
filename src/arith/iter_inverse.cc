// Undoing a bijective map: the iterators from the indices.
#include <algorithm>

#include "arith/fold.h"
#include "arith/iter_rewriter.h"
#include "arith/kind.h"

namespace sator::arith {
namespace {

class Inverter {
 public:
  InverseResult run(const std::vector<IterSum>& map, const std::vector<Expr>& outputs) {
    for (size_t i = 0; i < map.size() && result_.ok(); ++i) set(map[i], outputs[i]);
    // A mark's value is known once all uses of it have added theirs: users come before what they use.
    for (const IterSum& sum : map) order(sum);
    std::ranges::reverse(order_);
    for (const IterMarkRef& mark : order_) {
      if (!result_.ok()) break;
      pass_on(mark);
    }
    return std::move(result_);
  }

 private:
  void order(const IterSum& sum) {
    for (const IterSplit& s : sum.args) {
      if (std::ranges::find(order_, s.source) != order_.end()) continue;
      if (s.source->is_sum()) order(s.source->sum);
      order_.push_back(s.source);
    }
  }
  Expr& value(const IterMarkRef& mark) {
    for (auto& [m, v] : values_)
      if (m == mark) return v;
    values_.emplace_back(mark, nullptr);
    return values_.back().second;
  }
  void add(const IterMarkRef& mark, const Expr& e) {
    Expr& v = value(mark);
    v = v ? iadd(v, e) : e;
  }
  void pass_on(const IterMarkRef& mark) {
    Expr v = value(mark);
    if (!v) v = zero_of(mark->dtype());
    if (mark->is_sum()) return set(mark->sum, v);
    // var, or var - min
    if (VarRef var = sator::cast<Var>(mark->expr)) {
      result_.values[var] = v;
    } else if (const Sub* n = mark->expr.as<Sub>(); n && n->a.as<Var>()) {
      result_.values[sator::cast<Var>(n->a)] = iadd(v, n->b);
    } else if (const Add* n = mark->expr.as<Add>(); n && n->a.as<Var>()) {
      result_.values[sator::cast<Var>(n->a)] = isub(v, n->b);
    } else {
      result_.error = "an iterator is not a variable";
    }
  }
  /// Gives the value of a sum to its splits: digits of it, if there are several.
  void set(const IterSum& sum, const Expr& output) {
    if (sum.args.empty()) return;
    Expr input = isub(output, sum.base);
    if (sum.args.size() == 1) {
      const IterSplit& s = sum.args[0];
      Expr minus_one = int_imm(-1, s.scale->dtype);
      if (!analyzer_.prove_equal(s.scale, one_of(s.scale->dtype)) && !analyzer_.prove_equal(s.scale, minus_one)) {
        result_.error = "an index is a multiple of an iterator";
        return;
      }
      return split(s, imul(input, s.scale));
    }
    Expr expected = sum.args.back().scale;
    for (size_t i = sum.args.size(); i > 0; --i) {
      const IterSplit& s = sum.args[i - 1];
      if (!analyzer_.prove_equal(s.scale, expected)) {
        result_.error = "an index is not a fusion of iterators: the scales do not follow from the extents";
        return;
      }
      expected = imul(expected, s.extent);
      Expr digit = ifloordiv(input, s.scale);
      split(s, i > 1 ? ifloormod(digit, s.extent) : digit);
    }
  }
  void split(const IterSplit& s, const Expr& v) { add(s.source, imul(v, s.lower_factor)); }

  Analyzer analyzer_;
  PooledVector<IterMarkRef> order_;
  PooledVector<std::pair<IterMarkRef, Expr>> values_;
  InverseResult result_;
};

}  // namespace

InverseResult inverse_affine_iter_map(const std::vector<IterSum>& map, const std::vector<Expr>& outputs) {
  if (map.size() != outputs.size()) return {{}, "as many outputs as indices are needed"};
  return Inverter().run(map, outputs);
}

}  // namespace sator::arith
