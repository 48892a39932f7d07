#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "dataflow/formats/timeloop/spec.h"
#include "dataflow/formats/timeloop/yaml.h"

namespace sator::dataflow::timeloop {

namespace {

constexpr int kDeepest = 64;  // of nested nodes

enum class Kind { storage, compute, network, other };

/// Classes are told apart by what their names contain.
struct ClassWord {
  std::string_view word;
  Kind kind;
};
constexpr ClassWord kClassWords[] = {
    {"DRAM", Kind::storage},
    {"SRAM", Kind::storage},
    {"regfile", Kind::storage},
    {"smartbuffer", Kind::storage},
    {"storage", Kind::storage},
    {"mac", Kind::compute},
    {"compute", Kind::compute},
    {"XY_NoC", Kind::network},
    {"Legacy", Kind::network},
    {"ReductionTree", Kind::network},
    {"SimpleMulticast", Kind::network},
};

Kind kind_of(std::string_view class_name) {
  for (const ClassWord& row : kClassWords)
    if (class_name.find(row.word) != std::string_view::npos) return row.kind;
  return Kind::other;
}

using Table = std::map<std::string, Value, std::less<>>;

/// The attributes of a component: its own, then those of what contains it; a name in place of a number is looked up among
/// the attributes and the file's variables.
class Attributes {
 public:
  Attributes(const Value& component, const Table& inherited, const Table& variables)
      : component_(component), inherited_(inherited), variables_(variables) {
    std::optional<Value> own = component.find("attributes");
    own_ = own && !own->is_null() ? *own : component;
  }

  std::optional<Value> find(std::string_view key) const {
    std::optional<Value> value = own_->find(key);
    if (!value || value->is_null()) {
      auto above = inherited_.find(key);
      if (above == inherited_.end() || above->second.is_null()) return {};
      value = above->second;
    }
    if (!value->is_scalar()) return value;
    auto named = variables_.find(value->string());
    return named == variables_.end() ? value : std::optional<Value>(named->second);
  }
  std::optional<Value> any_of(std::initializer_list<std::string_view> keys) const {
    for (std::string_view key : keys)
      if (auto value = find(key)) return value;
    return {};
  }
  int64_t integer(std::initializer_list<std::string_view> keys, int64_t otherwise, int64_t lowest = 1) const {
    auto value = any_of(keys);
    return value ? value->integer(lowest) : otherwise;
  }
  std::optional<double> real(std::string_view key) const {
    auto value = find(key);
    if (!value) return {};
    return value->real(0);
  }
  const Value& component() const { return component_; }

 private:
  const Value& component_;
  std::optional<Value> own_;
  const Table& inherited_;
  const Table& variables_;
};

int64_t times(const Value& at, int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product) || product > (int64_t{1} << 48))
    at.fail_here(text("there are more than 2^48 instances here"), "at most 2^48 instances", "check the counts");
  return product;
}

/// "PE[0..15]" is PE, 16 times.
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
    v.fail_here(text(quoted(name), " has no range of instances"), "name[first..last]", "write it as PE[0..15]");
  return {name.substr(0, open), *last - *first + 1};
}

