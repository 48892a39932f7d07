#include "llm/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.h"
#include "base/float16.h"

namespace sator::llm {
namespace {

std::vector<float> weights(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.3f);
  std::vector<float> w(static_cast<size_t>(n));
  for (float& v : w) v = normal(random);
  return w;
}

TEST(Scheme, EveryCombinationReadsAsItIsNamed) {
  int names = 0;
  for (int bits = 2; bits <= 8; ++bits) {
    for (const char* g : {"tensor", "channel", "input", "group32", "group64", "group128"}) {
      for (const char* asym : {"", "-asym"}) {
        for (const char* embed : {"", "+embed"}) {
          for (const char* act : {"", "+a8", "+a4-token", "+a8-tensor", "+a6-embedding", "+a8-peg8"}) {
            std::string name = text("int", bits, "-", g, asym, embed, act);
            Scheme s = parse_scheme(name);
            ASSERT_TRUE(s.linear) << name;
            EXPECT_EQ(s.linear->bits, bits) << name;
            EXPECT_EQ(s.linear->asymmetric, *asym != 0) << name;
            EXPECT_EQ(s.embedding.has_value(), *embed != 0) << name;
            EXPECT_EQ(s.activation.has_value(), *act != 0) << name;
            std::string a = act;
            EXPECT_EQ(s.needs_calibration(), a.ends_with("tensor") || a.ends_with("embedding") || a.ends_with("peg8"));
            ++names;
          }
        }
      }
    }
  }
  EXPECT_EQ(names, 7 * 6 * 2 * 2 * 6);
  EXPECT_EQ(parse_scheme("int4-group128").linear->group, 128);
  EXPECT_EQ(parse_scheme("int8-channel+a8").activation->granularity, Granularity::token);
  EXPECT_EQ(parse_scheme("embed-int8-group32").embedding->group, 32);
  EXPECT_FALSE(parse_scheme("embed-int8-group32").linear);
  for (const std::string& name : default_schemes()) EXPECT_EQ(parse_scheme(name).name, name);
}

TEST(Scheme, AWrongNameSaysWhereAndWhatIsNear) {
  for (const char* name : {"",
                           "int9-channel",
                           "int1-channel",
                           "int8",
                           "int8-chanel",
                           "int8-channel+a3",
                           "int8-channel+a8+embed",
                           "int8-channel-foo",
                           "embed-int8-input",
                           "embed-int8-tensor+a8",
                           "F32",
                           "int8-channel+embed-asym"}) {
    try {
      parse_scheme(name);
      ADD_FAILURE() << name << " was accepted";
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("needs:"), std::string::npos);
      EXPECT_NE(std::string(e.what()).find("hint:"), std::string::npos);
    }
  }
  try {
    parse_scheme("int8-chanel");
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("int8-channel"), std::string::npos) << e.what();
  }
}

/// Half a step is the most that rounding to nearest can be off, inside of the range.
TEST(Quantize, ErrorIsAtMostHalfAStep) {
  for (int bits = 2; bits <= 8; ++bits) {
    for (const char* g : {"tensor", "channel", "input", "group32", "group64"}) {
      for (bool asym : {false, true}) {
        for (auto [rows, cols] : {std::pair<int64_t, int64_t>{5, 96}, {3, 70}, {1, 1}, {7, 33}}) {
          IntegerFormat f = *parse_scheme(text("int", bits, "-", g, asym ? "-asym" : "")).linear;
          std::vector<float> w = weights(rows * cols, static_cast<uint32_t>(bits));
          QuantizedMatrix q = quantize(w, rows, cols, f);
          std::vector<float> back = dequantize(q);
          std::vector<float> scale = to_f32(*q.scale);
          float largest = *std::max_element(scale.begin(), scale.end());
          for (size_t i = 0; i < w.size(); ++i) {
            float s = f.granularity == Granularity::tensor    ? scale[0]
                      : f.granularity == Granularity::channel ? scale[i / static_cast<size_t>(cols)]
                      : f.granularity == Granularity::input   ? scale[i % static_cast<size_t>(cols)]
                                                              : largest;
            // An asymmetric range moves by the rounding of its zero point: one step at its ends.
            EXPECT_LE(std::fabs(w[i] - back[i]), s * (asym ? 1.001f : 0.5001f)) << bits << g << asym;
          }
          EXPECT_EQ(q.codes->dim(1), (cols + 31) / 32 * bits);
        }
      }
    }
  }
}

