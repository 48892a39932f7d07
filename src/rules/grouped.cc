#include "rules/grouped.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "ir/visit.h"
#include "passes/lower/lower.h"
#include "rules/low_batch.h"
#include "schedule/edit.h"
#include "tir/copy.h"

namespace sator::rules {

using namespace tir;

namespace {

const BufferLoad* load_below_casts(const Expr& e) {
  if (const Cast* c = e.as<Cast>()) return load_below_casts(c->value);
  return e.as<BufferLoad>();
}

/// The blocks below the root that hold no others.
std::vector<BlockRealizeRef> leaves_of(const PrimFunc& func) {
  std::vector<BlockRealizeRef> out;
  const BlockRealizeRef root = root_of(func);
  if (root)
    walk(root->block->body, [&](const BlockRealize& n) {
      out.push_back(ref(n));
      return false;
    });
  return out;
}

/// The parameter that picks the matrix of each row of a product; null if there is none.
BufferRef find_groups(const PrimFunc& func) {
  std::set<const Buffer*> params;
  for (const auto& [param, buffer] : func.buffer_map) params.insert(buffer.get());
  BufferRef found;
  for (const BlockRealizeRef& leaf : leaves_of(func)) {
    if (!leaf->block->init) continue;
    walk(leaf->block->body, [&](const Mul& product) {
      walk(product.b, [&](const BufferLoad& b) {
        const BufferLoad* g = b.indices.size() > 1 ? load_below_casts(b.indices[0]) : nullptr;
        if (g && g->indices.size() == 1 && g->buffer->dtype.is_integer() && params.contains(g->buffer.get()))
          found = g->buffer;
      });
    });
  }
  return found;
}

/// Which buffers and iterators follow the rows and which the matrices, by what stands in the first place of an access.
class Roles {
 public:
  Roles(const PrimFunc& func, BufferRef groups) : groups_(std::move(groups)), leaves_(leaves_of(func)) {
    rows_.insert(groups_.get());
    for (size_t known = 0; known != count();) {
      known = count();
      for (const BlockRealizeRef& leaf : leaves_) note(*leaf->block);
    }
  }

  bool are_rows(const Buffer& b) const { return rows_.contains(&b); }
  bool is_stack(const Buffer& b) const { return stacks_.contains(&b); }
  bool is_row(const VarRef& iter) const { return row_iters_.contains(iter); }
  bool is_matrix(const VarRef& iter) const { return matrix_iters_.contains(iter); }
  const BufferRef& groups() const { return groups_; }

  /// Whether rows and matrices stand in the first places of their buffers alone.
  bool hold() const {
    bool good = true;
    for (const BlockRealizeRef& leaf : leaves_) {
      for (const IterVarRef& iter : leaf->block->iter_vars) good &= !(is_row(iter->var) && is_matrix(iter->var));
      for (const Stmt& part : {leaf->block->init, leaf->block->body}) good &= !part || holds(part);
      good &= is_one(leaf->predicate) && leaf->block->match_buffers.empty();
    }
    return good;
  }

 private:
  size_t count() const { return rows_.size() + stacks_.size() + row_iters_.size() + matrix_iters_.size(); }

  void note(const Block& block) {
    std::set<const Var*> own;
    for (const IterVarRef& iter : block.iter_vars) own.insert(iter->var.get());
    auto access = [&](const Buffer& buffer, const std::vector<Expr>& indices) {
      if (indices.empty()) return;
      const VarRef first = cast<Var>(indices[0]);
      if (const BufferLoad* g = load_below_casts(indices[0]); g && g->buffer == groups_) stacks_.insert(&buffer);
      if (!first || !own.contains(first.get())) return;
      if (rows_.contains(&buffer)) row_iters_.insert(first);
      if (row_iters_.contains(first)) rows_.insert(&buffer);
      if (stacks_.contains(&buffer)) matrix_iters_.insert(first);
      if (matrix_iters_.contains(first)) stacks_.insert(&buffer);
    };
    for (const Stmt& part : {block.init, block.body}) {
      if (!part) continue;
      walk(
          part,
          [&](const BufferLoad& n) { access(*n.buffer, n.indices); },
          [&](const BufferStore& n) { access(*n.buffer, n.indices); });
    }
  }

