#include <algorithm>

#include "arith/iter_map.h"
#include "schedule/edit.h"
#include "schedule/loops.h"
#include "schedule/primitives.h"
#include "tir/print.h"

namespace sator::schedule {

using namespace tir;
using arith::IntSet;

namespace {

using Box = std::vector<IntSet>;

/// The values that one iterator of the moved block must take: `dom`; of these only those in `bound` exist.
struct IteratorDomain {
  IntSet dom = IntSet::nothing(), bound = IntSet::nothing();
};

struct Move {
  int block = -1, loop = -1, scope = -1;
  bool upward = true;  ///< compute_at: a producer goes to its consumers
  std::vector<int> producers, consumers;
};

/// Why a block might not run below the loop, which runs in each iteration what no other block ties to it; nothing if it does.
/// compute_at: a loop without iterations has no consumers that miss the block. reverse_compute_at: what producers write in no
/// iteration is nothing, unless the loop gives their elements no place: it then carries a reduction, whose init is written.
MaybeReason runs_never(const Schedule& s, const Move& move) {
  if (move.upward && !move.consumers.empty()) return {};
  const Sites& sites = s.sites();
  auto places = [&](const Var& loop) {
    return std::ranges::any_of(move.producers, [&](int producer) {
      const BlockRealize& realize = *sites[producer].realize();
      for (size_t i = 0; i < realize.values.size(); ++i)
        if (realize.block->iter_vars[i]->kind != IterKind::reduce && uses_var(realize.values[i], loop)) return true;
      return false;
    });
  };
  arith::Analyzer analyzer;
  s.bind_ranges(analyzer, move.loop);
  for (int at = move.loop; sites[at].loop() && !sites.is_above(at, move.block); at = sites[at].parent) {
    const For& loop = *sites[at].loop();
    if (analyzer.prove_ge(loop.extent, 1) || (!move.upward && places(*loop.var))) continue;
    std::string needed = move.upward              ? "a loop of the block's consumers, of which it has none"
                         : move.producers.empty() ? "a loop of the block's producers, of which it has none"
                                                  : "a loop over what the block's producers write";
    return refusal_at(s,
                      at,
                      text("loop ", loop.var->name, " may have no iteration, and the block would not run"),
                      needed + ", or one that has an iteration for all sizes",
                      "leave the block where it is");
  }
  return {};
}

/// Why the block cannot be moved under the loop; nothing if it can. Fills `move`.
MaybeReason cannot_move(const Schedule& s, const BlockHandle& handle, const Loop& loop, bool upward, Move& move) {
  const Sites& sites = s.sites();
  move.block = s.site(handle);
  move.loop = s.site(loop);
  move.upward = upward;
  move.scope = sites[move.block].scope;
  const std::string block_name = string_literal(handle->text);
  if (MaybeReason r = is_only_block(s, move.block)) return r;
  if (MaybeReason r = not_stage_pipeline(s, move.scope)) return r;
  ScopeAnalysis scope(s, move.scope);
  if (MaybeReason r = scope.not_complete_or_reduction(move.block)) return r;
  if (sites[move.loop].scope != move.scope)
    return refusal_at(s,
                      move.loop,
                      text("loop ", loop->name, " is not in the scope of block ", block_name),
                      "a loop of the block's own scope",
                      "move blocks within one scope");
  if (sites.is_above(move.loop, move.block))
    return refusal_at(s,
                      move.loop,
                      text("loop ", loop->name, " is around block ", block_name, " already"),
                      "a loop that is not around the block",
                      "leave the block where it is, or choose another loop");
  if (upward && is_output_block(s, move.block))
    return refusal_at(s,
                      move.block,
                      text("block ", block_name, " writes an output of the scope"),
                      "a block whose result stays inside of the scope",
                      "cache_write its result first");
  for (const VarRef& v : vars_in(sites[move.block].realize()->block)) {
    const int around = sites.find(v);
    if (around >= 0 && sites.is_above(around, move.block) && !sites.is_above(around, move.loop))
      return refusal_at(s,
                        around,
                        text("block ", block_name, " uses loop ", v->name, " itself, not by an iterator"),
                        "a block that gets the values of loops by its iterators",
                        "move it before loop_partition");
  }
  move.producers = scope.producers(move.block);
  move.consumers = scope.consumers(move.block);
  for (int other : upward ? move.consumers : move.producers) {
    if (!sites.is_above(move.loop, other))
      return refusal_at(s,
                        other,
                        text("block ",
                             string_literal(sites[other].realize()->block->name->text),
                             upward ? " reads" : " writes",
                             " what block ",
                             block_name,
                             upward ? " writes" : " reads",
                             ", and is not under loop ",
                             loop->name),
                        upward ? "all consumers under the loop" : "all producers under the loop",
                        upward ? "move the consumers there first" : "move the producers there first");
  }
  return runs_never(s, move);
}

/// Why the order of writing and reading would change; nothing if it does not: outside of the loop, producers are before it
/// and consumers behind it.
MaybeReason breaks_order(const Schedule& s, const Move& move) {
  const Sites& sites = s.sites();
  for (const auto* side : {&move.producers, &move.consumers}) {
    bool before = side == &move.producers;
    for (int other : *side) {
      if (sites.is_above(move.loop, other) || (other < move.loop) == before) continue;
      std::string name = string_literal(sites[other].realize()->block->name->text);
      return refusal_at(s,
                        other,
                        text("block ",
                             name,
                             before ? " writes what the block reads, behind" : " reads what the block writes, before",
                             " loop ",
                             sites[move.loop].loop()->var->name),
                        "a loop behind all producers and before all consumers",
                        "choose a loop between them");
    }
  }
  return {};
}

/// The iterators that stand for a loop each: what a predicate over loops can be said in.
VarMap iterators_of_loops(const BlockRealize& realize) {
  VarMap map;
  for (size_t i = 0; i < realize.values.size(); ++i) {
    if (VarRef loop = cast<Var>(realize.values[i])) map.emplace(loop, realize.block->iter_vars[i]->var);
  }
  return map;
}

/// A predicate that leaves out values of the iterators stays with the block. It has to be one over its iterators.
bool keeps_predicate(const Schedule& s, int block) {
  return !is_one(s.sites()[block].realize()->predicate) && !misses_values(s, block).empty();
}
MaybeReason loses_predicate(const Schedule& s, const Move& move) {
  const BlockRealize& realize = *s.sites()[move.block].realize();
  if (is_one(realize.predicate)) {
    // New loops run over the iterators' domains: what has fewer instances than that would get more. A producer of which
    // more elements are computed is as good, unless it reduces.
    std::optional<IterKind> kind;
    if (move.upward) kind = IterKind::reduce;
    if (std::string why = misses_values(s, move.block, kind); !why.empty())
      return block_refusal(s,
                           move.block,
                           text("has fewer instances than its iterators have values: ", why),
                           "loops around the block that pass over the domains of its iterators",
                           "let the domains of its iterators be what its loops pass over");
  }
  if (!keeps_predicate(s, move.block)) return {};
  VarMap iterators = iterators_of_loops(realize);
  for (const VarRef& v : vars_in(realize.predicate)) {
    if (!iterators.count(v) && s.sites().find(v) >= 0)
      return refusal_at(
          s,
          move.block,
          text("block ", string_literal(realize.block->name->text), " runs under a predicate of loop ", v->name),
          "a block that has all instances of its iterators, or a predicate of loops that are its iterators",
          "move the block before splitting its loops");
  }
  return {};
}

/// Why a reduction would combine sums that are not finished; nothing if it does not: no loop around its new place carries
/// a reduction of its producers.
MaybeReason combines_partial_results(const Schedule& s, const Move& move) {
  const Sites& sites = s.sites();
  if (!sites[move.block].realize()->block->init) return {};
  for (int p : move.producers) {
    const BlockRealize& producer = *sites[p].realize();
    for (int l = move.loop; l >= 0 && sites[l].loop(); l = sites[l].parent) {
      const Loop& loop = sites[l].loop()->var;
      for (size_t i = 0; i < producer.values.size(); ++i) {
        if (producer.block->iter_vars[i]->kind == IterKind::reduce && uses_var(producer.values[i], *loop))
          return refusal_at(
              s,
              l,
              text("loop ", loop->name, " carries a reduction of block ", string_literal(producer.block->name->text)),
              "a reduction that combines finished results",
              "move it under a spatial loop of the producer");
      }
    }
  }
  return {};
}

/// Where among the children of the loop the block may stand: behind the last producer, before the first consumer.
struct Slots {
  std::vector<Stmt> children;
  int first = 0, last = 0;
};
Slots slots_under(const Schedule& s, const Move& move) {
  const Sites& sites = s.sites();
  Slots slots;
  const Stmt& body = sites[move.loop].loop()->body;
  if (const Seq* seq = body.as<Seq>())
    slots.children = seq->stmts;
  else
    slots.children = {body};
  auto position = [&](int site) {
    while (site >= 0 && sites[site].parent != move.loop) site = sites[site].parent;
    if (site < 0) return -1;
    for (size_t i = 0; i < slots.children.size(); ++i) {
      if (slots.children[i] == sites[site].stmt) return static_cast<int>(i);
    }
    return -1;
  };
  slots.last = static_cast<int>(slots.children.size());
  for (int p : move.producers) {
    if (int at = position(p); at >= 0) slots.first = std::max(slots.first, at + 1);
  }
  for (int c : move.consumers) {
    if (int at = position(c); at >= 0) slots.last = std::min(slots.last, at);
  }
  return slots;
}

Box as_box(const std::vector<RangeRef>& region) {
  Box box;
  for (const RangeRef& r : region) box.push_back(IntSet::from_range(*r));
  return box;
}

bool is_point(const IntSet& set, arith::Analyzer& a) { return set.min && set.max && a.prove_equal(set.min, set.max); }

/// Solves `provided` (an expression of one iterator) for the iterator, over the required interval.
///   limit  the largest index of the dimension
bool solve(const Expr& provided, const IntSet& required, const Expr& limit, arith::Analyzer& a, VarRef& var,
           IteratorDomain& out) {
  if (VarRef v = cast<Var>(provided)) {
    var = v;
    out = {required, IntSet::interval(int_imm(0, v->dtype), limit)};
    return true;
  }
  if (const FloorDiv* d = provided.as<FloorDiv>(); d && a.prove_ge(d->b, 1)) {
    const Expr& f = d->b;
    IntSet wider = IntSet::interval(required.min * f, a.simplify(required.max * f + f - 1));
    return solve(d->a, wider, a.simplify(limit * f + f - 1), a, var, out);
  }
  if (const FloorMod* m = provided.as<FloorMod>()) {  // any value of the iterator may have that remainder
    var = cast<Var>(m->a);
    out = {};
    return var != nullptr;
  }
  return false;
}

/// One dimension at a time: each index is an expression of one iterator.
MaybeReason solve_by_dimension(const Schedule& s, const Move& move, const BufferRef& buffer, const Box& provided,
                               const Box& required, arith::Analyzer& a, std::map<VarRef, IteratorDomain>& domains) {
  for (size_t d = 0; d < provided.size(); ++d) {
    Expr limit = a.simplify(max(buffer->shape[d] - 1, int_imm(0, buffer->shape[d]->dtype)));
    Expr low = a.simplify(provided[d].min), high = a.simplify(provided[d].max);
    if (a.prove_equal(low, high) && as_int(low)) continue;
    VarRef var;
    IteratorDomain found;
    const Mul* scaled = low.as<Mul>();
    VarRef factor_of = scaled ? cast<Var>(scaled->a) : nullptr;
    bool solved = false;
    if (factor_of) {  // [v * e, v * e + e)
      var = factor_of;
      found = {IntSet::interval(floordiv(required[d].min, scaled->b), floordiv(required[d].max, scaled->b)),
               IntSet::interval(int_imm(0, limit->dtype), floordiv(limit, scaled->b))};
      solved = true;
    } else if (a.prove_equal(low, high)) {
      solved = solve(low, required[d], limit, a, var, found);
    }
    if (!solved)
      return refusal_at(s,
                        move.block,
                        text("dimension ", d, " of ", buffer->name, " cannot be solved for an iterator of the block"),
                        "each index a plain iterator, or one times, over or modulo a constant",
                        "simplify the block's indices by transform_block_layout");
    auto at = domains.find(var);
    if (at == domains.end()) continue;  // bound further out
    at->second.dom = arith::unite({at->second.dom, found.dom});
    at->second.bound = arith::unite({at->second.bound, found.bound});
  }
  return {};
}

/// All dimensions together, where the indices are an affine bijective map of the iterators.
bool solve_by_map(const Block& block, const BufferRef& buffer, const Box& provided, const Box& required,
                  arith::Analyzer& a, std::map<VarRef, IteratorDomain>& domains) {
  std::vector<Expr> indices, low, high, zero, limit;
  for (size_t d = 0; d < provided.size(); ++d) {
    if (!is_point(provided[d], a)) return false;
    indices.push_back(provided[d].min);
    low.push_back(required[d].min);
    high.push_back(required[d].max);
    zero.push_back(int_imm(0, buffer->shape[d]->dtype));
    limit.push_back(max(buffer->shape[d] - 1, zero.back()));
  }
  arith::RangeMap iters;
  for (const IterVarRef& i : block.iter_vars) iters.emplace(i->var, i->dom);
  arith::IterMap map = arith::detect_iter_map(indices, iters, bool_imm(true), arith::IterMapLevel::bijective, a, false);
  if (!map.ok()) return false;
  arith::InverseResult from = arith::inverse_affine_iter_map(map.indices, low);
  arith::InverseResult to = arith::inverse_affine_iter_map(map.indices, high);
  arith::InverseResult bound_from = arith::inverse_affine_iter_map(map.indices, zero);
  arith::InverseResult bound_to = arith::inverse_affine_iter_map(map.indices, limit);
  if (!from.ok() || !to.ok() || !bound_from.ok() || !bound_to.ok()) return false;
  auto interval = [&](const Expr& x, const Expr& y) {
    return IntSet::interval(a.simplify(min(x, y)), a.simplify(max(x, y)));
  };
  for (auto& [var, domain] : domains) {
    if (!from.values.count(var)) continue;
    domain.dom = arith::unite({domain.dom, interval(from.values.at(var), to.values.at(var))});
    domain.bound = arith::unite({domain.bound, interval(bound_from.values.at(var), bound_to.values.at(var))});
  }
  return true;
}

void simplify(IteratorDomain& d, arith::Analyzer& a) {
  auto simple = [&](IntSet set) {
    if (set.min) set.min = a.simplify(set.min);
    if (set.max) set.max = a.simplify(set.max);
    return set;
  };
  d.dom = simple(d.dom);
  d.bound = simple(d.bound);
  IntSet both = simple(arith::intersect({d.dom, d.bound}));
  if (!both.min || !both.max || !d.dom.min || !d.dom.max) return;
  bool inside = a.prove_equal(d.dom.min, both.min) && a.prove_equal(d.dom.max, both.max);
  if (inside || (as_int(both.min) && as_int(both.max))) {
    d.dom = both;
    d.bound = IntSet::nothing();
  }
}

bool reads_memory(const Expr& e) {
  bool reads = false;
  if (e) walk(e, [&](const BufferLoad&) { reads = true; });
  return reads;
}

/// The domain of each iterator of the block, so that the part of its buffers that the loop needs is covered.
std::vector<IteratorDomain> iterator_domains(const Schedule& s, const Move& move, arith::Analyzer& a) {
  const Sites& sites = s.sites();
  const Block& block = *sites[move.block].realize()->block;
  std::map<VarRef, IteratorDomain> domains;
  for (const IterVarRef& i : block.iter_vars) domains[i->var];
  std::vector<BufferRef> done;
  for (const BufferRegionRef& side : move.upward ? block.writes : block.reads) {
    const BufferRef& buffer = side->buffer;
    if (std::find(done.begin(), done.end(), buffer) != done.end()) continue;
    done.push_back(buffer);
    std::vector<Box> provided, required;
    for (const BufferRegionRef& r : move.upward ? block.writes : block.reads) {
      if (r->buffer == buffer) provided.push_back(as_box(r->region));
    }
    for (int other : move.upward ? move.consumers : move.producers) {
      const BlockRealize& realize = *sites[other].realize();
      for (const BufferRegionRef& r : move.upward ? realize.block->reads : realize.block->writes) {
        if (r->buffer != buffer) continue;
        arith::RangeMap loops =
            loop_domain(sites, sites[other].parent, move.loop, move.upward ? buffer->scope() : std::string());
        Box box = arith::eval_set(substitute_region(r->region, bindings_of(realize)), arith::as_sets(loops));
        for (size_t d = 0; d < box.size(); ++d) {
          // Where the place is read from memory, it may be any.
          if (reads_memory(box[d].min) || reads_memory(box[d].max))
            box[d] = IntSet::from_range(*range_of(buffer->shape[d]));
        }
        required.push_back(std::move(box));
      }
    }
    if (required.empty()) continue;
    Box need = arith::unite_regions(required), give = arith::unite_regions(provided);
    if (!solve_by_map(block, buffer, give, need, a, domains))
      s.require(solve_by_dimension(s, move, buffer, give, need, a, domains));
  }
  std::vector<IteratorDomain> out;
  for (const IterVarRef& i : block.iter_vars) {
    IteratorDomain d = domains.at(i->var);
    IntSet own = IntSet::from_range(*i->dom);
    d.bound = d.bound.empty ? own : arith::intersect({d.bound, own});
    if (d.dom.empty) d = {own, IntSet::nothing()};
    simplify(d, a);
    out.push_back(d);
  }
  return out;
}

/// `value` is surely in [0, limit): a quotient or remainder by a size is bounded by what is divided.
bool is_within(const Expr& value, const Expr& limit, arith::Analyzer& a) {
  if (const FloorDiv* d = value.as<FloorDiv>())
    return a.prove(lt(d->a, limit * d->b), arith::Strength::symbolic) && a.prove_ge(d->a, 0) && a.prove_ge(d->b, 0);
  if (const FloorMod* m = value.as<FloorMod>()) return a.prove_equal(m->b, limit) && a.prove_ge(m->b, 0);
  return false;
}

/// The block under fresh loops ax0, ax1, ... over the domains, where it exists.
///   kept        over the block's iterators: holds for the instances that exist
///   conditions  over the loops around: hold where there is something to do
Stmt new_nest(const BlockRealize& realize, const std::vector<IteratorDomain>& domains, const Expr& kept,
              const std::vector<Expr>& conditions, bool preserve_unit_loops, arith::Analyzer& a) {
  std::vector<Loop> loops;
  std::vector<Expr> extents, values;
  Expr predicate = bool_imm(true);
  for (size_t i = 0; i < domains.size(); ++i) {
    const IterVar& iter = *realize.block->iter_vars[i];
    RangeRef range = domains[i].dom.cover_range(iter.dom);
    if (preserve_unit_loops || !is_one(range->extent)) {
      int bits = std::max<int>(range->min->dtype.bits, range->extent->dtype.bits);
      Loop loop = make_var(text("ax", loops.size()), DType::Int(bits));
      loops.push_back(loop);
      extents.push_back(a.simplify(range->extent));
      values.push_back(range->min + loop);
      a.bind(loop, range_of(range->extent));
    } else {
      values.push_back(range->min);
    }
    const IntSet& bound = domains[i].bound;
    if (bound.empty) continue;
    if (bound.min && bound.max && is_one(range->extent) && is_zero(bound.min) &&
        is_within(range->min, a.simplify(bound.max + 1), a))
      continue;
    if (bound.min) {
      Expr above = ge(values.back(), bound.min);
      if (!a.prove(above, arith::Strength::symbolic)) predicate = logical_and(predicate, above);
    }
    if (bound.max) {
      Expr below = lt(values.back(), bound.max + 1);
      if (!a.prove(below, arith::Strength::symbolic)) predicate = logical_and(predicate, below);
    }
  }
  VarMap value_of;
  for (size_t i = 0; i < values.size(); ++i) {
    const VarRef& iter = realize.block->iter_vars[i]->var;
    values[i] = cast_to(iter->dtype, values[i]);  // the loops around may be wider than the domain needs
    value_of.emplace(iter, values[i]);
  }
  predicate = logical_and(predicate, substitute(kept, value_of));
  for (const Expr& c : conditions) {
    auto known = a.with_constraint(predicate);
    if (!a.prove(c)) predicate = logical_and(predicate, c);
  }
  Stmt nest = make<BlockRealize>(values, a.simplify(predicate), realize.block);
  for (size_t i = loops.size(); i-- > 0;) nest = for_loop(loops[i], extents[i], nest);
  return nest;
}

/// The predicates of the producers under the loop, as far as they speak of it and of the loops around it: where they do not
/// hold, nothing has been produced.
std::vector<Expr> conditions_of_producers(const Schedule& s, const Move& move) {
  const Sites& sites = s.sites();
  std::vector<Expr> out;
  for (int p : move.producers) {
    if (!sites.is_above(move.loop, p)) continue;
    std::vector<Expr> own = conditions_outside(sites, p, move.loop);
    out.insert(out.end(), own.begin(), own.end());
  }
  return out;
}

/// Why a moved block would read what the producers under the loop have not written yet; nothing if it would not.
MaybeReason reads_unfinished(const Schedule& s, const Schedule& moved, const BlockHandle& handle) {
  const int site = moved.site(handle);
  if (has_region_cover(moved, ScopeAnalysis(moved, moved.sites()[site].scope), site)) return {};
  return refusal_at(
      s,
      s.site(handle),
      text("block ", string_literal(handle->text), " reads more than one iteration of the loop has produced"),
      "a consumer that reads under the loop only what is written there",
      "move the producer to the consumer: compute_at");
}

/// Why a moved consumer would not do all that it did; nothing if it does. `moved` is the schedule after the move, without the predicate
/// that the block keeps: the instances that this one leaves out were not there before.
MaybeReason loses_instances(const Schedule& s, const Schedule& moved, const BlockHandle& handle) {
  int site = moved.site(handle);
  int old_site = s.site(handle);
  if (std::string why = misses_values(moved, site); !why.empty())
    return refusal_at(
        s,
        old_site,
        text(
            "block ", string_literal(handle->text), " has instances that follow from no element under the loop: ", why),
        "a consumer of which each instance reads what one iteration of the loop produces",
        "move the producer to the consumer: compute_at");
  return {};
}

void move_block(Schedule& s, const BlockHandle& handle, const Loop& loop, bool preserve_unit_loops, int index,
                bool upward) {
  Move move;
  s.require(cannot_move(s, handle, loop, upward, move));
  s.require(breaks_order(s, move));
  s.require(combines_partial_results(s, move));
  s.require(loses_predicate(s, move));
  Slots slots = slots_under(s, move);
  if (slots.first > slots.last)
    s.fail(
        refusal_at(s,
                   move.loop,
                   text("there is no place under loop ", loop->name, " behind all producers and before all consumers"),
                   "producers before consumers among the loop's children",
                   "move the producers up first"));
  int at = index == -1 ? slots.last : index == -2 ? slots.first : index;
  if (at < slots.first || at > slots.last)
    s.fail(refusal_at(s,
                      move.loop,
                      text("position ", index, " is not between the producers and the consumers"),
                      text(slots.first, " <= index <= ", slots.last),
                      "pass -1 for the last possible position"));
  arith::Analyzer analyzer;
  s.bind_ranges(analyzer, move.loop);
  std::vector<IteratorDomain> domains = iterator_domains(s, move, analyzer);
  const Sites& sites = s.sites();
  const BlockRealize& realize = *sites[move.block].realize();
  Expr kept =
      keeps_predicate(s, move.block) ? substitute(realize.predicate, iterators_of_loops(realize)) : bool_imm(true);
  std::vector<Expr> conditions;
  if (!upward) conditions = conditions_of_producers(s, move);
  const For& target = *sites[move.loop].loop();
  const BlockRealize& scope = *sites[move.scope].realize();
  Stmt old_nest = sites[lone_nest(s, move.block)].stmt;
  auto with_nest = [&](const Expr& predicate) {
    std::vector<Stmt> children = slots.children;
    children.insert(children.begin() + at,
                    new_nest(realize, domains, predicate, conditions, preserve_unit_loops, analyzer));
    Stmt grown = with(target, &For::body, seq(std::move(children)));
    // The loop may not lie in what is taken out: a block's lone nest holds that block alone.
    return without(replaced(scope.block->body, NodeMap{{Stmt(&target), grown}}), old_nest);
  };
  auto schedule_of = [&](const Stmt& body) {
    Schedule moved(s.func(), s.func_name());
    replace_scope(moved, move.scope, body, scope.block->alloc_buffers);
    return moved;
  };
  const Stmt body = with_nest(kept);
  const bool joins_producer =
      std::any_of(move.producers.begin(), move.producers.end(), [&](int p) { return sites.is_above(move.loop, p); });
  if (!upward || joins_producer) {
    const Schedule moved = schedule_of(body);
    if (!upward) s.require(loses_instances(s, is_one(kept) ? moved : schedule_of(with_nest(bool_imm(true))), handle));
    s.require(reads_unfinished(s, moved, handle));
  }
  replace_scope(s, move.scope, body, scope.block->alloc_buffers);
}

/// Moves a producer under a loop of its consumers: it computes there what one iteration of the loop needs.
///   for i: B(i); for i: C(i)   =>   for i: { B(i); C(i) }
void do_compute_at(Schedule& s, BlockHandle block, Loop loop, bool preserve_unit_loops, int index) {
  if (loop == root_mark()) return;
  if (loop == inline_mark()) return compute_inline(s, block);
  move_block(s, block, loop, preserve_unit_loops, index, true);
}
/// Moves a consumer under a loop of its producers: it consumes there what one iteration of the loop has produced.
void do_reverse_compute_at(Schedule& s, BlockHandle block, Loop loop, bool preserve_unit_loops, int index) {
  if (loop == root_mark()) return;
  if (loop == inline_mark()) return reverse_compute_inline(s, block);
  move_block(s, block, loop, preserve_unit_loops, index, false);
}

}  // namespace

MaybeReason cannot_compute_at(const Schedule& s, const BlockHandle& block, const Loop& loop) {
  // Whether instances are lost, or read too early, shows in the program that the move makes.
  Schedule moved(s.func(), s.func_name());
  try {
    move_block(moved, block, loop, false, -1, true);
  } catch (const Error& error) {
    return error.reason;
  }
  return {};
}

const Primitive<void(BlockHandle, Loop, bool, int)> compute_at{
    "compute_at",
    do_compute_at,
    {"block", "loop", {"preserve_unit_loops", false}, {"index", Value(-1)}},
    "moves a producer under a loop of its consumers"};
const Primitive<void(BlockHandle, Loop, bool, int)> reverse_compute_at{
    "reverse_compute_at",
    do_reverse_compute_at,
    {"block", "loop", {"preserve_unit_loops", false}, {"index", Value(-1)}},
    "moves a consumer under a loop of its producers"};

}  // namespace sator::schedule
