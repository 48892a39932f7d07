#include "schedule/trace.h"

#include <algorithm>
#include <functional>
#include <unordered_set>

#include "schedule/handle_names.h"
#include "schedule/primitive.h"

namespace sator::schedule {

std::string describe(const Step& step) { return text(step.primitive, "(", join(step.inputs, ", "), ")"); }

namespace {

using HandleMap = std::unordered_map<const NodeBase*, Value>;

/// The expression with chosen numbers as `map` has them.
Value mapped(const Expr& e, const HandleMap& map) {
  VarMap numbers;
  for (const VarRef& v : vars_in(e))
    if (auto at = map.find(v.get()); at != map.end()) numbers.emplace(v, value_to_expr(at->second, v->name));
  return numbers.empty() ? Value(e) : to_value(substitute(e, numbers));
}

/// Rewrites the handles in a value by `map`; what is not a handle stays. A block that a step made and none returned goes by
/// its name, as the script named it.
Value mapped(const Value& v, const HandleMap& map, const Schedule& s) {
  auto look_up = [&](const NodeBase* handle) -> Value {
    auto at = map.find(handle);
    return at == map.end() ? v : at->second;
  };
  if (auto* l = v.get_if<Loop>()) return look_up(l->get());
  if (auto* e = v.get_if<Expr>()) return mapped(*e, map);
  if (auto* b = v.get_if<BlockHandle>()) {
    BlockHandle now = *b;
    s.resolve(now);
    const bool is_known = map.contains(b->get()) || s.sites().find(now) >= 0;
    return is_known ? look_up(b->get()) : Value((*b)->text);
  }
  if (auto* list = v.get_if<List>()) {
    List out;
    for (const Value& item : *list) out.push_back(mapped(item, map, s));
    return out;
  }
  return v;
}

/// Notes that the handles of `from` correspond to those of `to`, which has the same shape.
void correspond(const Value& from, const Value& to, HandleMap& map) {
  if (const NodeBase* handle = handle_of(from)) {
    map.insert_or_assign(handle, to);
  } else if (auto* list = from.get_if<List>()) {
    const List* other = to.get_if<List>();
    if (!other || other->size() != list->size())
      fail({.what = "the trace does not fit this program: a step returned another number of handles",
            .needs = "the program that the trace was recorded on",
            .hint = "replay on the function before scheduling"});
    for (size_t i = 0; i < list->size(); ++i) correspond((*list)[i], (*other)[i], map);
  }
}

/// Calls `visit` with each handle in a value, those in expressions too.
void for_handles(const Value& v, const std::function<void(const NodeBase*)>& visit) {
  if (auto* e = v.get_if<Expr>()) {
    for (const VarRef& var : vars_in(*e)) visit(var.get());
  } else if (const NodeBase* handle = handle_of(v)) {
    visit(handle);
  } else if (auto* list = v.get_if<List>()) {
    for (const Value& item : *list) for_handles(item, visit);
  }
}

}  // namespace

void Trace::apply_to(Schedule& s) const {
  HandleMap map;
  for (const Step& step : steps) {
    const AnyPrimitive& primitive = primitive_named(step.primitive);
    List inputs;
    for (const Value& v : step.inputs) inputs.push_back(mapped(v, map, s));
    correspond(step.output, primitive.invoke(s, std::move(inputs)), map);
  }
}

std::string Trace::as_python() const {
  HandleNames names;
  std::string out;
  for (const Step& step : steps) {
    const AnyPrimitive& primitive = primitive_named(step.primitive);
    std::vector<std::string> args;
    for (size_t i = 0; i < step.inputs.size(); ++i)
      args.push_back(text(primitive.parameters[i].name, "=", names.use(step.inputs[i])));
    const std::vector<std::string> results = names.define(step.output);
    const bool one_of_list = results.size() == 1 && step.output.get_if<List>();
    out += text(join(results, ", "),
                one_of_list ? "," : "",
                results.empty() ? "" : " = ",
                "sch.",
                step.primitive,
                "(",
                join(args, ", "),
                ")\n");
  }
  return out;
}

Trace Trace::simplified(bool remove_postproc) const {
  auto end = steps.end();
  if (remove_postproc) end = std::ranges::find(steps, "enter_postproc", &Step::primitive);
  std::unordered_set<const NodeBase*> used;
  Trace out;
  for (auto step = end; step != steps.begin();) {
    --step;
    bool is_used = primitive_named(step->primitive).effect == Effect::rewrites;
    for_handles(step->output, [&](const NodeBase* handle) { is_used |= used.contains(handle); });
    if (!is_used) continue;
    for (const Value& input : step->inputs) for_handles(input, [&](const NodeBase* handle) { used.insert(handle); });
    out.steps.push_back(*step);
  }
  std::ranges::reverse(out.steps);
  return out;
}

}  // namespace sator::schedule
