// Every primitive by name, as C++ calls them: `auto loops = split(s, i, Factors{{}, int_imm(32)});`
// What each does, needs and refuses stands beside its definition in primitives/.
#pragma once

#include "schedule/primitive.h"

namespace sator::schedule {

// primitives/get.cc
extern const Primitive<BlockHandle(std::string, std::string)> get_block;
extern const Primitive<std::vector<Loop>(BlockHandle)> get_loops;
extern const Primitive<std::vector<BlockHandle>(Value)> get_child_blocks;
extern const Primitive<std::vector<BlockHandle>(BlockHandle)> get_producers;
extern const Primitive<std::vector<BlockHandle>(BlockHandle)> get_consumers;
extern const Primitive<std::vector<BlockHandle>(BlockHandle)> get_output_blocks;
// primitives/sampling.cc
extern const Primitive<Expr(std::vector<int64_t>, std::vector<double>, std::optional<int64_t>)> sample_categorical;
extern const Primitive<Factors(Loop, int64_t, int64_t, std::optional<std::vector<int64_t>>)> sample_perfect_tile;
extern const Primitive<Factors(Loop, int64_t, int64_t, int64_t, std::optional<std::vector<int64_t>>)>
    sample_partitioned_tile;
extern const Primitive<Loop(BlockHandle, std::optional<int64_t>)> sample_compute_location;
extern const Primitive<void()> enter_postproc;
/// What sample_compute_location gives where no loop is meant: compute_at and reverse_compute_at leave the block where it is, or inline it.
const Loop& root_mark();
const Loop& inline_mark();
// primitives/split.cc, loop_partition.cc, fuse.cc, reorder.cc, add_unit_loop.cc
extern const Primitive<std::vector<Loop>(Loop, Factors, bool, bool)> split;
extern const Primitive<std::vector<Loop>(Loop, Factors, bool)> loop_partition;
extern const Primitive<Loop(std::vector<Loop>, bool, bool)> fuse;
extern const Primitive<void(std::vector<Loop>)> reorder;
extern const Primitive<Loop(Value)> add_unit_loop;
// primitives/merge.cc, reorder_block_iter_var.cc
extern const Primitive<Loop(std::vector<Loop>)> merge;
extern const Primitive<void(BlockHandle, std::vector<int64_t>)> reorder_block_iter_var;
// primitives/unsafe.cc
extern const Primitive<void(BlockHandle, int, std::string)> unsafe_set_dtype;
extern const Primitive<void(BlockHandle, std::string, std::vector<int64_t>)> unsafe_hide_buffer_access;
extern const Primitive<void(BlockHandle, BlockHandle)> unsafe_subtract_early;
// primitives/for_kind.cc
extern const Primitive<void(Loop)> parallel;
extern const Primitive<void(Loop)> vectorize;
extern const Primitive<void(Loop)> unroll;
extern const Primitive<void(Loop, std::string)> bind;
// primitives/annotate.cc
extern const Primitive<void(Value, std::string, Value)> annotate;
extern const Primitive<void(Value, std::string)> unannotate;
// primitives/set_scope.cc
extern const Primitive<void(BlockHandle, BufferSelector, std::string)> set_scope;
extern const Primitive<void(BlockHandle, BufferSelector, int, int, int)> storage_align;
extern const Primitive<void(BlockHandle, BufferSelector, std::vector<int64_t>)> set_axis_separator;

// primitives/decompose_reduction.cc
extern const Primitive<BlockHandle(BlockHandle, Loop)> decompose_reduction;
// primitives/rolling_buffer.cc
extern const Primitive<void(BlockHandle, BufferSelector)> rolling_buffer;

// primitives/decompose_padding.cc
extern const Primitive<BlockHandle(BlockHandle, Loop)> decompose_padding;
// primitives/rfactor.cc
extern const Primitive<BlockHandle(Loop, int, bool)> rfactor;

// primitives/compute_inline.cc, reverse_compute_inline.cc
/// Why compute_inline refuses; nothing if it inlines the block.
MaybeReason cannot_compute_inline(const Schedule& s, const BlockHandle& block);
extern const Primitive<void(BlockHandle)> compute_inline;
extern const Primitive<void(BlockHandle)> reverse_compute_inline;

// primitives/cache.cc
extern const Primitive<BlockHandle(BlockHandle, BufferSelector, std::string, std::vector<BlockHandle>)> cache_read;
extern const Primitive<BlockHandle(BlockHandle, BufferSelector, std::string, std::vector<BlockHandle>)> cache_write;
extern const Primitive<std::vector<BlockHandle>(BlockHandle, BufferSelector, std::string)> cache_inplace;
// primitives/cache_index.cc
extern const Primitive<std::vector<BlockHandle>(BlockHandle, std::string, int64_t)> cache_index;
// primitives/read_write_at.cc
extern const Primitive<BlockHandle(Loop, BlockHandle, BufferSelector, std::string)> read_at;
extern const Primitive<BlockHandle(Loop, BlockHandle, BufferSelector, std::string)> write_at;
// primitives/reindex.cc
extern const Primitive<BlockHandle(BlockHandle, BufferSelector)> reindex;
// primitives/reindex_cache.cc
extern const Primitive<BlockHandle(BlockHandle, BufferSelector, std::string, Ref<const arith::IndexMap>)>
    reindex_cache_read;
extern const Primitive<BlockHandle(BlockHandle, BufferSelector, std::string, Ref<const arith::IndexMap>)>
    reindex_cache_write;
// primitives/pad_einsum.cc
extern const Primitive<void(BlockHandle, std::vector<int64_t>)> pad_einsum;

// primitives/compute_at.cc
/// Why compute_at refuses; nothing if it moves the block.
MaybeReason cannot_compute_at(const Schedule& s, const BlockHandle& block, const Loop& loop);
extern const Primitive<void(BlockHandle, Loop, bool, int)> compute_at;
extern const Primitive<void(BlockHandle, Loop, bool, int)> reverse_compute_at;

// primitives/blockize.cc
extern const Primitive<BlockHandle(Value, bool)> blockize;
// primitives/tensorize.cc
extern const Primitive<void(Value, std::string, bool)> tensorize;

// primitives/transform_layout.cc, transform_block_layout.cc
extern const Primitive<void(BlockHandle, BufferSelector, Ref<const arith::IndexMap>, Value, bool)> transform_layout;
extern const Primitive<void(BlockHandle, Ref<const arith::IndexMap>)> transform_block_layout;

}  // namespace sator::schedule
