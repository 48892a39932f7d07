#include "graph_runner.h"

#include <cmath>
#include <random>

#include "relax/interp.h"

namespace sator::test {

namespace {

using runtime::Tensor;
using runtime::Value;

constexpr int64_t kMaxElements = 1 << 16;

template <class T>
void fill(const Tensor& t, std::mt19937& random, auto&& draw) {
  for (int64_t i = 0; i < t.num_elements(); ++i) t.data_as<T>()[i] = static_cast<T>(draw(random));
}

/// Real numbers from -1 to 1; integers from 0 to 2, so that they may be indices.
bool fill(const Tensor& t, std::mt19937& random) {
  std::uniform_real_distribution<float> real(-1, 1);
  std::uniform_int_distribution<int> integer(0, 2), bit(0, 1);
  if (t.dtype() == f32)
    fill<float>(t, random, real);
  else if (t.dtype() == i32 || t.dtype() == u32)
    fill<int32_t>(t, random, integer);
  else if (t.dtype() == i64)
    fill<int64_t>(t, random, integer);
  else if (t.dtype() == i8 || t.dtype() == u8)
    fill<int8_t>(t, random, integer);
  else if (t.dtype() == boolean)
    fill<uint8_t>(t, random, bit);
  else
    return false;
  return true;
}

/// Arguments for `f`; nothing if a parameter is no tensor whose shape can be chosen.
std::optional<std::vector<Value>> arguments_for(const relax::Function& f) {
  std::mt19937 random(7);
  std::map<const Var*, int64_t> sizes;
  std::vector<Value> args;
  for (const relax::RVarRef& p : f.params) {
    const relax::TensorInfo* info = p->sinfo.as<relax::TensorInfo>();
    auto shape = info ? relax::explicit_shape(*info) : std::nullopt;
    if (!shape) return {};
    std::vector<int64_t> dims;
    int64_t count = 1;
    for (const Expr& extent : *shape) {
      auto known = as_int(extent);
      const Var* v = extent.as<Var>();
      if (!known && !v) return {};
      // Sizes that differ from each other and from the extents that are common in tests.
      dims.push_back(known ? *known : sizes.emplace(v, 5 + static_cast<int64_t>(sizes.size())).first->second);
      count *= dims.back();
    }
    if (count > kMaxElements) return {};
    Ref<Tensor> t = Tensor::empty(runtime::Dims(std::span<const int64_t>(dims)), info->dtype);
    if (!fill(*t, random)) return {};
    args.emplace_back(t);
  }
  return args;
}

double element(const Tensor& t, int64_t i) {
  if (t.dtype() == f32) return t.data_as<float>()[i];
  if (t.dtype() == i64) return static_cast<double>(t.data_as<int64_t>()[i]);
  if (t.dtype().bytes() == 4) return t.data_as<int32_t>()[i];
  return t.data_as<int8_t>()[i];
}

std::optional<std::string> difference(const Value& a, const Value& b) {
  if (const runtime::Tuple* t = a.as<runtime::Tuple>()) {
    const runtime::Tuple* u = b.as<runtime::Tuple>();
    if (!u || t->fields.size() != u->fields.size()) return text(a.describe(), " became ", b.describe());
    for (size_t i = 0; i < t->fields.size(); ++i) {
      if (auto d = difference(t->fields[i], u->fields[i])) return d;
    }
    return {};
  }
  const Tensor *t = a.as<Tensor>(), *u = b.as<Tensor>();
  if (!t || !u)
    return a.describe() == b.describe() ? std::nullopt : std::optional(text(a.describe(), " became ", b.describe()));
  if (t->shape() != u->shape() || t->dtype() != u->dtype()) return text(a.describe(), " became ", b.describe());
  for (int64_t i = 0; i < t->num_elements(); ++i) {
    double x = element(*t, i), y = element(*u, i);
    if (!(std::abs(x - y) <= 1e-5 * (1 + std::abs(x)))) return text("element ", i, " was ", x, " and is ", y);
  }
  return {};
}

bool calls_external(const Module& module) {
  bool found = false;
  for (const auto& [name, func] : module.functions) {
    walk(
        func,
        [&](const relax::ExternFunc&) { found = true; },
        [&](const relax::Op& op) { found |= op.name.starts_with("vm."); });
  }
  return found;
}

const relax::Function* main_of(const Module& module) {
  auto at = module.functions.find("main");
  return at == module.functions.end() ? nullptr : at->second.as<relax::Function>();
}

}  // namespace

std::optional<std::string> difference_of_runs(const ModuleRef& before, const ModuleRef& after) {
  const relax::Function *f = main_of(*before), *g = main_of(*after);
  if (!f || !g || f->params.size() != g->params.size() || calls_external(*before) || calls_external(*after)) return {};
  auto args = arguments_for(*f), again = arguments_for(*g);
  if (!args || !again) return {};
  Value expected = relax::GraphInterpreter(before).call("main", *args);
  return difference(expected, relax::GraphInterpreter(after).call("main", *again));
}

}  // namespace sator::test
