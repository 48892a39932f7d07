#include "passes/to_vm.h"
#include "relax/outline.h"

namespace sator::passes {

using namespace relax;

ModuleRef to_non_dataflow(const ModuleRef& module, const PassContext&) {
  ModuleRef out = module;
  for (const auto& [name, func] : module->functions) {
    FuncRef f = cast<Function>(func);
    if (!f) continue;
    FuncRef rewritten = transform(
        f,
        [](const RVar& v) -> NodeRef {
          return v.is_dataflow ? NodeRef(with(v, &RVar::is_dataflow, false)) : NodeRef(&v);
        },
        [](const SeqExpr& seq) -> NodeRef {
          // Plain blocks that follow each other are one.
          std::vector<Binding> bindings;
          for (const BindingBlockRef& b : seq.blocks)
            bindings.insert(bindings.end(), b->bindings.begin(), b->bindings.end());
          if (seq.blocks.size() == 1 && !seq.blocks[0]->is_dataflow) return ref(seq);
          std::vector<BindingBlockRef> blocks;
          if (!bindings.empty()) blocks.push_back(make<BindingBlock>(std::move(bindings), false));
          return with(seq, &SeqExpr::blocks, std::move(blocks));
        });
    if (rewritten != f) out = with_function(std::move(out), name, rewritten);
  }
  return out;
}

}  // namespace sator::passes
