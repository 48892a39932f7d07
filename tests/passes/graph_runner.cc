#include "graph_runner.h"

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

}  // namespace

std::optional<std::string> difference_of_runs(const ModuleRef& before, const ModuleRef& after) {
  const relax::Function *f = graph_of(*before), *g = graph_of(*after);
  if (!f || !g || f->params.size() != g->params.size() || calls_external(*before) || calls_external(*after)) return {};
  std::mt19937_64 random(7);
  // Sizes that differ from each other and from the extents that are common in tests.
  auto args = arguments_for(*f, random, [](size_t i) { return 5 + static_cast<int64_t>(i); });
  if (!args) return {};
  runtime::Value expected = relax::GraphInterpreter(before).call("main", copies(*args));
  return difference(expected, relax::GraphInterpreter(after).call("main", *args));
}

}  // namespace sator::test
