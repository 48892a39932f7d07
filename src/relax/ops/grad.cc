// Ops that say how gradients are taken, of which there is only struct info: nothing here trains. Gradients of ops, for graphs
// that compute them; those of pools have no formula.
#include <algorithm>

#include "relax/builder.h"
#include "relax/ops/families.h"
#include "relax/ops/formula.h"
#include "relax/ops/infer.h"
#include "relax/ops/nest.h"

namespace sator::relax {

namespace {

using te::Indices;
using te::Tensor;

template <int i>
StructInfo infer_as_input(const CallInfo& in) {
  return in.info(i);
}

StructInfo infer_checkpoint(const CallInfo& in) {
  if (!in.arg(0).as<RVar>())
    in.fail({.what = text("the argument is a ", in.arg(0)->info().name),
             .needs = "a variable",
             .hint = "bind the value first"});
  return in.info(0);
}

struct LossAttrs {
  std::string reduction = "mean";
  int ignore_index = -100;
  static constexpr auto fields() {
    return std::tuple{attr("reduction", &LossAttrs::reduction), attr("ignore_index", &LossAttrs::ignore_index)};
  }
};
struct PoolGradAttrs {
  PerAxis<2> pool_size, strides;
  Padding<2> padding;
  PerAxis<2> dilation;
  bool ceil_mode = false, count_include_pad = false;
  std::string layout = "NCHW";
  std::optional<std::string> out_layout;
  static constexpr auto fields() {
    using A = PoolGradAttrs;
    return std::tuple{attr("pool_size", &A::pool_size),
                      attr("strides", &A::strides),
                      attr("padding", &A::padding),
                      attr("dilation", &A::dilation),
                      attr("ceil_mode", &A::ceil_mode),
                      attr("count_include_pad", &A::count_include_pad),
                      attr("layout", &A::layout),
                      attr("out_layout", &A::out_layout)};
  }
};
struct TakeGradAttrs {
  std::optional<int64_t> axis;
  static constexpr auto fields() { return std::tuple{attr("axis", &TakeGradAttrs::axis)}; }
};

/// The gradient of nll_loss: of each target's class -w[target] times the gradient of its loss, of other classes 0.
///   grad          []; with reduction "none" the shape of the targets
///   predictions   [N, C, d1, ...], or [C]
Tensor compute_nll_loss_backward(const LossAttrs& a, const TeInputs& in) {
  const Tensor &p = in.tensor(1), &targets = in.tensor(2);
  const Tensor w = in.has(3) ? in.tensor(3) : full({p.dim(p.rank() > 1 ? 1 : 0)}, constant(1, p.dtype()));
  const Tensor weights = te::compute(python_naming("all_weights"), targets.shape(), [&](const Indices& i) {
    const Expr c = targets(i);
    // An ignored class may lie outside of the weights: they are not read for it.
    return if_then_else(eq(c, constant(a.ignore_index, c->dtype)), constant(0, w.dtype()), w({c}));
  });
  Tensor grad = in.tensor(0);
  if (a.reduction != "none") grad = broadcast_to(grad, targets.shape());
  if (a.reduction == "mean") grad = divide(grad, targets.rank() ? sum(weights, std::nullopt, false) : weights);
  const bool one = p.rank() == 1;
  return te::compute(python_naming("pred_grad"), p.shape(), [&](const Indices& i) {
    Indices at;
    for (size_t d = 0; d < i.size(); ++d)
      if (d != (one ? 0 : 1)) at.push_back(i[d]);
    const Expr c = targets(at), own = i[one ? 0 : 1];
    return select(eq(own, cast_to(i64, c)), weights(at) * constant(-1, p.dtype()) * grad(at), constant(0, p.dtype()));
  });
}
RExpr legalize_nll_loss_backward(const RCallRef& call, BlockBuilder& b) {
  const TensorInfo *p = call->args[1]->sinfo.as<TensorInfo>(), *t = call->args[2]->sinfo.as<TensorInfo>();
  if (!p || !t || !shape_of(*p) || !shape_of(*t) || p->dtype.is_void()) return nullptr;
  const auto a = read_attrs<LossAttrs>(call->attrs);
  return b.call_te(
      call->args.size() > 3 ? "nll_loss_backward" : "te_nll_loss_backward_no_weight",
      call->args,
      [&](const TeInputs& in) { return std::vector{compute_nll_loss_backward(a, in)}; },
      call->sinfo,
      /*scalar_constants=*/false,
      /*keeps_unread=*/true);
}

/// Errors: input i is known to have another shape than the one wanted.
void need_extents(const CallInfo& in, size_t i, const std::vector<Expr>& wanted) {
  const auto own = explicit_shape(in.tensor(i));
  if (!own) return;
  bool fits = own->size() == wanted.size();
  for (size_t d = 0; fits && d < wanted.size(); ++d) fits = !in.differ((*own)[d], wanted[d]);
  if (!fits)
    in.fail({.what = text(in.op().inputs[i].name, " has the shape (", join(*own, ", "), ")"),
             .needs = text("(", join(wanted, ", "), ")"),
             .hint = "check the shapes of the forward op"});
}

/// The predictions' struct info. Weights are read by the targets' classes, which the program itself checks.
StructInfo infer_nll_loss_backward(const LossAttrs& a, const CallInfo& in) {
  const TensorInfo &grad = in.tensor(0), &p = in.tensor(1), &targets = in.tensor(2);
  auto refuse = [&](std::string_view of, int has, int needed) {
    in.fail({.what = text(of, " of rank ", has, " for predictions of rank ", p.ndim),
             .needs = text("rank ", needed),
             .hint = "see the shapes (N, C, d1, ...), (N, d1, ...); the gradient is a scalar, or with reduction none "
                     "as targets"});
  };
  const int rank = std::max(p.ndim - 1, 0);
  if (p.ndim >= 0 && targets.ndim >= 0 && targets.ndim != rank) refuse("targets", targets.ndim, rank);
  // With a reduction the gradient is broadcast to the targets.
  if (p.ndim >= 0 && grad.ndim >= 0 && (a.reduction == "none" ? grad.ndim != rank : grad.ndim > rank))
    refuse("a gradient", grad.ndim, a.reduction == "none" ? rank : 0);
  const auto shape = explicit_shape(p);
  if (!shape || shape->empty()) return ref(p);
  std::vector<Expr> without_classes;
  for (size_t d = 0; d < shape->size(); ++d)
    if (d != (shape->size() == 1 ? 0 : 1)) without_classes.push_back((*shape)[d]);
  need_extents(in, 2, without_classes);
  if (a.reduction == "none") need_extents(in, 0, without_classes);
  return ref(p);
}

StructInfo infer_take_backward(const TakeGradAttrs& a, const CallInfo& in) {
  const TensorInfo &x = in.tensor(1), &indices = in.tensor(2);
  if (indices.ndim >= 0) in.need_rank(2, 1);
  if (a.axis && x.ndim >= 0) in.axis(*a.axis, x.ndim);
  if (!a.axis && x.ndim >= 0) in.need_rank(1, 1);
  auto taken = explicit_shape(x);
  const auto count = explicit_shape(indices);
  if (taken && count) {
    (*taken)[static_cast<size_t>(in.axis(a.axis.value_or(0), x.ndim))] = count->front();
    need_extents(in, 0, *taken);
  }
  return ref(x);
}
/// The gradient of take: each row of the gradient is added where it was taken. An index outside of x is an error of the program.
Tensor compute_take_backward(const TakeGradAttrs& a, const TeInputs& in) {
  const Tensor &grad = in.tensor(0), &x = in.tensor(1), &indices = in.tensor(2);
  const int64_t given = a.axis.value_or(0);
  const auto axis = static_cast<size_t>(given < 0 ? given + x.rank() : given);
  auto statement = [=](const std::vector<BufferRef>& b) {
    const tir::Stmt clear =
        nest(x.shape(), "i", [&](const Indices& i) { return tir::store(b[3], constant(0, x.dtype()), i); });
    const tir::Stmt add = nest(grad.shape(), "j", [&](const Indices& j) {
      Indices at = j;
      at[axis] = cast_to(i64, load(b[2], {j[axis]}));
      return tir::store(b[3], load(b[3], at) + load(b[0], j), at);
    });
    return tir::seq({clear, add});
  };
  return te::extern_stage("take_backward", {grad, x, indices}, {{x.shape(), x.dtype(), "out_buf"}}, statement)[0];
}

}  // namespace

std::vector<OpDef> grad_ops() {
  std::vector<AttrDef> pool = attrs_of<PoolGradAttrs>();
  return {
      {.name = "grad.no_grad", .inputs = {{"input", InputKind::any}}, .infer = with(infer_as_input<0>)},
      {.name = "grad.start_checkpoint", .inputs = {{"input", InputKind::any}}, .infer = with(infer_checkpoint)},
      {.name = "grad.end_checkpoint", .inputs = {{"input", InputKind::any}}, .infer = with(infer_checkpoint)},
      {.name = "grad.nll_loss_backward",
       .inputs = {{"output_grad"}, {"predictions"}, {"targets"}, {"weights", InputKind::tensor, true}},
       .attrs = attrs_of<LossAttrs>(),
       .infer = with(infer_nll_loss_backward),
       .compute = with(compute_nll_loss_backward),
       .legalize = legalize_nll_loss_backward},
      {.name = "grad.max_pool2d_backward",
       .inputs = {{"output_grad"}, {"data"}},
       .attrs = pool,
       .infer = with(infer_as_input<1>)},
      {.name = "grad.avg_pool2d_backward",
       .inputs = {{"output_grad"}, {"data"}},
       .attrs = pool,
       .infer = with(infer_as_input<1>)},
      {.name = "grad.take_backward",
       .inputs = {{"output_grad"}, {"x"}, {"indices"}},
       .attrs = attrs_of<TakeGradAttrs>(),
       .infer = with(infer_take_backward),
       .compute = with(compute_take_backward)},
  };
}

}  // namespace sator::relax
