// tvm_thread_allreduce in terms of what a GPU has: shuffles inside a warp, shared memory between warps.
#include <algorithm>
#include <bit>

#include "passes/lower/lower.h"
#include "target/config.h"

namespace sator::passes {

using namespace tir;

namespace {

constexpr DType kMask = DType::UInt(32);

struct Axis {
  VarRef var;
  std::string tag;  ///< threadIdx.x, .y or .z
  Expr extent;
};

/// The machine that runs the threads.
struct Machine {
  int64_t warp = 32, max_threads = 1024;
  bool shuffles = false;  ///< between the threads of a warp
  bool masks = true;      ///< a shuffle names the threads that take part

  explicit Machine(const PrimFunc& func) {
    TargetConfigRef target = target_attr(func.attrs);
    if (!target) return;
    std::string kind = string_attr(target->config, "kind").value_or("");
    shuffles = kind == "cuda" || kind == "metal" || kind == "rocm";
    masks = kind != "metal";
    warp = int_attr(target->config, "thread_warp_size").value_or(kind == "rocm" ? 64 : 32);
    max_threads = int_attr(target->config, "max_threads_per_block").value_or(1024);
  }
};

/// A local or shared scratch buffer.
BufferRef scratch(const std::string& name, int64_t elements, DType dtype, const std::string& scope) {
  return make_buffer(name, {int_imm(elements)}, dtype, scope);
}
Stmt allocated(const std::vector<BufferRef>& buffers, Stmt body) {
  for (size_t i = buffers.size(); i-- > 0;) {
    const Buffer& b = *buffers[i];
    body = make<Allocate>(b.data, DType{b.dtype}, b.shape, bool_imm(true), Attrs(), make<DeclBuffer>(buffers[i], body));
  }
  return body;
}
Stmt sync() { return make<Evaluate>(call(i32, "tir.tvm_storage_sync", {string_imm("shared")})); }

class Allreduce {
 public:
  explicit Allreduce(const PrimFunc& func) : machine_(func) {}

  Stmt run(const Stmt& stmt) {
    if (const AttrStmt* n = stmt.as<AttrStmt>()) {
      const ThreadAxis* axis = n->node.as<ThreadAxis>();
      if (axis && n->key == "thread_extent" && axis->tag.starts_with("threadIdx.")) {
        axes_.push_back({axis->var, axis->tag, n->value});
        Stmt out = descend(*n);
        axes_.pop_back();
        return out;
      }
      if (const CommReducer* reducer = n->node.as<CommReducer>(); reducer && n->key == "reduce_scope") {
        const Call* call = allreduce_in(n->body);
        if (call)
          return with(
              *n, &AttrStmt::body, replaced(n->body, {{NodeRef(evaluated_), NodeRef(lowered(*reducer, *call))}}));
      }
    }
    return descend(*stmt);
  }

  /// The results that moved to shared memory, in place of the local ones.
  Stmt with_moved(const Stmt& body) const {
    if (moved_.empty()) return body;
    return transform(
        body,
        [&](const BufferLoad& n) -> Expr {
          const Moved* m = moved(n.buffer->data);
          return m ? load(m->result, {m->index}) : Expr(&n);
        },
        [&](const DeclBuffer& n) -> Stmt {
          const Moved* m = moved(n.buffer->data);
          return m ? with(n, &DeclBuffer::buffer, m->result) : Stmt(&n);
        },
        [&](const Allocate& n) -> Stmt {
          const Moved* m = moved(n.data);
          if (!m) return ref(n);
          const Buffer& b = *m->result;
          Stmt inner = make<AttrStmt>(NodeRef(b.data), std::string("volatile_scope"), int_imm(1), n.body);
          return make<Allocate>(b.data, DType{b.dtype}, b.shape, n.condition, n.annotations, inner);
        });
  }

 private:
  struct Moved {
    BufferRef result;
    Expr index;
  };
  const Moved* moved(const VarRef& data) const {
    auto at = moved_.find(data);
    return at == moved_.end() ? nullptr : &at->second;
  }

  Stmt descend(const StmtNode& stmt) {
    NodeRef out = stmt.info().map_children(stmt, [&](const NodeRef& child) -> NodeRef {
      const StmtNode* s = child->as<StmtNode>();
      return s ? NodeRef(run(ref(*s))) : child;
    });
    return cast<StmtNode>(out);
  }

