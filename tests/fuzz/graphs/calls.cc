#include "fuzz/graphs/calls.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace sator::fuzz {

// ---- Attributes: one row per name, or per op and name ----

namespace {

int64_t number(const std::string& extent) { return std::stoll(extent); }

using AttrDraw = std::string (*)(Draw&);

std::string some_ints(Draw& d, int64_t low, int64_t high, int64_t count) {
  std::string out;
  for (int64_t i = 0; i < count; ++i) out += sator::text(i ? ", " : "", d.from(low, high));
  return "[" + out + "]";
}
std::string flag(Draw& d) { return d.one_in(2) ? "True" : "False"; }

std::string drawn_attr(Draw& draw, const std::string& op, const std::string& name) {
  static const std::map<std::string, AttrDraw> rows = {
      {"axis", [](Draw& d) { return sator::text(d.of<int64_t>({-1, 0, 1, 2, -2, 3})); }},
      {"axes", [](Draw& d) { return some_ints(d, -2, 1, d.from(1, 2)); }},
      {"dtype",
       [](Draw& d) { return "\"" + d.of<std::string>({"float32", "int32", "float16", "int64", "float64"}) + "\""; }},
      {"out_dtype", [](Draw& d) { return "\"" + d.of<std::string>({"float32", "int32", "float16"}) + "\""; }},
      {"quantize.out_dtype", [](Draw& d) { return "\"" + d.of<std::string>({"int8", "uint8", "int16"}) + "\""; }},
      {"indices_or_sections",
       [](Draw& d) { return d.one_in(2) ? sator::text(d.from(1, 4)) : some_ints(d, 0, 4, d.from(1, 2)); }},
      {"repeats", [](Draw& d) { return sator::text(d.from(0, 3)); }},
      {"tile.repeats", [](Draw& d) { return some_ints(d, 0, 3, d.from(1, 3)); }},
      {"reduction",
       [](Draw& d) { return "\"" + d.of<std::string>({"update", "add", "mul", "max", "min", "mean"}) + "\""; }},
      {"nn.nll_loss.reduction", [](Draw& d) { return "\"" + d.of<std::string>({"mean", "sum", "none"}) + "\""; }},
      {"ignore_index", [](Draw& d) { return sator::text(d.from(-1, 2)); }},
      {"batch_dims", [](Draw&) { return std::string("0"); }},
      {"assume_inbound", [](Draw&) { return std::string("False"); }},  // the caller answers for it
      {"keepdims", flag},
      {"exclusive", flag},
      {"descending", flag},
      {"largest", flag},
      {"center", flag},
      {"scale", flag},
      {"training", flag},
      {"rate", [](Draw&) { return std::string("0.5"); }},
      {"out_int32", flag},
      {"right", flag},
      {"nn.attention.scale", [](Draw&) { return std::string("0.5"); }},
      {"nn.attention_bias.scale", [](Draw&) { return std::string("0.5"); }},
      {"k", [](Draw& d) { return sator::text(d.from(0, 3)); }},
      {"ret_type", [](Draw& d) { return "\"" + d.of<std::string>({"both", "values", "indices"}) + "\""; }},
      {"alpha", [](Draw&) { return std::string("0.25"); }},
      {"beta", [](Draw& d) { return d.of<std::string>({"1.0", "0.5"}); }},
      {"threshold", [](Draw&) { return std::string("20.0"); }},
      {"upscale_factor", [](Draw& d) { return sator::text(d.from(1, 2)); }},
      {"indexing", [](Draw& d) { return "\"" + d.of<std::string>({"ij", "xy"}) + "\""; }},
      {"pad_mode",
       [](Draw& d) { return "\"" + d.of<std::string>({"constant", "edge", "reflect", "circular"}) + "\""; }},
      {"pad_width", [](Draw& d) { return some_ints(d, 0, 2, 2 * d.from(0, 3)); }},
      {"epsilon", [](Draw& d) { return d.of<std::string>({"0.001", "0.1"}); }},
      {"momentum", [](Draw&) { return std::string("0.25"); }},
      {"num_groups", [](Draw& d) { return sator::text(d.from(1, 2)); }},
      {"channel_axis", [](Draw&) { return std::string("1"); }},
      {"nn.group_norm.axes", [](Draw&) { return std::string("[2]"); }},
      {"strides", [](Draw& d) { return sator::text(d.from(1, 3)); }},
      {"padding", [](Draw& d) { return sator::text(d.from(0, 2)); }},
      {"output_padding", [](Draw& d) { return sator::text(d.from(0, 1)); }},
      {"dilation", [](Draw& d) { return sator::text(d.from(1, 2)); }},
      {"groups", [](Draw& d) { return sator::text(d.from(1, 2)); }},
      {"pool_size", [](Draw& d) { return sator::text(d.from(1, 3)); }},
      {"output_size", [](Draw& d) { return sator::text(d.from(1, 4)); }},
      {"ceil_mode", flag},
      {"count_include_pad", flag},
      {"causal_mask", [](Draw& d) { return "\"" + d.of<std::string>({"TopLeft", "BottomRight"}) + "\""; }},
      {"window_size", [](Draw& d) { return sator::text(d.from(1, 3)); }},
      {"subscripts", [](Draw&) { return std::string(); }},   // with the inputs
      {"data_layout", [](Draw&) { return std::string(); }},  // other layouts than the inputs': see tests/graphs
      {"kernel_layout", [](Draw&) { return std::string(); }},
      {"out_layout", [](Draw&) { return std::string(); }},
      {"layout", [](Draw&) { return std::string(); }},
      {"roi", [](Draw&) { return std::string(); }},
      {"rounding_method",
       [](Draw& d) {
         return "\"" + d.of<std::string>({"round", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}) + "\"";
       }},
      {"cubic_alpha", [](Draw& d) { return d.of<std::string>({"-0.75", "-0.5"}); }},
      {"cubic_exclude", [](Draw& d) { return d.of<std::string>({"0", "1"}); }},
      {"extrapolation_value", [](Draw&) { return std::string("1.5"); }},
  };
  auto row = rows.find(op + "." + name);
  if (row == rows.end()) row = rows.find(name);
  if (row == rows.end()) internal_error(sator::text("the fuzzer has no draw for the attribute ", name, " of ", op));
  return row->second(draw);
}

// ---- Inputs: by their kind, or a row per op ----

using InputDraw = std::string (*)(GraphText&);

/// The extents of `v` with some changed, as a shape.
std::string shape_text(const std::vector<std::string>& extents) {
  std::string out;
  for (const std::string& e : extents) out += (out.empty() ? "" : ", ") + e;
  return "R.shape([" + out + "])";
}

std::string two_of_a_kind(GraphText& g) {
  TensorVar x = g.any_value();
  std::string other = g.partner(x);
  return g.draw.one_in(4) ? other + ", " + x.name : x.name + ", " + other;
}
/// Integers are not divided by what may be 0.
std::string dividend(GraphText& g) {
  TensorVar x = g.any_value();
  if (x.dtype.is_float()) return x.name + ", " + g.partner(x);
  return sator::text(x.name, ", R.const(3, \"", x.dtype, "\")");
}
std::string float_pair(GraphText& g) {
  TensorVar x = g.float_value();
  return x.name + ", " + g.partner(x);
}
std::string of_bools(GraphText& g) {
  TensorVar x = g.value([](const TensorVar& v) { return v.dtype.is_bool(); }, "bool");
  return x.name + ", " + g.partner(x);
}
std::string of_integers(GraphText& g) {
  TensorVar x = g.value([](const TensorVar& v) { return v.dtype.is_integer(); }, "int32");
  return x.name + ", " + g.partner(x);
}
std::string one_integer(GraphText& g) {
  return g.value([](const TensorVar& v) { return v.dtype.is_integer(); }, "int32").name;
}
std::string one_float(GraphText& g) { return g.float_value().name; }

std::string convolution(GraphText& g, int n, bool transposed) {
  std::vector<int64_t> data{g.draw.from(1, 2), 4},
      weight{transposed ? 4 : g.draw.from(1, 2) * 2, 4 / g.draw.from(1, 2)};
  if (transposed) weight[1] = g.draw.from(1, 3);
  for (int d = 0; d < n; ++d) {
    data.push_back(g.draw.from(n == 3 ? 3 : 4, n == 3 ? 4 : 7));
    weight.push_back(g.draw.from(1, 3));
  }
  std::string x = g.param(data, "float32");
  return x + ", " + g.param(weight, "float32");
}
std::string pooled(GraphText& g, int n) {
  std::vector<int64_t> data{g.draw.from(1, 2), g.draw.from(1, 3)};
  for (int d = 0; d < n; ++d) data.push_back(g.draw.from(3, n == 3 ? 4 : 7));
  return g.param(data, "float32");
}
std::string resized(GraphText& g) {
  const std::string image = pooled(g, 2);
  return sator::text(image,
                     ", R.shape([",
                     g.draw.from(1, 9),
                     ", ",
                     g.draw.from(1, 9),
                     "]), method=\"",
                     g.draw.of<const char*>({"nearest_neighbor", "linear", "cubic"}),
                     "\", coordinate_transformation_mode=\"",
                     g.draw.of<const char*>({"half_pixel", "align_corners", "asymmetric"}),
                     "\"");
}
std::string attention(GraphText& g, bool bias) {
  int64_t b = g.draw.from(1, 2), n = g.draw.from(1, 4), m = g.draw.from(1, 5), kv = g.draw.from(1, 2);
  int64_t h = kv * g.draw.from(1, 2), d = g.draw.from(1, 4), e = g.draw.from(1, 4);
  std::string out = g.param({b, n, h, d}, "float32") + ", ";
  out += g.param({b, m, kv, d}, "float32") + ", " + g.param({b, m, kv, e}, "float32");
  return bias ? out + ", " + g.param({b, g.draw.one_in(2) ? 1 : h, n, m}, "float32") : out;
}
std::string norm(GraphText& g, int parameters) {
  TensorVar x =
      g.value([](const TensorVar& v) { return v.dtype.is_float() && !v.shape.empty() && can_be_param(v.shape); });
  if (x.shape.empty()) return "";
  std::string out = x.name;
  for (int i = 0; i < parameters; ++i)
    out += ", " + g.param(std::vector<std::string>{x.shape.back()}, sator::text(x.dtype));
  return out + ", axes=[-1]";
}
std::string product(GraphText& g) {
  TensorVar x =
      g.value([](const TensorVar& v) { return !v.shape.empty() && !v.dtype.is_bool() && can_be_param(v.shape); });
  if (x.shape.empty() || x.dtype.is_bool()) return "";
  std::vector<std::string> shape{x.shape.back()};
  if (!g.draw.one_in(4)) shape.push_back(g.draw.of<std::string>({"3", "4", "1", "n"}));
  return x.name + ", " + g.param(shape, sator::text(x.dtype));
}
std::string linear(GraphText& g) {
  TensorVar x =
      g.value([](const TensorVar& v) { return !v.shape.empty() && v.dtype.is_float() && can_be_param(v.shape); });
  if (x.shape.empty()) return "";
  std::string dtype = sator::text(x.dtype), out = sator::text(g.draw.from(1, 4));
  std::string args = x.name + ", " + g.param(std::vector<std::string>{out, x.shape.back()}, dtype);
  return g.draw.one_in(2) ? args + ", " + g.param(std::vector<std::string>{out}, dtype) : args;
}
/// Values from 0 to 2 as indices along an axis that has at least 3 elements.
std::string taken(GraphText& g) {
  TensorVar x = g.any_value();
  for (size_t d = 0; d < x.shape.size(); ++d) {
    if (!is_number(x.shape[d]) || number(x.shape[d]) < 3) continue;
    std::string index = g.param(g.random_shape(), g.draw.one_in(2) ? "int32" : "int64");
    return sator::text(x.name, ", ", index, ", axis=", d);
  }
  return "";
}
/// A tensor, positions along one of its axes, and what is put there.
std::string at_elements(GraphText& g, bool scatters) {
  TensorVar x = g.value([](const TensorVar& v) { return !v.dtype.is_bool() && !v.shape.empty(); });
  if (x.dtype.is_bool() || !can_be_param(x.shape)) return "";
  for (size_t d = 0; d < x.shape.size(); ++d) {
    if (!is_number(x.shape[d]) || number(x.shape[d]) < 3) continue;
    std::vector<std::string> where = x.shape;
    where[d] = sator::text(g.draw.from(1, 4));
    std::string out = x.name + ", " + g.param(where, "int64");
    if (scatters) out += ", " + g.param(where, sator::text(x.dtype));
    return sator::text(out, ", axis=", d);
  }
  return "";
}
/// A tensor, positions along its first axis, and what is put there.
std::string at_rows(GraphText& g, bool scatters) {
  TensorVar x = g.value([](const TensorVar& v) { return !v.dtype.is_bool() && !v.shape.empty(); });
  if (x.dtype.is_bool() || x.shape.empty() || !can_be_param(x.shape) || !is_number(x.shape[0]) ||
      number(x.shape[0]) < 3)
    return "";
  const std::string rows = sator::text(g.draw.from(1, 4));
  std::string out = x.name + ", " + g.param(std::vector<std::string>{rows, "1"}, "int64");
  if (!scatters) return out;
  std::vector<std::string> shape = x.shape;
  shape[0] = rows;
  return out + ", " + g.param(shape, sator::text(x.dtype));
}
/// Values from 0 to 2 as indices along the first axis.
std::string indexed(GraphText& g) {
  TensorVar x = g.any_value();
  if (x.shape.empty() || !is_number(x.shape[0]) || number(x.shape[0]) < 3) return "";
  return x.name + ", (" + g.param(g.random_shape(), "int64") + ",)";
}
/// A tensor and what is put in the place of a slice along its first axis.
std::string slice_replaced(GraphText& g) {
  TensorVar x = g.any_value();
  if (!can_be_param(x.shape) || x.shape.empty() || !is_number(x.shape[0])) return "";
  const int64_t start = g.draw.from(0, 2), end = g.draw.from(start, 6), step = g.draw.from(1, 2);
  const int64_t extent = number(x.shape[0]), last = std::min(end, extent), first = std::min(start, extent);
  std::vector<std::string> shape = x.shape;
  shape[0] = sator::text(std::max<int64_t>(0, (last - first + step - 1) / step));
  return sator::text(
      x.name, ", ", g.param(shape, sator::text(x.dtype)), ", ", start, ", ", end, ", ", step, ", axis=0");
}
/// The slopes of each channel.
std::string with_slopes(GraphText& g) {
  TensorVar x =
      g.value([](const TensorVar& v) { return v.dtype.is_float() && !v.shape.empty() && can_be_param(v.shape); });
  if (x.shape.empty() || !x.dtype.is_float()) return "";
  const int64_t axis = g.draw.below(static_cast<int64_t>(x.shape.size()));
  const std::vector<std::string> slopes{x.shape[static_cast<size_t>(axis)]};
  return sator::text(x.name, ", ", g.param(slopes, sator::text(x.dtype)), ", axis=", axis);
}
std::string shifted(GraphText& g) {
  TensorVar x = g.value([](const TensorVar& v) { return v.dtype.is_integer(); }, "int32");
  return sator::text(x.name, ", R.const(", g.draw.from(0, 7), ", \"", x.dtype, "\")");
}
std::string masked(GraphText& g) {
  TensorVar x = g.any_value();
  if (!can_be_param(x.shape)) return "";
  TensorVar c = g.value([&](const TensorVar& v) { return v.dtype.is_bool() && v.shape == x.shape; }, "bool");
  return sator::text(x.name, ", ", c.name, ", ", g.draw.from(-1, 3));
}
std::string chosen(GraphText& g) {
  TensorVar x = g.any_value();
  std::string other = g.partner(x);
  if (!can_be_param(x.shape)) return "";
  TensorVar c = g.value([&](const TensorVar& v) { return v.dtype.is_bool() && v.shape == x.shape; }, "bool");
  return c.name + ", " + x.name + ", " + other;
}
std::string sliced(GraphText& g) {
  TensorVar x = g.any_value();
  if (x.shape.empty()) return "";
  return sator::text(x.name,
                     ", [",
                     g.draw.below(static_cast<int64_t>(x.shape.size())),
                     "], [",
                     g.draw.from(-3, 4),
                     "], [",
                     g.draw.from(-3, 6),
                     "], [",
                     g.draw.of<int64_t>({1, 1, 2, -1, -2}),
                     "]");
}
std::string permuted(GraphText& g) {
  TensorVar x = g.any_value();
  std::vector<std::string> order;
  for (size_t d = 0; d < x.shape.size(); ++d) order.push_back(sator::text(d));
  for (size_t d = order.size(); d > 1; --d)
    std::swap(order[d - 1], order[static_cast<size_t>(g.draw.below(static_cast<int64_t>(d)))]);
  return order.empty() ? "" : sator::text(x.name, ", axes=[", join(order, ", "), "]");
}
/// A map to the axes in another order; the last of them may come apart, with padding.
std::string with_index_map(GraphText& g) {
  TensorVar x = g.any_value();
  std::vector<std::string> names, order;
  for (size_t d = 0; d < x.shape.size(); ++d) names.push_back(sator::text("i", d));
  if (names.empty()) return "";
  order = names;
  for (size_t d = order.size(); d > 1; --d)
    std::swap(order[d - 1], order[static_cast<size_t>(g.draw.below(static_cast<int64_t>(d)))]);
  const std::string last = order.back();
  const bool pads = g.draw.one_in(2);
  if (pads) {
    order.back() = last + " // 2";
    order.push_back(last + " % 2");
  }
  return sator::text(x.name,
                     ", index_map=lambda ",
                     join(names, ", "),
                     ": (",
                     join(order, ", "),
                     ",), axis_separators=[], input_axis_separators=[], pad_value=1");
}
std::string reshaped(GraphText& g) {
  TensorVar x = g.any_value();
  std::vector<std::string> shape = x.shape;
  switch (g.draw.below(4)) {
    case 0: return sator::text(x.name, ", (-1,)");
    case 1:
      if (shape.size() > 1) {
        shape[1] = sator::text("(", shape[0], ") * (", shape[1], ")");
        shape.erase(shape.begin());
      }
      break;
    case 2: std::reverse(shape.begin(), shape.end()); break;
    default: shape.insert(shape.begin() + g.draw.below(static_cast<int64_t>(shape.size()) + 1), "1");
  }
  return x.name + ", " + shape_text(shape);
}
std::string broadcast(GraphText& g) {
  TensorVar x = g.any_value();
  std::vector<std::string> shape = x.shape;
  for (std::string& e : shape) {
    if (e == "1") e = sator::text(g.draw.from(1, 3));
  }
  if (g.draw.one_in(2)) shape.insert(shape.begin(), "2");
  return x.name + ", " + shape_text(shape);
}
std::vector<std::string> collapsed(GraphText& g, const TensorVar& x) {
  std::vector<std::string> shape = x.shape;
  if (!shape.empty() && g.draw.one_in(2)) shape.erase(shape.begin());
  for (std::string& e : shape) {
    if (g.draw.one_in(2)) e = "1";
  }
  return shape;
}

const std::map<std::string, InputDraw>& input_rows() {
  static const std::map<std::string, InputDraw> rows = {
      {"clip", [](GraphText& g) { return g.any_value().name + ", -1, 1"; }},
      {"tril", [](GraphText& g) { return sator::text(g.any_value().name, ", ", g.draw.from(-2, 2)); }},
      {"triu", [](GraphText& g) { return sator::text(g.any_value().name, ", ", g.draw.from(-2, 2)); }},
      {"bitwise_not", one_integer},
      {"bitwise_and", of_integers},
      {"bitwise_or", of_integers},
      {"bitwise_xor", of_integers},
      {"logical_not", [](GraphText& g) { return g.any_value().name; }},
      {"logical_and", of_bools},
      {"logical_or", of_bools},
      {"logical_xor", of_bools},
      {"divide", dividend},
      {"floor_divide", dividend},
      {"mod", dividend},
      {"floor_mod", dividend},
      {"power", float_pair},
      {"atan2", float_pair},
      {"left_shift", shifted},
      {"right_shift", shifted},
      {"masked_fill", [](GraphText& g) { return masked(g); }},
      {"median", [](GraphText& g) { return g.float_value().name; }},
      {"ewise_fma",
       [](GraphText& g) {
         TensorVar x = g.float_value();
         return x.name + ", " + x.name + ", " + x.name;
       }},
      {"where", chosen},
      {"full", [](GraphText& g) { return shape_text(collapsed(g, g.any_value())) + ", R.const(2, \"float32\")"; }},
      {"full_like", [](GraphText& g) { return g.any_value().name + ", R.const(2, \"float32\")"; }},
      {"ones", [](GraphText& g) { return shape_text(collapsed(g, g.any_value())) + ", dtype=\"float32\""; }},
      {"zeros", [](GraphText& g) { return shape_text(collapsed(g, g.any_value())) + ", dtype=\"int32\""; }},
      {"arange",
       [](GraphText& g) {
         return sator::text(g.draw.from(-2, 2), ", ", g.draw.from(-2, 6), ", ", g.draw.of<int64_t>({1, 2, -1, -2}));
       }},
      {"eye",
       [](GraphText& g) { return sator::text(g.draw.from(1, 4), ", ", g.draw.from(1, 4), ", ", g.draw.from(-2, 2)); }},
      {"eye_like",
       [](GraphText& g) {
         TensorVar x = g.value([](const TensorVar& v) { return v.shape.size() == 2; });
         return x.shape.size() == 2 ? sator::text(x.name, ", ", g.draw.from(-2, 2)) : std::string();
       }},
      {"hamming_window",
       [](GraphText& g) { return sator::text(g.draw.from(1, 6), ", ", g.draw.one_in(2) ? "True" : "False"); }},
      {"meshgrid",
       [](GraphText& g) {
         const std::string x = g.param(std::vector<std::string>{g.draw.of<std::string>({"n", "2", "3"})}, "float32");
         const std::string y = g.param(std::vector<int64_t>{g.draw.from(1, 4)}, "float32");
         return "(" + x + ", " + y + ")";
       }},
      {"bucketize",
       [](GraphText& g) {
         TensorVar x = g.value([](const TensorVar& v) { return !v.dtype.is_bool(); });
         return x.name + ", " + g.param(std::vector<int64_t>{g.draw.from(1, 4)}, sator::text(x.dtype));
       }},
      {"index_tensor", indexed},
      {"slice_scatter", slice_replaced},
      {"nn.prelu", with_slopes},
      {"nn.pixel_shuffle",
       [](GraphText& g) {
         return g.param(std::vector<int64_t>{g.draw.from(1, 2), 4, g.draw.from(1, 3), g.draw.from(1, 3)}, "float32");
       }},
      {"reshape", reshaped},
      {"permute_dims", permuted},
      {"layout_transform", with_index_map},
      {"broadcast_to", broadcast},
      {"collapse_sum_to",
       [](GraphText& g) {
         TensorVar x = g.any_value();
         return x.name + ", " + shape_text(collapsed(g, x));
       }},
      {"collapse_sum_like",
       [](GraphText& g) {
         TensorVar x = g.any_value();
         std::vector<std::string> shape = collapsed(g, x);
         return can_be_param(shape) ? x.name + ", " + g.param(shape, "float32") : std::string();
       }},
      {"concat",
       [](GraphText& g) {
         TensorVar x = g.any_value();
         TensorVar y =
             g.value([&](const TensorVar& v) { return v.dtype == x.dtype && v.shape.size() == x.shape.size(); });
         return "(" + x.name + ", " + y.name + (g.draw.one_in(2) ? ", " + x.name + ")" : ")");
       }},
      {"take", taken},
      {"stack",
       [](GraphText& g) {
         TensorVar x = g.any_value();
         return "(" + x.name + ", " + x.name + (g.draw.one_in(2) ? ", " + x.name + ")" : ")");
       }},
      {"gather_elements", [](GraphText& g) { return at_elements(g, false); }},
      {"gather_nd", [](GraphText& g) { return at_rows(g, false); }},
      {"scatter_nd", [](GraphText& g) { return at_rows(g, true); }},
      {"scatter_elements", [](GraphText& g) { return at_elements(g, true); }},
      {"strided_slice", sliced},
      {"dynamic_strided_slice",
       [](GraphText& g) {
         TensorVar x = g.any_value();
         if (x.shape.empty()) return std::string();
         std::string out = x.name;
         for (auto [low, high] : {std::pair<int64_t, int64_t>{0, 2}, {0, 4}, {1, 2}}) {
           std::string list;
           for (size_t d = 0; d < x.shape.size(); ++d) list += sator::text(d ? ", " : "", g.draw.from(low, high));
           out += ", R.const([" + list + "], \"int64\")";
         }
         return out;
       }},
      {"matmul", product},
      {"linear", linear},
      {"einsum",
       [](GraphText& g) {
         TensorVar x = g.value([](const TensorVar& v) { return v.shape.size() == 2 && v.dtype.is_float(); });
         if (x.shape.size() != 2) return std::string();
         return "(" + x.name + ", " + x.name + "), " +
                g.draw.of<std::string>({"\"ij,ij->ij\"", "\"ij,kj->ik\"", "\"ij,kj->\"", "\"ij,ij->j\""});
       }},
      {"multinomial_from_uniform",
       [](GraphText& g) {
         std::string p = g.param(std::vector<int64_t>{3, g.draw.from(1, 4)}, "float32");
         std::string n = sator::text(g.draw.from(1, 3));
         std::string u = g.param(std::vector<std::string>{n, "1"}, "float32");
         return p + ", " + u + ", " + g.param(std::vector<std::string>{n, "1"}, "int64");
       }},
      {"nn.cross_entropy_with_logits",
       [](GraphText& g) {
         TensorVar x = g.float_value();
         return x.name + ", " + x.name;
       }},
      {"nn.nll_loss",
       [](GraphText& g) {
         std::string n = g.draw.of<std::string>({"2", "n", "1"});
         std::string p = g.param(std::vector<std::string>{n, "3"}, "float32");
         std::string out = p + ", " + g.param(std::vector<std::string>{n}, "int64");
         return g.draw.one_in(2) ? out + ", " + g.param(std::vector<int64_t>{3}, "float32") : out;
       }},
      {"grad.nll_loss_backward",
       [](GraphText& g) {
         const std::string n = g.draw.of<std::string>({"2", "n", "1"});
         const std::string reduction = g.draw.of<std::string>({"mean", "sum", "none"});
         std::vector<std::string> grad;
         if (reduction == "none") grad.push_back(n);
         std::string out = g.param(grad, "float32");
         out += ", " + g.param(std::vector<std::string>{n, "3"}, "float32");
         out += ", " + g.param(std::vector<std::string>{n}, "int64");
         if (g.draw.one_in(2)) out += ", " + g.param(std::vector<int64_t>{3}, "float32");
         return out + ", reduction=\"" + reduction + "\"";
       }},
      {"grad.take_backward",
       [](GraphText& g) {
         const std::vector<int64_t> x{g.draw.from(3, 5), g.draw.from(1, 3)}, indices{g.draw.from(1, 4)};
         std::string out = g.param(std::vector<int64_t>{indices[0], x[1]}, "float32");
         out += ", " + g.param(x, "float32");
         return out + ", " + g.param(indices, "int64") + ", axis=0";
       }},
      {"nn.layer_norm", [](GraphText& g) { return norm(g, 2); }},
      {"nn.rms_norm", [](GraphText& g) { return norm(g, 1); }},
      {"nn.group_norm",
       [](GraphText& g) {
         std::string x = g.param(std::vector<int64_t>{g.draw.from(1, 2), 4, g.draw.from(1, 3)}, "float32");
         std::string gamma = g.param(std::vector<int64_t>{4}, "float32");
         return x + ", " + gamma + ", " + gamma;
       }},
      {"nn.batch_norm",
       [](GraphText& g) {
         std::string x = g.param(std::vector<int64_t>{g.draw.from(1, 2), 3, g.draw.from(1, 3)}, "float32");
         std::string c = g.param(std::vector<int64_t>{3}, "float32");
         return x + ", " + c + ", " + c + ", " + c + ", " + c + ", axis=1";
       }},
      {"nn.conv1d", [](GraphText& g) { return convolution(g, 1, false); }},
      {"nn.conv2d", [](GraphText& g) { return convolution(g, 2, false); }},
      {"nn.conv3d", [](GraphText& g) { return convolution(g, 3, false); }},
      {"nn.conv1d_transpose", [](GraphText& g) { return convolution(g, 1, true); }},
      {"nn.conv2d_transpose", [](GraphText& g) { return convolution(g, 2, true); }},
      {"nn.max_pool1d", [](GraphText& g) { return pooled(g, 1); }},
      {"nn.max_pool2d", [](GraphText& g) { return pooled(g, 2); }},
      {"nn.max_pool3d", [](GraphText& g) { return pooled(g, 3); }},
      {"nn.avg_pool1d", [](GraphText& g) { return pooled(g, 1); }},
      {"nn.avg_pool2d", [](GraphText& g) { return pooled(g, 2); }},
      {"nn.avg_pool3d", [](GraphText& g) { return pooled(g, 3); }},
      {"nn.adaptive_avg_pool1d", [](GraphText& g) { return pooled(g, 1); }},
      {"nn.adaptive_avg_pool2d", [](GraphText& g) { return pooled(g, 2); }},
      {"nn.adaptive_avg_pool3d", [](GraphText& g) { return pooled(g, 3); }},
      {"image.resize2d", resized},
      {"nn.attention", [](GraphText& g) { return attention(g, false); }},
      {"nn.attention_bias", [](GraphText& g) { return attention(g, true); }},
      {"nn.pad", one_float},
      {"quantize",
       [](GraphText& g) { return g.float_value().name + ", R.const(0.25, \"float32\"), R.const(1, \"int8\")"; }},
      {"dequantize",
       [](GraphText& g) {
         TensorVar x = g.value([](const TensorVar& v) { return v.dtype == i8; }, "int8");
         return x.name + ", R.const(0.25, \"float32\"), R.const(1, \"int8\")";
       }},
  };
  return rows;
}

std::string inputs_by_kind(GraphText& g, const relax::OpDef& op) {
  bool two = op.inputs.size() == 2 && op.inputs[0].kind == relax::InputKind::any;
  if (two) return two_of_a_kind(g);
  if (op.inputs.size() == 1 && op.inputs[0].kind == relax::InputKind::tensor)
    return g.draw.one_in(4) ? g.any_value().name : g.float_value().name;
  internal_error(sator::text("the fuzzer has no draw for the inputs of ", op.name));
}

}  // namespace

std::string drawn_call(GraphText& g, const relax::OpDef& op) {
  auto row = input_rows().find(op.name);
  std::string args = row != input_rows().end() ? row->second(g) : inputs_by_kind(g, op);
  if (args.empty()) return "";
  for (const relax::AttrDef& attr : op.attrs) {
    if (args.find(attr.name + "=") != args.npos || (op.name == "einsum")) continue;
    if (!attr.required && !g.draw.one_in(3)) continue;
    std::string value = drawn_attr(g.draw, op.name, attr.name);
    if (!value.empty()) args += ", " + attr.name + "=" + value;
  }
  return "R." + op.name + "(" + args + ")";
}

}  // namespace sator::fuzz
