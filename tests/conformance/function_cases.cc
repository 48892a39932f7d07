// query: what analyses say of a function, and what passes leave in its attributes.
#include "cases.h"
#include "ir/script/parser.h"
#include "tir/analysis.h"
#include "tir/verify.h"

namespace sator::conformance {

namespace {

using script::Expression;
using script::ExpressionKind;

const tir::PrimFunc& only_function(const ModuleRef& module) {
  if (module->functions.size() != 1) throw Unsupported{"an analysis of several functions"};
  const auto* f = module->functions.begin()->second.as<tir::PrimFunc>();
  if (!f) throw Unsupported{"an analysis of a graph"};
  return *f;
}

/// calculate_allocated_bytes of a module or, under the name main, of a function; its items, and .get(key, otherwise).
std::optional<Json> allocated(const Json& request, const ModuleRef& before, const Expression& e) {
  if (e.is(ExpressionKind::subscript) && e.items[1].is(ExpressionKind::string)) {
    auto of = allocated(request, before, e.items[0]);
    if (of && !of->contains(e.items[1].text)) throw Failed{"no entry " + e.items[1].text + " in " + of->dump()};
    return of ? std::optional((*of)[e.items[1].text]) : std::nullopt;
  }
  if (!e.is(ExpressionKind::call)) return {};
  if (e.items[0].is(ExpressionKind::attribute) && e.items[0].text == "get" && e.items.size() == 3) {
    auto of = allocated(request, before, e.items[0].items[0]);
    return of ? std::optional(of->value(e.items[1].text, Json(e.items[2].integer))) : std::nullopt;
  }
  if (script::dotted_name(e.items[0]) != "tir.analysis.calculate_allocated_bytes") return {};
  ModuleRef module = transformed(request, before, e.items[1]);
  const bool one = e.items[1].is(ExpressionKind::subscript);
  Json out = Json::object();
  for (const auto& [name, func] : module->functions) {
    const auto* f = func.as<tir::PrimFunc>();
    if (f) out[one ? "main" : name] = tir::allocated_bytes(*f);
  }
  return out;
}

/// The value of a query, as JSON.
Json answer_of(const Json& request, const ModuleRef& before, const Expression& e) {
  if (auto bytes = allocated(request, before, e)) return *bytes;
  auto module = [&](size_t item) { return transformed(request, before, e.items[item]); };
  if (!e.is(ExpressionKind::call)) {
    // PASSES($before)['f'].attrs['key']
    if (e.is(ExpressionKind::subscript) && e.items[0].is(ExpressionKind::attribute) && e.items[0].text == "attrs") {
      ModuleRef m = transformed(request, before, e.items[0].items[0]);
      const Attrs& attrs = m->functions.begin()->second->attrs;
      auto at = attrs.find(e.items[1].text);
      if (at == attrs.end()) throw Failed{"no attribute " + e.items[1].text};
      const auto* target = at->second.as<TargetConfig>();
      if (!target || target->config.size() != 1) throw Unsupported{"the value of an attribute"};
      return "tvm.target.Target('" + string_attr(target->config, "kind").value_or("") + "')";
    }
    if (e.is(ExpressionKind::attribute) && e.text == "attrs") {
      ModuleRef m = transformed(request, before, e.items[0]);
      Json keys = Json::array();
      for (const auto& [key, value] : m->functions.begin()->second->attrs) keys.push_back(key);
      return keys;
    }
    throw Unsupported{"a query of this form"};
  }
  const std::string name = script::dotted_name(e.items[0]);
  if (e.items[0].is(ExpressionKind::attribute) && e.items[0].text == "same_as")
    return transformed(request, before, e.items[0].items[0]) == module(1);
  if (name == "tir.analysis.verify_well_formed") return tir::verify(only_function(module(1))).empty();
  if (name == "tir.analysis.is_pure_function") return !tir::not_pure(only_function(module(1)));
  if (name == "tir.analysis.calculate_workspace_bytes")
    return tir::workspace_bytes(only_function(module(1)), e.items.at(2).integer);
  if (name == "tir.analysis.calculate_constant_bytes")
    return tir::constant_bytes(only_function(module(1)), e.items.at(2).integer);
  if (name == "tir.analysis.estimate_tir_flops") return static_cast<int64_t>(tir::estimate_flops(*module(1)));
  throw Unsupported{"queries of " + name};
}

}  // namespace

void ask(const Json& request, const ModuleRef& before, const std::string& source) {
  script::Program program;
  try {
    program = script::parse("value = " + source + "\n");
  } catch (const Error&) {
    throw Unsupported{"cases of kind query"};
  }
  Json got = answer_of(request, before, program.body.at(0).value);
  const std::string op = request.value("op", "==");
  const Json& after = request.at("after");
  // Numbers are written out.
  const bool same = got == after || (after.is_string() && got.dump() == after.get<std::string>());
  const bool among = got.is_object() ? after.is_string() && got.contains(after.get<std::string>())
                                     : got.is_array() && std::ranges::find(got, after) != got.end();
  const bool holds = op == "true" ? got == true : op == "false" ? got == false : op == "in" ? among : same;
  if (!holds) throw Failed{"it is " + got.dump()};
}

void run_query(const Json& request) {
  if (request.contains("opaque") || !request.contains("before") || !request["before"].is_string() ||
      !request.contains("expr"))
    throw Unsupported{"cases of kind query"};
  std::string source = request.at("expr");
  for (size_t at; (at = source.find("$before")) != source.npos;) source.replace(at, 7, "case_before");
  ask(request, parse_program(request.at("before")), source);
}

}  // namespace sator::conformance
