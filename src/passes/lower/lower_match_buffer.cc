// A buffer that is another name for a box of a larger one:
//   X = match_buffer(A[i : i + 4, j : j + 8], (4, 8)); X[a, b]   =>   A[i + a, j + b]
#include "arith/analyzer.h"
#include "passes/lower/lower.h"

namespace sator::passes {

using namespace tir;

namespace {

/// What a matched buffer stands for.
struct Alias {
  BufferRef source;
  std::vector<Expr> begin;
  bool has_offset = false;  ///< a variable says how far it lies behind the first element
};

class MatchLowering {
 public:
  /// What variables of matches stand for is put in at the end, so that a buffer that is declared by them stays one.
  Stmt run(const Stmt& stmt) { return substitute(visit(stmt), values_); }

 private:
  Stmt visit(const Stmt& stmt) {
    const Block* block = stmt.as<Block>();
    if (block)
      for (const MatchBufferRef& m : block->match_buffers) add(*m);
    NodeRef out = stmt->info().map_children(*stmt, [&](const NodeRef& child) -> NodeRef {
      if (const StmtNode* s = child->as<StmtNode>()) return visit(ref(*s));
      return expr(child);
    });
    Stmt s = cast<StmtNode>(out);
    if (const BufferStore* n = s.as<BufferStore>()) {
      auto alias = aliases_.find(n->buffer.get());
      if (alias != aliases_.end())
        s = make<BufferStore>(alias->second.source, n->value, place(alias->second, n->indices));
    }
    if (const Block* b = s.as<Block>(); b && !b->match_buffers.empty())
      s = with(*b, &Block::match_buffers, std::vector<MatchBufferRef>{});
    if (const DeclBuffer* n = s.as<DeclBuffer>()) declare(*n->buffer);
    return s;
  }

  /// Another name for the memory of a matched buffer lies in that of its source.
  void declare(const Buffer& b) {
    auto alias = by_data_.find(b.data.get());
    if (alias == by_data_.end()) return;
    if (!alias->second->has_offset)
      fail({.what = text("the buffer ",
                         b.name,
                         " is declared on the pointer of match_buffer ",
                         b.data->name,
                         ", which has no offset"),
            .needs = "a variable as offset of the match, from which the declared buffer begins",
            .hint = "declare the match with offset_factor=1, and the buffer with its elem_offset"});
    values_.emplace(b.data, alias->second->source->data);
  }

  void add(const MatchBuffer& m) {
    BufferRegionRef region = cast<BufferRegion>(expr(m.source));
    Alias alias{region->buffer, {}, m.buffer->elem_offset && m.buffer->elem_offset.as<Var>()};
    for (const RangeRef& r : region->region) alias.begin.push_back(r->min);
    if (m.buffer->rank() > alias.source->rank())
      fail({.what = text("match_buffer ",
                         m.buffer->name,
                         " has ",
                         m.buffer->rank(),
                         " dimensions, its source ",
                         alias.source->name,
                         " ",
                         alias.source->rank()),
            .needs = "no more dimensions than the source has",
            .hint = "match the dimensions one by one"});
    if (m.buffer->dtype != alias.source->dtype)
      fail({.what = text("match_buffer ",
                         m.buffer->name,
                         " is ",
                         m.buffer->dtype,
                         ", its source ",
                         alias.source->name,
                         " ",
                         alias.source->dtype),
            .needs = "the source's dtype",
            .hint = "declare it with the source's dtype"});
    // Symbolic strides and offset of the match are what the source says.
    std::vector<Expr> strides = row_major(*alias.source);
    Expr offset = int_imm(0, i64);
    for (size_t d = 0; d < alias.begin.size(); ++d)
      offset = offset + cast_to(i64, alias.begin[d]) * cast_to(i64, strides[d]);
    arith::Analyzer analyzer;
    auto bind = [&](const char* what, const Expr& formal, const Expr& given) {
      if (!formal) return;
      Expr actual = cast_to(formal->dtype, given), stated = formal;
      if (VarRef v = cast<Var>(formal)) {
        auto [at, is_first] = values_.emplace(v, actual);
        if (is_first) return;
        stated = at->second;
      }
      if (!analyzer.prove_equal(stated, actual))
        fail({.what = text("match_buffer ", m.buffer->name, ": its ", what, " is ", actual, ", not ", stated),
              .needs = "a shape, strides and an offset that the region has",
              .hint = "leave them to variables, one for each"});
    };
    const size_t rank = m.buffer->shape.size(), skipped = alias.begin.size() - rank;
    for (size_t d = 0; d < m.buffer->strides.size(); ++d) bind("stride", m.buffer->strides[d], strides[d + skipped]);
    for (size_t d = 0; d < rank; ++d) bind("extent", m.buffer->shape[d], region->region[d + skipped]->extent);
    bind("offset", m.buffer->elem_offset, offset);
    aliases_.emplace(m.buffer.get(), std::move(alias));
    by_data_.emplace(m.buffer->data.get(), &aliases_.at(m.buffer.get()));
  }

