// Threads of a block wait for each other (tvm_storage_sync) where one reads from shared memory what another has written, or
// overwrites what another has read:
//   S[t] = ...; ... = S[t + 1]   =>   S[t] = ...; sync; ... = S[t + 1]
// An element that each thread alone uses needs none. Memory of scope "shared.dyn" is one piece: its buffers may overlap.
#include <algorithm>
#include <set>

#include "arith/analyzer.h"
#include "arith/intset.h"
#include "passes/lower/lower.h"

namespace sator::passes {

using namespace tir;

namespace {

/// What a statement does to the memory of the scope, or (without a buffer) that it waits.
struct ThreadAccess {
  const Var* data = nullptr;
  std::vector<arith::IntSet> place;  ///< per dimension, over the loops inside of the statement
  bool writes = false;
  bool is_wait() const { return !data; }
};

struct Thread {
  VarRef var;
  std::optional<int64_t> extent;
};

/// A statement of a sequence, with what it does in order.
struct Step {
  const StmtNode* stmt;
  std::vector<ThreadAccess> accesses;
};

class WaitPlanner {
 public:
  std::unordered_set<const StmtNode*> wait_before;

  explicit WaitPlanner(std::string scope) : scope_(std::move(scope)) {}

  void kernel(const Stmt& stmt) {
    if (const AttrStmt* n = stmt.as<AttrStmt>(); n && n->key == "thread_extent") return enter(stmt);
    if (const For* n = stmt.as<For>(); n && n->kind == LoopKind::thread_binding) return enter(stmt);
    stmt->info().each_child(*stmt, [&](const NodeRef& child) {
      if (const StmtNode* s = child->as<StmtNode>()) kernel(ref(*s));
    });
  }

 private:
  void enter(const Stmt& stmt) {
    threads_.clear();
    std::vector<Step> steps;
    collect(stmt, steps);
    plan(steps, false);
  }

  bool in_scope(const Var& v) const { return v.dtype.is_handle() && v.scope == scope_; }

  /// The statements of a sequence, one after the other; what stands around a rest of it (bindings, allocations) is passed.
  void collect(const Stmt& stmt, std::vector<Step>& out) {
    if (const Seq* n = stmt.as<Seq>()) {
      for (const Stmt& s : n->stmts) collect(s, out);
    } else if (const Allocate* n = stmt.as<Allocate>()) {
      collect(n->body, out);
    } else if (const DeclBuffer* n = stmt.as<DeclBuffer>()) {
      collect(n->body, out);
    } else if (const AttrStmt* n = stmt.as<AttrStmt>()) {
      if (const ThreadAxis* axis = n->node ? n->node.as<ThreadAxis>() : nullptr;
          axis && axis->tag.starts_with("threadIdx"))
        threads_.push_back({axis->var, as_int(n->value)});
      collect(n->body, out);
    } else if (const LetStmt* n = stmt.as<LetStmt>()) {
      out.push_back({stmt.get(), {}});
      accesses_of(n->value, out.back().accesses);
      collect(n->body, out);
    } else if (const For* n = stmt.as<For>(); n && n->kind == LoopKind::thread_binding) {
      if (n->thread.starts_with("threadIdx")) threads_.push_back({n->var, as_int(n->extent)});
      collect(n->body, out);
    } else {
      out.push_back({stmt.get(), compound(stmt)});
    }
  }

  /// What a statement with statements inside does; waits inside of it are planned on the way.
  std::vector<ThreadAccess> compound(const Stmt& stmt) {
    std::vector<ThreadAccess> out;
    if (const For* n = stmt.as<For>()) {
      std::vector<Step> steps;
      collect(n->body, steps);
      out = plan(steps, true);
      const arith::SetMap over = {{n->var, arith::IntSet::from_min_extent(n->min, n->extent)}};
      for (ThreadAccess& a : out) {
        for (arith::IntSet& set : a.place) set = relaxed(set, over);
      }
    } else if (const IfThenElse* n = stmt.as<IfThenElse>()) {
      accesses_of(n->condition, out);
      for (const Stmt& branch : {n->then_case, n->else_case}) {
        if (!branch) continue;
        std::vector<Step> steps;
        collect(branch, steps);
        std::vector<ThreadAccess> inner = plan(steps, false);
        const bool waits = std::ranges::any_of(steps, [&](const Step& s) { return wait_before.contains(s.stmt); });
        if (waits && differs(n->condition))
          fail({.what = text("threads would wait for each other under the condition ", n->condition),
                .needs = "a condition that is the same for all threads of a block",
                .hint = "divide the branch in two, the shared memory written in the first",
                .at = {{stmt, "waits inside"}}});
        out.insert(out.end(), inner.begin(), inner.end());
      }
    } else if (const While* n = stmt.as<While>()) {
      accesses_of(n->condition, out);
      std::vector<Step> steps;
      collect(n->body, steps);
      std::vector<ThreadAccess> inner = plan(steps, true);
      out.insert(out.end(), inner.begin(), inner.end());
    } else {
      accesses_of(stmt, out);
    }
    return out;
  }

