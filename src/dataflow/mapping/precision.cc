#include "dataflow/mapping/precision.h"

#include <algorithm>
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

bool multiplies_16_bits_at_speed(const Chip& chip) {
  const PrecisionChoice narrow = choose_precision(chip, 16, true, 16, true),
                        wide = choose_precision(chip, 16, true, 32, true);
  auto rate = [](const PrecisionChoice& c) {
    return c.precision.macs_per_pe_per_cycle / static_cast<double>(c.passes);
  };
  if (narrow.passes > 1 || rate(narrow) <= rate(wide)) return false;
  return narrow.precision.is_float || std::ranges::none_of(chip.precisions, [&](const Precision& p) {
           return p.macs_per_pe_per_cycle > narrow.precision.macs_per_pe_per_cycle;
         });
}

}  // namespace sator::dataflow
