#include "llm/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "base/error.h"
#include "base/float16.h"
#include "llm/params.h"
#include "llm/small_floats.h"
#include "temp_folder.h"

namespace sator::llm {
namespace {

std::vector<float> weights(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.3f);
  std::vector<float> w(static_cast<size_t>(n));
  for (float& v : w) v = normal(random);
  return w;
}

struct Named {
  const char* text;
  Granularity granularity;
  int size;  // of a group; of an activation: how many groups
};
constexpr Named kWeights[] = {{"tensor", Granularity::tensor, 0},
                              {"channel", Granularity::channel, 0},
                              {"input", Granularity::input, 0},
                              {"group32", Granularity::group, 32},
                              {"group64", Granularity::group, 64},
                              {"group128", Granularity::group, 128}};
// "+a8" means "+a8-token".
constexpr Named kActivations[] = {{"", Granularity::token, 0},
                                  {"-token", Granularity::token, 0},
                                  {"-group", Granularity::group, 0},
                                  {"-tensor", Granularity::tensor, 0},
                                  {"-embedding", Granularity::input, 0},
                                  {"-peg8", Granularity::peg, 8}};

void expect_format(const std::optional<IntegerFormat>& f, int bits, const Named& g, bool asymmetric) {
  ASSERT_TRUE(f);
  EXPECT_EQ(f->bits, bits);
  EXPECT_EQ(f->granularity, g.granularity);
  EXPECT_EQ(f->group, g.size);
  EXPECT_EQ(f->asymmetric, asymmetric);
  EXPECT_EQ(f->scale_dtype, f32);
  EXPECT_FALSE(f->mlc);
}

TEST(Scheme, EveryCombinationReadsAsItIsNamed) {
  int names = 0;
  auto expect = [&](const std::string& name,
                    int bits,
                    const Named& g,
                    bool asymmetric,
                    bool embed,
                    int act_bits,
                    const Named* act) {
    SCOPED_TRACE(name);
    const Scheme s = parse_scheme(name);
    EXPECT_EQ(s.name, name);
    EXPECT_FALSE(s.factors);
    EXPECT_EQ(s.storage, f16);
    expect_format(s.linear, bits, g, asymmetric);
    if (embed)
      expect_format(s.embedding, bits, g, asymmetric);
    else
      EXPECT_FALSE(s.embedding);
    ASSERT_EQ(s.activation.has_value(), act != nullptr);
    EXPECT_EQ(s.needs_calibration(),
              act && act->granularity != Granularity::token && act->granularity != Granularity::group);
    if (act) {
      EXPECT_EQ(s.activation->bits, act_bits);
      EXPECT_EQ(s.activation->granularity, act->granularity);
      EXPECT_EQ(s.activation->groups, act->size);
    }
    ++names;
  };
  for (int bits = 2; bits <= 8; ++bits) {
    for (const Named& g : kWeights) {
      for (bool asymmetric : {false, true}) {
        for (bool embed : {false, true}) {
          const std::string name = text("int", bits, "-", g.text, asymmetric ? "-asym" : "", embed ? "+embed" : "");
          expect(name, bits, g, asymmetric, embed, 0, nullptr);
          for (int act_bits = 4; act_bits <= 8; ++act_bits)
            for (const Named& a : kActivations)
              expect(text(name, "+a", act_bits, a.text), bits, g, asymmetric, embed, act_bits, &a);
        }
      }
    }
  }
  EXPECT_EQ(names, 7 * 6 * 2 * 2 * (1 + 5 * 6));
  for (const char* name : {"int4-group32-s16", "int3-group128-asym-s16+embed+a8", "int8-group64-s16+a16"}) {
    const Scheme s = parse_scheme(name);
    const std::string text = name, wide = std::string(text).erase(text.find("-s16"), 4);
    std::optional<IntegerFormat> linear = parse_scheme(wide).linear;
    linear->scale_dtype = f16;
    EXPECT_EQ(s.linear, linear) << name;
    EXPECT_EQ(s.embedding.has_value(), text.find("+embed") != text.npos) << name;
  }
  for (const Named& g : {kWeights[0], kWeights[1], kWeights[3]}) {
    const Scheme s = parse_scheme(text("embed-int5-", g.text));
    expect_format(s.embedding, 5, g, false);
    EXPECT_FALSE(s.linear || s.activation);
    EXPECT_EQ(s.storage, f16);
  }
  for (const std::string& name : default_schemes()) EXPECT_EQ(parse_scheme(name).name, name);
  for (const char* name : {"f16+a16", "q4f16_1+a16", "int4-group32-asym+embed+a16", "bf16+a16"}) {
    const Scheme narrow = parse_scheme(name), wide = parse_scheme(std::string_view(name).substr(0, strlen(name) - 4));
    const DType expected = std::string_view(name) == "bf16+a16" ? bf16 : f16;
    EXPECT_EQ(narrow.name, name);
    EXPECT_EQ(narrow.factors, expected) << name;
    EXPECT_EQ(narrow.storage, expected) << name;
    EXPECT_FALSE(wide.factors) << name;
    EXPECT_EQ(narrow.linear.has_value(), wide.linear.has_value()) << name;
    EXPECT_EQ(narrow.embedding.has_value(), wide.embedding.has_value()) << name;
  }
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
                           "int8-channel-s16",
                           "int4-group32-s16-asym",
                           "embed-int8-input",
                           "embed-int8-tensor+a8",
                           "embed-int8-tensor+a16",
                           "f32+a16",
                           "+a16",
                           "int8-channel+a16+embed",
                           "int8-channel+a16-token",
                           "int8-channel+a8+a16",
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

/// The definition (IntegerFormat), one element at a time: which elements share a scale is asked of each pair of them.
struct Formula {
  float scale, zero, code, value;
};
Formula formula_at(const std::vector<float>& w, int64_t rows, int64_t cols, const IntegerFormat& f, int64_t row,
                   int64_t col) {
  float largest = 0, lo = 0, hi = 0;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      const bool shared = f.granularity == Granularity::tensor    ? true
                          : f.granularity == Granularity::channel ? r == row
                          : f.granularity == Granularity::input   ? c == col
                                                                  : r == row && c / f.group == col / f.group;
      if (!shared) continue;
      const float v = w[static_cast<size_t>(r * cols + c)];
      largest = std::max(largest, std::fabs(v));
      lo = std::min(lo, v);
      hi = std::max(hi, v);
    }
  }
  const float v = w[static_cast<size_t>(row * cols + col)], top = static_cast<float>((1 << (f.bits - 1)) - 1);
  if (!f.asymmetric) {
    const float s = largest * (1.f / top), q = std::clamp(std::nearbyint(v / s), -top, top);
    return {s, top, q + top, q * s};
  }
  const float levels = static_cast<float>((1 << f.bits) - 1), s = (hi - lo) * (1.f / levels),
              z = std::nearbyint(-lo / s);
  const float q = std::clamp(std::nearbyint(v / s) + z, 0.f, levels);
  return {s, z, q, (q - z) * s};
}

