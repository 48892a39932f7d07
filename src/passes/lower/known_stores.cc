// Stores of what the element holds already.
#include "arith/kind.h"
#include "ir/builtins.h"
#include "passes/lower/contents.h"
#include "passes/lower/useless_stores.h"

namespace sator::passes {

using namespace tir;

Stmt effects_of(const std::vector<Expr>& values) {
  std::vector<Stmt> kept;
  for (const Expr& v : values) {
    if (has_side_effect(v)) kept.push_back(make<Evaluate>(v));
  }
  return kept.empty() ? nothing() : seq(std::move(kept));
}

Stmt effects_of(const BufferStore& n) {
  std::vector<Expr> values = n.indices;
  values.push_back(n.value);
  return effects_of(values);
}

namespace {

class KnownStores {
 public:
  explicit KnownStores(bool follow) : follow_(follow) {}

  Stmt run(const Stmt& stmt) {
    if (const BufferStore* n = stmt.as<BufferStore>()) return store(*n);
    if (const IfThenElse* n = stmt.as<IfThenElse>(); n && n->condition->dtype.lanes == 1) return branch(*n);
    if (const For* n = stmt.as<For>()) {
      analyzer_.bind(n->var, make<Range>(n->min, n->extent));
      return repeated(*n, Contents::Repeat::of(*n));
    }
    if (const AttrStmt* n = stmt.as<AttrStmt>()) {
      if (auto repeat = Contents::Repeat::of(*n)) {
        analyzer_.bind(repeat->var, make<Range>(repeat->min, repeat->extent));
        return repeated(*n, *repeat);
      }
    }
    if (const LetStmt* n = stmt.as<LetStmt>()) return binding(*n);
    if (const Evaluate* n = stmt.as<Evaluate>()) {
      const Call* c = n->value.as<Call>();
      if (c && c->op == "tir.assume")
        contents_.assume(c->args[0], analyzer_);
      else
        contents_.calls_of(n->value);
      return stmt;
    }
    bool unclear = stmt.as<While>() || stmt.as<Block>();
    if (unclear) contents_.forget_all();
    Stmt out = descend(*stmt);
    if (unclear) contents_.forget_all();
    return out;
  }

 private:
  Stmt descend(const StmtNode& stmt) {
    const Block* block = stmt.as<Block>();
    NodeRef out = stmt.info().map_children(stmt, [&](const NodeRef& child) -> NodeRef {
      const StmtNode* s = child->as<StmtNode>();
      if (!s) return child;
      Stmt inside = run(ref(*s));
      if (block && child == block->init) contents_.forget_all();  // it does not run in each instance
      return inside;
    });
    return cast<StmtNode>(out);
  }

  Stmt repeated(const StmtNode& stmt, const Contents::Repeat& repeat) {
    if (follow_) contents_.enter(repeat);
    Stmt out = descend(stmt);
    if (follow_) contents_.leave(repeat, analyzer_);
    return out;
  }

  Stmt binding(const LetStmt& n) {
    contents_.calls_of(n.value);
    if (reads_nothing(n.value)) bound_[n.var] = substitute(n.value, bound_);
    Stmt body = run(n.body);
    bound_.erase(n.var);
    contents_.drop(*n.var);
    return body == n.body ? Stmt(&n) : with(n, &LetStmt::body, body);
  }

  Stmt branch(const IfThenElse& n) {
    Expr condition = substitute(n.condition, bound_);
    contents_.calls_of(n.condition);
    const Contents before = contents_;
    auto arm = [&](const Stmt& stmt, const Expr& holds) {
      if (!stmt) return stmt;
      if (follow_) contents_.assume(holds, analyzer_);
      auto inside = analyzer_.with_constraint(holds);
      return run(stmt);
    };
    Stmt then = arm(n.then_case, condition);
    const Contents then_end = std::exchange(contents_, before);
    Stmt otherwise = arm(n.else_case, logical_not(condition));
    if (follow_) {
      const Contents else_end = std::exchange(contents_, before);
      contents_.merge(condition, then_end, else_end);
    }
    if (then == n.then_case && otherwise == n.else_case) return ref(n);
    return make<IfThenElse>(n.condition, then, otherwise);
  }

  Stmt store(const BufferStore& n) {
    std::vector<Expr> indices;
    for (const Expr& i : n.indices) indices.push_back(substitute(i, bound_));
    Expr value = substitute(n.value, bound_);
    contents_.calls_of(n.value);
    if (changes_nothing(n, indices, value)) return effects_of(n);
    if (follow_) contents_.store(*make<BufferStore>(n.buffer, value, std::move(indices)), analyzer_);
    return ref(n);
  }

  bool changes_nothing(const BufferStore& n, const std::vector<Expr>& indices, const Expr& value) {
    if (value->dtype.lanes != 1 || !std::ranges::all_of(indices, [](const Expr& i) { return reads_nothing(i); }))
      return false;
    if (const BufferLoad* load = value.as<BufferLoad>(); load && load->buffer == n.buffer) {
      bool here = true;
      for (size_t d = 0; d < indices.size() && here; ++d)
        here = reads_nothing(load->indices[d]) && analyzer_.prove_equal(indices[d], load->indices[d]);
      if (here) return true;
    }
    if (!follow_) return false;
    Expr held = contents_.known(*cast<BufferLoad>(load(n.buffer, indices)), analyzer_);
    Expr put = contents_.with_known(value, analyzer_);
    if (held && reads_nothing(put) && is_exact(put) && analyzer_.prove_equal(held, put)) return true;
    // A[i] + 0
    return !reads_nothing(put) && is_exact(put) && analyzer_.prove_equal(put, load(n.buffer, indices));
  }
  /// Equal as a number is equal as it is stored: 0.0 and -0.0 are not.
  static bool is_exact(const Expr& e) { return e->dtype.is_integer() || e->dtype.is_bool(); }

  arith::Analyzer analyzer_;
  Contents contents_;
  VarMap bound_;
  bool follow_;
};

}  // namespace

Stmt without_known_stores(const Stmt& body, bool follow) { return KnownStores(follow).run(body); }

}  // namespace sator::passes
