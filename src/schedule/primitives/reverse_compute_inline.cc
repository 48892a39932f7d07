#include <algorithm>

#include "arith/iter_map.h"
#include "schedule/edit.h"
#include "schedule/primitives.h"

namespace sator::schedule {

using namespace tir;

namespace {

/// What is known of a consumer and the one producer it can be put into.
struct Plan {
  int consumer = -1, producer = -1;
  BufferRef between;
  const BufferStore *consumer_store = nullptr, *producer_store = nullptr;
  VarMap iterators;   ///< the consumer's iterators in terms of the producer's
  Expr predicate;     ///< of the producer's iterators: where the consumer has an instance
};

Reason refusal(const Schedule& s, int site, std::string what, std::string needs, std::string hint) {
  return {.what = text("block ", quoted(s.sites()[site].realize()->block->name->text), " ", what),
          .needs = std::move(needs), .hint = std::move(hint), .at = {{s.sites()[site].stmt, what}}};
}

/// The consumer's iterators as functions of the indices of its load: by plain variables, else by inverting the map.
MaybeReason solve_iterators(const Schedule& s, const Block& consumer, const std::vector<Expr>& load_indices, Plan& plan) {
  const std::vector<Expr>& at = plan.producer_store->indices;
  arith::Analyzer analyzer;
  arith::RangeMap domain;
  for (const IterVarRef& i : consumer.iter_vars) domain.emplace(i->var, i->dom);
  bool plain = true;
  for (size_t d = 0; d < load_indices.size(); ++d) {
    VarRef v = cast<Var>(load_indices[d]);
    if (v && domain.count(v) && !plan.iterators.count(v)) plan.iterators.emplace(v, at[d]);
    else if (!as_int(load_indices[d])) plain = false;
  }
  if (!plain) {
    plan.iterators.clear();
    arith::IterMap map = arith::detect_iter_map(load_indices, domain, nullptr, arith::IterMapLevel::bijective, analyzer);
    if (!map.ok())
      return refusal(s, plan.consumer, text("reads its producer in a way that cannot be undone: ", map.error),
                     "indices that are an affine, bijective map of the block's iterators", "inline the producer instead");
    arith::InverseResult inverse = arith::inverse_affine_iter_map(map.indices, at);
    if (!inverse.ok())
      return refusal(s, plan.consumer, text("reads its producer in a way that cannot be undone: ", inverse.error),
                     "indices that are an affine, bijective map of the block's iterators", "inline the producer instead");
    for (const auto& [var, value] : inverse.values) plan.iterators.emplace(var, value);
  }
  for (const IterVarRef& i : consumer.iter_vars) {
    if (plan.iterators.count(i->var)) continue;
    if (!is_one(i->dom->extent))
      return refusal(s, plan.consumer, text("has an iterator ", i->var->name, " that does not index what it reads"),
                     "every iterator follows from an element of the producer", "inline the producer instead");
    plan.iterators.emplace(i->var, i->dom->min);
  }
  return {};
}

MaybeReason make_plan(const Schedule& s, const BlockHandle& handle, Plan& plan) {
  const Sites& sites = s.sites();
  plan.consumer = s.site(handle);
  if (MaybeReason r = is_only_block(s, plan.consumer)) return r;
  int scope_site = sites[plan.consumer].scope;
  ScopeAnalysis scope(s, scope_site);
  const Block& consumer = *sites[plan.consumer].realize()->block;
  if (MaybeReason r = scope.not_complete(plan.consumer)) return r;
  if (consumer.init) return refusal(s, plan.consumer, "has an init", "a block without T.init()", "decompose it first");
  plan.consumer_store = consumer.body.as<BufferStore>();
  if (!plan.consumer_store || consumer.writes.size() != 1)
    return refusal(s, plan.consumer, "does more than one store", "a body of the form C[...] = value", "split it in two");
  std::vector<int> producers = scope.producers(plan.consumer);
  if (producers.size() != 1)
    return refusal(s, plan.consumer, text("has ", producers.size(), " producers in its scope"), "exactly one producer",
                   "inline the other producers first");
  plan.producer = producers.front();
  const BlockRealize& producer_realize = *sites[plan.producer].realize();
  const Block& producer = *producer_realize.block;
  if (producer.init)
    return refusal(s, plan.producer, "has an init", "a producer without T.init()",
                   "decompose_reduction, or reverse_compute_at the consumer");
  if (MaybeReason r = scope.not_complete(plan.producer)) return r;
  plan.producer_store = producer.body.as<BufferStore>();
  if (!plan.producer_store)
    return refusal(s, plan.producer, "does more than one store", "a producer of the form B[...] = value", "split it in two");
  plan.between = plan.producer_store->buffer;
  if (is_output_block(s, plan.producer))
    return refusal(s, plan.producer, "is an output block", "a buffer between them that stays inside of the scope",
                   "its result has to be written anyway");
  if (scope.consumers(plan.producer).size() != 1)
    return refusal(s, plan.producer, "has other consumers", "one consumer", "inline the producer instead");

  std::optional<std::vector<Expr>> indices;
  bool same = true;
  walk(plan.consumer_store->value, [&](const BufferLoad& l) {
    if (l.buffer != plan.between) return;
    if (!indices) indices = l.indices;
    for (size_t d = 0; d < l.indices.size(); ++d) same &= equal(l.indices[d], (*indices)[d]);
  });
  if (!indices || !same)
    return refusal(s, plan.consumer, "reads its producer at several places", "one element of the producer per instance",
                   "inline the producer instead");
  if (MaybeReason r = solve_iterators(s, consumer, *indices, plan)) return r;

  // Where the consumer has no instance, the producer's element is not used.
  arith::Analyzer analyzer;
  for (const IterVarRef& i : producer.iter_vars) analyzer.bind(i->var, i->dom);
  plan.predicate = bool_imm(true);
  auto require = [&](const Expr& condition) {
    Expr simple = analyzer.simplify(condition);
    if (!analyzer.prove(simple)) plan.predicate = logical_and(plan.predicate, simple);
  };
  for (const IterVarRef& i : consumer.iter_vars) {
    const Expr& value = plan.iterators.at(i->var);
    require(ge(value, i->dom->min));
    require(lt(value, i->dom->min + i->dom->extent));
  }
  for (size_t d = 0; d < indices->size(); ++d) {
    if (as_int((*indices)[d])) require(eq(plan.producer_store->indices[d], (*indices)[d]));
  }
  const BlockRealize& consumer_realize = *sites[plan.consumer].realize();
  if (!is_one(consumer_realize.predicate)) {
    // The predicate speaks of loops; it can be kept where the loops are the iterators.
    VarMap loops;
    for (size_t i = 0; i < consumer_realize.values.size(); ++i) {
      if (VarRef v = cast<Var>(consumer_realize.values[i])) loops.emplace(v, plan.iterators.at(consumer.iter_vars[i]->var));
    }
    for (const VarRef& v : vars_in(consumer_realize.predicate)) {
      if (!loops.count(v) && sites.find(v) >= 0)
        return refusal(s, plan.consumer, "runs under a predicate of loops that are not its iterators",
                       "a predicate over its iterators", "inline before splitting");
    }
    require(substitute(consumer_realize.predicate, loops));
  }
  if (!is_one(producer_realize.predicate))
    return refusal(s, plan.producer, "runs under a predicate", "a producer without T.where", "inline before splitting");
  return {};
}

/// Puts a consumer into its one producer, which then stores what the consumer would have computed.
///   B[vi] = A[vi] * 2; C[vi] = B[vi] + 1   =>   C[vi] = A[vi] * 2 + 1, at the producer's loops
/// Where the producer covers more than the consumer, its store is guarded.
void do_reverse_compute_inline(Schedule& s, BlockHandle block) {
  Plan plan;
  s.require(make_plan(s, block, plan));
  const Sites& sites = s.sites();
  const Block& producer = *sites[plan.producer].realize()->block;
  Expr value = transform(substitute(plan.consumer_store->value, plan.iterators), [&](const BufferLoad& l) -> NodeRef {
    return l.buffer == plan.between ? NodeRef(plan.producer_store->value) : NodeRef(&l);
  });
  std::vector<Expr> indices;
  arith::Analyzer analyzer;
  for (const IterVarRef& i : producer.iter_vars) analyzer.bind(i->var, i->dom);
  for (const Expr& i : plan.consumer_store->indices) indices.push_back(analyzer.simplify(substitute(i, plan.iterators)));
  Stmt body = store(plan.consumer_store->buffer, value, indices);
  if (!is_one(plan.predicate)) body = make<IfThenElse>(plan.predicate, body, Stmt());

  int scope_site = sites[plan.consumer].scope;
  const BlockRealize& scope = *sites[scope_site].realize();
  BlockRef merged = with_detected_regions(with(producer, &Block::body, body), buffers_of(*s.func()), true, true);
  Stmt rest = without(scope.block->body, sites[lone_nest(s, plan.consumer)].stmt);
  rest = replaced(rest, NodeMap{{ref(producer), merged}});
  std::vector<BufferRef> allocations = scope.block->alloc_buffers;
  allocations.erase(std::remove(allocations.begin(), allocations.end(), plan.between), allocations.end());
  replace_scope(s, scope_site, std::move(rest), std::move(allocations));
}

}  // namespace

const Primitive<void(BlockHandle)> reverse_compute_inline{
    "reverse_compute_inline", do_reverse_compute_inline, {"block"}, "puts a consumer into its one producer"};

}  // namespace sator::schedule
