// What the primitives that touch buffers share.
#pragma once

#include "schedule/schedule.h"

namespace sator::schedule {

/// The buffer a selector means. Errors: the block does not touch it; lists those it touches.
BufferRef selected_buffer(const Schedule& s, const BlockHandle& block, const BufferSelector& which, bool write_side);
/// Errors: not a storage scope; lists the nearest.
void require_scope(const Schedule& s, const std::string& scope);
/// The program with one buffer replaced everywhere (in loads, stores, regions and its allocation).
tir::Stmt replace_buffer(const tir::Stmt& body, const BufferRef& old, const BufferRef& fresh);
/// Some statement uses the buffer's pointer itself, or the address of an element, so that what it touches is unknown; or
/// the buffer has another name for a part of it, or is one.
bool is_used_opaquely(const tir::Stmt& scope, const BufferRef& buffer);

}  // namespace sator::schedule
