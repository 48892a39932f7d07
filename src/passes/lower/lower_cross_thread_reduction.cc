// A reduction over loops that are bound to threads: each thread reduces its own part, then all combine:
//   for t in threadIdx.x: for k in 4: C[i] = C[i] + A[i, k * 32 + t]
//   =>  for t in threadIdx.x:
//         in_thread = 0;  for k in 4: in_thread = in_thread + A[i, k * 32 + t]
//         cross_thread = allreduce(in_thread over t)
//         if t == 0: C[i] = cross_thread
#include <algorithm>

#include "arith/kind.h"
#include "passes/lower/lower.h"
#include "schedule/reducers.h"
#include "tir/copy.h"

namespace sator::passes {

using namespace tir;

namespace {

bool is_bound(const For& loop) { return loop.kind == LoopKind::thread_binding; }
bool is_thread(const For& loop) { return is_bound(loop) && loop.thread.starts_with("threadIdx."); }

/// The buffers that are written by the blocks of a scope, each as often as blocks write it.
std::unordered_map<BufferRef, int> writers_in(const Block& scope) {
  std::unordered_map<BufferRef, int> out;
  walk(scope.body, [&](const Block& n) {
    for (const BufferRegionRef& w : n.writes) ++out[w->buffer];
    return false;
  });
  return out;
}

class CrossThread {
 public:
  Stmt run(const Stmt& stmt) {
    if (const For* n = stmt.as<For>()) return loop(*n);
    if (const BlockRealize* n = stmt.as<BlockRealize>()) return realize(*n);
    if (const Seq* n = stmt.as<Seq>()) return descend(*n);
    around_.push_back(stmt.get());
    Stmt out = descend(*stmt);
    around_.pop_back();
    return out;
  }

 private:
  using Loops = std::vector<const For*>;

  Stmt descend(const StmtNode& stmt) {
    NodeRef out = stmt.info().map_children(stmt, [&](const NodeRef& child) -> NodeRef {
      const StmtNode* s = child->as<StmtNode>();
      return s ? NodeRef(run(ref(*s))) : child;
    });
    return cast<StmtNode>(out);
  }

  Stmt loop(const For& n) {
    around_.push_back(&n);
    loops_.push_back(&n);
    Stmt out = descend(n);
    loops_.pop_back();
    around_.pop_back();
    // What a kernel's threads reduce is not known to the next kernel.
    if (is_bound(n) && std::ranges::none_of(loops_, [](const For* l) { return is_bound(*l); })) reduced_.clear();
    auto at = replaced_.find(&n);
    return at == replaced_.end() ? out : at->second;
  }

  Stmt realize(const BlockRealize& n) {
    if (!scopes_.empty()) {
      Loops reducing = reducing_loops(n);
      if (std::ranges::any_of(reducing, [](const For* l) { return is_bound(*l); })) {
        reduce(n, reducing);
        return ref(n);  // the outermost of its loops is replaced
      }
      if (std::vector<const For*> threads = threads_left_out(n); !threads.empty()) return by_one_thread(n, threads);
    }
    around_.push_back(&n);
    const Block& block = *n.block;
    scopes_.push_back(&block);
    Loops outer = std::exchange(loops_, {});
    Stmt body = run(block.body);
    loops_ = std::move(outer);
    scopes_.pop_back();
    around_.pop_back();
    std::vector<BufferRef> buffers = block.alloc_buffers;
    auto added = added_.find(&block);
    if (added != added_.end()) buffers.insert(buffers.end(), added->second.begin(), added->second.end());
    if (body == block.body && added == added_.end()) return ref(n);
    Block copy = block;
    copy.body = body;
    copy.alloc_buffers = std::move(buffers);
    return with(n, &BlockRealize::block, BlockRef(new Block(copy)));
  }

  /// The loops that a reduction block's reduction runs over; none of another block.
  Loops reducing_loops(const BlockRealize& n) const {
    const Block& block = *n.block;
    if (!block.init) return {};
    std::vector<VarRef> vars;
    std::vector<const IterVar*> reduced;
    for (size_t i = 0; i < block.iter_vars.size(); ++i) {
      IterKind kind = block.iter_vars[i]->kind;
      if (kind != IterKind::spatial && kind != IterKind::reduce) return {};
      if (kind != IterKind::reduce) continue;
      reduced.push_back(block.iter_vars[i].get());
      for (const VarRef& v : vars_in(n.values[i])) vars.push_back(v);
    }
    for (const BufferRegionRef& w : block.writes) {
      for (const RangeRef& r : w->region) {
        for (const IterVar* iter : reduced) {
          if (uses_var(r, *iter->var)) return {};
        }
      }
    }
    std::unordered_map<BufferRef, int> writers = writers_in(*scopes_.back());
    for (const BufferRegionRef& w : block.writes) {
      if (writers[w->buffer] != 1) return {};
    }
    Loops out;
    for (const For* l : loops_) {
      if (std::ranges::find(vars, l->var) != vars.end()) out.push_back(l);
    }
    return out;
  }

