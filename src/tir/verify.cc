#include "tir/verify.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "arith/analyzer.h"
#include "ir/builtins.h"
#include "tir/print.h"

namespace sator::tir {

namespace {

/// What programs of a stage may have.
struct StageRow {
  Stage stage;
  std::string_view name;
  bool root;        ///< the body is one block around all others
  bool blocks;      ///< blocks, and names for parts of buffers
  bool iterators;   ///< blocks with iterators and an init
  bool dimensions;  ///< buffers with another number of dimensions than one, and with strides
  bool wide_loops;  ///< vectorized loops
};
constexpr StageRow kStages[] = {
    {Stage::any, "any", false, true, true, true, true},
    {Stage::scheduled, "scheduled", true, true, true, true, true},
    {Stage::blocks, "blocks", false, true, true, true, true},
    {Stage::opaque, "opaque", false, true, false, true, true},
    {Stage::loops, "loops", false, false, false, true, true},
    {Stage::flat, "flat", false, false, false, false, true},
    {Stage::machine, "machine", false, false, false, false, false},
};
const StageRow& row_of(Stage stage) { return kStages[static_cast<int>(stage)]; }

class Verifier {
 public:
  Verifier(const PrimFunc& func, Stage stage) : func_(func), stage_(row_of(stage)) {}

  std::vector<Reason> run() {
    for (const VarRef& p : func_.params) define(*p, func_);
    for (const auto& [param, buffer] : func_.buffer_map) {
      if (!is_defined(*param))
        add({.what = text("the buffer ", buffer->name, " belongs to no parameter"),
             .needs = "a parameter of the function"},
            func_);
      define(*buffer->data, func_, true);  // arguments may share their memory
      gives_room(*buffer);
    }
    // Sizes that stand alone in a shape are bound by the argument; others are computed from them.
    for (const auto& [param, buffer] : func_.buffer_map) define_sizes(*buffer, func_);
    for (const auto& [param, buffer] : func_.buffer_map) check_buffer(*buffer, func_);
    if (stage_.root && !root_of(func_))
      add({.what = "the body is not one root block",
           .needs = "a block without iterators around all others",
           .hint = "parse the text, which adds it"},
          *func_.body);
    stmt(func_.body);
    return std::move(reasons_);
  }

 private:
  void add(Reason reason, const NodeBase& at, std::string label = "") {
    reason.at.insert(reason.at.begin(), {Ref<const Object>(&at), std::move(label)});
    reason.where = text("in func ", string_attr(func_.attrs, "global_symbol").value_or("main"));
    reasons_.push_back(std::move(reason));
  }

  // ---- Names ----

  bool is_defined(const Var& v) const { return scope_.count(&v) > 0; }
  void define(const Var& v, const NodeBase& where, bool may_repeat = false) {
    bool repeats = !bound_.insert(&v).second;
    if (repeats && !may_repeat)
      add({.what = text("the variable ", v.name, " is bound twice"),
           .needs = "one binding per variable and function",
           .hint = "rename the second one: make a fresh variable"},
          where);
    scope_.insert(&v);
  }
  void forget(const Var& v) { scope_.erase(&v); }

  void use(const Var& v, const NodeBase& where) {
    if (!is_defined(v)) {
      bool existed = bound_.count(&v);
      add({.what = text("the variable ", v.name, existed ? " is used outside of its scope" : " is not defined"),
           .needs = "a parameter, a loop, an iterator, a let or an allocation around each use",
           .hint = existed ? "move the use into the scope" : "declare it as a parameter or bind it"},
          where);
      scope_.insert(&v);  // once is enough
      return;
    }
    auto loop = loops_.find(&v);
    if (loop != loops_.end() && loop->second < blocks_.size() && naming_threads_ == 0)
      add({.what = text("block ", blocks_.back()->name, " uses the loop variable ", v.name, " of a loop around it"),
           .needs = "a block's statements and regions use its own iterators only",
           .hint = text("bind an iterator: v", v.name, " = T.axis.spatial(..., ", v.name, ")"),
           .at = {{Ref<const Object>(blocks_.back()), ""}}},
          where,
          text("uses ", v.name));
  }

