// The rewrites of graphs by name: a new one is one line here and one file.
#include "passes/graph/graph.h"

namespace sator::passes {

std::vector<Pass> graph_passes() {
  return {
      {"Normalize", "binds nested expressions to variables", normalize},
      {"NormalizeGlobalVar", "names public functions by their symbol", normalize_global_var},
      {"CanonicalizeBindings",
       "takes out bindings that only give another name",
       [](const ModuleRef& module, const PassContext& ctx) { return canonicalize_bindings(module, ctx); }},
      {"EliminateCommonSubexpr",
       "computes a value once",
       [](const ModuleRef& module, const PassContext& ctx) { return eliminate_common_subexpr(module, ctx); },
       {},
       {},
       {"call_only"}},
      {"ConvertToDataflow", "makes dataflow blocks of bindings without effects", convert_to_dataflow, {}, {}, {"min_size"}},
      {"TopologicalSort", "orders the bindings of dataflow blocks", topological_sort, {}, {}, {"order", "direction"}},
      {"ToMixedPrecision",
       "multiplies in half precision",
       to_mixed_precision,
       {},
       {},
       {"out_dtype", "fp16_input_names"}},
      {"ConvertLayout", "computes in other layouts", convert_layout, {}, {}, {"desired_layouts"}},
      {"BindSymbolicVars", "sets symbolic sizes", bind_symbolic_vars, {}, {}, {"binding_map", "func_name"}},
      {"BindParams", "sets parameters", bind_params, {}, {}, {"func_name", "params"}},
      {"InlinePrivateFunctions", "replaces calls of private functions by their bodies", inline_private_functions},
      {"LambdaLift", "makes local functions functions of the module", lambda_lift},
      {"ExpandTupleArguments", "passes items of tuples", expand_tuple_arguments},
      {"RemoveUnusedParameters", "takes out parameters that nothing uses", remove_unused_parameters},
      {"RemoveUnusedOutputs", "takes out results that no caller uses", remove_unused_outputs},
      {"BundleModelParams", "passes the model's parameters as one tuple", bundle_model_params, {}, {}, {"param_tuple_name"}},
      {"ComputePrimValue", "computes symbolic scalars by host functions", compute_prim_value},
      {"LazyGetInput", "fetches parameters where they are used first", lazy_get_input},
      {"LazySetOutput", "hands over each result once it is there", lazy_set_output},
      {"LazyTransformParams",
       "the same for transform_params, by external functions",
       lazy_transform_params,
       {},
       {},
       {"fget_item", "fset_item", "extra_get_item_params", "extra_set_item_params"}},
      {"AdjustMatmulOrder", "multiplies chains of matrices in the cheaper order", adjust_matmul_order},
      {"ExpandMatmulOfSum", "multiplies the terms of a sum", expand_matmul_of_sum},
      {"ReorderTakeAfterMatmul", "gathers from a product, not from its weight", reorder_take_after_matmul},
      {"ReorderPermuteDimsAfterConcat", "permutes once, after concat", reorder_permute_dims_after_concat},
      {"RemoveRedundantReshape", "reshapes once", remove_redundant_reshape},
  };
}

}  // namespace sator::passes
