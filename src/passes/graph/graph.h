// Rewrites of graphs that users ask for by name, one per file. Each is a row of graph_passes(); the options of a pass stand in
// the context's `config` under its own name ("TopologicalSort.order").
#pragma once

#include "passes/option.h"
#include "passes/pass.h"
#include "relax/bind.h"
#include "relax/nodes.h"
#include "tir/nodes.h"

namespace sator::passes {

/// The rows of this folder.
std::vector<Pass> graph_passes();

/// The graph function of the name that a pass was given. Errors: there is none; lists those there are.
relax::FuncRef function_named(const ModuleRef& module, const std::string& pass, const std::string& name);

// ---- Normal forms ----

/// Nested expressions are bound to variables of their own; a variable that nothing is known of has what is known of its value.
ModuleRef normalize(const ModuleRef& module, const PassContext&);
/// Public functions go by their global_symbol; a private function of that name gets another. Errors: two public functions of
/// one symbol.
ModuleRef normalize_global_var(const ModuleRef& module, const PassContext&);
/// Bindings of a variable to another one go, items of known tuples are the items, constants are read where they are used; a
/// variable that only its dataflow block uses is a dataflow variable.
ModuleRef canonicalize_bindings(const ModuleRef& module, const PassContext&);
relax::FuncRef canonicalize_bindings(const relax::FuncRef& func, relax::BlockBuilder& builder);
/// A value that is bound already is the variable that has it.
///   config  "EliminateCommonSubexpr.call_only": 1 for calls alone
ModuleRef eliminate_common_subexpr(const ModuleRef& module, const PassContext& ctx);
relax::FuncRef eliminate_common_subexpr(const relax::FuncRef& func, relax::BlockBuilder& builder,
                                        bool call_only = false);
/// Neighbouring bindings without effects become dataflow blocks.
///   config  "ConvertToDataflow.min_size": of fewer bindings none is made (2)
ModuleRef convert_to_dataflow(const ModuleRef& module, const PassContext& ctx);
/// Orders the bindings of dataflow blocks as a search over the graph meets them.
///   config  "TopologicalSort.order": depth-first, breadth-first; "TopologicalSort.direction": from-inputs, from-outputs
ModuleRef topological_sort(const ModuleRef& module, const PassContext& ctx);

/// Products take half precision, sums in `out_dtype`; ops that follow take it where all of their inputs have it, others keep their
/// dtypes. What a function takes and returns stays. In dataflow blocks alone.
///   config  "ToMixedPrecision.out_dtype" (float32), "ToMixedPrecision.fp16_input_names": parameters that are given so
ModuleRef to_mixed_precision(const ModuleRef& module, const PassContext& ctx);

/// Convolutions (and resize2d) compute in the layouts that are wished for; other ops follow the order of their inputs' axes where
/// they have a rule, and tensors are permuted where they have none, or leave their dataflow block.
///   config  "ConvertLayout.desired_layouts": by op, the layouts of data and kernel, and of the result if it is another one
ModuleRef convert_layout(const ModuleRef& module, const PassContext& ctx);

/// batch_norm as elementwise ops of its moving statistics; tensor_to_shape as a call of the virtual machine, whose sizes get names.
///   config  "DecomposeOpsForInference.func_name": in this function alone
ModuleRef decompose_ops_for_inference(const ModuleRef& module, const PassContext& ctx);
/// batch_norm as ops of the batch's own statistics, which move the given ones by `momentum`; layer_norm as elementwise ops.
///   config  "DecomposeOpsForTraining.func_name": in this function alone
ModuleRef decompose_ops_for_training(const ModuleRef& module, const PassContext& ctx);

/// In dataflow blocks, elementwise calls write over an argument that the block made and that nobody reads later, by call_tir_inplace
/// of programs NAME_inplace. A value that another name stands for (a tuple, a view) is not overwritten.
ModuleRef dataflow_use_inplace_calls(const ModuleRef& module, const PassContext&);

/// multinomial_from_uniform as a cumsum and a search in it, for CPUs.
ModuleRef dispatch_sampling(const ModuleRef& module, const PassContext& ctx);

// ---- Functions and their parameters ----

/// Symbolic sizes become numbers or expressions.
///   config  "BindSymbolicVars.binding_map": sizes by name; "BindSymbolicVars.func_name": of this function alone
/// Errors: a size that no function has.
ModuleRef bind_symbolic_vars(const ModuleRef& module, const PassContext& ctx);
/// Parameters of one function become values.
///   config  "BindParams.func_name" (main), "BindParams.params": values by the parameters' names
ModuleRef bind_params(const ModuleRef& module, const PassContext& ctx);
/// Calls of private graph functions are replaced by their bodies; functions that call themselves stay.
ModuleRef inline_private_functions(const ModuleRef& module, const PassContext&);
relax::FuncRef inline_functions(const relax::FuncRef& func, const std::map<std::string, relax::FuncRef>& callees,
                                relax::BlockBuilder& builder);
/// Local functions become private functions of the module: what they capture becomes parameters, closures (make_closure,
/// invoke_closure) where a function with captured values is itself a value.
ModuleRef lambda_lift(const ModuleRef& module, const PassContext&);

/// Parameters of private functions that are tuples become their items.
ModuleRef expand_tuple_arguments(const ModuleRef& module, const PassContext&);
/// Parameters of private functions that nothing uses go; sizes that only they define become parameters.
ModuleRef remove_unused_parameters(const ModuleRef& module, const PassContext&);
/// Items of a private function's result that no caller uses go.
ModuleRef remove_unused_outputs(const ModuleRef& module, const PassContext&);
/// Parameters after the first num_input become one tuple.
///   config  "BundleModelParams.param_tuple_name" (model_params)
ModuleRef bundle_model_params(const ModuleRef& module, const PassContext& ctx);
/// Scalars that take a computation are computed by functions of the host.
ModuleRef compute_prim_value(const ModuleRef& module, const PassContext&);

/// Of functions with the attribute num_input: what depends on parameters alone becomes a function NAME_transform_params of a tuple
/// of them, whose results the function takes in their place. LiftTransformParams does this where the parameters are no tuple yet.
///   config  "LiftTransformParams.shared_transform": 1, or names of functions: they share one function transform_params of what all
///           of them compute alike; "relax.lift_transform_params.consume_params": 1 for items that leave the tuple once taken
/// Errors: functions that share their transformation and have other parameters.
ModuleRef partition_transform_params(const ModuleRef& module, const PassContext& ctx);
/// Functions with the attribute streams_params take the items of their last parameter, a tuple, one by one from a source in its
/// place (vm.builtin.take_param) and free each after its last use: what is transformed is not held twice. Dataflow blocks and
/// purity have gone before (ToNonDataflow, RemovePurityChecking).
ModuleRef stream_params(const ModuleRef& module, const PassContext&);
/// Public functions fetch their parameters (those after num_input) where they are used first, by calls of a parameter
/// fget_param(index, name).
ModuleRef lazy_get_input(const ModuleRef& module, const PassContext&);
/// Public functions hand over each result once it is there, by calls of a parameter fset_output(index, value).
ModuleRef lazy_set_output(const ModuleRef& module, const PassContext&);
/// The same for functions whose names end with transform_params, by external functions; a parameter is freed after its last
/// use. Dataflow blocks and purity have gone before (ToNonDataflow, RemovePurityChecking).
///   config  "LazyTransformParams.fget_item" (get_item), ".fset_item" (set_item; empty: results are returned),
///           ".extra_get_item_params", ".extra_set_item_params": variables that come before the index
ModuleRef lazy_transform_params(const ModuleRef& module, const PassContext& ctx);

// ---- Algebra, until nothing changes ----

/// (a b) c as a (b c), or the other way, where that takes fewer operations or lets two factors that are known when compiled be
/// multiplied then (parameters after the attribute num_input).
ModuleRef adjust_matmul_order(const ModuleRef& module, const PassContext&);
/// Whether products of `input` with these weights, in the function, shall be one; `biases` of each, or none.
using CombineCheck =
    std::function<bool(const relax::FuncRef& function, const relax::RVarRef& input,
                       const std::vector<relax::RVarRef>& weights, const std::vector<relax::RVarRef>& biases)>;
/// Products of one tensor with weights of one rank, in a dataflow block, are the parts of one product with the weights side by side;
/// so are the biases and the activations that all of them have. One weight may have a symbolic width.
///   check   asked of each such set; empty: all are combined
ModuleRef combine_parallel_matmul(const ModuleRef& module, const PassContext&, const CombineCheck& check = {});
/// x (a + b) is x a + x b, unless a + b is known when compiled.
ModuleRef expand_matmul_of_sum(const ModuleRef& module, const PassContext&);
/// x take(w, i) is take(x w, i); of a table of matrices, one per row of the batch, the product with all of the table.
ModuleRef reorder_take_after_matmul(const ModuleRef& module, const PassContext&);
/// concat of tensors that are permuted alike is one permute_dims of their concat.
ModuleRef reorder_permute_dims_after_concat(const ModuleRef& module, const PassContext&);
/// A reshape of a reshape is one; one that keeps the shape goes.
ModuleRef remove_redundant_reshape(const ModuleRef& module, const PassContext&);

// ---- Layouts by maps of indices ----

/// Calls of tensor programs whose attribute operator_name has a replacement call that one; layout_transform takes the tensors
/// to the order of elements that it reads and writes, and back.
///   config  "AlterOpImpl.op_impl_map": {"relax.add": a program, or the name of one of the module},
///           ".op_buffer_transforms": {"relax.add": [a map of indices, or None, per parameter]},
///           ".op_buffer_axis_separators", ".op_buffer_input_axis_separators": {"relax.add": [a list of axes per parameter]}
/// A result whose map pads it is cut by a program remove_pad.
/// Errors: another number of maps than of parameters; a result of unknown shape; a map that has no inverse.
ModuleRef alter_op_impl(const ModuleRef& module, const PassContext& ctx);
/// layout_transform that takes every element back to where it was before another one goes; also where remove_pad stands between
/// them and nothing says what the padding holds.
ModuleRef optimize_layout_transform(const ModuleRef& module, const PassContext&);
/// The program that copies the beginning of each axis: [p0, ...] to [i0, ...], i0 <= p0.
tir::PrimFuncRef remove_pad(size_t rank, DType dtype);

// ---- What an engine or a library asks of a module (attach_serving.cc, in MLC-LLM's forms) ----

/// A use of an item of a tuple, in dataflow blocks, takes the item where it stands.
ModuleRef scatter_tuple_get_item(const ModuleRef& module, const PassContext&);
/// Functions with the attribute WorkspaceSize take `workspace`, uint8 of the largest such size, as a last parameter; so do
/// composites inside of them that have the attribute. They get another name; their callers allocate the memory once.
ModuleRef allocate_workspace(const ModuleRef& module, const PassContext&);
/// Private programs that are called by call_tir alone get what their root block allocates in global memory as parameters.
ModuleRef lift_global_buffers(const ModuleRef& module, const PassContext&);
/// softmax_with_temperature(logits: f32[batch_size, 1, vocab_size], temperature: f32[batch_size]): where the temperature is 0,
/// the most likely tokens share all of the probability.
///   config  "AttachSoftmaxWithTemperature.active_vocab_size": tokens from that id on have no probability (0: all are used)
ModuleRef attach_softmax_with_temperature(const ModuleRef& module, const PassContext& ctx);
/// apply_logit_bias_inplace, apply_penalty_inplace (presence, frequency, repetition), apply_bitmask_inplace.
ModuleRef attach_logit_process_func(const ModuleRef& module, const PassContext&);
/// {scatter,gather}_probs and {scatter,gather}_hidden_states(src, indices, dst), by rows.
///   config  "AttachSpecDecodeAuxFuncs.dtype": of the hidden states (float32)
ModuleRef attach_spec_decode_aux_funcs(const ModuleRef& module, const PassContext& ctx);
/// alloc_embedding_tensor(): a tensor as `embed` returns it, at the upper bounds of its sizes.
/// Errors: there is no embed; a size without a bound.
ModuleRef attach_alloc_embedding_tensor_func(const ModuleRef& module, const PassContext& ctx);
/// _metadata(): a JSON text; "memory_usage" has, by function, the bytes of its storages and allocations of constant size.
///   config  "AttachMetadataWithMemoryUsage.metadata": a JSON object, as a text, that it is added to
ModuleRef attach_metadata_with_memory_usage(const ModuleRef& module, const PassContext& ctx);

}  // namespace sator::passes
