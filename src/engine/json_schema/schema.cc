#include "engine/json_schema/schema.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"

namespace sator::json_schema {

namespace {

/// Keywords that say nothing of whether a value is valid.
constexpr std::string_view kAnnotations[] = {"$schema",
                                             "$comment",
                                             "$defs",
                                             "definitions",
                                             "$anchor",
                                             "title",
                                             "description",
                                             "default",
                                             "examples",
                                             "deprecated",
                                             "readOnly",
                                             "writeOnly",
                                             "contentEncoding",
                                             "contentMediaType",
                                             "contentSchema"};
/// Keywords that restrict values and are not done.
constexpr std::string_view kNotDone[] = {"contains",
                                         "minContains",
                                         "maxContains",
                                         "uniqueItems",
                                         "dependentRequired",
                                         "dependentSchemas",
                                         "unevaluatedItems",
                                         "unevaluatedProperties",
                                         "$dynamicRef",
                                         "$dynamicAnchor",
                                         "$vocabulary"};
/// Keywords that restricted values in drafts before 2020-12, and what stands in their place.
struct OldKeyword {
  std::string_view name;
  const char* hint;
};
constexpr OldKeyword kOfOlderDrafts[] = {
    {"additionalItems", "write prefixItems for a list of items, items for those behind"},
    {"dependencies", "write anyOf: the property is not there, or what it asks for"},
    {"$recursiveRef", "write $ref"},
    {"disallow", "write not"},
    {"divisibleBy", "write multipleOf"},
    {"extends", "write allOf"}};
/// At which values they say nothing.
bool says_nothing(const std::string& name, const Json& value) {
  return (name == "uniqueItems" && value == false) ||
         ((name == "unevaluatedItems" || name == "unevaluatedProperties") && value == true);
}
/// minContains and maxContains say nothing without contains.
bool lacks_its_keyword(const std::string& name, const Json& schema) {
  return (name == "minContains" || name == "maxContains") && !schema.contains("contains");
}

struct TypeName {
  std::string_view name;
  uint8_t types;
};
constexpr TypeName kTypeNames[] = {{"null", kNull},
                                   {"boolean", kTrue | kFalse},
                                   {"integer", kInteger},
                                   {"number", kInteger | kFraction},
                                   {"string", kString},
                                   {"array", kArray},
                                   {"object", kObject}};

/// A part of a JSON pointer: "~1" is "/", "~0" is "~".
std::string unescaped(std::string_view part) {
  std::string out;
  for (size_t i = 0; i < part.size(); ++i)
    if (part[i] == '~' && i + 1 < part.size() && (part[i + 1] == '0' || part[i + 1] == '1'))
      out += part[++i] == '0' ? '~' : '/';
    else
      out += part[i];
  return out;
}
/// A fragment of a URI: "%25" is "%".
std::string percent_decoded(std::string_view text) {
  std::string out;
  auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
  };
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0) {
      out += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  return out;
}

class Reader {
 public:
  Reader(const Json& root, std::string source) : root_(root), source_(std::move(source)) {}

  Schema all() {
    schema_.root = node_of(root_, text(source_, ": #"));
    for (size_t i = 0; i < open_.size(); ++i) fill(open_[i].first, *open_[i].second);
    schema_.ignored.assign(ignored_.begin(), ignored_.end());
    return std::move(schema_);
  }

 private:
  [[noreturn]] static void refuse(const std::string& where, const std::string& what, const std::string& needs,
                                  const std::string& hint = "") {
    fail({.what = text(where, " ", what), .needs = needs, .hint = hint});
  }

  /// The node of a subschema, which is read later: schemas may contain themselves.
  NodeId node_of(const Json& json, const std::string& where) {
    if (const auto known = known_.find(&json); known != known_.end()) return known->second;
    if (!json.is_object() && !json.is_boolean()) refuse(where, "is no schema", "an object, true or false");
    const NodeId id = fresh(where);
    known_[&json] = id;
    open_.emplace_back(id, &json);
    return id;
  }
  NodeId fresh(const std::string& where) {
    constexpr size_t kMostNodes = 100'000;
    if (schema_.nodes.size() > kMostNodes) refuse(where, "is one of too many subschemas", text("at most ", kMostNodes));
    schema_.nodes.push_back({.where = where});
    return static_cast<NodeId>(schema_.nodes.size()) - 1;
  }

