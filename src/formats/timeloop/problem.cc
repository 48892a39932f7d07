#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "formats/misspelt.h"
#include "formats/timeloop/known_keys.h"
#include "formats/timeloop/spec.h"
#include "formats/timeloop/yaml.h"

namespace sator::formats::timeloop {

namespace {

/// The shape that files without one of their own mean.
constexpr std::string_view kConvolution = R"(
dimensions: [C, M, R, S, N, P, Q]
coefficients:
- {name: Wstride, default: 1}
- {name: Hstride, default: 1}
- {name: Wdilation, default: 1}
- {name: Hdilation, default: 1}
data_spaces:
- {name: Weights, projection: [[[C]], [[M]], [[R]], [[S]]]}
- {name: Inputs, projection: [[[N]], [[C]], [[R, Wdilation], [P, Wstride]], [[S, Hdilation], [Q, Hstride]]]}
- {name: Outputs, projection: [[[N]], [[M]], [[Q]], [[P]]], read_write: true}
)";

struct Coefficients {
  std::vector<std::string> names;
  std::vector<int64_t> values;
};

int index_of(const Value& at, const std::string& name, const std::vector<std::string>& among, std::string_view kind) {
  auto found = std::find(among.begin(), among.end(), name);
  if (found != among.end()) return static_cast<int>(found - among.begin());
  std::vector<std::string> near = nearest_names(name, among);
  at.fail_here(text("there is no ", kind, " ", string_literal(name)),
               text("one of: ", join(among, ", ")),
               near.empty() ? text("declare it in the shape") : text("did you mean ", join(near, " or "), "?"));
}

void check_name(const Value& at, const std::string& name, const std::vector<std::string>& taken) {
  bool plain = !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-' || c == '.';
  });
  if (!plain) at.fail_here(text(string_literal(name), " is no name"), "letters, digits and `_`", "rename it");
  if (std::find(taken.begin(), taken.end(), name) != taken.end())
    at.fail_here(text("the name ", name, " stands twice"), "names that differ", "rename one of the two");
}

int64_t signed_number(const Value& at) {
  std::string s = at.string();
  bool negative = !s.empty() && s[0] == '-';
  std::optional<int64_t> magnitude = whole_number(negative ? std::string_view(s).substr(1) : std::string_view(s));
  if (!magnitude || *magnitude > (int64_t{1} << 40))
    at.fail_here(text(at.path(), " is ", string_literal(s)), "a whole number up to 2^40", "write the value itself");
  return negative ? -*magnitude : *magnitude;
}

std::vector<ProjectionTerm> read_rank(const Value& rank, const Workload& w, const Coefficients& coefficients) {
  std::vector<ProjectionTerm> terms;
  if (rank.is_scalar()) return {{.dimension = index_of(rank, rank.string(), w.dimensions, "dimension")}};
  for (const Value& term : rank.items()) {
    std::vector<Value> parts = term.items();
    if (parts.empty() || parts.size() > 2)
      term.fail_here(text("a term has ", parts.size(), " parts"),
                     "[dimension] or [dimension, coefficient]",
                     "write one bracket per term");
    ProjectionTerm t{.dimension = index_of(parts[0], parts[0].string(), w.dimensions, "dimension")};
    if (parts.size() == 2) {
      std::string name = parts[1].string();
      t.coefficient = whole_number(name)
                          ? *whole_number(name)
                          : coefficients.values[index_of(parts[1], name, coefficients.names, "coefficient")];
    }
    if (t.coefficient != 0) terms.push_back(t);
  }
  return terms;
}

DataSpace read_space(const Value& v, const Workload& w, const Coefficients& coefficients) {
  DataSpace space;
  only_known(v, {"name", "projection", "read_write", "ranks"});
  Value name = v.at("name", "the name of the data space");
  space.name = name.string();
  std::vector<std::string> taken;
  for (const DataSpace& s : w.spaces) taken.push_back(s.name);
  check_name(name, space.name, taken);
  if (auto written = v.find("read_write")) space.read_write = written->boolean();
  Value projection = v.at("projection", "what the data space touches: one entry per rank");
  for (const Value& rank : projection.items()) space.ranks.push_back(read_rank(rank, w, coefficients));
  if (space.ranks.size() > kMaxRanks)
    projection.fail_here(text(space.name, " has ", space.ranks.size(), " ranks"),
                         text("at most ", kMaxRanks, " ranks"),
                         "merge ranks that are never tiled");
  return space;
}

/// What a density below 1 costs depends on the sparse optimizations, which these files do not carry.
void refuse_sparse(const Value& given) {
  if (given.is_null()) return;
  Value density = given.is_map() ? given.at("density", "the share of words that are not 0") : given;
  if (density.real(0) != 1)
    density.fail_here(text(density.path(), " is ", density.string(), ": the tensor is sparse"),
                      "dense data spaces (density 1)",
                      "remove the densities to have the dense counts");
}