  /// Nowhere but in the first place of the right buffers.
  bool holds(const NodeRef& part) const {
    bool good = true;
    auto rest = [&](const std::vector<Expr>& indices, size_t from) {
      for (size_t d = from; d < indices.size(); ++d) good &= holds(indices[d]);
    };
    auto access = [&](const Buffer& buffer, const std::vector<Expr>& indices) {
      if (are_rows(buffer) || is_stack(buffer)) {
        const VarRef first = cast<Var>(indices[0]);
        const BufferLoad* g = load_below_casts(indices[0]);
        good &= are_rows(buffer) ? first && is_row(first)
                                 : (first && is_matrix(first)) || (g && g->buffer == groups_ && holds(indices[0]));
        rest(indices, 1);
      } else {
        rest(indices, 0);
      }
    };
    walk(
        part,
        [&](const BufferLoad& n) {
          access(*n.buffer, n.indices);
          return false;
        },
        [&](const BufferStore& n) {
          access(*n.buffer, n.indices);
          good &= holds(n.value);
          return false;
        },
        [&](const Var& v) { good &= !is_row(ref(v)) && !is_matrix(ref(v)); });
    return good;
  }

  BufferRef groups_;
  std::vector<BlockRealizeRef> leaves_;
  std::set<const Buffer*> rows_, stacks_;
  std::set<VarRef> row_iters_, matrix_iters_;
};

/// The function with `rows` for n, without the first dimension of stacks.
class OneGroup {
 public:
  OneGroup(const PrimFunc& func, const Roles& roles, Expr rows) : func_(func), roles_(roles), rows_(std::move(rows)) {}

  PrimFuncRef run() {
    std::vector<VarRef> params;
    std::vector<std::pair<VarRef, BufferRef>> buffers;
    for (const VarRef& param : func_.params) {
      const BufferRef buffer = func_.buffer_of(param);
      if (buffer && buffer == roles_.groups()) continue;
      params.push_back(make_var(param->name, param->dtype));
      if (buffer)
        buffers.emplace_back(params.back(), own(buffer));
      else
        scalars_.emplace(param, params.back());
    }
    const BlockRealizeRef root = root_of(func_);
    Block whole = *root->block;
    for (BufferRef& b : whole.alloc_buffers) b = own(b);
    std::vector<Stmt> body;
    for (const BlockRealizeRef& leaf : leaves_of(func_)) body.push_back(nest(*leaf));
    whole.body = seq(std::move(body));
    whole.name = block_name(root->block->name->text);
    Stmt realize = with(root, &BlockRealize::block, BlockRef(new Block(whole)));
    return make<PrimFunc>(params, buffers, func_.ret_dtype, func_.attrs, substitute(realize, scalars_));
  }

 private:
  BufferRef own(const BufferRef& b) {
    if (auto known = buffers_.find(b); known != buffers_.end()) return known->second;
    std::vector<Expr> shape = b->shape;
    if (roles_.are_rows(*b)) shape[0] = rows_;
    if (roles_.is_stack(*b)) shape.erase(shape.begin());
    return buffers_.emplace(b, make_buffer(b->name, std::move(shape), b->dtype, b->scope())).first->second;
  }

  std::vector<Expr> own(const Buffer& b, std::vector<Expr> indices) const {
    if (roles_.is_stack(b)) indices.erase(indices.begin());
    return indices;
  }

  /// A leaf block under loops of its own, one for each of its iterators.
  Stmt nest(const BlockRealize& leaf) {
    Block block = *leaf.block;
    std::vector<IterVarRef> iters;
    std::vector<Expr> values;
    std::vector<std::pair<VarRef, Expr>> loops;
    VarMap renewed;
    for (size_t i = 0; i < block.iter_vars.size(); ++i) {
      const IterVar& iter = *block.iter_vars[i];
      if (roles_.is_matrix(iter.var)) continue;
      const Var* given = leaf.values[i].as<Var>();
      const Expr extent = roles_.is_row(iter.var) ? rows_ : iter.dom->extent;
      VarRef loop = make_var(given ? given->name : iter.var->name, iter.var->dtype);
      VarRef var = make_var(iter.var->name, iter.var->dtype);
      renewed.emplace(iter.var, var);
      iters.push_back(make<IterVar>(make<Range>(int_imm(0, iter.var->dtype), extent), var, iter.kind));
      values.push_back(loop);
      loops.emplace_back(loop, extent);
    }
    block.iter_vars = std::move(iters);
    block.name = block_name(leaf.block->name->text);
    if (block.init) block.init = cast<StmtNode>(rewritten(block.init));
    block.body = cast<StmtNode>(rewritten(block.body));
    block.reads.clear(), block.writes.clear();
    std::vector<BufferRef> visible;
    for (const auto& [from, to] : buffers_) visible.push_back(to);
    BlockRef done = schedule::with_detected_regions(BlockRef(new Block(block)), visible, true, true);
    Stmt out = make<BlockRealize>(std::move(values), bool_imm(true), done);
    out = substitute(out, renewed);
    for (size_t i = loops.size(); i-- > 0;) out = for_loop(loops[i].first, loops[i].second, out);
    return out;
  }

