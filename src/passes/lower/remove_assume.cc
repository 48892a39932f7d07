// What a program says without changing memory goes: T.assume(c), assertions, stores of T.undef(), and that iterations may run
// at the same time.
#include "ir/builtins.h"
#include "passes/lower/lower.h"

namespace sator::passes {

using namespace tir;

namespace {

bool is_call(const Expr& e, std::string_view op) {
  const Call* c = e.as<Call>();
  return c && c->op == op;
}

/// Finds what holds an undefined value: a call, or a variable bound to one.
class Undefined {
 public:
  explicit Undefined(const PrimFunc& func) {
    walk(
        func.body,
        [&](const LetStmt& n) {
          if (in(n.value)) vars_.insert(n.var.get());
        },
        [&](const Let& n) {
          if (in(n.value)) vars_.insert(n.var.get());
        });
  }
  bool in(const NodeRef& e) const {
    bool found = false;
    walk(e, [&](const Call& n) { found |= n.op == "tir.undef"; }, [&](const Var& n) { found |= vars_.contains(&n); });
    return found;
  }

 private:
  std::unordered_set<const Var*> vars_;
};

}  // namespace

PrimFuncRef remove_assume(const PrimFuncRef& func, const LowerOptions& options) {
  Stmt body = transform(
      func->body, [](const Evaluate& n) -> Stmt { return is_call(n.value, "tir.assume") ? nothing() : Stmt(&n); });
  return remove_no_op(with_body(func, body), options);
}

PrimFuncRef skip_assert(const PrimFuncRef& func, const LowerOptions&) {
  return with_body(func, transform(func->body, [](const AssertStmt& n) -> Stmt { return n.body; }));
}

PrimFuncRef convert_for_loops_to_serial(const PrimFuncRef& func, const LowerOptions&) {
  return with_body(func, transform(func->body, [](const For& n) -> Stmt {
                     return n.kind == LoopKind::parallel ? Stmt(with(n, &For::kind, LoopKind::serial)) : Stmt(&n);
                   }));
}

PrimFuncRef remove_store_undef(const PrimFuncRef& func, const LowerOptions& options) {
  Undefined undefined(*func);
  auto require_defined = [&](const std::vector<Expr>& indices, const NodeRef& access) {
    for (const Expr& i : indices) {
      if (undefined.in(i))
        fail({.what = text("the index ", i, " is undefined"),
              .needs = "indices with a value",
              .hint = "T.undef() may only be stored",
              .at = {{access, "undefined index"}}});
    }
  };
  walk(
      func->body,
      [&](const BufferLoad& n) { require_defined(n.indices, ref(n)); },
      [&](const BufferStore& n) { require_defined(n.indices, ref(n)); });
  Stmt body = transform(func->body, [&](const BufferStore& n) -> Stmt {
    if (!undefined.in(n.value)) return ref(n);
    if (has_side_effect(n.value)) return make<Evaluate>(n.value);
    return nothing();
  });
  return remove_no_op(with_body(func, body), options);
}

}  // namespace sator::passes
