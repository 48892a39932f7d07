// Expected numbers: transformers 5.23, `ROPE_INIT_FUNCTIONS` and BLOOM's `build_alibi_tensor`, in float32.
#include <gtest/gtest.h>

#include <bit>

#include "llm/blocks.h"

namespace sator::llm {
namespace {

void expect_near(const std::vector<float>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 3e-7 * want[i]) << i;
}

using Kind = RopeScaling::Kind;
Rope rope(RopeScaling scaling, double theta = 10000) { return {.theta = theta, .dims = 8, .scaling = scaling}; }

TEST(Rope, Linear) {
  expect_near(rope_frequencies(rope({.kind = Kind::linear, .factor = 4}), 64), {0.25, 0.025, 0.0025, 0.00025});
}

TEST(Rope, DynamicFollowsTheBoundOfTheContext) {
  const Rope r = rope({.kind = Kind::dynamic, .factor = 2, .original_positions = 64});
  expect_near(rope_frequencies(r, 64), {1, 0.1, 0.01, 0.001});
  expect_near(rope_frequencies(r, 200), {1, 0.0575369596, 0.00331050158, 0.000190476188});
}

TEST(Rope, LongropeTakesItsLongFactorsBeyondTheOriginalPositions) {
  const Rope r = rope(
      {.kind = Kind::longrope, .original_positions = 64, .short_factor = {1, 1.5, 2, 4}, .long_factor = {2, 3, 8, 16}});
  expect_near(rope_frequencies(r, 64), {1, 0.0666666701, 0.005, 0.00025});
  expect_near(rope_frequencies(r, 65), {0.5, 0.0333333351, 0.00125, 6.25e-05});
}

TEST(Rope, Llama3) {
  const RopeScaling s = {.kind = Kind::llama3, .factor = 8, .original_positions = 64};
  expect_near(rope_frequencies(rope(s, 500000), 256), {1, 0.00470075384, 0.000176776681, 6.64786967e-06});
}

TEST(Rope, Yarn) {
  const RopeScaling s = {.kind = Kind::yarn, .factor = 4, .original_positions = 64};
  expect_near(rope_frequencies(rope(s), 256), {1, 0.0625, 0.0025, 0.00025});
}

// The bits of transformers' numbers, of 5.24 (tools/make_rope_references.py prints them): position 5000 moves an angle by 5000 times what a
// frequency is off, and logits leave the bound.
// torch's pow is within an ulp itself, so one number of a list may be another one's neighbour.
TEST(Rope, RoundsAsTransformersDoes) {
  struct Row {
    Rope rope;
    std::vector<uint32_t> bits;
  };
  const Row rows[] = {
      {{.theta = 10000, .dims = 80},
       {1065353216, 1061902616, 1059161707, 1056984526, 1053545652, 1050798235, 1048615884, 1045188763,
        1042434822, 1040247290, 1036831949, 1034071469, 1031878741, 1028475211, 1025708177, 1023510243,
        1020118547, 1017344942, 1015141792, 1011761962, 1008981770, 1006773388, 1003405449, 1000618659,
        998405028,  995049016,  992255608,  990036721,  986692658,  983892612,  981668463,  978336378,
        975529684,  973300252,  969980167,  967166816,  964932090,  961624040,  958804008,  956563972}},
      {{.theta = 500000, .dims = 64},
       {1065353216, 1059709382, 1054963644, 1049992931, 1044812720, 1040434848, 1034871981, 1030233703,
        1025116360, 1020030793, 1015523779, 1010044269, 1005516623, 1000248322, 995260192,  990620225,
        985226529,  980812778,  975389069,  970501249,  965724408,  960419060,  956122563,  950538859,
        945754308,  940836555,  935622160,  931290932,  925697959,  921019725,  915956903,  910836144}},
      {{.theta = 10000, .dims = 64, .scaling = {.kind = Kind::linear, .factor = 4}},
       {1048576000, 1044379921, 1041233306, 1037559963, 1034021019, 1030935587, 1026955399, 1023970679,
        1020054733, 1016697869, 1013339586, 1009564181, 1006733027, 1002586959, 999402809,  995785714,
        992204554,  989182384,  985154716,  982134391,  978271800,  974874893,  971576616,  967756174,
        964891247,  960795788,  957573654,  954013477,  950389600,  947431445,  943355731,  940299378}},
      {{.theta = 500000, .dims = 128, .scaling = {.kind = Kind::llama3, .factor = 8, .original_positions = 8192}},
       {1065353216, 1062243009, 1059709382, 1057645444, 1054963644, 1052224381, 1049992931, 1047774305,
        1044812720, 1042400160, 1040434848, 1037480348, 1034871981, 1032747160, 1030233703, 1027413636,
        1025116360, 1023079743, 1020030793, 1017547065, 1015523779, 1012729580, 1010044269, 1007856767,
        1005516623, 1002613366, 1000248322, 998321717,  995260192,  990772486,  984863005,  979408798,
        973706706,  967045384,  960179666,  952658054,  950223245,  948239807,  945335425,  942703001,
        940558584,  938099311,  935253236,  932934773,  930956739,  927879669,  925373035,  923331087,
        920588484,  917878407,  915670731,  913386368,  910456336,  908069481,  906125108,  903112712,
        900532135,  898429952,  895853901,  893063879,  890791079,  888686786,  885670320,  883213055}},
      {{.theta = 10000, .dims = 64, .scaling = {.kind = Kind::yarn, .factor = 4, .original_positions = 2048}},
       {1065353216, 1061157137, 1058010522, 1054337179, 1050798235, 1047712803, 1043732615, 1040747895,
        1036831949, 1032894417, 1028375044, 1024382196, 1019692460, 1015691709, 1010728976, 1006780427,
        1001419117, 996951613,  991685449,  986314020,  981406080,  974874893,  971576616,  967756174,
        964891247,  960795788,  957573654,  954013477,  950389600,  947431445,  943355731,  940299378}},
      {{.theta = 10000, .dims = 64, .scaling = {.kind = Kind::dynamic, .factor = 2, .original_positions = 1024}},
       {1065353216, 1060391678, 1056830233, 1051908434, 1048308324, 1043425946, 1039787485, 1034944212,
        1031267703, 1026463223, 1022748974, 1017982973, 1014231284, 1009503458, 1005714631, 1001024671,
        997199001,  992546607,  988684390,  984069258,  980170788,  975592621,  971658188,  967116689,
        963146579,  958641456,  954635957,  950166916,  946126311,  941693065,  937617636,  933219897}},
  };
  for (const Row& row : rows) {
    const std::vector<float> got = rope_frequencies(row.rope, 4096);
    ASSERT_EQ(got.size(), row.bits.size());
    int differ = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      const auto bits = std::bit_cast<uint32_t>(got[i]);
      differ += bits != row.bits[i];
      EXPECT_LE(std::max(bits, row.bits[i]) - std::min(bits, row.bits[i]), 1U) << row.rope.theta << " " << i;
    }
    EXPECT_LE(differ, 1) << row.rope.theta << " over " << row.rope.dims;
  }
}

TEST(Alibi, SlopesWhereTheHeadsAreNoPowerOfTwo) {
  expect_near(alibi_slopes(6), {0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125});
  expect_near(alibi_slopes(12),
              {0.5,
               0.25,
               0.125,
               0.0625,
               0.03125,
               0.015625,
               0.0078125,
               0.00390625,
               0.707106769,
               0.353553385,
               0.176776677,
               0.0883883387});
}

}  // namespace
}  // namespace sator::llm
