// A JSON schema, as it is written: one node for each of its subschemas.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/json_schema/numbers.h"

namespace sator::json_schema {

/// What kinds of values there are. A number with a zero fraction is an integer, however it is written.
enum Type : uint8_t {
  kNull = 1,
  kFalse = 2,
  kTrue = 4,
  kInteger = 8,
  kFraction = 16,  ///< a number that is no integer
  kString = 32,
  kArray = 64,
  kObject = 128,
  kAllTypes = 255
};

using NodeId = int32_t;

/// What one subschema says. A keyword of one type says nothing of values of others.
struct SchemaNode {
  std::string where;  ///< "person.json: #/properties/a"
  uint8_t types = kAllTypes;
  std::optional<Decimal> number_value;      ///< of const and enum: this number
  std::optional<std::string> string_value;  ///< this string
  std::vector<NumberRules::Bound> bounds;
  std::optional<Decimal> multiple_of;
  int64_t min_length = 0, max_length = -1;
  std::optional<std::string> pattern;
  std::vector<NodeId> prefix_items;
  std::optional<NodeId> items;
  int64_t min_items = 0, max_items = -1;
  std::vector<std::pair<std::string, NodeId>> properties, pattern_properties;
  std::optional<NodeId> additional_properties, property_names;
  std::vector<std::string> required;
  int64_t min_properties = 0, max_properties = -1;
  std::vector<NodeId> all_of;  ///< `$ref` is one of them
  std::vector<std::vector<NodeId>> any_of, one_of;
  std::vector<NodeId> not_;
  std::optional<NodeId> if_, then_, else_;
};

struct Schema {
  std::vector<SchemaNode> nodes;
  NodeId root = 0;
  std::vector<std::string> ignored;  ///< keywords that are not known, or say nothing of validity: "format"

  /// Draft 2020-12, in the part that docs/generation.md lists.
  /// Errors: what is no schema, by its place; a keyword that restricts values and is not done; a reference that leads nowhere or to another
  /// document.
  ///   source  names the text in errors
  static Schema read(std::string_view json, std::string_view source);
};

}  // namespace sator::json_schema
