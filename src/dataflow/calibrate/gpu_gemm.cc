#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "dataflow/calibrate/gemm_row.h"
#include "dataflow/calibrate/models.h"

namespace sator::dataflow {

namespace {

/// What data sheets say: multiprocessors, dense peaks, memory, board power, and the energy of logic against 45 nm at the
/// chip's node (the table of energies; 4N as N5 less a fifth, TSMC's figure for N4P).
struct Gpu {
  std::string_view name;  // a device whose name begins so
  double multiprocessors, half_tflops, float_tflops, gbytes_per_s, watts, node_factor;
};

constexpr Gpu kGpus[] = {
    {"NVIDIA A100-PCIE-40GB", 108, 312, 19.5, 1555, 250, 0.20},
    {"NVIDIA A100 80GB PCIe", 108, 312, 19.5, 1935, 300, 0.20},
    {"A100", 108, 312, 19.5, 2039, 400, 0.20},
    {"NVIDIA H100", 132, 989, 66.9, 3350, 700, 0.12},
    {"H100", 132, 989, 66.9, 3350, 700, 0.12},
    {"NVIDIA H200", 132, 989, 66.9, 4800, 700, 0.12},
    {"H200", 132, 989, 66.9, 4800, 700, 0.12},
    {"A40", 84, 149.7, 37.4, 696, 300, 0.22},
    {"NVIDIA L4", 58, 121, 30.3, 300, 72, 0.12},
    {"Tesla T4", 40, 65, 8.1, 320, 70, 0.27},
    {"Tesla V100-PCIE-32GB", 80, 112, 14.1, 900, 250, 0.27},
    {"Tesla P100-PCIE-16GB", 56, 18.7, 9.5, 732, 250, 0.30},
    {"Tesla P4", 20, 5.5, 5.5, 192, 75, 0.30},
};

// Per multiprocessor: peak, and power / node.
enum Feature {
  kM,
  kN,
  kK,
  kBytes,
  kMultiprocessors,
  kPeak,
  kPower,
  kRate,
  kIntegers  // 1 for products of integers
};

struct Tile {
  double height, width;
};
constexpr Tile kTiles[] = {{256, 128},
                           {128, 256},
                           {128, 128},
                           {256, 64},
                           {64, 256},
                           {128, 64},
                           {64, 128},
                           {64, 64},
                           {32, 64},
                           {64, 32},
                           {32, 128},
                           {128, 32}};
constexpr double kCuts[] = {1, 2, 3, 4, 6, 8};  // of the reduction, whose parts are summed up in memory

enum Constant {
  kShare,
  kOperands,
  kPerTile,
  kMemoryShare,
  kStart,
  kSums,
  kTail,
  kUnhidden,
  kHides,
  kEnergy,
  kIntegerShare,
  kIntegerMemory
};

/// Octaves of M, N and K over which kernels of a library resemble each other.
const std::vector<double> kReach = {0.3, 0.5, 2};

double seconds(const std::vector<double>& c, const std::vector<double>& f) {
  const bool integers = f[kIntegers] > 0;
  const double share = c[kShare] * (integers ? c[kIntegerShare] : 1);
  const double memory_share = c[kMemoryShare] * (integers ? c[kIntegerMemory] : 1);
  const double rate = std::min(f[kPeak] * share, f[kPower] / (c[kEnergy] * 1e-12));
  double tiles = 1e300;
  for (const Tile& t : kTiles) {
    const double count = std::ceil(f[kM] / t.height) * std::ceil(f[kN] / t.width);
    const double beside = 1 + c[kOperands] * (32 / t.height + 32 / t.width);
    for (double cut : kCuts) {
      const double turns = count * cut / f[kMultiprocessors];
      // The last wave takes what its fullest multiprocessor needs, as far as others do not help out.
      const double waves = std::max(1.0, turns) + (std::ceil(turns) - turns) * c[kTail];
      const double each = 2 * t.height * t.width * std::ceil(f[kK] / cut) / rate * beside + c[kPerTile] * 1e-6;
      const double sums = cut > 1 ? c[kSums] * 8 * cut * f[kM] * f[kN] / f[kRate] : 0;
      tiles = std::min(tiles, waves * each + sums);
    }
  }
  const double memory = f[kBytes] / (f[kRate] * memory_share), longer = std::max(tiles, memory);
  const double unhidden = std::min(1.0, c[kUnhidden] / (1 + longer / (c[kHides] * 1e-6)));
  return c[kStart] * 1e-6 + longer + std::min(tiles, memory) * unhidden;
}

const Gpu* find_gpu(const std::string& device) {
  for (const Gpu& g : kGpus)
    if (device.starts_with(g.name)) return &g;
  return nullptr;
}

}  // namespace

BoundModel bind_gpu_gemm(const std::vector<Row>& rows, const Chip* chip) {
  BoundModel bound{.parameters = {}, .predict = seconds, .samples = {}, .rows = {}, .reach = kReach};
  bool floats = false, integers = false;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::optional<GemmRow> row = gemm_row(rows[i]);
    if (!row) continue;
    std::string device = row->device;
    if (device.empty() && chip)
      for (char c : chip->name) device += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    const Gpu* gpu = find_gpu(device);
    if (!gpu) continue;
    const bool single = row->bits == 32;
    floats |= single;
    integers |= !row->is_float;
    const double peak = (single ? gpu->float_tflops : gpu->half_tflops * (row->bits == 8 ? 2 : 1)) * 1e12;
    const double m = row->m * row->batch, n = row->n, k = row->k, width = row->bits / 8;
    const double bytes = row->batch * (row->m * k + k * n) * width + m * n * row->bits_out / 8;
    bound.samples.push_back({row->group,
                             {m,
                              n,
                              k,
                              row->weights_shared ? (m * k + n * k) * width + m * n * row->bits_out / 8 : bytes,
                              gpu->multiprocessors,
                              peak / gpu->multiprocessors,
                              gpu->watts / gpu->node_factor / gpu->multiprocessors,
                              gpu->gbytes_per_s * 1e9,
                              row->is_float ? 0.0 : 1.0},
                             row->seconds});
    if (Sample& s = bound.samples.back(); m <= kMostExtent) {
      s.family = text(gpu->name, row->is_float ? " float" : " int", row->bits);
      s.at = {m, n, k};
    }
    bound.rows.push_back(i);
  }
  // Spreads: a factor of 1.65 for what differs from chip to chip, a tenth for a memory's rate, 1.4 for a launch.
  bound.parameters = {{"peak_share", "of the data sheet's peak", 0.9, 0.2, 1.5},
                      {"operand_cost", "of a 32 x 32 tile's operands, in its MACs", 0.3, 1e-3, 5, 0.5},
                      {"per_tile", "us", 0.5, 1e-3, 100, 0.5},
                      {"memory_share", "of the data sheet's rate", 0.85, 0.3, 1.2, 0.1},
                      {"start", "us", 4, 0.1, 50, 0.35},
                      {"sums_traffic", "times the partial sums' bytes", 3, 1e-3, 50, 0.5},
                      {"tail", "of an unfilled wave", 0.3, 1e-3, 1, 0.5},
                      {"unhidden", "of the shorter of tiles and memory, in short kernels", 0.5, 1e-3, 1, 0.5},
                      {"hides_after", "us", 50, 1, 1e4, 1},
                      {"energy", "pJ per operation at 45 nm", floats ? 63.0 : 2.0, 0.1, 500}};
  if (floats)  // of products without tensor cores less is known beforehand
    for (Parameter& p : bound.parameters) p.spread = 0;
  if (integers) {
    bound.parameters.push_back({"integer_share", "of floats' share of the peak", 1, 0.1, 2, 0.5});
    bound.parameters.push_back({"integer_memory", "of floats' share of the rate", 1, 0.1, 2, 0.5});
  }
  return bound;
}

}  // namespace sator::dataflow
