#include "support/graphs.h"

#include <cmath>
#include <cstring>
#include <map>

#include "codegen/jit.h"
#include "driver/compile.h"
#include "passes/lower/lower.h"
#include "relax/struct_info.h"
#include "runtime/vm.h"
#include "support/arrays.h"

namespace sator::test {

using runtime::Tensor;
using runtime::Value;

const relax::Function* graph_of(const Module& module, const std::string& name) {
  auto at = module.functions.find(name);
  return at == module.functions.end() ? nullptr : at->second.as<relax::Function>();
}

std::optional<std::vector<Value>> arguments_for(const relax::Function& f, std::mt19937_64& random,
                                                FunctionRef<int64_t(size_t)> size) {
  constexpr int64_t kMaxElements = 1 << 16;
  std::uniform_real_distribution<double> real(-1, 1);
  std::map<const Var*, int64_t> sizes;
  std::vector<Value> args;
  for (const relax::RVarRef& p : f.params) {
    const relax::TensorInfo* info = p->sinfo.as<relax::TensorInfo>();
    auto shape = info ? relax::explicit_shape(*info) : std::nullopt;
    if (!shape || info->dtype.is_void()) return {};
    std::vector<int64_t> dims;
    int64_t count = 1;
    for (const Expr& extent : *shape) {
      auto known = as_int(extent);
      const Var* v = extent.as<Var>();
      if (!known && !v) return {};
      dims.push_back(known ? *known : sizes.emplace(v, size(sizes.size())).first->second);
      count *= dims.back();
    }
    if (count > kMaxElements) return {};
    Ref<Tensor> t = Tensor::empty(runtime::Dims(std::span<const int64_t>(dims)), info->dtype);
    for (int64_t i = 0; i < count; ++i) {
      double v = info->dtype.is_float()  ? real(random)
                 : info->dtype.is_bool() ? static_cast<double>(random() % 2)
                                         : static_cast<double>(random() % 3);
      set_element(*t, i, v);
    }
    args.emplace_back(t);
  }
  return args;
}

std::vector<Value> copies(std::span<const Value> args) {
  std::vector<Value> out;
  for (const Value& v : args) {
    const Tensor* t = v.as<Tensor>();
    if (!t) {
      out.push_back(v);
      continue;
    }
    Ref<Tensor> copy = Tensor::empty(t->shape(), t->dtype());
    if (t->num_elements()) std::memcpy(copy->data(), t->data(), static_cast<size_t>(t->size_bytes()));
    out.emplace_back(copy);
  }
  return out;
}

// ---- The compiled program ----

struct CompiledGraph::Machine {
  Ref<codegen::Jit> jit;
  std::unique_ptr<runtime::VirtualMachine> vm;
};

CompiledGraph::CompiledGraph(const ModuleRef& module) : machine_(std::make_unique<Machine>()) {
  const target::CpuLevel& level = *target::levels_for("native").front();
  driver::Compiled compiled = driver::compile(module, {.target = Target::of_levels({&level})});
  machine_->jit = codegen::Jit::create(level);
  runtime::KernelTable kernels;
  for (const auto& [name, func] : compiled.final->functions) {
    if (tir::PrimFuncRef f = cast<tir::PrimFunc>(func)) kernels.add(name, machine_->jit->add(*passes::lower(f)));
  }
  kernels.keep_alive = machine_->jit;
  machine_->vm = std::make_unique<runtime::VirtualMachine>(
      compiled.executable, std::move(kernels), runtime::ThreadPool::create(2));
}
CompiledGraph::~CompiledGraph() = default;

Value CompiledGraph::call(const std::string& function, std::span<const Value> args) {
  return machine_->vm->call(function, args);
}

// ---- Results ----

std::optional<std::string> difference(const Value& a, const Value& b, double tolerance) {
  auto other = [&] { return text(a.describe(), " became ", b.describe()); };
  if (const runtime::Tuple* t = a.as<runtime::Tuple>()) {
    const runtime::Tuple* u = b.as<runtime::Tuple>();
    if (!u || t->fields.size() != u->fields.size()) return other();
    for (size_t i = 0; i < t->fields.size(); ++i) {
      if (auto d = difference(t->fields[i], u->fields[i], tolerance)) return text("item ", i, ": ", *d);
    }
    return {};
  }
  const Tensor *t = a.as<Tensor>(), *u = b.as<Tensor>();
  if (!t || !u) return a.describe() == b.describe() ? std::nullopt : std::optional(other());
  if (t->shape() != u->shape() || t->dtype() != u->dtype()) return other();
  DType d = t->dtype();
  if (d.is_float() && d.bits == 16) tolerance = std::max(tolerance, d.is_bfloat() ? 2e-2 : 4e-3);
  for (int64_t i = 0; i < t->num_elements(); ++i) {
    double x = element(*t, i), y = element(*u, i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (!d.is_float() || !std::isfinite(x) || !(std::abs(x - y) <= tolerance * (1 + std::abs(x))))
      return text("element ", i, " was ", x, " and is ", y);
  }
  return {};
}

std::string as_lines(const Value& value) {
  if (const runtime::Tuple* t = value.as<runtime::Tuple>()) {
    std::string out;
    for (const Value& item : t->fields) out += as_lines(item);
    return out;
  }
  const Tensor* t = value.as<Tensor>();
  if (!t) return value.describe() + "\n";
  std::vector<int64_t> dims(t->shape().begin(), t->shape().end());
  std::string out = text(t->dtype(), "[", join(dims, ", "), "] =");
  for (int64_t i = 0; i < t->num_elements(); ++i) {
    char number[32];
    std::snprintf(number, sizeof number, " %.5g", element(*t, i));
    out += std::strcmp(number, " -nan") == 0 ? " nan" : number;
  }
  return out + "\n";
}

}  // namespace sator::test
