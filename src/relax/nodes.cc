#include "relax/nodes.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/file.h"
#include "base/float16.h"
#include "base/float8.h"
#include "tir/analysis.h"
#include "tir/nodes.h"

namespace sator::relax {

namespace {

bool is_nan(const runtime::Tensor& t, int64_t i) {
  DType d = t.dtype();
  if (!d.is_float()) return false;
  if (d.is_float8()) return std::isnan(f8_to_f32(t.data_as<uint8_t>()[i], d.code));
  if (d.bits == 16) return (t.data_as<uint16_t>()[i] & 0x7fff) > (d.is_bfloat() ? 0x7f80 : 0x7c00);
  return d == f32 ? std::isnan(t.data_as<float>()[i]) : std::isnan(t.data_as<double>()[i]);
}

/// The bytes of element i.
std::string_view bytes_at(const runtime::Tensor& t, int64_t i) {
  const auto size = static_cast<size_t>(t.dtype().bytes());
  return {t.data_as<char>() + static_cast<size_t>(i) * size, size};
}

/// Whether the elements have the same bits, or both are NaN: text has one NaN only.
bool same_elements(const runtime::Tensor& a, const runtime::Tensor& b) {
  if (std::memcmp(a.data(), b.data(), static_cast<size_t>(a.size_bytes())) == 0) return true;
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    if (bytes_at(a, i) != bytes_at(b, i) && !(is_nan(a, i) && is_nan(b, i))) return false;
  }
  return true;
}

}  // namespace

bool operator==(const TensorValue& a, const TensorValue& b) {
  if (a.tensor == b.tensor) return true;
  if (!a.tensor || !b.tensor) return false;
  return a->dtype() == b->dtype() && std::ranges::equal(a->shape(), b->shape()) && same_elements(*a, *b);
}

// ---- Struct info ----

