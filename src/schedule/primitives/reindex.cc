#include <algorithm>
#include <set>

#include "schedule/analysis.h"
#include "schedule/buffers.h"
#include "schedule/edit.h"
#include "schedule/primitives.h"

namespace sator::schedule {

using namespace tir;

namespace {

struct NewAccess {
  int block = -1;
  BufferRef buffer;
  std::vector<Expr> indices;      ///< of the one access
  std::vector<IterVarRef> iters;  ///< those in the indices
  std::vector<Expr> origins;      ///< of each, the value whose elements are the new buffer's first
  Stmt nest;                      ///< the block with all its loops
};

/// What the block does with the buffer.
struct Accesses {
  std::optional<std::vector<Expr>> indices;
  bool unlike = false, opaque = false, conditional = false, nested = false;
  bool moves = false;  ///< with a variable that the block defines inside
};

Accesses accesses_of(const Block& block, const BufferRef& buffer) {
  Accesses found;
  std::set<VarRef> inner;
  auto see = [&](const std::vector<Expr>& indices) {
    if (!found.indices) found.indices = indices;
    for (size_t d = 0; d < indices.size(); ++d) found.unlike |= !equal(indices[d], (*found.indices)[d]);
  };
  auto visit = [&](const Stmt& stmt) {
    walk(
        stmt,
        [&](const Buffer&) { return false; },
        [&](const Block&) { found.nested = true; },
        [&](const BufferLoad& l) {
          if (l.buffer == buffer) see(l.indices);
        },
        [&](const BufferStore& st) {
          if (st.buffer == buffer) see(st.indices);
        },
        [&](const IfThenElse&) { found.conditional = true; },
        [&](const Select&) { found.conditional = true; },
        [&](const Call& c) { found.conditional |= c.op == "tir.if_then_else"; },
        [&](const For& l) { inner.insert(l.var); },
        [&](const LetStmt& l) { inner.insert(l.var); },
        [&](const Let& l) { inner.insert(l.var); },
        [&](const Var& v) { found.opaque |= &v == buffer->data.get(); });
  };
  visit(block.body);
  if (block.init) visit(block.init);
  for (const VarRef& v : inner)
    found.moves |= found.indices && std::ranges::any_of(*found.indices, [&](const Expr& e) { return uses_var(e, *v); });
  return found;
}

/// Why the block's access cannot go through a buffer of its own; nothing if it can. Fills `plan`.
MaybeReason cannot_reindex(const Schedule& s, NewAccess& plan, bool write) {
  const Sites& sites = s.sites();
  const BlockRealize& realize = *sites[plan.block].realize();
  const Block& block = *realize.block;
  auto refuse = [&](std::string what, std::string needs, std::string hint) -> MaybeReason {
    return Reason{.what = text("block ", string_literal(block.name->text), " ", what),
                  .needs = std::move(needs),
                  .hint = std::move(hint),
                  .at = {{sites[plan.block].stmt, what}}};
  };
  int scope = sites[plan.block].scope;
  if (scope < 0) return refuse("is the root block", "a block inside of the function", "choose a child block");
  if (MaybeReason r = not_stage_pipeline(s, scope)) return r;
  if (std::string why = misses_values(s, plan.block); !why.empty())
    return refuse(text("leaves instances out: ", why),
                  "a block that has all instances of its iterators, which the copy has too",
                  "reindex before padding");
  Accesses found = accesses_of(block, plan.buffer);
  if (found.nested) return refuse("has blocks in it", "a leaf block", "choose the block inside");
  if (found.opaque)
    return refuse(
        text("uses ", plan.buffer->name, " through its pointer"), "loads and stores only", "reindex before tensorize");
  if (!found.indices)
    return refuse(text("does not access ", plan.buffer->name), "an access", "check its T.reads and T.writes");
  if (found.unlike)
    return refuse(text("accesses ", plan.buffer->name, " at several places"),
                  "the same indices in every access of the buffer",
                  "cache_read keeps the buffer's own indices");
  if (!write && lists(block.writes, plan.buffer))
    return refuse(text("writes ", plan.buffer->name, ", which it reads"),
                  "a buffer that the block only reads",
                  "reindex what it writes");
  if (write && !block.init && lists(block.reads, plan.buffer))
    return refuse(text("reads what it writes in ", plan.buffer->name, " and has no init"),
                  "a block that writes every element it reads",
                  "reindex before decompose_reduction");
  if (write && found.conditional)
    return refuse(text("may leave elements of ", plan.buffer->name, " unwritten: it has a condition"),
                  "an unconditional store",
                  "cache_write keeps the buffer's own indices");
  if (found.moves)
    return refuse(text("uses several elements of ", plan.buffer->name),
                  "one element of the buffer in each instance, always",
                  "cache_read and cache_write copy boxes");
  plan.indices = *found.indices;
  for (const Expr& index : plan.indices) {
    for (const VarRef& v : vars_in(index)) {
      if (const int at = sites.find(v); at >= 0 && sites.is_above(scope, at))
        return refuse(text("uses loop ", v->name, " in the index of ", plan.buffer->name),
                      "indices over the block's iterators",
                      "reindex before loop_partition");
    }
  }
  arith::Analyzer a;
  for (const IterVarRef& i : block.iter_vars) a.bind(i->var, i->dom);
  for (size_t d = 0; d < plan.indices.size(); ++d) {
    Expr& index = plan.indices[d];
    // A guarded load may have indices outside of the buffer; the copy would follow them without the guard.
    if (found.conditional && !(a.prove_ge(index, 0) && a.prove(lt(index, plan.buffer->shape[d]))))
      return refuse(text("reads ", plan.buffer->name, " under a condition, and index ", d, " may be outside of it"),
                    "an access inside of the buffer for all values of the iterators",
                    "compute the padding in a block of its own");
    if (!cast<Var>(index) && !as_int(index)) index = a.simplify(index);
  }
  for (const IterVarRef& i : block.iter_vars) {
    if (std::none_of(plan.indices.begin(), plan.indices.end(), [&](const Expr& e) { return uses_var(e, *i->var); }))
      continue;
    // As in TVM the buffer begins at 0, and so may have rows that nobody uses; from a negative value it could not.
    plan.iters.push_back(i);
    plan.origins.push_back(a.prove_ge(i->dom->min, 0) ? int_imm(0, i->dom->min->dtype) : i->dom->min);
  }
  int nest = lone_nest(s, plan.block);
  if (sites[nest].parent != scope)
    return refuse(
        "shares its loops with other blocks", "a block that is alone in all its loops", "reindex before compute_at");
  plan.nest = sites[nest].stmt;
  return {};
}

/// Where the new buffer has the element of these values of the iterators.
std::vector<Expr> place_of(const NewAccess& plan, const std::vector<Expr>& values) {
  std::vector<Expr> out;
  for (size_t i = 0; i < values.size(); ++i) out.push_back(values[i] - plan.origins[i]);
  return out;
}

/// The block that copies between the buffer and the one indexed by iterators, under loops ax0, ax1, ...
std::pair<Stmt, BlockHandle> copy_stage(const NewAccess& plan, const BufferRef& cache, bool write) {
  CopyNest nest("ax");
  std::vector<Expr> at, values;
  VarMap map;
  for (const IterVarRef& i : plan.iters) {
    values.push_back(nest.add(i->dom, i->dom));
    map.emplace(i->var, values.back());
  }
  const std::vector<Expr> at_cache = place_of(plan, values);
  for (const Expr& index : plan.indices) at.push_back(substitute(index, map));
  BlockHandle name = block_name(cache->name);
  return {
      write ? nest.build(name, cache, at_cache, plan.buffer, at) : nest.build(name, plan.buffer, at, cache, at_cache),
      name};
}

/// Gives a block's access a buffer indexed by the block's own iterators, in their order, and a block that copies: what is
/// read before it, what is written behind it.
///   C[vi, vj] += A[vi, vk] * B[vk, vj]; reindex("C", "B")   =>   B_reindex[vj, vk] = B[vk, vj];
///                                                              C[vi, vj] += A[vi, vk] * B_reindex[vj, vk]
/// Returns the copying block, {buffer}_reindex; its loops are ax0, ax1, ...
BlockHandle do_reindex(Schedule& s, BlockHandle handle, BufferSelector which) {
  NewAccess plan;
  plan.block = s.site(handle);
  const Block& block = *s.sites()[plan.block].realize()->block;
  if (!which.is_write) {  // a name alone: what is written, if that is written
    plan.buffer = selected_buffer(s, handle, which, true);
    which.is_write = lists(block.writes, plan.buffer);
  } else {
    plan.buffer = selected_buffer(s, handle, which, *which.is_write);
  }
  bool write = *which.is_write;
  s.require(cannot_reindex(s, plan, write));

  std::vector<Expr> ends, values;
  for (const IterVarRef& i : plan.iters) {
    ends.push_back(i->dom->min + i->dom->extent);
    values.push_back(i->var);
  }
  arith::Analyzer a;
  std::vector<Expr> shape = place_of(plan, ends);
  for (Expr& n : shape) n = as_int(n) ? n : a.simplify(n);
  const std::vector<Expr> at = place_of(plan, values);
  BufferRef cache = make_buffer(plan.buffer->name + "_reindex", shape, plan.buffer->dtype, plan.buffer->scope());
  BlockRef redirected = transform(
      ref(block),
      [&](const BufferLoad& l) -> NodeRef { return l.buffer == plan.buffer ? NodeRef(load(cache, at)) : ref(l); },
      [&](const BufferStore& st) -> NodeRef {
        return st.buffer == plan.buffer ? NodeRef(store(cache, st.value, at)) : ref(st);
      },
      [&](const BufferRegion& r) -> NodeRef {
        return r.buffer == plan.buffer ? NodeRef(point_region(cache, at)) : ref(r);
      });
  auto [copy, name] = copy_stage(plan, cache, write);
  int scope_site = s.sites()[plan.block].scope;
  const Block& scope = *s.sites()[scope_site].realize()->block;
  Stmt nest = replaced(plan.nest, NodeMap{{ref(block), redirected}});
  Stmt both = write ? seq({nest, copy}) : seq({copy, nest});
  Stmt body = scope.body == plan.nest ? both : replaced(scope.body, NodeMap{{plan.nest, both}});
  if (const Seq* statements = body.as<Seq>()) body = seq(statements->stmts);  // flat again
  std::vector<BufferRef> allocations = scope.alloc_buffers;
  allocations.push_back(cache);
  replace_scope(s, scope_site, body, std::move(allocations));
  return name;
}

}  // namespace

const Primitive<BlockHandle(BlockHandle, BufferSelector)> reindex{
    "reindex", do_reindex, {"block", "buffer"}, "gives an access a buffer indexed by the block's iterators"};

}  // namespace sator::schedule
