// R.DTensor, R.device_mesh and R.dist: tensors that lie on several devices.
#include <algorithm>

#include "relax/ops/table.h"
#include "relax/parse_impl.h"

namespace sator::relax {

using script::Expression;
using script::Place;
using tir::Arguments;
using tir::Values;

namespace {

std::vector<int> read_placement(const Arguments& a) {
  const std::string written = a.str("placement");
  auto placement = placement_from_text(written);
  if (!placement)
    a.fail({.what = text("the placement ", string_literal(written)),
            .needs = "R or S[axis] for each axis of the mesh, with commas between",
            .hint = "\"S[0], R\""});
  return *placement;
}

/// "mesh[0]" of the module, or R.device_mesh(...) itself.
Ref<const DeviceMesh> mesh_argument(GraphEvaluator& ev, const Arguments& a) {
  const tir::Value& given = a.need("device_mesh");
  if (const NodeRef* n = given.as<NodeRef>())
    if (auto mesh = cast<DeviceMesh>(*n)) return mesh;
  const std::string* name = given.as<std::string>();
  NodeRef found = name ? ev.global_info(*name) : nullptr;
  if (auto mesh = cast<DeviceMesh>(found)) return mesh;
  a.fail({.what = text(name ? string_literal(*name) : std::string(given.kind()), " is no mesh of devices"),
          .needs = "a mesh of the module, as \"mesh[0]\", or R.device_mesh(shape, devices)",
          .hint = "I.module_global_infos({\"mesh\": [R.device_mesh((2,), I.Range(0, 2))]})"});
}

/// The call with its first `positional` arguments and the keywords `kept`.
Expression part_of(const Expression& call, size_t positional, std::initializer_list<std::string_view> kept) {
  Expression out = call;
  out.items.resize(std::min(out.items.size(), positional + 1));
  std::erase_if(out.keywords, [&](const script::Keyword& k) { return std::ranges::find(kept, k.name) == kept.end(); });
  return out;
}

tir::Value fn_DTensor(GraphEvaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"shape", "dtype", "device_mesh", "placement", "ndim"});
  const tir::Value tensor = find_graph_function("Tensor")(ev, part_of(call, 2, {"shape", "dtype", "ndim"}));
  return ev.located(call.place, [&]() -> tir::Value {
    return NodeRef(dtensor_info(cast<TensorInfo>(*tensor.as<NodeRef>()), mesh_argument(ev, a), read_placement(a)));
  });
}

tir::Value fn_device_mesh(GraphEvaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"shape", "device_ids"});
  std::vector<int64_t> shape, ids;
  int64_t count = 1;
  auto number = [&](const Expr& e) {
    const auto value = as_int(e);
    if (!value || *value < 0 || *value > 1 << 20)
      a.fail({.what = text(e, " in a mesh of devices"), .needs = "numbers from 0 on", .hint = "write the number"});
    return *value;
  };
  for (const Expr& e : a.exprs("shape")) {
    shape.push_back(number(e));
    count *= std::min<int64_t>(shape.back(), 1 << 20);
    if (count > 1 << 20) break;
  }
  const NodeRef* n = a.need("device_ids").as<NodeRef>();
  if (const Range* range = n ? n->as<Range>() : nullptr) {
    const int64_t first = number(range->min), extent = number(range->extent);
    for (int64_t i = 0; i < extent; ++i) ids.push_back(first + i);
  } else {
    for (const Expr& e : a.exprs("device_ids")) ids.push_back(number(e));
  }
  if (count != static_cast<int64_t>(ids.size()))
    a.fail({.what = text(ids.size(), " devices for a mesh of ", count),
            .needs = "one device per point of the mesh",
            .hint = "I.Range(0, n) numbers n devices"});
  return NodeRef(make<DeviceMesh>(std::move(shape), std::move(ids)));
}

tir::Value fn_range(GraphEvaluator& ev, const Expression& call) { return tir::find_script_function("Range")(ev, call); }

/// R.dist.annotate_sharding(x, "mesh[0]", "S[0]"), R.dist.redistribute: the mesh and the placement are attributes.
tir::Value distribution(GraphEvaluator& ev, const Expression& call, const char* op) {
  Arguments a(ev, call, {"input", "device_mesh", "placement"});
  Attrs attrs{{"device_mesh", mesh_argument(ev, a)}, {"placement", string_imm(placement_text(read_placement(a)))}};
  RExpr made = relax::call(op_ref(op), {ev.to_graph(a.need("input"), a.place_of("input"))}, std::move(attrs));
  return NodeRef(spanned(made, ev.source.span(call.place)));
}
tir::Value fn_annotate_sharding(GraphEvaluator& ev, const Expression& call) {
  return distribution(ev, call, "dist.annotate_sharding");
}
tir::Value fn_redistribute(GraphEvaluator& ev, const Expression& call) {
  return distribution(ev, call, "dist.redistribute");
}

tir::Value fn_distributed_call_tir(GraphEvaluator& ev, const Expression& call) {
  return find_graph_function("call_tir")(ev, call);
}
/// As call_tir; the program sees the part of each device.
tir::Value fn_call_tir_local_view(GraphEvaluator& ev, const Expression& call) {
  const tir::Value whole = fn_distributed_call_tir(ev, call);
  const RCall& c = *whole.as<NodeRef>()->as<RCall>();
  RExpr made = relax::call(op_ref("dist.call_tir_local_view"), c.args, {}, c.sinfo_args);
  return NodeRef(spanned(made, ev.source.span(call.place)));
}

/// R.dist.const(value, R.DTensor(...)): the elements have the dtype of the struct info.
tir::Value fn_distributed_const(GraphEvaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"value", "struct_info"});
  const StructInfo info = ev.to_sinfo(a.need("struct_info"), a.place_of("struct_info"));
  const DTensorInfo* distributed = info.as<DTensorInfo>();
  if (!distributed || distributed->tensor->dtype.is_void())
    a.fail({.what = text("R.dist.const of ", info),
            .needs = "R.DTensor(...) with a dtype",
            .hint = "R.const makes tensors of one device"});
  Expression plain = part_of(call, 1, {"value"});
  script::Keyword dtype;
  dtype.name = "dtype";
  dtype.value.kind = script::ExpressionKind::string;
  dtype.value.place = call.place;
  dtype.value.text = distributed->tensor->dtype.name();
  plain.keywords.push_back(std::move(dtype));
  const tir::Value value = find_graph_function("const")(ev, plain);
  return NodeRef(make<Constant>(value.as<NodeRef>()->as<Constant>()->data, info));
}

}  // namespace

const std::unordered_map<std::string_view, GraphFunction>& distributed_functions() {
  static const std::unordered_map<std::string_view, GraphFunction> table = {
      {"DTensor", fn_DTensor},
      {"device_mesh", fn_device_mesh},
      {"I.Range", fn_range},
      {"dist.annotate_sharding", fn_annotate_sharding},
      {"dist.redistribute", fn_redistribute},
      {"dist.call_tir", fn_distributed_call_tir},
      {"dist.call_tir_local_view", fn_call_tir_local_view},
      {"dist.const", fn_distributed_const},
  };
  return table;
}

}  // namespace sator::relax