  static arith::IntSet relaxed(const arith::IntSet& set, const arith::SetMap& over) {
    if (set.is_point()) return arith::eval_set(set.min, over);
    return arith::IntSet::interval(set.min ? arith::eval_set(set.min, over).min : nullptr,
                                   set.max ? arith::eval_set(set.max, over).max : nullptr);
  }

  bool differs(const Expr& condition) const {
    bool loads = false;
    walk(condition, [&](const BufferLoad&) { loads = true; });
    return loads || std::ranges::any_of(threads_, [&](const Thread& t) { return uses_var(condition, *t.var); });
  }

  /// Reads, then the write of a store; calls that wait; whatever else takes a pointer reads and writes all of it.
  void accesses_of(const NodeRef& node, std::vector<ThreadAccess>& out) {
    if (node->as<Buffer>()) return;
    if (const Call* n = node->as<Call>(); n && n->op == "tir.tvm_storage_sync") {
      const StringImm* what = n->args[0].as<StringImm>();
      if (what && what->value == scope_) out.push_back({});
      return;
    }
    if (const Var* v = node->as<Var>(); v && in_scope(*v)) {
      for (bool writes : {false, true}) out.push_back({v, {arith::IntSet::everything()}, writes});
      return;
    }
    node->info().each_child(*node, [&](const NodeRef& child) { accesses_of(child, out); });
    const BufferLoad* load = node->as<BufferLoad>();
    const BufferStore* write = node->as<BufferStore>();
    if (load && in_scope(*load->buffer->data)) out.push_back({load->buffer->data.get(), points(load->indices), false});
    if (write && in_scope(*write->buffer->data))
      out.push_back({write->buffer->data.get(), points(write->indices), true});
  }

  static std::vector<arith::IntSet> points(const std::vector<Expr>& indices) {
    std::vector<arith::IntSet> out;
    for (const Expr& i : indices) out.push_back(i->dtype.lanes == 1 ? arith::IntSet::point(i) : arith::vector_set(i));
    return out;
  }

  /// Where the steps wait, and what is open at their ends: what is done before the first wait, and after the last one.
  std::vector<ThreadAccess> plan(const std::vector<Step>& steps, bool repeats) {
    std::vector<ThreadAccess> open;
    for (const Step& s : steps) {
      if (wait_before.contains(s.stmt) || meets(open, s.accesses)) {
        wait_before.insert(s.stmt);
        open.clear();
      }
      add(open, s.accesses);
    }
    // What is open at the end meets the beginning of the next iteration.
    for (size_t i = 0; repeats && i < steps.size() && !wait_before.contains(steps[i].stmt); ++i) {
      if (meets(open, steps[i].accesses)) wait_before.insert(steps[i].stmt);
      if (std::ranges::any_of(steps[i].accesses, &ThreadAccess::is_wait)) break;
    }
    std::vector<ThreadAccess> head, tail;
    bool waited = false;
    for (const Step& s : steps) {
      if (wait_before.contains(s.stmt)) {
        waited = true;
        tail.clear();
      }
      for (const ThreadAccess& a : s.accesses) {
        if (a.is_wait()) {
          waited = true;
          tail.clear();
        } else {
          (waited ? tail : head).push_back(a);
        }
      }
    }
    if (waited) {
      head.push_back({});
      head.insert(head.end(), tail.begin(), tail.end());
    }
    return head;
  }

  static void add(std::vector<ThreadAccess>& open, const std::vector<ThreadAccess>& accesses) {
    for (const ThreadAccess& a : accesses) {
      if (a.is_wait())
        open.clear();
      else
        open.push_back(a);
    }
  }

  /// Whether a thread may meet, before it waits itself, what another left open.
  bool meets(const std::vector<ThreadAccess>& open, const std::vector<ThreadAccess>& accesses) {
    for (const ThreadAccess& a : accesses) {
      if (a.is_wait()) return false;
      if (std::ranges::any_of(open, [&](const ThreadAccess& before) { return conflict(before, a); })) return true;
    }
    return false;
  }

