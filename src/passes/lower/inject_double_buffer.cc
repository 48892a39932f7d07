// What fills a buffer under the attribute "double_buffer_scope" runs one iteration ahead, into the other half of a buffer of
// twice the size:
//   for i in range(n): B = alloc(m); (attr B double_buffer_scope: fill(B, i)); use(B, i)
//     =>   B = alloc(2 * m); fill(B, 0); for i in range(n - 1): (fill(B, i + 1); use(B, i)); use(B, n - 1)
#include <algorithm>

#include "passes/lower/lower.h"
#include "tir/copy.h"

namespace sator::passes {

using namespace tir;

namespace {

constexpr const char* kScope = "double_buffer_scope";

/// A loop whose body begins with filling a buffer that it allocates.
struct DoubleBuffer {
  Ref<const Allocate> memory;
  BufferRef declared;  ///< null: under no declared name
  Stmt fill;
  std::vector<Stmt> use;
};

std::optional<DoubleBuffer> double_buffer(const For& loop) {
  DoubleBuffer out;
  Stmt body = loop.body;
  if (const Allocate* n = body.as<Allocate>()) {
    out.memory = ref(*n);
    body = n->body;
  }
  if (const DeclBuffer* n = body.as<DeclBuffer>(); n && out.memory && n->buffer->data == out.memory->data) {
    out.declared = n->buffer;
    body = n->body;
  }
  std::vector<Stmt> stmts = {body};
  if (const Seq* n = body.as<Seq>()) stmts = n->stmts;
  const AttrStmt* scope = stmts.front().as<AttrStmt>();
  if (!out.memory || !scope || scope->key != kScope || scope->node != NodeRef(out.memory->data)) return {};
  out.fill = scope->body;
  out.use.assign(stmts.begin() + 1, stmts.end());
  return out;
}

/// The buffers by their pointers that a statement reads, or writes.
std::unordered_set<const Var*> touched(const std::vector<Stmt>& stmts, bool writes) {
  std::unordered_set<const Var*> out;
  for (const Stmt& s : stmts) {
    walk(
        s,
        [&](const BufferStore& n) {
          if (writes) out.insert(n.buffer->data.get());
        },
        [&](const BufferLoad& n) {
          if (!writes) out.insert(n.buffer->data.get());
        });
  }
  return out;
}

bool meet(const std::unordered_set<const Var*>& a, const std::unordered_set<const Var*>& b, const Var* but) {
  return std::ranges::any_of(a, [&](const Var* v) { return v != but && b.contains(v); });
}

Stmt doubled(const For& loop, const DoubleBuffer& plan, int64_t split) {
  auto refuse = [&](std::string what, std::string needs) {
    fail({.what = text("loop ", loop.var->name, " asks for a double buffer ", plan.memory->data->name, ", ", what),
          .needs = std::move(needs),
          .hint = text("take the attribute ", kScope, " off"),
          .at = {{ref(loop), "double buffer"}}});
  };
  auto count = as_int(loop.extent);
  if (!count || *count < 1 || loop.kind != LoopKind::serial)
    refuse("and does not run a constant number of times in order", "a serial loop of constant extent");
  if (plan.memory->extents.size() != 1) refuse("which has several dimensions", "flat memory: run FlattenBuffer before");
  const Var* own = plan.memory->data.get();
  if (meet(touched({plan.fill}, false), touched(plan.use, true), own) ||
      meet(touched({plan.fill}, true), touched(plan.use, false), own) ||
      meet(touched({plan.fill}, true), touched(plan.use, true), own))
    refuse("whose filling depends on what its use stores", "a buffer that can be filled before the last one is used");

  const DType d = loop.var->dtype;
  const Expr size = plan.memory->extents[0];
  BufferMap halves;
  auto grown = [&](const BufferRef& b) {
    auto [at, fresh] = halves.try_emplace(b);
    if (fresh) at->second = with(*b, &Buffer::shape, std::vector<Expr>{b->shape[0] * 2});
    return at->second;
  };
  auto at_half = [&](const std::vector<Expr>& indices) -> std::vector<Expr> {
    const Expr half = floormod(loop.var - loop.min, 2) * cast_to(d, size);
    const Expr& i = indices[0];
    if (const Ramp* r = i.as<Ramp>())
      return {make<Ramp>(r->base + cast_to(r->base->dtype, half), r->stride, Lanes(r->lanes))};
    return {i + cast_to(i->dtype, half)};
  };
  auto in_halves = [&](const Stmt& stmt) {
    return transform(
        stmt,
        [&](const BufferLoad& n) -> Expr {
          return n.buffer->data.get() == own ? load(grown(n.buffer), at_half(n.indices)) : Expr(ref(n));
        },
        [&](const BufferStore& n) -> Stmt {
          return n.buffer->data.get() == own ? store(grown(n.buffer), n.value, at_half(n.indices)) : Stmt(ref(n));
        });
  };
  const Stmt fill = in_halves(plan.fill);
  const Stmt use = plan.use.empty() ? Stmt() : in_halves(seq(plan.use));
  auto iteration = [&](const Stmt& stmt, const Expr& i) { return fresh_copy(stmt, substitutions({{loop.var, i}})); };

  std::vector<Stmt> all = {iteration(fill, loop.min)};
  if (*count > 1) {
    auto steady_at = [&](const Expr& i, std::vector<Stmt>& out) {
      out.push_back(make<AttrStmt>(NodeRef(plan.memory->data),
                                   std::string("double_buffer_write"),
                                   int_imm(1),
                                   iteration(fill, i + loop.min + 1)));
      if (use) out.push_back(iteration(use, i + loop.min));
    };
    VarRef i(new Var(*loop.var));
    std::vector<Stmt> steady;
    const int64_t steps = *count - 1;
    for (int64_t k = 0; k < split; ++k) steady_at(split == 1 ? Expr(i) : i * int_imm(split, d) + int_imm(k, d), steady);
    if (steps >= split) all.push_back(for_loop(i, int_imm(steps / split, d), seq(std::move(steady))));
    for (int64_t k = steps / split * split; k < steps; ++k) steady_at(int_imm(k, d), all);
  }
  if (use) all.push_back(iteration(use, loop.min + (*count - 1)));
  Stmt body = seq(std::move(all));
  if (plan.declared) body = make<DeclBuffer>(grown(plan.declared), body);
  Allocate memory = *plan.memory;
  memory.extents = {size * 2};
  memory.body = body;
  return Stmt(new Allocate(std::move(memory)));
}

}  // namespace

PrimFuncRef inject_double_buffer(const PrimFuncRef& func, const LowerOptions& options) {
  const int64_t split = option(options, "tir.InjectDoubleBuffer.split_loop", 1);
  if (split < 1)
    fail({.what = text("tir.InjectDoubleBuffer.split_loop is ", split),
          .needs = "iterations of a loop's body that are written out, from 1 on",
          .hint = "leave it out for 1"});
  Stmt body = transform(func->body, [&](const For& n) -> Stmt {
    std::optional<DoubleBuffer> plan = double_buffer(n);
    return plan ? doubled(n, *plan, split) : Stmt(ref(n));
  });
  walk(body, [&](const AttrStmt& n) {
    if (n.key == kScope && options.note)
      options.note({.what = text(kScope, " of ", n.node.as<Var>() ? n.node.as<Var>()->name : "nothing", " stays"),
                    .needs = "it opens the body of the loop that allocates the buffer",
                    .hint = "fill the buffer first in the loop's body"});
  });
  return with_body(func, body);
}

}  // namespace sator::passes
