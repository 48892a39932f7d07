// From a graph's call to a tensor program: the arguments become placeholders over variables of their own.
#include <algorithm>
#include <set>

#include "relax/builder.h"
#include "relax/ops/table.h"
#include "runtime/scalars.h"

namespace sator::relax {

namespace {

/// The value of a constant of rank 0 as a number; null for other expressions.
Expr scalar_of(const RExpr& e) {
  const Constant* c = e.as<Constant>();
  if (!c || c->data->rank() != 0) return nullptr;
  const void* at = c->data->data();
  const DType d = c->data->dtype();
  return d.is_float() ? Expr(float_imm(runtime::real_at(at, d), d)) : Expr(int_imm(runtime::integer_at(at, d), d));
}

/// One call on its way to a PrimFunc.
class Placeholders {
 public:
  explicit Placeholders(BlockBuilder& builder) : builder_(builder) {}

  /// The input of the formula; nothing if a shape is not known.
  std::optional<TeInput> input(const RExpr& e) {
    const StructInfo& info = e->sinfo;
    if (const TensorInfo* t = info.as<TensorInfo>()) return tensor(e, *t);
    if (info.as<ShapeInfo>()) return shape(e);
    if (const PrimInfo* p = info.as<PrimInfo>()) return TeInput(scalar(e, *p));
    if (const TupleInfo* t = info.as<TupleInfo>()) return tuple(e, *t);
    return {};
  }

  Expr own(const Expr& e) {
    for (const VarRef& v : vars_in(e)) {
      if (sizes_.count(v)) continue;
      VarRef copy = v->is_size ? make_size_var(v->name, v->dtype) : make_var(v->name, v->dtype);
      sizes_.emplace(v, copy);
      callers_.emplace(copy, v);
    }
    return substitute(e, sizes_);
  }
  std::vector<Expr> own(const std::vector<Expr>& values) {
    std::vector<Expr> out;
    for (const Expr& e : values) out.push_back(own(e));
    return out;
  }
  /// The struct info of the result over the function's own variables.
  StructInfo own(const StructInfo& info) {
    for (const VarRef& v : vars_in(info)) own(Expr(v));
    return substitute(info, sizes_);
  }
  std::vector<Expr> callers(const std::vector<Expr>& values) const {
    std::vector<Expr> out;
    for (const Expr& e : values) out.push_back(substitute(e, callers_));
    return out;
  }

  /// Variables that the function uses but that no buffer's extent defines.
  std::vector<VarRef> unbound(const std::vector<te::Tensor>& outputs) const {
    std::vector<VarRef> used, bound;
    auto note = [](std::vector<VarRef>& list, const VarRef& v) {
      if (std::ranges::find(list, v) == list.end()) list.push_back(v);
    };
    auto extents = [&](const te::Tensor& t) {
      for (const Expr& e : t.shape()) {
        for (const VarRef& v : vars_in(e)) note(used, v);
        if (const Var* v = e.as<Var>()) note(bound, ref(*v));
      }
    };
    for (const te::Arg& a : params) {
      if (const te::Tensor* t = std::get_if<te::Tensor>(&a)) extents(*t);
    }
    for (const te::Tensor& t : outputs) extents(t);
    for (const Expr& e : scalars_) {
      for (const VarRef& v : vars_in(e)) note(used, v);
    }
    std::erase_if(used, [&](const VarRef& v) { return std::ranges::find(bound, v) != bound.end(); });
    return used;
  }

  /// Takes out arguments that only their shape was asked of, as of R.ones_like; whether there were any. Sizes in their
  /// extents that the function computes with become parameters.
  bool drop_unread(const tir::PrimFunc& func) {
    std::set<const Buffer*> read;
    std::set<const Var*> used;
    walk(func.body, [&](const BufferLoad& l) { read.insert(l.buffer.get()); }, [&](const Var& v) { used.insert(&v); });
    size_t kept = 0;
    for (size_t i = 0; i < args.size(); ++i) {
      BufferRef buffer = func.buffer_of(func.params[i]);
      if (buffer && !read.count(buffer.get()) && !is_opaque(func)) {
        for (const Expr& extent : buffer->shape) {
          for (const VarRef& v : vars_in(extent))
            if (used.count(v.get())) scalars_.push_back(v);
        }
        continue;
      }
      params[kept] = params[i];
      args[kept++] = args[i];
    }
    bool any = kept < args.size();
    params.erase(params.begin() + static_cast<std::ptrdiff_t>(kept), params.end());
    args.erase(args.begin() + static_cast<std::ptrdiff_t>(kept), args.end());
    return any;
  }

  std::vector<te::Arg> params;
  std::vector<RExpr> args;
  std::string vdevice;

 private:
  /// Calls may read buffers by their pointers.
  static bool is_opaque(const tir::PrimFunc& func) {
    bool found = false;
    walk(func.body, [&](const tir::Evaluate&) { found = true; });
    return found;
  }

  std::string name_of(const RExpr& e, char first, const char* other) const {
    if (const RVar* v = e.as<RVar>()) return v->name;
    size_t n = params.size();
    return n < 26 ? std::string(1, static_cast<char>(first + static_cast<char>(n))) : text(other, n);
  }

