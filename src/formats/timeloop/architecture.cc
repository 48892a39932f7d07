#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "formats/timeloop/components.h"
#include "formats/timeloop/known_keys.h"

namespace sator::formats::timeloop {

namespace {

constexpr int kDeepestNode = 64;  // of nested nodes
constexpr int kMostNodes = 1000;  // aliases can name one node many times

class ArchitectureReader {
 public:
  ArchitectureReader(const Value& root, const Workload& workload) : root_(root), workload_(workload) {
    if (auto table = root.find("variables"); table && table->is_map())
      for (auto& [key, value] : table->entries()) variables_.emplace(key, value);
  }

  Architecture run() {
    if (auto nodes = root_.find("nodes")) {
      by_containers_ = true;
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
  AttributeTable variables_, inherited_;
  int64_t mesh_x_ = 1, mesh_y_ = 1;
  Architecture out_;
  bool has_compute_ = false, innermost_first_ = false, by_containers_ = false;
  int nodes_ = 0;

  void visit(const Value& node, int depth) {
    if (depth > kDeepestNode)
      node.fail_here("nodes are nested too deeply", text("at most ", kDeepestNode, " deep"), "flatten them");
    if (++nodes_ > kMostNodes)
      node.fail_here("there are too many nodes", text("at most ", kMostNodes), "leave some out");
    if (!node.is_map()) return;
    static const std::vector<std::string> kKeys = {
        "name", "class", "attributes", "spatial", "enabled", "local", "subtree", "nodes", "constraints"};
    no_misspelt(node, kKeys);
    auto attributes = node.find("attributes");
    no_misspelt_attributes(attributes && !attributes->is_null() ? *attributes : node);
  }

  Placement placed(int64_t count) const {
    return by_containers_ ? Placement{count, mesh_x_, mesh_y_} : Placement{.instances = count};
  }

  void compute(const Value& component, int64_t count) {
    if (has_compute_) component.fail_here("there is a second component that computes", "one", "remove one of the two");
    has_compute_ = true;
    out_.compute = read_compute(Attributes(component, inherited_, variables_), placed(count));
  }

  void storage(const Value& component, int64_t count) {
    Attributes attributes(component, inherited_, variables_);
    out_.levels.push_back(read_storage(attributes, placed(count), workload_, out_.wire_energy));
  }

  void inherit(const Value& node) {
    if (auto own = node.find("attributes"); own && own->is_map())
      for (auto& [key, value] : own->entries()) {
        inherited_.erase(key);
        inherited_.emplace(key, value);
      }
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
    for (const Value& level : root_.at("storage", "the levels of memory").items()) {
      visit(level, 0);
      storage(level, 0);
    }
  }

  // v0.2, v0.3, and what Timeloop's front end writes: components of a node are `local`, inner ones are in its subtree.
  // Attributes of nodes are not those of their components.
  void tree(const Value& node, int64_t count, int depth) {
    visit(node, depth);
    Value list = node.at("subtree", "the one node below");
    std::vector<Value> below = list.items();
    if (below.size() != 1)
      list.fail_here(text("a subtree has ", below.size(), " nodes"), "one node", "write the levels as one chain");
    const Value& inner = below[0];
    if (auto name = inner.find("name")) count = times(inner, count, name_and_count(*name).second);
    if (auto local = inner.find("local"); local && !local->is_null())
      for (const Value& component : local->items()) {
        visit(component, depth);
        if (!enabled(component)) continue;
        auto [name, copies] = name_and_count(component.at("name", "the name of the component"));
        add(component, times(component, count, copies));
      }
    if (auto rest = inner.find("subtree"); rest && !rest->is_null()) tree(inner, count, depth + 1);
  }

  // v0.4: a list of nodes from the outermost inwards; containers with a spatial fan-out become a level that holds nothing.
  void branch(const Value& nodes, bool parallel, int depth) {
    for (const Value& node : nodes.items()) {
      visit(node, depth);
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
    only_known(*spatial, {"meshX", "meshY"});
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
      case ComponentKind::storage: storage(component, count); break;
      case ComponentKind::compute: compute(component, count); break;
      case ComponentKind::network:
        component.fail_here(
            text("the network ", string_literal(class_name), " is modelled by a class of Timeloop's own"),
            "the networks that Timeloop infers between levels",
            "leave out the network, or ask only for Timeloop's own figures");
      case ComponentKind::other: break;  // Timeloop passes over what is neither memory nor arithmetic
    }
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
        root_.fail_here(
            text(level.name, " is switched off at ", string_literal(level.power_gated_at), ", which is no level"),
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
  return ArchitectureReader(root, workload).run();
}

}  // namespace sator::formats::timeloop
