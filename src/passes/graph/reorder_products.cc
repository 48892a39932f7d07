// Products in another order: with sums, gathers, transposes and each other.
#include <algorithm>
#include <set>

#include "passes/attach.h"
#include "passes/graph/graph.h"
#include "passes/graph/rewrite_calls.h"
#include "relax/ops/attrs.h"
#include "relax/ops/table.h"

namespace sator::passes {

using namespace relax;

namespace {

/// A product with all of its operands in the order in which they are multiplied: (a b) c, or a (b c).
struct Chain {
  RExpr a, b, c;
  bool left_first = false;
  bool permuted = false;  ///< the inner product is transposed: of a, b, c those two are given as they stand
};

std::optional<std::vector<Expr>> known_extents(const RExpr& e) {
  const TensorInfo* t = e->sinfo.as<TensorInfo>();
  return t ? shape_of(*t) : std::nullopt;
}

bool same_extents(const RExpr& a, const RExpr& b, arith::Analyzer& arith) {
  auto s = known_extents(a), t = known_extents(b);
  return s && t && std::ranges::equal(*s, *t, [&](const Expr& x, const Expr& y) { return arith.prove(eq(x, y)); });
}

std::vector<Chain> chains_of(const RCall& product, const KnownValues& known) {
  std::vector<Chain> out;
  const RExpr &x = product.args[0], &y = product.args[1];
  if (const RCall* inner = known.call(x, "matmul"))
    out.push_back({.a = inner->args[0], .b = inner->args[1], .c = y, .left_first = true});
  if (const RCall* inner = known.call(y, "matmul")) out.push_back({.a = x, .b = inner->args[0], .c = inner->args[1]});
  // The transpose of (b a) is (a^T b^T).
  auto transposed = [&](const RExpr& e) -> const RCall* {
    const RCall* turned = known.call(e, "permute_dims");
    if (!turned || permutation_of(*turned) != std::vector<int64_t>{1, 0}) return nullptr;
    return known.call(turned->args[0], "matmul");
  };
  if (const RCall* inner = transposed(x))
    out.push_back({.a = inner->args[1], .b = inner->args[0], .c = y, .left_first = true, .permuted = true});
  if (const RCall* inner = transposed(y))
    out.push_back({.a = x, .b = inner->args[1], .c = inner->args[0], .permuted = true});
  return out;
}

/// The call with the attributes of another one of the op.
RExpr call_of(const char* op, std::vector<RExpr> args, const Attrs& attrs) {
  return relax::call(op_ref(op), std::move(args), attrs);
}
RExpr transpose_of(const RExpr& e) { return make_call("permute_dims", {e}); }

using Bounds = std::map<std::string, int64_t>;

/// The expression, a sum of products of sizes, with sizes that have an upper bound at that bound, or at 0.
Expr at_bounds(const Expr& work, const Bounds& bounds, bool upper) {
  VarMap values;
  for (const VarRef& v : vars_in(work))
    if (const auto at = bounds.find(v->name); at != bounds.end())
      values.emplace(v, int_imm(upper ? at->second : 0, v->dtype));
  return substitute(work, values);
}

/// The chain in the better order; null where none is known to be better.
///   bounds   of symbolic sizes, by name
RExpr better_order(Chain chain, const std::set<RVarRef>& compiled, const Bounds& bounds, arith::Analyzer& arith) {
  auto is_compiled = [&](const RExpr& e) {
    RVarRef v = sator::cast<RVar>(e);
    return v && compiled.contains(v);
  };
  const bool a = is_compiled(chain.a), b = is_compiled(chain.b), c = is_compiled(chain.c);
  if (a && b && c) return nullptr;
  auto shape_a = known_extents(chain.a), shape_b = known_extents(chain.b), shape_c = known_extents(chain.c);
  if (!shape_a || !shape_b || !shape_c) return nullptr;
  // A vector beside a batch of matrices would stand for rows in one order and for the batch in the other.
  const size_t widest = std::max({shape_a->size(), shape_b->size(), shape_c->size()});
  if (shape_a->empty() || shape_b->size() < 2 || shape_c->empty()) return nullptr;
  if (widest > 2 && (shape_a->size() == 1 || shape_c->size() == 1)) return nullptr;
  if (chain.permuted) {
    auto& other = chain.left_first ? shape_a : shape_c;
    if (other->size() != 2 || shape_b->size() != 2) return nullptr;
    std::ranges::reverse(*other);
    std::ranges::reverse(*shape_b);
    RExpr& outer = chain.left_first ? chain.a : chain.c;
    outer = transpose_of(outer);
    chain.b = transpose_of(chain.b);
  }
  auto left = [&] { return chain.left_first && !chain.permuted ? nullptr : matmul(matmul(chain.a, chain.b), chain.c); };
  auto right = [&] {
    return !chain.left_first && !chain.permuted ? nullptr : matmul(chain.a, matmul(chain.b, chain.c));
  };
  // Two operands that are known when compiled are multiplied then.
  if (a && b) return left();
  if (b && c) return right();
  Expr one = int_imm(1, i64);
  if (shape_a->size() == 1) shape_a->insert(shape_a->begin(), one);
  if (shape_c->size() == 1) shape_c->push_back(one);
  const Expr n = (*shape_a)[shape_a->size() - 2], r = shape_a->back();
  const Expr m = (*shape_c)[shape_c->size() - 2], k = shape_c->back();
  // Operations of (a b) c: n r m + n m k; of a (b c): r m k + n r k.
  const Expr left_work = (r + k) * n * m, right_work = (m + n) * r * k;
  if (arith.prove(lt(left_work, right_work))) return left();
  if (arith.prove(lt(right_work, left_work))) return right();
  // Work grows with each size: at the bounds on one side and without these sizes on the other it is compared safely.
  auto is_less = [&](const Expr& x, const Expr& y) {
    return !bounds.empty() && arith.prove(le(at_bounds(x, bounds, true), at_bounds(y, bounds, false)));
  };
  if (is_less(left_work, right_work)) return left();
  if (is_less(right_work, left_work)) return right();
  return nullptr;
}

CallRewrite adjusted(const Function& f) {
  return [compiled = known_when_compiled(f), bounds = noted_bounds(f)](const RCallRef& call,
                                                                       const KnownValues& known) -> RExpr {
    if (!is_op(call, "matmul")) return nullptr;
    for (const Chain& chain : chains_of(*call, known))
      if (RExpr out = better_order(chain, compiled, bounds, known.arith())) return out;
    return nullptr;
  };
}

CallRewrite expanded(const Function& f) {
  return [compiled = known_when_compiled(f)](const RCallRef& call, const KnownValues& known) -> RExpr {
    if (!is_op(call, "matmul")) return nullptr;
    const RCall* turned = known.call(call->args[1], "permute_dims");
    const RCall* sum = known.call(turned ? turned->args[0] : call->args[1], "add");
    if (!sum) return nullptr;
    auto is_compiled = [&](const RExpr& e) {
      RVarRef v = sator::cast<RVar>(e);
      return v && compiled.contains(v);
    };
    if (is_compiled(sum->args[0]) && is_compiled(sum->args[1])) return nullptr;
    // A term that is broadcast is no matrix of its own.
    for (const RExpr& e : sum->args)
      if (!same_extents(e, ref(*sum), known.arith())) return nullptr;
    auto term = [&](const RExpr& e) {
      return matmul(call->args[0], turned ? call_of("permute_dims", {e}, turned->attrs) : e);
    };
    return make_call("add", {term(sum->args[0]), term(sum->args[1])});
  };
}

RExpr take(const RExpr& x, const RExpr& indices, int64_t axis) {
  return make_call("take", {x, indices}, {{"axis", axis}});
}
RExpr reshape(const RExpr& x, std::vector<Expr> shape) {
  return make_call("reshape", {x, shape_expr(std::move(shape))});
}

RExpr take_after_product(const RCallRef& call, const KnownValues& known) {
  if (!is_op(call, "matmul")) return nullptr;
  const RCall* taken = known.call(call->args[1], "take");
  if (!taken) return nullptr;
  const RExpr &x = call->args[0], &weights = taken->args[0], &indices = taken->args[1];
  const TensorInfo *xi = x->sinfo.as<TensorInfo>(), *wi = weights->sinfo.as<TensorInfo>();
  const TensorInfo *ii = indices->sinfo.as<TensorInfo>(), *oi = call->sinfo.as<TensorInfo>();
  auto at = taken->attrs.find("axis");
  if (!xi || !wi || !ii || !oi || at == taken->attrs.end() || !at->second) return nullptr;
  if (xi->ndim < 0 || wi->ndim < 2 || ii->ndim != 1 || oi->ndim < 0) return nullptr;
  const int64_t given = AttrType<int64_t>::load(at->second), axis = given < 0 ? given + wi->ndim : given;
  // Columns of the weight: the same columns of the product.
  if (axis + 1 == wi->ndim) return take(matmul(x, weights), indices, oi->ndim - 1);
  auto xs = shape_of(*xi), ws = shape_of(*wi), is = shape_of(*ii);
  if (axis != 0 || xi->ndim != 3 || wi->ndim != 3 || !xs || !ws || !is) return nullptr;
  if (!known.arith().prove(eq((*xs)[0], (*is)[0]))) return nullptr;
  // One matrix of a table per row of the batch: the product with all of the table, then each row's part of it.
  RExpr table = make_call("permute_dims", {weights}, {{"axes", std::vector<Value>{1, 0, 2}}});
  RExpr all = matmul(x, reshape(table, {(*ws)[1], (*ws)[0] * (*ws)[2]}));
  RExpr parts = take(reshape(all, {(*xs)[0], (*xs)[1], (*ws)[0], (*ws)[2]}), indices, 2);
  return make_call("einsum", {relax::tuple({parts})}, {{"subscripts", "ijik->ijk"}});
}

RExpr permute_after_concat(const RCallRef& call, const KnownValues& known) {
  if (!is_op(call, "concat")) return nullptr;
  RExpr list = known.value(call->args[0]);
  const Tuple* items = list.as<Tuple>();
  if (!items || items->items.size() < 2) return nullptr;
  std::vector<RExpr> inner;
  const RCall* first = nullptr;
  std::optional<std::vector<int64_t>> axes;
  for (const RExpr& item : items->items) {
    const RCall* turned = known.call(item, "permute_dims");
    if (!turned) return nullptr;
    auto its = permutation_of(*turned);
    if (!its || (axes && *its != *axes)) return nullptr;
    if (!first) first = turned;
    axes = its;
    inner.push_back(turned->args[0]);
  }
  auto at = call->attrs.find("axis");
  int64_t axis = at == call->attrs.end() || !at->second ? 0 : AttrType<int64_t>::load(at->second);
  if (axis < 0) axis += static_cast<int64_t>(axes->size());
  if (axis < 0 || axis >= static_cast<int64_t>(axes->size())) return nullptr;
  RExpr joined = make_call("concat", {relax::tuple(std::move(inner))}, {{"axis", (*axes)[static_cast<size_t>(axis)]}});
  return call_of("permute_dims", {joined}, first->attrs);
}

RExpr reshape_once(const RCallRef& call, const KnownValues& known) {
  if (!is_op(call, "reshape")) return nullptr;
  if (const RCall* before = known.call(call->args[0], "reshape"))
    return make_call("reshape", {before->args[0], call->args[1]});
  auto from = known_extents(call->args[0]);
  auto to = shape_values(call->args[1]);
  if (!from || !to || from->size() != to->size()) return nullptr;
  for (size_t i = 0; i < to->size(); ++i)
    if (!equal((*from)[i], (*to)[i])) return nullptr;
  return call->args[0];
}

}  // namespace

ModuleRef adjust_matmul_order(const ModuleRef& module, const PassContext&) { return rewrite_calls(module, adjusted); }
ModuleRef expand_matmul_of_sum(const ModuleRef& module, const PassContext&) { return rewrite_calls(module, expanded); }
ModuleRef reorder_take_after_matmul(const ModuleRef& module, const PassContext&) {
  return rewrite_calls(module, [](const Function&) { return take_after_product; });
}
ModuleRef reorder_permute_dims_after_concat(const ModuleRef& module, const PassContext&) {
  return rewrite_calls(module, [](const Function&) { return permute_after_concat; });
}
ModuleRef remove_redundant_reshape(const ModuleRef& module, const PassContext&) {
  return rewrite_calls(module, [](const Function& f) -> CallRewrite {
    if (has_attr(f.attrs, "Primitive")) return [](const RCallRef&, const KnownValues&) -> RExpr { return nullptr; };
    return reshape_once;
  });
}

}  // namespace sator::passes
