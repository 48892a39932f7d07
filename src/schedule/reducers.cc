#include "schedule/reducers.h"

#include <algorithm>
#include <cmath>

#include "tir/te.h"

namespace sator::schedule {

using namespace tir;
using Values = std::vector<Expr>;

namespace {

bool is_constant(const Expr& e, double value) {
  if (auto i = as_int(e)) return static_cast<double>(*i) == value;
  const FloatImm* f = e.as<FloatImm>();
  return f && f->value == value;
}
bool is_least(const Expr& e) {
  const FloatImm* f = e.as<FloatImm>();
  return equal(e, te::min_value(e->dtype)) || (f && f->value == -INFINITY);
}
bool is_greatest(const Expr& e) {
  const FloatImm* f = e.as<FloatImm>();
  return equal(e, te::max_value(e->dtype)) || (f && f->value == INFINITY);
}
bool all_zero(const Values& v) {
  return std::all_of(v.begin(), v.end(), [](const Expr& e) { return is_constant(e, 0); });
}
// The index of an empty argmax or argmin: -1, or one that loses against all others.
bool is_no_index(const Expr& e) { return is_constant(e, -1) || equal(e, te::max_value(e->dtype)); }
bool identity_of_argmax(const Values& v) { return is_no_index(v[0]) && is_least(v[1]); }
bool identity_of_argmin(const Values& v) { return is_no_index(v[0]) && is_greatest(v[1]); }

}  // namespace

const std::vector<Reducer>& reducers() {
  static const std::vector<Reducer> rows = {
      {"sum", 1, [](const Values& x, const Values& y) { return Values{x[0] + y[0]}; }, all_zero},
      {"product",
       1,
       [](const Values& x, const Values& y) { return Values{x[0] * y[0]}; },
       [](const Values& v) { return is_constant(v[0], 1); }},
      {"min",
       1,
       [](const Values& x, const Values& y) { return Values{min(x[0], y[0])}; },
       [](const Values& v) { return is_greatest(v[0]); }},
      {"max",
       1,
       [](const Values& x, const Values& y) { return Values{max(x[0], y[0])}; },
       [](const Values& v) { return is_least(v[0]); }},
      {"sum of two", 2, [](const Values& x, const Values& y) { return Values{x[0] + y[0], x[1] + y[1]}; }, all_zero},
      // Of equal values the one met first wins ...
      {"argmax",
       2,
       [](const Values& x, const Values& y) {
         Expr keep = ge(x[1], y[1]);
         return Values{select(keep, x[0], y[0]), select(keep, x[1], y[1])};
       },
       identity_of_argmax},
      {"argmin",
       2,
       [](const Values& x, const Values& y) {
         Expr keep = le(x[1], y[1]);
         return Values{select(keep, x[0], y[0]), select(keep, x[1], y[1])};
       },
       identity_of_argmin},
      // ... or the one of the smallest index.
      {"argmax, smallest index",
       2,
       [](const Values& x, const Values& y) {
         Expr keep = logical_or(gt(x[1], y[1]), logical_and(eq(x[1], y[1]), lt(x[0], y[0])));
         return Values{select(keep, x[0], y[0]), select(gt(x[1], y[1]), x[1], y[1])};
       },
       identity_of_argmax},
      {"argmin, smallest index",
       2,
       [](const Values& x, const Values& y) {
         Expr keep = logical_or(lt(x[1], y[1]), logical_and(eq(x[1], y[1]), lt(x[0], y[0])));
         return Values{select(keep, x[0], y[0]), select(lt(x[1], y[1]), x[1], y[1])};
       },
       identity_of_argmin},
      // The same, and a NaN is the greatest and the least: what the ops argmax and argmin are.
      {"argmax, NaN before all",
       2,
       [](const Values& x, const Values& y) { return te::argmax_reducer(x[0]->dtype, x[1]->dtype).combine(x, y); },
       identity_of_argmax},
      {"argmin, NaN before all",
       2,
       [](const Values& x, const Values& y) { return te::argmin_reducer(x[0]->dtype, x[1]->dtype).combine(x, y); },
       identity_of_argmin},
  };
  return rows;
}

namespace {

/// Matches `e` with a pattern of the variables `holes`; a hole that occurs twice stands for equal expressions.
bool unify(const Expr& pattern, const Expr& e, const std::vector<VarRef>& holes, VarMap& found) {
  if (VarRef v = cast<Var>(pattern); v && std::find(holes.begin(), holes.end(), v) != holes.end()) {
    auto [at, fresh] = found.emplace(v, e);
    return fresh ? e->dtype == v->dtype : equal(at->second, e);
  }
  if (&pattern->info() != &e->info() || pattern->dtype != e->dtype) return false;
  Values inner, other;
  pattern->info().each_child(*pattern, [&](const NodeRef& n) { inner.push_back(cast<ExprNode>(n)); });
  e->info().each_child(*e, [&](const NodeRef& n) { other.push_back(cast<ExprNode>(n)); });
  if (inner.size() != other.size()) return false;
  if (inner.empty()) return equal(pattern, e);
  for (size_t i = 0; i < inner.size(); ++i) {
    if (!inner[i] || !other[i] || !unify(inner[i], other[i], holes, found)) return false;
  }
  return true;
}

bool matches(const Reducer& reducer, const Values& accumulators, const Values& stored, Reduction& out) {
  if (reducer.arity != stored.size() || !reducer.is_identity(out.identity)) return false;
  std::vector<VarRef> holes;
  Values acc, x;
  for (const Expr& e : stored) {
    holes.push_back(make_var("acc", e->dtype));
    acc.push_back(holes.back());
    holes.push_back(make_var("x", e->dtype));
    x.push_back(holes.back());
  }
  Values pattern = reducer.combine(acc, x);
  VarMap found;
  for (size_t k = 0; k < stored.size(); ++k) {
    if (!unify(pattern[k], stored[k], holes, found)) return false;
  }
  for (size_t k = 0; k < stored.size(); ++k) {
    auto at = found.find(holes[2 * k]);
    if (at == found.end() || !equal(at->second, accumulators[k])) return false;
  }
  out.operands.clear();
  for (size_t k = 0; k < stored.size(); ++k) out.operands.push_back(found.at(holes[2 * k + 1]));
  out.reducer = &reducer;
  return true;
}

/// A statement's stores, if it is nothing else.
bool stores_of(const Stmt& stmt, std::vector<const BufferStore*>& out) {
  if (!stmt) return false;
  if (const BufferStore* st = stmt.as<BufferStore>()) {
    out.push_back(st);
    return true;
  }
  const Seq* seq = stmt.as<Seq>();
  return seq && std::all_of(seq->stmts.begin(), seq->stmts.end(), [&](const Stmt& inner) {
           return inner.as<BufferStore>() && stores_of(inner, out);
         });
}

}  // namespace

MaybeReason not_a_known_reduction(const Schedule& s, int site, Reduction& out) {
  return not_a_known_reduction(*s.sites()[site].realize()->block, s.sites()[site].stmt, out);
}

MaybeReason not_a_known_reduction(const Block& block, const Stmt& at, Reduction& out) {
  auto refuse = [&](std::string what) -> MaybeReason {
    return Reason{
        .what = text("the reduction of block ", string_literal(block.name->text), " is of no known form: ", what),
        .needs =
            "an init that stores the identity, and an update that stores its combination with a value "
            "(sum, product, min, max, argmax, argmin), at the same indices; several values are computed "
            "into let variables first",
        .hint = "write the accumulator first: C[i] = C[i] + x",
        .at = {{at, what}}};
  };
  std::vector<const BufferStore*> inits, updates;
  if (!stores_of(block.init, inits)) return refuse("its init does more than store");

  // Stores of let variables stand for stores of their values.
  Values lets;
  std::vector<VarRef> let_vars;
  Stmt body = block.body;
  for (const LetStmt* let = body.as<LetStmt>(); let; let = body.as<LetStmt>()) {
    let_vars.push_back(let->var);
    lets.push_back(let->value);
    body = let->body;
  }
  if (!stores_of(body, updates)) return refuse("its update does more than compute and store");
  size_t n = inits.size();
  if (updates.size() != n || (!lets.empty() && lets.size() != n) || (lets.empty() && n != 1))
    return refuse(text("it stores ",
                       n,
                       " values in the init, and ",
                       updates.size(),
                       " in the update through ",
                       lets.size(),
                       " let variables"));
  // In the order of the let variables, which is that of the tuple.
  Values stored(n);
  out.buffers.assign(n, nullptr);
  out.indices = updates[0]->indices;
  for (const BufferStore* st : updates) {
    size_t k = 0;
    if (!lets.empty()) {
      VarRef v = cast<Var>(st->value);
      k = static_cast<size_t>(std::find(let_vars.begin(), let_vars.end(), v) - let_vars.begin());
      if (!v || k == n) return refuse(text("it stores in ", st->buffer->name, " what is not a let variable"));
    }
    if (stored[k] || std::find(out.buffers.begin(), out.buffers.end(), st->buffer) != out.buffers.end())
      return refuse(text("it stores twice in ", st->buffer->name, ", or the same variable twice"));
    stored[k] = lets.empty() ? st->value : lets[k];
    out.buffers[k] = st->buffer;
  }
  arith::Analyzer a;
  auto same = [&](const Values& x, const Values& y) {
    return x.size() == y.size() &&
           std::equal(x.begin(), x.end(), y.begin(), [&](const Expr& p, const Expr& q) { return a.prove_equal(p, q); });
  };
  out.identity.assign(n, nullptr);
  for (const BufferStore* st : inits) {
    auto at = std::find(out.buffers.begin(), out.buffers.end(), st->buffer);
    if (at == out.buffers.end()) return refuse(text("its init stores in ", st->buffer->name, ", its update does not"));
    Expr& identity = out.identity[static_cast<size_t>(at - out.buffers.begin())];
    if (identity) return refuse(text("its init stores twice in ", st->buffer->name));
    identity = st->value;
    if (!same(st->indices, out.indices)) return refuse("init and update store at different indices");
  }
  for (const BufferStore* st : updates) {
    if (!same(st->indices, out.indices)) return refuse("its updates store at different indices");
    if (!same(st->buffer->shape, out.buffers[0]->shape)) return refuse("its buffers are of different shapes");
  }
  Values accumulators;
  for (size_t k = 0; k < n; ++k) {
    const BufferRef& b = out.buffers[k];
    auto st = std::find_if(updates.begin(), updates.end(), [&](const BufferStore* u) { return u->buffer == b; });
    accumulators.push_back(load(b, (*st)->indices));
  }
  for (const Reducer& row : reducers()) {
    if (matches(row, accumulators, stored, out)) return {};
  }
  return refuse("identity and combination fit no known reducer");
}

Stmt reduction_update(const Reducer& reducer, const std::vector<BufferRef>& buffers, const Values& indices,
                      const Values& operands) {
  Values accumulators;
  for (const BufferRef& b : buffers) accumulators.push_back(load(b, indices));
  Values combined = reducer.combine(accumulators, operands);
  if (buffers.size() == 1) return store(buffers[0], combined[0], indices);
  std::vector<VarRef> vars;
  std::vector<Stmt> stores;
  for (size_t k = 0; k < buffers.size(); ++k) {
    vars.push_back(make_var("v_" + buffers[k]->name, combined[k]->dtype));
    stores.push_back(store(buffers[k], vars[k], indices));
  }
  Stmt body = seq(std::move(stores));
  for (size_t k = buffers.size(); k-- > 0;) body = make<LetStmt>(combined[k], vars[k], body);
  return body;
}

}  // namespace sator::schedule