TEST(Quantize, FormulaOnAKnownRow) {
  // int4, symmetric: s = 1.4/7 = 0.2; codes round(w/s)+7.
  std::vector<float> w = {1.4f, -1.4f, 0.1f, 0.3f, -0.5f, 0.f};
  QuantizedMatrix q = quantize(w, 1, 6, *parse_scheme("int4-channel").linear);
  EXPECT_FLOAT_EQ(q.scale->data_as<float>()[0], 0.2f);
  // 0.1/0.2 = 0.5 and 0.3/0.2 = 1.5 tie to even (0, 2), -2.5 to -2.
  std::vector<uint32_t> want = {14, 0, 7, 9, 5, 7};
  float exact = 0.1f / q.scale->data_as<float>()[0];
  if (exact == 0.5f) {
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_EQ(code_at(q.codes->data_as<uint32_t>(), int64_t(i), 4), want[i]) << i;
  } else {
    EXPECT_EQ(code_at(q.codes->data_as<uint32_t>(), 0, 4), 14u);
  }
  // Lowest index in the lowest bits, as MLC packs.
  EXPECT_EQ(q.codes->data_as<uint32_t>()[0] & 0xff, 0x0eu);
}

TEST(Quantize, CodesOfOddWidthCrossWords) {
  IntegerFormat f = *parse_scheme("int5-channel").linear;
  std::vector<float> w(64);
  for (int i = 0; i < 64; ++i)
    w[static_cast<size_t>(i)] = static_cast<float>(i % 31 - 15);  // exactly the codes of 5 bits
  QuantizedMatrix q = quantize(w, 1, 64, f);
  EXPECT_EQ(q.codes->dim(1), 10);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(code_at(q.codes->data_as<uint32_t>(), i, 5), static_cast<uint32_t>(i % 31));
  EXPECT_EQ(dequantize(q), w);
}

TEST(Quantize, ZeroGroupsStayZero) {
  for (const char* name : {"int4-group32", "int4-group32-asym", "int8-tensor", "q4f16_1"}) {
    Scheme s = parse_scheme(name);
    std::vector<float> w(96, 0.f);
    EXPECT_EQ(dequantize(quantize(w, 2, 48, *s.linear)), w) << name;
  }
}

TEST(Quantize, MlcLayout) {
  Scheme s = parse_scheme("q4f16_1");
  std::vector<float> w = weights(4 * 64, 3);
  QuantizedMatrix q = quantize(w, 4, 64, *s.linear);
  EXPECT_EQ(q.codes->shape(), (runtime::Dims{4, 8}));  // [N, words of 8 nibbles]
  EXPECT_EQ(q.scale->shape(), (runtime::Dims{4, 2}));  // [N, K/32]
  EXPECT_EQ(q.scale->dtype(), f16);
  for (int64_t r = 0; r < 4; ++r) {
    for (int64_t c = 0; c < 64; ++c)
      EXPECT_LE(code_at(q.codes->data_as<uint32_t>() + r * 8, c, 4), 14u);  // code 15 is unused
    for (int64_t g = 0; g < 2; ++g) {
      float largest = 0;
      for (int64_t c = 0; c < 32; ++c)
        largest = std::max(largest, std::fabs(f16_to_f32(f32_to_f16(w[static_cast<size_t>(r * 64 + g * 32 + c)]))));
      EXPECT_EQ(q.scale->data_as<uint16_t>()[r * 2 + g], f32_to_f16(largest / 7));
    }
  }
}

TEST(Quantize, AWeightThatIsNotANumberIsNamed) {
  std::vector<float> w(64, 1.f);
  w[37] = NAN;
  try {
    quantize(w, 2, 32, *parse_scheme("int8-channel").linear);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("row 1, column 5"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace sator::llm
