#include "engine/json_schema/cases.h"

#include <algorithm>

#include "base/error.h"

namespace sator::json_schema {

using Compare = NumberRules::Compare;

struct CaseSplitter::Branch {
  Case demands;
  std::vector<Literal> open;
  std::vector<Choice> choices;
  std::set<Literal> seen;
};

namespace {

constexpr size_t kMostCases = 2000;
constexpr uint8_t kNumber = kInteger | kFraction;

Compare opposite(Compare c) {
  switch (c) {
    case Compare::at_least: return Compare::below;
    case Compare::above: return Compare::at_most;
    case Compare::at_most: return Compare::above;
    case Compare::below: return Compare::at_least;
    case Compare::other_than: return Compare::equal;
    case Compare::equal: return Compare::other_than;
  }
  internal_error("a comparison of no kind");
}

void raise(int64_t& least, int64_t to) { least = std::max(least, to); }
void lower(int64_t& most, int64_t to) {
  if (to >= 0 && (most < 0 || to < most)) most = to;
}

[[noreturn]] void refuse_opposite(const SchemaNode& n, const char* keyword) {
  fail({.what = text(n.where, ": what is not valid by its ", keyword, " is asked for, which is not done"),
        .needs = "alternatives of oneOf, not and if that differ by a type, a value, or a required property",
        .hint = "give the alternatives of oneOf a property with a const of its own, or write anyOf"});
}

}  // namespace

bool CaseSplitter::is_true(NodeId id) const {
  SchemaNode plain;
  const SchemaNode& n = nodes_[static_cast<size_t>(id)];
  return n.types == kAllTypes && !n.number_value && !n.string_value && n.bounds.empty() && !n.multiple_of &&
         n.min_length == 0 && n.max_length < 0 && !n.pattern && n.prefix_items.empty() && !n.items &&
         n.min_items == 0 && n.max_items < 0 && n.properties.empty() && n.pattern_properties.empty() &&
         !n.additional_properties && !n.property_names && n.required.empty() && n.min_properties == 0 &&
         n.max_properties < 0 && n.all_of.empty() && n.any_of.empty() && n.one_of.empty() && n.not_.empty() && !n.if_;
}

std::vector<Case> CaseSplitter::cases_of(const std::vector<Literal>& demands) const {
  std::vector<Case> out;
  solve({.open = demands}, place_of(demands), out);
  return out;
}

void CaseSplitter::solve(Branch b, const std::string& where, std::vector<Case>& out) const {
  while (!b.open.empty()) {
    const Literal l = b.open.back();
    b.open.pop_back();
    if (b.seen.contains({l.node, !l.negative})) return;
    if (!b.seen.insert(l).second) continue;
    const SchemaNode& n = nodes_[static_cast<size_t>(l.node)];
    if (l.negative)
      b.choices.push_back(opposite_of(n, l.node));
    else
      add_positive(b, n, l.node);
    if (b.demands.types == 0) return;
  }
  if (b.choices.empty()) {
    if (out.size() >= kMostCases)
      fail({.what = text(where, ": the alternatives make more than ", kMostCases, " cases of one value"),
            .needs = "fewer alternatives of anyOf, oneOf, enum, not and if: of those that hold at once they multiply",
            .hint = "write one list of alternatives instead of several; of many texts, a pattern instead of an enum"});
    out.push_back(std::move(b.demands));
    return;
  }
  // The choice with the fewest ways first: most of them end soon.
  const auto fewest = std::ranges::min_element(b.choices, {}, [](const Choice& c) { return c.size(); });
  const Choice choice = std::move(*fewest);
  b.choices.erase(fewest);
  for (const Way& way : choice) {
    Branch next = b;
    if (way.change) way.change(next.demands);
    if (next.demands.types == 0) continue;
    next.open.insert(next.open.end(), way.literals.begin(), way.literals.end());
    solve(std::move(next), where, out);
  }
}

void CaseSplitter::add_positive(Branch& b, const SchemaNode& n, NodeId id) const {
  Case& c = b.demands;
  c.types &= n.types;
  if (n.number_value) c.numbers.bounds.push_back({Compare::equal, *n.number_value});
  if (n.string_value) c.texts.emplace_back(*n.string_value, false);
  c.numbers.bounds.insert(c.numbers.bounds.end(), n.bounds.begin(), n.bounds.end());
  if (n.multiple_of) c.numbers.multiple_of.push_back(*n.multiple_of);
  raise(c.min_length, n.min_length), lower(c.max_length, n.max_length);
  if (n.pattern) c.patterns.emplace_back(*n.pattern, false);
  for (size_t i = 0; i < n.prefix_items.size(); ++i) c.items_at.push_back({i, {n.prefix_items[i], false}});
  if (n.items) c.items_from.push_back({n.prefix_items.size(), {*n.items, false}});
  raise(c.min_items, n.min_items), lower(c.max_items, n.max_items);
  if (!n.properties.empty() || !n.pattern_properties.empty() || n.additional_properties) c.object_rules.push_back(id);
  c.required.insert(n.required.begin(), n.required.end());
  if (n.property_names) c.names.push_back({*n.property_names, false});
  raise(c.min_properties, n.min_properties), lower(c.max_properties, n.max_properties);
  for (NodeId other : n.all_of) b.open.push_back({other, false});
  for (NodeId other : n.not_) b.open.push_back({other, true});
  for (const std::vector<NodeId>& any : n.any_of) {
    Choice choice;
    for (NodeId other : any) choice.push_back({.literals = {{other, false}}});
    b.choices.push_back(std::move(choice));
  }
  for (const std::vector<NodeId>& one : n.one_of) b.choices.push_back(exactly_one(one));
  if (n.if_ && (n.then_ || n.else_)) {
    Choice choice = {{.literals = {{*n.if_, false}}}, {.literals = {{*n.if_, true}}}};
    if (n.then_) choice[0].literals.push_back({*n.then_, false});
    if (n.else_) choice[1].literals.push_back({*n.else_, false});
    b.choices.push_back(std::move(choice));
  }
}

CaseSplitter::Choice CaseSplitter::exactly_one(const std::vector<NodeId>& of) const {
  Choice choice;
  for (size_t i = 0; i < of.size(); ++i) {
    Way way{.literals = {{of[i], false}}};
    for (size_t j = 0; j < of.size(); ++j)
      if (j != i && !(of[i] != of[j] && are_disjoint_({of[i], false}, {of[j], false})))
        way.literals.push_back({of[j], true});
    choice.push_back(std::move(way));
  }
  return choice;
}

CaseSplitter::Choice CaseSplitter::opposite_of(const SchemaNode& n, NodeId) const {
  Choice ways;
  auto way = [&](uint8_t types, std::function<void(Case&)> change) {
    ways.push_back({.change = [types, change](Case& c) {
      c.types &= types;
      if (c.types != 0) change(c);
    }});
  };
  if (n.types != kAllTypes) way(static_cast<uint8_t>(~n.types), [](Case&) {});
  if (n.number_value)
    way(kNumber, [v = *n.number_value](Case& c) { c.numbers.bounds.push_back({Compare::other_than, v}); });
  if (n.string_value) way(kString, [v = *n.string_value](Case& c) { c.texts.emplace_back(v, true); });
  for (const NumberRules::Bound& bound : n.bounds)
    way(kNumber, [bound](Case& c) { c.numbers.bounds.push_back({opposite(bound.compare), bound.value}); });
  if (n.multiple_of) way(kNumber, [v = *n.multiple_of](Case& c) { c.numbers.not_multiple_of.push_back(v); });
  if (n.min_length > 0) way(kString, [v = n.min_length](Case& c) { lower(c.max_length, v - 1); });
  if (n.max_length >= 0) way(kString, [v = n.max_length](Case& c) { raise(c.min_length, v + 1); });
  if (n.pattern) way(kString, [p = *n.pattern](Case& c) { c.patterns.emplace_back(p, true); });
  add_opposites_of_arrays(ways, n);
  add_opposites_of_objects(ways, n);
  add_opposites_of_combinations(ways, n);
  return ways;
}

void CaseSplitter::add_opposites_of_arrays(Choice& ways, const SchemaNode& n) const {
  auto way = [&](std::function<void(Case&)> change) {
    ways.push_back({.change = [change](Case& c) {
      c.types &= kArray;
      if (c.types != 0) change(c);
    }});
  };
  for (size_t i = 0; i < n.prefix_items.size(); ++i)
    way([i, id = n.prefix_items[i]](Case& c) {
      raise(c.min_items, static_cast<int64_t>(i) + 1);
      c.items_at.push_back({i, {id, true}});
    });
  if (n.items && is_false(*n.items))
    way([more = std::ssize(n.prefix_items) + 1](Case& c) { raise(c.min_items, more); });
  else if (n.items && !is_true(*n.items))
    way([&n](Case&) { refuse_opposite(n, "items"); });
  if (n.min_items > 0) way([v = n.min_items](Case& c) { lower(c.max_items, v - 1); });
  if (n.max_items >= 0) way([v = n.max_items](Case& c) { raise(c.min_items, v + 1); });
}

void CaseSplitter::add_opposites_of_objects(Choice& ways, const SchemaNode& n) const {
  auto way = [&](std::function<void(Case&)> change) {
    ways.push_back({.change = [change](Case& c) {
      c.types &= kObject;
      if (c.types != 0) change(c);
    }});
  };
  for (const auto& [name, id] : n.properties)
    if (!is_true(id))
      way([name, id](Case& c) {
        c.required.insert(name);
        c.members[name].push_back({id, true});
      });
  // Without the keyword that follows, names beside the properties could be anything.
  for (const auto& [pattern, id] : n.pattern_properties)
    if (!is_true(id)) way([&n](Case&) { refuse_opposite(n, "patternProperties"); });
  if (n.additional_properties && !is_true(*n.additional_properties))
    way([&n](Case&) { refuse_opposite(n, "additionalProperties"); });
  if (n.property_names && !is_true(*n.property_names)) way([&n](Case&) { refuse_opposite(n, "propertyNames"); });
  const NodeId never = static_cast<NodeId>(nodes_.size()) - 1;  // Shapes::of puts it there
  for (const std::string& name : n.required) way([name, never](Case& c) { c.members[name].push_back({never, false}); });
  if (n.min_properties > 0) way([v = n.min_properties](Case& c) { lower(c.max_properties, v - 1); });
  if (n.max_properties >= 0) way([v = n.max_properties](Case& c) { raise(c.min_properties, v + 1); });
}

void CaseSplitter::add_opposites_of_combinations(Choice& ways, const SchemaNode& n) const {
  auto way = [&](std::vector<Literal> literals) { ways.push_back({.literals = std::move(literals)}); };
  auto none_of = [](const std::vector<NodeId>& of) {
    std::vector<Literal> all;
    for (NodeId id : of) all.push_back({id, true});
    return all;
  };
  for (NodeId id : n.all_of) way({{id, true}});
  for (const std::vector<NodeId>& any : n.any_of) way(none_of(any));
  for (const std::vector<NodeId>& one : n.one_of) {
    way(none_of(one));
    for (size_t i = 0; i < one.size(); ++i)
      for (size_t j = i + 1; j < one.size(); ++j) way({{one[i], false}, {one[j], false}});
  }
  for (NodeId id : n.not_) way({{id, false}});
  if (n.if_ && n.then_) way({{*n.if_, false}, {*n.then_, true}});
  if (n.if_ && n.else_) way({{*n.if_, true}, {*n.else_, true}});
}

}  // namespace sator::json_schema
