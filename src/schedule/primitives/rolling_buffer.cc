#include <algorithm>

#include "arith/intset.h"
#include "schedule/buffers.h"
#include "schedule/coverage.h"
#include "schedule/edit.h"
#include "schedule/primitives.h"

namespace sator::schedule {

using namespace tir;

namespace {

/// An axis of the buffer of which neighbouring tiles share elements.
struct Overlap {
  size_t axis;
  const For* loop;   ///< from tile to tile
  int64_t elements;  ///< of a tile that the one before has too
  Expr offset;       ///< of an element in its tile, over the loops of the block
};

struct Rolling {
  int site = -1;
  BufferRef buffer;
  std::vector<Overlap> overlaps;
  const Overlap* rolled = nullptr;  ///< that of the outermost loop
  int64_t extent = 0;               ///< of a tile along the rolled axis
};

/// How far a tile's begin moves per iteration of `loop`, rounded up: 4 of 4 * i, 3 of i * 5 // 2. Nothing for other forms.
std::optional<std::pair<VarRef, int64_t>> step_of(const Expr& min) {
  if (const Var* v = min.as<Var>()) return std::pair(ref(*v), int64_t{1});
  auto product = [](const Expr& e) -> std::optional<std::pair<VarRef, int64_t>> {
    if (const Var* v = e.as<Var>()) return std::pair(ref(*v), int64_t{1});
    const Mul* m = e.as<Mul>();
    const Var* v = m ? m->a.as<Var>() : nullptr;
    auto factor = m ? as_int(m->b) : std::nullopt;
    if (!v || !factor || *factor <= 0) return {};
    return std::pair(ref(*v), *factor);
  };
  if (const FloorDiv* d = min.as<FloorDiv>()) {
    auto step = product(d->a);
    auto divisor = as_int(d->b);
    if (!step || !divisor || *divisor <= 0) return {};
    return std::pair(step->first, (step->second + *divisor - 1) / *divisor);
  }
  return product(min);
}

/// Why the buffer that the block writes cannot roll; nothing if it can. Completes the plan.
MaybeReason cannot_roll(const Schedule& s, Rolling& plan) {
  const Sites& sites = s.sites();
  auto refuse = [&](std::string what, std::string needs, std::string hint) -> MaybeReason {
    return block_refusal(s, plan.site, std::move(what), std::move(needs), std::move(hint));
  };
  const int scope_site = sites[plan.site].scope;
  if (scope_site < 0) return refuse("is the root block", "a block inside of the function", "choose a child block");
  if (is_output_block(s, plan.site))
    return refuse(text("writes ", plan.buffer->name, ", which is no buffer of its scope"),
                  "a buffer that the scope allocates",
                  "cache_write the result first");
  const ScopeAnalysis scope(s, scope_site);
  for (const Dependency& d : scope.dependencies()) {
    if ((d.src == plan.site || d.dst == plan.site) && d.kind != DependencyKind::read_after_write)
      return refuse("is not the only writer of what it writes, or others read before it writes",
                    "a block whose results are read after it alone",
                    "make the blocks that write the buffer one");
  }
  if (is_used_opaquely(sites[scope_site].stmt, plan.buffer))
    return refuse(text("writes ", plan.buffer->name, ", whose pointer is used"),
                  "loads and stores alone",
                  "roll the buffer before tensorize");
  int at = plan.site;
  std::vector<int> readers;
  for (int consumer : scope.consumers(plan.site)) {
    const Block& block = *sites[consumer].realize()->block;
    if (std::ranges::none_of(block.reads, [&](const BufferRegionRef& r) { return r->buffer == plan.buffer; })) continue;
    readers.push_back(consumer);
    at = sites.lowest_common_ancestor(at, consumer);
  }
  const For* tile = sites[at].loop();
  if (readers.empty() || !tile)
    return refuse(text("and the readers of ", plan.buffer->name, " stand in no loop together"),
                  "one loop around all of them, from tile to tile",
                  "compute_at the block first");
  if (std::string why = leaves_unwritten(s, plan.site, plan.buffer, at); !why.empty())
    return refuse("may not write all of its tile: " + why, "a tile that is written whole", "roll before other steps");
  for (int reader : readers) {
    if (!has_region_cover(s, scope, reader, plan.buffer))
      return refuse(text("does not write all that is read of ", plan.buffer->name),
                    "reads of the tile alone",
                    "roll a buffer once");
  }

  const BlockRealize& realize = *sites[plan.site].realize();
  const auto write =
      std::ranges::find_if(realize.block->writes, [&](const BufferRegionRef& w) { return w->buffer == plan.buffer; });
  const arith::SetMap inner = arith::as_sets(loop_domain(sites, sites[plan.site].parent, at));
  const VarMap bindings = bindings_of(realize);
  std::vector<Expr> begins;
  std::vector<int64_t> extents;
  arith::Analyzer arith;
  for (const RangeRef& range : substitute_region((*write)->region, bindings)) {
    const arith::IntSet set = arith::eval_set(range, inner);
    auto extent = set.has_lower() && set.has_upper()
                      ? as_int(arith.simplify(set.max - set.min + int_imm(1, set.max->dtype)))
                      : std::nullopt;
    if (!extent)
      return refuse("has no tile of a constant size", "constant extents below the tile's loop", "split by constants");
    begins.push_back(arith.simplify(set.min));
    extents.push_back(*extent);
  }
  std::vector<const For*> around;  // from the tile's loop outward
  for (int i = at; i >= 0 && sites[i].loop(); i = sites[i].parent) around.push_back(sites[i].loop());
  for (size_t axis = 0; axis < begins.size(); ++axis) {
    if (as_int(begins[axis])) continue;
    auto step = step_of(begins[axis]);
    if (!step)
      return refuse(text("writes tiles that begin at ", begins[axis], " along axis ", axis),
                    "a multiple of one loop's variable, such as i * 4",
                    "split the loops of the reader, and compute_at the block below the outer ones");
    auto loop = std::ranges::find_if(around, [&](const For* l) { return l->var == step->first; });
    if (loop == around.end() || extents[axis] <= step->second) continue;
    const Expr index = (*write)->region[axis]->min;
    const auto value = bindings.find(index.as<Var>() ? ref(*index.as<Var>()) : VarRef());
    if (value == bindings.end() || !is_zero((*loop)->min))
      return refuse(text("writes axis ", axis, " at ", index),
                    "an iterator of the block, below a loop that begins at 0",
                    "let the block write its own iterators");
    const Expr offset =
        arith.simplify(substitute(value->second, VarMap{{(*loop)->var, int_imm(0, (*loop)->var->dtype)}}));
    if (!arith.prove_equal(value->second - begins[axis], offset))
      return refuse(text("writes axis ", axis, " at ", value->second),
                    "the tile's begin and an offset in it",
                    "simplify the binding");
    plan.overlaps.push_back({axis, *loop, extents[axis] - step->second, offset});
  }
  for (const For* loop : around) {  // the last one is the outermost
    for (const Overlap& o : plan.overlaps)
      if (o.loop == loop) plan.rolled = &o;
  }
  if (!plan.rolled)
    return refuse(text("writes tiles of ", plan.buffer->name, " that share no elements"),
                  "an axis along which a tile begins inside of the one before it",
                  "compute_at the block below an outer loop of its reader");
  plan.extent = extents[plan.rolled->axis];
  for (const For* loop : around) {
    const bool in_order = loop->kind == LoopKind::serial || loop->kind == LoopKind::unrolled;
    bool apart = std::ranges::none_of(plan.overlaps, [&](const Overlap& o) { return o.loop == loop; });
    apart = apart && std::ranges::any_of(begins, [&](const Expr& e) { return uses_var(e, *loop->var); });
    if (!in_order && !apart)
      return refuse(text("keeps elements over iterations of loop ", loop->var->name, ", which run at the same time"),
                    "serial loops",
                    "roll the buffer, and bind the loops of the other axes");
  }
  bool conditional = false;
  walk(
      plan.rolled->loop->body,
      [&](const IfThenElse&) { conditional = true; },
      [&](const While&) { conditional = true; });
  if (conditional) return refuse("may not run in each iteration", "loops and blocks alone", "take the condition out");
  for (int reader : readers) {
    const BlockRealize& r = *sites[reader].realize();
    for (size_t i = 0; i < r.values.size(); ++i)
      if (r.block->iter_vars[i]->kind == IterKind::reduce && uses_var(r.values[i], *plan.rolled->loop->var))
        return block_refusal(
            s, reader, "reduces over the tiles", "a reader that reduces inside of a tile", "roll another axis");
  }
  return {};
}

/// Keeps the tile that is in use of a buffer that the block computes tile by tile, in a circle along one axis, and computes the
/// elements that neighbouring tiles share once.
///   for t in range(2):                                     for t in range(2):
///     for i in range(6): B[t * 4 + i] = f(t * 4 + i)   =>    for i in range(6) where t < 1 or 2 <= i: B[(t * 4 + i) % 6] = ..
///     for j in range(4): C[..] = g(B[t * 4 + j ..])          for j in range(4): C[..] = g(B[(t * 4 + j ..) % 6])
/// The outermost loop whose tiles overlap says which axis rolls. Iterators over it become opaque: their tiles depend on those
/// before.
void do_rolling_buffer(Schedule& s, BlockHandle block, BufferSelector which) {
  Rolling plan;
  plan.site = s.site(block);
  plan.buffer = selected_buffer(s, block, which, true);
  s.require(cannot_roll(s, plan));
  const size_t axis = plan.rolled->axis;
  const VarRef rolled = plan.rolled->loop->var;
  std::vector<Expr> shape = plan.buffer->shape;
  shape[axis] = int_imm(plan.extent, shape[axis]->dtype);
  const BufferRef fresh = with(with(plan.buffer, &Buffer::shape, std::move(shape)),
                               &Buffer::data,
                               make_pointer(plan.buffer->data->name, plan.buffer->dtype, plan.buffer->data->scope));
  arith::Analyzer arith;
  auto in_circle = [&](std::vector<Expr> indices) {
    indices[axis] = floormod(indices[axis], int_imm(plan.extent, indices[axis]->dtype));
    return indices;
  };
  auto own_region = [&](const std::vector<BufferRegionRef>& regions, const std::vector<BufferRegionRef>& detected) {
    std::vector<BufferRegionRef> out = regions;
    for (BufferRegionRef& r : out)
      if (r->buffer == fresh && !detected.empty()) r = detected.front();
    return out;
  };
  auto detected = [&](const BlockRef& b) {
    const BlockRef found = with_detected_regions(b, {fresh}, true, true);
    return with(with(b, &Block::reads, own_region(b->reads, found->reads)),
                &Block::writes,
                own_region(b->writes, found->writes));
  };
  const NodeBase* name = s.get(block).name.get();
  Stmt body = replace_buffer(s.func()->body, plan.buffer, fresh);
  body = transform(
      body,
      [&](const BufferLoad& n) -> Expr { return n.buffer == fresh ? load(fresh, in_circle(n.indices)) : Expr(&n); },
      [&](const BufferStore& n) -> Stmt {
        return n.buffer == fresh ? store(fresh, n.value, in_circle(n.indices)) : Stmt(&n);
      },
      [&](const BlockRealize& n) -> Stmt {
        std::vector<IterVarRef> iters = n.block->iter_vars;
        for (size_t i = 0; i < iters.size(); ++i)
          if (uses_var(n.values[i], *rolled)) iters[i] = with(iters[i], &IterVar::kind, IterKind::opaque);
        auto touches = [&](const std::vector<BufferRegionRef>& regions) {
          return std::ranges::any_of(regions, [&](const BufferRegionRef& r) { return r->buffer == fresh; });
        };
        BlockRealize out = n;
        if (iters != n.block->iter_vars) out.block = with(out.block, &Block::iter_vars, std::move(iters));
        if (touches(n.block->reads) || touches(n.block->writes)) out.block = detected(out.block);
        if (n.block->name.get() == name) {
          for (const Overlap& o : plan.overlaps)
            out.predicate = arith.simplify(logical_and(out.predicate,
                                                       logical_or(lt(o.loop->var, int_imm(1, o.loop->var->dtype)),
                                                                  ge(o.offset, int_imm(o.elements, o.offset->dtype)))));
        }
        if (out.block == n.block && out.predicate == n.predicate) return Stmt(&n);
        return Stmt(new BlockRealize(std::move(out)));
      });
  s.replace_body(body);
}

}  // namespace

const Primitive<void(BlockHandle, BufferSelector)> rolling_buffer{
    "rolling_buffer",
    do_rolling_buffer,
    {"block", "write_buffer_index"},
    "keeps one tile of a buffer, in a circle, and computes what tiles share once"};

}  // namespace sator::schedule
