#include "study/result.h"

namespace sator::study {

const std::array<ComponentName, kComponentCount>& components() {
  // clang-format off
  static const std::array<ComponentName, kComponentCount> rows = {{
      {Component::array,       "array",       "MAC array",         "multiply-accumulates, fill, drain and stationary loads of the array"},
      {Component::weights,     "weights",     "weight bytes",      "waiting for weights to move"},
      {Component::scales,      "scales",      "scale traffic",     "waiting for scales and zero points to move"},
      {Component::activations, "activations", "activation bytes",  "waiting for activations to move"},
      {Component::dequantize,  "dequantize",  "dequantize",        "codes to numbers on the vector unit"},
      {Component::rescale,     "rescale",     "rescale",           "integer sums to numbers on the vector unit"},
      {Component::quantize,    "quantize",    "activation quantize", "activations to codes on the vector unit"},
      {Component::attention,   "attention",   "attention",         "everything in kernels that touch the KV cache"},
      {Component::vector,      "vector",      "vector work",       "element-wise work and reductions on the vector unit"},
      {Component::launch,      "launch",      "launch",            "before a kernel's first work"},
  }};
  // clang-format on
  return rows;
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