  void define_sizes(const Buffer& b, const NodeBase& where) {
    auto bind = [&](const Expr& e) {
      const Var* v = e ? e.as<Var>() : nullptr;
      if (v && !is_defined(*v)) define(*v, where);
    };
    for (const Expr& e : b.shape) bind(e);
    for (const Expr& e : b.strides) bind(e);
    bind(b.elem_offset);
  }

  void check_buffer(const Buffer& b, const NodeBase& where) {
    if (!checked_buffers_.insert(&b).second) return;
    if (!b.data->dtype.is_handle())
      add({.what = text("the data of buffer ", b.name, " is no pointer"), .needs = "a handle"}, where);
    for (const Expr& e : b.shape) {
      index(e, where, "an extent");
      if (has_side_effect(e))
        add({.what =
                 text("the extent ", e, " of buffer ", b.name, " is a call, made again wherever the buffer is used"),
             .needs = "variables and numbers",
             .hint = "give the value a name before: n: T.int32 = T.call_packed(...)"},
            where);
      if (const IntImm* extent = e.as<IntImm>(); extent && extent->value < 0)
        add({.what = text("buffer ", b.name, " has an extent of ", extent->value),
             .needs = "extents of 0 or more",
             .hint = "check how the extent came about"},
            where);
    }
    for (const Expr& e : b.strides) index(e, where, "a stride");
    if (b.elem_offset) index(b.elem_offset, where, "an offset");
    if (!b.strides.empty() && b.strides.size() != b.shape.size())
      add({.what = text("buffer ", b.name, " has ", b.strides.size(), " strides and ", b.shape.size(), " dimensions"),
           .needs = "one stride per dimension"},
          where);
  }

  // ---- Memory behind pointers, where sizes are constants ----

  static std::optional<int64_t> bits_of(DType dtype, const std::vector<Expr>& extents) {
    int64_t bits = int64_t{dtype.bits} * dtype.lanes;
    for (const Expr& e : extents) {
      const auto extent = as_int(e);
      if (!extent || *extent < 0 || __builtin_mul_overflow(bits, *extent, &bits)) return {};
    }
    return bits;
  }
  void gives_room(const Var& data, DType dtype, const std::vector<Expr>& extents) {
    if (const auto bits = bits_of(dtype, extents)) room_[&data] = *bits;
  }
  void gives_room(const Buffer& b) {
    if (b.strides.empty() && !b.elem_offset) gives_room(*b.data, b.dtype, b.shape);
  }
  void check_room(const DeclBuffer& n) {
    const Buffer& b = *n.buffer;
    const auto room = room_.find(b.data.get());
    const auto begin = b.elem_offset ? as_int(b.elem_offset) : std::optional<int64_t>(0);
    const auto size = b.strides.empty() ? bits_of(b.dtype, b.shape) : std::nullopt;
    const auto skipped = begin ? bits_of(b.dtype, {int_imm(*begin, i64)}) : std::nullopt;
    int64_t end = 0;
    if (room == room_.end() || !size || !skipped || __builtin_add_overflow(*skipped, *size, &end)) return;
    if (end > room->second)
      add({.what =
               text("the buffer ", b.name, " ends at byte ", (end + 7) / 8, " of memory of ", (room->second + 7) / 8),
           .needs = "elements inside of the memory that `data` points to",
           .hint = "make the shape smaller, or the allocation larger"},
          n);
  }

  void use_buffer(const Buffer& b, const NodeBase& where) {
    if (!is_defined(*b.data)) {
      add({.what = text("the buffer ", b.name, " is not in scope"),
           .needs = "a parameter, T.alloc_buffer, T.match_buffer, T.decl_buffer or T.allocate around each use",
           .hint = "declare it in a block around all uses"},
          where);
      scope_.insert(b.data.get());
    }
    check_buffer(b, where);
  }

  // ---- Expressions ----

  void index(const Expr& e, const NodeBase& where, std::string_view what) {
    expr(e, where);
    if (!e->dtype.is_integer() || e->dtype.lanes != 1)
      add({.what = text(what, " of dtype ", e->dtype), .needs = "integers", .hint = "cast it"}, where);
  }
  void condition(const Expr& e, const NodeBase& where) {
    expr(e, where);
    if (!e->dtype.is_bool())
      add({.what = text("a condition of dtype ", e->dtype), .needs = "a bool", .hint = "compare it with 0"},
          where,
          text("is ", e));
  }

