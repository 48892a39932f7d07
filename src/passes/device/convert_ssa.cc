// No variable is defined twice: where a function or a statement defines one that was defined before, it gets another.
#include <functional>

#include "passes/device/device.h"
#include "tir/copy.h"

namespace sator::passes {

namespace {

/// Gives each later definition in a function a variable of its own.
class Renamer {
 public:
  tir::Stmt run(const tir::Stmt& stmt) {
    if (const auto* n = stmt.as<tir::LetStmt>()) {
      Expr value = renamed(n->value);
      return within(n->var, [&](const VarRef& var) { return tir::Stmt(make<tir::LetStmt>(value, var, run(n->body))); });
    }
    if (const auto* n = stmt.as<tir::For>()) {
      tir::For out = *n;
      out.min = renamed(n->min);
      out.extent = renamed(n->extent);
      return within(n->var, [&](const VarRef& var) {
        out.var = var;
        out.body = run(n->body);
        return tir::Stmt(new tir::For(out));
      });
    }
    if (const auto* n = stmt.as<tir::Allocate>()) {
      tir::Allocate out = *n;
      for (Expr& e : out.extents) e = renamed(e);
      out.condition = renamed(n->condition);
      return within(n->data, [&](const VarRef& data) {
        out.data = data;
        out.body = run(n->body);
        return tir::Stmt(new tir::Allocate(out));
      });
    }
    if (const auto* n = stmt.as<tir::DeclBuffer>()) {
      BufferRef buffer = renamed(n->buffer);
      if (buffer != n->buffer) names_[n->buffer] = buffer;
      tir::Stmt body = run(n->body);
      names_.erase(n->buffer);
      return make<tir::DeclBuffer>(buffer, body);
    }
    NodeRef out = stmt->info().map_children(*stmt, [&](const NodeRef& child) -> NodeRef {
      const auto* s = child->as<tir::StmtNode>();
      return s ? NodeRef(run(ref(*s))) : renamed(child);
    });
    return cast<tir::StmtNode>(out);
  }

 private:
  template <class T>
  Ref<T> renamed(const Ref<T>& node) const {
    return names_.empty() || !node ? node : replaced(node, names_);
  }

  tir::Stmt within(const VarRef& var, const std::function<tir::Stmt(const VarRef&)>& build) {
    if (seen_.insert(var.get()).second) return build(var);
    VarRef fresh(new Var(*var));
    NodeRef outer = names_[var];
    names_[var] = fresh;
    tir::Stmt out = build(fresh);
    if (outer)
      names_[var] = outer;
    else
      names_.erase(var);
    return out;
  }

  NodeMap names_;
  std::unordered_set<const Var*> seen_;
};

bool defines_twice(const tir::PrimFunc& func) {
  std::unordered_set<const Var*> seen;
  bool twice = false;
  auto define = [&](const VarRef& v) { twice |= !seen.insert(v.get()).second; };
  std::function<void(const NodeRef&)> visit = [&](const NodeRef& node) {
    if (const auto* n = node->as<tir::LetStmt>()) define(n->var);
    if (const auto* n = node->as<tir::For>()) define(n->var);
    if (const auto* n = node->as<tir::Allocate>()) define(n->data);
    node->info().each_child(*node, [&](const NodeRef& child) {
      if (child->as<tir::StmtNode>()) visit(child);
    });
  };
  visit(func.body);
  return twice;
}

}  // namespace

ModuleRef convert_ssa(const ModuleRef& module, const PassContext&) {
  std::unordered_set<const Var*> taken;
  ModuleRef out = module;
  for (const auto& [name, func] : module->functions) {
    tir::PrimFuncRef f = cast<tir::PrimFunc>(func);
    if (!f) continue;
    if (defines_twice(*f)) {
      f = with(f, &tir::PrimFunc::body, Renamer().run(f->body));
      out = with_function(std::move(out), name, f);
    }
    std::unordered_set<const Var*> own = tir::defined_in(*f);
    if (std::ranges::any_of(own, [&](const Var* v) { return taken.contains(v); })) {
      f = tir::fresh_function(f);
      own = tir::defined_in(*f);
      out = with_function(std::move(out), name, f);
    }
    taken.insert(own.begin(), own.end());
  }
  return out;
}

}  // namespace sator::passes
