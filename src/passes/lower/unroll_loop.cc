// for i in unrolled 0..3: S(i)   =>   S(0); S(1); S(2)
#include <algorithm>
#include <utility>

#include "arith/numbers.h"
#include "passes/lower/lower.h"
#include "tir/copy.h"

namespace sator::passes {

using namespace tir;

namespace {

/// The annotation by which a schedule asks for the loops inside to be unrolled as long as the statements made of them
/// are no more than its value.
constexpr const char* kAutoUnroll = "pragma_auto_unroll_max_step";

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

/// What a statement has when it is unrolled: statements, nested loops that are unrolled, nested loops that stay.
struct Size {
  int64_t steps = 0, unrolled = 0, kept = 0;

  void add(const Size& other) {
    steps += other.steps;
    unrolled = std::max(unrolled, other.unrolled);
    kept = std::max(kept, other.kept);
  }
};

class Unroller {
 public:
  explicit Unroller(const LowerOptions& options)
      : options_(options),
        max_steps_(option(options, "tir.UnrollLoop.auto_max_step", 0)),
        max_depth_(option(options, "tir.UnrollLoop.auto_max_depth", 8)),
        max_extent_(option(options, "tir.UnrollLoop.auto_max_extent", 0)),
        writes_out_(option(options, "tir.UnrollLoop.explicit_unroll", 1) != 0),
        of_local_(option(options, "tir.UnrollLoop.unroll_local_access", 0) != 0) {}

  Stmt run(const Stmt& stmt, Size& size) {
    if (const For* loop = stmt.as<For>()) return run_loop(*loop, size);
    if (const AttrStmt* attr = stmt.as<AttrStmt>(); attr && attr->key == kAutoUnroll) {
      const int64_t around = std::exchange(max_steps_, as_int(attr->value).value_or(0));
      Stmt out = run(attr->body, size);
      max_steps_ = around;
      return out;
    }
    if (stmt.as<BufferStore>() || stmt.as<Evaluate>()) ++size.steps;
    NodeRef out = stmt->info().map_children(*stmt, [&](const NodeRef& child) -> NodeRef {
      const StmtNode* s = child->as<StmtNode>();
      if (!s) return child;
      Size part;
      Stmt inside = run(ref(*s), part);
      size.add(part);
      return inside;
    });
    return cast<StmtNode>(out);
  }

 private:
  Stmt run_loop(const For& loop, Size& size) {
    const int64_t around = max_steps_;
    if (auto asked = loop.annotations.find(kAutoUnroll); asked != loop.annotations.end()) {
      const IntImm* value = asked->second.as<IntImm>();
      max_steps_ = value ? value->value : 0;
    }
    Stmt body = run(loop.body, size);
    const auto extent = as_int(loop.extent);
    const bool asked = loop.kind == LoopKind::unrolled;
    if (asked && !extent)
      fail({.what = text("loop ", loop.var->name, " has a symbolic extent and cannot be unrolled"),
            .needs = "a constant extent",
            .hint = "split the loop by a constant factor and unroll the inner loop",
            .at = {{ref(loop), "symbolic extent"}}});
    const bool automatic = loop.kind == LoopKind::serial && extent && is_small(loop, *extent, size);
    max_steps_ = around;
    if (!asked && !automatic) {
      ++size.kept;
      return body == loop.body ? Stmt(&loop) : with(loop, &For::body, body);
    }
    const auto copies = arith::checked_mul(*extent, std::max<int64_t>(1, size.steps));
    if (!copies || *copies > options_.max_unrolled_copies) {
      ++size.kept;
      if (asked && options_.note)
        options_.note({.what = text("loop ", loop.var->name, " of extent ", *extent, " stays a loop"),
                       .needs = text("at most ", options_.max_unrolled_copies, " statements after unrolling"),
                       .hint = "split the loop and unroll a smaller part"});
      return with(*with(loop, &For::kind, LoopKind::serial), &For::body, body);
    }
    size.steps *= *extent;
    ++size.unrolled;
    if (!writes_out_ && !(max_extent_ == 1 && *extent <= 1))
      return with(*with(loop, &For::kind, LoopKind::unrolled), &For::body, body);
    return written_out(loop, body, *extent);
  }

  /// Whether a loop that nobody asked to unroll shall be.
  bool is_small(const For& loop, int64_t extent, const Size& size) const {
    if (of_local_ && indexes_local(loop.body, *loop.var)) return true;
    if (max_extent_ == 1 && extent <= 1) return true;  // whatever is inside
    if (size.kept > 0 || size.unrolled > max_depth_) return false;
    const auto steps = arith::checked_mul(extent, size.steps);
    return (max_steps_ > 0 && steps && *steps <= max_steps_) || extent <= max_extent_;
  }

  static Stmt written_out(const For& loop, const Stmt& body, int64_t extent) {
    std::vector<Stmt> copies;
    for (int64_t i = 0; i < extent; ++i) copies.push_back(fresh_copy(body, {{loop.var, loop.min + i}}));
    return copies.empty() ? nothing() : seq(std::move(copies));
  }

  const LowerOptions& options_;
  int64_t max_steps_;   ///< of statements in an unrolled loop, of the pragma around if there is one
  int64_t max_depth_;   ///< of loops unrolled in an unrolled one
  int64_t max_extent_;  ///< of loops that are unrolled whatever the number of statements
  bool writes_out_;     ///< else the loops stay, marked T.unroll
  bool of_local_;
};

}  // namespace

PrimFuncRef unroll_loop(const PrimFuncRef& func, const LowerOptions& options) {
  Size size;
  return with_body(func, Unroller(options).run(func->body, size));
}

}  // namespace sator::passes
