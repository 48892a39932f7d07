#include "codegen/signature.h"

#include <unordered_map>

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
    need(buffer->strides, "a stride");
  }
  return sources;
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
  for (const Source& s : value_sources(func)) out.values.push_back(s.var);
  return out;
}

runtime::KernelSignature kernel_signature(const tir::PrimFunc& func) {
  using runtime::KernelDim;
  runtime::KernelSignature out;
  std::unordered_map<const Var*, int32_t> index;
  for (const Source& s : value_sources(func)) {
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
