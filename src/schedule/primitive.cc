#include "schedule/primitive.h"

#include "schedule/primitives.h"

namespace sator::schedule {

List AnyPrimitive::bind(List positional, std::vector<std::pair<std::string, Value>> keywords) const {
  auto refuse = [&](std::string what, std::string hint) {
    std::vector<std::string> names;
    for (const Parameter& p : parameters) names.push_back(p.required ? p.name : text(p.name, "=", p.fallback));
    fail({.what = text(name, ": ", what), .needs = text(name, "(", join(names, ", "), ")"), .hint = std::move(hint)});
  };
  if (positional.size() > parameters.size())
    refuse(text(positional.size(), " arguments for ", parameters.size(), " parameters"), "leave the last ones out");
  List out = std::move(positional);
  std::vector<bool> given(parameters.size());
  for (size_t i = 0; i < out.size(); ++i) given[i] = true;
  out.resize(parameters.size());
  for (auto& [key, value] : keywords) {
    size_t at = 0;
    while (at < parameters.size() && parameters[at].name != key) ++at;
    if (at == parameters.size()) {
      std::vector<std::string> names;
      for (const Parameter& p : parameters) names.push_back(p.name);
      refuse(text("no parameter is called ", key), text("the nearest is ", join(nearest_names(key, names), ", ")));
    }
    if (given[at]) refuse(text(key, " is given twice"), "give it once");
    out[at] = std::move(value);
    given[at] = true;
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (given[i]) continue;
    if (parameters[i].required) refuse(text(parameters[i].name, " is missing"), "give it by position or by name");
    out[i] = parameters[i].fallback;
  }
  return out;
}

List AnyPrimitive::written(List arguments) const {
  while (!arguments.empty() && parameters[arguments.size() - 1].is_own) {
    const bool* on = arguments.back().get_if<bool>();
    if (!on || *on) break;
    arguments.pop_back();
  }
  return arguments;
}

void AnyPrimitive::refuse_argument(const Error& error) const {
  Reason reason = error.reason;
  reason.what = text(name, ": ", reason.what);
  fail(std::move(reason));
}

const AnyPrimitive& primitive_named(const std::string& name) {
  for (const AnyPrimitive* p : primitives())
    if (p->name == name) return *p;
  std::vector<std::string> names;
  for (const AnyPrimitive* p : primitives()) names.push_back(p->name);
  fail({.what = text("there is no primitive ", name),
        .needs = "a primitive's name",
        .hint = text("the nearest are: ", join(nearest_names(name, names), ", "))});
}

}  // namespace sator::schedule
