#include "passes/inline_prim_funcs.h"

#include <set>

#include "ir/builtins.h"
#include "relax/nodes.h"
#include "tir/copy.h"

namespace sator::passes {

using namespace tir;

namespace {

constexpr std::string_view kGlobal = "global:";

/// The function of the module that a call is of; empty for other calls.
std::string_view callee_of(const Call& c) {
  return c.op.starts_with(kGlobal) ? std::string_view(c.op).substr(kGlobal.size()) : std::string_view();
}

std::set<std::string> callees_of(const PrimFunc& f) {
  std::set<std::string> out;
  walk(f.body, [&](const Call& c) {
    if (const std::string_view name = callee_of(c); !name.empty()) out.emplace(name);
  });
  return out;
}

/// What a function returns, as one value; null where it does something else than to bind, choose and return.
Expr value_of(const Stmt& s) {
  if (const Evaluate* e = s.as<Evaluate>()) {
    const Call* call = e->value.as<Call>();
    return call && call->op == "tir.ret" && call->args.size() == 1 ? call->args[0] : nullptr;
  }
  if (const LetStmt* let = s.as<LetStmt>()) {
    const Expr body = value_of(let->body);
    return body ? make<Let>(let->value, let->var, body) : nullptr;
  }
  if (const IfThenElse* choice = s.as<IfThenElse>()) {
    const Expr yes = value_of(choice->then_case), no = choice->else_case ? value_of(choice->else_case) : nullptr;
    return yes && no ? if_then_else(choice->condition, yes, cast_to(yes->dtype, no)) : nullptr;
  }
  const Seq* seq = s.as<Seq>();
  if (!seq || seq->stmts.size() != 2) return nullptr;
  const IfThenElse* first = seq->stmts[0].as<IfThenElse>();
  const Expr yes = first && !first->else_case ? value_of(first->then_case) : nullptr, no = value_of(seq->stmts[1]);
  return yes && no ? if_then_else(first->condition, yes, cast_to(yes->dtype, no)) : nullptr;
}

bool returns(const PrimFunc& f) {
  bool found = false;
  walk(f.body, [&](const Call& c) { found |= c.op == "tir.ret"; });
  return found;
}

Stmt in_root(Stmt body) {
  BlockRef root = make<Block>(std::vector<IterVarRef>{},
                              std::vector<BufferRef>{},
                              std::vector<MatchBufferRef>{},
                              std::vector<BufferRegionRef>{},
                              std::vector<BufferRegionRef>{},
                              block_name("root"),
                              Attrs{},
                              Stmt(),
                              std::move(body));
  return make<BlockRealize>(std::vector<Expr>{}, bool_imm(true), root);
}

class Inliner {
 public:
  Inliner(const ModuleRef& module, Inlined which) : module_(module), which_(which) {}

  ModuleRef run() {
    ModuleRef out = module_;
    for (const auto& [name, func] : module_->functions) {
      const PrimFuncRef f = cast<PrimFunc>(func);
      const PrimFuncRef now = f ? expanded(name, f) : f;
      if (now != f) out = with_function(std::move(out), name, now);
    }
    return without_unused(out);
  }

 private:
  /// The function with its calls inlined.
  PrimFuncRef expanded(const std::string& name, const PrimFuncRef& f) {
    if (auto at = done_.find(name); at != done_.end()) return at->second;
    PrimFuncRef out = f;
    if (!callees_of(*f).empty()) {
      const Stmt body = in_body(f->body, *f);
      if (body != f->body) {
        out = with(*f, &PrimFunc::body, body);
        bool has_block = false;
        walk(body, [&](const BlockRealize&) { has_block = true; });
        if (has_block && !root_of(*out)) out = with(*out, &PrimFunc::body, in_root(body));
      }
    }
    return done_.emplace(name, out).first->second;
  }

  /// The function behind a call that may take its place; null where the call stays.
  PrimFuncRef callee(const Call& c, const PrimFunc& caller) {
    const std::string name(callee_of(c));
    const auto at = name.empty() ? module_->functions.end() : module_->functions.find(name);
    const PrimFuncRef f = at == module_->functions.end() ? nullptr : cast<PrimFunc>(at->second);
    if (!f || f->params.size() != c.args.size() || is_recursive(name)) return nullptr;
    if (which_ == Inlined::private_ones && has_attr(f->attrs, "global_symbol")) return nullptr;
    const auto own = f->attrs.find("target"), others = caller.attrs.find("target");
    if (own != f->attrs.end() && others != caller.attrs.end() && !equal(own->second, others->second)) return nullptr;
    return expanded(name, f);
  }

  bool is_recursive(const std::string& name) const {
    std::set<std::string> seen;
    std::vector<std::string> next = {name};
    while (!next.empty()) {
      const auto at = module_->functions.find(next.back());
      next.pop_back();
      const PrimFunc* f = at == module_->functions.end() ? nullptr : at->second.as<PrimFunc>();
      if (!f) continue;
      for (const std::string& callee : callees_of(*f)) {
        if (callee == name) return true;
        if (seen.insert(callee).second) next.push_back(callee);
      }
    }
    return false;
  }

