#include <algorithm>

#include "passes/byoc.h"
#include "passes/described_target.h"
#include "passes/op_pattern.h"
#include "passes/option.h"
#include "relax/outline.h"

namespace sator::passes {

using namespace relax;

namespace {

/// "fused_relax_matmul_relax_add", as TVM names them; items of tuples are no ops.
std::string group_name(const BindingBlockRef& block, const std::set<size_t>& members) {
  std::string name = "fused";
  for (size_t m : members) {
    const auto callee = called_prim_func(block->bindings[m]);
    if (bound_value(block->bindings[m]).as<TupleGetItem>()) continue;
    std::string op = callee ? *callee : text("relax_", op_name(bound_value(block->bindings[m])));
    std::replace(op.begin(), op.end(), '.', '_');
    name += "_" + op;
  }
  return name;
}

bool overlaps(const std::set<size_t>& a, const std::set<size_t>& b) {
  return std::ranges::any_of(a, [&](size_t x) { return b.contains(x); });
}

}  // namespace

ModuleRef fuse_ops_by_pattern(const ModuleRef& module, const PassContext& ctx,
                              const std::vector<FusionPattern>& patterns, FusionForm form) {
  Outliner outliner(module);
  std::set<RVarRef> constants;
  for (const auto& [name, func] : module->functions)
    if (const Function* f = func.as<Function>())
      if (const auto inputs = int_attr(f->attrs, "num_input"))
        for (size_t i = static_cast<size_t>(std::max<int64_t>(0, *inputs)); i < f->params.size(); ++i)
          constants.insert(f->params[i]);
  return rewrite_dataflow_blocks(
      module,
      [&](const BindingBlockRef& block, const std::vector<RVarRef>& live_out) {
        const PatternGraph graph(outliner.module(), block, live_out);
        std::vector<Group> groups;
        std::set<size_t> taken;
        for (const FusionPattern& p : patterns) {
          std::vector<std::set<size_t>> found;
          for (size_t root = 0; root < graph.size(); ++root) {
            if (taken.contains(root)) continue;
            const auto match = graph.match(p.results, root);
            if (!match || overlaps(match->members, taken)) continue;
            std::string why;
            if (auto inside = graph.escapes(*match))
              why = text(bound_var(block->bindings[*inside])->name, " is used outside of it");
            else if (auto early = graph.needed_early(*match))
              why = text(bound_var(block->bindings[*early])->name, " is read before all of it is there");
            else if (p.check)
              why = p.check({outliner.module(), block, match->members, match->parts, constants, ctx});
            if (why.empty())
              found.push_back(match->members);
            else
              ctx.say("FuseOpsByPattern", text(bound_var(block->bindings[root])->name, " is no ", p.name, ": ", why));
          }
          std::ranges::stable_sort(found, std::greater{}, &std::set<size_t>::size);
          for (const std::set<size_t>& members : found) {
            if (overlaps(members, taken)) continue;
            taken.insert(members.begin(), members.end());
            const std::string backend = p.name.substr(0, p.name.find('.'));
            Attrs attrs = {{"Composite", string_imm(p.name)}, {"Primitive", int_imm(1)}};
            if (form.backend_functions) attrs["Codegen"] = string_imm(backend);
            groups.push_back({{members.begin(), members.end()},
                              group_name(block, members) + (form.backend_functions ? "_" + backend : ""),
                              std::move(attrs),
                              form.keeps_constants});
          }
        }
        std::ranges::sort(groups, {}, &Group::bindings);
        return outliner.outline(block, groups, live_out);
      },
      &outliner);
}

ModuleRef fuse_ops_by_pattern(const ModuleRef& module, const PassContext& ctx) {
  if (choice_option(ctx, "FuseOpsByPattern.backend", {"chip", "dnnl"}) == "dnnl")
    return fuse_ops_by_pattern(module, ctx, dnnl_patterns());
  const std::optional<Chip> chip = described_target(ctx);
  return fuse_ops_by_pattern(module, ctx, chip ? patterns_of(*chip) : fusion_patterns());
}

}  // namespace sator::passes
