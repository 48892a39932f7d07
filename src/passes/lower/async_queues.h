#pragma once

#include <map>
#include <unordered_set>

#include "arith/analyzer.h"
#include "tir/nodes.h"

namespace sator::passes {

/// A statement of a pipeline's step: it runs where `predicate` holds, on iteration `iteration` of the pipelined loop.
struct PipelineStep {
  int64_t stage;
  bool async;  ///< its copies go on while later statements run
  Expr predicate, iteration;
  tir::BlockRef block;
};

/// The asynchronous stages of one pipeline: each is a queue of copies, of which a statement that reads their result waits for
/// all but the newest. Attributes say so in the program:
///   async_scope                 the copies in it are asynchronous
///   async_commit_queue_scope    what the queue of this stage counts as one
///   async_wait_queue_scope, async_wait_inflight_count    wait until at most so many of that queue are under way
class AsyncQueues {
 public:
  /// Runs of the loop that the steps make up: `extent` iterations from the pipelined loop's min on.
  struct Loop {
    Expr extent;
    arith::Analyzer& run;         ///< knows the loop variable as the newest iteration of the pipelined loop
    arith::Analyzer& normalized;  ///< knows the loop variable as it counts
  };
  /// The statements of one loop of the pipeline; loops are given in the order in which they run.
  /// `as_block` makes a statement a block with its regions.
  /// Errors: a statement that reads the results of two asynchronous stages.
  std::vector<tir::Stmt> statements(std::vector<PipelineStep> steps, const Loop& loop,
                                    const std::function<tir::BlockRef(const tir::Stmt&)>& as_block);

 private:
  struct Queue {
    std::unordered_set<const Buffer*> written;
    Expr newest = int_imm(-1);  ///< of its copies, counted over all loops; null: not known
  };
  /// What is known of a queue in one loop.
  struct Local {
    std::unordered_set<const Buffer*> seen;   ///< written at this iteration up to here
    Expr newest, predicate;                   ///< of the last copy
    std::vector<std::vector<size_t>> groups;  ///< of steps that are committed together
    bool consumed = false;
    size_t wait_at = 0;
    Expr wait_count;
  };
  using Locals = std::map<int64_t, Local>;

  /// The stage whose copies the block reads; -1: none.
  int64_t producer_of(const PipelineStep& step) const;
  void commit(std::vector<PipelineStep>& steps, const Loop& loop, Locals& locals);
  void wait(const std::vector<PipelineStep>& steps, const Loop& loop, Locals& locals);
  Expr under_way(const PipelineStep& reader, int64_t stage, const Local& local, const Loop& loop) const;

  std::map<int64_t, Queue> queues_;
  std::unordered_map<const Buffer*, size_t> group_of_;  ///< in the present loop
};

}  // namespace sator::passes
