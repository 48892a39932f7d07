#include "formats/scalesim/answer.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "formats/input_keys.h"
#include "formats/scalesim/memory.h"

namespace sator::formats {
namespace {

using nlohmann::json;

/// As SCALE-Sim's figures are stored: six decimals.
double six_decimals(double value) { return std::round(value * 1e6) / 1e6; }

json layer_description(const ScalesimLayer& layer) {
  json out{{"kind", layer.gemm ? "gemm" : "conv"}, {"name", layer.name}};
  if (layer.gemm) {
    out.update({{"M", layer.m}, {"N", layer.n}, {"K", layer.k}});
  } else {
    out.update({{"H", layer.ifmap_h},
                {"W", layer.ifmap_w},
                {"R", layer.filter_h},
                {"S", layer.filter_w},
                {"C", layer.channels},
                {"K", layer.filters},
                {"stride", layer.stride}});
  }
  return out;
}

void add_compute(json& out, const ScalesimConfig& config, const ScalesimLayer& layer, const ScalesimCompute& compute) {
  out["layer"] = layer_description(layer);
  out["name"] = layer.name;
  out["M"] = layer.m;
  out["N"] = layer.n;
  out["K"] = layer.k;
  out["array_h"] = config.rows;
  out["array_w"] = config.cols;
  out["dataflow"] = to_string(config.dataflow);
  out["folds"] = compute.folds;
  out["compute_cycles"] = out["closed_form"] = out["closed_form_compute"] = compute.cycles;
  out["macs"] = compute.macs;
  out["ifmap_sram_reads"] = compute.ifmap_sram_reads;
  out["filter_sram_reads"] = compute.filter_sram_reads;
  out["ofmap_sram_writes"] = compute.ofmap_sram_writes;
  out["ofmap_sram_writes_as_reported"] = compute.ofmap_sram_writes_reported;
  out["mapping_eff_pct"] = six_decimals(100 * compute.mapping_efficiency);
  out["compute_util_pct"] = six_decimals(100 * compute.compute_utilization);
}

void add_dram(json& out, const char* name, const char* words_key, const ScalesimDram& dram) {
  out[words_key] = dram.words;
  out[text("avg_", name, "_dram_bw")] = six_decimals(dram.words_per_cycle());
  out[text(name, "_dram_start_cycle")] = dram.start_cycle;
  out[text(name, "_dram_stop_cycle")] = dram.stop_cycle;
}

void add_memory(json& out, const ScalesimConfig& config) {
  const ScalesimMemory& memory = config.memory;
  out["mode"] = memory.user_bandwidth ? "USER" : "CALC";
  out["dram_words_per_cycle"] = memory.ifmap_words_per_cycle;
  if (memory.ifmap_kb == memory.filter_kb && memory.ifmap_kb == memory.ofmap_kb) out["sram_KB_each"] = memory.ifmap_kb;
}

void add_run(json& out, const ScalesimCompute& compute, const ScalesimMemoryRun& run) {
  out["overall_cycles"] = run.overall_cycles;
  out["total_cycles"] = run.total_cycles;
  out["stall_cycles"] = run.stall_cycles;
  out["overall_util_pct"] = six_decimals(100 * run.overall_utilization);
  add_dram(out, "ifmap", "ifmap_dram_reads", run.ifmap);
  add_dram(out, "filter", "filter_dram_reads", run.filter);
  add_dram(out, "ofmap", "ofmap_dram_writes", run.ofmap);
  out["closed_form_matches_total_minus_stall"] = run.total_cycles - run.stall_cycles == compute.cycles;
}

}  // namespace

json answer_scalesim(const json& input) {
  const InputKeys keys(input, "scalesim");
  // SCALE-Sim opens a layout only for layouts of the user's own, which the configuration cannot ask for.
  keys.only({"config", "topology", "layout", "gemm", "compat"});
  const std::string config_text = keys.text("config"), topology_text = keys.text("topology");
  const bool gemm = keys.flag("gemm");
  const bool as_reported = keys.choice("compat", {"scalesim"}) == "scalesim";
  const ScalesimConfig config = parse_scalesim_config(config_text);
  json layers = json::array();
  for (const ScalesimLayer& layer : parse_scalesim_topology(topology_text, gemm)) {
    const ScalesimCompute compute = scalesim_compute(config, layer);
    json out;
    add_compute(out, config, layer, compute);
    if (as_reported) out["ofmap_sram_writes"] = compute.ofmap_sram_writes_reported;
    add_memory(out, config);
    const auto run = scalesim_memory(config, layer);
    if (auto* done = std::get_if<ScalesimMemoryRun>(&run))
      add_run(out, compute, *done);
    else
      out["memory_refused"] = std::get<Reason>(run).what;
    layers.push_back(std::move(out));
  }
  return {{"layers", std::move(layers)}};
}

}  // namespace sator::formats
