// What buffers hold at a place of a program: told from stores, assumptions and conditions before it.
#pragma once

#include <memory>

#include "arith/analyzer.h"
#include "tir/nodes.h"

namespace sator::passes {

/// Follows a program in its order. Whoever walks it tells what is passed; what is known may then be asked.
class Contents {
 public:
  /// The element's value, if it is known: without loads, in terms of variables in scope. Else null.
  Expr known(const BufferLoad& load, arith::Analyzer& analyzer) const;
  /// The expression with known elements in place of their loads.
  Expr with_known(const Expr& e, arith::Analyzer& analyzer) const;

  /// A store that was passed. `values` of bindings around are put in.
  void store(const tir::BufferStore& n, arith::Analyzer& analyzer);
  /// A condition that holds here: A[i] == v, or i < 14 or A[i] == v, tells an element.
  void assume(const Expr& condition, arith::Analyzer& analyzer);
  /// What an expression's calls may have changed is not known any more.
  void calls_of(const Expr& e);
  void forget_all() { facts_.clear(); }

  /// Something that runs its body for each value of a variable: one after the other (`in_order`), or at the same time.
  struct Repeat {
    VarRef var;
    Expr min, extent;
    tir::Stmt body;
    bool in_order;
    static Repeat of(const tir::For& loop);
    /// Of an attribute that launches threads; nothing for others.
    static std::optional<Repeat> of(const tir::AttrStmt& launch);
  };
  /// Before the body, and after it. `enter` keeps what other iterations left alone.
  void enter(const Repeat& loop);
  void leave(const Repeat& loop, arith::Analyzer& analyzer);
  /// A variable goes out of scope.
  void drop(const Var& var);

  /// After a branch: `then` and `otherwise` are what is known at the ends of its two ways.
  void merge(const Expr& condition, const Contents& then, const Contents& otherwise);

 private:
  /// For all values of `params` where `where` holds: buffer[indices] == value.
  struct Fact {
    int id;
    BufferRef buffer;
    std::vector<Expr> indices;
    std::vector<std::pair<VarRef, RangeRef>> params;
    Expr where, value;
  };
  /// How the iterations of a loop write a buffer: each its own slice, `var + offset` of one axis; or anyhow.
  struct Slices {
    bool of_each = false;
    size_t axis = 0;
    Expr offset;
  };
  struct LoopState {
    std::vector<Fact> before;
    std::unordered_map<const Var*, Slices> written;  ///< by the buffers' pointers
    bool in_order = true;
  };

  void add(Fact fact);
  /// Iterations at the same time write this memory anyhow: nothing is known of it for long.
  bool is_shared(const BufferRef& buffer) const;
  static std::optional<VarMap> solve(const Fact& fact, const std::vector<Expr>& indices, Expr& where);
  static bool mentions(const Fact& fact, const Var& var);

  std::vector<Fact> facts_;
  std::vector<LoopState> loops_;
  /// Copies count on together: a fact that one of them found is not another's.
  std::shared_ptr<int> next_id_ = std::make_shared<int>(0);
};

/// Whether the expression reads no memory and calls nothing with an effect: it means the same wherever its variables are in scope.
bool reads_nothing(const Expr& e);

}  // namespace sator::passes
