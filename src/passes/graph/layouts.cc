#include "passes/graph/layouts.h"

#include <algorithm>
#include <set>

#include "relax/ops/attrs.h"

namespace sator::passes {

using namespace relax;

AxisOrder plain_order(int rank) {
  if (rank < 0) return {};
  std::vector<int> out;
  for (int i = 0; i < rank; ++i) out.push_back(i);
  return out;
}

AxisOrders plain_orders(const StructInfo& info) {
  if (const TensorInfo* t = info.as<TensorInfo>()) return {plain_order(t->ndim)};
  AxisOrders out;
  if (const TupleInfo* t = info.as<TupleInfo>()) {
    for (const StructInfo& item : t->items)
      for (const AxisOrder& o : plain_orders(item)) out.push_back(o);
    return out;
  }
  return {AxisOrder()};
}

std::vector<int64_t> axes_between(const std::vector<int>& from, const std::vector<int>& to) {
  std::vector<int64_t> out;
  for (int axis : to) out.push_back(std::ranges::find(from, axis) - from.begin());
  return out;
}

namespace {

using KnownOrder = std::vector<int>;

/// Where an axis of the graph lies.
int64_t position(const KnownOrder& order, int64_t axis) {
  const auto rank = static_cast<int64_t>(order.size());
  return std::ranges::find(order, static_cast<int>((axis % rank + rank) % rank)) - order.begin();
}

/// The letters of a layout in the order of the axes: those of "NCHW" for 0 2 3 1 are "NHWC".
std::string letters_in(const std::string& letters, const KnownOrder& order) {
  std::string out;
  for (int axis : order) out += letters[static_cast<size_t>(axis)];
  return out;
}
/// The order that makes `from` into `to`.
std::optional<KnownOrder> order_between(const std::string& from, const std::string& to) {
  KnownOrder out;
  for (char c : to) {
    const size_t at = from.find(c);
    if (at == from.npos) return {};
    out.push_back(static_cast<int>(at));
  }
  return out.size() == from.size() ? std::optional(out) : std::nullopt;
}

std::string text_of(const Attrs& attrs, const std::string& name) { return string_attr(attrs, name).value_or(""); }
Axes axes_of(const Attrs& attrs, const char* name, int rank) {
  auto at = attrs.find(name);
  if (at != attrs.end() && at->second) {
    if (at->second.as<IntImm>()) return {AttrType<int64_t>::load(at->second)};
    return AttrType<Axes>::load(at->second);
  }
  Axes all;
  for (int i = 0; i < rank; ++i) all.push_back(i);
  return all;
}

/// An op's rule: the attributes are changed in place.
struct LayoutRequest {
  const RCall& call;
  const std::vector<AxisOrders>& have;
  const std::vector<std::string>* wished;  ///< layouts of this op, or null

