// What the rules for a matrix times one vector, and times a few, share.
#pragma once

#include "rules/gpu/blocks.h"

namespace sator::rules::gpu {

/// How the rows (S) and terms (R) of a product with a vector are shared. threads_s threads along threadIdx.y take each_s rows each;
/// threads_r threads along threadIdx.x take each_r terms each at a time, of which `lanes` at once.
struct GemvTile {
  int64_t threads_s = 16, threads_r = 32;
  int64_t each_s = 1, each_r = 1;
  int64_t lanes = 4;
  int64_t vector_load = 8;  ///< most elements of one load of the vector
  int64_t unroll = 256;     ///< statements
};
/// Halves threads until a thread block has at most `most`.
void fit_threads(GemvTile& tile, int64_t most);
/// How many terms a thread takes at a time so that all take as many: 1, 2, 4 or 8.
int64_t terms_of_thread(std::optional<int64_t> terms, int64_t threads);
/// "16 rows x 32 threads, 8 terms each at a time, 4 lanes"
std::string words_of(const GemvTile& tile);

/// The vector in shared memory, fetched by all threads of a thread block, where the loop `at` begins; nothing is done where sizes are
/// symbolic or too large.
MaybeReason vector_to_shared_memory(Schedule& s, const GpuContext& context, const BlockHandle& block,
                                    const std::vector<BufferRef>& vectors, const Loop& at, const GemvTile& tile);

/// Loops over the rows of a thread block: its threads, and the rows of a thread.
struct RowLoops {
  Loop thread, each;
};
/// Cuts the rows of one thread block; nothing where they are more than its threads take.
std::optional<RowLoops> cut_rows(Schedule& s, const std::vector<Loop>& rows, const GemvTile& tile);
/// Why cut_rows gave nothing.
Reason rows_of_a_tile(const BlockHandle& block);

/// Computes what follows with the result, inside of the loop `at`.
///   around  loops from the outermost one to `at`
MaybeReason place_epilogue(Schedule& s, const BlockHandle& block, const BlockHandle& epilogue, const Loop& at,
                           size_t around, const GemvTile& tile);

}  // namespace sator::rules::gpu
