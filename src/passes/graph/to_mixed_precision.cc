#include <algorithm>
#include <cmath>
#include <set>

#include "base/float16.h"
#include "passes/graph/graph.h"
#include "relax/ops/table.h"
#include "relax/outline.h"
#include "relax/rewrite.h"

namespace sator::passes {

using namespace relax;

namespace {

/// What an op does with half precision: products take it always, data movement and elementwise ops where all inputs have it;
/// other ops keep their dtypes.
enum class Policy { keeps, always, follows };

Policy policy_of(const RExpr& call) {
  static const std::set<std::string> kAlways = {"nn.conv1d",
                                                "nn.conv2d",
                                                "nn.conv3d",
                                                "nn.conv1d_transpose",
                                                "nn.conv2d_transpose",
                                                "matmul",
                                                "nn.attention",
                                                "nn.attention_bias",
                                                "nn.attention_var_len"};
  static const std::set<std::string> kFollows = {// elementwise
                                                 "abs",
                                                 "acos",
                                                 "acosh",
                                                 "asin",
                                                 "asinh",
                                                 "atan",
                                                 "atanh",
                                                 "bitwise_not",
                                                 "ceil",
                                                 "cos",
                                                 "cosh",
                                                 "exp",
                                                 "floor",
                                                 "log",
                                                 "logical_not",
                                                 "negative",
                                                 "round",
                                                 "rsqrt",
                                                 "sigmoid",
                                                 "sign",
                                                 "sin",
                                                 "sinh",
                                                 "square",
                                                 "sqrt",
                                                 "tan",
                                                 "tanh",
                                                 "erf",
                                                 "clip",
                                                 "isfinite",
                                                 "isinf",
                                                 "isnan",
                                                 "nn.relu",
                                                 "nn.gelu",
                                                 "nn.gelu_tanh",
                                                 "nn.silu",
                                                 "nn.leakyrelu",
                                                 "add",
                                                 "divide",
                                                 "floor_divide",
                                                 "multiply",
                                                 "power",
                                                 "subtract",
                                                 "equal",
                                                 "greater",
                                                 "greater_equal",
                                                 "less",
                                                 "less_equal",
                                                 "not_equal",
                                                 "maximum",
                                                 "minimum",
                                                 "logical_and",
                                                 "logical_or",
                                                 "logical_xor",
                                                 "bitwise_and",
                                                 "bitwise_or",
                                                 "bitwise_xor",
                                                 "ewise_fma",
                                                 // norms, windows
                                                 "nn.layer_norm",
                                                 "nn.group_norm",
                                                 "nn.rms_norm",
                                                 "nn.dropout",
                                                 "nn.max_pool1d",
                                                 "nn.max_pool2d",
                                                 "nn.max_pool3d",
                                                 "nn.avg_pool1d",
                                                 "nn.avg_pool2d",
                                                 "nn.avg_pool3d",
                                                 "nn.adaptive_avg_pool1d",
                                                 "nn.adaptive_avg_pool2d",
                                                 "nn.adaptive_avg_pool3d",
                                                 "image.resize2d",
                                                 // made and moved
                                                 "full",
                                                 "full_like",
                                                 "ones",
                                                 "zeros",
                                                 "arange",
                                                 "astype",
                                                 "strided_slice",
                                                 "broadcast_to",
                                                 "concat",
                                                 "expand_dims",
                                                 "flatten",
                                                 "layout_transform",
                                                 "permute_dims",
                                                 "reshape",
                                                 "split",
                                                 "squeeze"};
  const std::string& op = op_name(call);
  return kAlways.contains(op) ? Policy::always : kFollows.contains(op) ? Policy::follows : Policy::keeps;
}

/// Of a value's tensors, in the order in which they stand in its tuples: which dtype its users want.
enum class Wanted { unknown, half, single };
using Wants = std::vector<Wanted>;

void leaves(const StructInfo& info, std::vector<StructInfo>& out) {
  if (const TupleInfo* t = info.as<TupleInfo>()) {
    for (const StructInfo& item : t->items) leaves(item, out);
  } else {
    out.push_back(info);
  }
}
size_t leaf_count(const StructInfo& info) {
  std::vector<StructInfo> all;
  leaves(info, all);
  return all.size();
}
bool is_nested_tensor(const StructInfo& info) {
  std::vector<StructInfo> all;
  leaves(info, all);
  return std::ranges::all_of(all, [](const StructInfo& i) { return i.as<TensorInfo>() != nullptr; });
}

/// From the last binding back to the first: who wants a value in half precision alone.
class Demand {
 public:
  explicit Demand(const Function& f) { sequence(f.body); }
  std::map<RVarRef, Wants> wants;

