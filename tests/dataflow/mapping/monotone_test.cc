// A chip with more of a resource is no slower: on random products and shipped chips.
#include <gtest/gtest.h>

#include "base/text.h"
#include "dataflow/cost/cost.h"
#include "dataflow/programs/matmul.h"
#include "dataflow/random_choice.h"
#include "shipped_chips.h"

namespace sator::dataflow {
namespace {

Matmul draw(Random& random) {
  static constexpr int64_t kSizes[] = {1, 2, 3, 7, 8, 13, 31, 33, 64, 97, 100, 128, 255, 257, 512, 769, 1000, 2048};
  static constexpr int kBits[] = {2, 4, 8};
  Matmul m{.i = one_of(random, kSizes), .j = one_of(random, kSizes), .k = one_of(random, kSizes)};
  if (random() % 4 == 0) return m;
  m.scale = random() % 2 == 0 ? ScalePer::channel : ScalePer::group;
  m.group = random() % 2 == 0 ? 32 : 128;
  m.weight_bits = one_of(random, kBits);
  if (random() % 2 == 0) m.activation_bits = 8;
  return m;
}

/// What is allowed beside a cycle: of mappings within half a thousandth the one of less energy is taken, and tiles are whole
/// turns of the array, which a larger array has of other sizes.
constexpr double kAsQuick = 1.0005, kOtherTurns = 1.006;

struct Change {
  const char* words;
  double allowed;
  void (*make)(Chip&, Random&);
};
void quicken(Memory& memory) { memory.read_bytes_per_cycle *= 2, memory.write_bytes_per_cycle *= 2; }
constexpr Change kChanges[] = {
    {"twice the lanes", kAsQuick, [](Chip& c, Random&) { c.vector.lanes *= 2; }},
    {"memories twice as quick",
     kAsQuick,
     [](Chip& c, Random&) {
       for (Memory& m : c.memories) quicken(m);
     }},
    {"one memory twice as quick",
     kAsQuick,
     [](Chip& c, Random& random) { quicken(c.memories[random() % c.memories.size()]); }},
    {"twice the rows", kOtherTurns, [](Chip& c, Random&) { c.rows *= 2; }},
    {"twice the columns", kOtherTurns, [](Chip& c, Random&) { c.columns *= 2; }},
    {"memories twice as large",
     kAsQuick,
     [](Chip& c, Random&) {
       for (Memory& m : c.memories)
         if (m.capacity_bytes) *m.capacity_bytes *= 2;
     }},
};

TEST(Monotone, AChipWithMoreIsNoSlower) {
  const std::vector<std::string> names = all_chips();
  int compared = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Random random(seed);
    const std::string& name = names[random() % names.size()];
    Chip chip = shipped(name);
    chip.calibration = {};
    const Matmul m = draw(random);
    const Change& change = one_of(random, kChanges);
    Chip more = chip;
    change.make(more, random);
    const Kernel kernel = matmul_kernel(m);
    const KernelCost before = CostEngine(chip).cost(kernel), after = CostEngine(more).cost(kernel);
    ++compared;
    EXPECT_LE(after.unrounded_cycles, before.unrounded_cycles * change.allowed + 1)
        << "seed " << seed << ": " << name << " with " << change.words << ", " << m.i << " x " << m.j << " x " << m.k
        << ", scale " << static_cast<int>(m.scale) << " " << m.group << " " << m.weight_bits << " bits, activations "
        << m.activation_bits << ": " << (after.unrounded_cycles / before.unrounded_cycles - 1) * 100 << " %; "
        << before.bound << " " << after.bound;
  }
  EXPECT_EQ(compared, 400);
}

}  // namespace
}  // namespace sator::dataflow