  NodeRef rewritten(const NodeRef& part) {
    return transform(
        part,
        [&](const BufferLoad& n) -> NodeRef { return make<BufferLoad>(own(n.buffer), own(*n.buffer, n.indices)); },
        [&](const BufferStore& n) -> NodeRef {
          return make<BufferStore>(own(n.buffer), n.value, own(*n.buffer, n.indices));
        });
  }

  const PrimFunc& func_;
  const Roles& roles_;
  Expr rows_;
  std::map<BufferRef, BufferRef> buffers_;
  VarMap scalars_;
};

}  // namespace

std::optional<GroupedFunction> grouped_function(const PrimFuncRef& func) {
  if (!root_of(*func)) return {};
  const BufferRef groups = find_groups(*func);
  if (!groups || groups->shape.size() != 1) return {};
  const Roles roles(*func, groups);
  if (!roles.hold()) return {};
  GroupedFunction out{.all_rows = groups->shape[0]};
  const auto known = as_int(out.all_rows);
  if (!known || *known > kFewRows) out.rows = make_size_var("rows", out.all_rows->dtype);
  for (const VarRef& param : func->params) {
    const BufferRef b = func->buffer_of(param);
    out.params.push_back(b && b == groups          ? GroupedParam::groups
                         : b && roles.are_rows(*b) ? GroupedParam::rows
                         : b && roles.is_stack(*b) ? GroupedParam::stack
                         : b                       ? GroupedParam::shared
                                                   : GroupedParam::scalar);
  }
  out.one = OneGroup(*func, roles, out.rows ? Expr(out.rows) : int_imm(1, out.all_rows->dtype)).run();
  return out;
}

namespace {

/// Where a group begins, and how many rows it has.
struct Run {
  BufferRef groups, length;
  Expr begin, all;

