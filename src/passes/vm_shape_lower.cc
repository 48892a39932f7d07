// Symbolic sizes at run time: each function has a heap of int64 with one slot per distinct expression. Arguments are
// checked and fill the slots of their bare variables; a generated function computes the derived ones; shapes are made
// from slots. The codes are those of the virtual machine's builtins (runtime/builtins/shape.cc).
#include <algorithm>
#include <set>

#include "arith/analyzer.h"
#include "passes/to_vm.h"
#include "relax/outline.h"
#include "relax/rebind.h"
#include "relax/struct_info.h"
#include "tir/nodes.h"

namespace sator::passes {

using namespace relax;

namespace {

enum MatchCode { kAssertImmediate = 0, kStore = 1, kSkip = 2, kAssertSlot = 3 };
enum MakeCode { kUseImmediate = 0, kLoadSlot = 1 };

/// "n * 2", as R.Shape([n * 2]) shows it.
std::string size_text(const Expr& size) {
  const std::string shape = text(shape_info({size}));
  const size_t begin = shape.find('[') + 1;
  return shape.substr(begin, shape.rfind(']') - begin);
}

class ShapeLowerer {
 public:
  ShapeLowerer(ModuleRef& module, const std::string& name, const FuncRef& func, bool names_places, bool trusts_weights)
      : module_(module), name_(name), func_(func), names_places_(names_places) {
    const auto inputs = trusts_weights ? int_attr(func->attrs, "num_input") : std::nullopt;
    if (inputs) first_weight_ = static_cast<size_t>(*inputs);
  }

  FuncRef run() {
    const SeqExpr* body = func_->body.as<SeqExpr>();
    if (!body) return func_;
    collect_slots();
    if (!slots_.empty()) {
      heap_ = make_rvar("shape_heap", tensor_info(i64, 1));
    } else {
      heap_ = make_rvar("shape_heap", object_info());
    }

    Bindings head;
    if (slots_.empty()) {
      head.bind(heap_, with_sinfo(relax::call(op_ref("null_value"), {}), object_info()));
    } else {
      StructInfo info = tensor_info(i64, 1);
      head.bind(heap_,
                with_sinfo(relax::call(op_ref("call_builtin_with_ctx"),
                                       {extern_func("vm.builtin.alloc_shape_heap"),
                                        relax::tuple({prim_value(static_cast<int64_t>(slots_.size()))})},
                                       {},
                                       {info}),
                           info));
    }
    for (size_t i = 0; i < func_->params.size(); ++i) {
      symbolic_only_ = i >= first_weight_;
      check(func_->params[i], func_->params[i]->sinfo, text(name_, ": parameter ", func_->params[i]->name), head);
    }
    for (size_t i = 0; i < func_->params.size(); ++i) {
      symbolic_only_ = i >= first_weight_;
      std::string where = text(name_, ": parameter ", func_->params[i]->name);
      match_sizes(func_->params[i], func_->params[i]->sinfo, where, head);
    }
    symbolic_only_ = false;
    compute_derived(head);

    std::vector<BindingBlockRef> blocks;
    blocks.push_back(make<BindingBlock>(head.list(), false));
    for (const BindingBlockRef& block : body->blocks) {
      Bindings list;
      for (const Binding& b : block->bindings) lower(b, list);
      blocks.push_back(with(block, &BindingBlock::bindings, std::move(list.list())));
    }
    Bindings tail;
    RExpr result = lower_sizes(body->body, tail);
    check_result(result, body->body->sinfo, tail);
    if (!tail.list().empty()) blocks.push_back(make<BindingBlock>(tail.list(), false));
    // Plain blocks that follow each other are one.
    std::vector<Binding> all;
    for (const BindingBlockRef& b : blocks) all.insert(all.end(), b->bindings.begin(), b->bindings.end());
    RExpr seq = make<SeqExpr>(std::vector<BindingBlockRef>{make<BindingBlock>(all, false)}, result, body->sinfo);
    return without_cast_sizes(with(func_, &Function::body, seq));
  }

 private:
  struct Later {
    RExpr value;
    StructInfo sinfo;
    std::string where;
  };

