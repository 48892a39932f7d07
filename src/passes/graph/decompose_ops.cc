#include "passes/graph/graph.h"
#include "relax/ops/attrs.h"
#include "relax/ops/table.h"
#include "relax/rewrite.h"

namespace sator::passes {

using namespace relax;

namespace {

double real(const RCall& call, const char* name, double standard) {
  auto at = call.attrs.find(name);
  return at == call.attrs.end() || !at->second ? standard : AttrType<double>::load(at->second);
}
bool truth(const RCall& call, const char* name) {
  auto at = call.attrs.find(name);
  return at == call.attrs.end() || !at->second || AttrType<bool>::load(at->second);
}
std::vector<Value> list_of(const Axes& axes) {
  std::vector<Value> out;
  for (int64_t a : axes) out.emplace_back(a);
  return out;
}

/// Ops in terms of simpler ones. For training a batch_norm normalises by the batch's own statistics and moves the given ones, but
/// where it says training=False: a frozen one.
class Decomposer final : public GraphRewriter {
 public:
  Decomposer(BlockBuilder& builder, bool training) : GraphRewriter(builder), training_(training) {}

 private:
  RExpr value(const RVarRef&, const RExpr& value) override {
    const RCall* call = value.as<RCall>();
    if (!call) return value;
    if (is_op(value, "nn.batch_norm") && rank(*call) >= 0) return batch_norm(*call);
    if (is_op(value, "nn.layer_norm") && training_) return layer_norm(*call);
    if (is_op(value, "tensor_to_shape") && !training_) return tensor_to_shape(*call);
    return value;
  }

  static int rank(const RCall& call) {
    const TensorInfo* x = call.args[0]->sinfo.as<TensorInfo>();
    return x ? x->ndim : -1;
  }
  static DType dtype(const RCall& call) { return call.args[0]->sinfo.as<TensorInfo>()->dtype; }

  /// All axes but one, counted from the front.
  static Axes others(const RCall& call) {
    const int64_t n = rank(call);
    auto at = call.attrs.find("axis");
    const int64_t axis = at == call.attrs.end() || !at->second ? 1 : AttrType<int64_t>::load(at->second);
    Axes out;
    for (int64_t i = 0; i < n; ++i)
      if (i != (axis + n) % n) out.push_back(i);
    return out;
  }

  RExpr normalised(const RCall& call, const RExpr& mean, const RExpr& variance) {
    const std::vector<Value> axes = list_of(others(call));
    auto column = [&](const RExpr& v) { return make_call("expand_dims", {v, axes}); };
    RExpr epsilon = scalar_constant(real(call, "epsilon", 1e-5), dtype(call));
    RExpr out = make_call("divide",
                          {make_call("subtract", {call.args[0], column(mean)}),
                           make_call("sqrt", {make_call("add", {column(variance), epsilon})})});
    if (truth(call, "scale")) out = make_call("multiply", {out, column(call.args[1])});
    if (truth(call, "center")) out = make_call("add", {out, column(call.args[2])});
    return relax::tuple({builder().emit(out), mean, variance});
  }

  RExpr batch_norm(const RCall& call) {
    if (!training_ || !truth(call, "training")) return normalised(call, call.args[3], call.args[4]);
    const std::vector<Value> axes = list_of(others(call));
    RExpr mean = builder().emit(make_call("mean", {call.args[0], axes}));
    RExpr variance = builder().emit(make_call("variance", {call.args[0], axes}));
    RExpr inner = builder().emit(normalised(call, mean, variance));
    RExpr out = builder().emit(tuple_get(inner, 0));
    const double momentum = real(call, "momentum", 0.1);
    auto moved = [&](const RExpr& old, const RExpr& fresh) {
      return builder().emit(make_call("add",
                                      {make_call("multiply", {scalar_constant(1 - momentum, dtype(call)), old}),
                                       make_call("multiply", {scalar_constant(momentum, dtype(call)), fresh})}));
    };
    RExpr new_mean = moved(call.args[3], mean), new_variance = moved(call.args[4], variance);
    return relax::tuple({out, new_mean, new_variance});
  }

  RExpr layer_norm(const RCall& call) {
    const std::vector<Value> axes = list_of(AttrType<Axes>::load(call.attrs.at("axes")));
    const std::vector<std::pair<std::string, Value>> keep = {{"keepdims", true}};
    RExpr epsilon = scalar_constant(real(call, "epsilon", 1e-5), dtype(call));
    RExpr out = make_call(
        "divide",
        {make_call("subtract", {call.args[0], make_call("mean", {call.args[0], axes}, keep)}),
         make_call("sqrt", {make_call("add", {make_call("variance", {call.args[0], axes}, keep), epsilon})})});
    if (truth(call, "scale")) out = make_call("multiply", {out, call.args[1]});
    if (truth(call, "center")) out = make_call("add", {out, call.args[2]});
    return out;
  }

  /// The values of a tensor as a shape, whose sizes a match_cast names.
  RExpr tensor_to_shape(const RCall& call) {
    const ShapeInfo* info = call.sinfo.as<ShapeInfo>();
    RExpr shape = builder().emit(relax::call(
        op_ref("call_pure_packed"), {extern_func("vm.builtin.tensor_to_shape"), call.args[0]}, {}, {call.sinfo}));
    std::vector<Expr> sizes;
    for (int i = 0; i < info->ndim; ++i) sizes.push_back(make_var("x", i64));
    builder().emit_match_cast(shape, shape_info(sizes));
    return shape_expr(sizes);
  }

  bool training_;
};

ModuleRef decomposed(const ModuleRef& module, const PassContext& ctx, bool training) {
  const std::string pass = training ? "DecomposeOpsForTraining" : "DecomposeOpsForInference";
  const auto only = text_option(ctx, pass + ".func_name");
  if (only) function_named(module, pass, *only);
  BlockBuilder builder(module);
  for (const auto& [name, func] : module->functions) {
    FuncRef f = sator::cast<Function>(func);
    if (!f || (only && *only != name)) continue;
    if (FuncRef out = Decomposer(builder, training).function(*f); out != f) builder.update_function(name, out);
  }
  return builder.module();
}

}  // namespace

ModuleRef decompose_ops_for_inference(const ModuleRef& module, const PassContext& ctx) {
  return decomposed(module, ctx, false);
}
ModuleRef decompose_ops_for_training(const ModuleRef& module, const PassContext& ctx) {
  return decomposed(module, ctx, true);
}

}  // namespace sator::passes
