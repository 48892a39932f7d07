#include "cli/chip_options.h"

#include "base/text.h"
#include "cli/matmul_options.h"

namespace sator::cli {

std::vector<Option> chip_options(ChipArguments& a) {
  return {{"--pe ROWSxCOLUMNS", "another size of the chip's array", &a.pe},
          {"--dataflow WHAT", "what stays in the PEs", &a.dataflow, false, {"os", "ws", "is"}},
          {"--tile I,J,K", "tiles of matmuls in the chip's memories; 0 for a whole extent", &a.tile}};
}

std::vector<Option> route_options(RouteArguments& a) {
  return {
      {"--routes", "compare the ways to bring the chip into the program: schedule, tensorize, patterns", &a.compare},
      {"--routes-host CHIP", text("the described chip that runs what a route leaves off [", a.host, "]"), &a.host}};
}

dataflow::ChipChanges changes_of(const ChipArguments& a) {
  dataflow::ChipChanges changes;
  if (a.pe) {
    const std::vector<int64_t> size = integers_of("--pe", *a.pe, 'x', 2, 1);
    changes.pe = {size[0], size[1]};
  }
  struct Word {
    const char* word;
    Stationary means;
  };
  static constexpr Word kWords[] = {{"os", Stationary::output}, {"ws", Stationary::weight}, {"is", Stationary::input}};
  for (const Word& w : kWords)
    if (a.dataflow == w.word) changes.dataflow = w.means;
  if (a.tile) {
    const std::vector<int64_t> tile = integers_of("--tile", *a.tile, ',', 3, 0);
    changes.tile = {tile[0], tile[1], tile[2]};
  }
  return changes;
}

}  // namespace sator::cli
