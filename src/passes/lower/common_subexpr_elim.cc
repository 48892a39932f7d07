// What is computed twice is computed once, before its first use:
//   B[i] = x * y + z; B[j] = x * y   =>   cse = x * y; B[i] = cse + z; B[j] = cse
// Larger expressions come first. Loads and calls stay where they are; what only one branch or a loop's body computes is
// not computed outside of it.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "arith/analyzer.h"
#include "passes/lower/lower.h"

namespace sator::passes {

using namespace tir;

namespace {

bool is_atom(const ExprNode& e) { return e.as<IntImm>() || e.as<FloatImm>() || e.as<StringImm>() || e.as<Var>(); }

/// Whether a variable may stand for the expression: its value depends on variables alone.
bool eligible(const Expr& e) {
  if (is_atom(*e) || e.as<Ramp>() || e.as<Broadcast>()) return false;
  bool fixed = true;
  walk(
      e,
      [&](const Call&) { return fixed = false; },
      [&](const BufferLoad&) { return fixed = false; },
      [&](const Let&) { return fixed = false; });
  return fixed;
}

void each_part(const NodeBase& node, FunctionRef<void(const NodeRef&)> visit) {
  node.info().each_child(node, [&](const NodeRef& child) {
    if (!child->as<Buffer>()) visit(child);
  });
}

int64_t size_of(const NodeBase& e) {
  int64_t size = 1;
  each_part(e, [&](const NodeRef& child) { size += size_of(*child); });
  return size;
}

/// A text in which each operation stands after its operands in brackets: an order that does not depend on addresses.
std::string key_of(const Expr& e) {
  if (is_atom(*e)) return text(e);
  std::string out = "(";
  each_part(*e, [&](const NodeRef& child) {
    if (const ExprNode* x = child->as<ExprNode>()) out += key_of(ref(*x)) + " ";
  });
  return out + std::string(e->info().name) + ")";
}

/// Which expressions count as one; what is found out of an expression is kept, as each is met at every level of scopes.
class Equivalence {
 public:
  struct Facts {
    Expr value, normal;
    uint64_t hash;  ///< of the normal form
    int64_t size;
    std::string key;
    bool eligible;
  };

  explicit Equivalence(bool by_value) : by_value_(by_value) {}
  const Facts& of(const Expr& e) {
    auto [at, is_new] = facts_.try_emplace(e.get());
    if (is_new) {
      Expr normal = by_value_ && e->dtype.is_integer() ? arith::Analyzer().simplify(e) : e;
      std::string key = key_of(e);
      // By names: structural_hash is that of all expressions which differ in their variables alone.
      const uint64_t hash = std::hash<std::string>()(normal == e ? key : key_of(normal));
      at->second = {e, std::move(normal), hash, size_of(*e), std::move(key), eligible(e)};
    }
    return at->second;
  }
  bool same(const Expr& a, const Expr& b) {
    if (a == b) return true;
    const Facts &x = of(a), &y = of(b);
    return x.hash == y.hash && a->dtype == b->dtype && equal(x.normal, y.normal);
  }

 private:
  bool by_value_;
  std::unordered_map<const ExprNode*, Facts> facts_;
};

/// What is computed at a place, and how often.
class Computations {
 public:
  struct Entry {
    const Equivalence::Facts* of;
    int64_t count;
    /// The larger first.
    bool operator<(const Entry& o) const {
      return of->size != o.of->size ? of->size > o.of->size : of->key < o.of->key;
    }
  };

  explicit Computations(Equivalence& equivalence) : equivalence_(equivalence) {}
  std::vector<Entry> entries;

  /// From now on entries keep their order: what counts as one of them changes its count alone.
  void fix_order() { is_fixed_ = true; }
  /// The largest eligible parts of a statement or expression.
  void add(const NodeRef& node) {
    if (const ExprNode* e = node->as<ExprNode>(); e && equivalence_.of(ref(*e)).eligible) return count(ref(*e), 1);
    if (const IfThenElse* n = node->as<IfThenElse>()) return add_shared({n->condition, n->then_case, n->else_case});
    if (const For* n = node->as<For>()) return add_shared({n->min, n->extent, n->body});
    if (const While* n = node->as<While>()) return add_shared({n->condition, n->body});
    if (const Call* n = node->as<Call>(); n && n->op == "tir.if_then_else")
      return add_shared({n->args[0], n->args[1], n->args[2]});
    if (const And* n = node->as<And>()) return add(n->a);
    if (const Or* n = node->as<Or>()) return add(n->a);
    each_part(*node, [&](const NodeRef& child) { add(child); });
  }
  /// The largest eligible parts of an expression that are not all of it.
  void add_operands(const Expr& e, int64_t times) {
    bool first = true;
    each_part(*e, [&](const NodeRef& child) {
      const ExprNode* x = child->as<ExprNode>();
      const bool evaluated = first || !(e.as<And>() || e.as<Or>());
      first = false;
      if (!x || !evaluated) return;
      if (equivalence_.of(ref(*x)).eligible)
        count(ref(*x), times);
      else
        add_operands(ref(*x), times);
    });
  }

 private:
  /// Of parts that not every run passes through, what at least two of them compute.
  void add_shared(const std::vector<NodeRef>& parts) {
    Computations all(equivalence_);
    std::vector<Computations> each;
    for (const NodeRef& p : parts) {
      if (!p) continue;
      each.emplace_back(equivalence_).add(p);
      for (const Entry& e : each.back().entries) all.count(e.of->value, e.count);
    }
    for (const Entry& e : all.entries) {
      auto has = [&](const Computations& c) { return c.find(*e.of).has_value(); };
      if (std::ranges::count_if(each, has) >= 2) count(e.of->value, e.count);
    }
  }

