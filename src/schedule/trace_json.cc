// Traces as JSON, in the form that TVM writes.
#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "schedule/handle_names.h"
#include "schedule/primitive.h"

namespace sator::schedule {

namespace {

constexpr const char* kDecision = "decision";

/// "cache_read" as the name of an instruction: "CacheRead".
std::string kind_of(const std::string& primitive) {
  static const std::map<std::string, std::string> irregular = {
      {"rfactor", "RFactor"}, {"reindex", "ReIndex"}, {"unsafe_set_dtype", "UnsafeSetDType"}};
  if (auto at = irregular.find(primitive); at != irregular.end()) return at->second;
  std::string out;
  bool begins = true;
  for (char c : primitive) {
    if (c != '_') out += begins ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    begins = c == '_';
  }
  return out;
}

const AnyPrimitive* primitive_of(const std::string& kind) {
  for (const AnyPrimitive* p : primitives())
    if (kind_of(p->name) == kind) return p;
  return nullptr;
}

Json attribute(const Value& v) {
  if (v.is_none()) return nullptr;
  if (auto* b = v.get_if<bool>()) return static_cast<int>(*b);
  if (auto* i = v.get_if<int64_t>()) return *i;
  if (auto* d = v.get_if<double>()) return *d;
  if (auto* s = v.get_if<std::string>()) return *s;
  if (auto* list = v.get_if<List>()) {
    Json all = Json::array();
    for (const Value& item : *list) all.push_back(attribute(item));
    return all;
  }
  if (auto* n = v.get_if<NodeRef>())
    if (const Buffer* buffer = n->as<Buffer>()) return buffer->name;
  return text(v);
}

/// A handle by name; other values as attributes are, strings in quotes.
Json input(const Value& v, const HandleNames& names) {
  if (const std::string* name = names.find(v)) return *name;
  if (auto* s = v.get_if<std::string>()) return string_literal(*s);
  if (v.get_if<Expr>()) return names.use(v);
  return attribute(v);
}

/// ("write", 0) as TVM has it: the index, then 0 for read or 1 for write.
void add_selector(Json& attributes, const Value& v) {
  const List* pair = v.get_if<List>();
  const std::string* side = pair && pair->size() == 2 ? (*pair)[0].get_if<std::string>() : nullptr;
  attributes.push_back(attribute(side ? (*pair)[1] : v));
  if (side) attributes.push_back(*side == "write" ? 1 : 0);
}

/// The text of an argument in a script.
std::string attribute_text(const JsonAt& at, bool is_map) {
  if (at.is_array()) {
    std::vector<std::string> items;
    at.each([&](const JsonAt& item) { items.push_back(attribute_text(item, false)); });
    return text("[", join(items, ", "), "]");
  }
  if (at.json().is_null()) return "None";
  if (at.is_boolean()) return at.boolean() ? "True" : "False";
  if (!at.is_string()) return at.json().dump();
  if (!is_map) return string_literal(at.string());
  if (!at.string().starts_with("lambda"))
    at.fail("is no lambda",
            "an index map as \"lambda i, j: (j, i)\"",
            "print the trace as Python: TVM writes maps as nodes");
  return at.string();
}

std::string input_text(const JsonAt& at) {
  if (!at.is_string()) return attribute_text(at, false);
  const std::string value = at.string();
  if (value.starts_with('"')) return value;
  const bool is_plain = !value.empty() && std::ranges::all_of(value, [](unsigned char c) {
    return std::isalnum(c) || std::string_view("_ +-*/%()").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (!is_plain) at.fail(text("is ", string_literal(value)), "the name of a result, or an expression of such");
  return value;
}

std::vector<JsonAt> elements(const JsonAt& list) {
  std::vector<JsonAt> all;
  list.each([&](const JsonAt& item) { all.push_back(item); });
  return all;
}

/// The line of one instruction [kind, inputs, attributes, results].
std::string line_of(const JsonAt& instruction, const JsonAt* decision) {
  const std::vector<JsonAt> parts = elements(instruction);
  if (parts.size() != 4) instruction.fail(text("has ", parts.size(), " parts"), "[kind, inputs, attributes, results]");
  const AnyPrimitive* primitive = primitive_of(parts[0].string());
  if (!primitive)
    parts[0].fail(text("is ", string_literal(parts[0].string())), "the kind of a primitive: \"Split\", \"CacheRead\"");
  const std::vector<JsonAt> inputs = elements(parts[1]), attributes = elements(parts[2]);
  size_t handles = 0, others = 0;  // parameters that take one input, or one attribute
  for (const Parameter& p : primitive->parameters) {
    handles += p.takes == Takes::handle;
    others += (p.takes != Takes::handle && p.takes != Takes::handles) && !p.is_own && p.name != kDecision;
  }
  if (inputs.size() < handles) parts[1].fail(text("has ", inputs.size(), " inputs"), text("at least ", handles));
  size_t next = 0, next_attribute = 0, in_list = inputs.size() - handles;
  std::vector<std::string> args;
  auto add = [&](const Parameter& p, const std::string& value) { args.push_back(text(p.name, "=", value)); };
  for (const Parameter& p : primitive->parameters) {
    if (p.name == kDecision) {
      if (decision) add(p, attribute_text(*decision, false));
    } else if (p.takes == Takes::handle) {
      add(p, input_text(inputs[next++]));
    } else if (p.takes == Takes::handles) {
      std::vector<std::string> items;
      for (; in_list > 0; --in_list) items.push_back(input_text(inputs[next++]));
      if (!items.empty() || p.required) add(p, text("[", join(items, ", "), "]"));
    } else if (next_attribute < attributes.size()) {
      const JsonAt& value = attributes[next_attribute++];
      // TVM's index of a buffer has its side behind it where both can be meant.
      const bool has_side = p.takes == Takes::buffer && attributes.size() > others;
      const std::string shown = attribute_text(value, p.takes == Takes::map);
      if (has_side)
        add(p, text("(\"", attributes[next_attribute++].integer() == 0 ? "read" : "write", "\", ", shown, ")"));
      else
        add(p, shown);
    }
  }
  if (in_list > 0) parts[1].fail(text("has ", inputs.size(), " inputs"), text(handles, " for ", primitive->name));
  std::vector<std::string> results;
  for (const JsonAt& r : elements(parts[3])) results.push_back(input_text(r));
  const bool one_of_list = results.size() == 1 && primitive->gives_list;
  return text(join(results, ", "),
              one_of_list ? "," : "",
              results.empty() ? "" : " = ",
              primitive->name,
              "(",
              join(args, ", "),
              ")\n");
}

}  // namespace

Json Trace::as_json() const {
  HandleNames names;
  Json instructions = Json::array(), decisions = Json::array();
  for (const Step& step : steps) {
    const AnyPrimitive& primitive = primitive_named(step.primitive);
    Json inputs = Json::array(), attributes = Json::array();
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const Parameter& p = primitive.parameters[i];
      const Value& v = step.inputs[i];
      const List* list = v.get_if<List>();
      if (p.name == kDecision) {
        decisions.push_back({instructions.size(), attribute(v)});
      } else if (p.takes == Takes::handle) {
        inputs.push_back(input(v, names));
      } else if (p.takes == Takes::handles) {
        for (const Value& item : list ? *list : v.is_none() ? List{} : List{v}) inputs.push_back(input(item, names));
      } else if (p.takes == Takes::buffer) {
        add_selector(attributes, v);
      } else {
        attributes.push_back(attribute(v));
      }
    }
    instructions.push_back({kind_of(step.primitive), inputs, attributes, names.define(step.output)});
  }
  return {instructions, decisions};
}

std::string script_of_json(const JsonAt& trace) {
  const std::vector<JsonAt> parts = elements(trace);
  if (parts.size() != 2) trace.fail(text("has ", parts.size(), " parts"), "[instructions, decisions]");
  const std::vector<JsonAt> instructions = elements(parts[0]);
  std::map<int64_t, JsonAt> decisions;
  for (const JsonAt& d : elements(parts[1])) {
    const std::vector<JsonAt> pair = elements(d);
    if (pair.size() != 2) d.fail(text("has ", pair.size(), " parts"), "[index of an instruction, its decision]");
    const int64_t index = pair[0].integer();
    if (index < 0 || index >= std::ssize(instructions)) pair[0].fail(text("is ", index), "the index of an instruction");
    decisions.emplace(index, pair[1]);
  }
  std::string script;
  for (size_t i = 0; i < instructions.size(); ++i) {
    const auto decision = decisions.find(static_cast<int64_t>(i));
    script += line_of(instructions[i], decision == decisions.end() ? nullptr : &decision->second);
  }
  return script;
}

}  // namespace sator::schedule
