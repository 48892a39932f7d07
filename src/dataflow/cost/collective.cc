#include "dataflow/cost/collective.h"

#include "base/error.h"
#include "base/text.h"

namespace sator::dataflow {

namespace {

const ChipLink& link_of(const Chip& chip, int64_t chips) {
  if (!chip.link)
    fail({.what = text(chip.name, " has no link to other chips"),
          .needs = "a table [link] in the chip's file",
          .hint = "describe the link, or use one chip"});
  if (chips < 1 || chips > chip.link->chips)
    fail({.what = text(chips, " chips over ", chip.link->name),
          .needs = text("from 1 to ", chip.link->chips, " chips"),
          .hint = "use fewer chips, or raise link.chips"});
  return *chip.link;
}

}  // namespace

double all_reduce_s(const Chip& chip, int64_t chips, double bytes) {
  const ChipLink& link = link_of(chip, chips);
  const double others = static_cast<double>(chips - 1);
  return 2 * others / static_cast<double>(chips) * bytes / link.bytes_per_second + 2 * others * link.latency_s;
}

double all_reduce_j(const Chip& chip, int64_t chips, double bytes) {
  return 2 * static_cast<double>(chips - 1) * 8 * bytes * link_of(chip, chips).energy_per_bit.picojoules * 1e-12;
}

}  // namespace sator::dataflow
