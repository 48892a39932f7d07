#include "tir/analysis.h"

#include <algorithm>
#include <functional>
#include <map>

#include "arith/analyzer.h"
#include "arith/kind.h"
#include "ir/builtins.h"

namespace sator::tir {

std::optional<Reason> not_pure(const PrimFunc& func) {
  std::unordered_set<const Var*> own;
  walk(
      func.body,
      [&](const Allocate& n) { own.insert(n.data.get()); },
      [&](const Block& n) {
        for (const BufferRef& b : n.alloc_buffers) own.insert(b->data.get());
        for (const MatchBufferRef& m : n.match_buffers) {
          if (own.contains(m->source->buffer->data.get())) own.insert(m->buffer->data.get());
        }
      });
  std::optional<Reason> out;
  walk(
      func.body,
      [&](const BufferStore& n) {
        if (!out && !own.contains(n.buffer->data.get()))
          out = Reason{.what = text("it stores in ", n.buffer->name, ", which it did not allocate"),
                       .needs = "stores in memory of the function's own",
                       .hint = "return the value",
                       .at = {{ref(n), ""}}};
      },
      [&](const Call& n) {
        const Builtin* row = find_builtin(n.op);
        if (out || n.op == "tir.ret" || (row && row->effect != Effect::updates)) return;
        out = Reason{.what = text("it calls ", n.op, ", which has an effect"),
                     .needs = "calls without effects",
                     .hint = "T.call_pure_extern, where the function has none",
                     .at = {{ref(n), ""}}};
      });
  return out;
}

namespace {

/// Calls `bind` with each variable that a statement, a block or a let expression binds, and with the let, or null.
void walk_bindings(const NodeRef& node, const std::function<void(const VarRef& var, const Let* let)>& bind) {
  walk(
      node,
      [&](const For& n) { bind(n.var, nullptr); },
      [&](const LetStmt& n) { bind(n.var, nullptr); },
      [&](const Allocate& n) { bind(n.data, nullptr); },
      [&](const AllocateConst& n) { bind(n.data, nullptr); },
      [&](const ThreadAxis& n) { bind(n.var, nullptr); },
      [&](const Let& n) { bind(n.var, &n); },
      [&](const Block& n) {
        for (const IterVarRef& i : n.iter_vars) bind(i->var, nullptr);
        for (const BufferRef& b : n.alloc_buffers) bind(b->data, nullptr);
        for (const MatchBufferRef& m : n.match_buffers) bind(m->buffer->data, nullptr);
      });
}

}  // namespace

bool is_ssa(const PrimFunc& func) {
  std::unordered_set<VarRef> bound(func.params.begin(), func.params.end());
  VarMap lets;
  bool is_once = bound.size() == func.params.size();
  walk_bindings(func.body, [&](const VarRef& var, const Let* let) {
    const auto known = lets.find(var);
    if (let && known != lets.end()) {
      is_once &= equal(known->second, let->value);
      return;
    }
    is_once &= bound.insert(var).second;
    if (let) lets.emplace(var, let->value);
  });
  return is_once;
}

std::optional<Reason> not_separate(const Module& module) {
  std::unordered_map<VarRef, std::string> home;
  std::optional<Reason> out;
  for (const auto& [name, func] : module.functions) {
    const auto* program = func.as<PrimFunc>();
    if (!program) continue;
    auto bind = [&](const VarRef& var, const Let* = nullptr) {
      const auto [at, is_new] = home.emplace(var, name);
      if (!is_new && at->second != name && !out)
        out = Reason{.what = text("the functions ", at->second, " and ", name, " both bind the variable ", var->name),
                     .needs = "variables of its own for each function",
                     .hint = "make a fresh variable for one of them, or run ConvertSSA"};
    };
    for (const VarRef& p : program->params) bind(p);
    walk_bindings(program->body, bind);
  }
  return out;
}

namespace {

/// Follows the loops and conditions around each access.
class AccessBounds {
 public:
  std::vector<Reason> of(const Stmt& s) {
    stmt(s);
    return std::move(found_);
  }

 private:
  void stmt(const Stmt& s) {
    if (const For* n = s.as<For>()) {
      analyzer_.bind(n->var, make<Range>(n->min, n->extent));
      stmt(n->body);
      return;
    }
    if (const Block* n = s.as<Block>())
      for (const IterVarRef& i : n->iter_vars) analyzer_.bind(i->var, i->dom);
    if (const IfThenElse* n = s.as<IfThenElse>()) {
      accesses(n->condition);
      branch(n->condition, n->then_case);
      if (n->else_case) branch(logical_not(n->condition), n->else_case);
      return;
    }
    if (const BufferStore* n = s.as<BufferStore>()) access(*n, n->buffer, n->indices);
    s->info().each_child(*s, [&](const NodeRef& child) {
      if (const StmtNode* inner = child->as<StmtNode>()) stmt(ref(*inner));
      if (const ExprNode* e = child->as<ExprNode>()) accesses(ref(*e));
    });
  }
  void branch(const Expr& condition, const Stmt& body) {
    const auto known = analyzer_.with_constraint(condition);
    stmt(body);
  }
  void accesses(const Expr& e) {
    walk(e, [&](const BufferLoad& n) { access(n, n.buffer, n.indices); });
  }
  void access(const NodeBase& at, const BufferRef& buffer, const std::vector<Expr>& indices) {
    for (size_t i = 0; i < indices.size() && i < buffer->shape.size(); ++i) {
      const std::optional<int64_t> extent = as_int(buffer->shape[i]);
      const auto bounds = analyzer_.bounds(indices[i]);
      const bool is_below = !arith::is_inf(bounds.min) && bounds.min < 0;
      const bool is_above = extent && !arith::is_inf(bounds.max) && bounds.max >= *extent;
      if (!is_below && !is_above) continue;
      found_.push_back(
          {.what = text("the index ", indices[i], " of ", buffer->name, " runs from ", bounds.min, " to ", bounds.max),
           .needs = text("an index from 0 to ", buffer->shape[i], " - 1 in dimension ", i),
           .hint = "make the loop shorter or the buffer larger, or guard the access by a condition",
           .at = {{Ref<const Object>(&at), ""}}});
    }
  }

