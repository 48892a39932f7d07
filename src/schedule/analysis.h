// What the primitives' contracts rest on: dependences in a scope, complete and reduction blocks, compact dataflow.
// The definitions are TensorIR's.
#pragma once

#include "arith/intset.h"
#include "schedule/schedule.h"

namespace sator::schedule {

enum class DependencyKind { read_after_write, write_after_write, write_after_read };
struct Dependency {
  int src, dst;  ///< sites
  DependencyKind kind;
};

/// The child blocks of a scope (or of a part of it) and who waits for whom.
class ScopeAnalysis {
 public:
  ScopeAnalysis(const Schedule& s, int scope_site) : ScopeAnalysis(s, s.sites().child_blocks(scope_site)) {}
  /// Only these blocks of one scope count: the "local" forms of the definitions.
  ScopeAnalysis(const Schedule& s, std::vector<int> blocks);

  const std::vector<int>& blocks() const { return blocks_; }
  const std::vector<Dependency>& dependencies() const { return dependencies_; }
  std::vector<int> producers(int block) const;
  std::vector<int> consumers(int block) const;
  const std::vector<int>& writers(const BufferRef& buffer) const;
  /// The only writer of all that it writes.
  bool is_dominant(int block) const;

  // Each gives the violated condition, or nothing.
  MaybeReason not_complete(int block) const;
  MaybeReason not_reduction(int block) const;
  MaybeReason not_complete_or_reduction(int block) const;

 private:
  const Schedule& s_;
  std::vector<int> blocks_;
  std::vector<Dependency> dependencies_;
  PooledMap<BufferRef, std::vector<int>> writers_;
};

/// Annotation of a reduction block whose init decompose_reduction takes out next (rfactor leaves it so): in what is asked of the
/// block until then, its predicate does not count. It must be gone before the program runs.
inline constexpr const char* kInitFollows = "sator.init_follows";

/// The bindings form a quasi-affine map of the loops around the block that takes every value.
///   outermost_loop  only it and the loops below it count, those above are constants; -1: all loops
bool has_affine_binding(const Schedule& s, int block_site, int outermost_loop = -1);
/// Why the instances that run, under the predicate, might not be all of the iterators' domains; empty if they are.
///   kind  only iterators of this kind count
std::string misses_values(const Schedule& s, int block_site, std::optional<tir::IterKind> kind = {});
/// Is the consumed box, as far as it lies in the buffer, inside the produced one?
bool covers(const BufferRef& buffer, const std::vector<arith::IntSet>& produced,
            const std::vector<arith::IntSet>& consumed, arith::Analyzer& analyzer);
/// What the block reads inside its scope has been written before, all of it; of one buffer alone where that is given.
bool has_region_cover(const Schedule& s, const ScopeAnalysis& scope, int block_site, const BufferRef& of = nullptr);
/// All blocks under `site` are complete or reduction blocks, seen within it.
MaybeReason not_compact_dataflow(const Schedule& s, int site);
/// The scope's blocks form a pipeline of stages: covered reads, no write after read, nothing but blocks and loops.
MaybeReason not_stage_pipeline(const Schedule& s, int scope_site);

/// Some block of the function allocates the buffer.
bool is_allocated(const Schedule& s, const BufferRef& buffer);
/// Writes a buffer not allocated in its scope block (or, for the root scope, in the function).
bool is_output_block(const Schedule& s, int block_site);

/// Whether one of the regions is a part of the buffer.
bool lists(const std::vector<tir::BufferRegionRef>& regions, const BufferRef& buffer);

/// iterator variable -> its value at the realize.
VarMap bindings_of(const tir::BlockRealize& realize);
std::vector<RangeRef> substitute_region(const std::vector<RangeRef>& region, const VarMap& map);
/// Memory of this scope is shared by the threads of an axis: their loops count as inside of the block that fills it.
bool is_shared_among(const std::string& scope, const std::string& thread);
/// The ranges of the loops from `low` (inclusive) up to `high` (exclusive); a storage scope that threads share relaxes
/// the thread loops above too.
arith::RangeMap loop_domain(const Sites& sites, int low, int high, const std::string& relax_scope = "");

}  // namespace sator::schedule
