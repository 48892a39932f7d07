#include "relax/verify.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "ir/visit.h"
#include "relax/builder.h"
#include "relax/ops/table.h"
#include "relax/outline.h"
#include "relax/print.h"
#include "relax/shared_memory.h"
#include "relax/struct_info.h"
#include "tir/nodes.h"

namespace sator::relax {

namespace {

class Verifier {
 public:
  explicit Verifier(const Module& module) : module_(&module), memory_(module) {}
  explicit Verifier(const Function& function) : module_(nullptr), memory_(function) {}

  void check(const Function& f, const std::string& name) {
    outermost_ = &f;
    name_ = name;
    if (auto symbol = string_attr(f.attrs, "global_symbol"); symbol && *symbol != name)
      add({.what = text("the function ", name, " has the attribute global_symbol ", string_literal(*symbol)),
           .needs = "the name that the module knows it by",
           .hint = "rename one of them"},
          f);
    function(f);
  }

  std::vector<Reason> reasons;

 private:
  using Vars = std::unordered_set<const RVar*>;
  using Sizes = std::unordered_set<const Var*>;

  void add(Reason reason, const NodeBase& at) {
    reason.at.insert(reason.at.begin(), {Ref<const Object>(&at), ""});
    reason.where = text("in func ", name_);
    reasons.push_back(with_program(std::move(reason), *outermost_));
  }

  // ---- Symbolic sizes ----

  /// Every variable that stands alone is defined here.
  void define_sizes(const StructInfo& info) {
    for (const VarRef& v : definable_vars(info)) {
      sizes_.insert(v.get());
      own(*v);
    }
    match(
        info,
        [&](const TensorInfo& t) {
          if (const RVar* shape = t.shape.as<RVar>()) vars_.insert(shape);
        },
        [&](const TupleInfo& t) {
          for (const StructInfo& item : t.items) define_sizes(item);
        },
        [](const StructInfoNode&) {});
  }

  void own(const Var& v) {
    auto [at, is_new] = owner_.emplace(&v, outermost_);
    if (!is_new && at->second != outermost_ && shared_.insert(&v).second)
      add({.what = text("the size ", v.name, " occurs in two functions"),
           .needs = "sizes of its own for each function",
           .hint = "copy one of the functions with fresh variables"},
          v);
  }

  void size(const Expr& e) {
    for (const VarRef& v : vars_in(e)) {
      if (!sizes_.count(v.get()) && reported_.insert(v.get()).second) undefined(*v);
      own(*v);
    }
  }

  void undefined(const Var& size) {
    if (local_ && sizes_around_.count(&size))
      add({.what = text("the size ", size.name, " is not defined in the local function ", local_name_),
           .needs = "sizes that its own parameters or match_casts define: a local function does not capture sizes",
           .hint =
               text("give ", local_name_, " a parameter of shape (", size.name, ",), or R.Shape([", size.name, "])")},
          *local_);
    else
      add({.what = text("the size ", size.name, " is not defined"),
           .needs = "a parameter or a match_cast before the use, in whose struct info it stands alone",
           .hint = "add it to a parameter, or bind it with R.match_cast"},
          size);
  }

  /// The sizes that struct info uses.
  void info(const StructInfo& s) {
    match(
        s,
        [](const ObjectInfo&) {},
        [&](const PrimInfo& p) {
          if (p.value) size(p.value);
        },
        [&](const ShapeInfo& shape) {
          if (shape.values)
            for (const Expr& e : *shape.values) size(e);
        },
        [&](const TensorInfo& t) {
          if (const RVar* shape = t.shape.as<RVar>())
            variable(*shape);
          else if (auto values = shape_of(t))
            for (const Expr& e : *values) size(e);
        },
        [&](const DTensorInfo& d) { info(d.tensor); },
        [&](const TupleInfo& t) {
          for (const StructInfo& item : t.items) info(item);
        },
        [&](const FuncInfo& f) {
          // A function type has sizes of its own: its parameters define them.
          Sizes outer = sizes_;
          if (f.params)
            for (const StructInfo& p : *f.params) define_sizes(p);
          if (f.ret) info(f.ret);
          sizes_ = std::move(outer);
        });
  }

  void need_info(const RelaxExprNode& e) {
    if (e.sinfo)
      info(e.sinfo);
    else
      add({.what = text("a ", e.info().name, " has no struct info"),
           .needs = "struct info for every part",
           .hint = "build it with BlockBuilder, which infers it"},
          e);
  }

  // ---- Variables ----

