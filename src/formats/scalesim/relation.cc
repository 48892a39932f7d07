#include "formats/scalesim/relation.h"

namespace sator::formats {

using namespace dataflow;

Problem scalesim_problem(const ScalesimConfig& config, const ScalesimLayer& layer) {
  const QuasiAffine m = variable(0), n = variable(1), k = variable(2);
  Problem problem;
  problem.statement.domain = Domain::box({"m", "n", "k"}, {layer.m, layer.n, layer.k});
  problem.statement.accesses = {{"A", Role::read, {{m, k}}}, {"B", Role::read, {{k, n}}}, {"C", Role::write, {{m, n}}}};
  struct Axes {
    QuasiAffine rows, cols, streamed;
  };
  const Axes axes = config.dataflow == Stationary::output   ? Axes{m, n, k}
                    : config.dataflow == Stationary::weight ? Axes{k, n, m}
                                                            : Axes{k, m, n};
  const QuasiAffine row = mod(axes.rows, config.rows), col = mod(axes.cols, config.cols);
  problem.mapping.space = {row, col};
  problem.mapping.time = {
      floor_div(axes.cols, config.cols), floor_div(axes.rows, config.rows), axes.streamed + row + col};
  problem.array.pes = Domain::box({"row", "col"}, {config.rows, config.cols});
  problem.array.interconnect = {link::shift({0, -1}), link::shift({-1, 0})};
  return problem;
}

}  // namespace sator::formats