  static std::vector<Expr> row_major(const Buffer& b) {
    if (!b.strides.empty()) return b.strides;
    std::vector<Expr> strides(b.shape.size());
    Expr step = int_imm(1, i64);
    for (size_t d = b.shape.size(); d-- > 0;) {
      strides[d] = step;
      step = step * cast_to(i64, b.shape[d]);
    }
    return strides;
  }

  static std::vector<Expr> place(const Alias& alias, const std::vector<Expr>& indices) {
    size_t skipped = alias.begin.size() - indices.size();
    std::vector<Expr> out(alias.begin.begin(), alias.begin.begin() + static_cast<std::ptrdiff_t>(skipped));
    for (size_t d = 0; d < indices.size(); ++d) out.push_back(alias.begin[d + skipped] + indices[d]);
    return out;
  }

  NodeRef expr(const NodeRef& root) {
    return transform(
        root,
        [&](const BufferLoad& n) -> NodeRef {
          auto alias = aliases_.find(n.buffer.get());
          if (alias == aliases_.end()) return NodeRef(&n);
          return make<BufferLoad>(alias->second.source, place(alias->second, n.indices));
        },
        [&](const BufferRegion& n) -> NodeRef {
          auto alias = aliases_.find(n.buffer.get());
          if (alias == aliases_.end()) return NodeRef(&n);
          std::vector<Expr> mins;
          for (const RangeRef& r : n.region) mins.push_back(r->min);
          mins = place(alias->second, mins);
          std::vector<RangeRef> region;
          const size_t skipped = mins.size() - n.region.size();
          for (size_t d = 0; d < mins.size(); ++d)
            region.push_back(
                make<Range>(mins[d], d < skipped ? int_imm(1, mins[d]->dtype) : n.region[d - skipped]->extent));
          return make<BufferRegion>(alias->second.source, std::move(region));
        },
        [&](const Call& n) -> NodeRef {
          for (const Expr& a : n.args) {
            const Var* v = a.as<Var>();
            const auto alias = v ? by_data_.find(v) : by_data_.end();
            if (alias == by_data_.end()) continue;
            // The offset of such a pointer, or of such a tensor, begins with that of the buffer, which counts from the source's first element.
            if ((n.op == "tir.tvm_access_ptr" || n.op == "tir.tvm_stack_make_array") && alias->second->has_offset) {
              std::vector<Expr> args = n.args;
              args[n.op == "tir.tvm_access_ptr" ? 1 : 0] = alias->second->source->data;
              return sator::with(n, &Call::args, std::move(args));
            }
            fail(
                {.what = text("the pointer of match_buffer ", v->name, " is passed to ", n.op),
                 .needs = "a matched buffer read and written by its elements, or by access_ptr where it has an offset",
                 .hint = "declare it with offset_factor=1 and pass its access_ptr, or pass the address of an element"});
          }
          return NodeRef(&n);
        });
  }

  std::unordered_map<const Buffer*, Alias> aliases_;
  std::unordered_map<const Var*, const Alias*> by_data_;
  VarMap values_;
};

}  // namespace

PrimFuncRef lower_match_buffer(const PrimFuncRef& func, const LowerOptions&) {
  bool any = false;
  walk(func->body, [&](const Block& b) { any |= !b.match_buffers.empty(); });
  if (!any) return func;
  return with_body(func, MatchLowering().run(func->body));
}

}  // namespace sator::passes
