#include "passes/lower/contents.h"

#include <algorithm>

#include "arith/kind.h"
#include "arith/linear.h"
#include "ir/builtins.h"

namespace sator::passes {

using namespace tir;

namespace {

/// More facts than these are not kept: each query tries them all.
constexpr size_t kMaxFacts = 64;

bool uses(const Expr& e, const Var& var) { return e && uses_var(e, var); }

/// e == var + offset: the offset, free of `var`; null if e is not of that form.
Expr offset_of(const Expr& e, const VarRef& var) {
  if (e->dtype.lanes != 1 || !arith::is_index(e->dtype) || !uses_var(e, *var)) return nullptr;
  auto linear = arith::detect_linear(e, {var});
  return linear && is_one(linear->coefficients[0]) ? linear->base : nullptr;
}

Expr all_equal(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  Expr out = bool_imm(true);
  for (size_t i = 0; i < a.size(); ++i) out = logical_and(out, eq(a[i], b[i]));
  return out;
}

}  // namespace

bool reads_nothing(const Expr& e) { return arith::is_pure(e); }

bool Contents::mentions(const Fact& f, const Var& var) {
  return uses(f.where, var) || uses(f.value, var) ||
         std::ranges::any_of(f.indices, [&](const Expr& i) { return uses(i, var); }) ||
         std::ranges::any_of(f.params, [&](const auto& p) { return uses_var(p.second, var); });
}

void Contents::add(Fact fact) {
  if (is_shared(fact.buffer)) return;
  if (facts_.size() >= kMaxFacts) facts_.erase(facts_.begin());
  facts_.push_back(std::move(fact));
}

bool Contents::is_shared(const BufferRef& buffer) const {
  return std::ranges::any_of(loops_, [&](const LoopState& l) {
    auto at = l.written.find(buffer->data.get());
    return !l.in_order && at != l.written.end() && !at->second.of_each;
  });
}

/// The values of the parameters for which the fact is about this element; `where`: what has to hold for it.
std::optional<VarMap> Contents::solve(const Fact& f, const std::vector<Expr>& indices, Expr& where) {
  if (indices.size() != f.indices.size()) return {};
  VarMap found;
  for (const auto& [param, range] : f.params) {
    for (size_t k = 0; k < indices.size() && !found.contains(param); ++k) {
      Expr offset = offset_of(f.indices[k], param);
      bool alone = offset && std::ranges::none_of(f.params, [&](const auto& p) { return uses_var(offset, *p.first); });
      if (alone && indices[k]->dtype == param->dtype) found[param] = indices[k] - offset;
    }
    if (!found.contains(param)) return {};
  }
  where = substitute(f.where, found);
  for (const auto& [param, range] : f.params) {
    Expr min = substitute(range->min, found), extent = substitute(range->extent, found);
    where = logical_and(logical_and(le(min, found[param]), lt(found[param], min + extent)), where);
  }
  for (size_t k = 0; k < indices.size(); ++k)
    where = logical_and(where, eq(substitute(f.indices[k], found), indices[k]));
  return found;
}

Expr Contents::known(const BufferLoad& load, arith::Analyzer& analyzer) const {
  if (load.dtype.lanes != 1) return nullptr;
  for (const Expr& i : load.indices) {
    if (!reads_nothing(i)) return nullptr;
  }
  for (size_t n = facts_.size(); n-- > 0;) {
    const Fact& f = facts_[n];
    if (f.buffer != load.buffer) continue;
    Expr where;
    auto found = solve(f, load.indices, where);
    if (found && analyzer.prove(where)) return analyzer.simplify(substitute(f.value, *found));
  }
  return nullptr;
}

Expr Contents::with_known(const Expr& e, arith::Analyzer& analyzer) const {
  if (facts_.empty()) return e;
  return transform(e, [&](const BufferLoad& n) -> Expr {
    Expr value = known(n, analyzer);
    return value ? value : Expr(&n);
  });
}

void Contents::store(const BufferStore& n, arith::Analyzer& analyzer) {
  Expr value = with_known(n.value, analyzer);
  bool scalar = n.value->dtype.lanes == 1 &&
                std::ranges::all_of(n.indices, [](const Expr& i) { return i->dtype.lanes == 1 && reads_nothing(i); });
  // What was known of the same memory is known of other elements only.
  std::vector<Fact> kept;
  for (Fact& f : facts_) {
    if (f.buffer->data == n.buffer->data) {
      if (f.buffer != n.buffer || !scalar) continue;
      f.where = analyzer.simplify(logical_and(f.where, logical_not(all_equal(f.indices, n.indices))));
      if (is_zero(f.where)) continue;
    }
    kept.push_back(std::move(f));
  }
  facts_ = std::move(kept);
  if (scalar && reads_nothing(value)) {
    add({(*next_id_)++, n.buffer, n.indices, {}, bool_imm(true), analyzer.simplify(value)});
    return;
  }
  // A vector along one index: an element for each lane.
  const Ramp* ramp = n.indices.size() == 1 ? n.indices[0].as<Ramp>() : nullptr;
  if (!ramp || ramp->lanes.scalable || !reads_nothing(value) || !is_one(ramp->stride) || !reads_nothing(ramp->base))
    return;
  VarRef lane = make_var("lane", ramp->base->dtype);
  Expr element;
  if (const Broadcast* b = value.as<Broadcast>(); b && b->lanes == ramp->lanes && b->value->dtype.lanes == 1)
    element = b->value;
  if (const Ramp* r = value.as<Ramp>(); r && r->lanes == ramp->lanes && r->base->dtype.lanes == 1)
    element = r->base + cast_to(r->base->dtype, lane) * r->stride;
  if (!element) return;
  add({(*next_id_)++,
       n.buffer,
       {ramp->base + lane},
       {{lane, range_of(int_imm(ramp->lanes.count, lane->dtype))}},
       bool_imm(true),
       element});
}

void Contents::assume(const Expr& condition, arith::Analyzer& analyzer) {
  for (const Expr& part : arith::conjuncts(condition)) {
    // a or b or A[i] == v: where neither a nor b holds.
    const EQ* about = nullptr;
    Expr where = bool_imm(true);
    bool usable = true;
    arith::for_each_operand(part, arith::Kind::logical_or, [&](const Expr& e) {
      if (reads_nothing(e)) {
        where = logical_and(where, logical_not(e));
      } else {
        usable &= !about && e.as<EQ>() != nullptr;
        about = e.as<EQ>();
      }
    });
    if (!usable || !about) continue;
    const BufferLoad* load = about->a.as<BufferLoad>();
    const Expr& value = load ? about->b : about->a;
    if (!load) load = about->b.as<BufferLoad>();
    if (!load || load->dtype.lanes != 1 || !reads_nothing(value) ||
        !std::ranges::all_of(load->indices, [](const Expr& i) { return reads_nothing(i); }))
      continue;
    add({(*next_id_)++, load->buffer, load->indices, {}, analyzer.simplify(where), value});
  }
}

void Contents::calls_of(const Expr& e) {
  auto forget = [&](const Var& data) {
    std::erase_if(facts_, [&](const Fact& f) { return f.buffer->data.get() == &data; });
  };
  if (!facts_.empty() && has_side_effect(e)) {
    walk(e, [&](const Call& n) {
      for (const Expr& a : n.args) {
        if (const Var* v = a.as<Var>()) forget(*v);
        if (const BufferLoad* l = a.as<BufferLoad>(); l && n.op == "tir.address_of") forget(*l->buffer->data);
      }
    });
  }
}

void Contents::drop(const Var& var) {
  std::erase_if(facts_, [&](const Fact& f) { return mentions(f, var); });
}

Contents::Repeat Contents::Repeat::of(const For& n) {
  return {n.var, n.min, n.extent, n.body, n.kind == LoopKind::serial || n.kind == LoopKind::unrolled};
}

std::optional<Contents::Repeat> Contents::Repeat::of(const AttrStmt& n) {
  const ThreadAxis* axis = n.node.as<ThreadAxis>();
  if (!axis || axis->var->dtype != n.value->dtype) return {};
  return Repeat{axis->var, int_imm(0, n.value->dtype), n.value, n.body, false};
}

void Contents::enter(const Repeat& loop) {
  LoopState state{facts_, {}, loop.in_order};
  auto anyhow = [&](const VarRef& data) { state.written[data.get()] = {}; };
  walk(
      loop.body,
      [&](const BufferStore& n) {
        auto [at, fresh] = state.written.try_emplace(n.buffer->data.get());
        Slices& s = at->second;
        if (fresh) {
          for (size_t k = 0; k < n.indices.size() && !s.of_each; ++k) {
            Expr offset = offset_of(n.indices[k], loop.var);
            // The same slice in the whole iteration: the offset holds no variable of an inner loop.
            if (offset && vars_in(offset).empty()) s = {true, k, offset};
          }
        } else if (s.of_each) {
          Expr offset = s.axis < n.indices.size() ? offset_of(n.indices[s.axis], loop.var) : nullptr;
          s.of_each = offset && equal(offset, s.offset);
        }
      },
      [&](const Call& n) {
        for (const Expr& a : n.args) {
          if (const Var* v = a.as<Var>(); v && v->dtype.is_handle()) anyhow(ref(*v));
          if (n.op == "tir.address_of") {
            if (const BufferLoad* l = a.as<BufferLoad>()) anyhow(l->buffer->data);
          }
        }
      },
      [&](const Block& n) {
        for (const BufferRegionRef& w : n.writes) anyhow(w->buffer->data);
        for (const MatchBufferRef& m : n.match_buffers) anyhow(m->source->buffer->data);
      });
  std::vector<Fact> kept;
  for (Fact& f : facts_) {
    auto at = state.written.find(f.buffer->data.get());
    if (at != state.written.end()) {
      const Slices& s = at->second;
      if (!s.of_each || f.indices.size() <= s.axis) continue;
      // Slices of iterations before this one are gone; of loops without an order, those of all others.
      Expr slice = f.indices[s.axis] - s.offset;
      if (slice->dtype != loop.var->dtype) continue;
      Expr own =
          loop.in_order ? le(loop.var, slice) : logical_or(le(loop.min + loop.extent, slice), eq(loop.var, slice));
      f.where = logical_and(f.where, logical_or(lt(slice, loop.min), own));
    }
    kept.push_back(std::move(f));
  }
  facts_ = std::move(kept);
  loops_.push_back(std::move(state));
}

void Contents::leave(const Repeat& loop, arith::Analyzer& analyzer) {
  LoopState state = std::move(loops_.back());
  loops_.pop_back();
  std::vector<Fact> inside = std::move(facts_);
  facts_.clear();
  std::unordered_map<int, bool> old;
  for (Fact& f : state.before) {
    old[f.id] = true;
    auto at = state.written.find(f.buffer->data.get());
    if (at != state.written.end()) {
      const Slices& s = at->second;
      if (!s.of_each || f.indices.size() <= s.axis) continue;
      Expr slice = f.indices[s.axis] - s.offset;
      if (slice->dtype != loop.min->dtype) continue;
      f.where =
          analyzer.simplify(logical_and(f.where, logical_or(lt(slice, loop.min), le(loop.min + loop.extent, slice))));
      if (is_zero(f.where)) continue;
    }
    add(std::move(f));
  }
  for (Fact& f : inside) {
    if (old.contains(f.id)) continue;
    auto at = state.written.find(f.buffer->data.get());
    bool own_slice = at == state.written.end() || at->second.of_each;
    if (!own_slice) continue;
    // An element of this iteration's slice: the same holds of every iteration's.
    bool in_slice = false;
    for (size_t k = 0; k < f.indices.size(); ++k) {
      Expr offset = offset_of(f.indices[k], loop.var);
      in_slice |= offset && (at == state.written.end() || (k == at->second.axis && equal(offset, at->second.offset)));
    }
    if (!in_slice) continue;
    f.params.emplace_back(loop.var, make<Range>(loop.min, loop.extent));
    // The parameter is not the loop's variable any more, which another fact may still name.
    VarRef param = make_var(loop.var->name, loop.var->dtype);
    VarMap renamed = {{loop.var, param}};
    f.params.back().first = param;
    f.where = substitute(f.where, renamed);
    f.value = substitute(f.value, renamed);
    for (Expr& i : f.indices) i = substitute(i, renamed);
    for (size_t p = 0; p + 1 < f.params.size(); ++p) f.params[p].second = substitute(f.params[p].second, renamed);
    add(std::move(f));
  }
  drop(*loop.var);
}

void Contents::merge(const Expr& condition, const Contents& then, const Contents& otherwise) {
  facts_.clear();
  bool plain = reads_nothing(condition) && condition->dtype.lanes == 1;
  auto find = [](const Contents& c, int id) { return std::ranges::find(c.facts_, id, &Fact::id); };
  auto under = [&](Fact f, const Expr& c) {
    f.where = logical_and(f.where, c);
    f.id = (*next_id_)++;
    add(std::move(f));
  };
  for (const Fact& f : then.facts_) {
    auto same = find(otherwise, f.id);
    bool in_both = same != otherwise.facts_.end() && same->buffer == f.buffer && equal(same->value, f.value);
    if (in_both && same->where == f.where) {
      add(f);
    } else if (plain) {
      under(f, condition);
    } else if (in_both) {
      under(f, same->where);
    }
  }
  for (const Fact& f : otherwise.facts_) {
    auto same = find(then, f.id);
    if (same != then.facts_.end() && same->where == f.where) continue;
    if (plain) under(f, logical_not(condition));
  }
}

}  // namespace sator::passes
