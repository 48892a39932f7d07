// A product on tensor cores: warps multiply matrices of 16 x 16 (wmma), from parts of the operands that are fetched to shared memory
// while the part before is multiplied.
#include "rules/gpu/matmul.h"

#include "rules/gpu/rules.h"

namespace sator::rules::gpu {

using namespace schedule;

namespace {

/// Which tensor cores: of what they multiply and how they sum it.
struct TensorCore {
  DType in, out;
  std::string_view in_name, out_name;  ///< in the names of the intrinsics
};

/// How a thread block's tile is cut: warps_i x warps_j warps of each_i x each_j matrices of 16 x 16; `depth` matrices at a time along K.
struct WarpTile {
  int64_t warps_i = 4, warps_j = 4;
  int64_t each_i = 2, each_j = 2;
  int64_t depth = 4;
  int align = 16, align_offset = 8;  ///< of rows in shared memory, in elements: rows of a matrix lie in different banks
};

constexpr int64_t kMatrix = 16;        ///< rows, columns and terms of one instruction
constexpr int64_t kWarp = 32;          ///< threads
constexpr int64_t kVector = 4;         ///< elements of one load or store
constexpr int64_t kSmallest = 64;      ///< rows, columns or terms: up to here most of a tile would be padding
constexpr int kTensorCoresSince = 70;  ///< compute capability

Value numbers(std::initializer_list<int64_t> list) {
  List out;
  for (int64_t v : list) out.emplace_back(v);
  return out;
}

/// A part of an operand in shared memory, fetched by all warps.
BlockHandle fetch_by_warps(Schedule& s, const BlockHandle& block, int64_t operand, const Loop& at,
                           const WarpTile& tile) {
  const BlockHandle fetch = cache_read(s, block, BufferSelector{false, operand}, "shared.dyn");
  compute_at(s, fetch, at);
  const Loop all = fuse_all(s, last(get_loops(s, fetch), 2));
  const std::vector<Loop> parts = cut(s, all, {0, tile.warps_i * tile.warps_j, kWarp, kVector});
  bind(s, parts[2], "threadIdx.x");
  bind(s, parts[1], "threadIdx.y");
  vectorize(s, parts[3]);
  storage_align(s, fetch, BufferSelector{true, int64_t{0}}, -2, tile.align, tile.align_offset);
  annotate(s, fetch, "tir.manifest_shared_memory_local_stage", Value(1));
  annotate(s, fetch, "double_buffer_scope", Value(0));
  return fetch;
}

/// Cuts the block's two innermost loops into matrices. Returns the loops over matrices, then those inside of one.
std::vector<Loop> cut_to_matrices(Schedule& s, const BlockHandle& block) {
  const std::vector<Loop> own = last(get_loops(s, block), 2);
  const std::vector<Loop> i = cut(s, own[0], {0, kMatrix}), j = cut(s, own[1], {0, kMatrix});
  const std::vector<Loop> order = {i[0], j[0], i[1], j[1]};
  reorder(s, order);
  return order;
}

void load_matrices(Schedule& s, const BlockHandle& block, const std::string& intrinsic) {
  const std::vector<Loop> loops = cut_to_matrices(s, block);
  unroll(s, loops[0]);
  unroll(s, loops[1]);
  tensorize(s, loops[2], intrinsic);
}

/// The loop that is `from_last` loops from the innermost one.
Loop loop_from_last(Schedule& s, const BlockHandle& block, size_t from_last) {
  return last(get_loops(s, block), from_last).at(0);
}

MaybeReason not_for_tensor_cores(const Schedule& s, const GpuContext& context, const MatmulForm& form,
                                 const TensorCore& core) {
  if (context.gpu.compute_capability < kTensorCoresSince)
    return because(text("the GPU is of sm_", context.gpu.compute_capability), "tensor cores, which begin at sm_70");
  if (form.in_dtype != core.in || form.out_dtype != core.out)
    return because(text("products of ", form.in_dtype, " are summed in ", form.out_dtype),
                   text("products of ", core.in, " summed in ", core.out));
  if (s.func()->attrs.contains("dlight.do_not_tensorize"))
    return because("the function has the attribute dlight.do_not_tensorize", "a function without it");
  for (size_t axis = 1; axis < 4; ++axis) {
    const auto extent = as_int(form.extents[axis]);
    if (extent && *extent <= kSmallest)
      return because(text("axis ", std::string_view("SIJK")[axis], " has ", *extent, " values"),
                     text("more than ", kSmallest, " rows, columns and terms"));
  }
  return {};
}

MaybeReason schedule_for_tensor_cores(Schedule& s, const MatmulForm& form, const TensorCore& core, const WarpTile& tile,
                                      GpuChoice& choice) {
  const int64_t rows = kMatrix * tile.warps_i * tile.each_i, columns = kMatrix * tile.warps_j * tile.each_j;
  choice = {.block = form.block->text,
            .form = describe(form),
            .configuration = text("tiles of ",
                                  rows,
                                  " x ",
                                  columns,
                                  ", ",
                                  kMatrix * tile.depth,
                                  " terms at a time, ",
                                  tile.warps_i,
                                  " x ",
                                  tile.warps_j,
                                  " warps of ",
                                  tile.each_i,
                                  " x ",
                                  tile.each_j,
                                  " matrices, ",
                                  core.in,
                                  " to ",
                                  core.out)};

  const std::vector<Loop> loops = to_normal_form(s, form, {rows, columns, kMatrix * tile.depth});
  const BlockHandle& inner = form.block;
  const std::vector<Loop> i = cut(s, loops[1], {0, kMatrix}), j = cut(s, loops[2], {0, kMatrix}),
                          k = cut(s, loops[3], {0, kMatrix});
  reorder(s, std::vector<Loop>{i[0], j[0], k[0], i[1], j[1], k[1]});
  const BlockHandle outer = blockize(s, i[1]);

  const std::vector<Loop> is = cut(s, i[0], {0, 1, tile.warps_i, tile.each_i}),
                          js = cut(s, j[0], {1, 0, tile.warps_j, tile.each_j}), ks = cut(s, k[0], {0, tile.depth});
  // The steps of one part: fetch A, hold, store, the same for B, multiply; those of one matrix: load A, load B, multiply.
  annotate(s, ks[0], "software_pipeline_order", numbers({0, 3, 1, 4, 5, 2, 6}));
  annotate(s, ks[0], "software_pipeline_stage", numbers({0, 0, 0, 0, 0, 1, 1}));
  annotate(s, ks[1], "software_pipeline_order", numbers({0, 1, 2}));
  annotate(s, ks[1], "software_pipeline_stage", numbers({0, 0, 1}));
  reorder(s, std::vector<Loop>{is[0], js[0], is[1], js[1], js[2], is[2], ks[0], ks[1], is[3], js[3]});
  const Loop blocks_i = fuse_all(s, {is[0], js[0]}), blocks_j = fuse_all(s, {is[1], js[1]}),
             warp = fuse_all(s, {js[2], is[2]});
  bind(s, loops[0], "blockIdx.z");
  bind(s, blocks_i, "blockIdx.x");
  bind(s, blocks_j, "blockIdx.y");
  bind(s, warp, "threadIdx.y");

  const BlockHandle a = fetch_by_warps(s, outer, 0, ks[0], tile), b = fetch_by_warps(s, outer, 1, ks[0], tile);
  inline_producers(s, a);
  inline_producers(s, b);
  const BlockHandle a_matrix = cache_read(s, outer, BufferSelector{false, int64_t{0}}, "wmma.matrix_a"),
                    b_matrix = cache_read(s, outer, BufferSelector{false, int64_t{1}}, "wmma.matrix_b");
  compute_at(s, a_matrix, ks[1]);
  compute_at(s, b_matrix, ks[1]);
  const BufferSelector write_0{true, int64_t{0}};
  const BlockHandle result = cache_write(s, outer, write_0, "shared.dyn");
  storage_align(s, result, write_0, -2, 16, 4);
  const BlockHandle stored = cache_write(s, outer, write_0, "wmma.accumulator");
  reverse_compute_at(s, stored, warp);
  reverse_compute_at(s, result, warp);
  cut_to_matrices(s, stored);
  const BlockHandle init = get_child_blocks(s, decompose_reduction(s, outer, ks[0])).at(0);

  const std::string load = text("wmma_load_16x16x16_", core.in_name);
  load_matrices(s, a_matrix, load + "_a_shared_dyn");
  load_matrices(s, b_matrix, load + "_b_trans_shared_dyn");
  tensorize(s, loop_from_last(s, init, 2), text("wmma_fill_16x16x16_", core.out_name));
  tensorize(s, loop_from_last(s, stored, 2), text("wmma_store_16x16x16_", core.out_name, "_shared_dyn"));
  tensorize(
      s, loop_from_last(s, inner, 3), text("wmma_sync_16x16x16_", core.in_name, core.in_name, core.out_name, "_trans"));
  if (MaybeReason reason = inline_consumers(s, result)) return reason;
  const std::vector<Loop> parts = cut(s, fuse_all(s, last(get_loops(s, result), 2)), {0, kWarp, kVector});
  bind(s, parts[1], "threadIdx.x");
  vectorize(s, parts[2]);
  return {};
}

}  // namespace

MaybeReason apply_matmul_f16_tensor_core(Schedule& s, const GpuContext& context, GpuChoice& choice) {
  MatmulForm form;
  if (MaybeReason reason = find_matmul(s, form)) return reason;
  const TensorCore sums_f32{f16, f32, "f16", "f32"}, sums_f16{f16, f16, "f16", "f16"};
  const TensorCore& core = form.out_dtype == f16 ? sums_f16 : sums_f32;
  if (MaybeReason reason = not_for_tensor_cores(s, context, form, core)) return reason;
  return schedule_for_tensor_cores(s, form, core, {}, choice);
}

MaybeReason apply_matmul_int8_tensor_core(Schedule& s, const GpuContext& context, GpuChoice& choice) {
  MatmulForm form;
  if (MaybeReason reason = find_matmul(s, form)) return reason;
  const TensorCore core{i8, i32, "s8", "s32"};
  if (MaybeReason reason = not_for_tensor_cores(s, context, form, core)) return reason;
  return schedule_for_tensor_cores(s, form, core, {.depth = 1, .align = 32, .align_offset = 16}, choice);
}

}  // namespace sator::rules::gpu
