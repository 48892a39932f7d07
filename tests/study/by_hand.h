#pragma once

#include "study/result.h"

namespace sator::study {

/// A scheme on chips of 1 GHz, by latencies in cycles: all of prefill is the array's, all of decode weight bytes.
struct SchemeByHand {
  std::string name;
  std::optional<double> perplexity;
  int64_t prefill_cycles = 0, decode_cycles = 0;
};

inline PhaseResult phase_by_hand(Component component, int64_t cycles) {
  PhaseResult phase;
  phase.cost.latency_cycles = cycles;
  phase.cost.latency_s = static_cast<double>(cycles) / 1e9;
  phase.cost.macs = 1000 * cycles;
  phase.cost.mac_units_used = 64;
  phase.cost.bound = "dram";
  at(phase.cost.components, component).latency_cycles = cycles;
  phase.cost.levels = {{.name = "dram", .read_bits = 80 * cycles, .by_kind = {.weight = 80 * cycles}}};
  phase.cost.levels[0].achieved_bytes_per_s = 10e9;
  phase.cost.energy_j = 1e-9 * static_cast<double>(cycles);
  phase.cost.energy = {{"dram", phase.cost.energy_j, "a table, 7 nm"}};
  return phase;
}

inline Study study_by_hand(const std::vector<SchemeByHand>& schemes, const std::vector<std::string>& chips) {
  Study study;
  study.model = {"tiny", "models/tiny", "gpt2", 2, 100, 64, 12345};
  study.protocol = {.text = "text.txt",
                    .windows = 4,
                    .window_tokens = 512,
                    .prompt_len = 16,
                    .gen_len = 10,
                    .decode_context = 21,
                    .threads = 1,
                    .host = "a processor",
                    .version = "sator 0"};
  for (const std::string& chip : chips)
    study.chips.push_back(
        {.name = chip, .rows = 8, .columns = 8, .node_nm = 7, .clock_hz = 1e9, .outer_bytes_per_s = 1e10});
  for (const SchemeByHand& s : schemes) {
    SchemeResult& result = study.schemes.emplace_back();
    result.name = s.name;
    result.perplexity = s.perplexity;
    for (const std::string& chip : chips)
      result.chips.push_back({chip,
                              phase_by_hand(Component::array, s.prefill_cycles),
                              phase_by_hand(Component::weights, s.decode_cycles)});
  }
  return study;
}

}  // namespace sator::study
