// B[i] = A[i] of bfloat16   =>   B[i] = A[i] of uint16; elsewhere the value of an element is T.reinterpret("bfloat16", A[i])
#include "ir/builtins.h"
#include "passes/lower/lower.h"

namespace sator::passes {

using namespace tir;

namespace {

/// The bits of e as `to`; what only went through another dtype is taken back.
Expr seen_as(DType to, const Expr& e) {
  const Call* inner = e.as<Call>();
  if (inner && inner->op == "tir.reinterpret" && inner->args[0]->dtype == to) return inner->args[0];
  return call(to, "tir.reinterpret", {e});
}

PrimFuncRef stored_as_bits(const PrimFuncRef& func, bool (*is_stored)(DType)) {
  auto bits = [](DType d) { return DType::UInt(d.bits).with_lanes(d.all_lanes()); };
  std::unordered_map<const Buffer*, DType> was;  // of the new buffers, what their elements are
  PrimFuncRef out = transform(
      func,
      [&](const Var& v) -> Expr { return is_stored(v.pointee) ? with(v, &Var::pointee, bits(v.pointee)) : ref(v); },
      [&](const Buffer& b) -> BufferRef {
        if (!is_stored(b.dtype)) return ref(b);
        BufferRef made = with(b, &Buffer::dtype, bits(b.dtype));
        was.emplace(made.get(), b.dtype.element());
        return made;
      },
      [&](const Allocate& n) -> Stmt { return is_stored(n.dtype) ? with(n, &Allocate::dtype, bits(n.dtype)) : ref(n); },
      [&](const AllocateConst& n) -> Stmt {
        return is_stored(n.dtype) ? with(n, &AllocateConst::dtype, bits(n.dtype)) : ref(n);
      },
      [&](const BufferLoad& n) -> Expr {
        auto at = was.find(n.buffer.get());
        if (at == was.end()) return ref(n);
        const Expr load = make<BufferLoad>(n.buffer, n.indices);
        return call(at->second.with_lanes(load->dtype.all_lanes()), "tir.reinterpret", {load});
      },
      [&](const BufferStore& n) -> Stmt {
        if (!was.contains(n.buffer.get()) || !is_stored(n.value->dtype)) return ref(n);
        return with(n, &BufferStore::value, seen_as(bits(n.value->dtype), n.value));
      },
      [&](const Call& n) -> Expr { return n.op == "tir.reinterpret" ? seen_as(n.dtype, n.args[0]) : Expr(&n); });
  return out;
}

}  // namespace

PrimFuncRef bf16_storage_legalize(const PrimFuncRef& func, const LowerOptions&) {
  return stored_as_bits(func, [](DType d) { return d.is_bfloat(); });
}
PrimFuncRef fp8_storage_legalize(const PrimFuncRef& func, const LowerOptions&) {
  return stored_as_bits(func, [](DType d) { return d.is_float8(); });
}

}  // namespace sator::passes
