// A default schedule for one kind of tensor function, and what rules have in common.
#pragma once

#include <string_view>
#include <vector>

#include "schedule/schedule.h"
#include "target/cpu.h"

namespace sator::rules {

/// One row of the table of rules. The first rule that takes a function schedules it.
struct CpuRule {
  std::string_view name;
  std::string_view does;
  /// Why the rule does not take the function; nothing if it has scheduled it. What it left half done is thrown away.
  schedule::MaybeReason (*apply)(schedule::Schedule& s, const target::CpuLevel& level);
};

/// In the order in which they are tried; the last one takes everything.
const std::vector<CpuRule>& cpu_rules();

/// A reshape: it stays as it is, for it becomes a view.
schedule::MaybeReason schedule_view(schedule::Schedule& s, const target::CpuLevel& level);
/// A sum of products of 8-bit integers in 32 bits: four of them in one instruction.
schedule::MaybeReason schedule_integer_product(schedule::Schedule& s, const target::CpuLevel& level);
/// A sum of products of bfloat16 in float32 whose right operand lies in pairs: two of them in one instruction.
schedule::MaybeReason schedule_bf16_product(schedule::Schedule& s, const target::CpuLevel& level);
/// A sum of products: C[i, j] += A[.., k] * B[.., k].
schedule::MaybeReason schedule_product(schedule::Schedule& s, const target::CpuLevel& level);
/// Reductions over the last axis and what is done with them, row by row.
schedule::MaybeReason schedule_rows(schedule::Schedule& s, const target::CpuLevel& level);
/// Every block for itself: outer loop parallel, inner loop vectorised.
schedule::MaybeReason schedule_anything(schedule::Schedule& s, const target::CpuLevel& level);

/// Annotation of a block that subtracts c * S from sums P of products A * B: S are the sums of those A, so that what is summed may be
/// A * (B - c) instead.
inline constexpr const char* kSubtractsSums = "sator.subtracts_sums";

/// Columns of a panel of packed weights, at every level.
constexpr int64_t kPanel = 32;

/// Tries a primitive; what it refuses stays as it is.
template <class F>
bool attempt(F&& f) {
  try {
    f();
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// The function as one copy, where it has several and they keep all elements in their order: scheduled so, it is a view. Nothing
/// of any other function, and of one that is a single copy already.
tir::PrimFuncRef reshape_in_one_copy(const tir::PrimFuncRef& f);

/// A schedule of the function whose first steps ask for all of its blocks, so that later ones name what rules find by
/// looking: its trace is then text that replays.
schedule::Schedule named_schedule(const tir::PrimFuncRef& f, const std::string& name);
/// The blocks of the root scope in program order.
std::vector<schedule::BlockHandle> leaf_blocks(const schedule::Schedule& s);
/// Puts every block but those of `kept` into its consumers, as long as one goes.
void inline_all(schedule::Schedule& s, const std::vector<schedule::BlockHandle>& kept = {});
/// Puts blocks but those of `kept` into their consumers where nothing expensive is computed more often by that.
void inline_cheap(schedule::Schedule& s, const std::vector<schedule::BlockHandle>& kept = {});
/// Vectorises the block's innermost loop if it is spatial and long enough.
void vectorize_last(schedule::Schedule& s, const schedule::BlockHandle& block);
/// A factor for `split` of loop l.
std::optional<Expr> factor(const schedule::Loop& l, int64_t value);
/// A block that sums products of two operands (or each less another: of codes with a minimum) over its last iterator, of two spatial
/// ones, each a loop; null if there is none.
schedule::BlockHandle product_block(const schedule::Schedule& s);
enum class Side : uint8_t { left, right };
/// The block whose two-dimensional result the product [i, j, (g,) k] reads as its left operand [i, k] or its right one [j, k],
/// and nobody else; null if there is none.
schedule::BlockHandle operand_block(const schedule::Schedule& s, const schedule::BlockHandle& product, Side side);

/// The block C[i, j] += float32(A[.., k]) * float32(B[.., k]) of bfloat16 with an even number of k, once the operands that
/// are widened in front of it are in it; null, and perhaps some of them in it, if there is none.
schedule::BlockHandle bf16_product_block(schedule::Schedule& s);

/// Bits of the codes that the block cuts out of 32-bit words; 0 if it does not.
int64_t code_bits(const tir::Block& block);
/// Consecutive columns for which a block of two axes reads the same of some buffer, as the scales of a group are: the smallest
/// number that is a multiple of `unit` and larger; 0 if there is none.
int64_t shared_columns(const tir::Block& block, int64_t unit);

}  // namespace sator::rules
