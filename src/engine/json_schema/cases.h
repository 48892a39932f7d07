// The cases in which a value satisfies subschemas: anyOf, oneOf, not and if made plain.
#pragma once

#include <functional>
#include <map>
#include <set>

#include "engine/json_schema/shapes.h"

namespace sator::json_schema {

/// Demands on a value that hold all at once, none of which leaves a choice.
struct Case {
  uint8_t types = kAllTypes;
  NumberRules numbers;
  // strings
  int64_t min_length = 0, max_length = -1;
  std::vector<std::pair<std::string, bool>> patterns, texts;  ///< and whether the opposite is meant
  // arrays: what the item at an index, and those from an index on, must be
  std::vector<std::pair<size_t, Literal>> items_at, items_from;
  int64_t min_items = 0, max_items = -1;
  // objects: nodes whose properties, patternProperties and additionalProperties hold; members beside them
  std::vector<NodeId> object_rules;
  std::map<std::string, std::vector<Literal>> members;
  std::set<std::string> required;
  std::vector<Literal> names;
  int64_t min_properties = 0, max_properties = -1;
};

/// Splits demands into cases.
class CaseSplitter {
 public:
  /// `are_disjoint` says that no value satisfies both; it may say false of such, which makes cases more complicated and not wrong.
  CaseSplitter(const std::vector<SchemaNode>& nodes, std::function<bool(Literal, Literal)> are_disjoint)
      : nodes_(nodes), are_disjoint_(std::move(are_disjoint)) {}

  /// Errors: as of Shapes::of.
  std::vector<Case> cases_of(const std::vector<Literal>& demands) const;
  /// Where the schema says so, for errors.
  const std::string& place_of(const std::vector<Literal>& demands) const {
    return nodes_[demands.empty() ? 0 : static_cast<size_t>(demands[0].node)].where;
  }

 private:
  struct Branch;
  /// One of several ways on: literals, and what changes the case.
  struct Way {
    std::vector<Literal> literals;
    std::function<void(Case&)> change;
  };
  using Choice = std::vector<Way>;

  void solve(Branch branch, const std::string& where, std::vector<Case>& out) const;
  void add_positive(Branch& branch, const SchemaNode& n, NodeId id) const;
  Choice opposite_of(const SchemaNode& n, NodeId id) const;
  void add_opposites_of_arrays(Choice& ways, const SchemaNode& n) const;
  void add_opposites_of_objects(Choice& ways, const SchemaNode& n) const;
  void add_opposites_of_combinations(Choice& ways, const SchemaNode& n) const;
  Choice exactly_one(const std::vector<NodeId>& of) const;
  bool is_true(NodeId id) const;
  bool is_false(NodeId id) const { return nodes_[static_cast<size_t>(id)].types == 0; }

  const std::vector<SchemaNode>& nodes_;
  std::function<bool(Literal, Literal)> are_disjoint_;
};

}  // namespace sator::json_schema