  std::optional<TeInput> tensor(const RExpr& e, const TensorInfo& info) {
    auto extents = explicit_shape(info);
    if (!extents || info.dtype.is_void()) return {};
    te::Tensor t = te::placeholder(own(*extents), info.dtype, name_of(e, 'A', "tensor_input_"));
    if (vdevice.empty()) vdevice = info.vdevice;
    params.emplace_back(t);
    args.push_back(e);
    return TeInput(t);
  }

  std::optional<TeInput> shape(RExpr e) {
    while (RExpr value = builder_.bound_value(e)) e = value;
    auto values = shape_values(e);
    if (!values) return {};
    std::vector<Expr> mine = own(*values);
    scalars_.insert(scalars_.end(), mine.begin(), mine.end());
    return TeInput(mine);
  }

  Expr scalar(const RExpr& e, const PrimInfo& info) {
    if (info.value) {
      scalars_.push_back(own(info.value));
      return scalars_.back();
    }
    VarRef param = make_var(name_of(e, 'a', "scalar_input_"), info.dtype);
    params.emplace_back(param);
    args.push_back(e);
    return param;
  }

  /// A tuple of tensors, or of scalars; one behind a variable is opened.
  std::optional<TeInput> tuple(RExpr e, const TupleInfo& info) {
    while (e.as<RVar>()) {
      RExpr value = builder_.bound_value(e);
      if (!value || (!value.as<Tuple>() && !value.as<RVar>())) break;
      e = value;
    }
    std::vector<te::Tensor> tensors;
    std::vector<Expr> scalars;
    for (size_t i = 0; i < info.items.size(); ++i) {
      const Tuple* written = e.as<Tuple>();
      RExpr item = written ? written->items[i] : RExpr();
      if (!item)
        item = info.items[i].as<TensorInfo>() ? RExpr(builder_.emit(tuple_get(e, static_cast<int>(i))))
                                              : tuple_get(e, static_cast<int>(i));
      auto in = input(item);
      if (!in) return {};
      if (te::Tensor* t = std::get_if<te::Tensor>(&*in))
        tensors.push_back(*t);
      else if (Expr* s = std::get_if<Expr>(&*in))
        scalars.push_back(*s);
      else
        return {};
    }
    if (!tensors.empty() && !scalars.empty()) return {};
    return tensors.empty() ? TeInput(scalars) : TeInput(tensors);
  }

  BlockBuilder& builder_;
  VarMap sizes_, callers_;
  std::vector<Expr> scalars_;
};

}  // namespace

RExpr BlockBuilder::call_te(const std::string& name, const std::vector<RExpr>& args, Formula formula, StructInfo out,
                            bool scalar_constants, bool keeps_unread) {
  Placeholders own(*this);
  TeInputs inputs;
  // Of two scalars only the second goes into the function: it needs a tensor to run over.
  bool one_scalar = false;
  std::vector<Expr> numbers(args.size());
  for (size_t i = args.size(); scalar_constants && i-- > 0;) {
    if (one_scalar && args.size() == 2) break;
    numbers[i] = scalar_of(args[i]);
    one_scalar = one_scalar || numbers[i];
  }
  for (size_t i = 0; i < args.size(); ++i) {
    auto in = numbers[i] ? std::optional(TeInput(numbers[i])) : own.input(args[i]);
    if (!in) return nullptr;
    inputs.values.push_back(std::move(*in));
  }
  if (out) inputs.out = own.own(out);
  std::vector<te::Tensor> outputs = formula(inputs);
  std::vector<VarRef> unbound;
  auto build = [&] {
    unbound = own.unbound(outputs);
    std::vector<te::Arg> params = own.params;
    for (const te::Tensor& t : outputs) params.emplace_back(t);
    for (const VarRef& v : unbound) params.emplace_back(v);
    return te::create_prim_func(params);
  };
  tir::PrimFuncRef func = build();
  if (!keeps_unread && own.drop_unread(*func)) func = build();
  Attrs attrs = func->attrs;
  attrs.erase("global_symbol");
  func = with(func, &tir::PrimFunc::attrs, std::move(attrs));

  std::vector<StructInfo> results;
  for (const te::Tensor& t : outputs) results.push_back(tensor_info(own.callers(t.shape()), t.dtype(), own.vdevice));
  StructInfo result = results.size() == 1 ? results[0] : tuple_info(results);
  std::vector<RExpr> call_args{add_function(func, name), relax::tuple(own.args)};
  if (!unbound.empty()) call_args.push_back(shape_expr(own.callers({unbound.begin(), unbound.end()})));
  return relax::call(op_ref("call_tir"), std::move(call_args), {}, {result});
}

/// Whether the extents and dtypes of all tensors are known, if only as expressions: a formula is for known ones.
static bool is_known(const StructInfo& info) {
  if (const TensorInfo* t = info.as<TensorInfo>()) return shape_of(*t) && !t->dtype.is_void();
  const TupleInfo* t = info.as<TupleInfo>();
  return !t || std::ranges::all_of(t->items, is_known);
}

RExpr BlockBuilder::legalize_by_formula(const RCallRef& call, std::string name) {
  const OpDef& def = op_named(op_name(call));
  if (!def.compute || !is_known(call->sinfo)) return nullptr;
  if (name.empty()) name = !def.func.empty() ? def.func : def.name.substr(def.name.rfind('.') + 1);
  return call_te(
      name,
      call->args,
      [&](const TeInputs& in) { return def.compute(call->attrs, in); },
      call->sinfo,
      def.scalar_constants);
}

}  // namespace sator::relax
