// Resizing of images.
#include <algorithm>
#include <cmath>

#include "relax/ops/families.h"
#include "relax/ops/formula.h"
#include "relax/ops/infer.h"
#include "relax/ops/layout.h"
#include "relax/ops/table.h"

namespace sator::relax {

namespace {

using te::Indices;
using te::Tensor;

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

/// One axis of the image: its old and new extent, and the part of it that tf_crop_and_resize takes (0 to 1).
struct Side {
  Expr from, to;
  double begin = 0, end = 1;
};

Expr real(const Expr& e) { return cast_to(f32, e); }
Expr real(double v) { return float_imm(v, f32); }

[[noreturn]] void refuse(const char* attribute, const std::string& value, const char* needs) {
  fail({.what = text("image.resize2d: ", attribute, " is ", string_literal(value)),
        .needs = needs,
        .hint = "choose one of these"});
}

/// Where the new element i stands among the old ones.
/// Source: ONNX, operator Resize, coordinate_transformation_mode; tf_crop_and_resize: TensorFlow, image.crop_and_resize.
Expr source_position(const std::string& mode, const Side& side, const Expr& i) {
  const Expr scale = div(real(side.from), real(side.to));
  auto half_pixel = [&] { return (real(i) + real(0.5)) * scale - real(0.5); };
  auto unless_one = [&](const Expr& position, const Expr& alone) {
    return if_then_else(gt(side.to, dim(1)), position, alone);
  };
  if (mode == "half_pixel") return half_pixel();
  if (mode == "pytorch_half_pixel") return unless_one(half_pixel(), real(0.0));
  if (mode == "align_corners")
    return unless_one(div(real(side.from - 1), real(max(side.to - 1, dim(1)))) * real(i), real(0.0));
  if (mode == "asymmetric") return scale * real(i);
  if (mode == "tf_half_pixel_for_nn") return (real(i) + real(0.5)) * scale;
  if (mode == "tf_crop_and_resize") {
    const Expr last = real(side.from - 1);
    return unless_one(
        real(side.begin) * last + div(real(i) * real(side.end - side.begin) * last, real(max(side.to - 1, dim(1)))),
        real(0.5 * (side.begin + side.end)) * last);
  }
  refuse("coordinate_transformation_mode",
         mode,
         "half_pixel, align_corners, asymmetric, pytorch_half_pixel, tf_half_pixel_for_nn or tf_crop_and_resize");
}

/// round, floor or ceil; of a constant, where only one element is made, the constant.
Expr rounded(const std::string& f, const Expr& x) {
  const FloatImm* value = x.as<FloatImm>();
  if (!value) return math(f.c_str(), x);
  return real(f == "round"   ? std::round(value->value)
              : f == "floor" ? std::floor(value->value)
                             : std::ceil(value->value));
}

/// The old element nearest to the new element i, which may lie outside.
/// Where the new extent is n times the old one, asymmetric positions are i / n, whatever the rounding, as TVM has it.
Expr nearest(const Resize2dAttrs& a, const Side& side, const Expr& i) {
  const auto from = as_int(side.from), to = as_int(side.to);
  if (a.coordinate_transformation_mode == "asymmetric" && from && to && *from > 0 && *to % *from == 0)
    return div(i, dim(*to / *from));
  const Expr at = source_position(a.coordinate_transformation_mode, side, i);
  std::string rounding = a.rounding_method;
  if (rounding.empty()) rounding = a.coordinate_transformation_mode == "align_corners" ? "round" : "floor";
  auto whole = [](const char* f, const Expr& x) { return cast_to(i64, rounded(f, x)); };
  const Expr slack = real(1e-5);  // a position that rounding moved below (above) a whole number
  if (rounding == "round") return whole("round", at);
  if (rounding == "round_prefer_floor") return whole("ceil", at - real(0.5));
  if (rounding == "round_prefer_ceil") return whole("floor", at + real(0.5));
  if (rounding == "floor") return whole("floor", at + slack);
  if (rounding == "ceil") return whole("ceil", at - slack);
  refuse("rounding_method", rounding, "round, round_prefer_floor, round_prefer_ceil, floor or ceil");
}

/// Old elements and what each of them counts.
struct Taps {
  std::vector<Expr> index, weight;
};
/// Two neighbours, weighted by nearness; or four by the cubic spline with slope `cubic_alpha`.
/// Source: Keys, "Cubic convolution interpolation for digital image processing", 1981.
Taps taps_at(const Resize2dAttrs& a, const Side& side, const Expr& position) {
  const Expr below = rounded("floor", position), first = cast_to(i64, below), t = position - below, one = real(1.0);
  if (a.method == "linear") return {{first, first + 1}, {one - t, t}};
  const Expr t2 = t * t, t3 = t2 * t, alpha = real(a.cubic_alpha);
  Taps taps{{first - 1, first, first + 1, first + 2},
            {alpha * (t3 - real(2.0) * t2 + t),
             (alpha + real(2.0)) * t3 - (alpha + real(3.0)) * t2 + one,
             (real(3.0) + real(2.0) * alpha) * t2 - (alpha + real(2.0)) * t3 - alpha * t,
             alpha * t2 - alpha * t3}};
  if (!a.cubic_exclude) return taps;
  Expr total = real(0.0);
  for (size_t k = 0; k < 4; ++k) {
    const Expr outside = logical_or(lt(taps.index[k], dim(0)), ge(taps.index[k], side.from));
    taps.weight[k] = if_then_else(outside, real(0.0), taps.weight[k]);
    total = total + taps.weight[k];
  }
  for (Expr& w : taps.weight) w = div(w, total);
  return taps;
}

/// Positions outside of the image have its border's value; those of tf_crop_and_resize `extrapolation_value`.
Tensor compute_resize2d(const Resize2dAttrs& a, const TeInputs& in) {
  const Tensor& x = in.tensor(0);
  const Layout layout = *Layout::parse(a.layout);
  if (std::ranges::any_of(layout.axes(), [](const Layout::Axis& axis) {
        return axis.factor && (axis.letter == 'H' || axis.letter == 'W');
      }))
    refuse("layout", a.layout, "whole axes of height and width");
  const std::vector<Expr> shape = in.out_shape();
  const size_t h = layout.position('H'), w = layout.position('W');
  const Side height{x.shape()[h], shape[h], a.roi.at(0), a.roi.at(2)};
  const Side width{x.shape()[w], shape[w], a.roi.at(1), a.roi.at(3)};
  if (a.method != "nearest_neighbor" && a.method != "linear" && a.method != "cubic")
    refuse("method", a.method, "nearest_neighbor, linear or cubic");
  return te::compute(python_naming("resize"), shape, [&](const Indices& i) {
    auto pixel = [&](const Expr& row, const Expr& column) {
      Indices at = i;
      at[h] = max(min(row, height.from - 1), dim(0));
      at[w] = max(min(column, width.from - 1), dim(0));
      return x(at);
    };
    if (a.method == "nearest_neighbor")
      return cast_to(in.out_dtype(), pixel(nearest(a, height, i[h]), nearest(a, width, i[w])));
    const Expr y = source_position(a.coordinate_transformation_mode, height, i[h]);
    const Expr z = source_position(a.coordinate_transformation_mode, width, i[w]);
    const Taps rows = taps_at(a, height, y), columns = taps_at(a, width, z);
    Expr value;
    for (size_t r = 0; r < rows.index.size(); ++r) {
      Expr row;
      for (size_t c = 0; c < columns.index.size(); ++c) {
        const Expr part = real(pixel(rows.index[r], columns.index[c])) * columns.weight[c];
        row = row ? row + part : part;
      }
      value = value ? value + row * rows.weight[r] : row * rows.weight[r];
    }
    if (a.coordinate_transformation_mode == "tf_crop_and_resize") {
      auto outside = [](const Expr& position, const Side& side) {
        return logical_or(lt(position, real(0.0)), gt(position, real(side.from - 1)));
      };
      value = if_then_else(logical_or(outside(y, height), outside(z, width)), real(a.extrapolation_value), value);
    }
    return cast_to(in.out_dtype(), value);
  });
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
           .compute = with(compute_resize2d),
           .build = build_resize2d}};
}

}  // namespace sator::relax
