#include "formats/maestro/answer.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "formats/input_keys.h"
#include "formats/maestro/cost.h"

namespace sator::formats {
namespace {

using nlohmann::json;

/// As a C++ stream prints it; null where it is no number.
json six_digits(double value) {
  if (!std::isfinite(value)) return nullptr;
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.6g", value);
  return std::strtod(digits, nullptr);
}

json to_json(const maestro::Layer& layer, const maestro::LayerCost& cost, const maestro::Hardware& hardware) {
  json out{{"layer", layer.name},
           {"num_pes", hardware.pes},
           {"cycles", cost.cycles},
           {"energy_nJ_or_MACunits", six_digits(cost.energy_nj)},
           {"macs", cost.macs},
           {"macs_per_cycle", six_digits(static_cast<double>(cost.macs) / static_cast<double>(cost.cycles))},
           {"avg_bw", six_digits(cost.average_words_per_cycle)},
           {"peak_bw", cost.peak_words_per_cycle},
           {"avg_pes", six_digits(cost.average_pes)}};
  const auto add = [&](const char* name, const maestro::TensorTraffic& t) {
    out[text(name, "_l1_read")] = t.l1_reads;
    out[text(name, "_l1_write")] = t.l1_writes;
    out[text(name, "_l2_read")] = t.l2_reads;
    out[text(name, "_l2_write")] = t.l2_writes;
    out[text(name, "_reuse_factor")] = six_digits(t.reuse_factor());
  };
  add("input", cost.input);
  add("filter", cost.filter);
  add("output", cost.output);
  return out;
}

}  // namespace

json answer_maestro(const json& input) {
  const InputKeys keys(input, "maestro");
  keys.only({"mapping", "hardware"});
  const std::string mapping = keys.text("mapping"), hardware_file = keys.text("hardware");
  const maestro::Network network = maestro::parse_network(mapping);
  const maestro::Hardware hardware = maestro::parse_hardware(hardware_file);
  const std::vector<maestro::LayerCost> costs = maestro::cost_of(network, hardware);
  json layers = json::array();
  for (size_t i = 0; i < costs.size(); ++i) layers.push_back(to_json(network.layers[i], costs[i], hardware));
  json out = costs.size() == 1 ? layers[0] : json::object();
  out["network"] = network.name;
  out["layers"] = std::move(layers);
  return out;
}

}  // namespace sator::formats
