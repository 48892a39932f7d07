#include "passes/condition.h"

#include "ir/visit.h"
#include "relax/outline.h"

namespace sator::passes {

using namespace relax;

namespace {

/// The first graph in which `found` says what is wrong.
std::optional<Reason> first(const Module& module, FunctionRef<std::string(const FuncRef&)> found) {
  for (const auto& [name, func] : module.functions) {
    FuncRef f = cast<Function>(func);
    if (!f) continue;
    if (std::string what = found(f); !what.empty())
      return Reason{.what = std::move(what), .where = text("in func ", name)};
  }
  return {};
}

std::optional<Reason> dataflow(const Module& module) {
  return first(module, [](const FuncRef& f) {
    bool has = false;
    walk(f, [&](const BindingBlock& b) { has |= b.is_dataflow; });
    return has ? std::string("a dataflow block is left") : std::string();
  });
}

std::optional<Reason> packed_dataflow(const Module& module) {
  return first(module, [](const FuncRef& f) {
    std::string what;
    walk(f, [&](const BindingBlock& b) {
      for (const Binding& binding : b.bindings) {
        const std::string& op = op_name(bound_value(binding));
        if (b.is_dataflow && (op == "call_pure_packed" || op == "invoke_pure_closure"))
          what = text("R.", op, " is in a dataflow block");
      }
    });
    return what;
  });
}

std::optional<Reason> purity(const Module& module) {
  return first(module, [](const FuncRef& f) {
    std::string what;
    auto look = [&](const Function& g) {
      if (g.is_pure && int_attr(g.attrs, "relax.force_pure").value_or(0) == 0)
        what = "the calls of a function must be pure";
    };
    look(*f);
    walk(f, [&](const LocalFunction& inner) { look(*inner.function); });
    return what;
  });
}

std::optional<Reason> op_left(const Module& module, std::initializer_list<std::string_view> names) {
  return first(module, [&](const FuncRef& f) {
    std::string what;
    walk(f, [&](const Op& op) {
      for (std::string_view name : names)
        if (op.name == name) what = text("R.", name, " is left");
    });
    return what;
  });
}

std::optional<Reason> call_tir(const Module& module) {
  return op_left(module, {"call_tir", "call_tir_inplace", "call_tir_with_grad", "call_dps_packed"});
}
std::optional<Reason> alloc(const Module& module) { return op_left(module, {"builtin.alloc_tensor"}); }

}  // namespace

const Condition kNoDataflow{"graphs without dataflow blocks", dataflow};
const Condition kNoPackedDataflow{"graphs that call the runtime outside of dataflow blocks", packed_dataflow};
const Condition kNoPurity{"graphs whose functions may call what has effects", purity};
const Condition kNoCallTir{"graphs that allocate the results of tensor functions themselves", call_tir};
const Condition kNoAlloc{"graphs whose tensors lie in storages", alloc};

}  // namespace sator::passes