  [[noreturn]] static void refuse(const BlockRealize& n, std::string why, std::string needs) {
    fail({.what = text("block ", string_literal(n.block->name->text), " reduces over threads, but ", why),
          .needs = std::move(needs),
          .hint = "bind only loops of the reduction to threads, innermost around the block",
          .at = {{ref(n), ""}}});
  }

  void check(const BlockRealize& n, const Loops& reducing) const {
    size_t deepest = 0;
    while (deepest < reducing.size() && deepest < around_.size() &&
           std::ranges::find(reducing, around_[around_.size() - 1 - deepest]) != reducing.end())
      ++deepest;
    if (deepest != reducing.size())
      refuse(n,
             "other statements stand between the block and the loops of its reduction",
             "the loops of the reduction as the innermost ones around the block");
    for (const For* l : reducing) {
      if (is_bound(*l) && !is_thread(*l))
        refuse(n, text("loop ", l->var, " is bound to ", l->thread), "loops bound to threadIdx.x, .y or .z");
      for (size_t i = 0; i < n.values.size(); ++i) {
        if (n.block->iter_vars[i]->kind == IterKind::spatial && uses_var(n.values[i], *l->var))
          refuse(n,
                 text("loop ", l->var, " carries the spatial axis ", n.block->iter_vars[i]->var, " too"),
                 "loops that carry the reduction alone");
      }
    }
  }

  static std::vector<BufferRef> scratch(const std::vector<BufferRef>& buffers, const std::string& prefix) {
    std::vector<BufferRef> out;
    for (const BufferRef& b : buffers) {
      BufferRef plain = make_buffer(prefix + b->name, {int_imm(1)}, b->dtype, "local");
      out.push_back(with(*plain, &Buffer::strides, std::vector<Expr>{int_imm(1)}));
    }
    return out;
  }
  static std::vector<BufferRegionRef> regions(const std::vector<BufferRef>& buffers) {
    std::vector<BufferRegionRef> out;
    for (const BufferRef& b : buffers) out.push_back(point_region(b, {int_imm(0)}));
    return out;
  }
  static Stmt make_block(const std::string& name, std::vector<IterVarRef> iters, std::vector<Expr> values,
                         Expr predicate, std::vector<BufferRegionRef> reads, std::vector<BufferRegionRef> writes,
                         Stmt body) {
    Block block;
    block.iter_vars = std::move(iters);
    block.reads = std::move(reads);
    block.writes = std::move(writes);
    block.name = block_name(name);
    block.body = std::move(body);
    return make<BlockRealize>(std::move(values), std::move(predicate), BlockRef(new Block(std::move(block))));
  }

  void reduce(const BlockRealize& n, const Loops& reducing) {
    check(n, reducing);
    schedule::Reduction reduction;
    if (auto reason = schedule::not_a_known_reduction(*n.block, ref(n), reduction)) fail(std::move(*reason));
    auto is_local = [](const BufferRef& b) { return b->data->scope == "local"; };
    bool local = is_local(reduction.buffers[0]);
    if (!std::ranges::all_of(reduction.buffers, [&](const BufferRef& b) { return is_local(b) == local; }))
      refuse(n, "some of its results are local and others are not", "results in one kind of memory");

    const std::string& name = n.block->name->text;
    bool in_thread = !is_one(n.predicate) || !std::ranges::all_of(reducing, [](const For* l) { return is_bound(*l); });
    std::vector<BufferRef> cross = scratch(reduction.buffers, "cross_thread_"), own;
    std::vector<BufferRef>& added = added_[scopes_.back()];
    added.insert(added.end(), cross.begin(), cross.end());
    std::vector<Stmt> stmts;
    if (in_thread) {
      own = scratch(reduction.buffers, "in_thread_");
      added.insert(added.end(), own.begin(), own.end());
      std::vector<Stmt> inits;
      for (size_t i = 0; i < own.size(); ++i) inits.push_back(store(own[i], reduction.identity[i], {int_imm(0)}));
      stmts.push_back(
          make_block(name + "_in_thread_init", {}, {}, bool_imm(true), {}, regions(own), seq(std::move(inits))));
    }
    Stmt part = without_threads(ref(*reducing[0]), n, in_thread ? own_part(n, reduction, own) : Stmt(), reducing);
    if (part) stmts.push_back(part);
    stmts.push_back(combined(n, reduction, own, cross, reducing));
    stmts.push_back(written_back(n, reduction, cross, reducing, local));
    Stmt all = seq(std::move(stmts));
    for (size_t i = reducing.size(); i-- > 0;) {
      if (is_bound(*reducing[i])) all = with(*reducing[i], &For::body, all);
    }
    replaced_[reducing[0]] = all;
    for (const BufferRef& b : reduction.buffers) {
      for (const For* l : reducing) {
        if (is_bound(*l)) reduced_[b].push_back(l);
      }
    }
  }

