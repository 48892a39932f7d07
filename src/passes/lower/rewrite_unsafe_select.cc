// T.Select computes both of its values. Where one of them may not be computed unless it is chosen, it becomes a branch:
//   T.Select(i > 1, A[i - 1], x)   =>   T.if_then_else(i > 1, A[i - 1], x)
#include <algorithm>

#include "ir/builtins.h"
#include "passes/lower/lower.h"

namespace sator::passes {

using namespace tir;

namespace {

/// Whether computing the expression reads memory, or does what nothing is known of.
bool is_unsafe(const NodeRef& e) {
  bool found = false;
  walk(
      e,
      [&](const BufferLoad&) {
        found = true;
        return false;
      },
      [&](const Call& n) {
        if (n.op == "tir.if_then_else") {  // its values are computed only where they are chosen
          found |= is_unsafe(n.args[0]);
          return false;
        }
        if (n.op == "tir.address_of") {  // reads nothing but the indices
          const BufferLoad* element = n.args[0].as<BufferLoad>();
          found |= element && std::ranges::any_of(element->indices, [](const Expr& i) { return is_unsafe(i); });
          return false;
        }
        const Builtin* row = find_builtin(n.op);
        found |= !row || row->effect != Effect::pure;
        return !found;
      });
  return found;
}

}  // namespace

PrimFuncRef rewrite_unsafe_select(const PrimFuncRef& func, const LowerOptions&) {
  return with_body(func, transform(func->body, [](const Select& n) -> Expr {
                     const bool unsafe = is_unsafe(n.true_value) || is_unsafe(n.false_value);
                     if (!unsafe || n.condition->dtype != boolean) return ref(n);
                     return if_then_else(n.condition, n.true_value, n.false_value);
                   }));
}

}  // namespace sator::passes