 private:
  void require(const RExpr& e, const Wants& to) {
    if (const Tuple* t = e.as<Tuple>()) {
      auto at = to.begin();
      for (const RExpr& item : t->items) {
        const auto count = static_cast<std::ptrdiff_t>(leaf_count(item->sinfo));
        require(item, Wants(at, at + count));
        at += count;
      }
    } else if (RVarRef v = sator::cast<RVar>(e)) {
      Wants& mine = wants.try_emplace(v, Wants(to.size(), Wanted::unknown)).first->second;
      for (size_t i = 0; i < mine.size() && i < to.size(); ++i) mine[i] = std::max(mine[i], to[i]);
    }
  }
  void require(const RExpr& e, Wanted to) {
    if (is_nested_tensor(e->sinfo)) require(e, Wants(leaf_count(e->sinfo), to));
  }
  void keep(const RExpr& e) {
    for (const RVarRef& v : rvars_in(e)) require(v, Wanted::single);
  }
  void sequence(const RExpr& e) {
    const SeqExpr* seq = e.as<SeqExpr>();
    if (!seq) return keep(e);
    keep(seq->body);
    for (size_t k = seq->blocks.size(); k-- > 0;) {
      const BindingBlock& block = *seq->blocks[k];
      for (size_t i = block.bindings.size(); i-- > 0;) binding(block.bindings[i], block.is_dataflow);
    }
  }
  void binding(const Binding& b, bool is_dataflow) {
    RExpr value = bound_value(b);
    if (const If* branch = value.as<If>()) {
      sequence(branch->true_branch);
      sequence(branch->false_branch);
      return keep(branch->condition);
    }
    if (!is_dataflow || b.as<MatchCast>()) return keep(value);
    Wants mine = wants.try_emplace(bound_var(b), Wants(leaf_count(bound_var(b)->sinfo), Wanted::unknown)).first->second;
    if (value.as<Tuple>()) return require(value, mine);
    if (const TupleGetItem* item = value.as<TupleGetItem>()) {
      const TupleInfo* t = item->tuple->sinfo.as<TupleInfo>();
      Wants to;
      for (size_t i = 0; t && i < t->items.size(); ++i) {
        if (i == static_cast<size_t>(item->index))
          to.insert(to.end(), mine.begin(), mine.end());
        else
          to.insert(to.end(), leaf_count(t->items[i]), Wanted::unknown);
      }
      return require(item->tuple, to);
    }
    const RCall* call = value.as<RCall>();
    const Policy policy = call ? policy_of(value) : Policy::keeps;
    if (policy == Policy::keeps) return keep(value);
    for (const RExpr& a : call->args) require(a, policy == Policy::always ? Wanted::half : Wanted::single);
  }
};

/// Whether all elements of a constant can be half precision.
bool fits_half(const Constant& c) {
  const runtime::Tensor& t = *c.data;
  const int64_t n = t.num_elements();
  auto all = [&]<class T>(const T* data) {
    return std::all_of(data, data + n, [](T v) { return std::abs(static_cast<double>(v)) <= 65504; });
  };
  const DType d = t.dtype();
  if (d == f16) return true;
  if (d == f32) return all(static_cast<const float*>(t.data()));
  if (d == f64) return all(static_cast<const double*>(t.data()));
  if (d == i8) return true;
  if (d == i32) return all(static_cast<const int32_t*>(t.data()));
  if (d == i64) return all(static_cast<const int64_t*>(t.data()));
  return false;
}

class MixedPrecision final : public GraphRewriter {
 public:
  MixedPrecision(BlockBuilder& builder, DType out, const std::map<RVarRef, Wants>& wants,
                 const std::vector<RVarRef>& params)
      : GraphRewriter(builder), out_(out), wants_(wants), params_(params) {}

