// The check in front of each kernel: it is what lets generated code trust its pointers and sizes.
#include <bit>

#include "runtime/scalars.h"
#include "runtime/vm.h"

namespace sator::runtime {

namespace {

// "float32[n, 768], with n = 5": what the signature asks for, with the sizes known so far.
std::string expected_text(const FunctionInfo& f, const KernelParam& p, const std::vector<int64_t>& values,
                          bool sizes_known) {
  if (!p.is_tensor) return text(with_article(p.dtype), " scalar");
  std::vector<std::string> dims, known;
  for (const KernelDim& d : p.dims) {
    if (d.kind == KernelDim::Kind::constant) dims.push_back(text(d.value));
    if (d.kind == KernelDim::Kind::any) dims.push_back("?");
    if (d.kind != KernelDim::Kind::value) continue;
    const KernelValue& v = f.kernel.values[static_cast<size_t>(d.value)];
    dims.push_back(v.name);
    if (sizes_known)
      known.push_back(text(v.name,
                           " = ",
                           values[static_cast<size_t>(d.value)],
                           " from ",
                           string_literal(f.kernel.params[static_cast<size_t>(v.param)].name)));
  }
  std::string shape = text(with_article(p.dtype), '[', join(dims, ", "), "] tensor");
  return known.empty() ? shape : text(shape, ", where ", join(known, ", "));
}

[[noreturn]] void fail_argument(const FunctionInfo& f, size_t i, const Value& got, const std::vector<int64_t>& values,
                                bool sizes_known) {
  const KernelParam& p = f.kernel.params[i];
  fail({.what = text("argument ", i, " (", string_literal(p.name), ") of kernel ", f.name, " is ", got.describe()),
        .needs = text(expected_text(f, p, values, sizes_known), ", as in ", describe_signature(f))});
}

// A scalar as the integer that the kernel receives; nothing if the value does not fit the dtype.
std::optional<int64_t> scalar_bits(const Value& value, DType dtype) {
  const int64_t* integer = value.as_int();
  if (dtype.is_float()) {
    if (const double* v = value.as_float()) return std::bit_cast<int64_t>(*v);
    if (integer) return std::bit_cast<int64_t>(static_cast<double>(*integer));
    return {};
  }
  return integer && holds(dtype, *integer) ? std::optional(*integer) : std::nullopt;
}

}  // namespace

void VirtualMachine::gather_arguments(const FunctionInfo& f, std::span<const Value* const> args) {
  const KernelSignature& s = f.kernel;
  if (args.size() != s.params.size())
    fail({.what = text("kernel ", f.name, " is called with ", args.size(), " arguments"),
          .needs = text(s.params.size(), " arguments: ", describe_signature(f))});
  size_t num_buffers = 0;
  for (size_t i = 0; i < s.params.size(); ++i) {
    const KernelParam& p = s.params[i];
    if (!p.is_tensor) {
      std::optional<int64_t> bits = scalar_bits(*args[i], p.dtype);
      if (!bits) fail_argument(f, i, *args[i], values_, false);
      values_[static_cast<size_t>(p.value)] = *bits;
      continue;
    }
    const Tensor* tensor = args[i]->as<Tensor>();
    if (tensor == nullptr || tensor->dtype() != p.dtype || tensor->shape().size() != p.dims.size())
      fail_argument(f, i, *args[i], values_, false);
    buffers_[num_buffers++] = tensor->data();
  }
  for (size_t v = 0; v < s.values.size(); ++v)
    if (s.values[v].dim >= 0)
      values_[v] =
          args[static_cast<size_t>(s.values[v].param)]->as<Tensor>()->dim(static_cast<size_t>(s.values[v].dim));
  for (size_t i = 0; i < s.params.size(); ++i) {
    const KernelParam& p = s.params[i];
    if (!p.is_tensor) continue;
    const Dims& shape = args[i]->as<Tensor>()->shape();
    for (size_t d = 0; d < p.dims.size(); ++d) {
      const KernelDim& dim = p.dims[d];
      bool wrong = (dim.kind == KernelDim::Kind::constant && shape[d] != dim.value) ||
                   (dim.kind == KernelDim::Kind::value && shape[d] != values_[static_cast<size_t>(dim.value)]);
      if (wrong) fail_argument(f, i, *args[i], values_, true);
    }
  }
}

}  // namespace sator::runtime
