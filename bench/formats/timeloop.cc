// How many mappings per second Timeloop's model is evaluated for, parsed and unparsed, on one thread.
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "base/text.h"
#include "formats/timeloop/evaluate.h"

namespace {

using namespace sator;
using namespace sator::formats::timeloop;

constexpr std::string_view kArchitecture = R"(architecture:
  version: 0.4
  nodes:
  - !Component {name: DRAM, class: DRAM, attributes: {width: 64, datawidth: 8, read_bandwidth: 8, write_bandwidth: 8}}
  - !Component
    name: GLB
    class: SRAM
    attributes: {depth: 32768, width: 64, datawidth: 8, read_bandwidth: 256, write_bandwidth: 256}
  - !Container {name: PE, spatial: {meshX: 16, meshY: 16}}
  - !Component {name: RF, class: regfile, attributes: {depth: 512, width: 8, datawidth: 8}}
  - !Component {name: MACC, class: intmac}
)";

constexpr std::string_view kGemm = R"(problem:
  shape:
    name: GEMM
    dimensions: [M, N, K]
    data_spaces:
    - {name: A, projection: [[[M]], [[K]]]}
    - {name: B, projection: [[[K]], [[N]]]}
    - {name: Z, projection: [[[M]], [[N]]], read_write: true}
  instance: {M: 512, N: 768, K: 768}
)";

constexpr std::string_view kConvolution = R"(problem:
  instance: {C: 64, M: 64, R: 3, S: 3, N: 1, P: 56, Q: 56}
)";

constexpr std::string_view kErt = R"(ERT:
  version: 0.4
  tables:
  - {name: top.DRAM, actions: [{name: read, energy: 512}, {name: write, energy: 512}]}
  - {name: top.GLB, actions: [{name: read, energy: 18}, {name: write, energy: 14}, {name: leak, energy: 0.01}]}
  - {name: top.RF, actions: [{name: read, energy: 0.1}, {name: write, energy: 0.1}]}
  - {name: top.MACC, actions: [{name: compute, energy: 0.3}]}
)";

constexpr std::string_view kGemmMapping = R"(mapping:
- {target: DRAM, type: temporal, factors: M=4 N=3 K=2, permutation: KNM}
- {target: GLB, type: temporal, factors: M=4 N=2 K=96, permutation: KMN}
- {target: inter_PE_spatial, type: spatial, factors: M=16 N=16, permutation: MNK, split: 1}
- {target: RF, type: temporal, factors: M=2 N=8 K=4, permutation: MNK}
)";

constexpr std::string_view kConvolutionMapping = R"(mapping:
- {target: DRAM, type: temporal, factors: M=4 P=4 Q=2, permutation: QPMCRSN}
- {target: GLB, type: temporal, factors: C=16 P=14 Q=4, permutation: QPCMRSN}
- {target: inter_PE_spatial, type: spatial, factors: Q=7 M=2 C=4 S=3, permutation: QMCSRNP, split: 2}
- {target: RF, type: temporal, factors: M=8 R=3, permutation: RMCSNPQ}
)";

void show(const char* name, double count, double seconds, const char* unit) {
  std::printf("%-52s %14s %s/s   %10.3f us each\n",
              name,
              grouped(static_cast<int64_t>(count / seconds)).c_str(),
              unit,
              seconds / count * 1e6);
}

/// Seconds that this thread computed, which other work on the machine does not stretch.
template <class Body>
double seconds(Body&& body) {
  auto now = [] {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  double start = now();
  body();
  return now() - start;
}

void run(const char* name, std::string_view problem, std::string_view mapping, int evaluations, int parses) {
  Texts texts{kArchitecture, problem, mapping, kErt};
  Input input = parse(texts);
  Model model(input.workload, input.architecture);
  Figures figures;
  double sum = 0;  // so that nothing is dropped
  std::mt19937 random(7);
  // A mapper exchanges loops and factors between evaluations; orders alone keep every mapping legal.
  double evaluating = seconds([&] {
    for (int i = 0; i < evaluations; ++i) {
      std::vector<Loop>& loops = input.mapping.levels[1 + random() % (input.mapping.levels.size() - 1)].temporal;
      if (loops.size() > 1) std::swap(loops[0], loops[random() % loops.size()]);
      if (model.evaluate(input.mapping, figures)) std::abort();
      sum += figures.energy_pj + static_cast<double>(figures.cycles);
    }
  });
  show(text(name, ": evaluated, parsed once").c_str(), evaluations, evaluating, "mappings");
  double parsing = seconds([&] {
    for (int i = 0; i < parses; ++i) {
      Input again = parse(texts);
      Model fresh(again.workload, again.architecture);
      if (fresh.evaluate(again.mapping, figures)) std::abort();
      sum += figures.energy_pj;
    }
  });
  show(text(name, ": read from YAML and evaluated").c_str(), parses, parsing, "inputs");
  if (sum == 0) std::abort();
}

}  // namespace

int main() {
  run("GEMM 512x768x768 on 3 levels", kGemm, kGemmMapping, 2'000'000, 500);
  run("convolution 64x64x3x3x56x56 on 3 levels", kConvolution, kConvolutionMapping, 100'000, 500);
  std::printf(
      "Timeloop's own mapper: about 1,200 mappings/s and thread; its model, one process per mapping: about 6/s\n");
}