  const Call* allreduce_in(const Stmt& body) {
    const Call* found = nullptr;
    walk(body, [&](const Evaluate& n) {
      const Call* c = n.value.as<Call>();
      if (!c || c->op != "tir.tvm_thread_allreduce") return;
      found = c;
      evaluated_ = &n;
    });
    return found;
  }

  static int64_t constant_extent(const Axis& axis) {
    auto extent = as_int(axis.extent);
    if (!extent)
      fail({.what = text("a reduction over threads where ", axis.tag, " has extent ", axis.extent),
            .needs = "a constant number of threads",
            .hint = "bind a loop of constant extent"});
    return *extent;
  }

  /// The threads that combine, and the groups of others that do so beside them.
  struct Threads {
    int64_t reduce = 1, groups = 1;
    Expr index = int_imm(0), group = int_imm(0);
    bool contiguous = true;  ///< the threads of one reduction follow each other
  };
  Threads threads_of(const std::vector<Expr>& names) const {
    Threads out;
    std::vector<Axis> axes = axes_;
    std::ranges::sort(axes, {}, &Axis::tag);  // x runs fastest
    bool group_seen = false;
    std::vector<std::string> seen;
    for (const Axis& axis : axes) {
      if (std::ranges::find(seen, axis.tag) != seen.end()) continue;
      seen.push_back(axis.tag);
      int64_t extent = constant_extent(axis);
      bool reduces = std::ranges::any_of(names, [&](const Expr& e) { return e.get() == axis.var.get(); });
      Expr var = cast_to(i32, axis.var);
      if (reduces) {
        out.contiguous &= !group_seen || extent == 1;
        out.index = out.index + (out.reduce == 1 ? var : var * out.reduce);
        out.reduce *= extent;
      } else {
        group_seen |= extent != 1;
        if (extent != 1) out.group = out.group + (out.groups == 1 ? var : var * out.groups);
        out.groups *= extent;
      }
    }
    return out;
  }

  Stmt lowered(const CommReducer& reducer, const Call& call) {
    size_t count = reducer.lhs.size();
    std::vector<Expr> values(call.args.begin() + 1, call.args.begin() + 1 + static_cast<std::ptrdiff_t>(count));
    const Expr& takes_part = call.args[1 + count];
    std::vector<BufferRef> results;
    for (size_t i = 0; i < count; ++i) {
      const BufferLoad* result = call.args[2 + count + i].as<BufferLoad>();
      if (!result)
        fail({.what = "a reduction over threads into something else than an element", .needs = "A[i] as result"});
      results.push_back(result->buffer);
      if (!is_one(takes_part)) values[i] = select(takes_part, values[i], reducer.identity[i]);
    }
    Threads threads = threads_of({call.args.begin() + 2 + static_cast<std::ptrdiff_t>(2 * count), call.args.end()});
    if (threads.reduce == 1) return stores(results, values);
    const bool fits = machine_.shuffles && threads.contiguous && std::ranges::all_of(results, [](const BufferRef& b) {
                        return b->dtype.lanes == 1 && (b->dtype.bits == 32 || b->dtype.is_float());
                      });
    const int64_t warp = machine_.warp;
    if (fits && warp % threads.reduce == 0) return in_warp(reducer, values, results, threads);
    if (fits && threads.reduce % warp == 0 && threads.reduce / warp <= warp &&
        threads.reduce * threads.groups <= machine_.max_threads)
      return in_warps(reducer, values, results, threads);
    return in_shared(reducer, values, results, threads);
  }

  static Stmt stores(const std::vector<BufferRef>& buffers, const std::vector<Expr>& values,
                     const Expr& at = int_imm(0)) {
    std::vector<Stmt> out;
    for (size_t i = 0; i < buffers.size(); ++i) out.push_back(store(buffers[i], values[i], {at}));
    return seq(std::move(out));
  }
  static std::vector<Expr> loads(const std::vector<BufferRef>& buffers, const Expr& at = int_imm(0)) {
    std::vector<Expr> out;
    for (const BufferRef& b : buffers) out.push_back(load(b, {at}));
    return out;
  }
  static std::vector<Expr> combined(const CommReducer& reducer, const std::vector<Expr>& a,
                                    const std::vector<Expr>& b) {
    VarMap given;
    for (size_t i = 0; i < a.size(); ++i) {
      given[reducer.lhs[i]] = a[i];
      given[reducer.rhs[i]] = b[i];
    }
    std::vector<Expr> out;
    for (const Expr& e : reducer.result) out.push_back(substitute(e, given));
    return out;
  }
  static std::vector<BufferRef> like(const std::vector<BufferRef>& buffers, const std::string& name, int64_t elements,
                                     const std::string& scope) {
    std::vector<BufferRef> out;
    for (size_t i = 0; i < buffers.size(); ++i)
      out.push_back(scratch(text(name, i), elements, buffers[i]->dtype, scope));
    return out;
  }