StructInfo object_info() { return make<ObjectInfo>(); }
StructInfo prim_info(DType dtype) { return make<PrimInfo>(dtype, Expr()); }
StructInfo prim_info(Expr value) {
  DType dtype = value->dtype;
  return make<PrimInfo>(dtype, std::move(value));
}
StructInfo shape_info(int ndim) { return make<ShapeInfo>(std::nullopt, ndim); }
StructInfo shape_info(std::vector<Expr> values) {
  int ndim = static_cast<int>(values.size());
  return make<ShapeInfo>(std::move(values), ndim);
}
StructInfo tensor_info(DType dtype, int ndim, std::string vdevice) {
  return make<TensorInfo>(RExpr(), dtype, ndim, std::move(vdevice));
}
StructInfo tensor_info(std::vector<Expr> shape, DType dtype, std::string vdevice) {
  return tensor_info(shape_expr(std::move(shape)), dtype, std::move(vdevice));
}
StructInfo tensor_info(RExpr shape, DType dtype, std::string vdevice) {
  if (!shape) return tensor_info(dtype, -1, std::move(vdevice));
  const ShapeInfo* known = shape->sinfo.as<ShapeInfo>();
  if (!known)
    fail({.what = "the shape of a tensor is given by a value that is not a shape",
          .needs = "a ShapeExpr, or a variable with the struct info R.Shape",
          .hint = "declare the variable as R.Shape(ndim=...)"});
  int ndim = known->ndim;
  return make<TensorInfo>(std::move(shape), dtype, int{ndim}, std::move(vdevice));
}
StructInfo tuple_info(std::vector<StructInfo> items) { return make<TupleInfo>(std::move(items)); }
std::string placement_text(const std::vector<int>& placement) {
  std::string out;
  for (int axis : placement) {
    if (!out.empty()) out += ", ";
    out += axis < 0 ? std::string("R") : text("S[", axis, "]");
  }
  return out;
}
std::optional<std::vector<int>> placement_from_text(std::string_view written) {
  std::vector<int> out;
  for (size_t i = 0; i < written.size(); ++i) {
    if (written[i] == ' ' || written[i] == ',') continue;
    if (written[i] == 'R') {
      out.push_back(-1);
      continue;
    }
    const size_t end = written.find(']', i);
    if (!written.substr(i).starts_with("S[") || end == written.npos) return {};
    const std::string digits(written.substr(i + 2, end - i - 2));
    if (digits.empty() || digits.size() > 4 || digits.find_first_not_of("0123456789") != digits.npos) return {};
    out.push_back(std::stoi(digits));
    i = end;
  }
  return out;
}
StructInfo dtensor_info(Ref<const TensorInfo> tensor, Ref<const DeviceMesh> mesh, std::vector<int> placement) {
  if (mesh->shape.size() != placement.size())
    fail({.what = text("a placement of ", placement.size(), " entries on a mesh of ", mesh->shape.size(), " axes"),
          .needs = "one entry per axis of the mesh",
          .hint = "write R for an axis along which each device has a copy: \"S[0], R\""});
  for (int axis : placement) {
    if (axis >= tensor->ndim)
      fail({.what = text("axis ", axis, " of a tensor of rank ", tensor->ndim, " is cut"),
            .needs = "an axis of the tensor in S[axis]",
            .hint = "count the axes from 0"});
  }
  return make<DTensorInfo>(std::move(tensor), std::move(mesh), std::move(placement));
}
StructInfo func_info(std::vector<StructInfo> params, StructInfo ret, bool pure) {
  return make<FuncInfo>(std::move(params), std::move(ret), bool{pure});
}
StructInfo opaque_func_info(StructInfo ret, bool pure) {
  return make<FuncInfo>(std::nullopt, std::move(ret), bool{pure});
}
StructInfo info_of(const FuncNode& func) {
  if (const Function* f = func.as<Function>()) {
    std::vector<StructInfo> params;
    for (const RVarRef& p : f->params) params.push_back(p->sinfo);
    return func_info(std::move(params), f->ret ? f->ret : object_info(), f->is_pure);
  }
  if (const tir::PrimFunc* f = func.as<tir::PrimFunc>()) {
    bool returns = !f->ret_dtype.is_void() && !f->ret_dtype.is_handle();
    // A function that does nothing but compute a scalar has no effect.
    const bool is_pure = returns && !tir::not_pure(*f);
    return opaque_func_info(returns ? prim_info(f->ret_dtype) : tuple_info({}), is_pure);
  }
  return opaque_func_info(object_info(), false);
}

// ---- Expressions ----

