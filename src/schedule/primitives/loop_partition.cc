#include <algorithm>

#include "schedule/edit.h"
#include "schedule/loops.h"
#include "schedule/primitives.h"
#include "tir/copy.h"

namespace sator::schedule {

using namespace tir;

namespace {

/// The ends of the parts, in iterations from 0; the last one is the loop's extent.
std::vector<int64_t> part_ends(int64_t extent, const Factors& factors) {
  int64_t known = 0;
  for (const auto& f : factors) known += f ? *as_int(*f) : 0;
  std::vector<int64_t> ends;
  int64_t end = 0;
  for (const auto& f : factors) ends.push_back(end += f ? *as_int(*f) : extent - known);
  if (end < extent) ends.push_back(extent);
  return ends;
}

/// The name of the first block in the loop.
std::string first_block(const Stmt& stmt) {
  std::string name;
  walk(stmt, [&](const Block& n) {
    if (name.empty()) name = n.name->text;
    return false;
  });
  return name;
}

Stmt block_of(const Schedule& s, std::string name, Stmt body) {
  BlockRef block = make<Block>(std::vector<IterVarRef>{},
                               std::vector<BufferRef>{},
                               std::vector<MatchBufferRef>{},
                               std::vector<BufferRegionRef>{},
                               std::vector<BufferRegionRef>{},
                               block_name(std::move(name)),
                               Attrs{},
                               Stmt(),
                               std::move(body));
  return make<BlockRealize>(
      std::vector<Expr>{}, bool_imm(true), with_detected_regions(block, buffers_of(*s.func()), true, true));
}

/// The blocks of a part: an iterator that is the loop itself runs over the part alone.
Stmt of_part(const Stmt& stmt, const Loop& loop, const RangeRef& range) {
  return transform(stmt, [&](const BlockRealize& n) -> Stmt {
    Block block = *n.block;
    block.name = block_name(text(block.name->text, "_", loop->name));
    for (size_t i = 0; i < n.values.size(); ++i) {
      if (n.values[i] != Expr(loop)) continue;
      const IterVar& iter = *block.iter_vars[i];
      DType d = iter.var->dtype;
      block.iter_vars[i] =
          make<IterVar>(make<Range>(cast_to(d, range->min), cast_to(d, range->extent)), iter.var, IterKind{iter.kind});
    }
    return with(n, &BlockRealize::block, BlockRef(new Block(std::move(block))));
  });
}

}  // namespace

/// Why loop i cannot be partitioned by these factors; nothing if it can.
static MaybeReason cannot_partition(const Schedule& s, const Loop& i, const Factors& factors) {
  if (MaybeReason r = not_a_plain_loop(s, i, "partition")) return r;
  const For& loop = s.get(i);
  auto refusal = [&](std::string what, std::string needs, std::string hint) {
    return Reason{.what = std::move(what),
                  .needs = std::move(needs),
                  .hint = std::move(hint),
                  .at = {{Stmt(&loop), "partitioned here"}}};
  };
  auto extent = as_int(loop.extent);
  if (!extent)
    return refusal(text("loop ", i->name, " has the extent ", loop.extent),
                   "a constant extent",
                   "split the loop by a constant factor and partition the inner loop");
  int64_t sum = 0, open = 0;
  for (const auto& f : factors) {
    auto n = f ? as_int(*f) : std::optional<int64_t>(0);
    if (!n || (f && *n < 1))
      return refusal(
          text("factor ", *f, " is not a positive number"), "constant factors >= 1", "pass the part's length");
    if (!f) ++open;
    // Beyond the extent the sum does not matter.
    sum = std::min(sum + std::min(*n, *extent + 1), *extent + 1);
  }
  if (factors.empty() || open > 1)
    return refusal(text(factors.empty() ? "no factor is given" : text(open, " factors are left open")),
                   "at least one factor, at most one of them None",
                   "give all but one");
  if (sum > *extent || (open && sum == *extent))
    return refusal(text("the parts are longer than the ", *extent, " iterations of loop ", i->name),
                   open ? "factors whose sum is below the extent" : "factors whose sum is at most the extent",
                   "pass shorter parts");
  MaybeReason reduces;
  walk(loop.body, [&](const BlockRealize& n) {
    for (size_t k = 0; k < n.values.size(); ++k) {
      if (n.block->iter_vars[k]->kind == IterKind::reduce && n.block->init && uses_var(n.values[k], *i))
        reduces = Reason{.what = text("loop ", i->name, " feeds a reduction of block ", n.block->name->text),
                         .needs = "a loop whose parts need no init of their own",
                         .hint = "decompose_reduction first",
                         .at = {{Stmt(&loop), "partitioned here"}, {Stmt(&n), "has an init"}}};
    }
  });
  return reduces;
}

/// Divides a loop into loops that run one after the other: the parts are as long as the factors say, one left open takes what
/// is left, and without one the rest becomes a part more.
///   for i in range(10): S(i), factors (4, 1)   =>   for i0 in range(0, 4): S; for i1 in range(4, 5): S; for i2 in range(5, 10): S
/// Each part stands in a block {block}_{loop}{number}_partition, all of them in one block {block}_{loop}_common.
static std::vector<Loop> do_loop_partition(Schedule& s, Loop i, Factors factors, bool preserve_unit_iters) {
  s.require(cannot_partition(s, i, factors));
  const For& loop = s.get(i);
  const std::string name = text(first_block(loop.body), "_", i->name);
  const int outer = s.sites()[s.site(i)].parent;
  std::vector<Loop> loops;
  std::vector<Stmt> parts;
  int64_t begin = 0;
  for (int64_t end : part_ends(*as_int(loop.extent), factors)) {
    Loop fresh = make_var(text(i->name, loops.size()), i->dtype);
    RangeRef range = make<Range>(int_imm(begin, i->dtype), int_imm(end - begin, i->dtype));
    Stmt body = of_part(fresh_copy(loop.body, substitutions({{i, fresh}})), fresh, range);
    Stmt part = make<For>(fresh, range->min, range->extent, LoopKind::serial, std::string(), Attrs{}, std::move(body));
    parts.push_back(block_of(s, text(name, loops.size(), "_partition"), std::move(part)));
    loops.push_back(fresh);
    begin = end;
  }
  Stmt common = block_of(s, name + "_common", seq(std::move(parts)));
  s.replace(loop, preserve_unit_iters ? common : simplify_bindings(s, common, outer, false));
  return loops;
}

const Primitive<std::vector<Loop>(Loop, Factors, bool)> loop_partition{
    "loop_partition",
    do_loop_partition,
    {"loop", "factors", {"preserve_unit_iters", true}},
    "divides a loop into loops one after the other"};

}  // namespace sator::schedule
