#include <algorithm>

#include "passes/byoc.h"
#include "passes/op_pattern.h"
#include "passes/outline.h"

namespace sator::passes {

using namespace relax;

namespace {

/// A matrix of values that a function makes from codes and scales.
DFPattern dequantized() {
  return is_call_tir([](const tir::PrimFunc& f) { return string_attr(f.attrs, "role") == "dequantize"; });
}

/// x times a matrix, given as it is or transposed; or a tensor function that multiplies and sums up.
DFPattern product_with(const DFPattern& weight) {
  return is_op("matmul", {wildcard(), is_op("permute_dims", {weight}) | weight}) |
         is_call_tir([](const tir::PrimFunc& f) { return op_pattern_of(f) == OpPattern::out_fusable; },
                     {wildcard(), weight});
}

/// The product times a scale for all or per column, or its integer sums as floats.
DFPattern rescaled(const DFPattern& product) {
  auto from_sums = [](const tir::PrimFunc& f) {
    const BufferRef sums = tensor_parameter(f, 0);
    const BufferRef out = f.params.empty() ? nullptr : f.buffer_of(f.params.back());
    return sums && out && sums->dtype == i32 && out->dtype.is_float() && op_pattern_of(f) <= OpPattern::broadcast;
  };
  return is_op("multiply", {product, has_ndim(1)}) | is_call_tir(from_sums, {product});
}

DFPattern with_bias(const DFPattern& sums) { return is_op("add", {sums, has_ndim(1)}); }

std::vector<FusionPattern> chip_patterns() {
  struct Weight {
    const char *name, *does;
    DFPattern pattern;
  };
  const Weight weights[] = {{"dequantize_", "a weight made from codes, ", dequantized()}, {"", "", wildcard()}};
  std::vector<FusionPattern> out;
  for (const Weight& w : weights) {
    const DFPattern product = product_with(w.pattern), scaled = rescaled(product);
    auto add = [&](const char* name, const char* does, const DFPattern& pattern) {
      out.push_back({text("chip.", w.name, "matmul", name), text(w.does, "a product", does), pattern});
    };
    add("_rescale_bias", ", its scale and bias", with_bias(scaled));
    add("_bias", " and its bias", with_bias(product));
    add("_rescale", " and its scale", scaled);
    add("", "", product);
  }
  // A longer match is worth more than a weight of a known kind.
  std::ranges::stable_sort(out, {}, [](const FusionPattern& p) {
    return p.name.ends_with("_rescale_bias") ? 0 : p.name.ends_with("matmul") ? 2 : 1;
  });
  return out;
}

/// "fused_relax_matmul_relax_add_chip", as TVM names them.
std::string group_name(const BindingBlockRef& block, const std::set<size_t>& members, const std::string& backend) {
  std::string name = "fused";
  for (size_t m : members) {
    const auto callee = called_prim_func(block->bindings[m]);
    std::string op = callee ? *callee : text("relax_", op_name(bound_value(block->bindings[m])));
    std::replace(op.begin(), op.end(), '.', '_');
    name += "_" + op;
  }
  return name + "_" + backend;
}

}  // namespace

const std::vector<FusionPattern>& fusion_patterns() {
  static const std::vector<FusionPattern> all = chip_patterns();
  return all;
}

ModuleRef fuse_ops_by_pattern(const ModuleRef& module, const PassContext& ctx) {
  Outliner outliner(module);
  return rewrite_dataflow_blocks(
      module,
      [&](const BindingBlockRef& block, const std::vector<RVarRef>& live_out) {
        const PatternGraph graph(outliner.module(), block, live_out);
        std::vector<Group> groups;
        std::set<size_t> taken;
        for (const FusionPattern& p : fusion_patterns())
          for (size_t root = 0; root < graph.size(); ++root) {
            const auto members = graph.match(p.pattern, root);
            if (!members) continue;
            if (std::ranges::any_of(*members, [&](size_t m) { return taken.contains(m); })) continue;
            if (auto inside = graph.escapes(*members)) {
              ctx.say("FuseOpsByPattern",
                      text(bound_var(block->bindings[root])->name,
                           " is no ",
                           p.name,
                           ": ",
                           bound_var(block->bindings[*inside])->name,
                           " is used outside of it"));
              continue;
            }
            taken.insert(members->begin(), members->end());
            const std::string backend = p.name.substr(0, p.name.find('.'));
            groups.push_back(
                {{members->begin(), members->end()},
                 group_name(block, *members, backend),
                 {{"Codegen", string_imm(backend)}, {"Composite", string_imm(p.name)}, {"Primitive", int_imm(1)}}});
          }
        std::ranges::sort(groups, {}, &Group::bindings);
        return outliner.outline(block, groups, live_out);
      },
      &outliner);
}

}  // namespace sator::passes
