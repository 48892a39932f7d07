#include "codegen/signature.h"

#include <unordered_map>

#include "arith/analyzer.h"
#include "base/error.h"

namespace sator::codegen {

namespace {

/// Where each value of a kernel comes from: parameter, and dimension of it (-1: the scalar parameter itself).
struct Source {
  VarRef var;
  int32_t param, dim;
};

std::vector<Source> value_sources(const tir::PrimFunc& func) {
  std::vector<Source> sources;
  std::unordered_map<const Var*, size_t> known;
  auto add = [&](const VarRef& v, size_t param, int32_t dim) {
    if (known.emplace(v.get(), sources.size()).second) sources.push_back({v, static_cast<int32_t>(param), dim});
  };
  for (size_t i = 0; i < func.params.size(); ++i)
    if (!func.params[i]->dtype.is_handle()) add(func.params[i], i, -1);
  for (size_t i = 0; i < func.params.size(); ++i) {
    BufferRef buffer = func.buffer_of(func.params[i]);
    if (!buffer) continue;
    for (size_t d = 0; d < buffer->shape.size(); ++d)
      if (const Var* v = buffer->shape[d].as<Var>()) add(ref(*v), i, static_cast<int32_t>(d));
  }
  for (size_t i = 0; i < func.params.size(); ++i) {
    BufferRef buffer = func.buffer_of(func.params[i]);
    if (!buffer) continue;
    auto need = [&](const std::vector<Expr>& exprs, const char* what) {
      for (const Expr& x : exprs)
        for (const VarRef& v : vars_in(x))
          if (!known.count(v.get()))
            fail({.what = text(what, " of buffer ", buffer->name, " uses ", v->name, ", which no argument gives"),
                  .needs = "each symbolic size is a scalar parameter, or an extent of a buffer by itself",
                  .hint = text("add ", v->name, " to the parameters")});
    };
    need(buffer->shape, "the shape");
    for (const Expr& stride : buffer->strides)
      if (!stride.as<Var>()) need({stride}, "a stride");
  }
  return sources;
}

/// The strides of parameters that are variables, with the values that they have: those of a dense array.
std::vector<std::pair<VarRef, Expr>> dense_strides(const tir::PrimFunc& func, const std::vector<Source>& sources) {
  std::vector<std::pair<VarRef, Expr>> out;
  VarMap known;
  for (const Source& s : sources) known.emplace(s.var, s.var);
  arith::Analyzer analyzer;
  for (const VarRef& param : func.params) {
    const BufferRef buffer = func.buffer_of(param);
    if (!buffer) continue;
    if (buffer->elem_offset && !buffer->elem_offset.as<Var>() && !is_zero(buffer->elem_offset))
      fail({.what = text("buffer ", buffer->name, " begins at element ", buffer->elem_offset, " of its argument"),
            .needs = "elem_offset 0, or a variable: a function is given the address of the first element",
            .hint = "declare the whole array, and add the offset to the indices"});
    Expr step = int_imm(1, i64);
    for (size_t d = buffer->strides.size(); d-- > 0; step = step * cast_to(i64, buffer->shape[d])) {
      const Expr& stride = buffer->strides[d];
      const VarRef v = cast<Var>(stride);
      if (v && !known.contains(v)) {
        known.emplace(v, cast_to(v->dtype, step));
        out.emplace_back(v, known.at(v));
      } else if (!is_one(buffer->shape[d]) &&
                 !analyzer.prove_equal(cast_to(i64, substitute(stride, known)), analyzer.simplify(step))) {
        const Expr dense = analyzer.simplify(step);
        fail({.what = text("buffer ",
                           buffer->name,
                           " has stride ",
                           stride,
                           " in dimension ",
                           d,
                           ", a dense array ",
                           as_int(dense) ? text(*as_int(dense)) : text(dense)),
              .needs = "dense, row-major arguments",
              .hint = "declare the whole array, and take its part by indices"});
      }
    }
  }
  return out;
}

}  // namespace

KernelArguments kernel_arguments(const tir::PrimFunc& func) {
  KernelArguments out;
  for (const VarRef& param : func.params) {
    if (!param->dtype.is_handle()) continue;
    BufferRef buffer = func.buffer_of(param);
    out.buffers.push_back(buffer ? buffer->data : param);
    if (const Var* offset = buffer && buffer->elem_offset ? buffer->elem_offset.as<Var>() : nullptr)
      out.offsets.push_back(ref(*offset));
  }
  const std::vector<Source> sources = value_sources(func);
  for (const Source& s : sources) out.values.push_back(s.var);
  out.strides = dense_strides(func, sources);
  return out;
}

runtime::KernelSignature kernel_signature(const tir::PrimFunc& func) {
  using runtime::KernelDim;
  runtime::KernelSignature out;
  std::unordered_map<const Var*, int32_t> index;
  const std::vector<Source> sources = value_sources(func);
  dense_strides(func, sources);  // which fails where an argument cannot have them
  for (const Source& s : sources) {
    index.emplace(s.var.get(), static_cast<int32_t>(out.values.size()));
    out.values.push_back({.name = s.var->name, .param = s.param, .dim = s.dim});
  }
  for (const VarRef& param : func.params) {
    runtime::KernelParam p{.name = param->name, .dtype = param->dtype};
    if (!param->dtype.is_handle()) {
      p.is_tensor = false;
      p.value = index.at(param.get());
    } else if (BufferRef buffer = func.buffer_of(param)) {
      p.name = buffer->name;
      p.dtype = buffer->dtype;
      for (const Expr& x : buffer->shape) {
        const Var* v = x.as<Var>();
        p.dims.push_back(v           ? KernelDim::symbolic(index.at(v))
                         : as_int(x) ? KernelDim::constant(*as_int(x))
                                     : KernelDim::any());
      }
    } else {
      fail({.what = text("parameter ", param->name, " is a pointer without a buffer"),
            .needs = "tensors and scalars as parameters of a kernel",
            .hint = "declare it with T.match_buffer"});
    }
    out.params.push_back(std::move(p));
  }
  return out;
}

}  // namespace sator::codegen