RVarRef make_rvar(std::string name, StructInfo sinfo) {
  return make<RVar>(std::move(name), false, std::move(sinfo), std::string());
}
RVarRef make_dataflow_var(std::string name, StructInfo sinfo) {
  return make<RVar>(std::move(name), true, std::move(sinfo), std::string());
}
RExpr constant(Ref<runtime::Tensor> data) {
  std::vector<Expr> shape;
  for (int64_t extent : data->shape()) shape.push_back(int_imm(extent, i64));
  StructInfo sinfo = tensor_info(std::move(shape), data->dtype());
  return make<Constant>(TensorValue(std::move(data)), std::move(sinfo));
}
RExpr scalar_constant(double value, DType dtype) {
  Ref<runtime::Tensor> t = runtime::Tensor::empty({}, dtype);
  if (dtype == f64)
    *t->data_as<double>() = value;
  else if (dtype == f32)
    *t->data_as<float>() = static_cast<float>(value);
  else if (dtype == f16)
    *t->data_as<uint16_t>() = f32_to_f16(static_cast<float>(value));
  else if (dtype.is_float8())
    *t->data_as<uint8_t>() = f32_to_f8(static_cast<float>(value), dtype.code);
  else if (dtype == bf16)
    *t->data_as<uint16_t>() = f32_to_bf16(static_cast<float>(value));
  else {
    int64_t v = dtype.is_bool() ? value != 0 : static_cast<int64_t>(value);
    std::memcpy(t->data(), &v, static_cast<size_t>(dtype.bytes()));  // little-endian: the low bytes
  }
  return constant(std::move(t));
}
RExpr tuple(std::vector<RExpr> items) {
  std::vector<StructInfo> infos;
  for (const RExpr& item : items) infos.push_back(item->sinfo);
  bool known = std::ranges::all_of(infos, [](const StructInfo& s) { return static_cast<bool>(s); });
  StructInfo sinfo = known ? tuple_info(std::move(infos)) : nullptr;
  return make<Tuple>(std::move(items), std::move(sinfo));
}
RExpr tuple_get(RExpr tuple, int index) {
  StructInfo sinfo;
  if (const TupleInfo* info = tuple->sinfo.as<TupleInfo>()) {
    if (index < 0 || index >= static_cast<int>(info->items.size()))
      fail({.what = text("item ", index, " of a tuple of ", info->items.size()),
            .needs = "0 <= index < the number of items",
            .hint = "check the index"});
    sinfo = info->items[static_cast<size_t>(index)];
  }
  return make<TupleGetItem>(std::move(tuple), int{index}, std::move(sinfo));
}
RExpr shape_expr(std::vector<Expr> values) {
  for (Expr& v : values) {
    if (v.as<IntImm>()) v = cast_to(i64, v);
    if (v->dtype != i64)
      fail({.what = text("an extent of a shape has dtype ", v->dtype),
            .needs = "int64",
            .hint = "declare the symbolic size as T.int64()"});
  }
  StructInfo sinfo = shape_info(values);
  return make<ShapeExpr>(std::move(values), std::move(sinfo));
}
RExpr prim_value(Expr value) {
  StructInfo sinfo = prim_info(value);
  return make<PrimValue>(std::move(value), std::move(sinfo));
}
RExpr string_value(std::string value) { return make<RString>(std::move(value), object_info()); }
RExpr dtype_value(DType value) { return make<DTypeImm>(value, object_info()); }
RExpr op_ref(std::string name) { return make<Op>(std::move(name), StructInfo()); }
RExpr global_var(std::string name, StructInfo sinfo) { return make<GlobalVar>(std::move(name), std::move(sinfo)); }
RExpr extern_func(std::string name) {
  return make<ExternFunc>(std::move(name), opaque_func_info(object_info(), false));
}
RExpr call(RExpr op, std::vector<RExpr> args, Attrs attrs, std::vector<StructInfo> sinfo_args) {
  return make<RCall>(std::move(op), std::move(args), std::move(attrs), std::move(sinfo_args), StructInfo());
}

Binding bind_value(RVarRef var, RExpr value) { return make<VarBinding>(std::move(value), std::move(var)); }
Binding bind_match_cast(RVarRef var, RExpr value, StructInfo sinfo) {
  return make<MatchCast>(std::move(value), std::move(sinfo), std::move(var));
}

RExpr with_sinfo(const RExpr& e, StructInfo sinfo) {
  auto set = [&]<class T>(const T& node) -> RExpr { return with(node, &T::sinfo, sinfo); };
  return match(
      e,
      [&](const RVar& n) { return set(n); },
      [&](const GlobalVar& n) { return set(n); },
      [&](const Constant& n) { return set(n); },
      [&](const Tuple& n) { return set(n); },
      [&](const TupleGetItem& n) { return set(n); },
      [&](const ShapeExpr& n) { return set(n); },
      [&](const PrimValue& n) { return set(n); },
      [&](const RString& n) { return set(n); },
      [&](const DTypeImm& n) { return set(n); },
      [&](const Op& n) { return set(n); },
      [&](const ExternFunc& n) { return set(n); },
      [&](const RCall& n) { return set(n); },
      [&](const SeqExpr& n) { return set(n); },
      [&](const If& n) { return set(n); },
      [&](const LocalFunction& n) { return set(n); });
}

std::optional<std::vector<Expr>> shape_values(const RExpr& shape) {
  if (const ShapeExpr* s = shape.as<ShapeExpr>()) return s->values;
  if (!shape) return {};
  const ShapeInfo* info = shape->sinfo.as<ShapeInfo>();
  return info ? info->values : std::nullopt;
}
std::optional<std::vector<Expr>> shape_of(const TensorInfo& info) { return shape_values(info.shape); }

