// What a tensor that a program is given turns out to be while it runs: A.dtype.bits, A.ndim, A.shape[i], A.strides[i], A.elem_offset.
#include "relax/ops/families.h"
#include "relax/ops/infer.h"

namespace sator::relax {

namespace {

/// A number of a dtype; its value where the tensor's struct info tells it.
template <DType (*kDtype)(), std::optional<Expr> (*kKnown)(const TensorInfo&)>
StructInfo infer_property(const CallInfo& in) {
  const std::optional<Expr> known = kKnown(in.tensor(0));
  return known ? prim_info(cast_to(kDtype(), *known)) : prim_info(kDtype());
}

DType u8_dtype() { return DType::UInt(8); }
DType u16_dtype() { return DType::UInt(16); }
DType i32_dtype() { return i32; }
DType u64_dtype() { return DType::UInt(64); }

std::optional<Expr> unknown(const TensorInfo&) { return {}; }
std::optional<Expr> known_bits(const TensorInfo& t) {
  return t.dtype.is_void() ? std::nullopt : std::optional<Expr>(int_imm(t.dtype.bits, i64));
}
std::optional<Expr> known_lanes(const TensorInfo& t) {
  return t.dtype.is_void() ? std::nullopt : std::optional<Expr>(int_imm(t.dtype.lanes, i64));
}
std::optional<Expr> known_rank(const TensorInfo& t) {
  return t.ndim < 0 ? std::nullopt : std::optional<Expr>(int_imm(t.ndim, i32));
}

StructInfo infer_along_axis(const CallInfo& in) {
  const TensorInfo& t = in.tensor(0);
  const auto* axis = in.info(1).as<PrimInfo>();
  if (!axis || !axis->dtype.is_int())
    in.fail({.what = "the axis is no integer", .needs = "an integer", .hint = "give the number of the axis"});
  const std::optional<int64_t> i = axis->value ? as_int(axis->value) : std::nullopt;
  if (i && (*i < 0 || (t.ndim >= 0 && *i >= t.ndim)))
    in.fail({.what = text("the axis ", *i, " of a tensor of rank ", t.ndim),
             .needs = "0 <= axis < rank",
             .hint = "count axes from 0"});
  return prim_info(i64);
}
StructInfo infer_extent(const CallInfo& in) {
  const StructInfo any = infer_along_axis(in);
  const auto shape = shape_of(in.tensor(0));
  const auto* axis = in.info(1).as<PrimInfo>();
  const std::optional<int64_t> i = axis->value ? as_int(axis->value) : std::nullopt;
  return shape && i ? prim_info((*shape)[static_cast<size_t>(*i)]) : any;
}

}  // namespace

std::vector<OpDef> inspect_ops() {
  const std::vector<InputDef> tensor = {{"tensor"}}, along = {{"tensor"}, {"axis", InputKind::scalar}};
  return {
      {.name = "inspect.tensor_dtype_code", .inputs = tensor, .infer = infer_property<u8_dtype, unknown>},
      {.name = "inspect.tensor_dtype_bits", .inputs = tensor, .infer = infer_property<u8_dtype, known_bits>},
      {.name = "inspect.tensor_dtype_lanes", .inputs = tensor, .infer = infer_property<u16_dtype, known_lanes>},
      {.name = "inspect.tensor_ndim", .inputs = tensor, .infer = infer_property<i32_dtype, known_rank>},
      {.name = "inspect.tensor_shape_i", .inputs = along, .infer = infer_extent},
      {.name = "inspect.tensor_stride_i", .inputs = along, .infer = infer_along_axis},
      {.name = "inspect.tensor_byte_offset", .inputs = tensor, .infer = infer_property<u64_dtype, unknown>},
      {.name = "inspect.tensor_elem_offset", .inputs = tensor, .infer = infer_property<u64_dtype, unknown>},
  };
}

}  // namespace sator::relax
