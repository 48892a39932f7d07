// Resizing of images.
#include "relax/ops/families.h"
#include "relax/ops/infer.h"
#include "relax/ops/layout.h"
#include "relax/ops/table.h"

namespace sator::relax {

namespace {

struct Resize2dAttrs {
  std::vector<double> roi{0, 0, 0, 0};
  std::string layout = "NCHW";
  std::string method = "linear";
  std::string coordinate_transformation_mode = "half_pixel";
  std::string rounding_method = "round";
  double cubic_alpha = -0.5;
  int cubic_exclude = 0;
  double extrapolation_value = 0;
  DType out_dtype;
  static constexpr auto fields() {
    using A = Resize2dAttrs;
    return std::tuple{attr("roi", &A::roi),
                      attr("layout", &A::layout),
                      attr("method", &A::method),
                      attr("coordinate_transformation_mode", &A::coordinate_transformation_mode),
                      attr("rounding_method", &A::rounding_method),
                      attr("cubic_alpha", &A::cubic_alpha),
                      attr("cubic_exclude", &A::cubic_exclude),
                      attr("extrapolation_value", &A::extrapolation_value),
                      attr("out_dtype", &A::out_dtype)};
  }
};

StructInfo infer_resize2d(const Resize2dAttrs& a, const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  const ShapeInfo& size = in.shape(1);
  if (size.ndim != 2)
    in.fail({.what = text("the size has ", size.ndim, " extents"), .needs = "height and width", .hint = "give (h, w)"});
  Layout layout = need_layout(in, a.layout, "NCHW");
  DType dtype = a.out_dtype.is_void() ? x.dtype : a.out_dtype;
  auto shape = shape_in(in, 0, layout, "NCHW");
  const ShapeExpr* extents = in.arg(1).as<ShapeExpr>();
  if (!shape || !extents) return tensor_info(dtype, layout.rank(), x.vdevice);
  (*shape)[2] = extents->values[0];
  (*shape)[3] = extents->values[1];
  return tensor_info(layout.from_letters(*shape, "NCHW", in.arith()), dtype, x.vdevice);
}

/// One number as the size is height and width; one number as the region is all four.
RExpr build_resize2d(const OpDef& op, BoundArgs args) {
  Value& size = args.inputs[1];
  if (size.as<int64_t>() || size.as<Expr>()) size = Value(Value::List{size, size});
  auto roi = args.attrs.find("roi");
  if (roi == args.attrs.end())
    args.attrs["roi"] = AttrType<std::vector<double>>::store({0, 0, 0, 0});
  else if (std::vector<double> v = AttrType<std::vector<double>>::load(roi->second); v.size() == 1)
    roi->second = AttrType<std::vector<double>>::store(std::vector<double>(4, v[0]));
  return build_call(op, std::move(args));
}

}  // namespace

std::vector<OpDef> image_ops() {
  return {{.name = "image.resize2d",
           .inputs = {{"data"}, {"size", InputKind::shape}},
           .attrs = attrs_of<Resize2dAttrs>(),
           .infer = with(infer_resize2d),
           .build = build_resize2d}};
}

}  // namespace sator::relax
