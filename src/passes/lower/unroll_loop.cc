// for i in unrolled 0..3: S(i)   =>   S(0); S(1); S(2)
#include "passes/lower/lower.h"
#include "tir/copy.h"

namespace sator::passes {

using namespace tir;

namespace {

/// The annotation by which a schedule asks for the loops inside to be unrolled as long as the statements made of them
/// are no more than its value.
constexpr const char* kAutoUnroll = "pragma_auto_unroll_max_step";

int64_t count_steps(const Stmt& stmt) {
  int64_t steps = 0;
  walk(stmt, [&](const BufferStore&) { ++steps; }, [&](const Evaluate&) { ++steps; });
  return steps;
}

/// Whether the variable picks elements of memory that a thread has for itself: written out, these may become registers.
bool indexes_local(const Stmt& body, const Var& var) {
  bool found = false;
  auto check = [&](const Buffer& buffer, const std::vector<Expr>& indices) {
    for (const Expr& i : indices) found |= buffer.scope().starts_with("local") && uses_var(i, var);
  };
  walk(
      body,
      [&](const BufferLoad& n) { check(*n.buffer, n.indices); },
      [&](const BufferStore& n) { check(*n.buffer, n.indices); });
  return found;
}

class Unroller {
 public:
  explicit Unroller(const LowerOptions& options) : options_(options) {}

  Stmt run(const Stmt& stmt, int64_t max_steps) {
    if (const For* loop = stmt.as<For>()) return run_loop(*loop, max_steps);
    if (const AttrStmt* attr = stmt.as<AttrStmt>(); attr && attr->key == kAutoUnroll)
      return run(attr->body, as_int(attr->value).value_or(0));
    NodeRef out = stmt->info().map_children(*stmt, [&](const NodeRef& child) -> NodeRef {
      const StmtNode* s = child->as<StmtNode>();
      return s ? NodeRef(run(ref(*s), max_steps)) : child;
    });
    return cast<StmtNode>(out);
  }

 private:
  Stmt run_loop(const For& loop, int64_t max_steps) {
    if (auto asked = loop.annotations.find(kAutoUnroll); asked != loop.annotations.end()) {
      const IntImm* value = asked->second.as<IntImm>();
      max_steps = value ? value->value : 0;
    }
    Stmt body = run(loop.body, max_steps);
    auto extent = as_int(loop.extent);
    bool asked = loop.kind == LoopKind::unrolled;
    bool automatic = loop.kind == LoopKind::serial && extent && max_steps > 0 && *extent <= max_steps &&
                     count_steps(body) * *extent <= max_steps;
    automatic |= loop.kind == LoopKind::serial && extent && option(options_, "tir.UnrollLoop.unroll_local_access", 0) &&
                 indexes_local(body, *loop.var);
    if (asked && !extent)
      fail({.what = text("loop ", loop.var->name, " has a symbolic extent and cannot be unrolled"),
            .needs = "a constant extent",
            .hint = "split the loop by a constant factor and unroll the inner loop",
            .at = {{ref(loop), "symbolic extent"}}});
    if (!asked && !automatic) return body == loop.body ? Stmt(&loop) : with(loop, &For::body, body);
    if (*extent * std::max<int64_t>(1, count_steps(body)) > options_.max_unrolled_copies) {
      if (asked && options_.note)
        options_.note({.what = text("loop ", loop.var->name, " of extent ", *extent, " stays a loop"),
                       .needs = text("at most ", options_.max_unrolled_copies, " statements after unrolling"),
                       .hint = "split the loop and unroll a smaller part"});
      return with(*with(loop, &For::kind, LoopKind::serial), &For::body, body);
    }
    std::vector<Stmt> copies;
    for (int64_t i = 0; i < *extent; ++i) copies.push_back(fresh_copy(body, {{loop.var, loop.min + i}}));
    if (copies.empty()) return nothing();
    return seq(std::move(copies));
  }

  const LowerOptions& options_;
};

}  // namespace

PrimFuncRef unroll_loop(const PrimFuncRef& func, const LowerOptions& options) {
  return with_body(func, Unroller(options).run(func->body, 0));
}

}  // namespace sator::passes
