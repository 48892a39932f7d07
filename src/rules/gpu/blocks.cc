#include "rules/gpu/blocks.h"

#include <algorithm>

#include "schedule/analysis.h"

namespace sator::rules::gpu {

using namespace schedule;
using namespace tir;

// ---- Loops ----

std::vector<Loop> cut(Schedule& s, const Loop& loop, std::initializer_list<int64_t> factors) {
  Factors given;
  for (int64_t f : factors) given.push_back(f == 0 ? std::nullopt : factor(loop, f));
  return schedule::split(s, loop, std::move(given));
}

std::optional<int64_t> constant_extent(const Schedule& s, const Loop& loop) { return as_int(s.get(loop).extent); }

std::vector<Loop> last(const std::vector<Loop>& loops, size_t count) {
  return {loops.end() - static_cast<ptrdiff_t>(std::min(count, loops.size())), loops.end()};
}

std::vector<Loop> first(const std::vector<Loop>& loops, size_t count) {
  return {loops.begin(), loops.begin() + static_cast<ptrdiff_t>(std::min(count, loops.size()))};
}

Loop fuse_all(Schedule& s, const std::vector<Loop>& loops) { return fuse(s, loops, true, true); }

void annotate_unroll(Schedule& s, const Loop& loop, int64_t steps) {
  annotate(s, loop, "pragma_auto_unroll_max_step", Value(steps));
  annotate(s, loop, "pragma_unroll_explicit", Value(1));
}

int64_t largest_divisor(int64_t n, std::initializer_list<int64_t> factors) {
  int64_t best = 1;
  for (int64_t f : factors) {
    if (n % f == 0) best = std::max(best, f);
  }
  return best;
}

int64_t threads_for(const Schedule& s, const Loop& loop, int64_t most) {
  const int64_t wanted = std::min(constant_extent(s, loop).value_or(most), most);
  int64_t threads = 1;
  while (2 * threads <= wanted) threads *= 2;
  return threads;
}

// ---- Blocks in normal form ----

bool NormalBlock::is_spatial() const {
  return std::ranges::all_of(iters, [](const BlockIter& i) { return i.kind == IterKind::spatial; });
}

std::string NormalBlock::kinds() const {
  std::string out;
  for (const BlockIter& i : iters) out += i.kind == IterKind::spatial ? 'S' : i.kind == IterKind::reduce ? 'R' : 'O';
  return out;
}

const BlockIter* NormalBlock::iter_of(const Var& var) const {
  auto at = std::ranges::find_if(iters, [&](const BlockIter& i) { return i.var.get() == &var; });
  return at == iters.end() ? nullptr : &*at;
}

namespace {

/// The blocks in `blocks` without blocks inside, and those of the others.
void collect_leaves(Schedule& s, const std::vector<BlockHandle>& blocks, std::vector<BlockHandle>& out) {
  for (const BlockHandle& b : blocks) {
    if (s.sites().child_blocks(s.site(b)).empty())
      out.push_back(b);
    else
      collect_leaves(s, get_child_blocks(s, b), out);  // a step, so that the trace knows the blocks
  }
}

/// Why the block's iterators are not its loops, one each.
MaybeReason not_one_to_one(const Schedule& s, const BlockHandle& block) {
  const std::vector<int> loops = s.sites().loops_above(s.site(block));
  const std::vector<Expr>& values = s.realize(block).values;
  if (loops.empty()) return {};
  bool same = loops.size() == values.size();
  for (size_t i = 0; same && i < loops.size(); ++i) {
    const For& loop = *s.sites()[loops[i]].loop();
    same = values[i] == Expr(loop.var) && is_zero(loop.min);
  }
  if (same) return {};
  return because(text("the iterators of block ", block->text, " are not its loops, one each"),
                 "loops that begin at 0, and an iterator for each of them in the same order");
}

/// Takes iterators off that run once; where no other spatial one is left, one of them stays, in front.
void drop_unit_iterators(Schedule& s, const BlockHandle& block) {
  const std::vector<IterVarRef> iters = s.get(block).iter_vars;
  std::vector<VarRef> inputs;
  std::vector<Expr> kept;
  bool has_spatial = false;
  for (const IterVarRef& i : iters) {
    inputs.push_back(make_var(i->var->name, i->var->dtype));
    if (is_one(i->dom->extent)) continue;
    kept.push_back(inputs.back());
    has_spatial |= i->kind == IterKind::spatial;
  }
  if (!has_spatial) kept.insert(kept.begin(), int_imm(0, i64));
  attempt(
      [&] { transform_block_layout(s, block, make<arith::IndexMap>(std::move(inputs), std::move(kept), nullptr)); });
}

NormalBlock described(Schedule& s, const BlockHandle& block) {
  NormalBlock out{.block = block};
  const std::vector<Loop> loops = get_loops(s, block);
  const Block& b = s.get(block);
  for (size_t i = 0; i < loops.size() && i < b.iter_vars.size(); ++i)
    out.iters.push_back({b.iter_vars[i]->kind, b.iter_vars[i]->var, b.iter_vars[i]->dom->extent, loops[i]});
  const int site = s.site(block);
  out.is_reduction = !ScopeAnalysis(s, s.sites()[site].scope).not_reduction(site);
  return out;
}

}  // namespace

MaybeReason normalize(Schedule& s, std::vector<NormalBlock>& blocks) {
  std::vector<BlockHandle> leaves;
  collect_leaves(s, leaf_blocks(s), leaves);
  for (const BlockHandle& b : leaves) {
    if (MaybeReason reason = not_one_to_one(s, b)) return reason;
  }
  blocks.clear();
  for (const BlockHandle& b : leaves) {
    drop_unit_iterators(s, b);
    blocks.push_back(described(s, b));
  }
  return {};
}

void inline_blocks(Schedule& s, std::vector<NormalBlock>& blocks) {
  auto inlined = [&](const auto& primitive) {
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (!attempt([&] { primitive(s, blocks[i].block); })) continue;
      blocks.erase(blocks.begin() + static_cast<ptrdiff_t>(i));
      return true;
    }
    return false;
  };
  while (inlined(compute_inline) || inlined(reverse_compute_inline)) {
  }
}

