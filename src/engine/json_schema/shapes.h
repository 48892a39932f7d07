// What values a schema allows, type by type: what an automaton can follow.
#pragma once

#include <map>
#include <memory>

#include "engine/json_schema/dfa.h"
#include "engine/json_schema/schema.h"

namespace sator::json_schema {

/// A subschema that a value must satisfy, or must not.
struct Literal {
  NodeId node = 0;
  bool negative = false;
  auto operator<=>(const Literal&) const = default;
};

/// Subschemas that a value must satisfy all at once; numbered.
using ValueId = int32_t;
inline constexpr ValueId kNoValue = -1;
/// Members of one object that a schema may ask for, besides those that it names.
inline constexpr int64_t kMostOtherNames = 1000;

/// One way to be valid: values of one type.
struct Shape {
  enum class Kind { word, number, string, array, object };
  Kind kind = Kind::word;
  std::string word;  ///< null, true, false
  int32_t dfa = -1;  ///< of a number's text, of a string's characters; of the names that `names` lacks

  /// Of strings: characters. Of arrays: items. Of objects: members. -1: any number.
  int64_t least = 0, most = -1;

  std::vector<ValueId> prefix;  ///< of arrays: the first items
  ValueId rest = kNoValue;      ///< and those behind them

  struct Name {
    std::string name;
    ValueId value = kNoValue;
    bool required = false;
  };
  std::vector<Name> names;  ///< of objects: members that the schema names, sorted
  std::vector<ValueId>
      other_values;  ///< and, by state of the automaton, what others must be; kNoValue: no name ends here
};

/// A schema taken apart: shapes by value. All values that are named exist, and every shape has a value: what cannot be completed is left out.
struct Shapes {
  std::vector<Shape> shapes;
  std::vector<std::vector<int32_t>> of_value;  ///< [ValueId] indices of shapes
  ValueId root = 0;
  std::vector<Dfa> dfas;
  /// Of dfas: written bytes to an accepting state; of an object's other names with their values.
  std::vector<std::vector<int64_t>> distances;
  /// Of dfas of other names: how many of these lead on from a state.
  std::vector<std::vector<int64_t>> name_counts;
  std::vector<int64_t> least_bytes;  ///< [ValueId] of the shortest document
  std::vector<int32_t> shortest;     ///< [ValueId] its shape
  static constexpr int64_t kNoBytes = INT64_MAX / 4;

  /// Errors: no value is valid; the opposite of a keyword is needed (for oneOf, not, if) and not done; more than 20,000 values, or 2,000 cases of one.
  static Shapes of(Schema schema);
};

}  // namespace sator::json_schema
