#include "dataflow/mapping/precision.h"

#include <tuple>

#include "base/text.h"

namespace sator::dataflow {

std::string width(int bits, bool is_float) { return text(is_float ? "float" : "int", bits); }

PrecisionChoice choose_precision(const Chip& chip, int weight_bits, bool weight_is_float, int activation_bits,
                                 bool activation_is_float) {
  const bool is_float = weight_is_float || activation_is_float;
  const Precision* best = nullptr;
  auto rank = [&](const Precision& p) {
    // A match of number kind, then the rate, then the narrowest.
    return std::tuple{p.is_float == is_float, p.macs_per_pe_per_cycle, -p.weight_bits - p.activation_bits};
  };
  for (const Precision& p : chip.precisions) {
    if (p.weight_bits < weight_bits || p.activation_bits < activation_bits) continue;
    if (!best || rank(p) > rank(*best)) best = &p;
  }
  PrecisionChoice choice;
  if (!best) {
    for (const Precision& p : chip.precisions)
      if (!best || p.weight_bits * p.activation_bits > best->weight_bits * best->activation_bits) best = &p;
    choice.passes = static_cast<int64_t>((weight_bits + best->weight_bits - 1) / best->weight_bits) *
                    ((activation_bits + best->activation_bits - 1) / best->activation_bits);
  }
  choice.precision = *best;
  const bool exact = best->weight_bits == weight_bits && best->activation_bits == activation_bits &&
                     best->is_float == is_float && choice.passes == 1;
  if (!exact) {
    choice.note = text(width(weight_bits, weight_is_float),
                       " x ",
                       width(activation_bits, activation_is_float),
                       " runs as ",
                       width(best->weight_bits, best->is_float),
                       " x ",
                       width(best->activation_bits, best->is_float));
    if (choice.passes > 1) choice.note += text(" in ", choice.passes, " passes");
  }
  return choice;
}

}  // namespace sator::dataflow