  /// Sizes that match_cast bound are slots of the heap now: nothing defines them for struct info any more.
  FuncRef without_cast_sizes(const FuncRef& f) const {
    if (cast_sizes_.empty()) return f;
    auto uses = [&](const std::vector<Expr>& sizes) {
      return std::ranges::any_of(sizes, [&](const Expr& e) {
        return std::ranges::any_of(vars_in(e), [&](const VarRef& v) { return cast_sizes_.count(v.get()) > 0; });
      });
    };
    return transform(
        f,
        [&](const TensorInfo& t) -> NodeRef {
          auto shape = shape_of(t);
          return shape && uses(*shape) ? NodeRef(tensor_info(t.dtype, t.ndim, t.vdevice)) : NodeRef(ref(t));
        },
        [&](const ShapeInfo& s) -> NodeRef {
          return s.values && uses(*s.values) ? NodeRef(shape_info(s.ndim)) : NodeRef(ref(s));
        },
        [&](const PrimInfo& p) -> NodeRef {
          return p.value && uses({p.value}) ? NodeRef(prim_info(p.dtype)) : NodeRef(ref(p));
        });
  }

  int64_t slot_of(const Expr& e) const {
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (equal(slots_[i], e)) return static_cast<int64_t>(i);
    }
    return -1;
  }
  void add_slot(const Expr& e) {
    if (as_int(e) || slot_of(e) >= 0) return;
    slots_.push_back(e);
  }

  void collect_slots() {
    auto from_info = [&](auto& self, const StructInfo& info) -> void {
      if (const TensorInfo* t = info.as<TensorInfo>()) {
        if (auto shape = shape_of(*t)) {
          for (const Expr& e : *shape) add_slot(e);
        }
      } else if (const ShapeInfo* s = info.as<ShapeInfo>()) {
        for (const Expr& e : s->values.value_or(std::vector<Expr>{})) add_slot(e);
      } else if (const PrimInfo* p = info.as<PrimInfo>()) {
        if (p->value) add_slot(p->value);
      } else if (const TupleInfo* t = info.as<TupleInfo>()) {
        for (const StructInfo& item : t->items) self(self, item);
      }
    };
    for (const RVarRef& p : func_->params) from_info(from_info, p->sinfo);
    const SeqExpr& body = *func_->body.as<SeqExpr>();
    arith::Analyzer arith;
    if (body.body->sinfo && !is_base_of(func_->ret, body.body->sinfo, arith)) from_info(from_info, func_->ret);
    walk(
        func_->body,
        [&](const MatchCast& m) { from_info(from_info, m.sinfo); },
        [&](const RVar&) { return false; },
        [&](const ShapeExpr& s) {
          for (const Expr& e : s.values) add_slot(e);
        },
        [&](const PrimValue& p) { add_slot(p.value); },
        [&](const StructInfoNode&) { return false; });
  }

  /// Kinds, ranks and dtypes; tuples are opened.
  void check(const RExpr& value, const StructInfo& info, const std::string& where, Bindings& out) {
    if (is_trusted(info)) return;
    RExpr err = string_value(names_places_ ? where : "");
    if (const TensorInfo* t = info.as<TensorInfo>()) {
      out.run(packed_call("vm.builtin.check_tensor_info",
                          {value, prim_value(int64_t{t->ndim}), dtype_value(t->dtype), err},
                          tuple_info({})));
    } else if (const ShapeInfo* s = info.as<ShapeInfo>()) {
      out.run(packed_call("vm.builtin.check_shape_info", {value, prim_value(int64_t{s->ndim}), err}, tuple_info({})));
    } else if (const PrimInfo* p = info.as<PrimInfo>()) {
      out.run(packed_call("vm.builtin.check_prim_value_info", {value, dtype_value(p->dtype), err}, tuple_info({})));
    } else if (info.as<FuncInfo>()) {
      out.run(packed_call("vm.builtin.check_func_info", {value, err}, tuple_info({})));
    } else if (const TupleInfo* t = info.as<TupleInfo>()) {
      out.run(packed_call("vm.builtin.check_tuple_info",
                          {value, prim_value(static_cast<int64_t>(t->items.size())), err},
                          tuple_info({})));
      for (size_t i = 0; i < t->items.size(); ++i) {
        if (t->items[i].as<ObjectInfo>() || is_trusted(t->items[i])) continue;
        check(item_of(value, static_cast<int>(i), t->items[i], out), t->items[i], text(where, "[", i, "]"), out);
      }
    }
  }

  /// A weight that tells no size of the program.
  bool is_trusted(const StructInfo& info) const {
    return symbolic_only_ && !info.as<TupleInfo>() && vars_in(info).empty();
  }

  RExpr item_of(const RExpr& tuple, int index, const StructInfo& info, Bindings& out) {
    auto key = std::pair(tuple, index);
    auto at = items_.find(key);
    if (at != items_.end()) return at->second;
    // What is not known to be a tuple until it was checked is opened by the runtime.
    const RExpr item =
        tuple->sinfo.as<TupleInfo>()
            ? with_sinfo(tuple_get(tuple, index), info)
            : packed_call("vm.builtin.tuple_getitem", {tuple, prim_value(int64_t{index})}, object_info());
    return items_.emplace(key, out.emit("item", item)).first->second;
  }