/// Fills the mesh from what is given of instances, meshX and meshY.
void set_mesh(const Attributes& a, const std::string& name, int64_t count, int64_t& instances, int64_t& x, int64_t& y) {
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

class Reader {
 public:
  Reader(const Value& root, const Workload& workload) : root_(root), workload_(workload) {
    if (auto table = root.find("variables"); table && table->is_map())
      for (auto& [key, value] : table->entries()) variables_.emplace(key, value);
  }

  Architecture run() {
    if (auto nodes = root_.find("nodes")) {
      branch(*nodes, false, 0);
    } else if (root_.find("subtree")) {
      tree(root_, 1, 0);
    } else if (root_.find("storage")) {
      chain();
    } else {
      root_.fail_here("the architecture has neither nodes nor subtree nor storage",
                      "nodes (v0.4), subtree (v0.2, v0.3) or storage and arithmetic",
                      "give Timeloop's architecture file");
    }
    if (!has_compute_)
      root_.fail_here("the architecture has no arithmetic units",
                      "one component of a class such as compute, mac, intmac or fpmac",
                      "add the component that computes");
    if (out_.levels.empty())
      root_.fail_here("the architecture has no memory",
                      "a component of a class such as DRAM, SRAM, regfile or storage",
                      "add the levels of memory");
    if (out_.levels.size() > kMaxLevels)
      root_.fail_here(text("the architecture has ", out_.levels.size(), " levels"),
                      text("at most ", kMaxLevels, " levels"),
                      "leave out levels that hold nothing");
    if (!innermost_first_) std::reverse(out_.levels.begin(), out_.levels.end());
    check_names();
    check_fanouts();
    return std::move(out_);
  }

 private:
  const Value& root_;
  const Workload& workload_;
  Table variables_;
  Table inherited_;
  int64_t mesh_x_ = 1, mesh_y_ = 1;
  Architecture out_;
  bool has_compute_ = false, innermost_first_ = false;

  void too_deep(const Value& at, int depth) const {
    if (depth > kDeepest)
      at.fail_here("nodes are nested too deeply", text("at most ", kDeepest, " deep"), "flatten them");
  }

  void inherit(const Value& node) {
    if (auto own = node.find("attributes"); own && own->is_map())
      for (auto& [key, value] : own->entries()) inherited_.insert_or_assign(key, value);
  }

  static std::string class_of(const Value& component) {
    auto found = component.find("class");
    return found && !found->is_null() ? found->string() : "";
  }

  static bool enabled(const Value& node) {
    auto flag = node.find("enabled");
    return !flag || flag->is_null() || flag->boolean();
  }

  // v0.1: two flat parts, the innermost storage first.
  void chain() {
    innermost_first_ = true;
    Value arithmetic = root_.at("arithmetic", "the arithmetic units");
    compute(arithmetic, 0);
    for (const Value& level : root_.at("storage", "the levels of memory").items()) storage(level, 0);
  }

  // v0.2, v0.3, and what Timeloop's front end writes: components of a node are `local`, inner ones are in its subtree.
  // Attributes of nodes are not those of their components.
  void tree(const Value& node, int64_t count, int depth) {
    too_deep(node, depth);
    Value list = node.at("subtree", "the one node below");
    std::vector<Value> below = list.items();
    if (below.size() != 1)
      list.fail_here(text("a subtree has ", below.size(), " nodes"), "one node", "write the levels as one chain");
    const Value& inner = below[0];
    if (auto name = inner.find("name")) count = times(inner, count, name_and_count(*name).second);
    if (auto local = inner.find("local"); local && !local->is_null())
      for (const Value& component : local->items()) {
        if (!enabled(component)) continue;
        auto [name, copies] = name_and_count(component.at("name", "the name of the component"));
        add(component, times(component, count, copies));
      }
    if (auto rest = inner.find("subtree"); rest && !rest->is_null()) tree(inner, count, depth + 1);
  }

  // v0.4: a list of nodes from the outermost inwards; containers with a spatial fan-out become a level that holds nothing.
  void branch(const Value& nodes, bool parallel, int depth) {
    too_deep(nodes, depth);
    for (const Value& node : nodes.items()) {
      if (!node.is_map()) node.fail_here("a node is no map", "a node with a name", "write it as a map");
      if (!enabled(node)) continue;
      std::string tag = node.tag();
      if (auto inner = node.find("nodes")) {
        branch(*inner, tag == "!Parallel", depth + 1);
        continue;
      }
      if (tag == "!Nothing") continue;
      bool container = tag == "!Container" || (tag != "!Component" && class_of(node).empty());
      if (!container && tag != "!Component" && tag != "?" && tag != "" && tag != "!" && tag != "tag:yaml.org,2002:map")
        node.fail_here(text("the node is a ", tag),
                       "!Component, !Container, !Parallel, !Hierarchical or !Nothing",
                       "write the level as a component");
      if (container) inherit(node);
      fan_out(node, parallel);
      if (!container) add(node, times(node, mesh_x_, mesh_y_));
    }
  }

  void fan_out(const Value& node, bool parallel) {
    auto spatial = node.find("spatial");
    if (!spatial || spatial->is_null()) return;
    auto side = [&](std::string_view key) {
      auto v = spatial->find(key);
      if (!v) return int64_t{1};
      auto named = v->is_scalar() ? variables_.find(v->string()) : variables_.end();
      return (named == variables_.end() ? *v : named->second).integer(1);
    };
    int64_t x = side("meshX"), y = side("meshY");
    if (x == 1 && y == 1) return;
    if (parallel)
      node.fail_here("a node beside others has a fan-out",
                     "nodes of one instance below !Parallel",
                     "put the container around the !Parallel node");
    StorageLevel level;
    level.name = text("inter_", node.at("name", "the name of the node").string(), "_spatial");
    level.mesh_x = mesh_x_;
    level.mesh_y = mesh_y_;
    level.instances = times(node, mesh_x_, mesh_y_);
    level.size_words = 1;
    level.word_bits = 1;
    level.bandwidth_scale.assign(workload_.spaces.size(), 1.0);
    for (const DataSpace& s : workload_.spaces) level.bypassed.push_back(s.name);
    level.no_energy = "it holds nothing";
    out_.levels.push_back(std::move(level));
    mesh_x_ = times(node, mesh_x_, x);
    mesh_y_ = times(node, mesh_y_, y);
  }

  void add(const Value& component, int64_t count) {
    std::string class_name = class_of(component);
    switch (kind_of(class_name)) {
      case Kind::storage: storage(component, count); break;
      case Kind::compute: compute(component, count); break;
      case Kind::network:
        component.fail_here(text("the network ", quoted(class_name), " is modelled by a class of Timeloop's own"),
                            "the networks that Timeloop infers between levels",
                            "leave out the network, or ask only for Timeloop's own figures");
      case Kind::other: break;  // Timeloop passes over what is neither memory nor arithmetic
    }
  }

  void compute(const Value& component, int64_t count) {
    if (has_compute_) component.fail_here("there is a second component that computes", "one", "remove one of the two");
    has_compute_ = true;
    Attributes a(component, inherited_, variables_);
    auto name = component.find("name");
    out_.compute.name = name ? name_and_count(*name).first : "arithmetic";
    if (count == 0 && !a.find("instances"))
      component.fail_here("the arithmetic units have no count", "the key instances", "add `instances: ...`");
    set_mesh_of(a, out_.compute.name, count, out_.compute.instances, out_.compute.mesh_x, out_.compute.mesh_y);
    out_.compute.energy_pj = a.real("energy");
    for (std::string_view key : {"network_operand", "network_result"}) refuse_network(a, key);
  }

  // v0.4 places nodes in the mesh of the containers around them.
  void set_mesh_of(const Attributes& a, const std::string& name, int64_t count, int64_t& instances, int64_t& x,
                   int64_t& y) {
    bool by_containers =
        root_.find("nodes").has_value() && !a.find("meshX") && !a.find("meshY") && !a.find("instances");
    if (!by_containers) return set_mesh(a, name, count, instances, x, y);
    instances = count;
    x = mesh_x_;
    y = mesh_y_;
  }

  void refuse_network(const Attributes& a, std::string_view key) const {
    if (auto v = a.find(key))
      v->fail_here(text(key, " names a network of its own"),
                   "the networks that Timeloop infers between levels",
                   text("remove ", key));
  }

  void storage(const Value& component, int64_t count) {
    Attributes a(component, inherited_, variables_);
    StorageLevel level;
    level.name = name_and_count(component.at("name", "the name of the level")).first;
    if (count == 0 && !a.find("instances") && !(a.find("meshX") && a.find("meshY")))
      component.fail_here(
          text(level.name, " has no count"), "the key instances, or meshX and meshY", "add `instances: ...`");
    if (count == 0)
      count = a.find("instances") ? 1 : times(component, a.integer({"meshX"}, 1), a.integer({"meshY"}, 1));
    set_mesh_of(a, level.name, count, level.instances, level.mesh_x, level.mesh_y);
    read_width(a, level);
    read_size(a, level);
    read_bandwidth(a, level);
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
      if (auto e = a.real(key); e && *e > 0) out_.wire_energy = text(level.name, " gives ", key);
    if (auto overbook = a.find("allow_overbooking"); overbook && overbook->boolean())
      overbook->fail_here(text(level.name, " may hold more than its size"),
                          "allow_overbooking: false",
                          "give the level the size that its tiles need");
    read_constraints(component, level);
    out_.levels.push_back(std::move(level));
  }

  static void read_width(const Attributes& a, StorageLevel& level) {
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

  static void read_size(const Attributes& a, StorageLevel& level) {
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

  void read_bandwidth(const Attributes& a, StorageLevel& level) const {
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
    level.bandwidth_scale.assign(workload_.spaces.size(), 1.0);
    auto scales = a.find("per_dataspace_bandwidth_consumption_scale");
    if (!scales) return;
    for (auto& [name, value] : scales->entries()) {
      bool found = false;
      for (size_t i = 0; i < workload_.spaces.size(); ++i)
        if (workload_.spaces[i].name == name) level.bandwidth_scale[i] = value.real(0), found = true;
      if (!found)
        value.fail_here(text("there is no data space ", quoted(name)), "a data space of the problem", "rename it");
    }
  }

  void read_constraints(const Value& component, StorageLevel& level) const {
    auto constraints = component.find("constraints");
    if (!constraints || !constraints->is_map()) return;
    auto spaces = constraints->any_of({"dataspace", "dataspaces"});
    if (!spaces || !spaces->is_map()) return;
    if (auto bypass = spaces->find("bypass")) level.bypassed = bypass->names();
  }

  void check_names() const {
    for (size_t i = 0; i < out_.levels.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (out_.levels[i].name == out_.levels[j].name)
          root_.fail_here(text("two levels have the name ", out_.levels[i].name), "names that differ", "rename one");
    for (const StorageLevel& level : out_.levels) {
      if (level.power_gated_at.empty()) continue;
      bool found = std::any_of(out_.levels.begin(), out_.levels.end(), [&](const StorageLevel& l) {
        return l.name == level.power_gated_at;
      });
      if (!found)
        root_.fail_here(text(level.name, " is switched off at ", quoted(level.power_gated_at), ", which is no level"),
                        "the name of a level",
                        "correct power_gated_at");
    }
  }

  void check_fanouts() const {
    int64_t x = out_.compute.mesh_x, y = out_.compute.mesh_y;
    std::string inner = out_.compute.name;
    for (const StorageLevel& level : out_.levels) {
      if (x % level.mesh_x != 0 || y % level.mesh_y != 0)
        root_.fail_here(text(inner,
                             " is a mesh of ",
                             x,
                             " x ",
                             y,
                             ", ",
                             level.name,
                             " above it one of ",
                             level.mesh_x,
                             " x ",
                             level.mesh_y),
                        "each side divides that of the next inner level",
                        "check meshX and meshY of the two levels");
      x = level.mesh_x;
      y = level.mesh_y;
      inner = level.name;
    }
  }
};

}  // namespace

Architecture parse_architecture(std::string_view content, const Workload& workload, const std::string& file) {
  Value root = document(content, file, {"architecture", "arch"});
  if (!root.is_map()) root.fail_here("the architecture is no map", "a map", "give Timeloop's architecture file");
  return Reader(root, workload).run();
}

}  // namespace sator::dataflow::timeloop
