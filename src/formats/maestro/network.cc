#include "formats/maestro/network.h"

#include <map>
#include <optional>
#include <vector>

#include "base/text.h"
#include "formats/maestro/token_reader.h"

namespace sator::formats::maestro {
namespace {

constexpr std::string_view kNames[kDims] = {"C", "G", "K", "M", "N", "R", "S", "X", "Y", "X'", "Y'"};

struct TypeName {
  std::string_view name;
  std::optional<LayerType> type;
};
/// The types that MAESTRO's reader knows; those without a type here stop it.
constexpr TypeName kTypes[] = {{"CONV", LayerType::conv},
                               {"DSCONV", LayerType::dsconv},
                               {"NGCONV", LayerType::ngconv},
                               {"TRCONV", LayerType::conv},
                               {"GEMM", LayerType::gemm},
                               {"FC", {}},
                               {"POOL", {}},
                               {"LSTM", {}}};

constexpr const char* kLayerNeeds = "Layer NAME { Type: ..  Stride { .. }  Dimensions { .. }  Dataflow { .. } }";

bool belongs(LayerType type, Dim dim) {
  const bool gemm = dim == Dim::m || dim == Dim::n || dim == Dim::k;
  return type == LayerType::gemm ? gemm : dim != Dim::m;
}

class NetworkReader {
 public:
  NetworkReader(std::string_view text, std::string_view file) : in_(text, file) {}
  Network network();

 private:
  void constant();
  Layer layer(const Network& network);
  void type(Layer& layer);
  void strides(Layer& layer);
  void dimensions(Layer& layer);
  void dataflow(Layer& layer);
  Directive directive(const Layer& layer);
  void check_filter(const Layer& layer, const Directive& map);
  Dim dim(const Layer& layer);
  int64_t size(const Layer& layer, const char* what);