 private:
  /// Arguments change their dtypes before the call is looked at again.
  RExpr reinferred_value(const RExpr& value) override { return value; }

  void begin_block(const BindingBlock& block) override {
    dataflow_ = block.is_dataflow;
    if (dataflow_)
      for (const RVarRef& p : params_) narrow(p);
  }
  void end_block(const BindingBlock&) override {
    for (const RVarRef& p : params_) replacements().erase(p);
    dataflow_ = false;
  }
  void after(const RVarRef& var) override {
    if (dataflow_) narrow(var);
  }

  /// The expression with the struct info that its tuples have now.
  static RExpr with_present_tuples(const RExpr& e) {
    return transform(e, [](const Tuple& t) -> NodeRef {
      const RExpr now = relax::tuple(t.items);
      return equal(now->sinfo, t.sinfo) ? NodeRef(ref(t)) : NodeRef(now);
    });
  }

  RExpr value(const RVarRef& var, const RExpr& given) override {
    if (given.as<If>() || given.as<LocalFunction>()) return given;
    const RExpr value = with_present_tuples(given);
    const bool stays_inside = var->is_dataflow;
    RExpr out;
    if (!dataflow_) return restored(value);
    if (const RCall* call = value.as<RCall>()) {
      const Policy policy = policy_of(value);
      if (policy == Policy::keeps) return restored(value);
      RCallRef changed = policy == Policy::always ? with_out_dtype(*call) : ref(*call);
      const DType to = policy == Policy::always || all_half(call->args) ? f16 : f32;
      std::vector<RExpr> args;
      for (const RExpr& a : call->args) args.push_back(is_nested_tensor(a->sinfo) ? converted(a, to) : a);
      out = builder().normalize(with(with(changed, &RCall::args, args), &RCall::sinfo, StructInfo()));
      if (policy == Policy::always && stays_inside) out = converted(out, f16);
    } else if (const Tuple* t = value.as<Tuple>()) {
      out = relax::tuple(t->items);
    } else if (const TupleGetItem* item = value.as<TupleGetItem>()) {
      out = tuple_get(item->tuple, item->index);
    } else {
      return restored(value);
    }
    return stays_inside ? out : like(out, var->sinfo);
  }

  /// The variable in half precision, where all of its users want it.
  void narrow(const RVarRef& var) {
    auto at = wants_.find(var);
    if (at == wants_.end()) return;
    RExpr now = current(var);
    std::vector<StructInfo> target;
    leaves(now->sinfo, target);
    bool any = false;
    std::vector<DType> dtypes;
    for (size_t i = 0; i < target.size(); ++i) {
      const TensorInfo* t = target[i].as<TensorInfo>();
      const bool half = t && i < at->second.size() && at->second[i] == Wanted::half;
      dtypes.push_back(half ? f16 : t ? t->dtype : DType::Void());
      any = any || (half && t->dtype == f32);
    }
    if (!any) return;
    size_t next = 0;
    RExpr other = builder().emit(converted(now, dtypes, next));
    replace(var, other);
  }