  Stmt in_body(const Stmt& body, const PrimFunc& caller) {
    return transform(
        body,
        [&](const Evaluate& n) -> NodeRef {
          const Call* c = n.value.as<Call>();
          const PrimFuncRef f = c ? callee(*c, caller) : nullptr;
          const Stmt inlined = f ? as_statement(*f, c->args) : nullptr;
          if (!inlined) return NodeRef(&n);
          inlined_.emplace(callee_of(*c));
          return inlined;
        },
        [&](const Call& n) -> NodeRef {
          const PrimFuncRef f = callee(n, caller);
          const Expr inlined = f ? as_value(*f, n.args) : nullptr;
          if (!inlined) return NodeRef(&n);
          inlined_.emplace(callee_of(n));
          return inlined;
        });
  }

  static Expr as_value(const PrimFunc& f, const std::vector<Expr>& args) {
    const Expr value = f.buffer_map.empty() ? value_of(f.body) : nullptr;
    if (!value) return nullptr;
    NodeMap names;
    std::vector<VarRef> params;
    for (const VarRef& p : f.params) {
      if (p->dtype.is_handle()) return nullptr;
      params.push_back(make_var(p->name, p->dtype));
      names.emplace(p, params.back());
    }
    const Stmt copy = fresh_copy(make<Evaluate>(value), std::move(names));
    Expr out = copy.as<Evaluate>()->value;
    if (!f.ret_dtype.is_void()) out = cast_to(f.ret_dtype, out);
    for (size_t i = params.size(); i-- > 0;) out = make<Let>(cast_to(params[i]->dtype, args[i]), params[i], out);
    return out;
  }

  /// The statement with a variable bound: below declarations of other buffers, where TVM binds pointers too.
  static Stmt with_let(const VarRef& v, const Expr& value, const Stmt& s) {
    const DeclBuffer* declared = s.as<DeclBuffer>();
    if (declared && !uses_var(declared->buffer, *v))
      return with(*declared, &DeclBuffer::body, with_let(v, value, declared->body));
    return make<LetStmt>(value, v, s);
  }

  static Stmt as_statement(const PrimFunc& f, const std::vector<Expr>& args) {
    if (returns(f)) return nullptr;
    Stmt body = f.body;
    if (const BlockRealizeRef root = root_of(f)) {
      const Block& b = *root->block;
      if (!b.alloc_buffers.empty() || !b.match_buffers.empty() || b.init || !b.annotations.empty()) return nullptr;
      body = b.body;
    }
    NodeMap names;
    std::vector<std::pair<VarRef, Expr>> bound;
    std::vector<BufferRef> buffers;
    for (size_t i = 0; i < args.size(); ++i) {
      const VarRef& p = f.params[i];
      const BufferRef buffer = f.buffer_of(p);
      const Var* given = args[i].as<Var>();
      if (buffer) {
        const auto is_fixed = [](const Expr& e) { return as_int(e).has_value(); };
        if (!given || !given->dtype.is_handle() || !buffer->strides.empty() ||
            !std::ranges::all_of(buffer->shape, is_fixed))
          return nullptr;
        Buffer renamed(*buffer);
        renamed.data = ref(*given);
        buffers.push_back(BufferRef(new Buffer(renamed)));
        names.emplace(buffer, buffers.back());
        names.emplace(buffer->data, ref(*given));
      } else if (given && given->dtype == p->dtype) {
        names.emplace(p, args[i]);
      } else {
        bound.emplace_back(VarRef(new Var(*p)), p->dtype.is_handle() ? args[i] : cast_to(p->dtype, args[i]));
        names.emplace(p, bound.back().first);
      }
    }
    Stmt out = fresh_copy(body, std::move(names));
    for (const BufferRef& b : buffers) out = make<DeclBuffer>(b, out);
    for (size_t i = bound.size(); i-- > 0;) out = with_let(bound[i].first, bound[i].second, out);
    return out;
  }

  /// Without the private functions that were inlined everywhere.
  ModuleRef without_unused(const ModuleRef& module) const {
    std::set<std::string> used;
    for (const auto& [name, func] : module->functions) {
      if (const PrimFunc* f = func.as<PrimFunc>()) used.merge(callees_of(*f));
      if (const relax::Function* f = func.as<relax::Function>())
        walk(ref(*f), [&](const relax::GlobalVar& v) { used.insert(v.name); });
    }
    std::map<std::string, Func> kept;
    for (const auto& [name, func] : module->functions) {
      const PrimFunc* f = func.as<PrimFunc>();
      const bool goes = f && inlined_.contains(name) && !used.contains(name) && !has_attr(f->attrs, "global_symbol");
      if (!goes) kept.emplace(name, func);
    }
    return kept.size() == module->functions.size() ? module : with(module, &Module::functions, std::move(kept));
  }

  ModuleRef module_;
  Inlined which_;
  std::map<std::string, PrimFuncRef> done_;
  std::set<std::string, std::less<>> inlined_;
};

}  // namespace

ModuleRef inline_prim_funcs(const ModuleRef& module, Inlined which) {
  bool calls = false;
  for (const auto& [name, func] : module->functions)
    if (const PrimFunc* f = func.as<PrimFunc>(); f && !calls) calls = !callees_of(*f).empty();
  return calls ? Inliner(module, which).run() : module;
}

}  // namespace sator::passes