  void access(const Buffer& b, const std::vector<Expr>& indices, const NodeBase& where) {
    use_buffer(b, where);
    allow(stage_.dimensions || (b.rank() == 1 && b.strides.empty()), where, "an access to a buffer that is not flat");
    for (const Expr& i : indices) {
      expr(i, where);
      if (!i->dtype.is_integer())
        add({.what = text("an index of dtype ", i->dtype, " into ", b.name), .needs = "integers", .hint = "cast it"},
            where);
      if (i->dtype.lanes != 1 && &i != &indices.back())
        add({.what = text("a vector index before the last one into ", b.name),
             .needs = "a vector as the last index only"},
            where);
    }
    if (indices.size() != b.shape.size())
      add({.what = text(indices.size(), " indices into the buffer ", b.name, " of rank ", b.rank()),
           .needs = "one index per dimension"},
          where);
  }

  /// Calls `then` where `condition` came out as `outcome`.
  template <class Then>
  void under(const Expr& condition, bool outcome, Then then) {
    outcomes_.emplace_back(condition, outcome);
    then();
    outcomes_.pop_back();
  }
  /// False where a condition around never comes out as it has to: an unrolled loop leaves `if 0 > 0: A[8 // 0] = ...`.
  bool may_run() const {
    return std::ranges::none_of(outcomes_, [](const auto& o) {
      if (!o.first->dtype.is_bool() || o.first->dtype.lanes != 1) return false;
      const auto known = as_int(arith::Analyzer().simplify(o.first));
      return known && (*known != 0) != o.second;
    });
  }

  template <class T>
  void binary(const T& n, const NodeBase& where) {
    expr(n.a, where);
    expr(n.b, where);
    constexpr bool is_logic = std::is_same_v<T, And> || std::is_same_v<T, Or>;
    bool pointers_compared = n.a->dtype.is_handle() && (std::is_same_v<T, EQ> || std::is_same_v<T, NE>);
    bool wrong = n.a->dtype != n.b->dtype || (is_logic && !n.a->dtype.is_bool()) ||
                 (n.a->dtype.is_handle() && !pointers_compared);
    if (wrong)
      add({.what = text(T::kInfo.name, " of ", n.a->dtype, " and ", n.b->dtype),
           .needs = is_logic ? "two bools" : "numbers of one dtype",
           .hint = "cast one of them"},
          n);
    constexpr bool divides =
        std::is_same_v<T, Div> || std::is_same_v<T, Mod> || std::is_same_v<T, FloorDiv> || std::is_same_v<T, FloorMod>;
    if constexpr (divides) {
      const Broadcast* b = n.b.template as<Broadcast>();
      if (n.a->dtype.is_integer() && is_zero(b ? b->value : n.b) && may_run())
        add({.what = "a division by the constant 0",
             .needs = "a divisor that is not zero",
             .hint = "check how the divisor came about"},
            n);
    }
  }

  void call(const Call& n, const NodeBase& where) {
    if (n.op == "tir.address_of" && n.args.size() == 1) {
      expr(n.args[0], where);
      if (!n.args[0].as<BufferLoad>())
        add({.what = "the address of something else than an element", .needs = "T.address_of(A[i, j])"}, n);
      return;
    }
    if (n.op == "tir.tvm_thread_allreduce") {
      // Its last arguments name the threads that combine their values: loops around any block.
      ++naming_threads_;
      for (const Expr& a : n.args) expr(a, where);
      --naming_threads_;
    } else if (n.op == "tir.if_then_else" && n.args.size() == 3) {
      expr(n.args[0], where);
      under(n.args[0], true, [&] { expr(n.args[1], where); });
      under(n.args[0], false, [&] { expr(n.args[2], where); });
    } else {
      for (const Expr& a : n.args) expr(a, where);
    }
    if (n.op.starts_with("global:")) return;
    const Builtin* row = find_builtin(n.op);
    int count = static_cast<int>(n.args.size());
    if (!row) {
      add({.what = text("a call of ", n.op, ", which is no builtin"),
           .needs = "a row of ir/builtins.cc, or T.call_extern",
           .hint = "use T.call_extern"},
          n);
    } else if (count < row->min_args || (row->max_args >= 0 && count > row->max_args)) {
      add({.what = text("T.", row->script, " with ", count, " arguments"),
           .needs = text(row->min_args, row->max_args == row->min_args ? "" : " or more")},
          n);
    } else if (n.op == "tir.if_then_else") {
      choice(n.args[0], n.args[1], n.args[2], n);
    } else if (row->rule == ResultRule::like_first && n.dtype != n.args[0]->dtype) {
      add({.what = text("T.", row->script, " of ", n.args[0]->dtype, " gives ", n.dtype),
           .needs = "the dtype of its first argument"},
          n);
    }
  }

