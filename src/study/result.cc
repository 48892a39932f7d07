#include "study/result.h"

#include <map>

namespace sator::study {

const std::array<ComponentName, kComponentCount>& components() {
  // clang-format off
  static const std::array<ComponentName, kComponentCount> rows = {{
      {Component::array,       "array",       "MAC array",           "M", false, "multiply-accumulates, fill, drain and stationary loads of the array"},
      {Component::weights,     "weights",     "weight bytes",        "W", false, "waiting for weights to move"},
      {Component::scales,      "scales",      "scale traffic",       "S", false, "waiting for scales and zero points to move"},
      {Component::activations, "activations", "activation bytes",    "A", false, "waiting for activations to move"},
      {Component::dequantize,  "dequantize",  "dequantize",          "D", true,  "codes to numbers on the vector unit"},
      {Component::rescale,     "rescale",     "rescale",             "R", true,  "integer sums to numbers on the vector unit"},
      {Component::quantize,    "quantize",    "activation quantize", "Q", true,  "activations to codes on the vector unit"},
      {Component::attention,   "attention",   "attention",           "T", true,  "everything in kernels that touch the KV cache"},
      {Component::vector,      "vector",      "vector work",         "V", true,  "element-wise work and reductions on the vector unit"},
      {Component::launch,      "launch",      "launch",              "L", false, "before a kernel's first work"},
      {Component::links,       "links",       "links",               "N", false, "sums over several chips on their way"},
  }};
  // clang-format on
  return rows;
}

void add_durations(const std::vector<HostCall>& calls, std::string_view phase, std::vector<KernelRow>& rows) {
  std::map<std::string_view, std::vector<double>> durations;
  for (const HostCall& call : calls)
    if (call.phase == phase) durations[call.function].push_back(call.duration_us);
  std::map<std::string_view, int64_t> launches;
  for (const KernelRow& row : rows) launches[row.function] += row.count;
  std::map<std::string_view, size_t> taken;
  for (KernelRow& row : rows) {
    const std::vector<double>& all = durations[row.function];
    if (static_cast<int64_t>(all.size()) != launches[row.function] || row.count < 1) continue;
    double sum = 0;
    for (int64_t i = 0; i < row.count; ++i) sum += all[taken[row.function]++];
    row.duration_us = sum / static_cast<double>(row.count);
  }
}

KernelTally tally(const Study& study) {
  KernelTally sum;
  for (const SchemeResult& scheme : study.schemes)
    for (const ChipResult& chip : scheme.chips)
      for (const PhaseName& phase : kPhases) {
        const PhaseResult& result = chip.*phase.result;
        sum.kernels += result.kernels;
        sum.costed += result.kernels_costed;
        sum.checked += result.kernels_checked;
      }
  return sum;
}

}  // namespace sator::study