  Expr group(const Expr& row) const { return load(groups, {row}); }
  Expr zero() const { return int_imm(0, all->dtype); }
  Expr one() const { return int_imm(1, all->dtype); }
  /// The row before it is of another group.
  Expr is_first() const {
    return logical_or(eq(begin, zero()), make<NE>(group(max(begin - one(), zero())), group(begin)));
  }
  Stmt measure() const {
    const Expr so_far = load(length, {zero()}), next = begin + so_far;
    const Expr more = logical_and(lt(next, all), eq(group(min(next, all - one())), group(begin)));
    return seq({store(length, one(), {zero()}), make<While>(more, store(length, so_far + one(), {zero()}))});
  }
};

/// Whether an index is read from memory.
bool gathers(const NodeRef& part) {
  bool found = false;
  auto look = [&](const std::vector<Expr>& indices) {
    for (const Expr& i : indices) walk(i, [&](const BufferLoad&) { found = true; });
  };
  walk(part, [&](const BufferLoad& n) { look(n.indices); }, [&](const BufferStore& n) { look(n.indices); });
  return found;
}

/// A row's group is one of those that there are: `stack` has a matrix for each.
Stmt check_group(const Run& run, const Buffer& stack) {
  const Expr group = cast_to(i64, run.group(run.begin)), count = cast_to(i64, stack.shape[0]);
  return make<AssertStmt>(
      logical_and(le(int_imm(0, i64), group), lt(group, count)),
      string_imm(text("an index of ", stack.name, " is out of range: ", group, " is not in [0, ", count, ")")),
      make<Evaluate>(int_imm(0)));
}

}  // namespace

PrimFuncRef for_all_groups(const PrimFuncRef& func, const GroupedFunction& grouped, const PrimFuncRef& one) {
  const DType dtype = grouped.all_rows->dtype;
  VarRef loop = make_var("row", dtype), begin = make_var("v_row", dtype), rows = make_var("rows", dtype);
  Run run{
      .length = make_buffer("length", {int_imm(1, dtype)}, dtype, "local"), .begin = begin, .all = grouped.all_rows};
  for (size_t i = 0; i < func->params.size(); ++i)
    if (grouped.params[i] == GroupedParam::groups) run.groups = func->buffer_of(func->params[i]);
  const Expr count = grouped.rows ? Expr(rows) : run.one();

  // The dense function over boxes of the whole one's buffers.
  NodeMap own;
  std::vector<MatchBufferRef> boxes;
  std::vector<Stmt> checks;
  std::vector<Expr> counts;  // of matrices, that rows' groups are compared with
  size_t next = 0;
  for (size_t i = 0; i < func->params.size(); ++i) {
    if (grouped.params[i] == GroupedParam::groups) continue;
    const VarRef& inner = one->params[next++];
    const BufferRef from = one->buffer_of(inner), to = func->buffer_of(func->params[i]);
    if (!from) {
      own.emplace(inner, func->params[i]);
    } else if (grouped.params[i] == GroupedParam::shared) {
      own.emplace(from, to);
    } else {
      const bool is_stack = grouped.params[i] == GroupedParam::stack;
      if (is_stack && std::ranges::none_of(counts, [&](const Expr& c) { return equal(c, to->shape[0]); })) {
        counts.push_back(to->shape[0]);
        checks.push_back(check_group(run, *to));
      }
      std::vector<RangeRef> box;
      for (const Expr& extent : to->shape) box.push_back(make<Range>(int_imm(0, extent->dtype), extent));
      box[0] = is_stack ? make<Range>(cast_to(to->shape[0]->dtype, run.group(begin)), int_imm(1, to->shape[0]->dtype))
                        : make<Range>(Expr(begin), count);
      std::vector<Expr> shape(to->shape.begin() + (is_stack ? 1 : 0), to->shape.end());
      if (!is_stack) shape[0] = count;
      BufferRef view = make_buffer(from->name, std::move(shape), from->dtype, to->scope());
      own.emplace(from, view);
      boxes.push_back(make<MatchBuffer>(view, make<BufferRegion>(to, std::move(box))));
    }
  }
  if (grouped.rows) own.emplace(grouped.rows, rows);
  const BlockRealizeRef dense = cast<BlockRealize>(fresh_copy(one->body, std::move(own)));
  Block group = *dense->block;
  group.match_buffers = std::move(boxes);
  group.name = block_name("group");
  // Which rows and which matrix is known when it runs.
  std::set<const Buffer*> written;
  walk(func->body, [&](const BufferStore& n) { written.insert(n.buffer.get()); });
  std::vector<BufferRegionRef> reads, writes;
  for (const auto& [param, buffer] : func->buffer_map)
    (written.contains(buffer.get()) ? writes : reads).push_back(full_region(buffer));
  group.reads = reads, group.writes = writes;
  checks.push_back(with(dense, &BlockRealize::block, BlockRef(new Block(group))));
  Stmt body = seq(std::move(checks));
  if (grouped.rows) {
    // At least one, which memory does not tell the simplifier.
    body = make<LetStmt>(max(load(run.length, {run.zero()}), run.one()), rows, body);
    body = make<IfThenElse>(run.is_first(), seq({run.measure(), body}), Stmt());
  }
  Block each;
  each.iter_vars = {make<IterVar>(make<Range>(run.zero(), grouped.all_rows), begin, IterKind::opaque)};
  each.name = block_name("groups");
  each.body = body;
  each.reads = reads, each.writes = writes;
  if (grouped.rows) each.alloc_buffers = {run.length};
  Stmt realize = make<BlockRealize>(std::vector<Expr>{loop}, bool_imm(true), BlockRef(new Block(each)));
  const BlockRealizeRef root = root_of(*func);
  Block whole = *root->block;
  whole.alloc_buffers.clear();
  whole.body = for_loop(loop, grouped.all_rows, realize);
  PrimFuncRef out = with(func, &PrimFunc::body, Stmt(with(root, &BlockRealize::block, BlockRef(new Block(whole)))));
  Attrs attrs = one->attrs;
  for (const auto& [key, value] : func->attrs) attrs.insert_or_assign(key, value);
  if (!gathers(one->body)) attrs.insert_or_assign(passes::kTrustedIndices, NodeRef(int_imm(1, i64)));
  return with(out, &PrimFunc::attrs, std::move(attrs));
}

}  // namespace sator::rules