  const KnownOrder& first() const { return *have[0][0]; }
  const TensorInfo* tensor(size_t i) const { return call.args[i]->sinfo.as<TensorInfo>(); }
};
using Rule = std::optional<OrderedCall> (*)(const LayoutRequest&);

/// The order that makes a layout of the call into one that is wished for. Errors: other letters.
KnownOrder wished_order(const LayoutRequest& r, const std::string& from, const std::string& to) {
  auto order = order_between(from, to);
  if (!order)
    fail({.what = text("ConvertLayout: ", from, " of ", op_name(ref(r.call)), " cannot become ", to),
          .needs = text("the letters of ", from, " in another order"),
          .hint = "correct the layout; layouts with blocks of channels are not built"});
  return *order;
}

OrderedCall kept(const LayoutRequest& r) {
  return {.inputs = {{r.first()}}, .outputs = {r.first()}, .attrs = r.call.attrs};
}

std::optional<OrderedCall> elementwise(const LayoutRequest& r) { return kept(r); }

/// The order of a tensor with more axes in front of those that `order` is for.
KnownOrder widened(const KnownOrder& order, int rank) {
  const int more = rank - static_cast<int>(order.size());
  KnownOrder out = *plain_order(more);
  for (int axis : order) out.push_back(axis + more);
  return out;
}

std::optional<OrderedCall> binary(const LayoutRequest& r) {
  const TensorInfo *x = r.tensor(0), *y = r.tensor(1);
  if (!x || !y || x->ndim < 0 || y->ndim < 0) return {};
  OrderedCall out{.inputs = {{r.have[0][0]}, {r.have[1][0]}}, .outputs = {}, .attrs = r.call.attrs};
  const bool x_shorter = x->ndim <= y->ndim;
  const size_t shorter = x_shorter ? 0 : 1, longer = 1 - shorter;
  if ((x_shorter ? x : y)->ndim > 0) out.inputs[longer] = {widened(*r.have[shorter][0], (x_shorter ? y : x)->ndim)};
  out.outputs = out.inputs[longer];
  return out;
}

std::optional<OrderedCall> multiply_add(const LayoutRequest& r) {
  AxisOrder order = r.have[1][0] == r.have[2][0] ? r.have[1][0] : r.have[0][0];
  return OrderedCall{.inputs = {{order}, {order}, {order}}, .outputs = {order}, .attrs = r.call.attrs};
}

template <int N>
std::optional<OrderedCall> convolution(const LayoutRequest& r) {
  Attrs attrs = r.call.attrs;
  const std::string data = text_of(attrs, "data_layout"), kernel = text_of(attrs, "kernel_layout");
  const std::string out = text_of(attrs, "out_layout").empty() ? data : text_of(attrs, "out_layout");
  if (data.size() != N + 2 || kernel.size() != N + 2 || out.size() != N + 2) return {};
  KnownOrder x, w, y;
  if (r.wished && r.wished->size() >= 2) {
    const std::string& last = r.wished->size() > 2 ? (*r.wished)[2] : (*r.wished)[0];
    x = wished_order(r, data, (*r.wished)[0]);
    w = wished_order(r, kernel, (*r.wished)[1]);
    y = wished_order(r, out, last);
  } else {
    x = *r.have[0][0], w = *r.have[1][0], y = x;
  }
  attrs["data_layout"] = string_imm(letters_in(data, x));
  attrs["kernel_layout"] = string_imm(letters_in(kernel, w));
  attrs["out_layout"] = string_imm(letters_in(out, y));
  return OrderedCall{.inputs = {{x}, {w}}, .outputs = {y}, .attrs = attrs};
}

/// Windows, and images of another size: a layout of letters.
template <bool kResize>
std::optional<OrderedCall> window(const LayoutRequest& r) {
  OrderedCall out = kept(r);
  const std::string data = text_of(out.attrs, "layout");
  if (kResize && r.wished && !r.wished->empty()) {
    const KnownOrder order = wished_order(r, data, r.wished->front());
    out.inputs = {{order}};
    out.outputs = {order};
  }
  const KnownOrder& order = *out.inputs[0][0];
  if (order.size() != data.size()) return {};
  out.attrs["layout"] = string_imm(letters_in(data, order));
  if (const std::string last = text_of(out.attrs, "out_layout"); !last.empty())
    out.attrs["out_layout"] = string_imm(letters_in(last, order));
  return out;
}

std::optional<OrderedCall> one_axis(const LayoutRequest& r) {
  OrderedCall out = kept(r);
  auto at = out.attrs.find("axis");
  const int64_t axis = at == out.attrs.end() || !at->second ? 0 : AttrType<int64_t>::load(at->second);
  out.attrs["axis"] = int_imm(position(r.first(), axis), i64);
  return out;
}

std::optional<OrderedCall> batch_norm(const LayoutRequest& r) {
  OrderedCall out = *one_axis(r);
  for (size_t i = 1; i < 5; ++i) out.inputs.push_back(plain_orders(r.call.args[i]->sinfo));
  for (size_t i = 3; i < 5; ++i) out.outputs.push_back(out.inputs[i][0]);
  return out;
}

std::optional<OrderedCall> norm(const LayoutRequest& r) {
  OrderedCall out = kept(r);
  Axes axes = axes_of(out.attrs, "axes", 0);
  for (int64_t& a : axes) a = position(r.first(), a);
  out.attrs["axes"] = AttrType<Axes>::store(axes);
  if (out.attrs.contains("channel_axis"))
    out.attrs["channel_axis"] =
        int_imm(position(r.first(), AttrType<int64_t>::load(out.attrs.at("channel_axis"))), i64);
  for (size_t i = 1; i < r.call.args.size(); ++i) out.inputs.push_back(plain_orders(r.call.args[i]->sinfo));
  return out;
}

/// Axes that go: where they lie, and the order of the others.
std::pair<Axes, KnownOrder> without_axes(const KnownOrder& order, const Axes& gone) {
  const auto rank = static_cast<int64_t>(order.size());
  std::set<int64_t> away;
  for (int64_t a : gone) away.insert((a % rank + rank) % rank);
  std::vector<int> renumbered(order.size(), -1);
  for (int i = 0, j = 0; i < static_cast<int>(rank); ++i)
    if (!away.contains(i)) renumbered[static_cast<size_t>(i)] = j++;
  Axes where;
  KnownOrder rest;
  for (size_t i = 0; i < order.size(); ++i) {
    if (away.contains(order[i]))
      where.push_back(static_cast<int64_t>(i));
    else
      rest.push_back(renumbered[static_cast<size_t>(order[i])]);
  }
  return {where, rest};
}

std::optional<OrderedCall> reduction(const LayoutRequest& r) {
  OrderedCall out = kept(r);
  auto [where, rest] = without_axes(r.first(), axes_of(out.attrs, "axis", static_cast<int>(r.first().size())));
  out.attrs["axis"] = AttrType<Axes>::store(where);
  auto keep = out.attrs.find("keepdims");
  if (keep == out.attrs.end() || !AttrType<bool>::load(keep->second)) out.outputs = {rest};
  return out;
}

std::optional<OrderedCall> squeeze(const LayoutRequest& r) {
  OrderedCall out = kept(r);
  auto at = out.attrs.find("axis");
  Axes gone;
  if (at != out.attrs.end() && at->second) {
    gone = AttrType<Axes>::load(at->second);
  } else {
    auto shape = shape_of(*r.tensor(0));
    if (!shape) return {};
    for (size_t i = 0; i < shape->size(); ++i)
      if (is_one((*shape)[i])) gone.push_back(static_cast<int64_t>(i));
  }
  auto [where, rest] = without_axes(r.first(), gone);
  out.attrs["axis"] = AttrType<Axes>::store(where);
  out.outputs = {rest};
  return out;
}

std::optional<OrderedCall> expand_dims(const LayoutRequest& r) {
  OrderedCall out = kept(r);
  const Axes added = axes_of(out.attrs, "axis", 0);
  const auto rank = static_cast<int64_t>(r.first().size() + added.size());
  std::set<int64_t> fresh;
  for (int64_t a : added) fresh.insert((a % rank + rank) % rank);
  KnownOrder old;  // the places of the axes that were there
  for (int64_t i = 0; i < rank; ++i)
    if (!fresh.contains(i)) old.push_back(static_cast<int>(i));
  KnownOrder order;
  size_t next = 0;
  for (int64_t i = 0; i < rank; ++i)
    order.push_back(fresh.contains(i) ? static_cast<int>(i) : old[static_cast<size_t>(r.first()[next++])]);
  out.outputs = {order};
  return out;
}

std::optional<OrderedCall> permute(const LayoutRequest& r) {
  OrderedCall out = kept(r);
  Axes axes = axes_of(out.attrs, "axes", 0);
  if (axes.empty())
    for (size_t i = r.first().size(); i-- > 0;) axes.push_back(static_cast<int64_t>(i));
  for (int64_t& a : axes) a = position(r.first(), a);
  out.attrs["axes"] = AttrType<Axes>::store(axes);
  out.outputs = {plain_order(static_cast<int>(axes.size()))};
  return out;
}

std::optional<OrderedCall> concat(const LayoutRequest& r) {
  const AxisOrder& order = r.have[0][0];
  if (!order) return {};
  OrderedCall out = *one_axis(r);
  out.inputs = {AxisOrders(r.have[0].size(), order)};
  return out;
}

std::optional<OrderedCall> split(const LayoutRequest& r) {
  OrderedCall out = *one_axis(r);
  const TupleInfo* parts = r.call.sinfo.as<TupleInfo>();
  if (!parts) return {};
  out.outputs = AxisOrders(parts->items.size(), r.have[0][0]);
  return out;
}

std::optional<OrderedCall> slice(const LayoutRequest& r) {
  OrderedCall out = kept(r);
  const Tuple* axes = r.call.args[1].as<Tuple>();
  if (!axes) return {};
  std::vector<RExpr> where;
  for (const RExpr& a : axes->items) {
    const PrimValue* p = a.as<PrimValue>();
    auto axis = p ? as_int(p->value) : std::nullopt;
    if (!axis) return {};
    where.push_back(prim_value(position(r.first(), *axis)));
  }
  out.args[1] = relax::tuple(std::move(where));
  return out;
}

const std::map<std::string, Rule>& rules() {
  static const std::map<std::string, Rule> table = [] {
    std::map<std::string, Rule> t = {{"nn.conv1d", convolution<1>},
                                     {"nn.conv2d", convolution<2>},
                                     {"nn.conv3d", convolution<3>},
                                     {"image.resize2d", window<true>},
                                     {"nn.softmax", one_axis},
                                     {"nn.log_softmax", one_axis},
                                     {"nn.batch_norm", batch_norm},
                                     {"nn.layer_norm", norm},
                                     {"nn.group_norm", norm},
                                     {"nn.rms_norm", norm},
                                     {"ewise_fma", multiply_add},
                                     {"squeeze", squeeze},
                                     {"expand_dims", expand_dims},
                                     {"permute_dims", permute},
                                     {"concat", concat},
                                     {"split", split},
                                     {"strided_slice", slice}};
    for (const char* op : {"nn.max_pool1d",
                           "nn.max_pool2d",
                           "nn.max_pool3d",
                           "nn.avg_pool1d",
                           "nn.avg_pool2d",
                           "nn.avg_pool3d",
                           "nn.adaptive_avg_pool1d",
                           "nn.adaptive_avg_pool2d",
                           "nn.adaptive_avg_pool3d"})
      t[op] = window<false>;
    for (const char* op : {"max", "mean", "min", "prod", "std", "sum", "variance"}) t[op] = reduction;
    for (const char* op :
         {"add",         "divide",        "floor_divide", "multiply",    "power",      "subtract",   "equal",
          "greater",     "greater_equal", "less",         "less_equal",  "not_equal",  "maximum",    "minimum",
          "logical_and", "logical_or",    "logical_xor",  "bitwise_and", "bitwise_or", "bitwise_xor"})
      t[op] = binary;
    for (const char* op :
         {"abs",     "acos",         "acosh",   "asin",         "asinh",    "atan",  "atanh",       "bitwise_not",
          "ceil",    "cos",          "cosh",    "exp",          "floor",    "log",   "logical_not", "negative",
          "round",   "rsqrt",        "sigmoid", "sign",         "sin",      "sinh",  "square",      "sqrt",
          "tan",     "tanh",         "erf",     "clip",         "isfinite", "isinf", "isnan",       "nn.relu",
          "nn.gelu", "nn.gelu_tanh", "nn.silu", "nn.leakyrelu", "astype"})
      t[op] = elementwise;
    return t;
  }();
  return table;
}

}  // namespace

std::optional<OrderedCall> ordered_call(const RCall& call, const std::vector<AxisOrders>& have,
                                        const WishedLayouts& wished) {
  const std::string& op = op_name(ref(call));
  auto rule = rules().find(op);
  if (rule == rules().end() || have.empty()) return {};
  // A tensor of unknown rank has no order that could change.
  for (size_t i = 0; i < call.args.size(); ++i) {
    const bool tensors = call.args[i]->sinfo.as<TensorInfo>() || (op == "concat" && i == 0);
    if (tensors && std::ranges::any_of(have[i], [](const AxisOrder& o) { return !o; })) return {};
  }
  auto mine = wished.find(op);
  return rule->second({call, have, mine == wished.end() ? nullptr : &mine->second});
}

}  // namespace sator::passes
