#include <algorithm>

#include "arith/iter_map.h"
#include "schedule/coverage.h"
#include "schedule/edit.h"
#include "schedule/primitives.h"

namespace sator::schedule {

using namespace tir;

namespace {

/// What is known of a consumer and the one producer it can be put into.
struct Inlining {
  int consumer = -1, producer = -1;
  BufferRef between;
  const BufferStore *consumer_store = nullptr, *producer_store = nullptr;
  Expr condition;    ///< under which the producer stores; null: always
  VarMap iterators;  ///< the consumer's iterators in terms of the producer's
  Expr predicate;    ///< of the producer's iterators: where the consumer has an instance
};

/// The consumer's iterators as functions of the indices of its load, by inverting the map.
MaybeReason solve_iterators(const Schedule& s, const Block& consumer, const std::vector<Expr>& load_indices,
                            Inlining& plan) {
  const std::vector<Expr>& at = plan.producer_store->indices;
  arith::Analyzer analyzer;
  arith::RangeMap domain;
  for (const IterVarRef& i : consumer.iter_vars) {
    domain.emplace(i->var, i->dom);
    analyzer.bind(i->var, i->dom);
    if (is_one(i->dom->extent) && as_int(i->dom->min)) plan.iterators.emplace(i->var, i->dom->min);
  }
  auto refuse = [&](const std::string& why) {
    return block_refusal(s,
                         plan.consumer,
                         text("reads its producer in a way that cannot be undone: ", why),
                         "indices that are an affine map of the block's iterators, from which each of them follows",
                         "inline the producer instead");
  };
  arith::IterMap map =
      arith::detect_iter_map(load_indices, domain, nullptr, arith::IterMapLevel::no_check, analyzer, false);
  if (!map.ok()) return refuse(map.error);
  arith::InverseResult inverse = arith::inverse_affine_iter_map(map.indices, at);
  if (!inverse.ok()) return refuse(inverse.error);
  for (const auto& [var, value] : inverse.values) plan.iterators.insert_or_assign(var, value);
  // A map that is not known to be bijective must be undone by its inverse.
  bool bijective =
      arith::detect_iter_map(load_indices, domain, nullptr, arith::IterMapLevel::bijective, analyzer, false).ok();
  if (!bijective) inverse = arith::inverse_affine_iter_map(map.indices, load_indices);
  for (const IterVarRef& i : consumer.iter_vars) {
    if (!plan.iterators.count(i->var))
      return block_refusal(s,
                           plan.consumer,
                           text("has an iterator ", i->var->name, " that does not index what it reads"),
                           "every iterator follows from an element of the producer",
                           "inline the producer instead");
    if (bijective || is_one(i->dom->extent)) continue;
    auto back = inverse.values.find(i->var);
    if (back == inverse.values.end() || !analyzer.prove_equal(back->second, i->var))
      return refuse(text("two instances may read one element, by iterator ", i->var->name));
  }
  return {};
}

/// Whether the value loads the buffer only where a condition holds. A load that always runs tells that its element was
/// written; from one behind a condition nothing follows.
bool loads_under_conditions(const Expr& value, const BufferRef& buffer) {
  bool always = false;
  auto visit = [&](const auto& self, const Expr& e) -> void {
    walk(
        e,
        [&](const BufferLoad& l) { always |= l.buffer == buffer; },
        [&](const Call& c) {
          if (c.op != "tir.if_then_else") return true;
          self(self, c.args[0]);
          return false;
        },
        [&](const Select& s) {
          self(self, s.condition);
          return false;
        },
        [&](const And& n) {
          self(self, n.a);
          return false;
        },
        [&](const Or& n) {
          self(self, n.a);
          return false;
        });
  };
  visit(visit, value);
  return !always;
}

/// Refused unless the producer surely writes the element of every instance of the consumer: what it lacks, the consumer
/// fills behind a condition (`C[v] = if v < n: B[v], else 0`).
MaybeReason lacks_elements(const Schedule& s, const std::vector<arith::IntSet>& read,
                           const std::vector<arith::IntSet>& made, const Inlining& plan) {
  arith::Analyzer analyzer;
  std::string why = leaves_unwritten(s, plan.producer, plan.between, s.sites()[plan.producer].scope);
  for (size_t d = 0; d < read.size() && why.empty(); ++d) {
    bool within = read[d].min && read[d].max && made[d].min && made[d].max &&
                  analyzer.prove(ge(read[d].min, made[d].min)) && analyzer.prove(le(read[d].max, made[d].max));
    if (!within) why = text("dimension ", d, " of ", plan.between->name, " might not reach as far");
  }
  if (why.empty()) return {};
  return block_refusal(s,
                       plan.consumer,
                       text("reads under a condition, and may have instances beyond what its producer computes: ", why),
                       "a producer that surely computes an element for each instance of the consumer",
                       "inline the producer instead");
}

/// Where the consumer has an instance for an element of the producer; refused where the producer lacks an element.
MaybeReason solve_predicate(const Schedule& s, const std::vector<Expr>& load_indices, Inlining& plan) {
  const Sites& sites = s.sites();
  const BlockRealize& consumer_realize = *sites[plan.consumer].realize();
  const Block &consumer = *consumer_realize.block, &producer = *sites[plan.producer].realize()->block;
  arith::Analyzer analyzer;
  arith::SetMap domains;
  for (const IterVarRef& i : producer.iter_vars) {
    analyzer.bind(i->var, i->dom);
    domains.emplace(i->var, arith::IntSet::from_range(*i->dom));
  }
  plan.predicate = bool_imm(true);
  auto require = [&](const Expr& condition) {
    if (!analyzer.prove(condition)) plan.predicate = logical_and(plan.predicate, condition);
  };
  for (const IterVarRef& i : consumer.iter_vars) {
    const Expr& value = plan.iterators.at(i->var);
    Expr end = i->dom->min + i->dom->extent;
    arith::IntSet made = arith::eval_set(value, domains);
    if ((made.min && analyzer.prove(gt(made.min, i->dom->min))) || (made.max && analyzer.prove(lt(made.max, end - 1))))
      return block_refusal(s,
                           plan.consumer,
                           text("has instances beyond what its producer computes, by iterator ", i->var->name),
                           "a producer that computes an element for each instance of the consumer",
                           "inline the producer instead");
    require(ge(value, i->dom->min));
    require(lt(value, end));
  }
  arith::SetMap reading;
  for (const IterVarRef& i : consumer.iter_vars) reading.emplace(i->var, arith::IntSet::from_range(*i->dom));
  std::vector<arith::IntSet> all_read, all_made;
  for (size_t d = 0; d < load_indices.size(); ++d) {
    arith::IntSet read = all_read.emplace_back(arith::eval_set(load_indices[d], reading));
    arith::IntSet made = all_made.emplace_back(arith::eval_set(plan.producer_store->indices[d], domains));
    if ((read.min && made.min && analyzer.prove(lt(read.min, made.min))) ||
        (read.max && made.max && analyzer.prove(gt(read.max, made.max))))
      return block_refusal(s,
                           plan.consumer,
                           text("reads beyond what its producer computes, in dimension ", d),
                           "a producer that computes an element for each instance of the consumer",
                           "inline the producer instead");
  }
  if (loads_under_conditions(plan.consumer_store->value, plan.between))
    if (MaybeReason r = lacks_elements(s, all_read, all_made, plan)) return r;
  for (size_t d = 0; d < load_indices.size(); ++d) {  // an element that no instance reads
    Expr read = substitute(load_indices[d], plan.iterators);
    if (!analyzer.prove_equal(read, plan.producer_store->indices[d]))
      require(eq(plan.producer_store->indices[d], analyzer.simplify(read)));
  }
  for (int site : {plan.consumer, plan.producer}) {
    if (!is_one(sites[site].realize()->predicate)) continue;
    if (std::string why = misses_values(s, site); !why.empty())
      return block_refusal(s,
                           site,
                           text("has fewer instances than its iterators have values: ", why),
                           "loops around the block that pass over the domains of its iterators",
                           "inline the producer instead");
  }
  if (!is_one(consumer_realize.predicate)) {
    // The predicate speaks of loops; it can be kept where the loops are the iterators.
    VarMap loops;
    for (size_t i = 0; i < consumer_realize.values.size(); ++i) {
      if (VarRef v = cast<Var>(consumer_realize.values[i]))
        loops.emplace(v, plan.iterators.at(consumer.iter_vars[i]->var));
    }
    for (const VarRef& v : vars_in(consumer_realize.predicate)) {
      if (!loops.count(v) && sites.find(v) >= 0)
        return block_refusal(s,
                             plan.consumer,
                             "runs under a predicate of loops that are not its iterators",
                             "a predicate over its iterators",
                             "inline before splitting");
    }
    require(substitute(consumer_realize.predicate, loops));
  }
  plan.predicate = analyzer.simplify(plan.predicate);
  const BlockRealize& producer_realize = *sites[plan.producer].realize();
  if (!is_one(producer_realize.predicate) && !misses_values(s, plan.producer).empty()) {
    arith::Analyzer with_consumer;
    auto runs = with_consumer.with_constraint(substitute(plan.predicate, bindings_of(producer_realize)));
    if (!with_consumer.prove(producer_realize.predicate))
      return block_refusal(s,
                           plan.producer,
                           "runs under a predicate that may leave elements out which the consumer computes with",
                           "a producer that runs wherever the consumer has an instance",
                           "inline the producer instead");
  }
  return {};
}

MaybeReason make_plan(const Schedule& s, const BlockHandle& handle, Inlining& plan) {
  const Sites& sites = s.sites();
  plan.consumer = s.site(handle);
  if (MaybeReason r = is_only_block(s, plan.consumer)) return r;
  int scope_site = sites[plan.consumer].scope;
  ScopeAnalysis scope(s, scope_site);
  const Block& consumer = *sites[plan.consumer].realize()->block;
  if (MaybeReason r = scope.not_complete(plan.consumer)) return r;
  if (consumer.init)
    return block_refusal(s, plan.consumer, "has an init", "a block without T.init()", "decompose it first");
  plan.consumer_store = consumer.body.as<BufferStore>();
  if (!plan.consumer_store || consumer.writes.size() != 1)
    return block_refusal(
        s, plan.consumer, "does more than one store", "a body of the form C[...] = value", "split it in two");
  std::vector<int> producers = scope.producers(plan.consumer);
  if (producers.size() != 1)
    return block_refusal(s,
                         plan.consumer,
                         text("has ", producers.size(), " producers in its scope"),
                         "exactly one producer",
                         "inline the other producers first");
  plan.producer = producers.front();
  const BlockRealize& producer_realize = *sites[plan.producer].realize();
  const Block& producer = *producer_realize.block;
  if (producer.init)
    return block_refusal(s,
                         plan.producer,
                         "has an init",
                         "a producer without T.init()",
                         "decompose_reduction, or reverse_compute_at the consumer");
  if (MaybeReason r = scope.not_complete(plan.producer)) return r;
  plan.producer_store = producer.body.as<BufferStore>();
  if (const IfThenElse* guarded = producer.body.as<IfThenElse>(); guarded && !guarded->else_case) {
    plan.producer_store = guarded->then_case.as<BufferStore>();
    plan.condition = guarded->condition;
  }
  if (!plan.producer_store)
    return block_refusal(
        s, plan.producer, "does more than one store", "a producer of the form B[...] = value", "split it in two");
  plan.between = plan.producer_store->buffer;
  if (is_output_block(s, plan.producer))
    return block_refusal(s,
                         plan.producer,
                         "is an output block",
                         "a buffer between them that stays inside of the scope",
                         "its result has to be written anyway");
  if (scope.consumers(plan.producer).size() != 1)
    return block_refusal(s, plan.producer, "has other consumers", "one consumer", "inline the producer instead");

  std::optional<std::vector<Expr>> indices;
  bool same = true;
  walk(plan.consumer_store->value, [&](const BufferLoad& l) {
    if (l.buffer != plan.between) return;
    if (!indices) indices = l.indices;
    for (size_t d = 0; d < l.indices.size(); ++d) same &= equal(l.indices[d], (*indices)[d]);
  });
  if (!indices || !same)
    return block_refusal(s,
                         plan.consumer,
                         "reads its producer at several places",
                         "one element of the producer per instance",
                         "inline the producer instead");
  if (MaybeReason r = solve_iterators(s, consumer, *indices, plan)) return r;

  return solve_predicate(s, *indices, plan);
}

/// Puts a consumer into its one producer, which then stores what the consumer would have computed.
///   B[vi] = A[vi] * 2; C[vi] = B[vi] + 1   =>   C[vi] = A[vi] * 2 + 1, at the producer's loops
/// Where the producer covers more than the consumer, it runs under a predicate.
void do_reverse_compute_inline(Schedule& s, BlockHandle block) {
  Inlining plan;
  s.require(make_plan(s, block, plan));
  const Sites& sites = s.sites();
  const BlockRealize& realize = *sites[plan.producer].realize();
  const Block& producer = *realize.block;
  Expr value = transform(substitute(plan.consumer_store->value, plan.iterators), [&](const BufferLoad& l) -> NodeRef {
    return l.buffer == plan.between ? NodeRef(plan.producer_store->value) : NodeRef(&l);
  });
  std::vector<Expr> indices;
  for (const Expr& i : plan.consumer_store->indices) indices.push_back(substitute(i, plan.iterators));
  Stmt body = store(plan.consumer_store->buffer, value, indices);
  if (plan.condition) body = make<IfThenElse>(plan.condition, body, Stmt());
  BlockRef merged = with_detected_regions(with(producer, &Block::body, body), buffers_of(*s.func()), true, true);
  BlockRealizeRef grown = with(realize, &BlockRealize::block, merged);
  if (!is_one(plan.predicate)) {
    arith::Analyzer analyzer;
    Expr added = substitute(plan.predicate, bindings_of(realize));
    {
      auto known = analyzer.with_constraint(realize.predicate);
      added = analyzer.simplify(added);
    }
    grown = with(grown, &BlockRealize::predicate, analyzer.simplify(logical_and(realize.predicate, added)));
  }

  int scope_site = sites[plan.consumer].scope;
  const BlockRealize& scope = *sites[scope_site].realize();
  Stmt rest = without(scope.block->body, sites[lone_nest(s, plan.consumer)].stmt);
  rest = replaced(rest, NodeMap{{ref(realize), grown}});
  std::vector<BufferRef> allocations = scope.block->alloc_buffers;
  allocations.erase(std::remove(allocations.begin(), allocations.end(), plan.between), allocations.end());
  replace_scope(s, scope_site, std::move(rest), std::move(allocations));
}

}  // namespace

const Primitive<void(BlockHandle)> reverse_compute_inline{
    "reverse_compute_inline", do_reverse_compute_inline, {"block"}, "puts a consumer into its one producer"};

}  // namespace sator::schedule