  void variable(const RVar& v) {
    bool known = v.is_dataflow ? dataflow_vars_.count(&v) : vars_.count(&v) || recursive_.count(&v);
    if (v.is_dataflow && !in_dataflow_)
      add({.what = text("the dataflow variable ", v.name, " is used outside of a dataflow block"),
           .needs = "a variable that the block outputs",
           .hint = "add it to R.output"},
          v);
    else if (!known)
      add({.what = text("the variable ", v.name, " is not defined"),
           .needs = "a parameter or a binding before the use, in the same or an outer scope",
           .hint = "bind it first"},
          v);
    if (!v.sinfo) need_info(v);
  }

  void define(const RVar& v) {
    if (v.is_dataflow && !in_dataflow_)
      add({.what = text("the dataflow variable ", v.name, " is bound outside of a dataflow block"),
           .needs = "an ordinary variable",
           .hint = "make it with make_rvar"},
          v);
    if (!(v.is_dataflow ? dataflow_vars_ : vars_).insert(&v).second)
      add({.what = text("the variable ", v.name, " is bound twice"),
           .needs = "one binding per variable",
           .hint = "make a fresh variable"},
          v);
    need_info(v);
  }

  // ---- Functions ----

  void function(const Function& f) {
    Vars vars = vars_, dataflow_vars = dataflow_vars_;
    const Function* outer_local = std::exchange(local_, &f == outermost_ ? nullptr : &f);
    Sizes sizes_around = sizes_around_;
    sizes_around_.insert(sizes_.begin(), sizes_.end());
    Sizes sizes = std::exchange(sizes_, {});  // symbolic sizes are not captured
    bool in_dataflow = std::exchange(in_dataflow_, false);
    for (const RVarRef& p : f.params) {
      if (p->sinfo) define_sizes(p->sinfo);
    }
    bool force_pure = int_attr(f.attrs, "relax.force_pure").value_or(0) != 0;
    if (force_pure && !f.is_pure)
      add({.what = "relax.force_pure on a function that is not pure",
           .needs = "a function declared pure",
           .hint = "remove the attribute, or pure=False"},
          f);
    for (const RVarRef& p : f.params) {
      if (!params_.insert(p.get()).second)
        add({.what = text("the variable ", p->name, " is a parameter twice"),
             .needs = "parameters of its own for each function",
             .hint = "make fresh variables"},
            *p);
      // Its own parameter may have been put in scope as the shape of another one.
      vars_.erase(p.get());
      define(*p);
    }
    if (f.ret)
      info(f.ret);
    else
      add({.what = "the struct info of the result is missing",
           .needs = "a declared or inferred result",
           .hint = "build it with BlockBuilder::end_function"},
          f);
    bool outer_pure = std::exchange(must_be_pure_, f.is_pure && !force_pure);
    sequence(f.body);
    if (const SeqExpr* body = f.body.as<SeqExpr>()) holds(f.ret, body->body, "the result", f);
    must_be_pure_ = outer_pure;
    in_dataflow_ = in_dataflow;
    dataflow_vars_ = std::move(dataflow_vars);
    vars_ = std::move(vars);
    sizes_ = std::move(sizes);
    sizes_around_ = std::move(sizes_around);
    local_ = outer_local;
  }

  void sequence(const RExpr& e) {
    const SeqExpr* seq = e.as<SeqExpr>();
    if (!seq) {
      add({.what = text("a ", e ? e->info().name : "null node", " as a body"),
           .needs = "a SeqExpr as the body of a function or branch",
           .hint = "build it with BlockBuilder"},
          e ? static_cast<const NodeBase&>(*e) : *outermost_);
      return;
    }
    for (const BindingBlockRef& block : seq->blocks) {
      bool outer = std::exchange(in_dataflow_, block->is_dataflow);
      for (const Binding& b : block->bindings) binding(b);
      in_dataflow_ = outer;
      if (block->is_dataflow) dataflow_vars_.clear();
    }
    argument(seq->body, "the result of a body");
    need_info(*seq);
  }

  void binding(const Binding& b) {
    if (const MatchCast* m = b.as<MatchCast>()) {
      value(m->value);
      define_sizes(m->sinfo);
      info(m->sinfo);
      define(*m->var);
      return;
    }
    const VarBinding& v = *b.as<VarBinding>();
    // A function may call itself by the variable that it is bound to.
    bool is_function = v.value.as<LocalFunction>() != nullptr;
    if (is_function) recursive_.insert(v.var.get());
    std::string outer_name = is_function ? std::exchange(local_name_, v.var->name) : local_name_;
    value(v.value);
    local_name_ = std::move(outer_name);
    if (is_function) recursive_.erase(v.var.get());
    define(*v.var);
    holds(v.var->sinfo, v.value, text("the variable ", v.var->name), *v.var);
  }

