// How quickly products are mapped on described chips on one thread, and how the mapping found compares with the best of
// random tiles. Usage: dataflow_mapper_bench [SEED]
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>

#include "base/error.h"
#include "base/text.h"
#include "dataflow/cost/cost.h"
#include "dataflow/mapping/nest_search.h"
#include "dataflow/programs/matmul.h"

using namespace sator;
using namespace sator::dataflow;

namespace {

constexpr int kTiles = 20, kProducts = 6;

double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

Matmul random_matmul(std::mt19937& draw) {
  static constexpr int64_t kSizes[] = {1, 5, 16, 33, 64, 100, 128, 200, 512, 768, 1000, 2304, 3072, 4096};
  Matmul m;
  for (int64_t* s : {&m.i, &m.j, &m.k}) *s = kSizes[draw() % std::size(kSizes)];
  if (draw() % 4 == 0) return m;
  m.scale = draw() % 3 == 0 ? ScalePer::group : ScalePer::channel;
  m.group = 32;
  m.weight_bits = draw() % 2 ? 8 : 4;
  if (draw() % 2 && m.scale != ScalePer::group) m.activation_bits = 8;
  return m;
}

/// Nests that are estimated per second: the product's own search, without the engine.
double estimates_per_second() {
  const Chip chip = find_chip("gemmini16");
  const Matmul m{.i = 512, .j = 3072, .k = 768, .float_bits = 8};
  const Kernel kernel = matmul_kernel(m);
  const Work& work = kernel.work[0];
  const Product product = *product_of(work);
  const Pace pace;
  const CoreShare share(work, product, chip, pace, work.statement.domain.extent);
  const Beside beside;
  size_t tried = 0;
  const double start = now();
  while (now() - start < 0.5) {
    NestSearch search(share, beside);
    double known = search.climb_from_coarse_tiles();
    search.begin_branches(known);
    while (search.branches() < 6000 && search.branch(known)) known = std::min(known, search.least_latency_seen());
    search.best(1, known);
    tried += search.tried();
  }
  return static_cast<double>(tried) / (now() - start);
}

}  // namespace

int main(int argc, char** argv) {
  std::mt19937 draw(argc > 1 ? static_cast<uint32_t>(std::atoi(argv[1])) : 1);
  int products = 0, tiles = 0, worse = 0;
  double mapping = 0, worst = 1, gain = 0;
  for (const std::string& name : shipped_chips()) {
    const Chip chip = find_chip(name);
    if (chip.tenet) continue;  // its mapping is that of its files
    Chip tiling = chip;
    double here = 0, slowest = 0;
    for (int n = 0; n < kProducts; ++n) {
      const Matmul m = random_matmul(draw);
      const Kernel kernel = matmul_kernel(m);
      CostEngine engine(chip);
      const double start = now();
      const KernelCost found = engine.cost(kernel);
      const double spent = now() - start;
      here += spent;
      slowest = std::max(slowest, spent);
      ++products;
      double best = 0;
      std::array<int64_t, 3> best_tile{};
      for (int t = 0; t < kTiles; ++t) {
        std::array<int64_t, 3> tile{};
        const std::array<int64_t, 3> extent = {m.i, m.j, m.k};
        for (size_t x = 0; x < 3; ++x) {
          const int64_t steps[] = {16, 1, chip.rows, chip.columns};
          const int64_t step = steps[draw() % 4];
          tile[x] = draw() % 5 == 0
                        ? 0
                        : std::min<int64_t>(extent[x], step * (1 + draw() % std::max<int64_t>(1, extent[x] / step)));
          if (draw() % 3 == 0) tile[x] = std::min<int64_t>(extent[x], step << (draw() % 6));
        }
        try {
          tiling.tile = tile;
          const KernelCost tiled = CostEngine(tiling).cost(kernel);
          ++tiles;
          if (best == 0 || tiled.unrounded_cycles < best) best = tiled.unrounded_cycles, best_tile = tile;
        } catch (const Error&) {
        }
      }
      if (best == 0) continue;
      const double ratio = found.unrounded_cycles / best;
      gain += std::log(ratio);
      if (ratio > 1.0005) {
        ++worse;
        printf("  %s: %s x %s x %s, tile %s: %.4f times\n",
               name.c_str(),
               text(m.i).c_str(),
               text(m.j).c_str(),
               text(m.k).c_str(),
               join(best_tile, ",").c_str(),
               ratio);
      }
      worst = std::max(worst, ratio);
    }
    mapping += here;
    printf("%-20s %.2f ms per product, at most %.2f\n", name.c_str(), here / kProducts * 1e3, slowest * 1e3);
  }
  printf("%d products, %.2f ms each; %d tiles; %d products worse than the best tile, at most %.3f times; mean %.3f\n",
         products,
         mapping / products * 1e3,
         tiles,
         worse,
         worst,
         std::exp(gain / products));
  printf("%.0f nests estimated per second\n", estimates_per_second());
}