  arith::Analyzer analyzer_;
  std::vector<Reason> found_;
};

}  // namespace

std::vector<Reason> out_of_bounds(const PrimFunc& func) { return AccessBounds().of(func.body); }

std::vector<VarRef> undefined_vars(const NodeRef& node) {
  std::unordered_set<VarRef> seen;
  walk_bindings(node, [&](const VarRef& var, const Let*) { seen.insert(var); });
  std::vector<VarRef> out;
  walk(node, [&](const Var& v) {
    if (seen.insert(ref(v)).second) out.push_back(ref(v));
  });
  return out;
}

namespace {

/// Of allocations of the scope, or of all.
template <class Allocation>
int64_t peak_bytes(const Stmt& stmt, int64_t alignment, const std::optional<std::string>& scope = {}) {
  int64_t below = 0;
  stmt->info().each_child(*stmt, [&](const NodeRef& child) {
    if (const StmtNode* s = child->as<StmtNode>())
      below = std::max(below, peak_bytes<Allocation>(ref(*s), alignment, scope));
  });
  const Allocation* n = stmt.as<Allocation>();
  if (!n || (scope && n->data->scope != *scope)) return below;
  int64_t bytes = n->dtype.bytes();
  for (const Expr& extent : n->extents) bytes *= as_int(extent).value_or(0);
  return below + (bytes + alignment - 1) / alignment * alignment;
}

/// Operations by dtype: of two branches the greater count of each.
using Operations = std::map<std::string, double>;

class Flops {
 public:
  Operations of(const Stmt& s) {
    return match(
        s,
        [&](const BufferStore& n) { return of(n.value); },
        [&](const Evaluate& n) { return of(n.value); },
        [&](const For& n) {
          analyzer_.bind(n.var, make<Range>(n.min, n.extent));
          const int64_t most = analyzer_.bounds(n.extent).max;
          Operations out = of(n.body);
          for (auto& [dtype, count] : out)
            count *= arith::is_inf(most) ? 1 : static_cast<double>(std::max<int64_t>(most, 0));
          return out;
        },
        [&](const IfThenElse& n) {
          Operations out = of(n.condition), greater = of(n.then_case);
          if (n.else_case) keep_greater(greater, of(n.else_case));
          add(out, greater);
          return out;
        },
        [&](const LetStmt& n) {
          Operations out = of(n.value);
          add(out, of(n.body));
          return out;
        },
        [&](const StmtNode& n) {
          Operations out;
          n.info().each_child(n, [&](const NodeRef& child) {
            if (const StmtNode* part = child->as<StmtNode>()) add(out, of(ref(*part)));
          });
          return out;
        });
  }

 private:
  Operations of(const Expr& e) {
    Operations out;
    if (e.as<BufferLoad>()) return out;
    const arith::Kind kind = arith::kind_of(e);
    if (arith::is_compare(kind)) return out;
    if (const Select* n = e.as<Select>()) {
      out = of(n->condition);
      Operations greater = of(n->true_value);
      keep_greater(greater, of(n->false_value));
      add(out, greater);
      return out;
    }
    e->info().each_child(*e, [&](const NodeRef& child) {
      if (const ExprNode* part = child->as<ExprNode>()) add(out, of(ref(*part)));
    });
    if (arith::is_arithmetic(kind)) out[e->dtype.name()] += 1;
    return out;
  }
  static void add(Operations& to, const Operations& more) {
    for (const auto& [dtype, count] : more) to[dtype] += count;
  }
  static void keep_greater(Operations& to, const Operations& other) {
    for (const auto& [dtype, count] : other) to[dtype] = std::max(to[dtype], count);
  }

  arith::Analyzer analyzer_;
};

}  // namespace

int64_t workspace_bytes(const PrimFunc& func, int64_t alignment) { return peak_bytes<Allocate>(func.body, alignment); }
int64_t constant_bytes(const PrimFunc& func, int64_t alignment) {
  return peak_bytes<AllocateConst>(func.body, alignment);
}

std::map<std::string, int64_t> allocated_bytes(const PrimFunc& func) {
  std::map<std::string, int64_t> out;
  walk(func.body, [&](const Allocate& n) { out[n.data->scope]; });
  for (auto& [scope, bytes] : out) bytes = peak_bytes<Allocate>(func.body, 1, scope);
  return out;
}

double estimate_flops(const Module& module) {
  double sum = 0;
  for (const auto& [name, func] : module.functions) {
    const PrimFunc* f = func.as<PrimFunc>();
    if (!f) continue;
    if (auto given = int_attr(f->attrs, "estimated_flops")) {
      sum += static_cast<double>(*given);
      continue;
    }
    for (const auto& [dtype, count] : Flops().of(f->body)) sum += count;
  }
  return sum;
}

}  // namespace sator::tir