TEST(Quantize, IsTheFormula) {
  int compared = 0;
  for (int bits = 2; bits <= 8; ++bits) {
    for (const Named& g : kWeights) {
      for (bool asym : {false, true}) {
        for (auto [rows, cols] : {std::pair<int64_t, int64_t>{5, 96}, {3, 70}, {1, 1}, {7, 33}}) {
          const std::string name = text("int", bits, "-", g.text, asym ? "-asym" : "");
          SCOPED_TRACE(text(name, " ", rows, "x", cols));
          const IntegerFormat f = *parse_scheme(name).linear;
          const std::vector<float> w = weights(rows * cols, static_cast<uint32_t>(bits));
          const QuantizedMatrix q = quantize(w, rows, cols, f);
          const std::vector<float> back = dequantize(q), scale = to_f32(q[ParamPart::scale]);
          const int64_t words = (cols + 31) / 32 * bits, groups = g.size ? (cols + g.size - 1) / g.size : 0;
          ASSERT_EQ(q[ParamPart::codes].shape(), (runtime::Dims{rows, words}));
          ASSERT_EQ(q.parts.contains(ParamPart::zero), asym);
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t c = 0; c < cols; ++c) {
              const Formula want = formula_at(w, rows, cols, f, r, c);
              const auto at = static_cast<size_t>(f.granularity == Granularity::tensor    ? 0
                                                  : f.granularity == Granularity::channel ? r
                                                  : f.granularity == Granularity::input   ? c
                                                                                          : r * groups + c / g.size);
              ASSERT_LT(at, scale.size());
              ASSERT_EQ(scale[at], want.scale);
              if (asym) {
                ASSERT_EQ(float(q[ParamPart::zero].data_as<uint8_t>()[at]), want.zero);
              }
              ASSERT_EQ(float(code_at(q[ParamPart::codes].data_as<uint32_t>() + r * words, c, bits)), want.code)
                  << r << " " << c;
              ASSERT_EQ(back[static_cast<size_t>(r * cols + c)], want.value) << r << " " << c;
              ++compared;
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(compared, 7 * 6 * 2 * (5 * 96 + 3 * 70 + 1 + 7 * 33));
}

std::vector<uint32_t> words_of(const QuantizedMatrix& q) {
  const auto* words = q[ParamPart::codes].data_as<uint32_t>();
  return {words, words + q[ParamPart::codes].num_elements()};
}

TEST(Quantize, AKnownRow) {
  // int4, symmetric: s = 1.75/7 = 0.25; 0.5, 1.5 and -2.5 tie to 0, 2 and -2; codes are +7, lowest index in the lowest bits
  // as MLC packs, and 7 (zero) beyond the row's end.
  QuantizedMatrix q =
      quantize(std::vector{1.75f, -1.75f, 0.125f, 0.375f, -0.625f, 0.f}, 1, 6, *parse_scheme("int4-channel").linear);
  EXPECT_EQ(to_f32(q[ParamPart::scale]), std::vector{0.25f});
  EXPECT_EQ(words_of(q), (std::vector<uint32_t>{0x7775970e, 0x77777777, 0x77777777, 0x77777777}));
  EXPECT_EQ(dequantize(q), (std::vector{1.75f, -1.75f, 0.f, 0.5f, -0.5f, 0.f}));
  // int4, asymmetric: s = 3.75/15 = 0.25, z = 4; 0.5 and 1.5 tie to 0 and 2.
  q = quantize(std::vector{-1.f, 0.f, 2.f, 2.75f, 0.125f, 0.375f}, 1, 6, *parse_scheme("int4-channel-asym").linear);
  EXPECT_EQ(to_f32(q[ParamPart::scale]), std::vector{0.25f});
  EXPECT_EQ(q[ParamPart::zero].data_as<uint8_t>()[0], 4);
  EXPECT_EQ(words_of(q)[0] & 0xffffff, 0x64fc40u);
  EXPECT_EQ(dequantize(q), (std::vector{-1.f, 0.f, 2.f, 2.75f, 0.f, 0.5f}));
}

TEST(Quantize, ScalesOfFloat16) {
  // 7.0035 / 7 = 1.0005 lies between 1 and 1 + 2^-10, nearest to 1 + 2^-10: codes are those of the rounded scale.
  const IntegerFormat f = *parse_scheme("int4-group32-s16").linear;
  const QuantizedMatrix q = quantize(std::vector{7.0035f, -3.f, 0.5003f}, 1, 3, f);
  const float scale = 1 + 1.f / 1024;
  EXPECT_EQ(to_f32(q[ParamPart::scale]), std::vector{scale});
  EXPECT_EQ(dequantize(q), (std::vector{7 * scale, -3 * scale, 0.f}));  // 0.5003 / 1.0005 is above a half
  EXPECT_EQ(quantize(std::vector{458752.f}, 1, 1, *parse_scheme("int4-group32").linear)[ParamPart::scale].dtype(), f32);
  const std::string error = error_of([&] { quantize(std::vector{458752.f}, 1, 1, f); });  // 7 * 65536
  EXPECT_NE(error.find("65536, which float16 does not hold"), error.npos) << error;
  EXPECT_NE(error.find("leave -s16 out"), error.npos) << error;
}

TEST(Quantize, CodesOfOddWidthCrossWords) {
  IntegerFormat f = *parse_scheme("int5-channel").linear;
  std::vector<float> w(64);
  for (int i = 0; i < 64; ++i)
    w[static_cast<size_t>(i)] = static_cast<float>(i % 31 - 15);  // exactly the codes of 5 bits
  QuantizedMatrix q = quantize(w, 1, 64, f);
  EXPECT_EQ(q[ParamPart::codes].dim(1), 10);
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(code_at(q[ParamPart::codes].data_as<uint32_t>(), i, 5), static_cast<uint32_t>(i % 31));
  EXPECT_EQ(dequantize(q), w);
}

TEST(Quantize, ZeroGroupsStayZero) {
  for (const char* name : {"int4-group32", "int4-group32-asym", "int8-tensor", "q4f16_1"}) {
    Scheme s = parse_scheme(name);
    std::vector<float> w(96, 0.f);
    EXPECT_EQ(dequantize(quantize(w, 2, 48, *s.linear)), w) << name;
  }
}

// By a search through all codes of few bits, and by the exact distance to the next ones of many.
TEST(SmallFloats, AreTheNearest) {
  std::mt19937 random(5);
  for (const int bits : {6, 7, 8, 12, 19, 28}) {
    const SmallFloat small{bits, 4};
    std::vector<float> values;
    for (int i = 0; i < 2000; ++i)
      values.push_back(
          std::ldexp(1 + static_cast<float>(random() % (1 << 23)) / (1 << 23), -static_cast<int>(random() % 45)));
    for (uint32_t code = 0; code + 1 < std::min(small.sign(), 4096u); ++code)  // half way between two codes
      values.push_back(static_cast<float>((double{small.value(code)} + double{small.value(code + 1)}) / 2));
    for (const float v : values) {
      const uint32_t code = small.magnitude(v);
      auto off = [&](uint32_t c) { return std::abs(double{small.value(c)} - v); };
      if (code > small.largest()) {
        EXPECT_GE(v, 2 - std::ldexp(1., -small.mantissa_bits() - 1));
        continue;
      }
      if (bits <= 8)
        for (uint32_t c = 0; c <= small.largest(); ++c) ASSERT_LE(off(code), off(c)) << v;
      for (const uint32_t c : {code - 1, code + 1}) {
        if (c > small.largest()) continue;
        ASSERT_LE(off(code), off(c)) << bits << " " << v;
        if (off(code) == off(c)) ASSERT_EQ(code % 2, 0u) << bits << " " << v;
      }
      ASSERT_EQ(small.value(code | small.sign()), -small.value(code));
    }
  }
}

TEST(Quantize, SmallFloatsOfAPowerOfTwo) {
  const float huge = std::numeric_limits<float>::max(), tiny = std::numeric_limits<float>::denorm_min();
  const std::vector<float> w = {
      1.5f,     -0x1p-13f, 0x1p-30f, -0.f,        // exact but for what is below 2^-14 of the largest
      -1.9990f, 1,         0x1p-14f, 0x1p-21f,    // in 12 bits the first is -2
      0,        -0.f,      0,        0,           // no scale is needed
      huge,     -1,        0x1p126f, 0,           // no overflow on the way
      3 * tiny, -tiny,     0,        0x1p-126f};  // nor anything lost
  const QuantizedMatrix f32_like = quantize(w, 5, 4, {.bits = 28, .exponent_bits = 4});
  const std::vector<float> scales = to_f32(f32_like[ParamPart::scale]);
  EXPECT_EQ(scales, (std::vector<float>{1, 1, 1, 0x1p127f, 0x1p-126f}));
  const std::vector<float> edges =
      dequantize(quantize(std::vector<float>{huge, -huge, 5 * tiny, -tiny}, 2, 2, {.bits = 6, .exponent_bits = 4}));
  EXPECT_EQ(edges, (std::vector<float>{0x1.8p127f, -0x1.8p127f, 4 * tiny, -tiny}));  // no infinity; 5 is half way to 6
  std::vector<float> exact = dequantize(f32_like);
  EXPECT_EQ(exact[2], 0x1p-30f);  // a multiple of the least step, 2^-37
  exact[13] = -1;                 // 2^-127 of the largest is 0 there
  EXPECT_EQ(exact, w);
  const std::vector<float> rough = dequantize(quantize(w, 5, 4, {.bits = 12, .exponent_bits = 4}));
  EXPECT_EQ((std::vector<float>(rough.begin(), rough.begin() + 8)),
            (std::vector<float>{1.5f, -0x1p-13f, 0, 0, -2, 1, 0x1p-14f, 0}));
  EXPECT_NE(error_of([] {
              quantize(std::vector<float>{1, INFINITY}, 1, 2, {.bits = 12, .exponent_bits = 4}, 3);
            }).find("row 3, column 1 is not finite"),
            std::string::npos);
}

TEST(Scheme, SmallFloats) {
  const Scheme s = parse_scheme("float28-channel+embed"), narrow = parse_scheme("float12-channel");
  EXPECT_EQ(s.linear, (IntegerFormat{.bits = 28, .exponent_bits = 4}));
  EXPECT_EQ(s.embedding, s.linear);
  EXPECT_EQ(s.storage, f32);
  EXPECT_EQ(narrow.storage, bf16);
  EXPECT_FALSE(narrow.embedding);
  EXPECT_EQ(describe(narrow), "linear layers: 12-bit floats, one scale per output channel; the rest bfloat16");
  for (const char* wrong : {"float5-channel",
                            "float29-channel",
                            "float012-channel",
                            "float12",
                            "float12-group32",
                            "float12-channel+a8",
                            "float12-channel+a16",
                            "float12-channel-asym"})
    EXPECT_THROW(parse_scheme(wrong), Error) << wrong;
}

TEST(Quantize, MlcLayout) {
  Scheme s = parse_scheme("q4f16_1");
  std::vector<float> w = weights(4 * 64, 3);
  QuantizedMatrix q = quantize(w, 4, 64, *s.linear);
  EXPECT_EQ(q[ParamPart::codes].shape(), (runtime::Dims{4, 8}));  // [N, words of 8 nibbles]
  EXPECT_EQ(q[ParamPart::scale].shape(), (runtime::Dims{4, 2}));  // [N, K/32]
  EXPECT_EQ(q[ParamPart::scale].dtype(), f16);
  for (int64_t r = 0; r < 4; ++r) {
    for (int64_t c = 0; c < 64; ++c)
      EXPECT_LE(code_at(q[ParamPart::codes].data_as<uint32_t>() + r * 8, c, 4), 14u);  // code 15 is unused
    for (int64_t g = 0; g < 2; ++g) {
      float largest = 0;
      for (int64_t c = 0; c < 32; ++c)
        largest = std::max(largest, std::fabs(f16_to_f32(f32_to_f16(w[static_cast<size_t>(r * 64 + g * 32 + c)]))));
      EXPECT_EQ(q[ParamPart::scale].data_as<uint16_t>()[r * 2 + g], f32_to_f16(largest / 7));
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

TEST(Quantize, ACodeWhoseValueFloat16CannotHoldIsNamed) {
  std::vector<float> w(64, 1.f);
  QuantizedMatrix q = quantize(w, 2, 32, *parse_scheme("q4f16_1").linear);
  EXPECT_NO_THROW(require_finite(q, "w"));
  // Of codes 14, which stand for 7.
  auto* scale = q.parts.at(ParamPart::scale)->data_as<uint16_t>();
  scale[1] = f32_to_f16(9352);
  EXPECT_NO_THROW(require_finite(q, "w"));  // 65464
  for (float s : {9368.f, INFINITY, NAN}) {
    scale[1] = f32_to_f16(s);
    try {
      require_finite(q, "w");
      ADD_FAILURE() << s;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("w: the value of the code at row 1, column 0"), std::string::npos)
          << e.what();
    }
  }
}

// Large matrices are read and quantized some rows at a time: the codes are those of the whole.
TEST(Quantize, ByBlocksOfRowsAsByTheWhole) {
  constexpr int64_t kRows = 2100, kCols = 2048;  // more than four million
  std::vector<float> values(static_cast<size_t>(kRows * kCols));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(static_cast<int>(i * 2654435761u >> 16 & 1023) - 512) / 97;
  Ref<runtime::Tensor> halves = to_dtype(values, {kRows, kCols}, bf16);
  values = to_f32(*halves);
  TempFolder folder;
  auto write = [&] {
    const SafeTensor t{
        "w", bf16, {kRows, kCols}, {halves->data_as<std::byte>(), static_cast<size_t>(halves->size_bytes())}};
    write_safetensors(folder.path() / "model.safetensors", std::span(&t, 1), {});
    return Checkpoint::of(SafeTensors::open_folder(folder.path()));
  };
  auto bytes = [](const runtime::Tensor& t) {
    return std::string(t.data_as<const char>(), static_cast<size_t>(t.size_bytes()));
  };
  const Checkpoint checkpoint = write();
  for (const char* scheme : {"int4-group32", "int8-channel", "int8-tensor", "int5-channel-asym"}) {
    const IntegerFormat format = *parse_scheme(scheme).linear;
    const QuantizedMatrix whole = quantize(values, kRows, kCols, format);
    std::vector<ParamSpec> specs;
    for (const MatrixPart& p : parts_of(format, kRows, kCols))
      specs.push_back(
          {.name = p.ending, .part = p.part, .shape = p.shape, .dtype = p.dtype, .source = {{"w"}}, .format = format});
    const auto params = make_params(specs, checkpoint);
    for (size_t i = 0; i < specs.size(); ++i)
      EXPECT_TRUE(bytes(*params[i]) == bytes(whole[specs[i].part])) << scheme << specs[i].name;
  }
  const auto plain = make_params({{.name = "w", .shape = {kRows, kCols}, .dtype = f16, .source = {{"w"}}}}, checkpoint);
  EXPECT_TRUE(bytes(*plain[0]) == bytes(*to_dtype(values, {kRows, kCols}, f16)));
  halves->data_as<uint16_t>()[2090 * kCols + 5] = 0x7fc0;
  const Checkpoint damaged = write();
  const IntegerFormat format = *parse_scheme("int4-group32").linear;
  const MatrixPart codes = parts_of(format, kRows, kCols)[0];
  const std::string error = error_of([&] {
    make_params(
        {{.name = "w", .part = codes.part, .shape = codes.shape, .dtype = u32, .source = {{"w"}}, .format = format}},
        damaged);
  });
  EXPECT_NE(error.find("row 2090, column 5"), std::string::npos) << error;
}

// Parameters that are taken in another order, by fewer or more threads, or not to the end.
TEST(Quantize, AStreamGivesEachParameterOnce) {
  constexpr size_t kWeights = 40;
  const std::vector<int64_t> shape = {512, 1024};  // 2 MB each: more than what is made ahead, 64 MB
  std::vector<std::vector<float>> values(kWeights);
  std::vector<SafeTensor> tensors;
  std::vector<ParamSpec> specs;
  for (size_t w = 0; w < kWeights; ++w) {
    values[w].assign(512 * 1024, static_cast<float>(w) + 0.5f);
    const std::string name = text("w", w);
    tensors.push_back({name, f32, shape, std::as_bytes(std::span(values[w]))});
    specs.push_back({.name = name, .shape = {512, 1024}, .dtype = f32, .source = {{name}}});
  }
  TempFolder folder;
  write_safetensors(folder.path() / "model.safetensors", tensors, {});
  const Checkpoint checkpoint = Checkpoint::of(SafeTensors::open_folder(folder.path()));
  const ActivationRanges none;
  for (int threads : {1, 3}) {
    ParamStream stream(specs, checkpoint, none, threads);
    for (size_t k = 0; k < kWeights; ++k) {
      const size_t w = (k * 7 + 39) % kWeights;  // the last one first
      const Ref<runtime::Tensor> taken = stream.take(static_cast<int64_t>(w));
      EXPECT_EQ(taken->data_as<float>()[512 * 1024 - 1], static_cast<float>(w) + 0.5f);
    }
    EXPECT_THROW(stream.take(3), std::exception);  // it has been taken
  }
  ParamStream left(specs, checkpoint, none, 2);
  left.take(1);
  std::vector<ParamSpec> wrong = specs;
  wrong[5].shape = {512, 1000};
  EXPECT_NE(error_of([&] { ParamStream(wrong, checkpoint, none, 2); }).find("parameter w5"), std::string::npos);
}

}  // namespace
}  // namespace sator::llm
