#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "formats/timeloop/mapping_checks.h"
#include "formats/timeloop/spec.h"
#include "formats/timeloop/yaml.h"

namespace sator::formats::timeloop {

std::vector<std::string> level_names(const Architecture& architecture) {
  std::vector<std::string> names;
  for (const StorageLevel& level : architecture.levels) names.push_back(level.name);
  return names;
}

std::vector<std::string> space_names(const Workload& workload) {
  std::vector<std::string> names;
  for (const DataSpace& s : workload.spaces) names.push_back(s.name);
  return names;
}

int64_t fan_out(const Architecture& a, size_t level) {
  int64_t x = level == 0 ? a.compute.mesh_x : a.levels[level - 1].mesh_x;
  int64_t y = level == 0 ? a.compute.mesh_y : a.levels[level - 1].mesh_y;
  return (x / a.levels[level].mesh_x) * (y / a.levels[level].mesh_y);
}

void check_mapping(const Mapping& mapping, const Workload& w, const Architecture& a, const Refuse& refuse) {
  for (size_t d = 0; d < w.dimensions.size(); ++d) {
    int64_t product = 1;
    bool overflow = false;
    for (const LevelMapping& level : mapping.levels)
      for (const auto* loops : {&level.temporal, &level.spatial})
        for (const Loop& loop : *loops)
          if (loop.dimension == static_cast<int>(d)) overflow |= __builtin_mul_overflow(product, loop.bound, &product);
    if (overflow || product != w.bounds[d])
      refuse(text("the factors of dimension ",
                  w.dimensions[d],
                  " multiply to ",
                  overflow ? std::string("more than 63 bits hold") : text(product)),
             text("their product is the extent, ", w.bounds[d]),
             "correct the factors of that dimension");
  }
  for (size_t s = 0; s < w.spaces.size(); ++s) {
    bool kept = false;
    for (const LevelMapping& level : mapping.levels) kept |= level.keep >> s & 1;
    if (!kept)
      refuse(text("the data space ", w.spaces[s].name, " is kept nowhere"),
             "each data space is kept in at least one level",
             "keep it in the outermost level");
  }
  for (size_t l = 0; l < mapping.levels.size(); ++l)
    if (!mapping.levels[l].spatial.empty() && fan_out(a, l) == 1)
      refuse(text("spatial loops stand at ", a.levels[l].name, ", below which nothing fans out"),
             "spatial loops where the next inner level has more instances",
             "move them to a level with a fan-out, or raise meshX or meshY below");
}

namespace {

const std::vector<std::string> kMappingKeys = {"target",
                                               "type",
                                               "factors",
                                               "permutation",
                                               "split",
                                               "keep",
                                               "bypass",
                                               "no_reuse",
                                               "no_temporal_reuse",
                                               "no_multicast",
                                               "no_link_transfer",
                                               "rmw_first_update",
                                               "no_coalesce",
                                               "name",
                                               "modulo",
                                               "terms"};

/// One directive's loops, all dimensions in order.
struct Nest {
  bool given = false;
  std::vector<int64_t> factors;  // per dimension
  std::vector<int> order;        // dimensions, the innermost first
  int64_t split = 0;             // so many of `order` lie along X
};

class MappingReader {
 public:
  MappingReader(const Value& root, const Workload& w, const Architecture& a)
      : root_(root), workload_(w), architecture_(a), temporal_(a.levels.size()), spatial_(a.levels.size()) {
    mapping_.levels.resize(a.levels.size());
  }

