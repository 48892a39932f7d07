// Lowering of a tensor program: from blocks to flat loops that code generation reads.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "base/error.h"
#include "target/target.h"
#include "tir/verify.h"

namespace sator::passes {

/// Says of a function that CheckIndices has nothing to look at: what it reads its indices from is the runtime's own (the page
/// tables of the KV cache), or it looks at them itself.
inline constexpr const char* kTrustedIndices = "sator.trusted_indices";

/// A function's promise that whatever it casts to float16 is finite there. What fuses functions keeps it where all of them give it.
inline constexpr const char* kFiniteCasts = "sator.finite_casts";

/// Attribute of a function that returned a number before ReturnByStore: the number's dtype. Its last parameter is the result.
inline constexpr const char* kReturnsByStore = "sator.returns_by_store";

struct LowerOptions {
  /// Copies that unrolling one loop nest may make of a statement.
  int64_t max_unrolled_copies = 4096;
  /// Options by name, as in PassContext.
  Attrs config = {};
  /// What is compiled for; nothing where nobody says.
  std::optional<Target> target = {};
  /// Called when a request of the schedule cannot be followed, such as a vectorized loop that has to run serially.
  std::function<void(const Reason&)> note;

  /// The target of a function: its own attribute, else `target`; null: none is known.
  TargetConfigRef target_of(const tir::PrimFunc& func) const;
};

/// The option's value, or `otherwise` where it is not given.
int64_t option(const LowerOptions& options, const std::string& name, int64_t otherwise);

/// The options that passes know.
std::span<const std::string_view> option_names();

/// Of a cache line.
inline constexpr int64_t kLineBytes = 64;

/// Annotation of a loop over products of bfloat16: the order in which two of them are summed does not matter.
inline constexpr const char* kSumsPairs = "sums_pairs";

/// Annotations of loops: [name of a buffer, iterations] or a list of such pairs, whose lines InjectPrefetch asks for: those of a later
/// iteration, or of the parallel loop's next one.
inline constexpr const char* kSoftwarePrefetch = "software_prefetch";
inline constexpr const char* kPrefetchForNext = "prefetch_for_next";

/// Annotation of a loop over k around the rows and columns of a product: all of it is one T.tile_product. The value: bytes of the
/// right operand that are asked for in advance.
inline constexpr const char* kOnTiles = "on_tiles";
/// Annotation of a loop over rows around a T.tile_product, [bytes, lines]: with each 2048 bytes of the right operand an iteration asks for so
/// many cache lines of what lies so many bytes behind it, the next iteration for those after them.
inline constexpr const char* kAsksAhead = "asks_ahead";

/// Annotation of a loop whose body is a T.tile_product of several groups' sums and a loop over the groups that uses them: the use of one
/// iteration's sums and the products of the next one overlap.
inline constexpr const char* kOverlapsUse = "overlaps_use";

struct LowerPass {
  std::string_view name;  ///< as TVM names it, where TVM has it
  std::string_view does;
  tir::Stage from, to;  ///< of the program that it is given, and of the one that it leaves: checked by run_lower_pass
  tir::PrimFuncRef (*run)(const tir::PrimFuncRef& func, const LowerOptions& options);
  bool anywhere = false;             ///< run alone, by its name, it takes a program of any stage
  std::string_view parameters = {};  ///< its arguments, in order, with spaces between
};

/// The passes in the order in which `lower` runs them.
std::span<const LowerPass> lower_passes();
/// Passes that `lower` does not run: by name alone.
std::span<const LowerPass> more_lower_passes();

/// The function after the pass. Errors: a program that is not of stage `from`; those of the pass. InternalError, with the
/// pass's name, if it leaves a program that is not of stage `to` or not well formed.
tir::PrimFuncRef run_lower_pass(const LowerPass& pass, const tir::PrimFuncRef& func, const LowerOptions& options);

/// A function of stage `blocks` (or of a later one: the passes before it find nothing to do) as `machine`.
/// Meaning is preserved, except that loads and stores that no later statement can see may go.
/// Each pass's result is verified.
/// Errors: a function that is not well formed; those of the passes; each names its loop, block or buffer.
tir::PrimFuncRef lower(const tir::PrimFuncRef& func, const LowerOptions& options = {});

/// The function with another body; the same function for the same body.
tir::PrimFuncRef with_body(const tir::PrimFuncRef& func, tir::Stmt body);

/// Errors: an index that is a sum of multiples of loops leaves its buffer in some iteration, with nothing to keep it from running.
void require_indices(const tir::PrimFunc& func);

/// The statement that does nothing.
tir::Stmt nothing();

// The passes, one per file.
tir::PrimFuncRef lower_init_block(const tir::PrimFuncRef& func, const LowerOptions&);
tir::PrimFuncRef plan_buffer_allocation(const tir::PrimFuncRef& func, const LowerOptions&);
tir::PrimFuncRef convert_blocks_to_opaque(const tir::PrimFuncRef& func, const LowerOptions&);
tir::PrimFuncRef compact_buffer_allocation(const tir::PrimFuncRef& func, const LowerOptions& options);
tir::PrimFuncRef lower_match_buffer(const tir::PrimFuncRef& func, const LowerOptions&);
tir::PrimFuncRef lower_opaque_block(const tir::PrimFuncRef& func, const LowerOptions&);
tir::PrimFuncRef check_indices(const tir::PrimFuncRef& func, const LowerOptions&);
tir::PrimFuncRef flatten_buffer(const tir::PrimFuncRef& func, const LowerOptions& options);
tir::PrimFuncRef simplify(const tir::PrimFuncRef& func, const LowerOptions& options);
tir::PrimFuncRef loop_partition(const tir::PrimFuncRef& func, const LowerOptions&);
tir::PrimFuncRef inject_prefetch(const tir::PrimFuncRef& func, const LowerOptions& options);
tir::PrimFuncRef lower_dot_products(const tir::PrimFuncRef& func, const LowerOptions&);
tir::PrimFuncRef lower_tile_products(const tir::PrimFuncRef& func, const LowerOptions& options);
tir::PrimFuncRef overlap_tile_products(const tir::PrimFuncRef& func, const LowerOptions&);
tir::PrimFuncRef vectorize_loop(const tir::PrimFuncRef& func, const LowerOptions& options);
tir::PrimFuncRef unroll_loop(const tir::PrimFuncRef& func, const LowerOptions& options);
tir::PrimFuncRef remove_no_op(const tir::PrimFuncRef& func, const LowerOptions&);
tir::PrimFuncRef hoist_expression(const tir::PrimFuncRef& func, const LowerOptions& options);
tir::PrimFuncRef hoist_if_then_else(const tir::PrimFuncRef& func, const LowerOptions& options);
tir::PrimFuncRef remove_assume(const tir::PrimFuncRef& func, const LowerOptions& options);
tir::PrimFuncRef skip_assert(const tir::PrimFuncRef& func, const LowerOptions& options);
tir::PrimFuncRef convert_for_loops_to_serial(const tir::PrimFuncRef& func, const LowerOptions& options);
tir::PrimFuncRef force_narrow_index(const tir::PrimFuncRef& func, const LowerOptions&);
tir::PrimFuncRef reduce_branching(const tir::PrimFuncRef& func, const LowerOptions& options);
tir::PrimFuncRef lower_thread_allreduce(const tir::PrimFuncRef& func, const LowerOptions&);
/// Errors: see the file's head: memory whose parts the threads do not hold in turn.
tir::PrimFuncRef lower_warp_memory(const tir::PrimFuncRef& func, const LowerOptions& options);
tir::PrimFuncRef instrument_profile_intrinsics(const tir::PrimFuncRef& func, const LowerOptions& options);
tir::PrimFuncRef unify_thread_binding(const tir::PrimFuncRef& func, const LowerOptions&);
tir::PrimFuncRef lower_cross_thread_reduction(const tir::PrimFuncRef& func, const LowerOptions&);
tir::PrimFuncRef inject_software_pipeline(const tir::PrimFuncRef& func, const LowerOptions&);
tir::PrimFuncRef common_subexpr_elim(const tir::PrimFuncRef& func, const LowerOptions& options);
tir::PrimFuncRef pointer_value_type_rewrite(const tir::PrimFuncRef& func, const LowerOptions&);
tir::PrimFuncRef storage_rewrite(const tir::PrimFuncRef& func, const LowerOptions&);
/// One allocation for all shared memory of a kernel: that of scope "shared.dyn", with the option tir.merge_static_smem also
/// that of "shared". Threads may share a place by then that they did not before: ThreadSync after it lets them wait.
/// Errors: buffers of several dimensions; pointers that calls take other than by T.tvm_access_ptr, T.address_of or
/// T.ptx_cp_async.
tir::PrimFuncRef merge_shared_memory_allocations(const tir::PrimFuncRef& func, const LowerOptions& options);
tir::PrimFuncRef narrow_data_type(const tir::PrimFuncRef& func, const LowerOptions& options);
tir::PrimFuncRef decorate_device_scope(const tir::PrimFuncRef& func, const LowerOptions&);
tir::PrimFuncRef inject_permuted_layout(const tir::PrimFuncRef& func, const LowerOptions&);
tir::PrimFuncRef inject_ptx_async_copy(const tir::PrimFuncRef& func, const LowerOptions&);
tir::PrimFuncRef thread_sync(const tir::PrimFuncRef& func, const LowerOptions& options);
tir::PrimFuncRef inject_virtual_thread(const tir::PrimFuncRef& func, const LowerOptions&);
tir::PrimFuncRef inject_double_buffer(const tir::PrimFuncRef& func, const LowerOptions&);
tir::PrimFuncRef return_by_store(const tir::PrimFuncRef& func, const LowerOptions& options);
tir::PrimFuncRef remove_store_undef(const tir::PrimFuncRef& func, const LowerOptions& options);
tir::PrimFuncRef bf16_compute_legalize(const tir::PrimFuncRef& func, const LowerOptions& options);
tir::PrimFuncRef bf16_storage_legalize(const tir::PrimFuncRef& func, const LowerOptions&);
tir::PrimFuncRef fp8_compute_legalize(const tir::PrimFuncRef& func, const LowerOptions& options);
tir::PrimFuncRef fp8_storage_legalize(const tir::PrimFuncRef& func, const LowerOptions&);
tir::PrimFuncRef rewrite_unsafe_select(const tir::PrimFuncRef& func, const LowerOptions&);
tir::PrimFuncRef combine_context_call(const tir::PrimFuncRef& func, const LowerOptions&);

}  // namespace sator::passes
