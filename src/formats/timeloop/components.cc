#include "formats/timeloop/components.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "formats/timeloop/known_keys.h"

namespace sator::formats::timeloop {

namespace {

struct ClassWord {
  std::string_view word;
  ComponentKind kind;
};
constexpr ClassWord kClassWords[] = {
    {"DRAM", ComponentKind::storage},
    {"SRAM", ComponentKind::storage},
    {"regfile", ComponentKind::storage},
    {"smartbuffer", ComponentKind::storage},
    {"storage", ComponentKind::storage},
    {"mac", ComponentKind::compute},
    {"compute", ComponentKind::compute},
    {"XY_NoC", ComponentKind::network},
    {"Legacy", ComponentKind::network},
    {"ReductionTree", ComponentKind::network},
    {"SimpleMulticast", ComponentKind::network},
};

/// Fills the mesh from what is given of instances, meshX and meshY.
void set_mesh(const Attributes& a, const std::string& name, const Placement& p, int64_t& instances, int64_t& x,
              int64_t& y) {
  bool by_containers = p.mesh_x != 0 && !a.find("meshX") && !a.find("meshY") && !a.find("instances");
  if (by_containers) {
    instances = p.instances;
    x = p.mesh_x;
    y = p.mesh_y;
    return;
  }
  int64_t count = p.instances;
  instances = a.integer({"instances"}, count);
  auto given_x = a.find("meshX"), given_y = a.find("meshY");
  x = given_x ? given_x->integer(1) : 0;
  y = given_y ? given_y->integer(1) : 0;
  auto divide = [&](int64_t by) {
    if (instances % by != 0)
      a.component().fail_here(text(name, " has ", instances, " instances and a mesh side of ", by),
                              "a mesh side that divides the instances",
                              "check meshX, meshY and the instances");
    return instances / by;
  };
  if (!x && !y) {
    x = instances;
    y = 1;
  } else if (!y) {
    y = divide(x);
  } else if (!x) {
    x = divide(y);
  } else if (times(a.component(), x, y) != instances) {
    a.component().fail_here(text(name, " has ", instances, " instances, but its mesh is ", x, " x ", y),
                            "meshX * meshY = instances",
                            "check meshX, meshY and the instances");
  }
}

void refuse_network(const Attributes& a, std::string_view key) {
  if (auto v = a.find(key))
    v->fail_here(text(key, " names a network of its own"),
                 "the networks that Timeloop infers between levels",
                 text("remove ", key));
}

void read_width(const Attributes& a, StorageLevel& level) {
  level.word_bits = a.integer({"word_bits", "word_width", "datawidth"}, 16);
  auto block = a.any_of({"block_size", "n_words"}), cluster = a.find("cluster_size");
  level.block_size = block ? block->integer(1) : 1;
  level.cluster_size = cluster ? cluster->integer(1) : 1;
  auto given = a.any_of({"width", "memory_width", "data_storage_width"});
  if (given) {
    int64_t width = given->integer(1), vector_bits = 0;
    if (__builtin_mul_overflow(level.word_bits, level.block_size, &vector_bits) || width % vector_bits != 0)
      given->fail_here(text("the width of ",
                            level.name,
                            " is ",
                            width,
                            " bits, a vector of ",
                            level.block_size,
                            " words of ",
                            level.word_bits,
                            " bits does not divide it"),
                       "a width that is a multiple of block_size * datawidth",
                       "check width, datawidth and block_size");
    if (block && cluster) {
      if (vector_bits > width / level.cluster_size || vector_bits * level.cluster_size != width)
        given->fail_here(text("the width of ", level.name, " is ", width, " bits"),
                         "width = block_size * datawidth * cluster_size",
                         "leave out one of them");
    } else if (block) {
      level.cluster_size = width / vector_bits;
    } else {
      level.block_size = std::max<int64_t>(1, width / level.cluster_size / level.word_bits);
    }
  }
  if (level.instances % level.cluster_size != 0)
    a.component().fail_here(
        text(level.name, " has ", level.instances, " instances in clusters of ", level.cluster_size),
        "clusters that divide the instances",
        "check cluster_size");
}

void read_size(const Attributes& a, StorageLevel& level) {
  auto entries = a.find("entries"), depth = a.any_of({"depth", "memory_depth", "data_storage_depth"}),
       kilobytes = a.find("sizeKB");
  if ((entries || depth) && kilobytes)
    kilobytes->fail_here(text("the size of ", level.name, " is given twice"), "entries, depth or sizeKB", "give one");
  int64_t size = 0;
  bool overflow = false;
  if (entries) {
    size = entries->integer(0);
  } else if (depth) {
    overflow = __builtin_mul_overflow(depth->integer(0), level.block_size, &size);
  } else if (kilobytes) {
    overflow = __builtin_mul_overflow(kilobytes->integer(0), 8192, &size);
    size /= level.word_bits;
  } else {
    return;
  }
  if (overflow)
    a.component().fail_here(text("the size of ", level.name, " needs more than 63 bits"),
                            "a size below 2^63 words",
                            "leave out the size of a level without limit");
  level.size_words = size;
}

void read_bandwidth(const Attributes& a, const Workload& workload, StorageLevel& level) {
  auto positive = [&](std::string_view key) -> std::optional<double> {
    auto value = a.real(key);
    if (value && *value <= 0)
      a.find(key)->fail_here(
          text(key, " of ", level.name, " is 0"), "words per cycle > 0", "leave it out for no limit");
    return value;
  };
  if (auto both = positive("bandwidth")) level.read_bandwidth = level.write_bandwidth = *both / 2;
  if (auto v = positive("read_bandwidth")) level.read_bandwidth = v;
  if (auto v = positive("write_bandwidth")) level.write_bandwidth = v;
  level.shared_bandwidth = positive("shared_bandwidth");
  level.bandwidth_scale.assign(workload.spaces.size(), 1.0);
  auto scales = a.find("per_dataspace_bandwidth_consumption_scale");
  if (!scales) return;
  for (auto& [name, value] : scales->entries()) {
    bool found = false;
    for (size_t i = 0; i < workload.spaces.size(); ++i)
      if (workload.spaces[i].name == name) level.bandwidth_scale[i] = value.real(0), found = true;
    if (!found)
      value.fail_here(
          text("there is no data space ", string_literal(name)), "a data space of the problem", "rename it");
  }
}

void read_constraints(const Value& component, StorageLevel& level) {
  auto constraints = component.find("constraints");
  if (!constraints || !constraints->is_map()) return;
  auto spaces = constraints->any_of({"dataspace", "dataspaces"});
  if (!spaces || !spaces->is_map()) return;
  if (auto bypass = spaces->find("bypass")) level.bypassed = bypass->names();
}

}  // namespace

ComponentKind kind_of(std::string_view class_name) {
  for (const ClassWord& row : kClassWords)
    if (class_name.find(row.word) != std::string_view::npos) return row.kind;
  return ComponentKind::other;
}

namespace {

Value own_attributes(const Value& component) {
  std::optional<Value> own = component.find("attributes");
  return own && !own->is_null() ? *own : component;
}

}  // namespace

Attributes::Attributes(const Value& component, const AttributeTable& inherited, const AttributeTable& variables)
    : component_(component), own_(own_attributes(component)), inherited_(inherited), variables_(variables) {}

std::optional<Value> Attributes::find(std::string_view key) const {
  std::optional<Value> value = own_.find(key);
  if (!value || value->is_null()) {
    auto above = inherited_.find(key);
    if (above == inherited_.end() || above->second.is_null()) return {};
    value.emplace(above->second);
  }
  if (!value->is_scalar()) return value;
  auto named = variables_.find(value->string());
  return named == variables_.end() ? value : std::optional<Value>(named->second);
}

std::optional<Value> Attributes::any_of(std::initializer_list<std::string_view> keys) const {
  for (std::string_view key : keys)
    if (auto value = find(key)) return value;
  return {};
}

int64_t Attributes::integer(std::initializer_list<std::string_view> keys, int64_t otherwise, int64_t lowest) const {
  auto value = any_of(keys);
  return value ? value->integer(lowest) : otherwise;
}

std::optional<double> Attributes::real(std::string_view key) const {
  auto value = find(key);
  if (!value) return {};
  return value->real(0);
}

void no_misspelt_attributes(const Value& attributes) {
  if (!attributes.is_map()) return;
  static const std::vector<std::string> kCounting = {"instances",
                                                     "meshX",
                                                     "meshY",
                                                     "word_bits",
                                                     "word_width",
                                                     "datawidth",
                                                     "block_size",
                                                     "n_words",
                                                     "cluster_size",
                                                     "width",
                                                     "memory_width",
                                                     "data_storage_width",
                                                     "entries",
                                                     "depth",
                                                     "memory_depth",
                                                     "data_storage_depth",
                                                     "sizeKB",
                                                     "bandwidth",
                                                     "read_bandwidth",
                                                     "write_bandwidth",
                                                     "shared_bandwidth",
                                                     "per_dataspace_bandwidth_consumption_scale",
                                                     "multiple_buffering",
                                                     "min_utilization",
                                                     "power_gated_at",
                                                     "vector_access_energy",
                                                     "addr_gen_energy",
                                                     "network_fill_latency",
                                                     "network_type",
                                                     "network_drain_latency",
                                                     "allow_overbooking",
                                                     "energy"};
  no_misspelt(attributes, kCounting);
}

int64_t times(const Value& at, int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product) || product > (int64_t{1} << 48))
    at.fail_here(text("there are more than 2^48 instances here"), "at most 2^48 instances", "check the counts");
  return product;
}

