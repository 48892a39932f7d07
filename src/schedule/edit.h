// Changes to the program that several primitives make.
#pragma once

#include "schedule/analysis.h"

namespace sator::schedule {

/// The topmost statement that holds the block and nothing else: the block itself, or the outermost of the loops that are
/// around it alone.
int lone_nest(const Schedule& s, int block_site);
/// Why the block cannot be taken out: it is all that its scope does; nothing if it can.
MaybeReason is_only_block(const Schedule& s, int block_site);
/// Why a statement is refused, with the place.
Reason refusal_at(const Schedule& s, int site, std::string what, std::string needs, std::string hint);
/// Why a block is refused: "block NAME <what>", with the place.
Reason block_refusal(const Schedule& s, int block_site, std::string what, std::string needs, std::string hint);
/// `root` without the statement `target`, and without the loops that are left empty; null if nothing is left.
tir::Stmt without(const tir::Stmt& root, const tir::Stmt& target);

/// The scope block with another body and other allocations, put in its place.
void replace_scope(Schedule& s, int scope_site, tir::Stmt body, std::vector<BufferRef> allocations);

/// A block's reads (and writes) read off its body anew.
///   visible  the buffers that count
tir::BlockRef with_detected_regions(const tir::BlockRef& block, const std::vector<BufferRef>& visible, bool reads,
                                    bool writes);
/// The buffers of the function: parameters and all allocations.
std::vector<BufferRef> buffers_of(const tir::PrimFunc& func);

/// Where a copy goes: below `location`, a loop or the scope block, in front of `anchor`; null: at the end of the scope.
struct CopyPlace {
  int location;
  tir::Stmt anchor;
};
/// The lowest place that has the writer and one of the related blocks below, in front of the first of them there; the end
/// of the scope block where there is none.
CopyPlace copy_place(const Schedule& s, int writer, const std::vector<int>& related);
/// The child of `ancestor` on the way to `site`.
int child_towards(const Sites& sites, int ancestor, int site);

/// A block that copies elements between two buffers, under loops of its own, while it is put together.
class CopyNest {
 public:
  /// `prefix`: the loops are called {prefix}0, {prefix}1, ...; the iterators v0, v1, ...
  explicit CopyNest(std::string prefix) : prefix_(std::move(prefix)) {}
  /// One more loop over `range`, and an iterator over `dom` whose value is the loop's, after `offset` if that is given.
  /// Returns the iterator.
  VarRef add(const RangeRef& range, const RangeRef& dom, const Expr& offset = {});
  const Loop& last_loop() const { return loops_.back(); }
  /// to[to_at] = value wherever `predicate`, over the loops, holds.
  ///   value  null: from[from_at]
  tir::Stmt build(BlockHandle name, const BufferRef& from, const std::vector<Expr>& from_at, const BufferRef& to,
                  const std::vector<Expr>& to_at, Expr predicate = bool_imm(true), Expr value = {}) const;

 private:
  std::string prefix_;
  std::vector<Loop> loops_;
  std::vector<RangeRef> ranges_;
  std::vector<tir::IterVarRef> iters_;
  std::vector<Expr> values_;
};

/// Puts `stmt` before (or after) the statement `anchor`, in one sequence with it.
tir::Stmt inserted(const tir::Stmt& root, const tir::Stmt& anchor, const tir::Stmt& stmt, bool before);

}  // namespace sator::schedule