  /// The block, on the thread's own result.
  static Stmt own_part(const BlockRealize& n, const schedule::Reduction& reduction, const std::vector<BufferRef>& own) {
    auto index_of = [&](const BufferRef& b) {
      return static_cast<size_t>(std::ranges::find(reduction.buffers, b) - reduction.buffers.begin());
    };
    Block block = *n.block;
    block.init = nullptr;
    block.name = block_name(block.name->text + "_in_thread");
    block.writes = regions(own);
    block.body = transform(
        block.body,
        [&](const BufferLoad& l) -> Expr {
          size_t i = index_of(l.buffer);
          return i < own.size() ? load(own[i], {int_imm(0)}) : Expr(&l);
        },
        [&](const BufferStore& s) -> Stmt {
          size_t i = index_of(s.buffer);
          return i < own.size() ? store(own[i], s.value, {int_imm(0)}) : Stmt(&s);
        });
    return with(n, &BlockRealize::block, BlockRef(new Block(block)));
  }

  /// The nest with `put` (null: nothing) in place of the block, and without the reduction's loops over threads.
  static Stmt without_threads(const Stmt& stmt, const BlockRealize& block, const Stmt& put, const Loops& reducing) {
    if (stmt.get() == &block) return put;
    if (const For* l = stmt.as<For>()) {
      Stmt body = without_threads(l->body, block, put, reducing);
      if (!body || (is_bound(*l) && std::ranges::find(reducing, l) != reducing.end())) return body;
      return body == l->body ? stmt : with(*l, &For::body, body);
    }
    if (const Seq* s = stmt.as<Seq>()) {
      std::vector<Stmt> parts;
      for (const Stmt& p : s->stmts) {
        if (Stmt part = without_threads(p, block, put, reducing)) parts.push_back(part);
      }
      return parts.empty() ? Stmt() : seq(std::move(parts));
    }
    return stmt;
  }

  static Stmt combined(const BlockRealize& n, const schedule::Reduction& reduction, const std::vector<BufferRef>& own,
                       const std::vector<BufferRef>& cross, const Loops& reducing) {
    std::vector<VarRef> lhs, rhs;
    std::vector<Expr> x, y;
    for (const BufferRef& b : reduction.buffers) {
      lhs.push_back(make_var(text("x", lhs.size()), b->dtype));
      rhs.push_back(make_var(text("y", rhs.size()), b->dtype));
      x.push_back(lhs.back());
      y.push_back(rhs.back());
    }
    std::vector<Expr> result = reduction.reducer->combine(x, y);
    // uint32 count, values, whether this thread takes part, results, the coordinates of the threads
    std::vector<Expr> args = {int_imm(static_cast<int64_t>(cross.size()), DType::UInt(32))};
    for (size_t i = 0; i < cross.size(); ++i)
      args.push_back(own.empty() ? reduction.operands[i] : load(own[i], {int_imm(0)}));
    args.push_back(bool_imm(true));
    for (const BufferRef& b : cross) args.push_back(load(b, {int_imm(0)}));
    for (const For* l : reducing) {
      if (is_bound(*l)) args.push_back(l->var);
    }
    Stmt body = make<AttrStmt>(
        NodeRef(make<CommReducer>(std::move(lhs), std::move(rhs), std::move(result), reduction.identity)),
        std::string("reduce_scope"),
        call(DType::Handle(), "tir.reinterpret", {int_imm(0, DType::UInt(64))}),
        make<Evaluate>(call(DType::Handle(), "tir.tvm_thread_allreduce", std::move(args))));
    std::string name = n.block->name->text + "_cross_thread";
    if (!own.empty()) return make_block(name, {}, {}, bool_imm(true), regions(own), regions(cross), body);
    return make_block(name, n.block->iter_vars, n.values, bool_imm(true), n.block->reads, regions(cross), body);
  }

