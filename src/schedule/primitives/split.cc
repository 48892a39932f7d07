#include <algorithm>

#include "arith/numbers.h"
#include "schedule/loops.h"
#include "schedule/primitives.h"

namespace sator::schedule {

using namespace tir;

/// The site of a reduction with an init, one of whose reduction axes follows the loop; -1 if there is none.
static int carried_reduction(const Schedule& s, const Loop& loop) {
  for (int b : s.sites().blocks_under(s.site(loop))) {
    const BlockRealize& realize = *s.sites()[b].realize();
    for (size_t k = 0; realize.block->init && k < realize.values.size(); ++k)
      if (realize.block->iter_vars[k]->kind == IterKind::reduce && uses_var(realize.values[k], *loop)) return b;
  }
  return -1;
}

/// Why loop i cannot be split by these factors; nothing if it can.
static MaybeReason cannot_split(const Schedule& s, const Loop& i, const Factors& factors) {
  if (MaybeReason r = not_a_plain_loop(s, i, "split")) return r;
  const For& loop = s.get(i);
  arith::Analyzer analyzer;
  s.bind_ranges(analyzer, s.site(i));
  int open = 0;
  std::optional<int64_t> count = 1;  // of what is given as numbers; nothing beyond 64 bits
  Expr product = int_imm(1, loop.extent->dtype);
  for (const std::optional<Expr>& f : factors) {
    if (f && !(*f)->dtype.is_integer())
      return Reason{
          .what = text("factor ", *f, " is no integer"), .needs = "integers, at most one None", .hint = "round it"};
    if (!f) {
      ++open;
      continue;
    }
    if (auto v = as_int(*f); v && *v < 1)
      return Reason{.what = text("factor ", *v, " is not positive"),
                    .needs = "factor >= 1, the extent of a new loop",
                    .hint = "pass a positive factor",
                    .at = {{Stmt(&loop), "split here"}}};
    if (auto v = as_int(*f); v && count) count = arith::checked_mul(*count, *v);
    product = product * *f;
  }
  if (const int64_t limit = max_int(i->dtype); !count || *count > limit)
    return Reason{.what = text("the factors' product is beyond what the ", i->dtype, " of loop ", i->name, " counts"),
                  .needs = text("a product of at most ", limit),
                  .hint = "leave one factor open: None",
                  .at = {{Stmt(&loop), "split here"}}};
  // An extent that nobody bounds is taken to be no greater than half of what the loop counts. Rounding it up adds to it first.
  const int64_t limit = max_int(i->dtype);
  const auto extent = as_int(loop.extent);
  auto last = arith::checked_add(extent ? *extent : std::min(analyzer.bounds(loop.extent).max, limit / 2), *count - 1);
  if (extent && last) *last -= *last % *count;
  if (open == 1 && (!last || *last > limit))
    return Reason{
        .what = text("the new loops may have more iterations than the ", i->dtype, " of loop ", i->name, " counts"),
        .needs = text("at most ",
                      limit,
                      " iterations: the extent ",
                      loop.extent,
                      " rounded up to the product of the factors, ",
                      *count),
        .hint = "use smaller factors",
        .at = {{Stmt(&loop), "split here"}}};
  if (factors.empty() || open > 1)
    return Reason{.what = text(factors.empty() ? "no factor is given" : text(open, " factors are left open")),
                  .needs = "at least one factor, at most one of them None",
                  .hint = "give all but one",
                  .at = {{Stmt(&loop), "split here"}}};
  // A factor that is ceildiv(extent, the others) covers the loop, also where no rule sees it.
  auto is_rest = [&](size_t k) {
    Expr others = int_imm(1, loop.extent->dtype);
    for (size_t i = 0; i < factors.size(); ++i)
      if (i != k) others = others * *factors[i];
    return !is_zero(others) && analyzer.prove_equal(*factors[k], ceildiv(loop.extent, others));
  };
  bool covers = open == 1 || analyzer.prove(ge(product, loop.extent), arith::Strength::symbolic);
  for (size_t k = 0; !covers && k < factors.size(); ++k) covers = !as_int(*factors[k]) && is_rest(k);
  if (!covers)
    return Reason{
        .what =
            text("the factors' product ", as_int(loop.extent) ? "is" : "may be", " below the extent of loop ", i->name),
        .needs = "product of the factors >= extent, so that every iteration runs",
        .hint = "leave one factor open: None",
        .at = {{Stmt(&loop), "split here"}}};
  const bool may_be_empty = open == 0 && !analyzer.prove_ge(loop.extent, 1);
  const int reduction = may_be_empty && analyzer.prove_ge(product, 1) ? carried_reduction(s, i) : -1;
  if (reduction >= 0)
    return Reason{.what = text("loop ",
                               i->name,
                               " carries a reduction and may have no iteration, but the new loops have ",
                               as_int(product) ? text(*as_int(product)) : text(product)),
                  .needs = "new loops without an iteration where the loop has none: there its init runs",
                  .hint = "leave one factor open: None",
                  .at = {{Stmt(&loop), "split here"}, {s.sites()[reduction].stmt, "the reduction"}}};
  return {};
}

/// Why the loop cannot be split without a predicate; nothing if it can. Sizes that only symbols name are the caller's to know.
static MaybeReason cannot_leave_predicate_out(const Schedule& s, const Loop& i, const Factors& factors) {
  const For& loop = s.get(i);
  const auto extent = as_int(loop.extent);
  int64_t product = 1;
  bool open = false;
  for (const std::optional<Expr>& f : factors) {
    if (f && !as_int(*f)) return {};
    f ? product *= *as_int(*f) : open = true;
  }
  if (!extent || (open ? *extent % product == 0 : *extent == product)) return {};
  return Reason{.what = text("the factors' product ",
                             product,
                             open ? " does not divide " : " is not ",
                             "the extent ",
                             *extent,
                             " of loop ",
                             i->name),
                .needs = "factors that make just as many iterations, where no predicate holds others back",
                .hint = "leave disable_predication out",
                .at = {{Stmt(&loop), "split here"}}};
}

/// Why a predicate of the blocks in the loop does not keep it from reading memory that it did not read.
static MaybeReason cannot_guard_bounds(const For& loop) {
  MaybeReason reason;
  walk(
      loop.body,
      [](const Block&) { return false; },
      [&](const For& inner) {
        for (const Expr* bound : {&inner.min, &inner.extent})
          walk(*bound, [&](const BufferLoad& load) {
            if (uses_var(ref(load), *loop.var) && !reason)
              reason = Reason{
                  .what = text("the bound of loop ",
                               inner.var->name,
                               " reads ",
                               load.buffer->name,
                               ", also where ",
                               loop.var->name,
                               " would exceed its extent: no predicate of a block guards it"),
                  .needs = "factors whose product is the extent, where bounds of inner loops are read from memory",
                  .hint = "choose factors that divide the extent",
                  .at = {{Stmt(&inner), "this loop"}}};
            return true;
          });
        return true;
      });
  return reason;
}

/// Splits a loop into as many loops as there are factors; a factor left open becomes ceildiv(extent, product of the
/// others).
///   for i in range(n): S(i)   =>   for i_0, i_1 in T.grid(n_0, n_1): S(i_0 * n_1 + i_1)
/// Where the product is not known to be n, the blocks below run under `T.where(i_0 * n_1 + i_1 < n)`.
/// `disable_predication` leaves that out (for extents that hardware masks).
static std::vector<Loop> do_split(Schedule& s, Loop i, Factors factors, bool preserve_unit_iters,
                                  bool disable_predication) {
  s.require(cannot_split(s, i, factors));
  if (disable_predication) s.require(cannot_leave_predicate_out(s, i, factors));
  const For& loop = s.get(i);
  int outer = s.sites()[s.site(i)].parent;
  arith::Analyzer analyzer;
  s.bind_ranges(analyzer, outer);

  int bits = i->dtype.bits;
  for (const auto& f : factors) {
    if (f && !as_int(*f)) bits = std::max<int>(bits, (*f)->dtype.bits);
  }
  DType dtype = DType::Int(bits);
  std::vector<Expr> extents(factors.size());
  Expr known = int_imm(1, dtype);
  for (size_t k = 0; k < factors.size(); ++k) {
    if (factors[k]) {
      extents[k] =
          as_int(*factors[k]) ? int_imm(*as_int(*factors[k]), dtype) : analyzer.simplify(cast_to(dtype, *factors[k]));
      known = known * extents[k];
    }
  }
  for (Expr& e : extents) {
    if (e) continue;
    const auto extent = as_int(loop.extent), count = as_int(known);
    // Of numbers in 64 bits: their sum may leave the loop's dtype where the quotient does not.
    e = extent && count ? int_imm(floor_div(*extent + (*count - 1), *count), dtype)
                        : analyzer.simplify(ceildiv(cast_to(dtype, loop.extent), known));
  }

  std::vector<Loop> loops;
  Expr index = int_imm(0, dtype);
  for (size_t k = 0; k < extents.size(); ++k) {
    Loop fresh = make_var(text(i->name, "_", k), dtype);
    loops.push_back(fresh);
    analyzer.bind(fresh, range_of(extents[k]));
    index = index * extents[k] + fresh;
  }
  Stmt body = substitute(loop.body, VarMap{{i, cast_to(i->dtype, index)}});
  Expr inside = lt(index, loop.extent);
  if (!disable_predication && !analyzer.prove(inside, arith::Strength::symbolic)) {
    s.require(cannot_guard_bounds(loop));
    body = with_predicate(body, inside);
  }
  for (size_t k = loops.size(); k-- > 0;) body = for_loop(loops[k], extents[k], body);
  s.replace(loop, simplify_bindings(s, body, outer, preserve_unit_iters));
  return loops;
}

const Primitive<std::vector<Loop>(Loop, Factors, bool, bool)> split{
    "split",
    do_split,
    {"loop", "factors", {"preserve_unit_iters", true}, {"disable_predication", false}},
    "divides a loop into nested loops"};

}  // namespace sator::schedule
