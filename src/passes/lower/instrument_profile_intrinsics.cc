// Marks where loops begin and end, so that hardware can measure them. Loops count in the order of the program from 1;
// 0 is the function.
#include "passes/lower/lower.h"

namespace sator::passes {

using namespace tir;

namespace {

/// tir.lwp_* and tir.instr_siblings
struct Choice {
  bool function, loops;
  bool siblings;       ///< only loops beside other loops; else those up to max_depth
  int64_t max_depth;   ///< 0: the outermost loops
  int64_t min_height;  ///< 0: the innermost loops too
};

class Instrument {
 public:
  explicit Instrument(const Choice& choice) : choice_(choice) {}

  Stmt function(const Stmt& body) {
    int64_t height = 0;
    Stmt out = choice_.loops ? run(body, {0, false, false}, height) : body;
    return choice_.function ? marked(out, 0) : out;
  }

 private:
  struct Place {
    int64_t depth;
    bool beside;    ///< another loop stands in the same sequence
    bool parallel;  ///< some loop around is parallel: its iterations share one counter
  };

  static Stmt marked(const Stmt& body, int64_t id) {
    auto mark = [&](const char* op) { return make<Evaluate>(call(DType::Handle(), op, {int_imm(id)})); };
    return seq({mark("tir.start_profile_intrinsic"), body, mark("tir.end_profile_intrinsic")});
  }

  /// `height` becomes that of the highest nest of loops below.
  Stmt run(const Stmt& stmt, const Place& place, int64_t& height) {
    if (const For* n = stmt.as<For>()) return loop(*n, place, height);
    const Seq* n = stmt.as<Seq>();
    int64_t loops = 0;
    if (n) {
      for (const Stmt& s : n->stmts) loops += s.as<For>() != nullptr;
    }
    Place inside = place;
    inside.beside = loops > 1;
    NodeRef out = stmt->info().map_children(*stmt, [&](const NodeRef& child) -> NodeRef {
      const StmtNode* s = child->as<StmtNode>();
      if (!s) return child;
      int64_t below = 0;
      NodeRef result = run(ref(*s), inside, below);
      height = std::max(height, below);
      return result;
    });
    return cast<StmtNode>(out);
  }

  Stmt loop(const For& n, const Place& place, int64_t& height) {
    const int64_t id = ++last_;
    int64_t below = 0;
    Stmt body = run(n.body, {place.depth + 1, false, place.parallel || n.kind == LoopKind::parallel}, below);
    height = below + 1;
    Stmt out = body == n.body ? Stmt(&n) : with(n, &For::body, body);
    bool chosen = !place.parallel && below >= choice_.min_height &&
                  (choice_.siblings ? place.beside : place.depth <= choice_.max_depth);
    return chosen ? marked(out, id) : out;
  }

  Choice choice_;
  int64_t last_ = 0;
};

}  // namespace

PrimFuncRef instrument_profile_intrinsics(const PrimFuncRef& func, const LowerOptions& options) {
  if (!option(options, "tir.instrument_lwp", 0)) return func;
  Choice choice{.function = !option(options, "tir.lwp_disable_func_prof", 0),
                .loops = !option(options, "tir.lwp_disable_loop_prof", 0),
                .siblings = option(options, "tir.instr_siblings", 1) != 0,
                .max_depth = option(options, "tir.lwp_max_depth", 0),
                .min_height = option(options, "tir.lwp_min_height", 1)};
  return with_body(func, Instrument(choice).function(func->body));
}

}  // namespace sator::passes