  void choice(const Expr& by, const Expr& yes, const Expr& no, const NodeBase& where) {
    const bool lanes_agree = by->dtype.lanes == 1 || by->dtype.all_lanes() == yes->dtype.all_lanes();
    if (by->dtype.is_bool() && yes->dtype == no->dtype && lanes_agree) return;
    add({.what = text("a choice by ", by->dtype, " between ", yes->dtype, " and ", no->dtype),
         .needs = "a bool, or one for each lane, and two values of one dtype"},
        where);
  }

  void expr(const Expr& e, const NodeBase& where) {
    if (!e) {
      add({.what = "a part of the program is missing", .needs = "an expression"}, where);
      return;
    }
    match(
        e,
        [&](const Var& n) { use(n, where); },
        [](const IntImm&) {},
        [](const FloatImm&) {},
        [](const StringImm&) {},
        [&](const Add& n) { binary(n, where); },
        [&](const Sub& n) { binary(n, where); },
        [&](const Mul& n) { binary(n, where); },
        [&](const Div& n) { binary(n, where); },
        [&](const Mod& n) { binary(n, where); },
        [&](const FloorDiv& n) { binary(n, where); },
        [&](const FloorMod& n) { binary(n, where); },
        [&](const Min& n) { binary(n, where); },
        [&](const Max& n) { binary(n, where); },
        [&](const EQ& n) { binary(n, where); },
        [&](const NE& n) { binary(n, where); },
        [&](const LT& n) { binary(n, where); },
        [&](const LE& n) { binary(n, where); },
        [&](const GT& n) { binary(n, where); },
        [&](const GE& n) { binary(n, where); },
        [&](const And& n) { binary(n, where); },
        [&](const Or& n) { binary(n, where); },
        [&](const Not& n) {
          expr(n.a, where);
          if (!n.a->dtype.is_bool()) add({.what = text("'not' of ", n.a->dtype), .needs = "a bool"}, n);
        },
        [&](const Select& n) {
          expr(n.condition, where);
          expr(n.true_value, where);
          expr(n.false_value, where);
          choice(n.condition, n.true_value, n.false_value, n);
        },
        [&](const Cast& n) {
          expr(n.value, where);
          if (n.dtype.all_lanes() != n.value->dtype.all_lanes())
            add({.what = text("a cast of ", n.value->dtype, " to ", n.dtype), .needs = "as many lanes"}, n);
        },
        [&](const BufferLoad& n) { access(*n.buffer, n.indices, where); },
        [&](const Call& n) { call(n, where); },
        [&](const Let& n) {
          expr(n.value, where);
          if (n.value->dtype != n.var->dtype)
            add({.what = text("a let of ", n.var->dtype, " bound to ", n.value->dtype), .needs = "one dtype"}, n);
          define(*n.var, n, true);
          expr(n.body, where);
          forget(*n.var);
        },
        [&](const Ramp& n) {
          expr(n.base, where);
          expr(n.stride, where);
          if (n.base->dtype != n.stride->dtype || n.lanes.count < 1)
            add({.what = text("a ramp of ", n.lanes, " lanes from ", n.base->dtype, " by ", n.stride->dtype),
                 .needs = "one integer dtype, at least one lane"},
                n);
        },
        [&](const Broadcast& n) { expr(n.value, where); },
        [&](const Shuffle& n) {
          for (const Expr& v : n.vectors) expr(v, where);
          for (const Expr& i : n.indices) expr(i, where);
        });
  }

  // ---- Statements ----

  /// Reports what the stage does not have.
  void allow(bool is_allowed, const NodeBase& n, std::string_view what) {
    if (is_allowed) return;
    add({.what = text(what, " in a program of stage ", stage_.name),
         .needs = text("what programs of stage ", stage_.name, " consist of"),
         .hint = "check the order of passes"},
        n);
  }

