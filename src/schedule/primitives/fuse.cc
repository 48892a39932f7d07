#include <algorithm>
#include <utility>

#include "arith/kind.h"
#include "schedule/loops.h"
#include "schedule/primitives.h"

namespace sator::schedule {

using namespace tir;

static constexpr size_t kLongestName = 100;

/// Whether the loops of known extents alone have more iterations together than an int64 counts.
static bool are_too_many(const Schedule& s, const std::vector<Loop>& loops) {
  int64_t product = 1;
  for (const Loop& l : loops) {
    auto extent = as_int(s.get(l).extent);
    if (extent && __builtin_mul_overflow(product, *extent, &product)) return true;
  }
  return false;
}

/// An upper bound of the iterations of all loops together: of a symbolic extent the greatest value that it may have.
static int64_t most_iterations(const Schedule& s, const std::vector<Loop>& loops, arith::Analyzer& analyzer) {
  int64_t product = 1;
  for (const Loop& l : loops) {
    const Expr& extent = s.get(l).extent;
    const int64_t most = std::clamp<int64_t>(analyzer.bounds(extent).max, 0, max_int(extent->dtype));
    if (__builtin_mul_overflow(product, most, &product)) return max_int(i64);
  }
  return product;
}

/// Why the loops cannot become one; nothing if they can.
static MaybeReason cannot_fuse(const Schedule& s, const std::vector<Loop>& loops) {
  if (loops.empty())
    return Reason{.what = "no loop is given", .needs = "one or more loops", .hint = "pass the loops, outermost first"};
  for (size_t k = 0; k < loops.size(); ++k) {
    if (MaybeReason r = not_a_plain_loop(s, loops[k], "fuse")) return r;
    const For& loop = s.get(loops[k]);
    if (k > 0) {
      const For& outer = s.get(loops[k - 1]);
      if (s.sites()[s.site(loops[k])].parent != s.site(loops[k - 1]))
        return Reason{.what = text("loop ", loops[k - 1]->name, " is not the parent of loop ", loops[k]->name),
                      .needs = "each loop directly inside of the one before",
                      .hint = "reorder the loops first",
                      .at = {{Stmt(&outer), "outer"}, {Stmt(&loop), "inner"}}};
      if (outer.body.get() != &loop)
        return Reason{.what = text("loop ", loops[k]->name, " is not the only child of loop ", loops[k - 1]->name),
                      .needs = "nothing between the loops",
                      .hint = "fuse before compute_at puts blocks between",
                      .at = {{Stmt(&outer), "has other children"}}};
    }
    for (size_t j = 0; j < k; ++j) {
      if (uses_var(loop.extent, *loops[j]) || uses_var(loop.min, *loops[j]))
        return Reason{.what = text("the range of loop ", loops[k]->name, " depends on loop ", loops[j]->name),
                      .needs = "loops whose ranges do not depend on each other",
                      .hint = "leave the dependent loop out",
                      .at = {{Stmt(&loop), "dependent range"}}};
    }
  }
  if (are_too_many(s, loops))
    return Reason{.what = "the loops have more iterations together than an int64 counts",
                  .needs = text("at most ", max_int(i64), " iterations"),
                  .hint = "fuse fewer of them",
                  .at = {{Stmt(&s.get(loops.front())), "outermost"}}};
  return {};
}

/// The condition simplified, without the parts that the others imply.
static Expr simplify_condition(const Expr& condition, arith::Analyzer& analyzer) {
  std::vector<Expr> parts = arith::conjuncts(analyzer.simplify(condition));
  auto all = [&] {
    Expr out = bool_imm(true);
    for (const Expr& p : parts) out = logical_and(out, p);
    return out;
  };
  for (size_t k = parts.size(); k-- > 0 && parts.size() > 1;) {
    const Expr part = std::exchange(parts[k], bool_imm(true));
    const auto scope = analyzer.with_constraint(all());
    if (analyzer.prove(part))
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(k));
    else
      parts[k] = part;
  }
  return all();
}

/// The outermost blocks in `stmt` with their predicates simplified: the digits of a loop that was split meet again.
static Stmt simplify_predicates(const Stmt& stmt, arith::Analyzer& analyzer) {
  if (const BlockRealize* realize = stmt.as<BlockRealize>())
    return with(*realize, &BlockRealize::predicate, simplify_condition(realize->predicate, analyzer));
  if (const For* loop = stmt.as<For>()) analyzer.bind(loop->var, make<Range>(loop->min, loop->extent));
  return cast<StmtNode>(stmt->info().map_children(*stmt, [&](const NodeRef& child) -> NodeRef {
    Stmt inner = cast<StmtNode>(child);
    return inner ? NodeRef(simplify_predicates(inner, analyzer)) : child;
  }));
}

/// Joins nested loops into one; the inverse of split.
///   for i, j in T.grid(n, m): S(i, j)   =>   for i_j_fused in range(n * m): S(i_j_fused // m, i_j_fused % m)
/// The loop counts in the widest dtype of the loops; in int64 where they may have more iterations together than that counts,
/// unless the caller knows that they have not (`fits_dtype`), as of sizes that only symbols name.
static Loop do_fuse(Schedule& s, std::vector<Loop> loops, bool preserve_unit_iters, bool fits_dtype) {
  s.require(cannot_fuse(s, loops));
  const For& first = s.get(loops.front());
  int outer = s.sites()[s.site(loops.front())].parent;
  std::string name;
  int bits = 0;
  for (const Loop& l : loops) {
    name += l->name + "_";
    bits = std::max<int>(bits, l->dtype.bits);
  }
  // Names double where a loop is split and fused again and again: long ones say where it began.
  if (name.size() > kLongestName) name = loops.front()->name + "_";
  arith::Analyzer analyzer;
  s.bind_ranges(analyzer, outer);
  if (!fits_dtype && most_iterations(s, loops, analyzer) > max_int(DType::Int(bits))) bits = 64;
  DType dtype = DType::Int(bits);
  Loop fused = make_var(name + "fused", dtype);

  VarMap map;
  Expr lower = int_imm(1, dtype);
  for (size_t k = loops.size(); k-- > 0;) {
    Expr extent = cast_to(dtype, s.get(loops[k]).extent);
    Expr digit = is_one(extent) ? int_imm(0, dtype)
                 : k == 0       ? floordiv(fused, lower)
                                : floordiv(floormod(fused, lower * extent), lower);
    map.emplace(loops[k], cast_to(loops[k]->dtype, digit));
    lower = lower * extent;
  }
  Expr extent = int_imm(1, dtype);
  for (const Loop& l : loops) extent = extent * cast_to(dtype, s.get(l).extent);
  extent = analyzer.simplify(extent);
  analyzer.bind(fused, range_of(extent));
  Stmt body = simplify_predicates(substitute(s.get(loops.back()).body, map), analyzer);
  s.replace(first, simplify_bindings(s, for_loop(fused, extent, body), outer, preserve_unit_iters));
  return fused;
}

const Primitive<Loop(std::vector<Loop>, bool, bool)> fuse{
    "fuse",
    do_fuse,
    {"loops", {"preserve_unit_iters", true}, Parameter::own("fits_dtype")},
    "joins nested loops into one"};

}  // namespace sator::schedule