  void fill(NodeId id, const Json& json) {
    SchemaNode n{.where = schema_.nodes[static_cast<size_t>(id)].where};
    if (json.is_boolean()) {
      n.types = json.get<bool>() ? kAllTypes : 0;
    } else {
      for (const auto& [name, value] : json.items()) check_known(name, value, json, n);
      fill_values(n, json);
      fill_numbers(n, json);
      fill_strings(n, json);
      fill_arrays(n, json);
      fill_objects(n, json);
      fill_combinations(n, json);
    }
    schema_.nodes[static_cast<size_t>(id)] = std::move(n);
  }

  void check_known(const std::string& name, const Json& value, const Json& schema, const SchemaNode& n) {
    static const std::set<std::string_view> done = {"type",
                                                    "const",
                                                    "enum",
                                                    "minimum",
                                                    "maximum",
                                                    "exclusiveMinimum",
                                                    "exclusiveMaximum",
                                                    "multipleOf",
                                                    "minLength",
                                                    "maxLength",
                                                    "pattern",
                                                    "prefixItems",
                                                    "items",
                                                    "minItems",
                                                    "maxItems",
                                                    "properties",
                                                    "patternProperties",
                                                    "additionalProperties",
                                                    "propertyNames",
                                                    "required",
                                                    "minProperties",
                                                    "maxProperties",
                                                    "allOf",
                                                    "anyOf",
                                                    "oneOf",
                                                    "not",
                                                    "if",
                                                    "then",
                                                    "else",
                                                    "$ref"};
    if (done.contains(name) || std::ranges::count(kAnnotations, name) > 0) return;
    if (name == "$id") {
      if (&schema == &root_) return;
      refuse(n.where, "has an $id of its own", "one document with one $id", "leave it out, and refer by #/$defs/...");
    }
    if (says_nothing(name, value) || lacks_its_keyword(name, schema)) return;
    if (std::ranges::count(kNotDone, name) > 0)
      refuse(n.where, text("has ", name, ", which is not done"), "keywords that docs/generation.md lists");
    if (const auto old = std::ranges::find(kOfOlderDrafts, name, &OldKeyword::name); old != std::end(kOfOlderDrafts))
      refuse(n.where,
             text("has ", name, ", which is not done: older drafts than 2020-12 have it"),
             "keywords of draft 2020-12",
             old->hint);
    ignored_.insert(name);
  }

  const Json* find(const Json& json, const std::string& name) const {
    const auto at = json.find(name);
    return at == json.end() ? nullptr : &*at;
  }
  std::string place(const SchemaNode& n, const std::string& name) const { return text(n.where, "/", name); }

  // ---- values
  void fill_values(SchemaNode& n, const Json& json) {
    if (const Json* type = find(json, "type")) {
      n.types = 0;
      auto add = [&](const Json& name) {
        const auto row = std::ranges::find_if(kTypeNames, [&](const TypeName& t) { return name == t.name; });
        if (row == std::end(kTypeNames))
          refuse(place(n, "type"), text("is ", name.dump()), "null, boolean, integer, number, string, array or object");
        n.types |= row->types;
      };
      if (type->is_array())
        for (const Json& name : *type) add(name);
      else
        add(*type);
    }
    if (const Json* value = find(json, "const")) n.all_of.push_back(node_of_value(*value, place(n, "const")));
    if (const Json* values = find(json, "enum")) {
      if (!values->is_array()) refuse(place(n, "enum"), "is no list", "a list of values");
      std::vector<NodeId> choices;
      for (const Json& value : *values) choices.push_back(node_of_value(value, place(n, "enum")));
      n.any_of.push_back(std::move(choices));
    }
  }