  Mapping run() {
    SpaceSet all = (SpaceSet{1} << workload_.spaces.size()) - 1;
    std::vector<std::string> spaces = space_names(workload_);
    for (size_t l = 0; l < mapping_.levels.size(); ++l) {
      mapping_.levels[l].keep = all;
      for (const std::string& name : architecture_.levels[l].bypassed) {
        auto s = std::find(spaces.begin(), spaces.end(), name);
        if (s == spaces.end())
          root_.fail_here(
              text(architecture_.levels[l].name, " bypasses ", string_literal(name), ", which is no data space"),
              text("one of: ", join(spaces, ", ")),
              "correct the constraints of the architecture");
        mapping_.levels[l].keep &= ~(SpaceSet{1} << (s - spaces.begin()));
      }
    }
    for (const Value& directive : root_.items()) read(directive);
    for (size_t l = 0; l < mapping_.levels.size(); ++l) {
      mapping_.levels[l].temporal = loops(temporal_[l], false);
      mapping_.levels[l].spatial = loops(spatial_[l], true);
    }
    check_mapping(mapping_, workload_, architecture_, [&](std::string what, std::string needs, std::string hint) {
      root_.fail_here(std::move(what), std::move(needs), std::move(hint));
    });
    return std::move(mapping_);
  }

 private:
  const Value& root_;
  const Workload& workload_;
  const Architecture& architecture_;
  Mapping mapping_;
  std::vector<Nest> temporal_, spatial_;

  void read(const Value& directive) {
    if (!directive.is_map())
      directive.fail_here(
          "a directive of the mapping is no map", "target, type and what the type takes", "write `- target: ...`");
    for (auto& [key, value] : directive.entries())
      if (std::find(kMappingKeys.begin(), kMappingKeys.end(), key) == kMappingKeys.end()) {
        std::vector<std::string> near = nearest_names(key, kMappingKeys);
        value.fail_here(text("a directive has no key ", string_literal(key)),
                        text("one of: ", join(kMappingKeys, ", ")),
                        near.empty() ? text("remove it") : text("did you mean ", join(near, " or "), "?"));
      }
    std::string type = directive.at("type", "temporal, spatial, or bypass").string();
    if (type == "skew")
      directive.fail_here("the mapping skews a spatial loop",
                          "spatial loops without skew",
                          "TENET's texts can state a skew: write the mapping as its three files");
    bool spatial = type == "spatial";
    size_t level = target(directive.at("target", "the level"), spatial);
    if (type == "temporal" || spatial) {
      read_nest(directive, (spatial ? spatial_ : temporal_)[level], spatial);
      read_reuse(directive, mapping_.levels[level], spatial);
    } else if (type == "bypass" || type == "datatype" || type == "dataspace") {
      if (auto v = directive.find("no_coalesce"); v && !v->names().empty())
        v->fail_here(
            "no_coalesce passes every access on", "levels that keep or bypass a data space", "bypass it instead");
      mapping_.levels[level].keep |= spaces(directive, "keep");
      mapping_.levels[level].keep &= ~spaces(directive, "bypass");
    } else {
      directive.fail_here(text("the type ", string_literal(type), " is unknown"),
                          "temporal, spatial, bypass, datatype, dataspace or skew",
                          "correct the type");
    }
  }

  size_t target(const Value& v, bool spatial) const {
    std::string name = v.string();
    std::vector<std::string> names = level_names(architecture_);
    // The loops over what a container of v0.4 holds stand at the level that was made for it.
    auto of_container = std::find(names.begin(), names.end(), text("inter_", name, "_spatial"));
    auto found = std::find(names.begin(), names.end(), name);
    if (of_container != names.end() && (spatial || found == names.end())) found = of_container;
    if (found != names.end()) return found - names.begin();
    if (auto index = whole_number(name); index && *index < static_cast<int64_t>(names.size())) return *index;
    std::vector<std::string> near = nearest_names(name, names);
    v.fail_here(
        text("there is no level ", string_literal(name)),
        text("one of: ", join(names, ", ")),
        near.empty() ? text("name a level of the architecture") : text("did you mean ", join(near, " or "), "?"));
  }