  void regions(const std::vector<BufferRegionRef>& list) {
    for (const BufferRegionRef& r : list) {
      use_buffer(*r->buffer, *r);
      if (r->region.size() != r->buffer->shape.size())
        add({.what = text("a region of ",
                          r->region.size(),
                          " ranges of the buffer ",
                          r->buffer->name,
                          " of rank ",
                          r->buffer->rank()),
             .needs = "one range per dimension"},
            *r);
      for (const RangeRef& range : r->region) {
        index(range->min, *r, "the begin of a region");
        index(range->extent, *r, "the extent of a region");
      }
    }
  }

  /// The end of its domain that a binding passes in some iteration of the loops around; nothing where it stays inside, or
  /// where that is not told: a binding that is not linear, loops whose ranges depend on each other.
  ///   →   the value that it takes, beside the nearest one of the domain
  std::optional<std::pair<Expr, Expr>> leaves_domain(const Range& domain, const Expr& value) {
    if (const Var* v = value.as<Var>()) {
      for (const For* loop : nest_)
        if (loop->var.get() == v && equal(loop->min, domain.min) && equal(loop->extent, domain.extent)) return {};
    }
    for (const For* loop : nest_) {
      if (auto extent = as_int(loop->extent); extent && *extent < 1) return {};  // never runs
      for (const For* other : nest_)
        if (uses_var(loop->min, *other->var) || uses_var(loop->extent, *other->var)) return {};
    }
    arith::Analyzer analyzer;
    for (bool upper : {false, true}) {
      Expr at = value;
      bool is_linear = true;
      for (const For* loop : nest_) {
        if (!uses_var(at, *loop->var)) continue;
        auto slope = as_int(analyzer.simplify(substitute(at, {{loop->var, loop->var + 1}}) - at));
        is_linear &= slope.has_value();
        if (!slope) break;
        Expr end = (*slope > 0) == upper ? loop->min + loop->extent - 1 : loop->min;
        at = substitute(at, {{loop->var, end}});
      }
      if (!is_linear) continue;
      Expr limit = upper ? domain.min + domain.extent - 1 : domain.min;
      auto beyond = as_int(analyzer.simplify(at - limit));
      if (beyond && (upper ? *beyond > 0 : *beyond < 0))
        return std::pair{analyzer.simplify(at), analyzer.simplify(limit)};
    }
    return {};
  }

  void block(const Block& n, const BlockRealize* realize) {
    allow(stage_.blocks, n, "a block");
    allow(stage_.iterators || (n.iter_vars.empty() && !n.init), n, "a block with iterators or an init");
    for (const IterVarRef& iter : n.iter_vars) {
      expr(iter->dom->min, *iter);
      expr(iter->dom->extent, *iter);
      if (!iter->var->dtype.is_int())
        add({.what = text("an iterator of dtype ", iter->var->dtype), .needs = "signed integers"}, *iter);
    }
    if (realize) {
      if (realize->values.size() != n.iter_vars.size())
        add({.what = text(realize->values.size(), " bindings for ", n.iter_vars.size(), " iterators of block ", n.name),
             .needs = "one binding per iterator"},
            n);
      for (size_t i = 0; i < realize->values.size(); ++i)
        index(realize->values[i],
              i < n.iter_vars.size() ? static_cast<const NodeBase&>(*n.iter_vars[i]) : n,
              "a binding");
      for (size_t i = 0; i < std::min(realize->values.size(), n.iter_vars.size()); ++i) {
        const Expr& value = realize->values[i];
        const Var& iter = *n.iter_vars[i]->var;
        if (value->dtype.is_integer() && value->dtype != iter.dtype)
          add({.what = text("the binding of ", iter.name, " is ", value->dtype, ", not ", iter.dtype),
               .needs = "one dtype",
               .hint = "cast the value"},
              *n.iter_vars[i]);
      }
      condition(realize->predicate, n);
      const bool always_runs = conditions_ == 0 && is_one(realize->predicate);
      for (size_t i = 0; always_runs && i < std::min(realize->values.size(), n.iter_vars.size()); ++i) {
        const IterVar& iter = *n.iter_vars[i];
        if (!realize->values[i]->dtype.is_integer()) continue;
        if (auto outside = leaves_domain(*iter.dom, realize->values[i]))
          add({.what =
                   text("iterator ", iter.var->name, " takes the value ", outside->first, ", beyond ", outside->second),
               .needs = "bindings inside of the iterators' domains wherever the predicate holds",
               .hint = "add the missing T.where, or state the domain that the loops pass over"},
              n);
      }
    }
    const bool is_conditional = realize && !is_one(realize->predicate);
    conditions_ += is_conditional;
    for (const IterVarRef& iter : n.iter_vars) define(*iter->var, *iter);
    // A block without iterators is transparent: it may use the loops around it.
    bool isolates = !n.iter_vars.empty();
    if (isolates) blocks_.push_back(&n);
    regions(n.reads);
    regions(n.writes);
    for (const BufferRef& b : n.alloc_buffers) {
      define(*b->data, n);
      gives_room(*b);
      check_buffer(*b, n);
    }
    for (const MatchBufferRef& m : n.match_buffers) match_buffer(*m);
    if (n.init) stmt(n.init);
    stmt(n.body);
    if (isolates) blocks_.pop_back();
    conditions_ -= is_conditional;
    for (const MatchBufferRef& m : n.match_buffers) forget(*m->buffer->data);
    for (const BufferRef& b : n.alloc_buffers) forget(*b->data);
    for (const IterVarRef& iter : n.iter_vars) forget(*iter->var);
  }

