#include "explore/area.h"

#include <algorithm>

namespace sator::explore {

namespace {

constexpr double kSplittable = 2.5, kFloat16 = 3000, kFloat32 = 11884;  // um^2 at 45 nm
constexpr double kRegisterBit = 2.5, kMemoryBit = 0.58;

double mac_um2(const Precision& p) {
  const double bits = std::max(p.weight_bits, p.activation_bits);
  if (p.is_float) return bits > 16 ? kFloat32 : kFloat16;
  return 111.7 + 13.25 * (p.weight_bits + p.activation_bits) / 2 + 7.34 * p.weight_bits * p.activation_bits;
}

}  // namespace

std::vector<AreaPart> area_parts(const Chip& chip) {
  const double scale = (chip.node_nm / 45.0) * (chip.node_nm / 45.0) / 1e6;  // mm^2 per um^2 at 45 nm
  // Units are as large as their largest precision; of several widths they share the parts.
  double mac = 0;
  for (const Precision& p : chip.precisions) mac = std::max(mac, mac_um2(p) * std::max(1.0, p.macs_per_pe_per_cycle));
  if (chip.precisions.size() > 1) {
    double widest = 0;
    for (const Precision& p : chip.precisions) widest = std::max(widest, mac_um2(p));
    mac = std::max(widest * kSplittable, mac);
  }
  const double pes = static_cast<double>(chip.pes());
  std::vector<AreaPart> parts = {
      {"array", pes * mac * scale},
      {"registers", pes * 8 * static_cast<double>(chip.pe.capacity_bytes) * kRegisterBit * scale},
      {"vector", static_cast<double>(chip.vector.lanes) * kFloat32 * scale}};
  for (size_t m = 1; m < chip.memories.size(); ++m) {
    const Memory& memory = chip.memories[m];
    const double copies = memory.per_core ? static_cast<double>(chip.cores) : 1;
    parts.push_back(
        {memory.name, 8 * copies * static_cast<double>(memory.capacity_bytes.value_or(0)) * kMemoryBit * scale});
  }
  return parts;
}

double area_mm2(const Chip& chip, const Chip& base) {
  auto sum = [](const Chip& of) {
    double mm2 = 0;
    for (const AreaPart& part : area_parts(of)) mm2 += part.mm2;
    return mm2;
  };
  return base.area_mm2 ? std::max(0.0, *base.area_mm2 + sum(chip) - sum(base)) : sum(chip);
}

}  // namespace sator::explore