  TokenReader in_;
  std::map<std::string_view, int64_t> constants_;
};

Network NetworkReader::network() {
  while (in_.accept("Constant")) constant();
  in_.expect("Network", "begins the description");
  Network network;
  while (!in_.at_end() && in_.peek() != "{") network.name = in_.word("the network's name");
  in_.expect("{", "opens the network");
  while (!in_.accept("}")) {
    in_.expect("Layer", "begins a layer (or } ends the network)");
    network.layers.push_back(layer(network));
  }
  if (network.layers.empty()) in_.fail_last("the network has no layer", kLayerNeeds, "add a layer");
  while (in_.accept("Constant")) constant();
  if (!in_.at_end())
    in_.fail_next(text(in_.next_shown(), " stands after the network"),
                  "one Network (an Accelerator block stops MAESTRO's reader; the hardware is a file of its own)",
                  "remove what follows the network's closing brace");
  return network;
}

void NetworkReader::constant() {
  const std::string_view name = in_.word("the constant's name");
  constants_[name] = in_.integer("the constant's value", 1);
  in_.accept(";");
}

Layer NetworkReader::layer(const Network& network) {
  constexpr size_t kMostLayers = 100000;
  Layer layer{.name = "Layer", .place = in_.place()};
  if (network.layers.size() == kMostLayers)
    in_.fail_next(text("the network has more than ", kMostLayers, " layers"),
                  text("at most ", kMostLayers, " layers"),
                  "split the network");
  layer.stride.fill(1);
  while (!in_.at_end() && in_.peek() != "{") layer.name = in_.word("the layer's name");
  in_.expect("{", "opens the layer");
  bool typed = false, strided = false, sized = false, mapped = false;
  while (!in_.accept("}")) {
    const auto once = [&](bool& seen) {
      if (seen) in_.fail_last("the layer has this part twice", kLayerNeeds, "remove one of the two");
      seen = true;
    };
    if (in_.accept("Type")) {
      once(typed);
      in_.accept(":");
      type(layer);
    } else if (in_.accept("Stride")) {
      once(strided);
      if (sized)
        in_.fail_last("Stride stands after Dimensions", "Stride before Dimensions", "move it before Dimensions");
      strides(layer);
    } else if (in_.accept("Dimensions")) {
      once(sized);
      if (!typed) in_.fail_last("Dimensions stand before the layer's Type", kLayerNeeds, "write Type first");
      dimensions(layer);
    } else if (in_.accept("Dataflow")) {
      once(mapped);
      if (!sized) in_.fail_last("Dataflow stands before the layer's Dimensions", kLayerNeeds, "write Dimensions first");
      dataflow(layer);
    } else {
      in_.fail_next(text(in_.next_shown(), " begins no part of a layer"),
                    kLayerNeeds,
                    "write Type, Stride, Dimensions or Dataflow");
    }
  }
  if (!typed || !sized)
    in_.fail_last(text("layer ", shown(layer.name), " has no ", typed ? "Dimensions" : "Type"), kLayerNeeds, "add it");
  if (layer.dataflow.empty())
    in_.fail_last(
        text("layer ", shown(layer.name), " has no Dataflow"),
        "a Dataflow in every layer (MAESTRO lends the previous layer's, which its analysis has changed by then)",
        "repeat the Dataflow in this layer");
  return layer;
}

void NetworkReader::type(Layer& layer) {
  const std::string_view name = in_.word("the layer's type");
  for (const TypeName& known : kTypes)
    if (name == known.name) {
      if (!known.type)
        in_.fail_last(text("layers of type ", name, " are not modelled, by MAESTRO neither"),
                      "CONV, DSCONV, NGCONV, TRCONV or GEMM",
                      "write the layer as CONV or GEMM");
      layer.type = *known.type;
      return;
    }
  in_.fail_last(
      text(shown(name), " is no layer type"), "CONV, DSCONV, NGCONV, TRCONV or GEMM", "use one of these types");
}

Dim NetworkReader::dim(const Layer& layer) {
  const std::string_view name = in_.word("a dimension");
  for (int i = 0; i < kDims; ++i)
    if (name == kNames[i] && belongs(layer.type, static_cast<Dim>(i))) return static_cast<Dim>(i);
  const char* needs = layer.type == LayerType::gemm
                          ? "a GEMM has the dimensions M, N and K"
                          : "a convolution has the dimensions N, G, K, C, R, S, Y, X, Y' and X'";
  in_.fail_last(text(shown(name), " is no dimension of this layer"), needs, "use one of these dimensions");
}

void NetworkReader::strides(Layer& layer) {
  in_.expect("{", "opens the strides");
  while (!in_.accept("}")) {
    const Dim at = dim(layer);
    in_.accept(":");
    layer.stride[at] = in_.integer("the stride", 1);
    in_.accept(",");
  }
}

void NetworkReader::dimensions(Layer& layer) {
  in_.expect("{", "opens the dimensions");
  while (!in_.accept("}")) {
    const Dim at = dim(layer);
    in_.accept(":");
    const int64_t value = size(layer, "the dimension's size");
    if (layer.size[at] != 0 && layer.size[at] != value)
      in_.fail_last(text("dimension ", name_of(at), " is ", layer.size[at], " and ", value),
                    "one size for each dimension",
                    "remove one of the two");
    layer.size[at] = value;
    in_.accept(",");
  }
}

int64_t NetworkReader::size(const Layer& layer, const char* what) {
  if (in_.accept("Sz")) {
    in_.expect("(", "opens Sz's dimension");
    const Dim at = dim(layer);
    if (layer.size[at] == 0)
      in_.fail_last(text("Sz(", name_of(at), "): the layer has no size for it"),
                    "Sz of a dimension listed in Dimensions",
                    "give the size as a number");
    in_.expect(")", "closes Sz");
    return layer.size[at];
  }
  if (auto it = constants_.find(in_.peek()); !in_.at_end() && it != constants_.end()) {
    in_.take();
    return it->second;
  }
  return in_.integer(what, 1);
}

void NetworkReader::dataflow(Layer& layer) {
  in_.expect("{", "opens the dataflow");
  while (!in_.accept("}")) {
    layer.dataflow.push_back(directive(layer));
    in_.accept(";");
  }
}

Directive NetworkReader::directive(const Layer& layer) {
  Directive out{.place = in_.place()};
  if (in_.accept("Cluster")) {
    out.kind = Directive::Kind::cluster;
    in_.expect("(", "opens the cluster's size");
    out.size = size(layer, "the cluster's size");
    in_.expect(",", "stands between the cluster's size and its kind");
    if (!in_.accept("P") && !in_.accept("L"))
      in_.fail_next(text(in_.next_shown(), " is no kind of cluster"), "P (physical) or L (logical)", "write P");
    in_.expect(")", "closes the cluster");
    return out;
  }
  if (in_.accept("SpatialMap"))
    out.kind = Directive::Kind::spatial;
  else if (!in_.accept("TemporalMap"))
    in_.fail_next(text(in_.next_shown(), " is no directive"),
                  "TemporalMap(size, offset) dim; SpatialMap(size, offset) dim; Cluster(size, P);",
                  "use one of the three");
  in_.expect("(", "opens the map's size and offset");
  out.size = size(layer, "the map's size");
  in_.expect(",", "stands between size and offset");
  out.offset = size(layer, "the map's offset");
  in_.expect(")", "closes size and offset");
  out.dim = dim(layer);
  check_filter(layer, out);
  return out;
}

void NetworkReader::check_filter(const Layer& layer, const Directive& map) {
  if (map.kind != Directive::Kind::temporal || (map.dim != Dim::r && map.dim != Dim::s)) return;
  if (map.size != map.offset || (layer.size[map.dim] != 0 && layer.size[map.dim] != map.size))
    in_.fail_last(text("a temporal map of ", map.size, " by ", map.offset, " cuts the filter's ", name_of(map.dim)),
                  text("TemporalMap(Sz(", name_of(map.dim), "),Sz(", name_of(map.dim), ")) ", name_of(map.dim)),
                  "map the whole filter, as MAESTRO wants it");
}

}  // namespace

std::string_view name_of(Dim dim) { return kNames[static_cast<size_t>(dim)]; }

Network parse_network(std::string_view text, std::string_view file) { return NetworkReader(text, file).network(); }

std::string network_text(const Network& network) {
  constexpr std::string_view kTypeNames[] = {"CONV", "DSCONV", "NGCONV", "GEMM"};
  std::string out = text("Network ", network.name, network.name.empty() ? "{\n" : " {\n");
  for (const Layer& layer : network.layers) {
    out += text("  Layer ", layer.name, " {\n    Type: ", kTypeNames[static_cast<size_t>(layer.type)], "\n");
    const auto list = [&](const char* heading, const PerDim<int64_t>& values, int64_t absent) {
      std::vector<std::string> parts;
      for (int i = 0; i < kDims; ++i)
        if (const Dim dim = static_cast<Dim>(i); values[dim] != absent)
          parts.push_back(text(name_of(dim), ": ", values[dim]));
      if (!parts.empty()) out += text("    ", heading, " { ", join(parts, ", "), " }\n");
    };
    list("Stride", layer.stride, 1);
    list("Dimensions", layer.size, 0);
    out += "    Dataflow {\n";
    for (const Directive& d : layer.dataflow) {
      if (d.kind == Directive::Kind::cluster)
        out += text("      Cluster(", d.size, ", P);\n");
      else
        out += text("      ",
                    d.kind == Directive::Kind::spatial ? "SpatialMap(" : "TemporalMap(",
                    d.size,
                    ",",
                    d.offset,
                    ") ",
                    name_of(d.dim),
                    ";\n");
    }
    out += "    }\n  }\n";
  }
  return out + "}\n";
}

}  // namespace sator::formats::maestro