  /// Extents: constants are asserted, a variable's first sight fills its slot, later ones are asserted; what is not
  /// known yet is asserted once it is computed.
  void match_sizes(const RExpr& value, const StructInfo& info, const std::string& where, Bindings& out) {
    if (const TupleInfo* t = info.as<TupleInfo>()) {
      for (size_t i = 0; i < t->items.size(); ++i) {
        if (t->items[i].as<ObjectInfo>() || is_trusted(t->items[i])) continue;
        match_sizes(item_of(value, static_cast<int>(i), t->items[i], out), t->items[i], text(where, "[", i, "]"), out);
      }
      return;
    }
    if (is_trusted(info)) return;
    std::vector<Expr> sizes;
    bool is_prim = false;
    if (const TensorInfo* t = info.as<TensorInfo>()) {
      auto shape = shape_of(*t);
      if (!shape) return;
      sizes = *shape;
    } else if (const ShapeInfo* s = info.as<ShapeInfo>()) {
      if (!s->values) return;
      sizes = *s->values;
    } else if (const PrimInfo* p = info.as<PrimInfo>()) {
      if (!p->value) return;
      sizes = {p->value};
      is_prim = true;
    } else {
      return;
    }
    bool again = false;
    std::vector<RExpr> args = {value, heap_};
    if (!is_prim) args.push_back(prim_value(static_cast<int64_t>(sizes.size())));
    auto push = [&](int64_t code, int64_t operand) {
      args.push_back(prim_value(code));
      args.push_back(prim_value(operand));
    };
    for (const Expr& e : sizes) {
      if (auto v = as_int(e)) {
        push(kAssertImmediate, *v);
      } else if (is_ready(e)) {
        push(kAssertSlot, slot_of(e));
      } else if (const Var* v = e.as<Var>()) {
        ready_.insert(slot_of(e));
        defined_.insert(v);
        push(kStore, slot_of(e));
      } else {
        push(kSkip, 0);
        again = true;
      }
    }
    args.push_back(string_value(names_places_ ? where : ""));
    out.run(packed_call(is_prim ? "vm.builtin.match_prim_value" : "vm.builtin.match_shape", args, tuple_info({})));
    if (again) later_.push_back({value, info, where});
  }

  bool is_ready(const Expr& e) const { return ready_.count(slot_of(e)) > 0; }

  /// What the function declares of its result and its body does not say is checked before it returns.
  void check_result(const RExpr& result, const StructInfo& known, Bindings& out) {
    arith::Analyzer arith;
    if (!known || is_base_of(func_->ret, known, arith)) return;
    const std::string where = text(name_, ": its result");
    const StructInfo& declared = func_->ret;
    auto missing = [&](auto& self, const RExpr& value, const StructInfo& info, const StructInfo& have) -> void {
      if (is_base_of(info, have, arith)) return;
      const TupleInfo *all = info.as<TupleInfo>(), *parts = have.as<TupleInfo>();
      if (!all || !parts || all->items.size() != parts->items.size()) {
        check(value, info, where, out);
        match_sizes(value, info, where, out);
        return;
      }
      for (size_t i = 0; i < all->items.size(); ++i)
        self(self, item_of(value, static_cast<int>(i), parts->items[i], out), all->items[i], parts->items[i]);
    };
    missing(missing, result, declared, known);
  }

  /// Slots whose variables are all known by now are computed by a function of their own.
  void compute_derived(Bindings& out) {
    std::vector<int64_t> now;
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (ready_.count(static_cast<int64_t>(i))) continue;
      bool known = true;
      for (const VarRef& v : vars_in(slots_[i])) known &= defined_.count(v.get()) > 0;
      if (known) now.push_back(static_cast<int64_t>(i));
    }
    if (!now.empty()) {
      for (int64_t i : now) ready_.insert(i);
      std::string name = fresh_name(module_, "shape_func");
      tir::PrimFuncRef f = shape_function(now);
      module_ = with_function(std::move(module_), name, f);
      out.run(with_sinfo(relax::call(global_var(name, info_of(*f)), {heap_}), tuple_info({})));
    }
    std::vector<Later> later;
    std::swap(later, later_);
    for (const Later& l : later) match_sizes(l.value, l.sinfo, l.where, out);
  }