  std::optional<size_t> find(const Equivalence::Facts& like) const {
    const auto [begin, end] = places_.equal_range(like.hash);
    for (auto at = begin; at != end; ++at) {
      const Equivalence::Facts& one = *entries[at->second].of;
      if (one.value->dtype == like.value->dtype && equal(one.normal, like.normal)) return at->second;
    }
    return {};
  }

  void count(const Expr& value, int64_t times) {
    const Equivalence::Facts& facts = equivalence_.of(value);
    const auto known = find(facts);
    if (!known) {
      places_.emplace(facts.hash, entries.size());
      entries.push_back({&facts, times});
      return;
    }
    Entry& e = entries[*known];
    e.count += times;
    if (!is_fixed_ && facts.key < e.of->key) e.of = &facts;
  }

  Equivalence& equivalence_;
  std::unordered_multimap<uint64_t, size_t> places_;  ///< of the entries, by hash
  bool is_fixed_ = false;
};

class Eliminator {
 public:
  Eliminator(const PrimFunc& func, bool by_value) : equivalence_(by_value) {
    for (const VarRef& p : func.params) scope_.push_back({p, nullptr});
    for (const auto& [param, buffer] : func.buffer_map) {
      // Sizes are read from the arguments before the body runs.
      for (const VarRef& v : vars_in(buffer)) scope_.push_back({v, nullptr});
    }
    walk(ref(func), [&](const Var& v) { names_.insert(v.name); });
  }

  Stmt run(Stmt stmt) {
    while (introduce(stmt)) {
    }
    if (const LetStmt* n = stmt.as<LetStmt>()) return inside(stmt, n->var, n->value);
    if (const For* n = stmt.as<For>()) return inside(stmt, n->var, nullptr);
    if (const AttrStmt* n = stmt.as<AttrStmt>()) {
      const ThreadAxis* axis = n->node ? n->node.as<ThreadAxis>() : nullptr;
      if (axis) return inside(stmt, axis->var, nullptr);
    }
    return children(stmt);
  }

 private:
  struct Known {
    VarRef var;
    const Equivalence::Facts* value = nullptr;  ///< null: it differs from time to time
  };

  Stmt inside(const Stmt& stmt, const VarRef& var, const Expr& value) {
    scope_.push_back({var, value ? &equivalence_.of(value) : nullptr});
    Stmt out = children(stmt);
    scope_.pop_back();
    return out;
  }

  Stmt children(const Stmt& stmt) {
    NodeRef out = stmt->info().map_children(*stmt, [&](const NodeRef& child) -> NodeRef {
      const StmtNode* s = child->as<StmtNode>();
      return s ? NodeRef(run(ref(*s))) : child;
    });
    return cast<StmtNode>(out);
  }

  /// Puts variables before the statement for what it computes several times; whether there were any.
  bool introduce(Stmt& stmt) {
    Computations found(equivalence_);
    found.add(stmt);
    found.fix_order();
    const auto& entries = found.entries;
    const auto larger = [&](size_t a, size_t b) {
      return entries[a] < entries[b] || (!(entries[b] < entries[a]) && a < b);
    };
    std::set<size_t, decltype(larger)> waiting(larger);
    for (size_t i = 0; i < entries.size(); ++i) waiting.insert(i);
    bool introduced = false;
    // Parts of what is not put into a variable join the candidates: they are smaller.
    while (!waiting.empty()) {
      const Computations::Entry entry = entries[*waiting.begin()];
      waiting.erase(waiting.begin());
      const Expr& value = entry.of->value;
      auto bound = std::ranges::find_if(scope_, [&](const Known& k) {
        return k.value && k.value->hash == entry.of->hash && equivalence_.same(k.value->value, value);
      });
      if (bound != scope_.end()) {
        stmt = replaced_by(stmt, value, bound->var);
      } else if (entry.count >= 2 && in_scope(value)) {
        VarRef var = make_var(fresh_name(), value->dtype);
        stmt = make<LetStmt>(value, var, replaced_by(stmt, value, var));
        introduced = true;
      } else {
        const size_t before = entries.size();
        found.add_operands(value, entry.count);
        for (size_t i = before; i < entries.size(); ++i) waiting.insert(i);
      }
    }
    return introduced;
  }

  bool in_scope(const Expr& e) const {
    return std::ranges::all_of(
        vars_in(e), [&](const VarRef& v) { return std::ranges::find(scope_, v, &Known::var) != scope_.end(); });
  }

  NodeRef replaced_by(const NodeRef& node, const Expr& value, const VarRef& var) {
    if (const ExprNode* e = node->as<ExprNode>();
        e && equivalence_.of(ref(*e)).eligible && equivalence_.same(ref(*e), value))
      return var;
    return node->info().map_children(*node, [&](const NodeRef& child) -> NodeRef {
      return child->as<Buffer>() || child->as<Var>() ? child : replaced_by(child, value, var);
    });
  }
  Stmt replaced_by(const Stmt& stmt, const Expr& value, const VarRef& var) {
    return cast<StmtNode>(replaced_by(NodeRef(stmt), value, var));
  }

  std::string fresh_name() {
    std::string name;
    do name = text("cse_var_", ++made_);
    while (names_.contains(name));
    return name;
  }

  Equivalence equivalence_;
  std::vector<Known> scope_;
  std::unordered_set<std::string> names_;
  int made_ = 0;
};

}  // namespace

PrimFuncRef common_subexpr_elim(const PrimFuncRef& func, const LowerOptions& options) {
  if (option(options, "CommonSubexprElimTIR.enable_cse_tir", 1) == 0) return func;
  const bool by_value = option(options, "CommonSubexprElimTIR.identify_equiv_terms", 0) != 0;
  return with_body(func, Eliminator(*func, by_value).run(func->body));
}

}  // namespace sator::passes
