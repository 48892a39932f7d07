// Ops that say how gradients are taken, and gradients of ops. Only their struct info: nothing here trains.
#include "relax/ops/families.h"
#include "relax/ops/infer.h"

namespace sator::relax {

namespace {

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
       .infer = with(infer_as_input<1>)},
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
       .infer = with(infer_as_input<1>)},
  };
}

}  // namespace sator::relax