  /// Whether no sum, difference or product in a size wraps, computed in floats; null where it has none.
  static Expr fits_64_bits(const Expr& size) {
    constexpr double kLimit = 0x1p63;
    Expr all;
    const auto require = [&](const Expr& value) {
      const Expr inside = logical_and(lt(constant(-kLimit, f64), value), lt(value, constant(kLimit, f64)));
      all = all ? logical_and(all, inside) : inside;
      return true;
    };
    walk(
        size,
        [&](const Add& n) { return require(cast_to(f64, n.a) + cast_to(f64, n.b)); },
        [&](const Sub& n) { return require(cast_to(f64, n.a) - cast_to(f64, n.b)); },
        [&](const Mul& n) { return require(cast_to(f64, n.a) * cast_to(f64, n.b)); });
    return all;
  }

  tir::PrimFuncRef shape_function(const std::vector<int64_t>& which) {
    BufferRef heap = make_buffer("H", {int_imm(static_cast<int64_t>(slots_.size()), i64)}, i64);
    std::vector<tir::Stmt> stores;
    for (int64_t i : which) {
      const Expr& size = slots_[static_cast<size_t>(i)];
      VarMap map;
      for (const VarRef& v : vars_in(size)) map.emplace(v, load(heap, {int_imm(slot_of(v), i64)}));
      const Expr value = substitute(size, map);
      tir::Stmt stored = tir::store(heap, cast_to(i64, value), {int_imm(i, i64)});
      if (const Expr fits = names_places_ ? fits_64_bits(value) : nullptr)
        stored = make<tir::AssertStmt>(
            fits, string_imm(text(name_, ": the size ", size_text(size), " exceeds 64 bits")), std::move(stored));
      stores.push_back(std::move(stored));
    }
    VarRef param = make_var("H", DType::Handle());
    return make<tir::PrimFunc>(std::vector<VarRef>{param},
                               std::vector<std::pair<VarRef, BufferRef>>{{param, heap}},
                               DType::Void(),
                               Attrs{{"tir.is_host_func", int_imm(1)}},
                               tir::seq(std::move(stores)));
  }

  void lower(const Binding& b, Bindings& out) {
    if (const MatchCast* m = b.as<MatchCast>()) {
      if (is_checked(m->value->sinfo, m->sinfo)) {
        out.bind(m->var, m->value);
        return;
      }
      RExpr value = lower_sizes(m->value, out);
      std::string where = text(name_, ": match_cast of ", m->var->name);
      const auto pair = compared_sizes(*m);
      if (pair) {
        where = text(name_, ": ", m->var->name, "\n", size_text(pair->first), " == ", size_text(pair->second));
        checked_.push_back(*pair);
      }
      std::set<const Var*> before = defined_;
      if (!pair) check(value, m->sinfo, where, out);
      match_sizes(value, m->sinfo, where, out);
      compute_derived(out);
      std::ranges::set_difference(defined_, before, std::inserter(cast_sizes_, cast_sizes_.end()));
      out.bind(m->var, value);
      return;
    }
    const VarBinding* v = b.as<VarBinding>();
    out.bind(v->var, lower_sizes(v->value, out));
  }

  /// The two sizes that a match_cast of R.shape([p]) to R.Shape([m]) compares, where both are known by now.
  std::optional<std::pair<Expr, Expr>> compared_sizes(const MatchCast& m) const {
    const ShapeExpr* have = m.value.as<ShapeExpr>();
    const ShapeInfo* want = m.sinfo.as<ShapeInfo>();
    if (!have || !want || !want->values || have->values.size() != 1 || want->values->size() != 1) return {};
    const Expr &a = have->values[0], &b = want->values->front();
    if (!as_int(b) && !is_ready(b)) return {};
    return std::pair(a, b);
  }
  /// Whether earlier checks say that a value of one struct info is of the other, which the struct info alone does not.
  bool is_checked(const StructInfo& have, const StructInfo& want) const {
    const TensorInfo *x = have.as<TensorInfo>(), *y = want.as<TensorInfo>();
    const auto s = x ? relax::shape_of(*x) : std::nullopt, t = y ? relax::shape_of(*y) : std::nullopt;
    if (checked_.empty() || !s || !t || s->size() != t->size() || x->dtype != y->dtype) return false;
    bool differs = false;
    for (size_t d = 0; d < s->size(); ++d) {
      if (equal((*s)[d], (*t)[d])) continue;
      if (!is_checked((*s)[d], (*t)[d])) return false;
      differs = true;
    }
    return differs;
  }
  bool is_checked(const Expr& a, const Expr& b) const {
    std::vector<Expr> alike{a};
    for (size_t i = 0; i < alike.size(); ++i) {
      const Expr at = alike[i];
      if (equal(at, b)) return true;
      for (const auto& [x, y] : checked_) {
        const Expr other = equal(x, at) ? y : equal(y, at) ? x : nullptr;
        if (other && std::ranges::none_of(alike, [&](const Expr& e) { return equal(e, other); }))
          alike.push_back(other);
      }
    }
    return false;
  }

