// Tensor programs (TensorIR): loops, blocks, regions, functions. Semantics: docs/tir.md.
#pragma once

#include "ir/expr.h"
#include "ir/module.h"

namespace sator::tir {

struct StmtNode : NodeBase {};
using Stmt = Ref<const StmtNode>;

/// What the instances of a block iterator may do among each other: spatial ones are independent, reduction ones are
/// combined by a commutative reduction, scan ones run in order, opaque ones are not touched.
enum class IterKind { spatial, reduce, scan, opaque };

/// An iterator of a block: `var` takes the values of `dom`.
struct IterVar final : Node<IterVar> {
  RangeRef dom;
  VarRef var;
  IterKind kind = IterKind::spatial;
  static constexpr auto fields() {
    return std::tuple{field("dom", &IterVar::dom), definition("var", &IterVar::var), field("kind", &IterVar::kind)};
  }
};
using IterVarRef = Ref<const IterVar>;

/// A box of a buffer: one range per dimension.
struct BufferRegion final : Node<BufferRegion> {
  BufferRef buffer;
  std::vector<RangeRef> region;
  static constexpr auto fields() {
    return std::tuple{field("buffer", &BufferRegion::buffer), field("region", &BufferRegion::region)};
  }
};
using BufferRegionRef = Ref<const BufferRegion>;

/// `buffer` is another name for the box `source` of a larger buffer.
struct MatchBuffer final : Node<MatchBuffer> {
  BufferRef buffer;
  BufferRegionRef source;
  static constexpr auto fields() {
    return std::tuple{definition("buffer", &MatchBuffer::buffer), field("source", &MatchBuffer::source)};
  }
};
using MatchBufferRef = Ref<const MatchBuffer>;

/// A block's handle: it stays the same object while the block is rewritten.
struct BlockName final : Node<BlockName> {
  static constexpr bool kHasIdentity = true;
  std::string text;
  static constexpr auto fields() { return std::tuple{unseen("text", &BlockName::text)}; }
};
using BlockNameRef = Ref<const BlockName>;

/// A unit of computation that schedules move as a whole: an iteration domain and what each instance reads and writes.
/// `init` (or null) runs before `body` when all reduction iterators are at their first value.
struct Block final : Node<Block, StmtNode> {
  std::vector<IterVarRef> iter_vars;
  std::vector<BufferRegionRef> reads, writes;
  BlockNameRef name;
  Stmt init;
  std::vector<BufferRef> alloc_buffers;
  std::vector<MatchBufferRef> match_buffers;
  Attrs annotations;
  Stmt body;
  static constexpr auto fields() {
    return std::tuple{field("iter_vars", &Block::iter_vars),
                      definition("alloc_buffers", &Block::alloc_buffers),
                      field("match_buffers", &Block::match_buffers),
                      field("reads", &Block::reads),
                      field("writes", &Block::writes),
                      unseen("name", &Block::name),
                      field("annotations", &Block::annotations),
                      field("init", &Block::init),
                      field("body", &Block::body)};
  }
};
using BlockRef = Ref<const Block>;

/// Runs a block for the given values of its iterators, where `predicate` holds.
struct BlockRealize final : Node<BlockRealize, StmtNode> {
  std::vector<Expr> values;
  Expr predicate;
  BlockRef block;
  static constexpr auto fields() {
    return std::tuple{field("values", &BlockRealize::values),
                      field("predicate", &BlockRealize::predicate),
                      field("block", &BlockRealize::block)};
  }
};
using BlockRealizeRef = Ref<const BlockRealize>;

enum class LoopKind { serial, parallel, vectorized, unrolled, thread_binding };

/// for var in [min, min + extent): body. A thread_binding loop names its axis in `thread`: blockIdx.*, threadIdx.*,
/// vthread.*, or an axis of a described chip: pe.x, pe.y.
struct For final : Node<For, StmtNode> {
  VarRef var;
  Expr min, extent;
  LoopKind kind = LoopKind::serial;
  std::string thread;
  Attrs annotations;
  Stmt body;
  static constexpr auto fields() {
    return std::tuple{definition("var", &For::var),
                      field("min", &For::min),
                      field("extent", &For::extent),
                      field("kind", &For::kind),
                      field("thread", &For::thread),
                      field("annotations", &For::annotations),
                      field("body", &For::body)};
  }
};
using ForRef = Ref<const For>;

/// Statements one after the other; none of them is a Seq itself.
struct Seq final : Node<Seq, StmtNode> {
  std::vector<Stmt> stmts;
  static constexpr auto fields() { return std::tuple{field("stmts", &Seq::stmts)}; }
  void finish();
};

struct BufferStore final : Node<BufferStore, StmtNode> {
  BufferRef buffer;
  Expr value;
  std::vector<Expr> indices;
  static constexpr auto fields() {
    return std::tuple{field("buffer", &BufferStore::buffer),
                      field("value", &BufferStore::value),
                      field("indices", &BufferStore::indices)};
  }
};

struct IfThenElse final : Node<IfThenElse, StmtNode> {
  Expr condition;
  Stmt then_case, else_case;  ///< else_case may be null
  static constexpr auto fields() {
    return std::tuple{field("condition", &IfThenElse::condition),
                      field("then_case", &IfThenElse::then_case),
                      field("else_case", &IfThenElse::else_case)};
  }
};

struct While final : Node<While, StmtNode> {
  Expr condition;
  Stmt body;
  static constexpr auto fields() {
    return std::tuple{field("condition", &While::condition), field("body", &While::body)};
  }
};

struct LetStmt final : Node<LetStmt, StmtNode> {
  VarRef var;
  Expr value;
  Stmt body;
  static constexpr auto fields() {
    return std::tuple{field("value", &LetStmt::value), definition("var", &LetStmt::var), field("body", &LetStmt::body)};
  }
};

/// An axis of a thread launch ("threadIdx.x", "vthread", ...) as the node of the attributes "thread_extent" and
/// "virtual_thread": inside, `var` is the thread's coordinate.
struct ThreadAxis final : Node<ThreadAxis> {
  VarRef var;
  std::string tag;
  static constexpr auto fields() {
    return std::tuple{definition("var", &ThreadAxis::var), field("tag", &ThreadAxis::tag)};
  }
};

/// A commutative, associative combination of tuples: result(lhs, rhs); `identity` combines to the other operand.
struct CommReducer final : Node<CommReducer> {
  std::vector<VarRef> lhs, rhs;
  std::vector<Expr> result, identity;
  static constexpr auto fields() {
    return std::tuple{definition("lhs", &CommReducer::lhs),
                      definition("rhs", &CommReducer::rhs),
                      field("result", &CommReducer::result),
                      field("identity", &CommReducer::identity)};
  }
};

/// An attribute `key` of `node` (a variable, buffer, ThreadAxis or CommReducer) holds in `body`.
struct AttrStmt final : Node<AttrStmt, StmtNode> {
  NodeRef node;
  std::string key;
  Expr value;
  Stmt body;
  static constexpr auto fields() {
    return std::tuple{field("node", &AttrStmt::node),
                      field("key", &AttrStmt::key),
                      field("value", &AttrStmt::value),
                      field("body", &AttrStmt::body)};
  }
};

struct AssertStmt final : Node<AssertStmt, StmtNode> {
  Expr condition, message;
  Stmt body;
  static constexpr auto fields() {
    return std::tuple{field("condition", &AssertStmt::condition),
                      field("message", &AssertStmt::message),
                      field("body", &AssertStmt::body)};
  }
};

struct Evaluate final : Node<Evaluate, StmtNode> {
  Expr value;
  static constexpr auto fields() { return std::tuple{field("value", &Evaluate::value)}; }
};

/// Memory for `body`: `extents` elements of `dtype` behind the pointer `data`.
struct Allocate final : Node<Allocate, StmtNode> {
  VarRef data;
  DType dtype;
  std::vector<Expr> extents;
  Expr condition;
  Attrs annotations;
  Stmt body;
  static constexpr auto fields() {
    return std::tuple{definition("data", &Allocate::data),
                      field("dtype", &Allocate::dtype),
                      field("extents", &Allocate::extents),
                      field("condition", &Allocate::condition),
                      field("annotations", &Allocate::annotations),
                      field("body", &Allocate::body)};
  }
};

/// Constant data behind a pointer. `bytes` are the elements, little-endian, row-major.
struct AllocateConst final : Node<AllocateConst, StmtNode> {
  VarRef data;
  DType dtype;
  std::vector<Expr> extents;
  std::string bytes;
  Stmt body;
  static constexpr auto fields() {
    return std::tuple{definition("data", &AllocateConst::data),
                      field("dtype", &AllocateConst::dtype),
                      field("extents", &AllocateConst::extents),
                      field("bytes", &AllocateConst::bytes),
                      field("body", &AllocateConst::body)};
  }
};

/// A buffer over memory that a pointer in scope names.
struct DeclBuffer final : Node<DeclBuffer, StmtNode> {
  BufferRef buffer;
  Stmt body;
  static constexpr auto fields() {
    return std::tuple{definition("buffer", &DeclBuffer::buffer), field("body", &DeclBuffer::body)};
  }
};

/// A function over buffers and scalars. A parameter that stands for a buffer is a handle with an entry in buffer_map;
/// symbolic sizes in the buffers' shapes are bound from the arguments.
struct PrimFunc final : Node<PrimFunc, FuncNode> {
  std::vector<VarRef> params;
  std::vector<std::pair<VarRef, BufferRef>> buffer_map;  ///< in the order of params
  Stmt body;
  DType ret_dtype;
  /// A step of a schedule rewrote it: rules leave its loops. Where a function comes from is no part of what it states,
  /// so neither equality nor the printed text know of it.
  bool by_schedule = false;
  static constexpr auto fields() {
    return std::tuple{definition("params", &PrimFunc::params),
                      definition("buffer_map", &PrimFunc::buffer_map),
                      field("ret_dtype", &PrimFunc::ret_dtype),
                      field("attrs", &PrimFunc::attrs),
                      field("body", &PrimFunc::body)};
  }
  /// The buffer behind a parameter; null for a scalar or a plain pointer.
  BufferRef buffer_of(const VarRef& param) const;
};
/// The function without the name under which others link to it (attribute global_symbol).
Ref<const PrimFunc> without_symbol(const Ref<const PrimFunc>& func);
using PrimFuncRef = Ref<const PrimFunc>;

// Small builders.
/// The statements one after the other; nested sequences are flattened, a single one stands alone.
Stmt seq(std::vector<Stmt> stmts);
Stmt for_loop(VarRef var, Expr extent, Stmt body, LoopKind kind = LoopKind::serial);
inline Stmt store(BufferRef buffer, Expr value, std::vector<Expr> indices) {
  return make<BufferStore>(std::move(buffer), std::move(value), std::move(indices));
}
inline BlockNameRef block_name(std::string text) { return make<BlockName>(std::move(text)); }
/// The whole buffer.
BufferRegionRef full_region(const BufferRef& buffer);
/// One element.
BufferRegionRef point_region(const BufferRef& buffer, const std::vector<Expr>& indices);
/// The root block's realize of a function whose body is block-structured, or null.
BlockRealizeRef root_of(const PrimFunc& func);

}  // namespace sator::tir

