// Memory of scope "warp" is spread over the threads of a warp: each keeps its part in local memory, and reads what another
// one holds by a shuffle. A store says which part is whose: its index grows by m from a thread to the next, so that thread t of
// w holds the elements m * t to m * t + m - 1 of each m * w.
//
//   A_warp = T.allocate([64], "float32", "warp")          A_local = T.allocate([2], "float32", "local")
//   A_warp[o * 32 + tx] = x                          =>   A_local[o] = x
//   y = A_warp[o * 32 + (tx + 1) % 32]                    y = T.tvm_warp_shuffle(T.tvm_warp_activemask(), A_local[o], (tx + 1) % 32, 32, 32)
#include <map>

#include "arith/analyzer.h"
#include "arith/linear.h"
#include "passes/lower/lower.h"
#include "target/config.h"

namespace sator::passes {

using namespace tir;

namespace {

/// Calls that take a matrix of the warp by pointer and index: which arguments the pointers are; the index stands behind each.
const std::map<std::string, std::vector<size_t>>& fragment_pointers() {
  static const std::map<std::string, std::vector<size_t>> table = {
      {"tir.ptx_mma", {6, 8, 10}}, {"tir.ptx_ldmatrix", {3}}, {"tir.mma_store", {3}}, {"tir.mma_fill", {1}}};
  return table;
}

class WarpMemory {
 public:
  explicit WarpMemory(const PrimFunc& func, const LowerOptions& options) {
    TargetConfigRef target = options.target_of(func);
    const std::string kind = target ? string_attr(target->config, "kind").value_or("") : "";
    warp_ = target ? int_attr(target->config, "thread_warp_size").value_or(kind == "rocm" ? 64 : 32) : 32;
    walk(
        func.body,
        [&](const For& n) {
          arith_.bind(n.var, make<Range>(n.min, n.extent));
          if (n.thread == "threadIdx.x") add_thread(n.var, n.extent);
        },
        [&](const AttrStmt& n) {
          const ThreadAxis* axis = n.node.as<ThreadAxis>();
          if (!axis || (n.key != "thread_extent" && n.key != "virtual_thread")) return;
          arith_.bind(axis->var, make<Range>(int_imm(0, axis->var->dtype), cast_to(axis->var->dtype, n.value)));
          if (axis->tag == "threadIdx.x") add_thread(axis->var, n.value);
        });
  }

  Stmt run(const Stmt& body) {
    return transform(body,
                     [&](const Allocate& n) -> Stmt { return n.data->scope == "warp" ? lowered(n) : Stmt(ref(n)); });
  }

 private:
  void add_thread(const VarRef& var, const Expr& extent) {
    several_ |= thread_ && thread_ != var;
    thread_ = var;
    width_ = as_int(extent).value_or(0);
  }

  [[noreturn]] void wrong(std::string what, std::string needs, std::string hint, const NodeBase& at) const {
    fail({.what = text("LowerWarpMemory: ", what),
          .needs = std::move(needs),
          .hint = std::move(hint),
          .at = {{Ref<const Object>(&at), ""}}});
  }

  /// The first element of a vector of consecutive ones; the index itself of a single one.
  Expr first_of(const Expr& index, const NodeBase& at) const {
    const Ramp* ramp = index.as<Ramp>();
    if (!ramp) return index;
    if (!is_one(ramp->stride) || ramp->lanes.scalable)
      wrong(text("an access of elements ", index), "consecutive elements", "vectorize along the last axis", at);
    return ramp->base;
  }

  /// What an index of a store says of m.
  void learn(const Expr& index, const NodeBase& at) {
    const auto linear = arith::detect_linear(index, {thread_});
    const auto m = linear ? as_int(arith_.simplify(linear->coefficients[0])) : std::nullopt;
    if (!m || *m < 1)
      wrong(text("the index ", index, " of a store does not grow by a constant from a thread to the next"),
            text("m * ", thread_->name, " + what does not depend on it, with a constant m > 0"),
            "store what each thread holds at its own place",
            at);
    if (per_thread_ && per_thread_ != *m)
      wrong(text("stores that give each thread ", per_thread_, " and ", *m, " elements"),
            "one number of elements per thread",
            "use a buffer of its own for each layout",
            at);
    per_thread_ = *m;
  }

  void learn_from(const Allocate& n) {
    per_thread_ = 0;
    auto is_memory = [&](const Expr& e) { return e.get() == n.data.get(); };
    walk(
        n.body,
        [&](const BufferStore& s) {
          if (s.buffer->data != n.data) return;
          if (s.indices.size() != 1)
            wrong(text("the buffer ", s.buffer->name, " has ", s.indices.size(), " dimensions"),
                  "flat memory",
                  "run FlattenBuffer before",
                  s);
          learn(first_of(s.indices[0], s), s);
        },
        [&](const Call& c) {
          if (c.op == "tir.ptx_ldmatrix" && c.args.size() > 4 && is_memory(c.args[3])) learn(c.args[4], c);
          if (c.op == "tir.mma_fill" && c.args.size() > 1 && is_memory(c.args[1]))
            per_thread_ = as_int(c.args[0]).value_or(0);
        });
    if (!per_thread_)
      wrong(text("nothing is stored in ", n.data->name),
            "a store, whose index says what each thread holds",
            "remove the allocation",
            n);
  }

