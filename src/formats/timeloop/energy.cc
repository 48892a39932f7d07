#include <algorithm>
#include <map>
#include <span>

#include "base/error.h"
#include "base/text.h"
#include "formats/timeloop/spec.h"
#include "formats/timeloop/yaml.h"

namespace sator::formats::timeloop {

namespace {

/// The energy of each action of one component; of one that stands more than once (arguments), the largest.
using Actions = std::map<std::string, double, std::less<>>;

/// Names under which ERTs give an action, the first that is there counts. Source: Accelergy's action names as Timeloop
/// looks them up.
using Names = std::span<const std::string_view>;
constexpr std::string_view kRead[] = {"random_read", "read"};
constexpr std::string_view kFill[] = {"random_fill", "random_write", "fill", "write"};
constexpr std::string_view kUpdate[] = {"random_update", "random_write", "update", "write"};
constexpr std::string_view kLeak[] = {"leak"};
constexpr std::string_view kCompute[] = {"mac_random", "mult_random", "mac", "mult", "compute"};
constexpr std::string_view kTransfer[] = {"transfer_random"};

std::optional<double> energy_of(const Actions& actions, Names names) {
  for (std::string_view name : names)
    if (auto found = actions.find(name); found != actions.end()) return found->second;
  return {};
}

void take(Actions& actions, const std::string& name, const Value& value) {
  double& energy = actions.try_emplace(name, 0.0).first->second;
  energy = std::max(energy, value.real(0));
}

/// v0.3, v0.4: a list of {name, energy}.
Actions listed(const Value& list) {
  Actions actions;
  for (const Value& row : list.items())
    take(actions, row.at("name", "the name of the action").string(), row.at("energy", "pJ of one action"));
  return actions;
}

/// v0.2: a map from the action to {energy} or to a list of these.
Actions mapped(const Value& map) {
  Actions actions;
  for (auto& [name, value] : map.entries()) {
    if (value.is_list()) {
      for (const Value& row : value.items()) take(actions, name, row.at("energy", "pJ of one action"));
    } else {
      take(actions, name, value.is_map() ? value.at("energy", "pJ of one action") : value);
    }
  }
  return actions;
}

/// "system.PE[0..15].RF[0..1]" is RF.
std::string component_name(std::string_view path) {
  if (size_t open = path.rfind('['); open != std::string_view::npos && path.ends_with(']')) path = path.substr(0, open);
  if (size_t dot = path.rfind('.'); dot != std::string_view::npos && path.find('[', dot) == std::string_view::npos)
    path = path.substr(dot + 1);
  return std::string(path);
}

void apply(const std::string& path, const Actions& actions, Architecture& architecture) {
  std::string name = component_name(path);
  if (name == "wire" || name == "Wire") {
    if (energy_of(actions, kTransfer).value_or(0) > 0) architecture.wire_energy = "the ERT gives wires energy";
    return;
  }
  if (architecture.compute.name == name)
    if (auto energy = energy_of(actions, kCompute)) architecture.compute.energy_pj = energy;
  for (StorageLevel& level : architecture.levels) {
    if (level.name != name || level.energy_from_architecture) continue;
    auto read = energy_of(actions, kRead), fill = energy_of(actions, kFill), update = energy_of(actions, kUpdate);
    if (read && fill && update) {
      level.energy = LevelEnergy{*read, *fill, *update, energy_of(actions, kLeak).value_or(0)};
    } else {
      level.no_energy = text("the ERT has no ", read ? "write" : "read", " of ", name);
    }
  }
}

}  // namespace

void parse_energy(std::string_view content, Architecture& architecture, const std::string& file) {
  Value root = document(content, file, {"ERT"});
  for (StorageLevel& level : architecture.levels)
    if (!level.energy) level.no_energy = text("the ERT has no component ", level.name);
  Value tables = root.is_list() ? root : root.at("tables", "one entry per component");
  if (tables.is_map()) {
    for (auto& [path, actions] : tables.entries()) apply(path, mapped(actions), architecture);
    return;
  }
  for (const Value& table : tables.items())
    apply(table.at("name", "the component").string(), listed(table.at("actions", "its actions")), architecture);
}

}  // namespace sator::formats::timeloop