  void match_buffer(const MatchBuffer& m) {
    regions({m.source});
    const Buffer& b = *m.buffer;
    define(*b.data, m);
    define_sizes(b, m);
    check_buffer(b, m);
    size_t rank = b.shape.size(), all = m.source->region.size();
    bool fits = rank <= all && b.dtype == m.source->buffer->dtype;
    for (size_t i = 0; fits && i < all; ++i) {
      auto have = as_int(m.source->region[i]->extent);
      auto want = i < all - rank ? std::optional<int64_t>(1) : as_int(b.shape[i - (all - rank)]);
      fits = !have || !want || have == want;
    }
    if (!fits)
      add({.what = text("the buffer ", b.name, " does not fit the region ", *m.source),
           .needs = "the dtype and shape of the region, leading extents of 1 may be dropped"},
          m);
  }

  void loop(const For& n) {
    index(n.min, n, "the begin of a loop");
    index(n.extent, n, "the extent of a loop");
    if (n.min->dtype != n.var->dtype || n.extent->dtype != n.var->dtype)
      add({.what = text("loop ", n.var->name, " of ", n.var->dtype, " from ", n.min->dtype, " over ", n.extent->dtype),
           .needs = "one dtype",
           .hint = "cast the bounds"},
          n);
    if (n.kind == LoopKind::thread_binding && n.thread.empty())
      add({.what = text("loop ", n.var->name, " is bound to no thread axis"),
           .needs = "blockIdx.*, threadIdx.*, vthread.* or an axis of the chip"},
          n);
    allow(stage_.wide_loops || n.kind != LoopKind::vectorized, n, "a vectorized loop");
    define(*n.var, n);
    loops_[n.var.get()] = blocks_.size();
    nest_.push_back(&n);
    stmt(n.body);
    nest_.pop_back();
    loops_.erase(n.var.get());
    forget(*n.var);
  }

  void attr(const AttrStmt& n) {
    expr(n.value, n);
    const ThreadAxis* axis = n.node.as<ThreadAxis>();
    if (axis) {
      define(*axis->var, n, true);
    } else if (const Var* v = n.node.as<Var>()) {
      use(*v, n);
    } else if (const Buffer* b = n.node.as<Buffer>()) {
      use_buffer(*b, n);
    }
    stmt(n.body);
  }

  void scope_of(const Var& v, const NodeBase& n, const Stmt& body) {
    define(v, n);
    stmt(body);
    forget(v);
  }

