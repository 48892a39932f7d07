// Statements of programs before their buffers are flat, as older TVM writes them: T.realize and the attribute
// "buffer_bind_scope". Both are read as what they mean, in statements that all passes know.
#include <algorithm>

#include "tir/parse_impl.h"

namespace sator::tir {

using script::Expression;

namespace {

/// Row-major strides of the extents.
std::vector<Expr> compact_strides(const std::vector<Expr>& extents) {
  std::vector<Expr> out(extents.size());
  Expr step = int_imm(1, extents.empty() ? i32 : extents.back()->dtype);
  for (size_t d = extents.size(); d-- > 0;) {
    out[d] = step;
    step = step * extents[d];
  }
  return out;
}
Expr dot(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  Expr sum;
  for (size_t i = 0; i < a.size(); ++i) sum = sum ? sum + a[i] * b[i] : a[i] * b[i];
  return sum ? sum : int_imm(0);
}
/// The same values; an offset of 0 is none.
BufferRef placed(const Buffer& b, VarRef data, std::vector<Expr> strides, Expr offset) {
  if (offset && is_zero(offset)) offset = nullptr;
  return make<Buffer>(std::move(data),
                      DType(b.dtype),
                      b.shape,
                      std::move(strides),
                      std::move(offset),
                      b.name,
                      int{b.data_alignment},
                      int{b.offset_factor},
                      b.axis_separators);
}

}  // namespace

/// Memory for that part of A, which is there until the end of the scope: an allocation and a buffer over it. A parameter
/// has its memory already.
Value fn_realize(FunctionParser& p, const Expression& call) {
  Arguments a(p, call, {"buffer_slice", "storage_scope", "condition"});
  const Subscript* part = a.need("buffer_slice").as<Subscript>();
  if (!part)
    a.fail({.what = text("T.realize of ", a.need("buffer_slice").kind()),
            .needs = "a part of a buffer",
            .hint = "T.realize(A[0:16], \"global\")"});
  const BufferRegionRef region = p.to_region(*part, call.place);
  const BufferRef buffer = region->buffer;
  if (p.is_visible(buffer)) return wrapper([](Stmt body) { return body; });
  const Expr condition =
      a.find("condition") ? p.to_expr_like(a.need("condition"), boolean, call.place) : bool_imm(true);
  std::string scope = a.str("storage_scope", "");
  if (scope.empty()) scope = buffer->scope();
  std::vector<Expr> first, extents;
  for (const RangeRef& r : region->region) {
    first.push_back(r->min);
    extents.push_back(r->extent);
  }
  const bool is_whole =
      std::ranges::equal(extents, buffer->shape, [](const Expr& x, const Expr& y) { return x == y || equal(x, y); }) &&
      std::ranges::all_of(first, is_zero);
  if (!buffer->strides.empty() || buffer->elem_offset)
    a.fail({.what = text("T.realize of ", buffer->name, ", which has strides or an offset of its own"),
            .needs = "a buffer whose layout the allocation decides",
            .hint = "declare it by shape and dtype alone"});
  auto out = wrapper([=](Stmt body) -> Stmt {
    const VarRef data = make_pointer(buffer->data->name, buffer->dtype, scope);
    std::vector<Expr> strides;
    Expr offset;
    if (!is_whole) {
      strides = compact_strides(extents);
      offset = int_imm(0, first.empty() ? i32 : first[0]->dtype) - dot(first, strides);
    }
    const BufferRef made = placed(*buffer, data, strides, offset);
    body = replaced(body, {{buffer, made}, {buffer->data, data}});
    return make<Allocate>(
        data, DType(buffer->dtype), extents, condition, Attrs{}, make<DeclBuffer>(made, std::move(body)));
  });
  out->declares = buffer;
  return out;
}

/// T.attr([B, A], "buffer_bind_scope", T.tvm_tuple(begin, extent, ...)): B is another name for that part of A.
Value bind_buffer(const Arguments& a, const Values& pair) {
  const BufferRef* part = pair.items.size() == 2 ? pair.items[0].as<BufferRef>() : nullptr;
  const BufferRef* whole = pair.items.size() == 2 ? pair.items[1].as<BufferRef>() : nullptr;
  const Expr value = a.expr("value");
  const Call* ranges = value.as<Call>();
  if (!part || !whole || !ranges || ranges->op != "tir.tvm_tuple" ||
      ranges->args.size() != 2 * (*whole)->shape.size() || (*part)->shape.size() > (*whole)->shape.size())
    a.fail({.what = "a binding of one buffer to another that does not say which part",
            .needs = "[B, A] and T.tvm_tuple(begin, extent, ...) with one pair per dimension of A",
            .hint = "T.match_buffer(A[0:16], (16,)) in a block says the same"});
  const BufferRef inner = *part, outer = *whole;
  std::vector<Expr> first;
  for (size_t i = 0; i < ranges->args.size(); i += 2) first.push_back(ranges->args[i]);
  const std::vector<Expr> all = outer->strides.empty() ? compact_strides(outer->shape) : outer->strides;
  Expr offset = dot(first, all);
  if (outer->elem_offset) offset = outer->elem_offset + offset;
  const std::vector<Expr> strides(all.end() - static_cast<std::ptrdiff_t>(inner->shape.size()), all.end());
  // What B leaves open by variables is bound to what it is.
  std::vector<std::pair<VarRef, Expr>> bound;
  auto bind = [&](const Expr& open, const Expr& is) {
    if (const Var* v = open ? open.as<Var>() : nullptr) bound.emplace_back(ref(*v), cast_to(v->dtype, is));
  };
  bind(inner->elem_offset, offset);
  for (size_t i = 0; i < inner->strides.size(); ++i) bind(inner->strides[i], strides[i]);
  auto out = wrapper([=](Stmt body) -> Stmt {
    const BufferRef made = placed(*inner, outer->data, strides, offset);
    body = make<DeclBuffer>(made, replaced(body, {{inner, made}, {inner->data, outer->data}}));
    for (const auto& [var, is] : bound) body = make<LetStmt>(is, var, std::move(body));
    return body;
  });
  out->declares = inner;
  return out;
}

}  // namespace sator::tir
