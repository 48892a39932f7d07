// What the instances of a block read and write.
#pragma once

#include <unordered_map>

#include "tir/nodes.h"

namespace sator::tir {

/// The buffers that a block may access, by their pointers.
using VisibleBuffers = std::unordered_map<VarRef, BufferRef>;

struct BlockRegions {
  std::vector<BufferRegionRef> reads, writes;
  std::vector<VarRef> opaque;  ///< pointers of buffers that are used as such, so that what they access is unknown
};

/// The regions that one instance of `block` accesses, in terms of its iterators and what is free in it: the union of its
/// accesses, each relaxed over the loops inside the block. Blocks inside count by their own regions. A buffer that is
/// matched inside the block counts as the region that it stands for. Only buffers whose pointer is in `visible` count.
/// With an init, written buffers are no reads: a reduction's read of its own sum is implied.
BlockRegions block_regions(const Block& block, const VisibleBuffers& visible);

/// A block without iterators around a statement, with its regions; buffers that are used as pointers count whole.
///   allocated  buffers of its own
BlockRef block_around(const Stmt& body, const VisibleBuffers& visible, std::vector<BufferRef> allocated = {});

}  // namespace sator::tir