  /// The schema of which one value is valid.
  NodeId node_of_value(const Json& value, const std::string& where) {
    const NodeId id = fresh(where);
    SchemaNode n{.where = where};
    switch (value.type()) {
      case Json::value_t::null: n.types = kNull; break;
      case Json::value_t::boolean: n.types = value.get<bool>() ? kTrue : kFalse; break;
      case Json::value_t::string:
        n.types = kString;
        n.string_value = value.get<std::string>();
        break;
      case Json::value_t::array:
        n.types = kArray;
        for (const Json& item : value) n.prefix_items.push_back(node_of_value(item, where));
        n.min_items = n.max_items = std::ssize(value);
        break;
      case Json::value_t::object:
        n.types = kObject;
        for (const auto& [name, member] : value.items()) {
          n.properties.emplace_back(name, node_of_value(member, where));
          n.required.push_back(name);
        }
        n.max_properties = std::ssize(value);  // there is room for no other
        break;
      default:
        n.number_value = Decimal::read(value.dump(), where);
        n.types = n.number_value->is_integer() ? kInteger : kFraction;
    }
    schema_.nodes[static_cast<size_t>(id)] = std::move(n);
    return id;
  }

  // ---- numbers
  std::optional<Decimal> decimal(const SchemaNode& n, const Json& json, const char* name) const {
    const Json* at = find(json, name);
    if (!at) return {};
    if (!at->is_number()) refuse(place(n, name), "is no number", "a number");
    return Decimal::read(at->dump(), place(n, name));
  }
  int64_t count(const SchemaNode& n, const Json& json, const char* name, int64_t otherwise) const {
    constexpr double kMostCount = 1e9;
    const Json* at = find(json, name);
    if (!at) return otherwise;
    const double v = at->is_number() ? at->get<double>() : -1;
    if (!(v >= 0 && v <= kMostCount && v == std::floor(v)))
      refuse(place(n, name), text("is ", at->dump().substr(0, 40)), "a whole number, from 0 to 1e9");
    return static_cast<int64_t>(v);
  }

  void fill_numbers(SchemaNode& n, const Json& json) const {
    using Compare = NumberRules::Compare;
    for (const auto& [name, compare] : {std::pair("minimum", Compare::at_least),
                                        std::pair("exclusiveMinimum", Compare::above),
                                        std::pair("maximum", Compare::at_most),
                                        std::pair("exclusiveMaximum", Compare::below)})
      if (const auto value = decimal(n, json, name)) n.bounds.push_back({compare, *value});
    n.multiple_of = decimal(n, json, "multipleOf");
    if (n.multiple_of && (n.multiple_of->negative || n.multiple_of->is_zero()))
      refuse(place(n, "multipleOf"), text("is ", n.multiple_of->written()), "a number above 0");
  }

  // ---- strings
  void fill_strings(SchemaNode& n, const Json& json) const {
    n.min_length = count(n, json, "minLength", 0);
    n.max_length = count(n, json, "maxLength", -1);
    if (const Json* pattern = find(json, "pattern")) {
      if (!pattern->is_string()) refuse(place(n, "pattern"), "is no string", "a regular expression");
      n.pattern = pattern->get<std::string>();
    }
  }

  // ---- arrays and objects
  void fill_arrays(SchemaNode& n, const Json& json) {
    if (const Json* prefix = find(json, "prefixItems")) n.prefix_items = nodes_of(n, *prefix, "prefixItems");
    if (const Json* items = find(json, "items")) {
      if (items->is_array())
        refuse(place(n, "items"), "is a list of schemas, as in older drafts", "one schema", "prefixItems takes a list");
      n.items = node_of(*items, place(n, "items"));
    }
    n.min_items = count(n, json, "minItems", 0);
    n.max_items = count(n, json, "maxItems", -1);
  }

  void fill_objects(SchemaNode& n, const Json& json) {
    auto members = [&](const char* name, auto& into) {
      const Json* all = find(json, name);
      if (!all) return;
      if (!all->is_object()) refuse(place(n, name), "is no object", "an object whose members are schemas");
      for (const auto& [key, schema] : all->items())
        into.emplace_back(key, node_of(schema, text(place(n, name), "/", key)));
    };
    members("properties", n.properties);
    members("patternProperties", n.pattern_properties);
    if (const Json* others = find(json, "additionalProperties"))
      n.additional_properties = node_of(*others, place(n, "additionalProperties"));
    if (const Json* names = find(json, "propertyNames")) n.property_names = node_of(*names, place(n, "propertyNames"));
    if (const Json* required = find(json, "required")) {
      if (!required->is_array()) refuse(place(n, "required"), "is no list", "a list of names");
      for (const Json& name : *required) {
        if (!name.is_string()) refuse(place(n, "required"), "has what is no name", "a list of names");
        n.required.push_back(name.get<std::string>());
      }
    }
    n.min_properties = count(n, json, "minProperties", 0);
    n.max_properties = count(n, json, "maxProperties", -1);
  }