void inline_spatial_runs(Schedule& s, std::vector<NormalBlock>& blocks) {
  std::vector<NormalBlock> out, run;
  auto end_run = [&] {
    inline_blocks(s, run);
    out.insert(out.end(), run.begin(), run.end());
    run.clear();
  };
  for (NormalBlock& b : blocks) {
    if (b.is_spatial()) {
      run.push_back(std::move(b));
      continue;
    }
    end_run();
    out.push_back(std::move(b));
  }
  end_run();
  blocks = std::move(out);
}

MaybeReason main_and_epilogue(Schedule& s, std::optional<NormalBlock>& main, std::optional<NormalBlock>& epilogue) {
  std::vector<NormalBlock> blocks;
  if (MaybeReason reason = normalize(s, blocks)) return reason;
  inline_spatial_runs(s, blocks);
  if (blocks.empty() || blocks.size() > 2)
    return because(text(blocks.size(), " blocks are left once spatial ones are put together"),
                   "one block, and at most one that follows it element by element");
  main = blocks[0];
  if (blocks.size() < 2) return {};
  if (!blocks[1].is_spatial())
    return because(text("block ", blocks[1].block->text, ", which follows, is not spatial"),
                   "a last block that follows element by element");
  epilogue = blocks[1];
  return {};
}

// ---- Accesses ----

std::vector<VarRef> iterators_in(const Block& block, const BufferRegion& box) {
  std::vector<VarRef> out;
  for (const IterVarRef& i : block.iter_vars) {
    if (std::ranges::any_of(box.region, [&](const RangeRef& r) { return uses_var(r->min, *i->var); }))
      out.push_back(i->var);
  }
  return out;
}

bool touches_elements(const Block& block) {
  auto single = [](const BufferRegionRef& box) {
    return std::ranges::all_of(box->region, [](const RangeRef& r) { return is_one(r->extent); });
  };
  return std::ranges::all_of(block.reads, single) && std::ranges::all_of(block.writes, single);
}

Expr dominant_read(const Block& block, const std::function<bool(const VarRef&)>& counted) {
  const BufferRegion* best = nullptr;
  ptrdiff_t most = -1;
  for (const BufferRegionRef& read : block.reads) {
    const ptrdiff_t count = std::ranges::count_if(iterators_in(block, *read), counted);
    if (count > most) most = count, best = read.get();
  }
  if (!best) return {};
  Expr place = int_imm(0);
  for (size_t d = 0; d < best->region.size(); ++d) {
    const Expr& at = best->region[d]->min;
    if (best->buffer->strides.empty())
      place = d == 0 ? at : place * best->buffer->shape[d] + at;
    else
      place = place + at * best->buffer->strides[d];
  }
  return place;
}

