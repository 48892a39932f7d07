// Which variables of graphs name the same memory, and whose memory call_tir_inplace overwrites.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <vector>

#include "relax/nodes.h"

namespace sator::relax {

/// What a binding's value is a view of; null where it has memory of its own.
using ViewOf = std::function<RExpr(const Binding&)>;
/// R.reshape, whose result may be its argument's memory seen in another shape.
RExpr reshaped(const Binding& b);

/// The memory of every variable of a module's graph functions, followed through names, tuples and their items, branches,
/// and calls of functions, local ones too: a function overwrites of its arguments what its calls overwrite. Where branches
/// differ a variable names what either gives. Of a function that a parameter or external code holds nothing is known: it is
/// taken to overwrite nothing and to return memory of its own. Variables that a rewrite made are not known either.
class SharedMemory {
 public:
  explicit SharedMemory(const Module& module, ViewOf view_of = {});
  /// Of a function alone, or one that has not joined the module yet whose functions it calls.
  explicit SharedMemory(const Function& function, const Module* module = nullptr, ViewOf view_of = {});

  /// Whether a call overwrites memory that the variable names: what it holds changes, and nothing else may share it.
  bool is_overwritten(const RVar& v) const;
  /// Which bindings of a block of the module read memory that a call behind them overwrites: moved behind it, they would
  /// read something else. A binding that only names a variable reads nothing, nor does a call whose result the next overwrites.
  std::vector<bool> read_before_overwritten(const BindingBlock& block) const;
  /// Those of them that read what binding `at` overwrites.
  std::vector<size_t> readers_before(const BindingBlock& block, size_t at) const;

  /// A call that overwrites a constant.
  struct ConstantWrite {
    RCallRef call;
    size_t argument;  ///< of the call: an input of call_tir_inplace, or an argument of a function that overwrites it
  };
  const std::vector<ConstantWrite>& constant_writes() const { return constant_writes_; }

 private:
  /// Memory by the node that brings it (a variable that is bound to a new value or to none, a constant) and, where that is
  /// a tuple, the way to the item.
  struct Region {
    const NodeBase* owner = nullptr;
    std::vector<size_t> path;
    bool is_constant = false;
    auto operator<=>(const Region&) const = default;
  };
  using Regions = std::set<Region>;
  /// What a value names: its items' memory where it is a tuple of which they are known, else all that it may be.
  struct Named {
    std::vector<Named> items;
    Regions regions;
    bool operator==(const Named&) const = default;
  };
  /// What a call of a function does, in the regions of its parameters.
  struct Effect {
    Named result;
    Regions overwritten;
    bool operator==(const Effect&) const = default;
  };
  /// The arguments of a call by the parameters of what is called.
  using Arguments = std::map<const NodeBase*, Named>;

  void follow(std::vector<const Function*> functions);
  Effect effect_of(const Function& f);
  Named sequence(const RExpr& body);
  Named value(const RExpr& e, const RVar& var);
  Named leaf(const RExpr& e) const;
  Named call(const RCall& c, const RVar& var);
  Named in_place_call(const RCall& c, const RVar& var);
  Named function_call(const RCall& c, const Function& callee, const RVar& var);
  const Function* callee_of(const RExpr& op) const;
  void overwrite(const Regions& regions, const RCall& c, size_t argument, const RVar& var);

  static Named named_by(const NodeBase& owner, const StructInfo& info, std::vector<size_t> path = {});
  static Named joined(const Named& a, const Named& b);
  static Named item(const Named& tuple, size_t index);
  static Regions all(const Named& n);

  const Module* module_;
  ViewOf view_of_;
  std::map<const RVar*, Named> names_;
  std::map<const RVar*, const Function*> functions_;  ///< that variables name
  std::map<const Function*, Effect> effects_;
  std::map<const RVar*, Regions> writes_;  ///< by the variable that is bound to the call
  Regions overwritten_;
  std::vector<ConstantWrite> constant_writes_;
};

}  // namespace sator::relax