  // ---- combinations
  std::vector<NodeId> nodes_of(const SchemaNode& n, const Json& list, const char* name) {
    if (!list.is_array()) refuse(place(n, name), "is no list", "a list of schemas");
    std::vector<NodeId> out;
    for (size_t i = 0; i < list.size(); ++i) out.push_back(node_of(list[i], text(place(n, name), "/", i)));
    return out;
  }

  void fill_combinations(SchemaNode& n, const Json& json) {
    if (const Json* all = find(json, "allOf"))
      for (NodeId id : nodes_of(n, *all, "allOf")) n.all_of.push_back(id);
    if (const Json* any = find(json, "anyOf")) n.any_of.push_back(nodes_of(n, *any, "anyOf"));
    if (const Json* one = find(json, "oneOf")) n.one_of.push_back(nodes_of(n, *one, "oneOf"));
    if (const Json* negated = find(json, "not")) n.not_.push_back(node_of(*negated, place(n, "not")));
    if (const Json* condition = find(json, "if")) {
      n.if_ = node_of(*condition, place(n, "if"));
      if (const Json* then = find(json, "then")) n.then_ = node_of(*then, place(n, "then"));
      if (const Json* otherwise = find(json, "else")) n.else_ = node_of(*otherwise, place(n, "else"));
    }
    if (const Json* ref = find(json, "$ref")) {
      if (!ref->is_string()) refuse(place(n, "$ref"), "is no string", "a reference: #/$defs/name");
      n.all_of.push_back(referred(n, ref->get<std::string>()));
    }
  }

  NodeId referred(const SchemaNode& n, std::string ref) {
    const Json* own = root_.is_object() ? find(root_, "$id") : nullptr;
    if (own && own->is_string() && ref.starts_with(own->get<std::string>()))
      ref.erase(0, own->get<std::string>().size());
    if (!ref.empty() && ref[0] != '#')
      refuse(place(n, "$ref"),
             text("refers to ", ref),
             "a place in this document: #/$defs/name",
             "copy what it refers to into $defs");
    const std::string pointer = percent_decoded(std::string_view(ref).substr(ref.empty() ? 0 : 1));
    const Json* at = &root_;
    if (!pointer.empty() && pointer[0] != '/') {
      at = anchored(root_, pointer, 0);
      if (!at)
        refuse(place(n, "$ref"), text("refers to ", ref, ", which no $anchor names"), "an $anchor of the document");
      return node_of(*at, text(source_, ": ", ref));
    }
    const std::vector<std::string_view> parts = split(pointer, '/');
    for (size_t i = 1; i < parts.size() && at; ++i) {
      const std::string part = unescaped(parts[i]);
      if (at->is_array()) {
        size_t index = 0;
        const auto [end, err] = std::from_chars(part.data(), part.data() + part.size(), index);
        at = err == std::errc() && end == part.data() + part.size() && index < at->size() ? &(*at)[index] : nullptr;
      } else {
        at = at->is_object() ? find(*at, part) : nullptr;
      }
    }
    if (!at) refuse(place(n, "$ref"), text("refers to ", ref, ", which is not there"), "a place in this document");
    return node_of(*at, text(source_, ": ", ref));
  }
  const Json* anchored(const Json& json, const std::string& name, int depth) const {
    if (json.is_object()) {
      const Json* anchor = find(json, "$anchor");
      if (anchor && *anchor == name) return &json;
    }
    if (json.is_structured())
      for (const Json& member : json)
        if (const Json* found = anchored(member, name, depth + 1)) return found;
    return nullptr;
  }

  const Json& root_;
  std::string source_;
  Schema schema_;
  std::map<const Json*, NodeId> known_;
  std::vector<std::pair<NodeId, const Json*>> open_;
  std::set<std::string> ignored_;
};

}  // namespace

Schema Schema::read(std::string_view json, std::string_view source) {
  const Json tree = parse_json(json, source, DuplicateNames::refused, Decimals::nearest_but_integers);
  return Reader(tree, std::string(source)).all();
}

}  // namespace sator::json_schema
