// The primitives in the order of the documentation. A new primitive is one line here and one file in primitives/.
#include "schedule/primitives.h"

namespace sator::schedule {

const std::vector<const AnyPrimitive*>& primitives() {
  static const std::vector<const AnyPrimitive*> all = {
      &get_block,
      &get_loops,
      &get_child_blocks,
      &get_producers,
      &get_consumers,
      &get_output_blocks,
      &sample_categorical,
      &sample_perfect_tile,
      &sample_partitioned_tile,
      &sample_compute_location,
      &split,
      &loop_partition,
      &fuse,
      &reorder,
      &merge,
      &add_unit_loop,
      &parallel,
      &vectorize,
      &unroll,
      &bind,
      &annotate,
      &unannotate,
      &set_scope,
      &storage_align,
      &set_axis_separator,
      &cache_read,
      &cache_write,
      &cache_inplace,
      &cache_index,
      &read_at,
      &write_at,
      &reindex,
      &reindex_cache_read,
      &reindex_cache_write,
      &pad_einsum,
      &compute_at,
      &reverse_compute_at,
      &compute_inline,
      &reverse_compute_inline,
      &decompose_reduction,
      &decompose_padding,
      &rfactor,
      &transform_layout,
      &transform_block_layout,
      &blockize,
      &tensorize,
      &reorder_block_iter_var,
      &rolling_buffer,
      &enter_postproc,
      &unsafe_set_dtype,
      &unsafe_hide_buffer_access,
      &unsafe_subtract_early,
  };
  return all;
}

}  // namespace sator::schedule
