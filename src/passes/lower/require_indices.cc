// Accesses that leave their buffer in some iteration, whatever the arguments are.
#include <algorithm>

#include "arith/linear.h"
#include "passes/lower/lower.h"
#include "tir/print.h"

namespace sator::passes {

using namespace tir;

namespace {

class AccessChecker {
 public:
  explicit AccessChecker(const PrimFunc& func) : func_(func) {}
  /// What runs for sure where its loops do; conditions are not looked behind.
  void visit(const NodeRef& node) {
    if (const For* n = node.as<For>()) {
      visit(n->min);
      visit(n->extent);
      loops_.push_back(n);
      visit(n->body);
      loops_.pop_back();
    } else if (const BlockRealize* n = node.as<BlockRealize>()) {
      if (!is_one(n->predicate)) return;
      for (size_t i = 0; i < n->values.size(); ++i)
        values_.insert_or_assign(n->block->iter_vars[i]->var, substitute(n->values[i], values_));
      if (n->block->init) visit(n->block->init);
      visit(n->block->body);
    } else if (const BufferStore* n = node.as<BufferStore>()) {
      require_within(*n, *n->buffer, n->indices);
      visit(n->value);
      for (const Expr& i : n->indices) visit(i);
    } else if (const BufferLoad* n = node.as<BufferLoad>()) {
      require_within(*n, *n->buffer, n->indices);
      for (const Expr& i : n->indices) visit(i);
    } else if (const IfThenElse* n = node.as<IfThenElse>()) {
      visit(n->condition);
    } else if (const While* n = node.as<While>()) {
      visit(n->condition);
    } else if (const Select* n = node.as<Select>()) {
      visit(n->condition);
    } else if (const And* n = node.as<And>()) {
      visit(n->a);
    } else if (const Or* n = node.as<Or>()) {
      visit(n->a);
    } else if (const Call* n = node.as<Call>(); n && n->op == "tir.if_then_else") {
      visit(n->args[0]);
    } else if (n && (n->op == "tir.address_of" || n->op == "tir.prefetch")) {  // places, which nothing reads here
    } else if (node.as<ExprNode>() || node.as<StmtNode>()) {
      node->info().each_child(*node, [&](const NodeRef& child) { visit(child); });
    }
  }

 private:
  void require_within(const NodeBase& access, const Buffer& buffer, const std::vector<Expr>& indices) const {
    for (size_t d = 0; d < indices.size() && d < buffer.shape.size(); ++d) {
      const auto extent = as_int(buffer.shape[d]);
      const auto range = extent ? range_of_index(substitute(indices[d], values_)) : std::nullopt;
      if (!range || (range->first >= 0 && range->second < *extent)) continue;
      const auto name = string_attr(func_.attrs, "global_symbol");
      fail(with_program({.what = text("an index of ",
                                      buffer.name,
                                      " is out of range: ",
                                      indices[d],
                                      " comes to ",
                                      range->first < 0 ? range->first : range->second),
                         .needs = text("values from 0 to ", *extent - 1, " in dimension ", d, " of its shape"),
                         .hint = "change the loop or the shape, or guard the access by a condition",
                         .at = {{Ref<const Object>(&access), ""}},
                         .where = name ? text("in func ", *name) : ""},
                        func_));
    }
  }

  /// The least and the largest value of an index that is a sum of multiples of loops; nothing where it is another, or a loop's size is not known.
  std::optional<std::pair<int64_t, int64_t>> range_of_index(const Expr& index) const {
    if (index->dtype.lanes != 1) return {};
    std::vector<VarRef> vars;
    for (const For* loop : loops_) {
      if (as_int(loop->extent).value_or(0) < 1) return {};
      vars.push_back(loop->var);
    }
    const std::optional<arith::Linear> linear = arith::detect_linear(index, vars);
    if (!linear || !as_int(linear->base)) return {};
    int64_t low = *as_int(linear->base), high = low;
    for (size_t k = 0; k < loops_.size(); ++k) {
      const auto step = as_int(linear->coefficients[k]), min = as_int(loops_[k]->min);
      if (!step || (*step != 0 && !min)) return {};
      if (*step == 0) continue;
      const int64_t first = *step * *min, last = first + *step * (*as_int(loops_[k]->extent) - 1);
      low += std::min(first, last), high += std::max(first, last);
    }
    return std::pair(low, high);
  }

  const PrimFunc& func_;
  std::vector<const For*> loops_;
  VarMap values_;
};

}  // namespace

void require_indices(const PrimFunc& func) {
  bool may_end = false;
  walk(func.body, [&](const Call& n) { may_end |= n.op == "tir.ret"; });
  if (!may_end) AccessChecker(func).visit(func.body);  // else what stands behind a return may not run
}

}  // namespace sator::passes
