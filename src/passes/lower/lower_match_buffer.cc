// A buffer that is another name for a box of a larger one:
//   X = match_buffer(A[i : i + 4, j : j + 8], (4, 8)); X[a, b]   =>   A[i + a, j + b]
#include "passes/lower/lower.h"

namespace sator::passes {

using namespace tir;

namespace {

/// What a matched buffer stands for.
struct Alias {
  BufferRef source;
  std::vector<Expr> begin;
};

class MatchLowering {
 public:
  Stmt run(const Stmt& stmt) {
    const Block* block = stmt.as<Block>();
    if (block)
      for (const MatchBufferRef& m : block->match_buffers) add(*m);
    NodeRef out = stmt->info().map_children(*stmt, [&](const NodeRef& child) -> NodeRef {
      if (const StmtNode* s = child->as<StmtNode>()) return run(ref(*s));
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
    return substitute(s, values_);
  }

 private:
  void add(const MatchBuffer& m) {
    BufferRegionRef region = cast<BufferRegion>(expr(m.source));
    Alias alias{region->buffer, {}};
    for (const RangeRef& r : region->region) alias.begin.push_back(r->min);
    if (auto outer = aliases_.find(region->buffer.get()); outer != aliases_.end())
      alias = {outer->second.source, place(outer->second, alias.begin)};
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
    auto bind = [&](const Expr& formal, const Expr& actual) {
      if (const Var* v = formal ? formal.as<Var>() : nullptr) values_.emplace(ref(*v), cast_to(v->dtype, actual));
    };
    size_t skipped = alias.begin.size() - m.buffer->shape.size();
    for (size_t d = 0; d < m.buffer->strides.size(); ++d) bind(m.buffer->strides[d], strides[d + skipped]);
    for (size_t d = 0; d < m.buffer->shape.size(); ++d) bind(m.buffer->shape[d], region->region[d + skipped]->extent);
    bind(m.buffer->elem_offset, offset);
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
        [&](const Call& n) -> NodeRef {
          for (const Expr& a : n.args)
            if (const Var* v = a.as<Var>(); v && by_data_.count(v))
              fail({.what = text("the pointer of match_buffer ", v->name, " is passed to ", n.op),
                    .needs = "a matched buffer read and written by its elements",
                    .hint = "pass the address of an element instead"});
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