Expr summand(const Block& block) {
  const BufferStore* store = block.body.as<BufferStore>();
  const Add* sum = store ? store->value.as<Add>() : nullptr;
  const BufferLoad* old = sum ? sum->a.as<BufferLoad>() : nullptr;
  if (!old || old->buffer != store->buffer || old->indices.size() != store->indices.size()) return {};
  for (size_t d = 0; d < old->indices.size(); ++d) {
    if (!equal(old->indices[d], store->indices[d])) return {};
  }
  return sum->b;
}

bool is_broadcast(const Schedule& s, const BlockHandle& block, const BlockHandle& epilogue) {
  const Block &made = s.get(block), &user = s.get(epilogue);
  for (const BufferRegionRef& read : user.reads) {
    auto is_made = [&](const BufferRegionRef& w) { return w->buffer == read->buffer; };
    if (std::ranges::any_of(made.writes, is_made) && iterators_in(user, *read).size() < user.iter_vars.size())
      return true;
  }
  return false;
}

std::vector<BufferRef> vector_operands(const Block& block, const std::function<bool(const VarRef&)>& counted) {
  if (block.reads.size() < 2 || block.writes.size() != 1 || !summand(block)) return {};
  if (!touches_elements(block) || iterators_in(block, *block.writes[0]).empty()) return {};
  ptrdiff_t all = 0;
  for (const IterVarRef& i : block.iter_vars) all += counted(i->var);
  std::vector<BufferRef> out;
  for (const BufferRegionRef& read : block.reads) {
    const ptrdiff_t used = std::ranges::count_if(iterators_in(block, *read), counted);
    if (used > 0 && used < all) out.push_back(read->buffer);
  }
  return out.size() < block.reads.size() ? out : std::vector<BufferRef>();
}

// ---- Sums that threads share ----

SharedSum share_sum(Schedule& s, const BlockHandle& block, const Loop& thread, const Loop& lane, int64_t threads) {
  SharedSum out{.whole = block};
  out.lanes = rfactor(s, fuse_all(s, {thread, lane}), 0, true);
  out.threads = rfactor(s, cut(s, get_loops(s, block).back(), {threads, 0})[0], 0, true);
  return out;
}

namespace {

/// Blocks that `neighbours` leads to, at any distance, each before those behind it.
template <class F>
std::vector<BlockHandle> reached(const BlockHandle& from, const F& neighbours) {
  std::vector<BlockHandle> out = neighbours(from);
  for (size_t i = 0; i < out.size(); ++i) {
    for (const BlockHandle& b : neighbours(out[i])) {
      if (std::ranges::find(out, b) == out.end()) out.push_back(b);
    }
  }
  return out;
}

/// Tries a primitive on each block that is still there; whether one went.
template <class P>
bool try_each(Schedule& s, const std::vector<BlockHandle>& blocks, const P& primitive) {
  bool any = false;
  for (const BlockHandle& b : blocks) {
    if (s.sites().find(b) >= 0) any |= attempt([&] { primitive(s, b); });
  }
  return any;
}

void put_consumers_in(Schedule& s, const BlockHandle& block) {
  for (bool changed = true; changed;) {
    const std::vector<BlockHandle> consumers =
        reached(block, [&](const BlockHandle& b) { return get_consumers(s, b); });
    changed = try_each(s, consumers, compute_inline);
    changed |= try_each(s, consumers, reverse_compute_inline);
  }
}

}  // namespace

void inline_producers(Schedule& s, const BlockHandle& block) {
  while (try_each(s, reached(block, [&](const BlockHandle& b) { return get_producers(s, b); }), compute_inline)) {
  }
}

MaybeReason inline_consumers(Schedule& s, const BlockHandle& block) {
  put_consumers_in(s, block);
  // A consumer that also reads what another block makes waits for that block to be put into it.
  const std::vector<BlockHandle> left = get_consumers(s, block);
  for (const BlockHandle& consumer : left) {
    for (const BlockHandle& producer : get_producers(s, consumer)) {
      if (producer == block || s.sites().find(producer) < 0) continue;
      inline_producers(s, producer);
      compute_inline(s, producer);
    }
  }
  if (!left.empty()) put_consumers_in(s, block);
  const std::vector<BlockHandle> remaining = get_consumers(s, block);
  if (remaining.empty()) return {};
  return because(text("block ", remaining[0]->text, " follows and cannot be computed with the result"),
                 "what follows uses each element of the result once, in its place");
}

}  // namespace sator::rules::gpu
