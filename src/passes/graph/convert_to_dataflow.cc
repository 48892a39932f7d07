#include "passes/graph/graph.h"
#include "relax/outline.h"
#include "relax/rewrite.h"

namespace sator::passes {

using namespace relax;

namespace {

/// May be in a dataflow block: no branch, and nothing with effects.
bool is_dataflow_binding(const Binding& b) {
  RExpr value = bound_value(b);
  return !value.as<If>() && !is_impure_call(value);
}

}  // namespace

ModuleRef convert_to_dataflow(const ModuleRef& module, const PassContext& ctx) {
  const size_t least = static_cast<size_t>(number_option(ctx, "ConvertToDataflow.min_size", 2, 0));
  return rewrite_functions(module, [&](const FuncRef& f, BlockBuilder& builder) {
    FuncRef out = transform(f, [&](const SeqExpr& seq) -> NodeRef {
      std::vector<BindingBlockRef> blocks;
      std::vector<Binding> run;  // of bindings that may be in a dataflow block
      bool was_dataflow = false;
      auto end_run = [&] {
        if (!run.empty()) blocks.push_back(make<BindingBlock>(run, was_dataflow || run.size() >= least));
        run.clear();
        was_dataflow = false;
      };
      for (const BindingBlockRef& block : seq.blocks) {
        for (const Binding& b : block->bindings) {
          if (block->is_dataflow || is_dataflow_binding(b)) {
            run.push_back(b);
            was_dataflow = was_dataflow || block->is_dataflow;
          } else {
            end_run();
            blocks.push_back(make<BindingBlock>(std::vector{b}, false));
          }
        }
      }
      end_run();
      blocks = joined_blocks(blocks);
      return blocks == seq.blocks ? ref(seq) : with(seq, &SeqExpr::blocks, std::move(blocks));
    });
    return canonicalize_bindings(out, builder);
  });
}

}  // namespace sator::passes