  /// Struct info that is declared does not contradict the value's own; it may know more.
  void holds(const StructInfo& declared, const RExpr& value, const std::string& of, const NodeBase& at) {
    const StructInfo& own = value->sinfo;
    if (!declared || !own || declared == own) return;
    if (base_check(declared, own, arith_) != BaseCheck::disjoint) return;
    add({.what = text(of, " is declared ", declared, ", and its value is ", own),
         .needs = "struct info that holds for the value",
         .hint = "infer it anew with BlockBuilder"},
        at);
  }

  // ---- Expressions ----

  /// A part of a value: it is a leaf or a tuple of leaves.
  void argument(const RExpr& e, const char* place) {
    if (!is_leaf(e) && !e.as<Tuple>()) {
      add({.what = text(place, " is a ", e->info().name),
           .needs = "A-normal form: variables, constants, shapes and tuples of them",
           .hint = "bind it to a variable first"},
          *e);
      return;
    }
    value(e);
  }

  void value(const RExpr& e) {
    match(
        e,
        [&](const RVar& v) { variable(v); },
        [&](const GlobalVar& g) { global(g); },
        [&](const Constant& c) { need_info(c); },
        [&](const Tuple& t) {
          for (const RExpr& item : t.items) argument(item, "an item of a tuple");
          need_info(t);
        },
        [&](const TupleGetItem& t) {
          argument(t.tuple, "the tuple that an item is taken from");
          need_info(t);
        },
        [&](const ShapeExpr& s) {
          for (const Expr& extent : s.values) {
            size(extent);
            if (!extent->dtype.is_integer())
              add({.what = text("an extent of dtype ", extent->dtype), .needs = "integers", .hint = "cast it"}, s);
          }
          need_info(s);
        },
        [&](const PrimValue& p) {
          size(p.value);
          need_info(p);
        },
        [&](const RString& s) { need_info(s); },
        [&](const DTypeImm& d) { need_info(d); },
        [&](const Op&) {},
        [&](const ExternFunc& f) { need_info(f); },
        [&](const RCall& c) { call(c); },
        [&](const SeqExpr& s) {
          add({.what = "a SeqExpr as a value",
               .needs = "a SeqExpr as the body of a function or branch only",
               .hint = "put its bindings into the block"},
              s);
        },
        [&](const If& n) { branch(n); },
        [&](const LocalFunction& f) {
          function(*f.function);
          need_info(f);
        });
  }

  void global(const GlobalVar& g) {
    if (module_ && !module_->functions.count(g.name))
      add({.what = text("the module has no function ", g.name),
           .needs = "a function of the module",
           .hint = "add it, or call it by R.call_packed"},
          g);
  }

  void call(const RCall& c) {
    argument(c.op, "what is called");
    for (const RExpr& a : c.args) argument(a, "an argument");
    for (const StructInfo& s : c.sinfo_args) info(s);
    need_info(c);
    const Op* op = c.op.as<Op>();
    if (op && op->name == "call_tir" && module_) tensor_call(c);
    constant_arguments(c);
    if (const OpDef* def = op ? find_op(op->name) : nullptr; def && def->normalize) {
      BlockBuilder builder;
      if (RExpr normal = def->normalize(ref(c), builder); !equal(normal, ref(c)))
        add({.what = text("a call of ", op->name, " that is not in the op's normal form"),
             .needs = "what its FNormalize leaves as it is",
             .hint = "run relax.transform.Normalize"},
            c);
    }
    if (!is_impure_call(ref(c))) return;
    if (in_dataflow_)
      add({.what = "an impure call in a dataflow block",
           .needs = "calls without effects",
           .hint = "move it out of the block, or use the pure variant (call_pure_packed)"},
          c);
    else if (must_be_pure_)
      add({.what = "an impure call in a function that is declared pure",
           .needs = "@R.function(pure=False), or calls without effects",
           .hint = "use the pure variant (call_pure_packed), or the attribute relax.force_pure"},
          c);
  }

