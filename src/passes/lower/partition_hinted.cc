#include "passes/lower/partition_hinted.h"

#include <set>

#include "arith/analyzer.h"
#include "arith/deduce_bound.h"
#include "tir/copy.h"

namespace sator::passes {

using namespace tir;

namespace {

constexpr const char* kHint = "pragma_loop_partition_hint";
/// Copies of one loop's body: more cost more code than they save time.
constexpr size_t kMaxPieces = 16;

Expr inverse(const Expr& e) {
  if (const LT* n = e.as<LT>()) return make<GE>(n->a, n->b);
  if (const GT* n = e.as<GT>()) return make<LE>(n->a, n->b);
  if (const LE* n = e.as<LE>()) return make<GT>(n->a, n->b);
  if (const GE* n = e.as<GE>()) return make<LT>(n->a, n->b);
  if (const EQ* n = e.as<EQ>()) return make<NE>(n->a, n->b);
  if (const NE* n = e.as<NE>()) return make<EQ>(n->a, n->b);
  return nullptr;
}

bool is_hinted(const For& loop) {
  auto at = loop.annotations.find(kHint);
  return at != loop.annotations.end() && at->second.as<IntImm>() && !is_int(cast<ExprNode>(at->second), 0);
}

/// The comparisons below a loop that depend on its variable, with the loops between.
class Conditions {
 public:
  std::vector<Expr> all;
  arith::SetMap inner;
  arith::RangeMap ranges;

  Conditions(const For& loop, bool hinted) : loop_(loop), hinted_(hinted) { visit(loop.body, false); }

 private:
  void visit(const NodeRef& node, bool likely) {
    if (const For* n = node->as<For>()) {
      if (uses_var(n->min, *loop_.var) || uses_var(n->extent, *loop_.var)) return;
      inner[n->var] = arith::IntSet::from_min_extent(n->min, n->extent);
      ranges[n->var] = make<Range>(n->min, n->extent);
    }
    const ExprNode* e = node->as<ExprNode>();
    if (e && (hinted_ || likely) && e->dtype == boolean && inverse(ref(*e)) && uses_var(node, *loop_.var)) {
      all.push_back(ref(*e));
      return;
    }
    const Call* call = node->as<Call>();
    likely |= call && call->op == "tir.likely";
    node->info().each_child(*node, [&](const NodeRef& child) {
      if (!child->as<Buffer>()) visit(child, likely);
    });
  }

  const For& loop_;
  bool hinted_;
};

class HintedPartitioner {
 public:
  explicit HintedPartitioner(bool unroll) : unroll_(unroll) {}

  /// Outer loops first: their pieces may decide conditions of inner ones.
  Stmt run(const Stmt& stmt) {
    const For* loop = stmt.as<For>();
    if (!loop) return inside(stmt);
    if (Stmt cut = pieces(*loop)) return cut;
    For copy = *loop;
    copy.annotations.erase(kHint);
    analyzer_.bind(loop->var, make<Range>(loop->min, loop->extent));
    outer_[loop->var] = arith::IntSet::from_min_extent(loop->min, loop->extent);
    copy.body = run(loop->body);
    outer_.erase(loop->var);
    return copy.body == loop->body && copy.annotations == loop->annotations ? stmt : Stmt(new For(std::move(copy)));
  }

 private:
  Stmt inside(const Stmt& stmt) {
    NodeRef out = stmt->info().map_children(*stmt, [&](const NodeRef& child) -> NodeRef {
      const StmtNode* s = child->as<StmtNode>();
      return s ? NodeRef(run(ref(*s))) : child;
    });
    return cast<StmtNode>(out);
  }

  /// Nothing if the loop has no conditions, or no constant range.
  Stmt pieces(const For& loop) {
    auto begin = as_int(loop.min), extent = as_int(loop.extent);
    const bool hinted = is_hinted(loop);
    if (!begin || !extent || *extent < 1 || loop.kind == LoopKind::thread_binding) return nullptr;
    Conditions conditions(loop, hinted);
    if (conditions.all.empty()) return nullptr;
    std::set<int64_t> cuts = {*begin, *begin + *extent};
    for (const Expr& c : conditions.all) {
      for (const Expr& e : {c, inverse(c)}) add_cuts(loop, e, conditions, cuts);
    }
    if (cuts.size() == 2 && !hinted) return nullptr;
    if (cuts.size() > kMaxPieces + 1) return nullptr;
    std::vector<Stmt> out;
    for (auto at = cuts.begin(), next = std::next(at); next != cuts.end(); ++at, ++next)
      out.push_back(piece(loop, *at, *next, conditions, hinted));
    return seq(std::move(out));
  }

  /// Where the condition begins and ends to hold for sure.
  void add_cuts(const For& loop, const Expr& condition, const Conditions& conditions, std::set<int64_t>& cuts) {
    arith::SetMap hints = outer_;
    for (const auto& [var, set] : conditions.inner) hints[var] = set;
    hints[loop.var] = arith::IntSet::from_min_extent(loop.min, loop.extent);
    std::vector<Expr> parts = {condition};
    if (const EQ* n = condition.as<EQ>()) parts = {make<GE>(n->a, n->b), make<LE>(n->a, n->b)};
    const int64_t begin = *cuts.begin(), end = *cuts.rbegin();
    for (const Expr& part : parts) {
      arith::IntSet set = arith::deduce_bound(loop.var, part, hints, conditions.inner);
      if (set.empty) continue;
      for (const Expr& bound : {set.min, set.max ? set.max + 1 : nullptr}) {
        auto cut = bound ? as_int(analyzer_.simplify(bound)) : std::nullopt;
        if (cut && begin < *cut && *cut < end) cuts.insert(*cut);
      }
    }
  }

  Stmt piece(const For& loop, int64_t begin, int64_t end, const Conditions& conditions, bool hinted) {
    arith::Analyzer known;
    for (const auto& [var, set] : outer_) {
      if (RangeRef range = set.cover_range(nullptr)) known.bind(var, range);
    }
    for (const auto& [var, range] : conditions.ranges) known.bind(var, range);
    const DType d = loop.var->dtype;
    known.bind(loop.var, make<Range>(int_imm(begin, d), int_imm(end - begin, d)));
    NodeMap values;
    bool open = false;
    for (const Expr& c : conditions.all) {
      if (known.prove(c))
        values[c] = bool_imm(true);
      else if (known.prove(inverse(c)))
        values[c] = bool_imm(false);
      else
        open = true;
    }
    For out = loop;
    out.annotations.erase(kHint);
    out.var = VarRef(new Var(*loop.var));
    out.min = int_imm(0, d);
    out.extent = int_imm(end - begin, d);
    const bool once = end - begin == 1 && out.annotations.empty();
    Expr index = once ? int_imm(begin, d) : out.var + begin;
    out.body = fresh_copy(replaced(loop.body, values), substitutions({{loop.var, index}}));
    if (once) return run(out.body);
    analyzer_.bind(out.var, make<Range>(out.min, out.extent));
    outer_[out.var] = arith::IntSet::from_min_extent(out.min, out.extent);
    out.body = run(out.body);
    outer_.erase(out.var);
    if (hinted && open && unroll_) {
      out.kind = LoopKind::unrolled;
      out.annotations.clear();
    }
    return Stmt(new For(std::move(out)));
  }

  bool unroll_;
  arith::SetMap outer_;
  arith::Analyzer analyzer_;
};

}  // namespace

Stmt partition_hinted(const Stmt& stmt, bool unroll) { return HintedPartitioner(unroll).run(stmt); }

}  // namespace sator::passes