std::pair<std::string, int64_t> name_and_count(const Value& v) {
  std::string name = v.string();
  size_t open = name.find('[');
  if (open == std::string::npos) return {name, 1};
  size_t dots = name.find("..", open), close = name.find(']', open);
  std::string_view s = name;
  std::optional<int64_t> first, last;
  if (dots != std::string::npos && close == name.size() - 1 && dots < close) {
    first = whole_number(s.substr(open + 1, dots - open - 1));
    last = whole_number(s.substr(dots + 2, close - dots - 2));
  }
  if (!first || !last || *last < *first || *last - *first >= (int64_t{1} << 48))
    v.fail_here(text(string_literal(name), " has no range of instances"), "name[first..last]", "write it as PE[0..15]");
  return {name.substr(0, open), *last - *first + 1};
}

StorageLevel read_storage(const Attributes& a, const Placement& placement, const Workload& workload,
                          std::string& wire_energy) {
  const Value& component = a.component();
  StorageLevel level;
  level.name = name_and_count(component.at("name", "the name of the level")).first;
  Placement place = placement;
  if (place.instances == 0) {
    bool meshed = a.find("meshX") && a.find("meshY");
    if (!meshed && !a.find("instances"))
      component.fail_here(
          text(level.name, " has no count"), "the key instances, or meshX and meshY", "add `instances: ...`");
    place.instances = meshed ? times(component, a.integer({"meshX"}, 1), a.integer({"meshY"}, 1)) : 1;
  }
  set_mesh(a, level.name, place, level.instances, level.mesh_x, level.mesh_y);
  read_width(a, level);
  read_size(a, level);
  read_bandwidth(a, workload, level);
  level.multiple_buffering = a.real("multiple_buffering").value_or(1);
  if (level.multiple_buffering < 1)
    component.fail_here(text("multiple_buffering of ", level.name, " is ", level.multiple_buffering),
                        "a number >= 1",
                        "give 1 for a single buffer");
  level.min_utilization = a.real("min_utilization").value_or(0);
  level.fill_latency_cycles = a.integer({"network_fill_latency"}, 0, 0);
  level.drain_latency_cycles = a.integer({"network_drain_latency"}, 0, 0);
  if (auto gate = a.find("power_gated_at")) level.power_gated_at = gate->string();
  if (level.power_gated_at == level.name) level.power_gated_at.clear();
  if (auto v = a.find("addr_gen_energy"))
    if (std::string s = v->string(); s.empty() || s[0] != '-') level.address_energy_pj = v->real(0);
  if (auto e = a.real("vector_access_energy")) {
    level.energy = LevelEnergy{*e, *e, *e, 0};
    level.energy_from_architecture = true;
  }
  level.no_energy = "there is no ERT";
  for (std::string_view key : {"network_read", "network_fill", "network_drain", "network_update"})
    refuse_network(a, key);
  if (auto type = a.find("network_type"); type && type->string() == "M:N")
    type->fail_here("the network spreads tiles over all instances (M:N)", "1:1 or 1:N", "use 1:N");
  for (std::string_view key : {"wire_energy", "energy_per_hop", "router_energy", "energy_per_ingress"})
    if (auto e = a.real(key); e && *e > 0) wire_energy = text(level.name, " gives ", key);
  if (auto overbook = a.find("allow_overbooking"); overbook && overbook->boolean())
    overbook->fail_here(text(level.name, " may hold more than its size"),
                        "allow_overbooking: false",
                        "give the level the size that its tiles need");
  read_constraints(component, level);
  return level;
}

ComputeLevel read_compute(const Attributes& a, const Placement& placement) {
  ComputeLevel out;
  auto name = a.component().find("name");
  out.name = name ? name_and_count(*name).first : "arithmetic";
  if (placement.instances == 0 && !a.find("instances"))
    a.component().fail_here("the arithmetic units have no count", "the key instances", "add `instances: ...`");
  set_mesh(a, out.name, placement, out.instances, out.mesh_x, out.mesh_y);
  out.energy_pj = a.real("energy");
  for (std::string_view key : {"network_operand", "network_result"}) refuse_network(a, key);
  return out;
}

}  // namespace sator::formats::timeloop