  /// A tensor, or the tensors of a tuple, in the dtypes; those that are neither f16 nor f32 stay.
  RExpr converted(const RExpr& e, const std::vector<DType>& to, size_t& next) {
    if (const TupleInfo* t = e->sinfo.as<TupleInfo>()) {
      std::vector<RExpr> items;
      bool changed = false;
      for (size_t i = 0; i < t->items.size(); ++i) {
        const Tuple* made = e.as<Tuple>();
        RExpr item = made ? made->items[i] : tuple_get(e, static_cast<int>(i));
        RExpr other = converted(item, to, next);
        changed = changed || other != item;
        items.push_back(other);
      }
      return changed ? relax::tuple(std::move(items)) : e;
    }
    const DType wanted = to[next++];
    const TensorInfo* t = e->sinfo.as<TensorInfo>();
    if (!t || wanted.is_void() || t->dtype == wanted || (t->dtype != f16 && t->dtype != f32)) return e;
    return builder().normalize(make_call("astype", {e, wanted.name()}));
  }
  RExpr converted(const RExpr& e, DType to) {
    size_t next = 0;
    return converted(e, std::vector<DType>(leaf_count(e->sinfo), to), next);
  }
  RExpr like(const RExpr& e, const StructInfo& info) {
    std::vector<StructInfo> all;
    leaves(info, all);
    std::vector<DType> dtypes;
    for (const StructInfo& i : all) dtypes.push_back(i.as<TensorInfo>() ? i.as<TensorInfo>()->dtype : DType::Void());
    size_t next = 0;
    return converted(e, dtypes, next);
  }

  /// The value with each variable as it was before.
  RExpr restored(const RExpr& value) {
    NodeMap back;
    for (const RVarRef& v : rvars_in(value)) {
      for (const auto& [before, now] : replacements()) {
        const RVar* var = before.as<RVar>();
        if (now != NodeRef(v) || !var) continue;
        if (RExpr same = like(v, var->sinfo); same != RExpr(v))
          back[v] = same.as<RVar>() ? same : RExpr(builder().emit(same));
        break;
      }
    }
    return back.empty() ? value : with_present_tuples(RExpr(replaced(value, back)));
  }

  bool all_half(const std::vector<RExpr>& args) const {
    return std::ranges::all_of(args, [&](const RExpr& a) {
      if (!is_nested_tensor(a->sinfo)) return true;
      if (const TensorInfo* t = a->sinfo.as<TensorInfo>(); t && t->dtype == f16) return true;
      if (const Constant* c = a.as<Constant>()) return fits_half(*c);
      const Tuple* t = a.as<Tuple>();
      return t && all_half(t->items);
    });
  }

  RCallRef with_out_dtype(const RCall& call) const {
    const OpDef& def = op_named(op_name(ref(call)));
    const bool has = std::ranges::any_of(def.attrs, [](const AttrDef& a) { return a.name == "out_dtype"; });
    if (!has) return ref(call);
    Attrs attrs = call.attrs;
    attrs["out_dtype"] = string_imm(out_.name());
    return with(call, &RCall::attrs, std::move(attrs));
  }

  DType out_;
  const std::map<RVarRef, Wants>& wants_;
  std::vector<RVarRef> params_;
  bool dataflow_ = false;
};

}  // namespace

ModuleRef to_mixed_precision(const ModuleRef& module, const PassContext& ctx) {
  const DType out = choice_option(ctx, "ToMixedPrecision.out_dtype", {"float32", "float16"}) == "float16" ? f16 : f32;
  const std::vector<std::string> names = names_option(ctx, "ToMixedPrecision.fp16_input_names");
  const std::set<std::string> halves(names.begin(), names.end());
  return rewrite_functions(module, [&](const FuncRef& f, BlockBuilder& builder) {
    Demand demand(*f);
    // Parameters that are given in half precision.
    NodeMap given;
    std::vector<RVarRef> params;
    for (const RVarRef& p : f->params) {
      const TensorInfo* t = p->sinfo.as<TensorInfo>();
      params.push_back(p);
      if (!t || !halves.contains(p->name)) continue;
      params.back() = make_rvar(p->name, with(*t, &TensorInfo::dtype, f16));
      given[p] = params.back();
    }
    std::map<RVarRef, Wants> wants = demand.wants;
    FuncRef in = f;
    if (!given.empty()) {
      in = replaced(f, given);
      for (const auto& [before, now] : given)
        if (auto at = wants.find(sator::cast<RVar>(before)); at != wants.end()) {
          Wants mine = at->second;
          wants[sator::cast<RVar>(now)] = mine;
        }
    }
    return MixedPrecision(builder, out, wants, params).function(*in);
  });
}

}  // namespace sator::passes