  int dimension(const Value& v, const std::string& name) const {
    const auto& names = workload_.dimensions;
    auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) return static_cast<int>(found - names.begin());
    v.fail_here(text("there is no dimension ", string_literal(name)),
                text("one of: ", join(names, ", ")),
                "name a dimension of the problem");
  }

  void read_nest(const Value& directive, Nest& nest, bool spatial) const {
    if (nest.given)
      directive.fail_here(
          "the loops of this level stand twice", "one directive per level and type", "remove one of the two");
    nest.given = true;
    nest.factors.assign(workload_.dimensions.size(), 1);
    if (auto factors = directive.find("factors"); factors && !factors->is_null()) read_factors(*factors, nest);
    if (auto order = directive.find("permutation"); order && !order->is_null()) read_order(*order, nest);
    // What the permutation leaves out stands outermost, in the order of the shape, as Timeloop has it.
    for (int d = 0; d < static_cast<int>(workload_.dimensions.size()); ++d)
      if (std::find(nest.order.begin(), nest.order.end(), d) == nest.order.end()) nest.order.push_back(d);
    auto split = directive.find("split");
    nest.split = split && !split->is_null() ? split->integer(0) : static_cast<int64_t>(nest.order.size());
    if (split && !spatial)
      split->fail_here("a temporal directive has a split", "split in spatial directives", "remove it");
  }

  /// "R=3 P=16", "R3,P16", or a list of these.
  void read_factors(const Value& v, Nest& nest) const {
    std::vector<bool> seen(nest.factors.size(), false);
    std::vector<Value> parts = v.is_list() ? v.items() : std::vector<Value>{v};
    for (const Value& part : parts) {
      std::string s = part.string();
      s = s.substr(0, s.find('#'));
      size_t at = 0;
      auto skip = [&](std::string_view what) {
        while (at < s.size() && what.find(s[at]) != std::string_view::npos) ++at;
      };
      auto take = [&](auto accept) {
        size_t start = at;
        while (at < s.size() && accept(static_cast<unsigned char>(s[at]))) ++at;
        return s.substr(start, at - start);
      };
      constexpr std::string_view kBlank = " \t\r\n", kBetween = " \t\r\n,";
      for (skip(kBetween); at < s.size(); skip(kBetween)) {
        size_t start = at;
        std::string name = take([](unsigned char c) { return std::isalpha(c) || c == '_'; });
        skip(kBlank);
        bool equals = at < s.size() && s[at] == '=';
        if (equals) ++at;
        skip(kBlank);
        std::string digits = take([](unsigned char c) { return std::isdigit(c); });
        if (name.empty() || digits.empty())
          part.fail_here(text("the factor at ", string_literal(s.substr(start, 20)), " cannot be read"),
                         "dimension=bound, as in \"R=3 P=16\"",
                         "correct the factors");
        int d = dimension(part, name);
        if (seen[d])
          part.fail_here(text("the factor of ", name, " stands twice"), "one factor per dimension", "multiply the two");
        seen[d] = true;
        auto bound = whole_number(digits);
        if (!bound)
          part.fail_here(text("the factor of ", name, " needs more than 63 bits"), "a factor below 2^63", "correct it");
        nest.factors[d] = *bound == 0 ? workload_.bounds[d] : *bound;  // Timeloop: 0 is the whole dimension
        read_residual(part, s, at, name, nest.factors[d]);
      }
    }
  }

  /// "P=4,2": the last tile has 2 instead of 4.
  void read_residual(const Value& part, const std::string& s, size_t& at, const std::string& name,
                     int64_t bound) const {
    if (at + 1 >= s.size() || s[at] != ',' || !std::isdigit(static_cast<unsigned char>(s[at + 1]))) return;
    size_t end = at + 1;
    while (end < s.size() && std::isdigit(static_cast<unsigned char>(s[end]))) ++end;
    if (whole_number(s.substr(at + 1, end - at - 1)) != bound)
      part.fail_here(text("the factor ", name, "=", bound, s.substr(at, end - at), " leaves a smaller last tile"),
                     "factors that divide the extent",
                     "pad the dimension to a multiple");
    at = end;
  }

