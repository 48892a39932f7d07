// Algebra on graphs: calls that other calls take the place of, until nothing changes.
#pragma once

#include <set>

#include "relax/nodes.h"
#include "relax/rewrite.h"

namespace sator::passes {

/// The values that variables are bound to, for a rewrite that looks beyond one call.
class KnownValues {
 public:
  explicit KnownValues(relax::BlockBuilder& builder) : builder_(builder) {}
  /// The value behind variables.
  relax::RExpr value(relax::RExpr e) const;
  /// The call of this op behind the expression; null if it is none.
  const relax::RCall* call(const relax::RExpr& e, const char* op) const;
  arith::Analyzer& arith() const { return builder_.arith(); }

 private:
  relax::BlockBuilder& builder_;
};

/// What takes the place of a call; null where it stays. Calls inside of the result need no variables.
using CallRewrite = std::function<relax::RExpr(const relax::RCallRef& call, const KnownValues& known)>;

/// The function with calls rewritten, simplified (bindings of other names, common subexpressions, what is unused), again and
/// again until it stays the same.
relax::FuncRef rewrite_calls(const relax::FuncRef& func, relax::BlockBuilder& builder, const CallRewrite& rewrite);
/// Each graph function of the module so; `rewrite_of` gives a function its rewrite.
ModuleRef rewrite_calls(const ModuleRef& module, const std::function<CallRewrite(const relax::Function&)>& rewrite_of);

/// Parameters that are known when the module is compiled (those after the attribute num_input), and all that depends on them
/// alone.
std::set<relax::RVarRef> known_when_compiled(const relax::Function& f);

relax::RExpr matmul(relax::RExpr a, relax::RExpr b);
/// The axes of a permute_dims of a tensor of known rank: its attribute, or all in reverse. Nothing where neither is known.
std::optional<std::vector<int64_t>> permutation_of(const relax::RCall& permute_dims);

}  // namespace sator::passes
