// if c: S   =>   S, where running S without the condition changes nothing that is read later: more work, fewer branches.
#include "passes/lower/useless_stores.h"
#include "tir/copy.h"

namespace sator::passes {

using namespace tir;

namespace {

constexpr const char* kProbe = "overcompute_probe";

class Overcompute {
 public:
  Overcompute(PrimFuncRef func, bool follow) : func_(std::move(func)) {
    options_.config["tir.RemoveNoOp.use_dataflow_analysis"] = int_imm(follow, i64);
  }

  PrimFuncRef run() {
    std::vector<Ref<const IfThenElse>> branches;
    walk(func_->body, [&](const IfThenElse& n) {
      if (n.condition->dtype.lanes == 1) branches.push_back(ref(n));
    });
    // From the inside, each in the program that the ones before left.
    for (size_t i = branches.size(); i-- > 0;) {
      const IfThenElse& n = *branches[i];
      if (!is_in_body(n)) continue;
      if (n.else_case ? does_the_same(n) : does_nothing_beside(n)) replace(n, n.then_case);
    }
    return func_;
  }

 private:
  bool is_in_body(const IfThenElse& n) const {
    bool found = false;
    walk(func_->body, [&](const IfThenElse& other) { found |= &other == &n; });
    return found;
  }
  void replace(const IfThenElse& n, const Stmt& by) {
    func_ = with_body(func_, replaced(func_->body, {{NodeRef(&n), NodeRef(by)}}));
  }

  /// Both cases are the same program, once what does nothing is gone.
  bool does_the_same(const IfThenElse& n) const {
    auto cleaned = [&](const Stmt& s) { return remove_no_op(with_body(func_, s), options_)->body; };
    return equal(cleaned(n.then_case), cleaned(n.else_case), false);
  }

  /// Where the condition does not hold, a copy of the case goes away as doing nothing.
  bool does_nothing_beside(const IfThenElse& n) const {
    // Stores of its own, so that what goes is told apart from what stays.
    Stmt copy =
        transform(fresh_copy(n.then_case), [](const BufferStore& s) -> Stmt { return Stmt(new BufferStore(s)); });
    Stmt beside = make<IfThenElse>(logical_not(n.condition), copy, Stmt());
    Stmt probe = make<AttrStmt>(NodeRef(int_imm(0)), std::string(kProbe), int_imm(0), beside);
    Stmt tried = replaced(func_->body, {{NodeRef(&n), NodeRef(seq({ref(n), probe}))}});
    bool stays = false;
    walk(remove_no_op(with_body(func_, tried), options_)->body, [&](const AttrStmt& a) { stays |= a.key == kProbe; });
    return !stays;
  }

  PrimFuncRef func_;
  LowerOptions options_;
};

}  // namespace

PrimFuncRef reduce_branching(const PrimFuncRef& func, const LowerOptions& options) {
  bool follow = option(options, "tir.ReduceBranchingThroughOvercompute.use_dataflow_analysis", 0) != 0;
  return Overcompute(func, follow).run();
}

}  // namespace sator::passes