  bool conflict(const ThreadAccess& before, const ThreadAccess& now) {
    if (before.writes == now.writes) return false;
    if (before.data != now.data) return scope_ == "shared.dyn";
    if (before.place.size() != now.place.size()) return true;
    bool same = true;
    for (size_t d = 0; d < now.place.size(); ++d) {
      const arith::IntSet &x = before.place[d], &y = now.place[d];
      if (arith::intersect({of_all(x), of_all(y)}).empty) return false;
      same &= x.is_point() && y.is_point() && equal(x.min, y.min);
    }
    return !same || !own_element(now.place);
  }

  /// The places of all threads together.
  arith::IntSet of_all(const arith::IntSet& set) const {
    arith::SetMap over;
    for (const Thread& t : threads_)
      over[t.var] = t.extent ? arith::IntSet::interval(int_imm(0, t.var->dtype), int_imm(*t.extent - 1, t.var->dtype))
                             : arith::IntSet::everything();
    return relaxed(set, over);
  }

  /// Whether no two threads have the same place: told for constant numbers of threads, where what else the index depends on is
  /// added to what the threads contribute.
  bool own_element(const std::vector<arith::IntSet>& place) {
    std::vector<Expr> by_thread;
    auto of_thread = [&](const VarRef& v) {
      return std::ranges::any_of(threads_, [&](const Thread& t) { return t.var == v; });
    };
    for (const arith::IntSet& set : place) {
      VarMap others;
      for (const VarRef& v : vars_in(set.min)) {
        if (!of_thread(v) && v->dtype.is_int()) others[v] = int_imm(0, v->dtype);
      }
      Expr alone = substitute(set.min, others);
      for (const VarRef& v : vars_in(analyzer_.simplify(set.min - alone))) {
        if (of_thread(v)) return false;
      }
      by_thread.push_back(alone);
    }
    std::set<std::vector<int64_t>> seen;
    std::vector<int64_t> at(threads_.size(), 0);
    int64_t count = 1;
    for (const Thread& t : threads_)
      count *= t.extent.value_or(kMaxThreads + 1) > kMaxThreads ? kMaxThreads + 1 : *t.extent;
    if (count > kMaxThreads) return false;
    for (int64_t i = 0; i < count; ++i) {
      VarMap values;
      int64_t rest = i;
      for (const Thread& t : threads_) {
        values[t.var] = int_imm(rest % *t.extent, t.var->dtype);
        rest /= *t.extent;
      }
      std::vector<int64_t> element;
      for (const Expr& e : by_thread) {
        auto n = as_int(analyzer_.simplify(substitute(e, values)));
        if (!n) return false;
        element.push_back(*n);
      }
      if (!seen.insert(element).second) return false;
    }
    return true;
  }

  static constexpr int64_t kMaxThreads = 1024;  ///< of a block
  std::string scope_;
  std::vector<Thread> threads_;
  arith::Analyzer analyzer_;
};

Stmt with_waits(const Stmt& stmt, const WaitPlanner& planner, const std::string& scope) {
  NodeRef out = stmt->info().map_children(*stmt, [&](const NodeRef& child) -> NodeRef {
    const StmtNode* s = child->as<StmtNode>();
    return s ? NodeRef(with_waits(ref(*s), planner, scope)) : child;
  });
  Stmt s = cast<StmtNode>(out);
  if (!planner.wait_before.contains(stmt.get())) return s;
  return seq({make<Evaluate>(call(i32, "tir.tvm_storage_sync", {string_imm(scope)})), s});
}

}  // namespace

PrimFuncRef thread_sync(const PrimFuncRef& func, const LowerOptions& options) {
  std::vector<std::string> scopes = {"shared", "shared.dyn"};
  if (auto at = options.config.find("ThreadSync.storage_scope"); at != options.config.end()) {
    const StringImm* scope = at->second.as<StringImm>();
    if (!scope || !scope->value.starts_with("shared"))
      fail({.what = scope ? text("ThreadSync of the scope ", scope->value) : "ThreadSync of a scope that is no name",
            .needs = "storage_scope: a memory that the threads of a block share",
            .hint = "give \"shared\" or \"shared.dyn\", or none for both"});
    scopes = {scope->value};
  }
  Stmt body = func->body;
  for (const std::string& scope : scopes) {
    WaitPlanner planner(scope);
    planner.kernel(body);
    if (!planner.wait_before.empty()) body = with_waits(body, planner, scope);
  }
  return with_body(func, body);
}

}  // namespace sator::passes
