// Blocks annotated "permuted_layout" keep the rows of a shared buffer permuted, so that the threads of a warp that read a
// column of 8 x 8 tiles meet each bank of the memory once:
//   A[row, col]   =>   A[row, ((col // 8) ^ (row % 8)) * 8 + col % 8]          rows of a multiple of 64 elements
//                      A[row, ((col // 8) ^ (row % 8 // 2)) * 8 + col % 8]     rows of a multiple of 32 elements
// All blocks that access the buffer have to be annotated. Regions stay as they were: they cover whole rows of tiles.
// Source: the layout of CUTLASS for ldmatrix of 16-bit elements, as TVM has it.
#include "arith/analyzer.h"
#include "ir/builtins.h"
#include "passes/lower/lower.h"

namespace sator::passes {

using namespace tir;

namespace {

constexpr const char* kPermuted = "permuted_layout";
constexpr int64_t kTile = 8;  ///< elements that one thread reads at once

bool is_asked(const Block& block) {
  auto at = block.annotations.find(kPermuted);
  if (at == block.annotations.end()) return false;
  if (const StringImm* s = at->second.as<StringImm>()) return !s->value.empty();
  const IntImm* n = at->second.as<IntImm>();
  if (!n)
    fail({.what = text("block ", block.name->text, " has a malformed ", kPermuted),
          .needs = "a number or a name",
          .hint = "annotate 1",
          .at = {{ref(block), kPermuted}}});
  return n->value != 0;
}

class Permuter {
 public:
  explicit Permuter(const PrimFunc& func) {
    for (const auto& [param, buffer] : func.buffer_map) buffers_[buffer->data.get()] = buffer;
  }

  Stmt run(const Stmt& stmt) {
    if (const For* n = stmt.as<For>()) analyzer_.bind(n->var, make<Range>(n->min, n->extent));
    const Block* block = stmt.as<Block>();
    const bool outer = permuted_;
    if (block) {
      for (const BufferRef& b : block->alloc_buffers) buffers_[b->data.get()] = b;
      for (const MatchBufferRef& m : block->match_buffers) buffers_[m->buffer->data.get()] = m->buffer;
      permuted_ |= is_asked(*block);
    }
    NodeRef out = stmt->info().map_children(*stmt, [&](const NodeRef& child) -> NodeRef {
      if (const StmtNode* s = child->as<StmtNode>()) return run(ref(*s));
      const ExprNode* e = child->as<ExprNode>();
      return e && permuted_ ? NodeRef(expr(ref(*e))) : child;
    });
    permuted_ = outer;
    if (const BufferStore* n = out.as<BufferStore>(); n && permuted_ && is_shared(*n->buffer))
      return store(n->buffer, n->value, indices(*n->buffer, n->indices));
    if (const Block* n = out.as<Block>(); n && n->annotations.contains(kPermuted) && is_asked(*n)) {
      Attrs rest = n->annotations;
      rest.erase(kPermuted);
      return with(*n, &Block::annotations, std::move(rest));
    }
    return cast<StmtNode>(out);
  }

 private:
  static bool is_shared(const Buffer& b) { return b.rank() >= 2 && b.scope().starts_with("shared"); }

  Expr expr(const Expr& root) {
    return transform(
        root,
        [&](const BufferLoad& n) -> Expr {
          return is_shared(*n.buffer) ? load(n.buffer, indices(*n.buffer, n.indices)) : Expr(ref(n));
        },
        [&](const Call& n) -> Expr {
          std::vector<Expr> args = n.args;
          if (n.op == "tir.ptx_ldmatrix") {
            args[5] = pointer(args[5], args[6]);
            args[6] = int_imm(0, args[6]->dtype);
          } else if (n.op == "tir.mma_store") {
            args[2] = pointer(args[2], nullptr);
          } else {
            return ref(n);
          }
          return call(n.dtype, n.op, std::move(args));
        });
  }

  /// Elements of a row.
  static int64_t row_size(const Buffer& b) {
    auto row = b.rank() >= 2 ? as_int(b.shape.back()) : std::nullopt;
    auto rows = b.rank() >= 2 ? as_int(b.shape[b.shape.size() - 2]) : std::nullopt;
    if (!row || *row % 32 != 0 || (*row % 64 != 0 && (!rows || *rows % 2 != 0)))
      fail({.what = text("the layout of buffer ", b.name, " of shape (", join(b.shape, ", "), ") cannot be permuted"),
            .needs = "rows of a multiple of 64 elements, or of 32 where their number is even",
            .hint = text("take the annotation ", kPermuted, " off, or tile the buffer so")});
    return *row;
  }

  Expr column(const Expr& row, const Expr& col, int64_t size) {
    Expr swap = floormod(row, kTile);
    if (size % 64 != 0) swap = floordiv(swap, 2);
    Expr tile = floordiv(col, kTile);
    match_dtypes(tile, swap, "a permutation");
    return analyzer_.simplify(call_builtin("tir.bitwise_xor", {tile, swap}) * kTile + floormod(col, kTile));
  }

  std::vector<Expr> indices(const Buffer& b, std::vector<Expr> at) {
    at.back() = column(at[at.size() - 2], at.back(), row_size(b));
    return at;
  }

  /// The offset of an access pointer, with what is added to it, as an element of the permuted rows.
  Expr pointer(const Expr& access, const Expr& offset) {
    const Call* n = access.as<Call>();
    const Var* data = n && n->op == "tir.tvm_access_ptr" ? n->args[1].as<Var>() : nullptr;
    auto at = data ? buffers_.find(data) : buffers_.end();
    if (at == buffers_.end())
      fail({.what = text("a permuted layout is read through ", access),
            .needs = "tvm_access_ptr of a buffer of the program",
            .hint = text("pass B.access_ptr(\"r\"), or take the annotation ", kPermuted, " off")});
    const int64_t size = row_size(*at->second);
    Expr place = offset ? n->args[2] + offset : n->args[2];
    Expr row = floordiv(place, size), col = floormod(place, size);
    std::vector<Expr> args = n->args;
    args[2] = analyzer_.simplify(row * size + column(row, col, size));
    return call(n->dtype, n->op, std::move(args));
  }

  std::unordered_map<const Var*, BufferRef> buffers_;
  arith::Analyzer analyzer_;
  bool permuted_ = false;
};

}  // namespace

PrimFuncRef inject_permuted_layout(const PrimFuncRef& func, const LowerOptions&) {
  return with_body(func, Permuter(*func).run(func->body));
}

}  // namespace sator::passes