  struct Place {
    Expr local, thread;
  };
  /// Where in which thread's part the element stands.
  Place place(const Expr& index) {
    const int64_t round = per_thread_ * width_;
    const Expr inside = rounds_ == 1 ? index : floormod(index, round);
    Expr local = floormod(index, per_thread_);
    if (rounds_ > 1) local = floordiv(index, round) * per_thread_ + local;
    return {arith_.simplify(local), arith_.simplify(floordiv(inside, per_thread_))};
  }
  /// The index into the thread's own part; `thread` is whose it is.
  Expr local_index(const Expr& index, const NodeBase& at, Expr* thread) {
    Place p = place(first_of(index, at));
    if (thread) *thread = p.thread;
    const Ramp* ramp = index.as<Ramp>();
    if (!ramp) return p.local;
    const int64_t lanes = ramp->lanes.count;
    if (per_thread_ % lanes != 0 || !arith_.prove(eq(floormod(ramp->base, lanes), int_imm(0, ramp->base->dtype))))
      wrong(text("a vector of ", lanes, " elements that may lie in two threads"),
            text("a number of lanes that divides ", per_thread_, ", at a multiple of it"),
            "vectorize less",
            at);
    return make<Ramp>(p.local, int_imm(1, p.local->dtype), Lanes(ramp->lanes));
  }

  Stmt lowered(const Allocate& n) {
    if (!thread_ || several_ || width_ < 1 || width_ > warp_ || warp_ % width_ != 0)
      wrong(text("the threads that share ", n.data->name, " are not known"),
            text("one axis threadIdx.x whose extent divides the warp's ", warp_, " threads"),
            "bind a loop to threadIdx.x, and run UnifyThreadBinding",
            n);
    int64_t size = 1;
    for (const Expr& e : n.extents) {
      const auto extent = as_int(e);
      if (!extent) wrong(text("warp memory of ", e, " elements"), "a constant size", "bound the size", n);
      size *= *extent;
    }
    learn_from(n);
    const int64_t round = per_thread_ * width_;
    rounds_ = (size + round - 1) / round;
    const Expr local_size = int_imm(rounds_ * per_thread_);
    const VarRef memory = n.data, own = make_pointer(n.data->name, n.data->pointee, "local");
    std::unordered_map<BufferRef, BufferRef> buffers;
    auto own_buffer = [&](const BufferRef& b) {
      BufferRef& made = buffers[b];
      if (!made) made = make_own(*b, own, local_size);
      return made;
    };
    Stmt body = transform(
        n.body,
        [&](const BufferStore& s) -> Stmt {
          if (s.buffer->data != memory) return ref(s);
          Expr thread;
          const Expr local = local_index(s.indices[0], s, &thread);
          if (!arith_.prove_equal(thread, thread_))
            wrong(text("a store at ", s.indices[0], " into the part of thread ", thread),
                  "stores of each thread into its own part",
                  "let that thread store it",
                  s);
          return make<BufferStore>(own_buffer(s.buffer), s.value, std::vector{local});
        },
        [&](const BufferLoad& l) -> Expr {
          if (l.buffer->data != memory) return ref(l);
          Expr thread;
          const Expr local = local_index(l.indices[0], l, &thread);
          if (uses_var(local, *thread_))
            wrong(text("a load at ", l.indices[0], ": which element of the other thread it is depends on this one"),
                  text("an index whose remainder by ", per_thread_, " is the same in all threads"),
                  "read one element of each thread at a time",
                  l);
          const Expr loaded = load(own_buffer(l.buffer), {local});
          if (arith_.prove_equal(thread, thread_)) return loaded;
          return call(
              loaded->dtype,
              "tir.tvm_warp_shuffle",
              {call(DType::UInt(32), "tir.tvm_warp_activemask", {}), loaded, thread, int_imm(width_), int_imm(warp_)});
        },
        [&](const DeclBuffer& d) -> Stmt {
          if (d.buffer->data != memory) return ref(d);
          return make<DeclBuffer>(own_buffer(d.buffer), d.body);
        },
        [&](const Call& c) -> Expr {
          const auto at = fragment_pointers().find(c.op);
          std::vector<Expr> args = c.args;
          if (at != fragment_pointers().end())
            for (size_t i : at->second) {
              if (i + 1 >= args.size() || args[i].get() != memory.get()) continue;
              args[i] = own;
              args[i + 1] = local_index(args[i + 1], c, nullptr);
            }
          for (const Expr& a : args)
            if (a.get() == memory.get())
              wrong(text("the address of ", memory->name, " is handed to ", c.op),
                    "accesses by index, or the calls of matrix fragments",
                    "keep what it computes in memory of scope local",
                    c);
          return args == c.args ? Expr(ref(c)) : call(c.dtype, c.op, std::move(args));
        });
    return make<Allocate>(own, DType(n.dtype), std::vector{local_size}, n.condition, n.annotations, std::move(body));
  }

  static BufferRef make_own(const Buffer& b, const VarRef& own, const Expr& size) {
    return make<Buffer>(own,
                        DType(b.dtype),
                        std::vector{size},
                        std::vector<Expr>(),
                        Expr(),
                        b.name,
                        int{b.data_alignment},
                        int{b.offset_factor},
                        std::vector<int>());
  }

  int64_t warp_ = 32;
  VarRef thread_;
  bool several_ = false;    ///< axes threadIdx.x: whose threads share the memory cannot be told
  int64_t width_ = 0;       ///< threads that share it
  int64_t per_thread_ = 0;  ///< m: consecutive elements of one thread
  int64_t rounds_ = 1;      ///< how often the threads go round
  arith::Analyzer arith_;
};

}  // namespace

PrimFuncRef lower_warp_memory(const PrimFuncRef& func, const LowerOptions& options) {
  return with_body(func, WarpMemory(*func, options).run(func->body));
}

}  // namespace sator::passes