  Expr mask_operand(const BufferRef& mask) const { return mask ? load(mask, {int_imm(0)}) : int_imm(0); }
  BufferRef new_mask() const { return machine_.masks ? scratch("mask", 1, kMask, "local") : nullptr; }

  /// Sums `width` lanes that follow each other into the first of them.
  std::vector<Stmt> shuffled(const CommReducer& reducer, const std::vector<BufferRef>& buffers,
                             const std::vector<BufferRef>& other, const BufferRef& mask, int64_t width) const {
    std::vector<Stmt> out;
    for (int64_t offset = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(width))) / 2; offset > 0;
         offset /= 2) {
      for (size_t i = 0; i < buffers.size(); ++i)
        out.push_back(store(other[i],
                            call(buffers[i]->dtype,
                                 "tir.tvm_warp_shuffle_down",
                                 {mask_operand(mask),
                                  load(buffers[i], {int_imm(0)}),
                                  int_imm(offset),
                                  int_imm(machine_.warp),
                                  int_imm(machine_.warp)}),
                            {int_imm(0)}));
      std::vector<Expr> sums = combined(reducer, loads(buffers), loads(other));
      if (buffers.size() == 1) {
        out.push_back(stores(buffers, sums));
        continue;
      }
      // All are computed before the first is stored: they depend on each other.
      std::vector<VarRef> vars;
      std::vector<Expr> names;
      for (const Expr& s : sums) {
        vars.push_back(make_var("sum", s->dtype));
        names.push_back(vars.back());
      }
      Stmt body = stores(buffers, names);
      for (size_t i = vars.size(); i-- > 0;) body = make<LetStmt>(sums[i], vars[i], body);
      out.push_back(body);
    }
    return out;
  }

  static void append(std::vector<Stmt>& to, std::vector<Stmt> more) {
    for (Stmt& s : more) to.push_back(std::move(s));
  }
  static Expr active() { return call(kMask, "tir.tvm_warp_activemask", {}); }
  static Expr low_bits(int64_t n) { return int_imm((int64_t{1} << n) - 1, kMask); }
  static Expr both(const Expr& a, const Expr& b) { return call(kMask, "tir.bitwise_and", {a, b}); }

  /// All threads of a reduction are in one warp, which may hold several reductions.
  Stmt in_warp(const CommReducer& reducer, const std::vector<Expr>& values, const std::vector<BufferRef>& results,
               const Threads& threads) {
    const int64_t warp = machine_.warp, reductions = warp / threads.reduce;
    BufferRef mask = new_mask();
    std::vector<BufferRef> other = like(results, "t", 1, "local");
    std::vector<Stmt> out = {stores(results, values)};
    if (mask) {
      Expr lanes = active();
      if (reductions > 1) {
        Expr own = low_bits(threads.reduce);
        if (threads.groups > 1)
          own = call(
              kMask, "tir.shift_left", {own, cast_to(kMask, floormod(threads.group, reductions) * threads.reduce)});
        lanes = both(lanes, own);
      }
      out.push_back(store(mask, lanes, {int_imm(0)}));
    }
    append(out, shuffled(reducer, results, other, mask, threads.reduce));
    Expr first = int_imm(threads.reduce) * threads.group;
    for (const BufferRef& b : results)
      out.push_back(store(b,
                          call(b->dtype,
                               "tir.tvm_warp_shuffle",
                               {mask_operand(mask), load(b, {int_imm(0)}), first, int_imm(warp), int_imm(warp)}),
                          {int_imm(0)}));
    std::vector<BufferRef> own;
    if (mask) own.push_back(mask);
    own.insert(own.end(), other.begin(), other.end());
    return allocated(own, seq(std::move(out)));
  }

