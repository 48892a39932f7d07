#include "passes/lower/async_queues.h"

#include <algorithm>

#include "ir/builtins.h"
#include "passes/lower/lower.h"

namespace sator::passes {

using namespace tir;

namespace {

Stmt attribute(const char* key, Expr value, Stmt body) {
  return make<AttrStmt>(NodeRef(int_imm(0)), std::string(key), std::move(value), std::move(body));
}

}  // namespace

int64_t AsyncQueues::producer_of(const PipelineStep& step) const {
  int64_t found = -1;
  for (const BufferRegionRef& read : step.block->reads) {
    for (const auto& [stage, queue] : queues_) {
      if (stage > step.stage || !queue.written.contains(read->buffer.get())) continue;
      if (found >= 0 && found != stage)
        fail({.what = text("a statement of stage ",
                           step.stage,
                           " reads results of the asynchronous stages ",
                           found,
                           " and ",
                           stage),
              .needs = "statements that wait for one asynchronous stage",
              .hint = "give both copies one stage",
              .at = {{step.block, "reads both"}}});
      found = stage;
    }
  }
  return found;
}

void AsyncQueues::commit(std::vector<PipelineStep>& steps, const Loop& loop, Locals& locals) {
  group_of_.clear();
  for (size_t i = 0; i < steps.size(); ++i) {
    PipelineStep& step = steps[i];
    if (step.async) {
      Local& local = locals[step.stage];
      // Copies before and after a reader are committed apart.
      if (local.groups.empty() || local.consumed) local.groups.emplace_back();
      local.groups.back().push_back(i);
      for (const BufferRegionRef& w : step.block->writes) {
        queues_[step.stage].written.insert(w->buffer.get());
        group_of_[w->buffer.get()] = local.groups.size() - 1;
      }
      local.newest = step.iteration;
      if (!local.predicate || loop.normalized.prove(local.predicate))
        local.predicate = step.predicate;
      else
        local.predicate = loop.normalized.simplify(logical_and(local.predicate, step.predicate));
      step.block = with(step.block, &Block::body, attribute("async_scope", int_imm(1), step.block->body));
    }
    for (const BufferRegionRef& read : step.block->reads) {
      for (const auto& [stage, queue] : queues_) {
        if (stage <= step.stage && queue.written.contains(read->buffer.get())) locals[stage].consumed = true;
      }
    }
  }
}

/// Groups of copies that were committed after those that the reader needs, summed over the groups that it reads of.
Expr AsyncQueues::under_way(const PipelineStep& reader, int64_t stage, const Local& local, const Loop& loop) const {
  const Queue& queue = queues_.at(stage);
  std::vector<Expr> newest;
  if (local.groups.empty()) {
    newest.push_back(queue.newest);
  } else {
    std::vector<bool> counted(local.groups.size(), false);
    for (const BufferRegionRef& read : reader.block->reads) {
      if (!queue.written.contains(read->buffer.get())) continue;
      size_t group = group_of_.at(read->buffer.get());
      if (counted[group]) continue;
      counted[group] = true;
      // What is copied later in the iteration was last copied in the one before.
      newest.push_back(local.seen.contains(read->buffer.get()) ? local.newest : local.newest - 1);
    }
  }
  Expr sum = int_imm(0);
  for (const Expr& n : newest) {
    if (!n || !loop.normalized.prove(ge(n, int_imm(0, n->dtype)))) return int_imm(0);
    sum = sum + loop.run.simplify(n - reader.iteration);
  }
  return sum;
}

void AsyncQueues::wait(const std::vector<PipelineStep>& steps, const Loop& loop, Locals& locals) {
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].async) {
      for (const BufferRegionRef& w : steps[i].block->writes) locals[steps[i].stage].seen.insert(w->buffer.get());
    }
    const int64_t stage = producer_of(steps[i]);
    if (stage < 0) continue;
    Local& local = locals[stage];
    Expr count = under_way(steps[i], stage, local, loop);
    if (!local.wait_count) {
      local.wait_at = i;
      local.wait_count = count;
    } else if (loop.run.prove(lt(count, local.wait_count))) {
      local.wait_count = count;  // one wait, for both readers
    }
  }
}

std::vector<Stmt> AsyncQueues::statements(std::vector<PipelineStep> steps, const Loop& loop,
                                          const std::function<BlockRef(const Stmt&)>& as_block) {
  Locals locals;
  commit(steps, loop, locals);
  wait(steps, loop, locals);
  std::vector<int64_t> committed(steps.size(), -1);
  for (auto& [stage, local] : locals) {
    for (const std::vector<size_t>& group : local.groups) {
      for (size_t i : group) committed[i] = stage;
    }
    if (!local.wait_count) continue;
    Expr count = local.wait_count;
    // Where the copy itself may not run, fewer are under way.
    if (local.predicate && !loop.normalized.prove(local.predicate))
      count = make<Call>(i32, "tir.if_then_else", std::vector<Expr>{local.predicate, count, int_imm(0)});
    BlockRef& block = steps[local.wait_at].block;
    block =
        with(block,
             &Block::body,
             attribute(
                 "async_wait_queue_scope", int_imm(stage), attribute("async_wait_inflight_count", count, block->body)));
  }
  std::vector<Stmt> out;
  for (size_t i = 0; i < steps.size();) {
    Expr predicate = steps[i].predicate;
    BlockRef block = steps[i].block;
    if (committed[i] < 0) {
      ++i;
    } else {
      const int64_t stage = committed[i];
      std::vector<Stmt> bodies;
      for (; i < steps.size() && committed[i] == stage; ++i) bodies.push_back(steps[i].block->body);
      block = as_block(attribute("async_commit_queue_scope", int_imm(stage), seq(std::move(bodies))));
    }
    out.push_back(make<BlockRealize>(std::vector<Expr>{}, predicate, block));
  }
  for (const auto& [stage, local] : locals) {
    Expr& newest = queues_[stage].newest;
    const bool counted = newest && local.predicate && loop.normalized.prove(local.predicate);
    newest = counted ? newest + loop.extent : Expr();
  }
  return out;
}

}  // namespace sator::passes