  static Stmt written_back(const BlockRealize& n, const schedule::Reduction& reduction,
                           const std::vector<BufferRef>& cross, const Loops& reducing, bool local) {
    std::vector<IterVarRef> iters;
    std::vector<Expr> values;
    VarMap renamed;
    for (size_t i = 0; i < n.values.size(); ++i) {
      const IterVar& iter = *n.block->iter_vars[i];
      if (iter.kind == IterKind::reduce) continue;
      VarRef var = make_var(iter.var->name, iter.var->dtype);
      renamed[iter.var] = var;
      iters.push_back(make<IterVar>(iter.dom, var, IterKind{iter.kind}));
      values.push_back(n.values[i]);
    }
    std::vector<Expr> indices;
    for (const Expr& i : reduction.indices) indices.push_back(substitute(i, renamed));
    std::vector<Stmt> stores;
    std::vector<BufferRegionRef> writes;
    for (size_t i = 0; i < cross.size(); ++i) {
      stores.push_back(store(reduction.buffers[i], load(cross[i], {int_imm(0)}), indices));
      writes.push_back(
          make<BufferRegion>(reduction.buffers[i], schedule::substitute_region(n.block->writes[0]->region, renamed)));
    }
    // What the predicate says of other loops still holds; of memory that threads share, one of them writes.
    Expr predicate = bool_imm(true);
    for (const Expr& part : arith::conjuncts(n.predicate)) {
      bool of_reduction = std::ranges::any_of(reducing, [&](const For* l) { return uses_var(part, *l->var); });
      if (!of_reduction) predicate = logical_and(predicate, part);
    }
    for (const For* l : reducing) {
      if (is_bound(*l) && !local) predicate = logical_and(predicate, eq(l->var, int_imm(0, l->var->dtype)));
    }
    return make_block(n.block->name->text + "_write_back",
                      std::move(iters),
                      std::move(values),
                      predicate,
                      regions(cross),
                      std::move(writes),
                      seq(std::move(stores)));
  }

  /// The thread axes of a reduction whose result the block reads, where none of the loops around the block is bound to them:
  /// all of these threads would run it, and it writes memory that they share.
  Loops threads_left_out(const BlockRealize& n) const {
    Loops out;
    for (const BufferRegionRef& w : n.block->writes) {
      if (w->buffer->data->scope == "local") return {};
    }
    for (const BufferRegionRef& r : n.block->reads) {
      auto at = reduced_.find(r->buffer);
      if (at == reduced_.end()) continue;
      for (const For* axis : at->second) {
        auto same = [&](const For* l) { return l->thread == axis->thread; };
        if (std::ranges::none_of(loops_, [&](const For* l) { return is_bound(*l) && same(l); }) &&
            std::ranges::none_of(out, same))
          out.push_back(axis);
      }
    }
    std::ranges::sort(out, {}, &For::thread);
    return out;
  }

  static Stmt by_one_thread(const BlockRealize& n, const Loops& threads) {
    std::vector<VarRef> vars;
    Expr predicate = n.predicate;
    for (const For* axis : threads) {
      vars.push_back(make_var("t" + axis->thread.substr(axis->thread.size() - 1), axis->min->dtype));
      predicate = logical_and(eq(vars.back(), axis->min), predicate);
    }
    Stmt out = with(n, &BlockRealize::predicate, predicate);
    for (size_t i = 0; i < threads.size(); ++i)
      out = make<For>(vars[i],
                      threads[i]->min,
                      threads[i]->extent,
                      LoopKind::thread_binding,
                      std::string(threads[i]->thread),
                      Attrs(),
                      out);
    return out;
  }

  std::vector<const StmtNode*> around_;  ///< the statements around, without sequences
  Loops loops_;                          ///< the loops around, in the innermost block
  std::vector<const Block*> scopes_;
  std::unordered_map<const Block*, std::vector<BufferRef>> added_;
  std::unordered_map<const For*, Stmt> replaced_;
  std::unordered_map<BufferRef, Loops>
      reduced_;  ///< results of this kernel, and the thread axes that they were reduced over
};

}  // namespace

PrimFuncRef lower_cross_thread_reduction(const PrimFuncRef& func, const LowerOptions&) {
  return with_body(func, CrossThread().run(func->body));
}

}  // namespace sator::passes
