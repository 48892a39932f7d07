#include "relax/shared_memory.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "ir/visit.h"
#include "relax/outline.h"

namespace sator::relax {

namespace {

bool has_call_in_place(const NodeRef& e) {
  bool found = false;
  walk(e, [&](const RCall& c) { return !(found = found || is_op(ref(c), "call_tir_inplace")); });
  return found;
}

}  // namespace

RExpr reshaped(const Binding& b) {
  const RExpr value = bound_value(b);
  return is_op(value, "reshape") ? value.as<RCall>()->args.front() : nullptr;
}

SharedMemory::SharedMemory(const Module& module, ViewOf view_of) : module_(&module), view_of_(std::move(view_of)) {
  follow({});
}

SharedMemory::SharedMemory(const Function& function, const Module* module, ViewOf view_of)
    : module_(module), view_of_(std::move(view_of)) {
  follow({&function});
}

void SharedMemory::follow(std::vector<const Function*> functions) {
  for (const auto& [name, func] : module_ ? module_->functions : std::map<std::string, Func>{}) {
    if (const Function* f = func.as<Function>()) functions.push_back(f);
  }
  // Nothing is overwritten in most modules.
  if (std::ranges::none_of(functions, [](const Function* f) { return has_call_in_place(ref(*f)); })) return;
  // Callees may stand behind their callers, and call one another: until nothing new is learnt.
  for (std::map<const Function*, Effect> before; before.empty() || before != effects_;) {
    before = effects_;
    constant_writes_.clear();
    for (const Function* f : functions) effects_[f] = effect_of(*f);
  }
}

SharedMemory::Effect SharedMemory::effect_of(const Function& f) {
  const Regions before = std::exchange(overwritten_, {});
  for (const RVarRef& p : f.params) names_[p.get()] = named_by(*p, p->sinfo);
  Effect out{.result = sequence(f.body), .overwritten = std::move(overwritten_)};
  overwritten_ = before;
  overwritten_.insert(out.overwritten.begin(), out.overwritten.end());
  return out;
}

SharedMemory::Named SharedMemory::sequence(const RExpr& body) {
  const SeqExpr* seq = body.as<SeqExpr>();
  if (!seq) return {};
  for (const BindingBlockRef& block : seq->blocks) {
    for (const Binding& b : block->bindings) {
      const RVarRef var = bound_var(b);
      const RExpr bound = bound_value(b), of = view_of_ ? view_of_(b) : nullptr;
      if (const LocalFunction* local = bound.as<LocalFunction>())
        functions_[var.get()] = local->function.get();
      else if (const Function* known = callee_of(bound))
        functions_[var.get()] = known;
      names_[var.get()] = value(of ? of : bound, *var);
    }
  }
  return leaf(seq->body);
}

SharedMemory::Named SharedMemory::value(const RExpr& e, const RVar& var) {
  if (const RCall* c = e.as<RCall>()) return call(*c, var);
  if (const If* n = e.as<If>()) return joined(sequence(n->true_branch), sequence(n->false_branch));
  if (const LocalFunction* f = e.as<LocalFunction>()) effects_[f->function.get()] = effect_of(*f->function);
  return leaf(e);
}

SharedMemory::Named SharedMemory::leaf(const RExpr& e) const {
  if (const RVar* v = e.as<RVar>()) {
    const auto at = names_.find(v);
    return at != names_.end() ? at->second : named_by(*v, v->sinfo);
  }
  if (e.as<Constant>()) return {.items = {}, .regions = {Region{.owner = e.get(), .path = {}, .is_constant = true}}};
  if (const TupleGetItem* t = e.as<TupleGetItem>()) return item(leaf(t->tuple), static_cast<size_t>(t->index));
  Named out;
  if (const Tuple* t = e.as<Tuple>())
    for (const RExpr& part : t->items) out.items.push_back(leaf(part));
  return out;
}

SharedMemory::Named SharedMemory::call(const RCall& c, const RVar& var) {
  if (is_op(ref(c), "call_tir_inplace")) return in_place_call(c, var);
  if (const Function* callee = callee_of(c.op); callee && callee->params.size() == c.args.size())
    return function_call(c, *callee, var);
  return named_by(var, c.sinfo);
}

const Function* SharedMemory::callee_of(const RExpr& op) const {
  if (const RVar* v = op.as<RVar>()) {
    const auto at = functions_.find(v);
    return at == functions_.end() ? nullptr : at->second;
  }
  const GlobalVar* g = module_ ? op.as<GlobalVar>() : nullptr;
  const auto at = g ? module_->functions.find(g->name) : std::map<std::string, Func>::const_iterator{};
  return g && at != module_->functions.end() ? at->second.as<Function>() : nullptr;
}

SharedMemory::Named SharedMemory::in_place_call(const RCall& c, const RVar& var) {
  if (c.args.size() < 2 || c.sinfo_args.empty()) return {};
  const TupleInfo* results = c.sinfo_args.front().as<TupleInfo>();
  const std::vector<RExpr> inputs = call_tir_inputs(c);
  const std::vector<int64_t> taken = overwritten_inputs(c, results ? results->items.size() : 1);
  Named out = named_by(var, c.sinfo_args.front());
  for (size_t r = 0; r < taken.size(); ++r) {
    if (taken[r] < 0 || taken[r] >= static_cast<int64_t>(inputs.size())) continue;
    const auto i = static_cast<size_t>(taken[r]);
    const Named input = leaf(inputs[i]);
    overwrite(all(input), c, i, var);
    (results ? out.items.at(r) : out) = input;
  }
  return out;
}

SharedMemory::Named SharedMemory::function_call(const RCall& c, const Function& callee, const RVar& var) {
  Arguments given;
  for (size_t i = 0; i < c.args.size(); ++i) given.emplace(callee.params[i].get(), leaf(c.args[i]));
  const Effect effect = effects_[&callee];
  const bool is_local = !c.op.as<GlobalVar>();  // it may name what surrounds it
  // What a region of the callee is to the caller.
  const auto seen = [&](const Regions& regions) {
    Regions out;
    for (const Region& r : regions) {
      if (const auto at = given.find(r.owner); at != given.end()) {
        Named part = at->second;
        for (size_t step : r.path) part = item(part, step);
        out.merge(all(part));
      } else if (r.is_constant || is_local) {
        out.insert(r);
      } else {
        out.insert(Region{.owner = &var, .path = {}});
      }
    }
    return out;
  };
  for (size_t i = 0; i < c.args.size(); ++i) {
    Regions of_argument;
    std::ranges::copy_if(effect.overwritten, std::inserter(of_argument, of_argument.end()), [&](const Region& r) {
      return r.owner == callee.params[i].get();
    });
    overwrite(seen(of_argument), c, i, var);
  }
  if (is_local) writes_[&var].merge(seen(effect.overwritten));
  const auto result = [&](auto& self, const Named& n) -> Named {
    Named out{.items = {}, .regions = seen(n.regions)};
    for (const Named& part : n.items) out.items.push_back(self(self, part));
    return out;
  };
  return result(result, effect.result);
}

void SharedMemory::overwrite(const Regions& regions, const RCall& c, size_t argument, const RVar& var) {
  overwritten_.insert(regions.begin(), regions.end());
  writes_[&var].insert(regions.begin(), regions.end());
  if (std::ranges::any_of(regions, &Region::is_constant)) constant_writes_.push_back({ref(c), argument});
}

SharedMemory::Named SharedMemory::named_by(const NodeBase& owner, const StructInfo& info, std::vector<size_t> path) {
  const TupleInfo* tuple = info.as<TupleInfo>();
  if (!tuple) return {.items = {}, .regions = {Region{.owner = &owner, .path = std::move(path)}}};
  Named out;
  for (size_t i = 0; i < tuple->items.size(); ++i) {
    std::vector<size_t> further = path;
    further.push_back(i);
    out.items.push_back(named_by(owner, tuple->items[i], std::move(further)));
  }
  return out;
}

SharedMemory::Named SharedMemory::joined(const Named& a, const Named& b) {
  Named out{.items = {}, .regions = a.regions};
  out.regions.insert(b.regions.begin(), b.regions.end());
  if (a.items.size() == b.items.size()) {
    for (size_t i = 0; i < a.items.size(); ++i) out.items.push_back(joined(a.items[i], b.items[i]));
    return out;
  }
  out.regions.merge(all(a));
  out.regions.merge(all(b));
  return out;
}

SharedMemory::Named SharedMemory::item(const Named& tuple, size_t index) {
  Named out = index < tuple.items.size() ? tuple.items[index] : Named{};
  out.regions.insert(tuple.regions.begin(), tuple.regions.end());
  return out;
}

SharedMemory::Regions SharedMemory::all(const Named& n) {
  Regions out = n.regions;
  for (const Named& part : n.items) out.merge(all(part));
  return out;
}

bool SharedMemory::is_overwritten(const RVar& v) const {
  const auto at = names_.find(&v);
  return at != names_.end() &&
         std::ranges::any_of(all(at->second), [&](const Region& r) { return overwritten_.contains(r); });
}

std::vector<bool> SharedMemory::read_before_overwritten(const BindingBlock& block) const {
  std::vector<bool> early(block.bindings.size());
  for (size_t b = 0; b < block.bindings.size(); ++b)
    for (size_t reader : readers_before(block, b)) early[reader] = true;
  return early;
}

std::vector<size_t> SharedMemory::readers_before(const BindingBlock& block, size_t at) const {
  const auto written = writes_.find(bound_var(block.bindings[at]).get());
  if (written == writes_.end()) return {};
  const auto reads = [&](const RExpr& value) {
    return !value.as<RVar>() && std::ranges::any_of(rvars_in(value), [&](const RVarRef& v) {
      const auto named = names_.find(v.get());
      return named != names_.end() &&
             std::ranges::any_of(all(named->second), [&](const Region& r) { return written->second.contains(r); });
    });
  };
  // A call whose result this one overwrites stays before it, and so on.
  std::vector<RVarRef> chain = rvars_in(bound_value(block.bindings[at]));
  std::vector<size_t> readers;
  for (size_t before = at; before-- > 0;) {
    const RVarRef var = bound_var(block.bindings[before]);
    const RExpr value = bound_value(block.bindings[before]);
    if (writes_.contains(var.get()) && std::ranges::find(chain, var) != chain.end())
      std::ranges::copy(rvars_in(value), std::back_inserter(chain));
    else if (reads(value))
      readers.push_back(before);
  }
  return readers;
}

}  // namespace sator::relax
