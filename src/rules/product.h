// Products in register tiles: what the rules for floats and for 8-bit integers share.
#pragma once

#include "rules/low_batch.h"
#include "rules/rule.h"

namespace sator::rules {

/// How a product C[i, j] += A[i, k] * B[j, k] is cut.
struct ProductPlan {
  schedule::BlockHandle product;
  schedule::BlockHandle operand;  ///< makes B panel by panel where it is used; null: B is read, or made on the way
  /// Makes A for a tile of rows at a time, once for all columns that the tile meets; null: A is read, or made on the way.
  schedule::BlockHandle left = nullptr;
  int64_t k_group = 1;      ///< consecutive k whose products are summed in one instruction
  bool sums_pairs = false;  ///< the products of a k_group are floats, whose order the instruction chooses
  /// Of 2 * k_group consecutive k, every second one is in one instruction: of codes of 4 bits these are a word's bytes.
  bool every_second = false;
  int64_t k_whole = 1;   ///< consecutive k whose codes fill words, where `operand` takes k_group of them out at once
  int64_t k_unroll = 1;  ///< consecutive k that are written out: those whose codes share a word
  int64_t k_shared =
      1;  ///< consecutive k, a multiple of k_unroll, that a loop of its own goes over: those of one scale
  /// What the product sums, where that are sums themselves, of groups of k: P[i, j, g] += A[i, k] * B[j, k], with `k_group`
  /// and `operand` for this block; the product itself goes over the groups. Null otherwise.
  schedule::BlockHandle partial;
  /// The right operand, which nobody makes, is laid out in panels before: its rows lie so far apart that they share ways of caches.
  bool packs_right = false;
};

/// The most rows of the product that the function is called with; nothing where there is no bound.
std::optional<int64_t> most_rows(const schedule::Schedule& s, const schedule::BlockHandle& product);
/// One to kFewRows rows (low_batch.h): the time goes into reading weights, so each is read, and made of its code, once.
inline bool are_few(std::optional<int64_t> rows) { return rows && *rows <= kFewRows; }

/// Puts every block but the product and its operand into its consumers, then tiles. Errors: a primitive refuses.
void schedule_product_tiles(schedule::Schedule& s, const ProductPlan& plan, const target::CpuLevel& level);

// tile_product.cc: the same on matrix tiles (AMX), by T.tile_product.
/// Whether the level has tiles, and the product, or its partial sums, reads rows of A side by side and has a panel of columns.
bool fits_matrix_tiles(const tir::Block& product, const target::CpuLevel& level);
/// Groups of k are `k_group` long: 2 of bfloat16, 4 of bytes. Errors: a primitive refuses.
void schedule_on_matrix_tiles(schedule::Schedule& s, const ProductPlan& plan, const target::CpuLevel& level);

// What both have in common.
/// So many columns, a multiple of kPanel, in as many panels as this CPU reads best, for a row alone that reads weights without scales.
int64_t columns_of_one_row(const target::CpuLevel& level, std::optional<int64_t> columns, int64_t lanes);
/// The operand's panels [columns / 32][k / group][32][group] are made where they are used, as packed weights lie.
///   whole   codes that fill whole words, a multiple of the group; 1: they are made one by one
void make_panel_wise(schedule::Schedule& s, const schedule::BlockHandle& operand, int64_t group, int64_t whole,
                     const schedule::Loop& at);
/// The block that stores the product's sums once they are whole, while the product keeps them in local memory: its only
/// consumer, or a copy.
///   own_blocks   how many blocks there are up to the product
schedule::BlockHandle block_that_stores(schedule::Schedule& s, const schedule::BlockHandle& product, size_t own_blocks);
/// What the block reads by its columns, in panels: weights, their scales. Names of buffers.
std::vector<std::string> read_by_columns(const tir::Block& block, const VarRef& column);
/// Tells InjectPrefetch to ask for the buffers in the loop.
///   key   passes::kSoftwarePrefetch: `iterations` ahead; passes::kPrefetchForNext: so many share what is asked for
void ask_for(schedule::Schedule& s, const std::vector<std::string>& buffers, int64_t iterations,
             const schedule::Loop& loop, const char* key);
/// Tells LowerDotProducts that one instruction sums the loop.
void sum_in_pairs(schedule::Schedule& s, const schedule::Loop& k);

}  // namespace sator::rules
