// Convolutions of one, two and three dimensions, and their transposes.
#include <algorithm>

#include "relax/builder.h"
#include "relax/ops/families.h"
#include "relax/ops/formula.h"
#include "relax/ops/infer.h"
#include "relax/ops/layout.h"
#include "relax/ops/table.h"

namespace sator::relax {

namespace {

using te::Indices;
using te::Tensor;

/// The letters of the spatial axes, and those with batch and channels (data), or output and input channels (kernel).
template <int N>
constexpr std::string_view kSpace = N == 1   ? "W"
                                    : N == 2 ? "HW"
                                             : "DHW";
template <int N>
std::string data_letters() {
  return text("NC", kSpace<N>);
}

/// Attributes of an N-dimensional convolution.
template <int N>
struct ConvAttrs {
  PerAxis<N> strides;
  Padding<N> padding;
  PerAxis<N> dilation;
  int groups = 1;
  std::string data_layout = text("NC", kSpace<N>);
  std::string kernel_layout = text("OI", kSpace<N>);
  std::optional<std::string> out_layout;
  DType out_dtype;
  static constexpr auto fields() {
    using A = ConvAttrs;
    return std::tuple{attr("strides", &A::strides),
                      attr("padding", &A::padding),
                      attr("dilation", &A::dilation),
                      attr("groups", &A::groups),
                      attr("data_layout", &A::data_layout),
                      attr("kernel_layout", &A::kernel_layout),
                      attr("out_layout", &A::out_layout),
                      attr("out_dtype", &A::out_dtype)};
  }
  const std::string& out() const { return out_layout ? *out_layout : data_layout; }
};

template <int N>
struct ConvTransposeAttrs {
  PerAxis<N> strides;
  Padding<N> padding;
  PerAxis<N> output_padding{std::vector<int64_t>(N, 0)};
  PerAxis<N> dilation;
  int groups = 1;
  std::string data_layout = text("NC", kSpace<N>);
  std::string kernel_layout = text("IO", kSpace<N>);
  std::optional<std::string> out_layout;
  DType out_dtype;
  static constexpr auto fields() {
    using A = ConvTransposeAttrs;
    return std::tuple{attr("strides", &A::strides),
                      attr("padding", &A::padding),
                      attr("output_padding", &A::output_padding),
                      attr("dilation", &A::dilation),
                      attr("groups", &A::groups),
                      attr("data_layout", &A::data_layout),
                      attr("kernel_layout", &A::kernel_layout),
                      attr("out_layout", &A::out_layout),
                      attr("out_dtype", &A::out_dtype)};
  }
  const std::string& out() const { return out_layout ? *out_layout : data_layout; }
};

void need_equal(const CallInfo& in, const Expr& a, const Expr& b, std::string what, std::string needs) {
  if (in.differ(a, b))
    in.fail({.what = std::move(what), .needs = std::move(needs), .hint = "check channels, groups and layouts"});
}

std::string device_of(const TensorInfo& a, const TensorInfo& b) { return a.vdevice.empty() ? b.vdevice : a.vdevice; }

template <int N>
StructInfo infer_conv(const ConvAttrs<N>& a, const CallInfo& in) {
  std::string letters = data_letters<N>(), kernel_letters = text("OI", kSpace<N>);
  if (a.groups <= 0) in.fail({.what = text(a.groups, " groups"), .needs = "groups >= 1", .hint = "use groups=1"});
  need_window(in, {}, a.strides.v, a.padding.v, a.dilation.v);
  Layout data = need_layout(in, a.data_layout, letters), kernel = need_layout(in, a.kernel_layout, kernel_letters);
  Layout out = need_layout(in, a.out(), letters);
  auto x = shape_in(in, 0, data, letters), w = shape_in(in, 1, kernel, kernel_letters);
  DType dtype = a.out_dtype.is_void() ? in.common_dtype({0, 1}) : a.out_dtype;
  std::string vdevice = device_of(in.tensor(0), in.tensor(1));
  if (!x || !w) return tensor_info(dtype, out.rank(), vdevice);
  need_equal(in,
             (*x)[1],
             (*w)[1] * a.groups,
             "the channels of data are not those of weight times groups",
             "data channels = weight's input channels * groups");
  need_equal(in,
             floormod((*w)[0], a.groups),
             dim(0),
             text("the output channels cannot be divided into ", a.groups, " groups"),
             "groups divides the output channels");
  std::vector<Expr> shape{(*x)[0], (*w)[0]};
  for (size_t d = 0; d < N; ++d) {
    const Expr reach = ((*w)[d + 2] - 1) * a.dilation.v[d] + 1;
    shape.push_back(windows_along(in, (*x)[d + 2] + (a.padding.v[d] + a.padding.v[d + N]), reach, a.strides.v[d]));
  }
  return tensor_info(out.from_letters(shape, letters, in.arith()), dtype, vdevice);
}

/// i (in the order of `letters`) as an index in the layout.
Indices in_layout(const Indices& i, const std::string& layout, std::string_view letters) {
  Indices out;
  for (char c : layout) out.push_back(i[letters.find(c)]);
  return out;
}
Indices in_letters(const Indices& i, const std::string& layout, std::string_view letters) {
  Indices out;
  for (char c : letters) out.push_back(i[layout.find(c)]);
  return out;
}

/// sum over channels and kernel positions of data[n, c, y * stride + ky * dilation, ...] * weight[f, c, ky, ...].
template <int N>
Tensor compute_conv(const ConvAttrs<N>& a, const TeInputs& in) {
  std::string letters = data_letters<N>(), kernel_letters = text("OI", kSpace<N>);
  const Tensor& weight = in.tensor(1);
  Axes before, after;
  for (char c : a.data_layout) {
    size_t d = kSpace<N>.find(c);
    before.push_back(d == kSpace<N>.npos ? 0 : a.padding.v[d]);
    after.push_back(d == kSpace<N>.npos ? 0 : a.padding.v[d + N]);
  }
  Tensor padded = pad(in.tensor(0), before, after, constant(0, in.tensor(0).dtype()), "pad_temp");
  std::vector<Expr> x = in_letters(in.tensor(0).shape(), a.data_layout, letters);
  std::vector<Expr> w = in_letters(weight.shape(), a.kernel_layout, kernel_letters);
  Expr group_inputs = floordiv(x[1], a.groups), group_outputs = floordiv(w[0], a.groups);
  // Reduction axes stand in the order of the data's layout.
  tir::IterVarRef rc = te::reduce_axis(group_inputs, "rc");
  std::vector<tir::IterVarRef> rk;
  const char* kernel_names[] = {"ry", "rx", "rz"};
  for (size_t d = 0; d < N; ++d) rk.push_back(te::reduce_axis(w[d + 2], kernel_names[d]));
  std::vector<tir::IterVarRef> axes;
  for (char c : a.data_layout) {
    if (c == 'C')
      axes.push_back(rc);
    else if (size_t d = kSpace<N>.find(c); d != kSpace<N>.npos)
      axes.push_back(rk[d]);
  }
  te::Naming naming{.name = text(a.groups > 1 ? "group_conv" : "conv", N, "d_")};
  for (char c : a.data_layout) {
    naming.name += static_cast<char>(std::tolower(c));
    naming.axes.push_back(c == 'N' ? "nn" : c == 'C' ? "ff" : c == 'H' ? "yy" : c == 'W' ? "xx" : "zz");
  }
  DType dtype = in.out_dtype();
  arith::Analyzer arith;
  std::vector<Expr> shape{x[0], w[0]};
  for (size_t d = 0; d < N; ++d) {
    Expr span = (w[d + 2] - 1) * a.dilation.v[d] + 1;
    Expr room = x[d + 2] - span + a.padding.v[d] + a.padding.v[d + N];
    shape.push_back(arith.simplify(floordiv(room, a.strides.v[d]) + 1));
  }
  return te::reduce(naming, in_layout(shape, a.data_layout, letters), [&](const Indices& i) {
    Indices o = in_letters(i, a.data_layout, letters);
    Expr channel = a.groups == 1 ? Expr(rc->var) : floordiv(o[1], group_outputs) * group_inputs + rc->var;
    Indices at{o[0], channel}, at_weight{o[1], rc->var};
    for (size_t d = 0; d < N; ++d) {
      at.push_back(o[d + 2] * a.strides.v[d] + Expr(rk[d]->var) * a.dilation.v[d]);
      at_weight.push_back(rk[d]->var);
    }
    Expr value = cast_to(dtype, padded(in_layout(at, a.data_layout, letters)));
    return te::reduce_sum(value * cast_to(dtype, weight(in_layout(at_weight, a.kernel_layout, kernel_letters))), axes);
  });
}

/// The convolution in the layout of its data, permuted where its result has another one. Layouts with split axes have no
/// formula: LegalizeOps leaves such calls to others.
template <int N>
std::string unsupported_conv(const Attrs& attrs, const RCall&) {
  auto a = read_attrs<ConvAttrs<N>>(attrs);
  for (const std::string& layout : {a.data_layout, a.kernel_layout, a.out()})
    if (Layout::parse(layout)->is_split()) return text("the layout ", layout, " has split axes: a backend computes it");
  return "";
}
template <int N>
RExpr legalize_conv(const RCallRef& call, BlockBuilder& b) {
  auto a = read_attrs<ConvAttrs<N>>(call->attrs);
  if (!unsupported_conv<N>(call->attrs, *call).empty()) return nullptr;
  auto data = Layout::parse(a.data_layout), out = Layout::parse(a.out());
  if (a.out() == a.data_layout) return b.legalize_by_formula(call);
  Attrs attrs = call->attrs;
  attrs["out_layout"] = attrs.at("data_layout");
  const RCallRef plain = cast<RCall>(b.normalize(relax::call(call->op, call->args, std::move(attrs))));
  const RExpr result = b.legalize_by_formula(plain);
  if (!result) return nullptr;
  std::vector<Value> axes;
  for (const Layout::Axis& axis : out->axes()) axes.emplace_back(static_cast<int64_t>(data->position(axis.letter)));
  return make_call("permute_dims", {Value(RExpr(b.emit(result))), Value(std::move(axes))});
}

template <int N>
StructInfo infer_conv_transpose(const ConvTransposeAttrs<N>& a, const CallInfo& in) {
  std::string letters = data_letters<N>(), kernel_letters = text("IO", kSpace<N>);
  if (a.groups <= 0) in.fail({.what = text(a.groups, " groups"), .needs = "groups >= 1", .hint = "use groups=1"});
  Layout data = need_layout(in, a.data_layout, letters), kernel = need_layout(in, a.kernel_layout, kernel_letters);
  Layout out = need_layout(in, a.out(), letters);
  auto x = shape_in(in, 0, data, letters), w = shape_in(in, 1, kernel, kernel_letters);
  DType dtype = a.out_dtype.is_void() ? in.common_dtype({0, 1}) : a.out_dtype;
  std::string vdevice = device_of(in.tensor(0), in.tensor(1));
  need_window(in, {}, a.strides.v, a.padding.v, a.dilation.v);
  for (size_t d = 0; d < N; ++d) {
    if (a.output_padding.v[d] < 0)
      in.fail({.what = text("output_padding ", a.output_padding.v[d]),
               .needs = "output_padding >= 0",
               .hint = "use 0 for none"});
    if (a.output_padding.v[d] >= a.strides.v[d] && x && w)
      in.fail({.what = text("output_padding ", a.output_padding.v[d], " with stride ", a.strides.v[d]),
               .needs = "output_padding < stride",
               .hint = "use a smaller output_padding"});
  }
  if (!x || !w) return tensor_info(dtype, out.rank(), vdevice);
  need_equal(in, (*x)[1], (*w)[0], "the channels of data are not the input channels of weight", "equal channels");
  need_equal(in,
             floormod((*w)[0], a.groups),
             dim(0),
             text("the input channels cannot be divided into ", a.groups, " groups"),
             "groups divides the input channels");
  std::vector<Expr> shape{(*x)[0], (*w)[1] * a.groups};
  for (size_t d = 0; d < N; ++d) {
    Expr extent = ((*x)[d + 2] - 1) * a.strides.v[d] - (a.padding.v[d] + a.padding.v[d + N]) +
                  ((*w)[d + 2] - 1) * a.dilation.v[d] + a.output_padding.v[d] + 1;
    shape.push_back(in.arith().simplify(extent));
  }
  return tensor_info(out.from_letters(shape, letters, in.arith()), dtype, vdevice);
}

/// A convolution with stride 1 of the data, stretched by zeros between its elements, with the kernel turned around.
template <int N>
Tensor compute_conv_transpose(const ConvTransposeAttrs<N>& a, const TeInputs& in) {
  const Tensor &data = in.tensor(0), &weight = in.tensor(1);
  arith::Analyzer arith;
  DType dtype = in.out_dtype();
  std::vector<Expr> stretched = data.shape();
  for (size_t d = 0; d < N; ++d) stretched[d + 2] = arith.simplify((data.shape()[d + 2] - 1) * a.strides.v[d] + 1);
  Tensor dilated = te::compute(python_naming("data_dilate"), stretched, [&](const Indices& i) {
    Indices at{i[0], i[1]};
    Expr on_element = bool_imm(true);
    for (size_t d = 0; d < N; ++d) {
      at.push_back(floordiv(i[d + 2], a.strides.v[d]));
      if (a.strides.v[d] != 1) on_element = logical_and(on_element, eq(floormod(i[d + 2], a.strides.v[d]), dim(0)));
    }
    return if_then_else(on_element, data(at), constant(0, data.dtype()));
  });
  Axes before{0, 0}, after{0, 0};
  for (size_t d = 0; d < N; ++d) {
    const int64_t span = (as_int(weight.shape()[d + 2]).value_or(1) - 1) * a.dilation.v[d];
    before.push_back(span - a.padding.v[d]);
    after.push_back(span - a.padding.v[d + N] + a.output_padding.v[d]);
  }
  Tensor padded = pad(dilated, before, after, constant(0, data.dtype()), "data_pad");
  Expr group_inputs = floordiv(data.shape()[1], a.groups), group_outputs = weight.shape()[1];
  std::vector<Expr> turned_shape = weight.shape();
  std::swap(turned_shape[0], turned_shape[1]);
  te::Naming turned_naming = python_naming("kernel_transform");
  Tensor turned = te::compute(turned_naming, turned_shape, [&](const Indices& i) {
    Indices at{i[1], i[0]};
    for (size_t d = 0; d < N; ++d) at.push_back(weight.shape()[d + 2] - 1 - i[d + 2]);
    return weight(at);
  });
  tir::IterVarRef dc = te::reduce_axis(group_inputs, "dc");
  std::vector<tir::IterVarRef> axes{dc};
  for (size_t d = 0; d < N; ++d) axes.push_back(te::reduce_axis(weight.shape()[d + 2], N == 1 || d == 1 ? "dw" : "dh"));
  return te::reduce(python_naming("compute"), in.out_shape(), [&](const Indices& i) {
    Expr channel = a.groups == 1 ? Expr(dc->var) : floordiv(i[1], group_outputs) * group_inputs + dc->var;
    Indices at{i[0], channel}, at_kernel{a.groups == 1 ? i[1] : floormod(i[1], group_outputs), channel};
    for (size_t d = 0; d < N; ++d) {
      at.push_back(i[d + 2] + Expr(axes[d + 1]->var) * a.dilation.v[d]);
      at_kernel.push_back(axes[d + 1]->var);
    }
    return te::reduce_sum(cast_to(dtype, padded(at)) * cast_to(dtype, turned(at_kernel)), axes);
  });
}

/// Only the plain layouts with a kernel of constant size have a formula.
template <int N>
std::string unsupported_conv_transpose(const Attrs& attrs, const RCall& call) {
  auto a = read_attrs<ConvTransposeAttrs<N>>(attrs);
  ConvTransposeAttrs<N> plain;
  if (a.out() != a.data_layout || a.data_layout != plain.data_layout || a.kernel_layout != plain.kernel_layout)
    return text("it is lowered for data in ", plain.data_layout, " and kernels in ", plain.kernel_layout, " only");
  auto weight = explicit_shape(*call.args[1]->sinfo.template as<TensorInfo>());
  if (weight && std::ranges::any_of(weight->begin() + 2, weight->end(), [](const Expr& e) { return !as_int(e); }))
    return "it is lowered for kernels of constant extents only";
  return "";
}
template <int N>
RExpr legalize_conv_transpose(const RCallRef& call, BlockBuilder& b) {
  return unsupported_conv_transpose<N>(call->attrs, *call).empty() ? b.legalize_by_formula(call) : nullptr;
}

RExpr build_conv(const OpDef& op, BoundArgs args) { return build_with_out_layout(op, std::move(args), "data_layout"); }

template <int N>
OpDef conv_row() {
  return {.name = text("nn.conv", N, "d"),
          .inputs = {{"data"}, {"weight"}},
          .attrs = attrs_of<ConvAttrs<N>>(),
          .infer = with(infer_conv<N>),
          .compute = with(compute_conv<N>),
          .legalize = legalize_conv<N>,
          .unsupported = unsupported_conv<N>,
          .build = build_conv};
}
template <int N>
OpDef conv_transpose_row() {
  return {.name = text("nn.conv", N, "d_transpose"),
          .inputs = {{"data"}, {"weight"}},
          .attrs = attrs_of<ConvTransposeAttrs<N>>(),
          .infer = with(infer_conv_transpose<N>),
          .compute = with(compute_conv_transpose<N>),
          .legalize = legalize_conv_transpose<N>,
          .unsupported = unsupported_conv_transpose<N>,
          .build = build_conv};
}

}  // namespace

std::vector<OpDef> convolution_ops() {
  return {conv_row<1>(), conv_row<2>(), conv_row<3>(), conv_transpose_row<1>(), conv_transpose_row<2>()};
}

}  // namespace sator::relax
