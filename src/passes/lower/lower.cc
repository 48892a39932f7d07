#include "passes/lower/lower.h"

namespace sator::passes {

std::span<const LowerPass> lower_passes() {
  using enum tir::Stage;
  static constexpr LowerPass passes[] = {
      {"LowerInitBlock", "runs a block's init where its reduction begins", blocks, blocks, lower_init_block},
      {"PlanAndUpdateBufferAllocationLocation",
       "moves each allocation to the innermost place around its uses",
       blocks,
       blocks,
       plan_buffer_allocation},
      {"ConvertBlocksToOpaque", "replaces block iterators by their values", blocks, opaque, convert_blocks_to_opaque},
      {"Simplify", "simplifies index arithmetic and conditions", opaque, opaque, simplify, true},
      {"CompactBufferAllocation",
       "shrinks each allocation to what is used of it",
       opaque,
       opaque,
       compact_buffer_allocation,
       false,
       "is_strict"},
      {"LowerMatchBuffer", "replaces a matched buffer by the box it names", opaque, opaque, lower_match_buffer},
      {"LowerOpaqueBlock", "replaces blocks by allocations and conditions", opaque, loops, lower_opaque_block},
      {"CheckIndices",
       "refuses indices read from memory that lie outside of their buffer",
       loops,
       loops,
       check_indices},
      {"FlattenBuffer", "gives each buffer one dimension", loops, flat, flatten_buffer, true, "keep_axis_separators"},
      {"InjectVirtualThread", "writes out virtual threads", flat, flat, inject_virtual_thread, true},
      {"Simplify", "simplifies index arithmetic and conditions", flat, flat, simplify, true},
      {"LoopPartition", "runs full tiles without the conditions of the last one", flat, flat, loop_partition, true},
      {"Simplify", "simplifies index arithmetic and conditions", flat, flat, simplify, true},
      {"InjectPrefetch", "asks for cache lines ahead where a loop is annotated so", flat, flat, inject_prefetch},
      {"LowerDotProducts",
       "turns sums of four products of bytes into dot4, of two of bfloat16 into dot2",
       flat,
       flat,
       lower_dot_products},
      {"LowerTileProducts", "makes one call of a product on matrix tiles", flat, flat, lower_tile_products},
      {"OverlapTileProducts",
       "multiplies on matrix tiles a step ahead of what uses the sums",
       flat,
       flat,
       overlap_tile_products},
      {"VectorizeLoop",
       "turns vectorized loops into vector expressions",
       flat,
       flat,
       vectorize_loop,
       false,
       "serial_conditions"},
      {"UnrollLoop", "writes out unrolled loops", flat, machine, unroll_loop, true},
      {"RemoveNoOp", "drops statements that do nothing", machine, machine, remove_no_op, true},
  };
  return passes;
}

std::span<const LowerPass> more_lower_passes() {
  using enum tir::Stage;
  static constexpr LowerPass passes[] = {
      {"HoistExpression",
       "moves conditions and bindings out of the loops that they do not depend on",
       any,
       any,
       hoist_expression},
      {"HoistIfThenElse", "moves branches out of the loops that they do not depend on", any, any, hoist_if_then_else},
      {"NarrowDataType",
       "makes index arithmetic as narrow as its values allow",
       any,
       any,
       narrow_data_type,
       false,
       "target_bits"},
      {"ForceNarrowIndexToInt32", "makes index arithmetic 32 bits wide", any, any, force_narrow_index},
      {"DecorateDeviceScope", "marks the whole function as what runs on a device", any, any, decorate_device_scope},
      {"LiftThreadBinding",
       "one loop for each thread axis around all that it is bound in",
       any,
       any,
       unify_thread_binding},
      {"UnifyThreadBinding", "one loop for each thread axis around a kernel", any, any, unify_thread_binding},
      {"LowerCrossThreadReduction",
       "reduces in each thread, then over the threads",
       blocks,
       blocks,
       lower_cross_thread_reduction},
      {"InjectPermutedLayout",
       "permutes the rows of shared memory where blocks ask for it",
       any,
       any,
       inject_permuted_layout},
      {"InjectPTXAsyncCopy",
       "makes copies to shared memory asynchronous where they are asked to be",
       flat,
       flat,
       inject_ptx_async_copy},
      {"InjectDoubleBuffer",
       "fills buffers one iteration ahead where they ask for it",
       loops,
       loops,
       inject_double_buffer},
      {"InjectSoftwarePipeline", "overlaps the stages of annotated loops", opaque, opaque, inject_software_pipeline},
      {"CommonSubexprElimTIR",
       "computes once what is computed several times",
       loops,
       loops,
       common_subexpr_elim,
       false,
       "enable_cse_tir identify_equiv_terms"},
      {"PointerValueTypeRewrite",
       "gives memory that is accessed in vectors vectors as elements",
       loops,
       loops,
       pointer_value_type_rewrite},
      {"StorageRewrite", "moves allocations out of loops, and lets them share memory", loops, loops, storage_rewrite},
      {"MergeSharedMemoryAllocations",
       "makes a kernel's shared memory one allocation, in which buffers lie over each other",
       flat,
       flat,
       merge_shared_memory_allocations,
       true},
      {"ThreadSync", "lets threads wait where they share memory", loops, loops, thread_sync, false, "storage_scope"},
      {"LowerThreadAllreduce", "combines threads by shuffles and shared memory", any, any, lower_thread_allreduce},
      {"LowerWarpMemory",
       "spreads a warp's memory over its threads, which read each other's part by shuffles",
       any,
       any,
       lower_warp_memory},
      {"InstrumentProfileIntrinsics", "marks where loops begin and end", any, any, instrument_profile_intrinsics},
      {"ReduceBranchingThroughOvercompute",
       "runs without its condition what then changes nothing more",
       any,
       any,
       reduce_branching},
      {"BF16ComputeLegalize",
       "computes with bfloat16 in float32, and stores what is rounded",
       any,
       any,
       bf16_compute_legalize,
       false,
       "bits"},
      {"BF16StorageLegalize", "stores bfloat16 as its bits, uint16", any, any, bf16_storage_legalize},
      {"FP8ComputeLegalize",
       "computes with floats of 8 bits in a wider dtype, and stores what is rounded",
       any,
       any,
       fp8_compute_legalize,
       false,
       "promote_dtype bits"},
      {"FP8StorageLegalize", "stores floats of 8 bits as their bits, uint8", any, any, fp8_storage_legalize},
      {"CombineContextCall",
       "asks once for a device's context, before the loops that ask for it",
       any,
       any,
       combine_context_call},
      {"RewriteUnsafeSelect", "makes branches of choices that may read memory", any, any, rewrite_unsafe_select},
      {"RemoveAssume", "drops what the program assumes", any, any, remove_assume},
      {"RemoveStoreUndef", "drops stores of undefined values", any, any, remove_store_undef},
      {"SkipAssert", "drops what the program asserts", any, any, skip_assert},
      {"ConvertForLoopsToSerial", "makes parallel loops serial", any, any, convert_for_loops_to_serial},
      {"ReturnByStore",
       "gives a program that returns a number a last parameter, in which it stores it",
       any,
       any,
       return_by_store},
  };
  return passes;
}

std::span<const std::string_view> option_names() {
  static constexpr std::string_view names[] = {"tir.HoistExpression.hoisted_conditionals",
                                               "tir.HoistExpression.hoisted_let_bindings",
                                               "tir.HoistIfThenElse.support_block_scope_hosting",
                                               "sator.default_schedule",
                                               "tir.enable_buffer_level_predication",
                                               "tir.InjectDoubleBuffer.split_loop",
                                               "tir.instr_siblings",
                                               "tir.instrument_lwp",
                                               "tir.lwp_disable_func_prof",
                                               "tir.lwp_disable_loop_prof",
                                               "tir.lwp_max_depth",
                                               "tir.lwp_min_height",
                                               "tir.LoopPartition.no_unroll_loop_with_extent_one",
                                               "tir.LoopPartition.partition_const_loop",
                                               "tir.LoopPartition.unroll_loop_with_partition_hint_no_interval",
                                               "tir.merge_static_smem",
                                               "tir.ReduceBranchingThroughOvercompute.use_dataflow_analysis",
                                               "tir.RemoveNoOp.use_dataflow_analysis",
                                               "tir.Simplify.apply_constraints_to_boolean_branches",
                                               "tir.Simplify.convert_boolean_to_and_of_ors",
                                               "tir.Simplify.propagate_knowns_to_prove_conditional",
                                               "tir.Simplify.propagate_knowns_to_simplify_expressions",
                                               "tir.Simplify.transitively_prove_inequalities",
                                               "tir.UnrollLoop.auto_max_depth",
                                               "tir.UnrollLoop.auto_max_extent",
                                               "tir.UnrollLoop.auto_max_step",
                                               "tir.UnrollLoop.explicit_unroll",
                                               "tir.UnrollLoop.unroll_local_access"};
  return names;
}

TargetConfigRef LowerOptions::target_of(const tir::PrimFunc& func) const {
  if (TargetConfigRef own = target_attr(func.attrs)) return own;
  return target ? target->config() : nullptr;
}

int64_t option(const LowerOptions& options, const std::string& name, int64_t otherwise) {
  auto at = options.config.find(name);
  const IntImm* value = at == options.config.end() ? nullptr : at->second.as<IntImm>();
  return value ? value->value : otherwise;
}

namespace {

/// A program that has what a pass does not expect is the caller's mistake: the order of passes.
void require_stage(const LowerPass& pass, const tir::PrimFunc& func) {
  std::vector<Reason> mistakes = tir::verify(func, pass.from);
  if (mistakes.empty()) return;
  Reason first = std::move(mistakes.front());
  const LowerPass* before = nullptr;
  for (const LowerPass& p : lower_passes()) {
    if (p.to == pass.from && p.from != p.to) before = &p;
  }
  first.what = text(pass.name, " is given ", first.what);
  first.needs = text("a well-formed program of stage ", tir::stage_name(pass.from));
  if (before) first.hint = text("run ", before->name, " before");
  fail(std::move(first));
}

tir::PrimFuncRef checked(const LowerPass& pass, const tir::PrimFuncRef& func, const LowerOptions& options) {
  tir::PrimFuncRef out = pass.run(func, options);
  if (out == func) return out;
  if (std::vector<Reason> mistakes = tir::verify(*out, pass.to); !mistakes.empty())
    internal_error(
        text("the pass ", pass.name, " leaves a program that breaks the rules\n", mistakes.front().render()));
  return out;
}

}  // namespace

tir::PrimFuncRef run_lower_pass(const LowerPass& pass, const tir::PrimFuncRef& func, const LowerOptions& options) {
  LowerPass step = pass;
  if (pass.anywhere) step.from = step.to = tir::Stage::any;
  require_stage(step, *func);
  return checked(step, func, options);
}

tir::PrimFuncRef lower(const tir::PrimFuncRef& func, const LowerOptions& options) {
  require_stage(lower_passes().front(), *func);
  tir::PrimFuncRef out = func;
  for (const LowerPass& pass : lower_passes()) out = checked(pass, out, options);
  return out;
}

tir::PrimFuncRef decorate_device_scope(const tir::PrimFuncRef& func, const LowerOptions&) {
  return with_body(func, make<tir::AttrStmt>(NodeRef(int_imm(0)), std::string("device_scope"), int_imm(0), func->body));
}

tir::PrimFuncRef with_body(const tir::PrimFuncRef& func, tir::Stmt body) {
  return body == func->body ? func : with(func, &tir::PrimFunc::body, std::move(body));
}

tir::Stmt nothing() { return make<tir::Evaluate>(int_imm(0)); }

}  // namespace sator::passes