  /// Shapes and scalars that are not constant come from the heap. Struct info is left as it is.
  RExpr lower_sizes(const RExpr& e, Bindings& out) {
    if (const ShapeExpr* s = e.as<ShapeExpr>()) {
      bool constant = true;
      for (const Expr& v : s->values) constant &= as_int(v).has_value();
      if (constant) return e;
      std::vector<RExpr> args = {heap_, prim_value(static_cast<int64_t>(s->values.size()))};
      for (const Expr& v : s->values) push_make(v, args);
      return out.emit("shape",
                      packed_call("vm.builtin.make_shape", args, shape_info(static_cast<int>(s->values.size()))));
    }
    if (const PrimValue* p = e.as<PrimValue>()) {
      if (as_int(p->value) || p->value.as<FloatImm>()) return e;
      std::vector<RExpr> args = {heap_};
      push_make(p->value, args);
      return out.emit("size", packed_call("vm.builtin.make_prim_value", args, p->sinfo));
    }
    if (const RCall* call = e.as<RCall>()) {
      std::vector<RExpr> args;
      for (const RExpr& a : call->args) args.push_back(lower_sizes(a, out));
      return args == call->args ? e : RExpr(with(*call, &RCall::args, std::move(args)));
    }
    if (const relax::Tuple* t = e.as<relax::Tuple>()) {
      std::vector<RExpr> items;
      for (const RExpr& item : t->items) items.push_back(lower_sizes(item, out));
      return items == t->items ? e : RExpr(with(*t, &relax::Tuple::items, std::move(items)));
    }
    if (const If* branch = e.as<If>())
      return with(with(*branch, &If::true_branch, lower_branch(branch->true_branch)),
                  &If::false_branch,
                  lower_branch(branch->false_branch));
    return e;
  }
  RExpr lower_branch(const RExpr& e) {
    const SeqExpr* seq = e.as<SeqExpr>();
    if (!seq) return e;
    std::set<int64_t> ready = ready_;
    std::set<const Var*> defined = defined_;
    auto checked = checked_;
    Bindings list;
    for (const BindingBlockRef& block : seq->blocks) {
      for (const Binding& b : block->bindings) lower(b, list);
    }
    RExpr result = lower_sizes(seq->body, list);
    ready_ = std::move(ready);  // what a branch binds is not known behind it
    defined_ = std::move(defined);
    checked_ = std::move(checked);
    return make<SeqExpr>(std::vector<BindingBlockRef>{make<BindingBlock>(list.list(), false)}, result, seq->sinfo);
  }
  void push_make(const Expr& e, std::vector<RExpr>& args) {
    if (auto v = as_int(e)) {
      args.push_back(prim_value(int64_t{kUseImmediate}));
      args.push_back(prim_value(*v));
      return;
    }
    if (!is_ready(e)) internal_error(text("VMShapeLower: a size of ", name_, " is used before it is known"));
    args.push_back(prim_value(int64_t{kLoadSlot}));
    args.push_back(prim_value(slot_of(e)));
  }

  ModuleRef& module_;
  const std::string& name_;
  const FuncRef& func_;
  bool names_places_;               ///< in checks, for their messages
  size_t first_weight_ = SIZE_MAX;  ///< of the parameters that are trusted
  bool symbolic_only_ = false;      ///< what is checked now is trusted
  RVarRef heap_;
  std::vector<Expr> slots_;
  std::set<int64_t> ready_;
  std::set<const Var*> defined_;
  std::set<const Var*> cast_sizes_;             ///< those of defined_ that a match_cast binds
  std::vector<std::pair<Expr, Expr>> checked_;  ///< sizes that were compared
  std::map<std::pair<RExpr, int>, RExpr> items_;
  std::vector<Later> later_;
};

}  // namespace

ModuleRef vm_shape_lower(const ModuleRef& module, const PassContext& ctx) {
  const bool names_places = int_attr(ctx.config, "VMShapeLower.emit_err_ctx").value_or(1) != 0;
  const bool trusts_weights = int_attr(ctx.config, "VMShapeLower.trust_weights").value_or(0) != 0;
  ModuleRef out = module;
  for (const auto& [name, func] : module->functions) {
    if (FuncRef f = cast<Function>(func)) {
      FuncRef lowered = ShapeLowerer(out, name, f, names_places, trusts_weights).run();
      out = with_function(std::move(out), name, lowered);
    }
  }
  return out;
}

}  // namespace sator::passes