void read_shape(const Value& shape, const Value* instance, Workload& w, Coefficients& coefficients) {
  only_known(shape, {"version", "name", "dimensions", "coefficients", "data_spaces", "flatten"});
  if (auto name = shape.find("name"); name && name->is_scalar()) w.name = name->string();
  if (auto flatten = shape.find("flatten"))
    flatten->fail_here("the shape flattens dimensions",
                       "dimensions that loops run over as they are",
                       "write the loops over the factorized dimensions");
  Value dimensions = shape.at("dimensions", "the names of the loops");
  for (const Value& d : dimensions.items()) {
    std::string name = d.string();
    check_name(d, name, w.dimensions);
    w.dimensions.push_back(name);
  }
  if (w.dimensions.empty() || w.dimensions.size() > kMaxDimensions)
    dimensions.fail_here(text("the shape has ", w.dimensions.size(), " dimensions"),
                         text("1 to ", kMaxDimensions, " dimensions"),
                         "leave out dimensions of extent 1");
  if (auto list = shape.find("coefficients"); list && !list->is_null()) {
    for (const Value& c : list->items()) {
      only_known(c, {"name", "default"});
      Value name = c.at("name", "the name of the coefficient");
      check_name(name, name.string(), coefficients.names);
      coefficients.names.push_back(name.string());
      coefficients.values.push_back(1);
      if (auto value = c.find("default")) coefficients.values.back() = signed_number(*value);
      if (!instance) continue;
      if (auto value = instance->find(coefficients.names.back())) coefficients.values.back() = signed_number(*value);
    }
  }
  Value spaces = shape.at("data_spaces", "the tensors of the problem");
  for (const Value& s : spaces.items()) w.spaces.push_back(read_space(s, w, coefficients));
  if (w.spaces.empty() || w.spaces.size() > kMaxSpaces)
    spaces.fail_here(text("the shape has ", w.spaces.size(), " data spaces"),
                     text("1 to ", kMaxSpaces, " data spaces"),
                     "name the tensors that are read and written");
  if (std::none_of(w.spaces.begin(), w.spaces.end(), [](const DataSpace& s) { return s.read_write; }))
    spaces.fail_here("no data space is written",
                     "one data space with `read_write: true`: the results",
                     "mark the outputs with `read_write: true`");
}

/// Keys of the extents: files also carry numbers that no loop and no projection of theirs uses (H, W, Hpad), which
/// Timeloop passes over. What is no number, or is nearly the name of something, was meant to count.
void check_instance(const Value& bounds, const Workload& w, const Coefficients& coefficients,
                    std::vector<std::string> known) {
  for (const auto* names : {&w.dimensions, &coefficients.names})
    known.insert(known.end(), names->begin(), names->end());
  for (std::string_view key : {"densities", "commonDensity"}) known.emplace_back(key);
  std::vector<std::string> common = known;
  for (std::string_view key : {"Wstride", "Hstride", "Wdilation", "Hdilation", "Wpad", "Hpad", "Wpadding", "Hpadding"})
    common.emplace_back(key);
  for (const auto& [key, value] : bounds.entries()) {
    if (std::find(common.begin(), common.end(), key) != common.end()) continue;
    std::string near = meant(key, known);
    if (near.empty() && value.is_scalar() && whole_number(value.string())) continue;
    bounds.fail_key(key,
                    text("the instance has an unknown key, ", string_literal(key.substr(0, 60))),
                    text("the extents and ", join(known, ", ")),
                    near.empty() ? text("remove the key") : text("did you mean ", near, "?"));
  }
}

}  // namespace

Workload parse_problem(std::string_view content, const std::string& file) {
  Value root = document(content, file, {"problem"});
  if (!root.is_map())
    root.fail_here("the problem is no map", "keys shape and instance", "give Timeloop's problem file");
  std::optional<Value> instance = root.find("instance");
  if (instance && !instance->is_map())
    instance->fail_here("the instance is no map", "one `dimension: extent` per dimension", "write it as a map");
  const Value& bounds = instance ? *instance : root;
  if (instance) only_known(root, {"version", "shape", "instance", "name"});
  Workload w;
  Coefficients coefficients;
  std::optional<Value> shape = root.find("shape");
  if (shape && shape->is_map()) {
    read_shape(*shape, &bounds, w, coefficients);
  } else {
    std::string name = shape ? shape->string() : "cnn_layer";
    if (name != "cnn_layer" && name != "cnn-layer" && name != "CNN_Layer")
      shape->fail_here(text("the shape ", string_literal(name), " is a file of Timeloop's that is not here"),
                       "the shape written out",
                       "put its dimensions and data_spaces under `shape:`");
    // A tool's own shape: what its instance may override stands in the user's file.
    read_shape(document(kConvolution, "cnn_layer", {}), &bounds, w, coefficients);
    w.name = "cnn_layer";
  }
  check_instance(
      bounds,
      w,
      coefficients,
      instance ? std::vector<std::string>{} : std::vector<std::string>{"version", "shape", "instance", "name"});
  for (const std::string& d : w.dimensions)
    w.bounds.push_back(bounds.at(d, text("the extent of dimension ", d)).integer(1));
  double operations = 1;
  for (int64_t bound : w.bounds) operations *= static_cast<double>(bound);
  if (operations > 4.6e18)
    bounds.fail_here("the number of operations needs more than 62 bits",
                     "extents whose product is below 2^62",
                     "check the extents; a smaller problem of the same shape scales");
  if (auto common = bounds.find("commonDensity")) refuse_sparse(*common);
  if (auto densities = bounds.find("densities"); densities && !densities->is_null())
    for (const auto& [name, density] : densities->entries()) {
      bool found = std::any_of(w.spaces.begin(), w.spaces.end(), [&](const DataSpace& s) { return s.name == name; });
      if (!found)
        densities->fail_key(name,
                            text("there is no data space ", string_literal(name.substr(0, 60))),
                            "a data space of the problem",
                            "rename it");
      refuse_sparse(density);
    }
  return w;
}

}  // namespace sator::formats::timeloop
