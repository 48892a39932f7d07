// Sampling in linear time: the op's own formula sums the probabilities anew for each class.
#include "passes/graph/graph.h"
#include "relax/ops/op.h"
#include "relax/ops/table.h"
#include "relax/rewrite.h"
#include "tir/te.h"

namespace sator::passes {

using namespace relax;

namespace {

/// The first class whose cumulated probability exceeds the sample; the last class where none does.
///   cumulated   [rows, classes]
///   uniform     [samples, 1]
///   rows        [samples, 1], the row of each sample
te::Tensor sampled_class(const TeInputs& in, DType dtype) {
  const te::Tensor &cumulated = in.tensor(0), &uniform = in.tensor(1), &rows = in.tensor(2);
  const Expr first = int_imm(0, i64);
  tir::IterVarRef c = te::reduce_axis(cumulated.dim(1), "c");
  te::Tensor below = te::reduce({.name = "T_below"}, {uniform.dim(0), int_imm(1, i64)}, [&](const te::Indices& i) {
    Expr reached = le(cumulated({rows({i[0], first}), c->var}), uniform({i[0], first}));
    return te::reduce_sum(cast_to(i64, reached), {c});
  });
  return te::compute({.name = "T_sample"}, {uniform.dim(0), int_imm(1, i64)}, [&](const te::Indices& i) {
    return cast_to(dtype, min(below(i), cumulated.dim(1) - 1));
  });
}

class SamplingDispatcher final : public GraphRewriter {
 public:
  using GraphRewriter::GraphRewriter;

 private:
  RExpr value(const RVarRef&, const RExpr& value) override {
    if (!is_op(value, "multinomial_from_uniform")) return value;
    const RCall* call = value.as<RCall>();
    const TensorInfo* prob = call->args[0]->sinfo.as<TensorInfo>();
    const TensorInfo* out = call->sinfo.as<TensorInfo>();
    for (const RExpr& a : call->args)
      if (!a->sinfo.as<TensorInfo>() || !explicit_shape(*a->sinfo.as<TensorInfo>())) return value;
    RExpr cumulated =
        builder().emit(make_call("cumsum", {call->args[0]}, {{"axis", int64_t{1}}, {"dtype", prob->dtype.name()}}));
    return builder().call_te("get_sample_index", {cumulated, call->args[1], call->args[2]}, [&](const TeInputs& in) {
      return std::vector{sampled_class(in, out->dtype)};
    });
  }
};

}  // namespace

ModuleRef dispatch_sampling(const ModuleRef& module, const PassContext& ctx) {
  if (ctx.target && !ctx.target->is_cpu()) return module;
  return rewrite_functions(
      module, [](const FuncRef& f, BlockBuilder& builder) { return SamplingDispatcher(builder).function(*f); });
}

}  // namespace sator::passes