std::optional<std::vector<Expr>> explicit_shape(const TensorInfo& info) {
  const ShapeExpr* s = info.shape.as<ShapeExpr>();
  return s ? std::optional(s->values) : std::nullopt;
}

const std::string& op_name(const RExpr& e) {
  static const std::string none;
  const RCall* call = e.as<RCall>();
  const Op* op = call ? call->op.as<Op>() : nullptr;
  return op ? op->name : none;
}

}  // namespace sator::relax

size_t std::hash<sator::relax::TensorValue>::operator()(const sator::relax::TensorValue& v) const {
  if (!v.tensor) return 0;
  using namespace sator;
  std::string_view bytes(static_cast<const char*>(v->data()), static_cast<size_t>(v->size_bytes()));
  const int64_t count = v->num_elements();
  int64_t first_nan = 0;
  while (first_nan < count && !relax::is_nan(*v.tensor, first_nan)) ++first_nan;
  // Tensors that differ in the bits of a NaN are equal: what stands before it tells enough.
  bytes = bytes.substr(0, static_cast<size_t>(first_nan * v->dtype().bytes()));
  return std::hash<std::string_view>()(bytes) ^ static_cast<size_t>(count);
}

namespace sator {

template <>
constexpr NodeInfo detail::node_info<relax::VarBinding, relax::BindingNode>() {
  NodeInfo info = node_info<relax::VarBinding, NodeBase>();
  info.family = &kFamily<relax::BindingNode>;
  info.equal = [](const NodeBase& x, const NodeBase& y, Equality& eq) {
    const auto &a = static_cast<const relax::VarBinding&>(x), &b = static_cast<const relax::VarBinding&>(y);
    if (a.value.as<relax::LocalFunction>()) return eq.define(a.var, b.var) && eq.nodes(a.value, b.value);
    return eq.nodes(a.value, b.value) && eq.define(a.var, b.var);
  };
  return info;
}

template class Node<relax::ObjectInfo, relax::StructInfoNode>;
template class Node<relax::PrimInfo, relax::StructInfoNode>;
template class Node<relax::ShapeInfo, relax::StructInfoNode>;
template class Node<relax::TensorInfo, relax::StructInfoNode>;
template class Node<relax::DeviceMesh>;
template class Node<relax::DTensorInfo, relax::StructInfoNode>;
template class Node<relax::TupleInfo, relax::StructInfoNode>;
template class Node<relax::FuncInfo, relax::StructInfoNode>;
template class Node<relax::RVar, relax::RelaxExprNode>;
template class Node<relax::GlobalVar, relax::RelaxExprNode>;
template class Node<relax::Constant, relax::RelaxExprNode>;
template class Node<relax::Tuple, relax::RelaxExprNode>;
template class Node<relax::TupleGetItem, relax::RelaxExprNode>;
template class Node<relax::ShapeExpr, relax::RelaxExprNode>;
template class Node<relax::PrimValue, relax::RelaxExprNode>;
template class Node<relax::RString, relax::RelaxExprNode>;
template class Node<relax::DTypeImm, relax::RelaxExprNode>;
template class Node<relax::Op, relax::RelaxExprNode>;
template class Node<relax::ExternFunc, relax::RelaxExprNode>;
template class Node<relax::RCall, relax::RelaxExprNode>;
template class Node<relax::VarBinding, relax::BindingNode>;
template class Node<relax::MatchCast, relax::BindingNode>;
template class Node<relax::BindingBlock>;
template class Node<relax::SeqExpr, relax::RelaxExprNode>;
template class Node<relax::If, relax::RelaxExprNode>;
template class Node<relax::Function, FuncNode>;
template class Node<relax::LocalFunction, relax::RelaxExprNode>;
template class Node<relax::ExternDecl, FuncNode>;

}  // namespace sator