namespace sator {

// What follows from fields() is compiled once, in nodes.cc.
extern template class Node<tir::IterVar>;
extern template class Node<tir::BufferRegion>;
extern template class Node<tir::MatchBuffer>;
extern template class Node<tir::BlockName>;
extern template class Node<tir::Block, tir::StmtNode>;
extern template class Node<tir::BlockRealize, tir::StmtNode>;
extern template class Node<tir::For, tir::StmtNode>;
extern template class Node<tir::Seq, tir::StmtNode>;
extern template class Node<tir::BufferStore, tir::StmtNode>;
extern template class Node<tir::IfThenElse, tir::StmtNode>;
extern template class Node<tir::While, tir::StmtNode>;
extern template class Node<tir::LetStmt, tir::StmtNode>;
extern template class Node<tir::ThreadAxis>;
extern template class Node<tir::CommReducer>;
extern template class Node<tir::AttrStmt, tir::StmtNode>;
extern template class Node<tir::AssertStmt, tir::StmtNode>;
extern template class Node<tir::Evaluate, tir::StmtNode>;
extern template class Node<tir::Allocate, tir::StmtNode>;
extern template class Node<tir::AllocateConst, tir::StmtNode>;
extern template class Node<tir::DeclBuffer, tir::StmtNode>;
extern template class Node<tir::PrimFunc, FuncNode>;

}  // namespace sator

template <>
struct sator::KindsOf<sator::tir::StmtNode> {
  using type = Kinds<tir::Block, tir::BlockRealize, tir::For, tir::Seq, tir::BufferStore, tir::IfThenElse, tir::While,
                     tir::LetStmt, tir::AttrStmt, tir::AssertStmt, tir::Evaluate, tir::Allocate, tir::AllocateConst,
                     tir::DeclBuffer>;
};