  void read_order(const Value& v, Nest& nest) const {
    std::vector<std::string> names = v.names();
    bool single = std::all_of(
        workload_.dimensions.begin(), workload_.dimensions.end(), [](const std::string& d) { return d.size() == 1; });
    if (single && !v.is_list()) {  // "PRKC"
      std::vector<std::string> letters;
      for (const std::string& word : names)
        for (char c : word) letters.emplace_back(1, c);
      names = std::move(letters);
    }
    for (const std::string& name : names) {
      int d = dimension(v, name);
      if (std::find(nest.order.begin(), nest.order.end(), d) != nest.order.end())
        v.fail_here(text("the dimension ", name, " stands twice in the permutation"),
                    "each dimension once",
                    "remove one of the two");
      nest.order.push_back(d);
    }
  }

  SpaceSet spaces(const Value& directive, std::string_view key) const {
    auto list = directive.find(key);
    if (!list) return 0;
    SpaceSet set = 0;
    std::vector<std::string> names = space_names(workload_);
    for (const std::string& name : list->names()) {
      auto found = std::find(names.begin(), names.end(), name);
      if (found == names.end())
        list->fail_here(text("there is no data space ", string_literal(name)),
                        text("one of: ", join(names, ", ")),
                        "name a data space of the problem");
      set |= SpaceSet{1} << (found - names.begin());
    }
    return set;
  }

  void read_reuse(const Value& directive, LevelMapping& level, bool spatial) const {
    SpaceSet none = spaces(directive, "no_reuse");
    if (spatial) {
      level.no_multicast = none | spaces(directive, "no_multicast");
      level.no_link_transfer = spaces(directive, "no_link_transfer");
    } else {
      level.no_temporal_reuse = none | spaces(directive, "no_temporal_reuse");
      level.rmw_first_update = spaces(directive, "rmw_first_update");
    }
  }

  static std::vector<Loop> loops(const Nest& nest, bool spatial) {
    std::vector<Loop> out;
    for (size_t i = 0; i < nest.order.size(); ++i) {
      Loop loop{.dimension = nest.order[i], .bound = nest.factors[nest.order[i]]};
      loop.on_y = spatial && static_cast<int64_t>(i) >= nest.split;
      if (loop.bound > 1) out.push_back(loop);
    }
    return out;
  }
};

}  // namespace

Mapping parse_mapping(std::string_view content, const Workload& w, const Architecture& a, const std::string& file) {
  if (is_printed_mapping(content)) return parse_printed_mapping(content, w, a, file);
  Value root = document(content, file, {"mapping"});
  if (!root.is_list())
    root.fail_here("the mapping is no list", "a list of directives", "write it as `- target: ...` lines");
  return MappingReader(root, w, a).run();
}

Input parse(const Texts& texts) {
  Input input;
  input.workload = parse_problem(texts.problem, texts.problem_name);
  input.architecture = parse_architecture(texts.architecture, input.workload, texts.architecture_name);
  input.mapping = parse_mapping(texts.mapping, input.workload, input.architecture, texts.mapping_name);
  Architecture& a = input.architecture;
  if (!trim(texts.energy).empty()) parse_energy(texts.energy, a, texts.energy_name);
  if (!a.wire_energy.empty())
    input.no_energy = text(a.wire_energy, "; the energy of wires is not modelled");
  else if (!a.compute.energy_pj)
    input.no_energy =
        text(trim(texts.energy).empty() ? "there is no ERT" : "the ERT has no energy", " for ", a.compute.name);
  for (size_t l = 0; l < a.levels.size() && input.no_energy.empty(); ++l)
    if (!a.levels[l].energy && input.mapping.levels[l].keep) input.no_energy = a.levels[l].no_energy;
  return input;
}

}  // namespace sator::formats::timeloop
