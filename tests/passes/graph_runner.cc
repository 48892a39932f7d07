#include "graph_runner.h"

#include <algorithm>

#include "support/graphs.h"

namespace sator::test {

namespace {

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

/// Tensors of the same names, dtypes and ranks, one for one.
bool takes_the_same(const relax::Function& f, const relax::Function& g) {
  return std::ranges::equal(f.params, g.params, [](const relax::RVarRef& p, const relax::RVarRef& q) {
    const auto *t = p->sinfo.as<relax::TensorInfo>(), *u = q->sinfo.as<relax::TensorInfo>();
    return t && u && t->dtype == u->dtype && t->ndim == u->ndim && p->name == q->name;
  });
}

}  // namespace

std::optional<std::string> difference_of_runs(const ModuleRef& before, const ModuleRef& after, double tolerance) {
  const relax::Function *f = graph_of(*before), *g = graph_of(*after);
  if (!f || !g || !takes_the_same(*f, *g) || calls_external(*before) || calls_external(*after)) return {};
  std::mt19937_64 random(7);
  // Sizes that differ from each other and from the extents that are common in tests.
  auto args = arguments_for(*g, random, [](size_t i) { return 5 + static_cast<int64_t>(i); });
  if (!args) return {};
  std::optional<runtime::Value> expected;
  try {
    expected = relax::GraphInterpreter(before).call("main", copies(*args));
  } catch (const Error&) {
    // Sizes that the program does not take: the other one must not take them either.
  }
  if (expected) return difference(*expected, relax::GraphInterpreter(after).call("main", *args), tolerance);
  try {
    relax::GraphInterpreter(after).call("main", *args);
  } catch (const Error&) {
    return {};
  }
  return "the program before the passes refuses its arguments, the one behind them does not";
}

}  // namespace sator::test
