#include "dataflow/mapping/at_pes.h"

namespace sator::dataflow {

const Array& one_pe() {
  static const Array array{Domain::box({"p"}, {1}), {}};
  return array;
}

Array pes_of(const Chip& chip, bool cores) {
  if (cores) return {Domain::box({"core", "row", "column"}, {chip.cores, chip.rows, chip.columns}), {}};
  return {Domain::box({"row", "column"}, {chip.rows, chip.columns}), {}};
}

Mapping with_core(Mapping mapping, const std::optional<QuasiAffine>& core) {
  if (core) mapping.space.insert(mapping.space.begin(), *core);
  return mapping;
}

bool skews(const Mapping& mapping, const Chip& chip) { return chip.wires == Wires::systolic && !mapping.time.empty(); }

Problem problem_at_pes(const Statement& statement, const Mapping& mapping, const Chip& chip,
                       const std::optional<QuasiAffine>& core) {
  Problem problem{statement, with_core(mapping, core), pes_of(chip, core.has_value())};
  if (chip.wires != Wires::none) problem.array.interconnect = {link::shift({-1, 0}), link::shift({0, -1})};
  if (chip.wires != Wires::none && core)
    problem.array.interconnect = {link::shift({0, -1, 0}), link::shift({0, 0, -1})};
  if (skews(mapping, chip))
    for (const QuasiAffine& p : mapping.space) problem.mapping.time.back() = problem.mapping.time.back() + p;
  return problem;
}

}  // namespace sator::dataflow
