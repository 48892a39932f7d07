#include <algorithm>
#include <set>

#include "passes/graph/graph.h"
#include "relax/bind.h"
#include "relax/outline.h"
#include "relax/rewrite.h"
#include "relax/struct_info.h"

namespace sator::passes {

using namespace relax;

namespace {

/// What of a function's variables can go, and under which name the others are bound.
struct Plan {
  std::map<RVarRef, RVarRef> alias;   ///< this binding goes: what it is another name of
  std::map<RVarRef, RVarRef> rename;  ///< bound under another variable
  std::set<RVarRef> constants;        ///< bound to a constant: uses read the constant
  std::map<RVarRef, RExpr> items;     ///< of a tuple that is known: the item itself
};

/// Where variables are bound and used.
class UseCounts {
 public:
  explicit UseCounts(const Function& f) { function(f); }

  struct Bound {
    RVarRef var;
    RExpr value;
    bool same_info;  ///< what is known of the variable is what is known of its value
  };
  std::vector<Bound> bound;                     ///< in order
  std::map<RVarRef, const BindingBlock*> home;  ///< the block that binds the variable
  std::set<RVarRef> exposed;                    ///< used outside of its dataflow block

 private:
  void function(const Function& f) {
    block_ = nullptr;
    sequence(f.body);
  }
  void sequence(const RExpr& e) {
    const BindingBlock* around = std::exchange(block_, nullptr);
    const SeqExpr* seq = e.as<SeqExpr>();
    if (seq) {
      for (const BindingBlockRef& block : seq->blocks) {
        block_ = block.get();
        for (const Binding& b : block->bindings) binding(b);
      }
      block_ = nullptr;
    }
    use(seq ? seq->body : e);
    block_ = around;
  }
  void binding(const Binding& b) {
    RVarRef var = bound_var(b);
    RExpr value = bound_value(b);
    bound.push_back({var, value, value->sinfo && equal(var->sinfo, value->sinfo) && !tells_sizes(b)});
    home[var] = block_;
    if (const If* branch = value.as<If>()) {
      use(branch->condition);
      sequence(branch->true_branch);
      sequence(branch->false_branch);
    } else if (const LocalFunction* inner = value.as<LocalFunction>()) {
      const BindingBlock* around = block_;
      const Function* outer = std::exchange(local_, inner->function.get());
      function(*inner->function);
      local_ = outer;
      block_ = around;
    } else {
      use(value);
    }
  }
  /// Whether the match_cast tells a local function sizes of what it captures, which it does not know without.
  bool tells_sizes(const Binding& b) const {
    const MatchCast* m = b.as<MatchCast>();
    if (!m || !local_) return false;
    const std::vector<VarRef> given = sizes_defined_by(local_->params);
    return std::ranges::any_of(definable_vars(m->sinfo),
                               [&](const VarRef& v) { return std::ranges::find(given, v) == given.end(); });
  }
  void use(const RExpr& e) {
    for (const RVarRef& v : rvars_in(e)) {
      auto at = home.find(v);
      if (!block_ || !block_->is_dataflow || (at != home.end() && at->second != block_)) exposed.insert(v);
    }
  }

  const BindingBlock* block_ = nullptr;
  const Function* local_ = nullptr;  ///< the innermost local function around
};

Plan plan_of(const UseCounts& uses) {
  Plan plan;
  std::map<RVarRef, RExpr> known;
  std::vector<std::pair<RVarRef, RVarRef>> trivial;
  for (const UseCounts::Bound& b : uses.bound) {
    RExpr value = b.value;
    if (const TupleGetItem* item = value.as<TupleGetItem>()) {
      RExpr from = item->tuple;
      for (auto at = known.find(cast<RVar>(from)); at != known.end(); at = known.find(cast<RVar>(from)))
        from = at->second;
      const Tuple* t = from.as<Tuple>();
      if (t && item->index >= 0 && static_cast<size_t>(item->index) < t->items.size()) {
        value = t->items[static_cast<size_t>(item->index)];
        plan.items[b.var] = value;
      }
    }
    known[b.var] = value;
    if (value.as<Constant>()) plan.constants.insert(b.var);
    if (RVarRef other = cast<RVar>(value); other && b.same_info) trivial.emplace_back(b.var, other);
    const BindingBlock* home = uses.home.at(b.var);
    if (!b.var->is_dataflow && home->is_dataflow && !uses.exposed.contains(b.var))
      plan.rename[b.var] = with(b.var, &RVar::is_dataflow, true);
  }
  std::map<RVarRef, RVarRef> direct(trivial.begin(), trivial.end());
  for (const auto& [var, first] : trivial) {
    RVarRef other = first;
    for (auto at = direct.find(other); at != direct.end(); at = direct.find(other)) other = at->second;
    auto home = uses.home.find(other);
    const bool stays_inside = var->is_dataflow || !uses.exposed.contains(var);
    auto renamed = plan.rename.find(other);
    const bool other_inside =
        renamed != plan.rename.end() ? RVarRef(renamed->second)->is_dataflow : bool(other->is_dataflow);
    if (stays_inside || !other_inside) {
      plan.alias[var] = other;
    } else if (home != uses.home.end() && home->second == uses.home.at(var)) {
      // The variable is needed outside: its value is bound to it at once.
      plan.rename[other] = var;
      plan.alias[var] = other;
    }
  }
  return plan;
}

class Canonicalizer final : public GraphRewriter {
 public:
  Canonicalizer(BlockBuilder& builder, Plan plan) : GraphRewriter(builder), plan_(std::move(plan)) {}

 private:
  RExpr value(const RVarRef& var, const RExpr& value) override {
    if (plan_.constants.contains(var) && !plan_.rename.contains(var)) {
      auto item = plan_.items.find(var);
      replace(var, item == plan_.items.end() ? value : item->second);
    }
    return value;
  }
  RVarRef variable(const RVarRef& var) override {
    auto at = plan_.rename.find(var);
    return at == plan_.rename.end() ? var : at->second;
  }
  bool drops(const RVarRef& var) override {
    auto at = plan_.alias.find(var);
    if (at == plan_.alias.end()) return false;
    replace(var, current(at->second));
    return true;
  }

  Plan plan_;
};

}  // namespace

FuncRef canonicalize_bindings(const FuncRef& func, BlockBuilder& builder) {
  return Canonicalizer(builder, plan_of(UseCounts(*func))).function(*func);
}

ModuleRef canonicalize_bindings(const ModuleRef& module, const PassContext&) {
  return rewrite_functions(module,
                           [](const FuncRef& f, BlockBuilder& builder) { return canonicalize_bindings(f, builder); });
}

}  // namespace sator::passes
