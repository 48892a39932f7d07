// Sizes that a call needs to be equal and that only the run can compare.
#pragma once

#include "passes/pass.h"
#include "relax/builder.h"
#include "relax/ops/op.h"

namespace sator::passes {

/// Before a call of R.matmul on x (n, m) and w (p, q):
///   matmul_sizes: R.Shape([m]) = R.match_cast(R.shape([p]), R.Shape([m]))
/// A pair is checked once in a function; sizes that are known to be equal are not checked.
ModuleRef check_sizes(const ModuleRef& module, const PassContext& ctx);

/// The checks of one function, as its bindings are walked in order.
class SizeChecks {
 public:
  explicit SizeChecks(relax::BlockBuilder& builder) : builder_(builder) {}

  /// The call behind the checks that it needs, which the builder emits. Where the result's shape follows only from what was
  /// checked, the operands are cast to the sizes that they turned out to have: the call is another one.
  relax::RExpr checked(const relax::RExpr& value);
  /// What a match_cast of the program checks.
  void note(const relax::MatchCast& cast);

  /// What holds so far; a branch begins with what holds around it, and what it checks does not hold behind it.
  struct Facts {
    std::vector<relax::SizePair> pairs;
    VarMap sizes;   ///< a symbol that equals another size, and that size
    NodeMap casts;  ///< a value, and its variable that is told by the sizes that it turned out to have
  };
  Facts facts;

 private:
  bool is_known(const relax::SizePair& pair) const;
  void add(const relax::SizePair& pair);
  relax::RExpr by_known_sizes(const relax::RExpr& arg, const std::string& op);

  relax::BlockBuilder& builder_;
};

}  // namespace sator::passes
