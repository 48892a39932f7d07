// The shortest documents of values.
#pragma once

#include "engine/json_schema/shapes.h"

namespace sator::json_schema {

/// A member that an object may have.
struct Member {
  std::string name;
  ValueId value = kNoValue;
  int64_t bytes = 0;  ///< of `,"name":value`
};

/// Names of an object that were given.
struct GivenNames {
  std::vector<bool> names;          // [Shape::names]
  std::vector<std::string> others;  // sorted
  bool operator==(const GivenNames&) const = default;
};

/// Of the members that are not required and were not given, those with the fewest bytes, in this order: `count` of them, or fewer where there are no more.
///   begun  what their names begin with
std::vector<Member> shortest_members(const Shapes& shapes, const Shape& object, const GivenNames& given, int64_t count,
                                     const std::string& begun = "");

/// Fills least_bytes, shortest, and the distances of objects' other names.
void find_shortest(Shapes& shapes);

}  // namespace sator::json_schema
