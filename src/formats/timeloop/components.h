#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "formats/timeloop/spec.h"
#include "formats/timeloop/yaml.h"

namespace sator::formats::timeloop {

/// What a component is; Timeloop tells it by what the name of its class contains.
enum class ComponentKind { storage, compute, network, other };
ComponentKind kind_of(std::string_view class_name);

using AttributeTable = std::map<std::string, Value, std::less<>>;

/// The attributes of a component: its own, then those of what contains it; a name in place of a number is looked up among
/// the file's variables.
class Attributes {
 public:
  Attributes(const Value& component, const AttributeTable& inherited, const AttributeTable& variables);

  std::optional<Value> find(std::string_view key) const;
  std::optional<Value> any_of(std::initializer_list<std::string_view> keys) const;
  int64_t integer(std::initializer_list<std::string_view> keys, int64_t otherwise, int64_t lowest = 1) const;
  std::optional<double> real(std::string_view key) const;
  const Value& component() const { return component_; }

 private:
  const Value& component_;
  Value own_;
  const AttributeTable& inherited_;
  const AttributeTable& variables_;
};

/// Where a component stands: so many instances, in a mesh if containers place it in one. 0: its attributes say.
struct Placement {
  int64_t instances = 0, mesh_x = 0, mesh_y = 0;
};

/// Attributes are free in Timeloop: plug-ins of Accelergy read their own. Errors: one of these is nearly the name of one
/// that counts here (`deth`), and that one is not there.
void no_misspelt_attributes(const Value& attributes);

/// a * b instances. Errors: more than any chip has.
int64_t times(const Value& at, int64_t a, int64_t b);
/// "PE[0..15]" is PE, 16 times.
std::pair<std::string, int64_t> name_and_count(const Value& name);

/// Errors, of both: each at its attribute; networks of the user's own. `wire_energy` says where wires are given energy.
StorageLevel read_storage(const Attributes& a, const Placement& placement, const Workload& workload,
                          std::string& wire_energy);
ComputeLevel read_compute(const Attributes& a, const Placement& placement);

}  // namespace sator::formats::timeloop