  /// call_tir hands a tensor function one pointer per tensor of its arguments and of its result.
  void tensor_call(const RCall& c) {
    const GlobalVar* callee = c.args.empty() ? nullptr : c.args[0].as<GlobalVar>();
    auto at = callee ? module_->functions.find(callee->name) : module_->functions.end();
    const auto* f = at == module_->functions.end() ? nullptr : at->second.as<tir::PrimFunc>();
    if (!f || c.args.size() < 2 || c.sinfo_args.empty() || !c.args[1]->sinfo) return;
    std::vector<StructInfo> given;
    std::function<void(const StructInfo&)> gather = [&](const StructInfo& s) {
      if (const TupleInfo* tuple = s.as<TupleInfo>())
        for (const StructInfo& item : tuple->items) gather(item);
      else if (!s.as<PrimInfo>())  // a scalar parameter takes it
        given.push_back(s);
    };
    gather(c.args[1]->sinfo);
    gather(c.sinfo_args[0]);
    std::vector<VarRef> taken;
    std::ranges::copy_if(f->params, std::back_inserter(taken), [](const VarRef& p) { return p->dtype.is_handle(); });
    if (given.size() != taken.size()) {
      add({.what = text("call_tir gives ",
                        callee->name,
                        " ",
                        given.size(),
                        " tensors, results included, and it takes ",
                        taken.size()),
           .needs = "one tensor per buffer of the function: its arguments, then its results",
           .hint = "compare the call with the function's parameters"},
          c);
      return;
    }
    for (size_t i = 0; i < given.size(); ++i) {
      const TensorInfo* tensor = given[i].as<TensorInfo>();
      if (const DTensorInfo* d = given[i].as<DTensorInfo>()) tensor = d->tensor.get();
      const auto buffer = std::ranges::find(f->buffer_map, taken[i], &std::pair<VarRef, BufferRef>::first);
      if (!tensor || buffer == f->buffer_map.end() || fits(*tensor, *buffer->second)) continue;
      add({.what = text("call_tir gives ", callee->name, " ", given[i], " as the buffer ", buffer->second->name),
           .needs = text("dtype ", buffer->second->dtype, " and the extents (", join(buffer->second->shape, ", "), ")"),
           .hint = "compare the call with the function's parameters"},
          c);
    }
  }

  /// A constant is the same in every run: nothing is computed into its memory.
  void constant_arguments(const RCall& c) {
    for (const SharedMemory::ConstantWrite& write : memory_.constant_writes()) {
      if (write.call.get() != &c) continue;
      const GlobalVar* callee = c.op.as<GlobalVar>();
      const RVar* local = c.op.as<RVar>();
      add({.what = text(callee  ? callee->name
                        : local ? local->name
                                : "call_tir_inplace",
                        " overwrites its argument ",
                        write.argument,
                        ", a constant"),
           .needs = "arguments that are computed or passed where results take their memory",
           .hint = "give the result fresh memory: -1 in inplace_indices, or R.call_tir"},
          c);
    }
  }

  /// The tensor may be what the buffer says: dtype, number of dimensions, and extents where both are numbers.
  static bool fits(const TensorInfo& tensor, const Buffer& buffer) {
    if (!tensor.dtype.is_void() && tensor.dtype != buffer.dtype) return false;
    const auto extents = shape_of(tensor);
    if (!extents) return true;
    if (extents->size() != buffer.shape.size()) return false;
    for (size_t d = 0; d < extents->size(); ++d) {
      const auto given = as_int((*extents)[d]), asked = as_int(buffer.shape[d]);
      if (given && asked && *given != *asked) return false;
    }
    return true;
  }

  void branch(const If& n) {
    if (in_dataflow_)
      add({.what = "a branch in a dataflow block",
           .needs = "a block without branches",
           .hint = "end the dataflow block before it"},
          n);
    argument(n.condition, "a condition");
    Vars vars = vars_;
    Sizes sizes = sizes_;
    for (const RExpr* side : {&n.true_branch, &n.false_branch}) {
      sequence(*side);
      vars_ = vars;
      sizes_ = sizes;
    }
    need_info(n);
  }

  const Module* module_;
  SharedMemory memory_;
  const Function* outermost_ = nullptr;
  std::string name_;
  Vars vars_, dataflow_vars_, recursive_, params_;
  Sizes sizes_, reported_, shared_;
  const Function* local_ =
      nullptr;  ///< the innermost local function around, its variable's name, the sizes outside of it
  std::string local_name_;
  Sizes sizes_around_;
  std::unordered_map<const Var*, const Function*> owner_;
  bool in_dataflow_ = false, must_be_pure_ = false;
  arith::Analyzer arith_;
};

void require_none(std::vector<Reason> reasons) {
  if (reasons.empty()) return;
  Reason first = std::move(reasons.front());
  if (reasons.size() > 1) first.what += text(" (the first of ", reasons.size(), " mistakes)");
  fail(std::move(first));
}

}  // namespace

std::vector<Reason> verify(const Module& module) {
  Verifier verifier(module);
  for (const auto& [name, func] : module.functions) {
    if (const Function* f = func.as<Function>()) verifier.check(*f, name);
  }
  return std::move(verifier.reasons);
}

std::vector<Reason> verify(const Function& func) {
  Verifier verifier(func);
  verifier.check(func, string_attr(func.attrs, "global_symbol").value_or("main"));
  return std::move(verifier.reasons);
}

void require_well_formed(const Module& module) { require_none(verify(module)); }
void require_well_formed(const Function& func) { require_none(verify(func)); }

}  // namespace sator::relax