  void stmt(const Stmt& s) {
    if (!s) return add({.what = "a statement is missing", .needs = "a body"}, func_);
    match(
        s,
        [&](const Block& n) { block(n, nullptr); },
        [&](const BlockRealize& n) { block(*n.block, &n); },
        [&](const For& n) { loop(n); },
        [&](const Seq& n) {
          for (const Stmt& inner : n.stmts) stmt(inner);
        },
        [&](const BufferStore& n) {
          access(*n.buffer, n.indices, n);
          expr(n.value, n);
          DType wanted = n.buffer->dtype;
          if (!n.indices.empty()) wanted = wanted.with_lanes(wanted.all_lanes() * n.indices.back()->dtype.all_lanes());
          if (n.value->dtype != wanted)
            add({.what = text("a ", n.value->dtype, " stored as ", wanted, " in ", n.buffer->name),
                 .needs = "the dtype of the buffer",
                 .hint = "cast the value"},
                n);
        },
        [&](const IfThenElse& n) {
          condition(n.condition, n);
          ++conditions_;
          under(n.condition, true, [&] { stmt(n.then_case); });
          if (n.else_case) under(n.condition, false, [&] { stmt(n.else_case); });
          --conditions_;
        },
        [&](const While& n) {
          condition(n.condition, n);
          ++conditions_;
          stmt(n.body);
          --conditions_;
        },
        [&](const LetStmt& n) {
          expr(n.value, n);
          if (n.value->dtype != n.var->dtype)
            add({.what = text("the value of ", n.var->name, " is ", n.value->dtype, ", not ", n.var->dtype),
                 .needs = "one dtype",
                 .hint = "cast the value"},
                n);
          scope_of(*n.var, n, n.body);
        },
        [&](const AttrStmt& n) { attr(n); },
        [&](const AssertStmt& n) {
          condition(n.condition, n);
          expr(n.message, n);
          stmt(n.body);
        },
        [&](const Evaluate& n) { expr(n.value, n); },
        [&](const Allocate& n) {
          for (const Expr& e : n.extents) index(e, n, "an extent");
          allow(stage_.dimensions || n.extents.size() == 1, n, "an allocation of several dimensions");
          condition(n.condition, n);
          gives_room(*n.data, n.dtype, n.extents);
          scope_of(*n.data, n, n.body);
        },
        [&](const AllocateConst& n) {
          int64_t count = 1, size = 0;
          bool is_known = true;
          for (const Expr& e : n.extents) {
            auto extent = as_int(e);
            is_known &= extent && *extent >= 0 && !__builtin_mul_overflow(count, *extent, &count);
          }
          is_known = is_known && !__builtin_mul_overflow(count, n.dtype.bytes(), &size);
          if (!is_known || size != static_cast<int64_t>(n.bytes.size()))
            add({.what = text(n.bytes.size(), " bytes of constant data for ", count, " elements of ", n.dtype),
                 .needs = "constant extents, and as many bytes"},
                n);
          gives_room(*n.data, n.dtype, n.extents);
          scope_of(*n.data, n, n.body);
        },
        [&](const DeclBuffer& n) {
          use_buffer(*n.buffer, n);
          check_room(n);
          stmt(n.body);
        });
  }

  const PrimFunc& func_;
  const StageRow& stage_;
  std::vector<Reason> reasons_;
  std::unordered_set<const Var*> scope_, bound_;
  std::unordered_set<const Buffer*> checked_buffers_;
  std::unordered_map<const Var*, int64_t> room_;  ///< bits of the memory behind a pointer, where it is a constant
  std::unordered_map<const Var*, size_t> loops_;  ///< loop variables, and how many isolating blocks were open
  std::vector<const Block*> blocks_;
  std::vector<const For*> nest_;                 ///< the loops around, outermost first
  int naming_threads_ = 0;                       ///< calls around whose arguments name thread axes
  int conditions_ = 0;                           ///< branches and predicates around
  std::vector<std::pair<Expr, bool>> outcomes_;  ///< of the conditions around, of branches and if_then_else
};

}  // namespace

std::string_view stage_name(Stage stage) { return row_of(stage).name; }

std::vector<Reason> verify(const PrimFunc& func, Stage stage) {
  std::vector<Reason> reasons = Verifier(func, stage).run();
  for (Reason& r : reasons) r = with_program(std::move(r), func);
  return reasons;
}

void require_well_formed(const PrimFunc& func, Stage stage) {
  std::vector<Reason> reasons = verify(func, stage);
  if (reasons.empty()) return;
  Reason first = std::move(reasons.front());
  if (reasons.size() > 1) first.what += text(" (the first of ", reasons.size(), " mistakes)");
  fail(std::move(first));
}

}  // namespace sator::tir