  /// Each warp by itself, then the first lanes their results, through shared memory.
  Stmt in_warps(const CommReducer& reducer, const std::vector<Expr>& values, const std::vector<BufferRef>& results,
                const Threads& threads) {
    const int64_t warp = machine_.warp, warps = threads.reduce / warp;
    BufferRef mask = new_mask(), last_mask = new_mask();
    std::vector<BufferRef> part = like(results, "red_buf", 1, "local"), other = like(results, "t", 1, "local"),
                           last = like(results, "red_buf", 1, "local"), last_other = like(results, "t", 1, "local"),
                           staging = like(results, "red_buf_staging", warps * threads.groups, "shared"),
                           shared = like(results, "red_result", threads.groups, "shared");
    std::vector<Stmt> out = {stores(part, values)};
    if (mask) out.push_back(store(mask, active(), {int_imm(0)}));
    append(out, shuffled(reducer, part, other, mask, warp));
    Expr base = threads.group * warps;
    out.push_back(make<IfThenElse>(eq(floormod(threads.index, warp), int_imm(0)),
                                   stores(staging, loads(part), base + floordiv(threads.index, warp)),
                                   Stmt()));
    out.push_back(sync());
    // Lanes without a warp of their own add nothing.
    const bool whole = std::has_single_bit(static_cast<uint64_t>(warps));
    out.push_back(make<IfThenElse>(lt(threads.index, int_imm(warps)),
                                   stores(last, loads(staging, base + threads.index)),
                                   whole ? Stmt() : stores(last, reducer.identity)));
    const int64_t width = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(warps)));
    if (last_mask)
      out.push_back(store(last_mask, width == warp ? active() : both(active(), low_bits(width)), {int_imm(0)}));
    append(out, shuffled(reducer, last, last_other, last_mask, warps));
    out.push_back(make<IfThenElse>(eq(threads.index, int_imm(0)), stores(shared, loads(last), threads.group), Stmt()));
    out.push_back(sync());
    std::vector<BufferRef> own;
    auto add = [&](const std::vector<BufferRef>& more) { own.insert(own.end(), more.begin(), more.end()); };
    add(last);
    if (last_mask) add({last_mask});
    add(last_other);
    add(part);
    if (mask) add({mask});
    add(other);
    add(staging);
    move(results, shared, threads.group);
    return allocated(own, seq(std::move(out)));
  }

  /// A tree in shared memory.
  Stmt in_shared(const CommReducer& reducer, const std::vector<Expr>& values, const std::vector<BufferRef>& results,
                 const Threads& threads) {
    std::vector<BufferRef> shared = like(results, "red_buf", threads.reduce * threads.groups, "shared");
    Expr base = threads.group * threads.reduce, own = base + threads.index;
    // What earlier reductions left there has been read.
    std::vector<Stmt> out = {sync(), stores(shared, values, own), sync()};
    for (int64_t step = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(threads.reduce))) / 2; step > 0;
         step /= 2) {
      std::vector<Expr> sums = combined(reducer, loads(shared, own), loads(shared, own + step));
      std::vector<VarRef> vars;
      std::vector<Expr> names;
      for (const Expr& s : sums) {
        vars.push_back(make_var("sum", s->dtype));
        names.push_back(vars.back());
      }
      Stmt body = stores(shared, names, own);
      for (size_t i = vars.size(); i-- > 0;) body = make<LetStmt>(sums[i], vars[i], body);
      int64_t with_partner = std::min(step, threads.reduce - step);
      out.push_back(make<IfThenElse>(lt(threads.index, int_imm(with_partner)), body, Stmt()));
      out.push_back(sync());
    }
    move(results, shared, base);
    return seq(std::move(out));
  }

  void move(const std::vector<BufferRef>& from, const std::vector<BufferRef>& to, const Expr& index) {
    for (size_t i = 0; i < from.size(); ++i) moved_[from[i]->data] = {to[i], index};
  }

  Machine machine_;
  std::vector<Axis> axes_;
  const Evaluate* evaluated_ = nullptr;
  std::unordered_map<VarRef, Moved> moved_;
};

}  // namespace

PrimFuncRef lower_thread_allreduce(const PrimFuncRef& func, const LowerOptions&) {
  Allreduce lowering(*func);
  Stmt body = lowering.run(func->body);
  return with_body(func, lowering.with_moved(body));
}

}  // namespace sator::passes
