// Fits, intervals, and how well models hold on rows that no fit has seen.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "dataflow/calibrate/models.h"
#include "dataflow/calibrate/nearby.h"
#include "dataflow/cost/described_chip.h"
#include "dataflow/reference_rows.h"
#include "shipped_chips.h"
#include "temp_folder.h"

namespace sator::dataflow {
namespace {

double line(const std::vector<double>& c, const std::vector<double>& f) { return c[0] + c[1] * f[0]; }
const std::vector<Parameter> kLine = {{"a", "s", 1, 1e-3, 1e3}, {"b", "s", 1, 1e-3, 1e3}};

// Measurements that a model makes are its constants again.
TEST(Fit, FindsTheConstantsThatMadeTheData) {
  std::vector<Sample> samples;
  for (double x : {0.1, 1.0, 5.0, 20.0, 100.0}) samples.push_back({"g", {x}, 3 + 0.5 * x});
  const std::vector<double> c = fit(kLine, line, samples);
  EXPECT_NEAR(c[0], 3, 1e-6);
  EXPECT_NEAR(c[1], 0.5, 1e-6);
  // One row that is ten times off moves them little.
  samples.push_back({"g", {7}, 65});
  const std::vector<double> bent = fit(kLine, line, samples);
  EXPECT_NEAR(bent[0], 3, 0.15);
  EXPECT_NEAR(bent[1], 0.5, 0.025);
}

// A constant that is known beforehand: of n rows that all say m, and a start of 1, the least of n (x - ln m)^2 / 2 + q x^2 / 2.
TEST(Fit, WhatIsKnownBeforehandWeighsLikeRows) {
  std::vector<Parameter> known = kLine;
  known[0].spread = 0.1, known[1].spread = 0.5, known[1].start = 2;
  const FitOptions options;
  const double q = std::pow(options.linear_beyond / 0.1, 2);
  for (size_t n : {1u, 3u}) {
    const std::vector<double> c = fit(known, line, std::vector<Sample>(n, {"g", {0}, 1.04}), options);
    EXPECT_NEAR(std::log(c[0]), static_cast<double>(n) * std::log(1.04) / (static_cast<double>(n) + q), 1e-6);
    EXPECT_NEAR(c[1], 2, 1e-6);  // rows at 0 say nothing of the slope
  }
}

TEST(Fit, RefusesWhatCannotBeFitted) {
  EXPECT_THROW(fit(kLine, line, {}), Error);
  EXPECT_THROW(fit(kLine, line, {{"g", {1}, 0}}), Error);
  EXPECT_THROW(fit(kLine, line, {{"g", {1}, std::nan("")}}), Error);
}

// A further draw lies within the interval as often as it says, whatever the distribution.
TEST(Interval, HoldsOnFurtherDraws) {
  std::mt19937 random(3);
  std::lognormal_distribution<double> ratio(0, 0.2);
  int within = 0, all = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<double> seen;
    for (int i = 0; i < 99; ++i) seen.push_back(ratio(random));
    const auto [low, high] = interval_of(seen, 0.9);
    for (int i = 0; i < 20; ++i) {
      const double next = ratio(random);
      within += next >= low && next <= high;
      ++all;
    }
  }
  EXPECT_NEAR(static_cast<double>(within) / all, 0.9, 0.01);
  EXPECT_EQ(interval_of({2}, 0.9), (std::pair<double, double>{2, 2}));
}

TEST(Accuracy, ByHand) {
  const Accuracy a = accuracy_of({1, 2, 4, 8}, {1, 2, 4, 10}, 0.9, 1.1);
  EXPECT_EQ(a.rows, 4u);
  EXPECT_DOUBLE_EQ(a.mean, 0.05);  // one of four is a fifth too small
  EXPECT_DOUBLE_EQ(a.median, 0);
  EXPECT_DOUBLE_EQ(a.coverage, 0.75);
  EXPECT_GT(a.log_correlation, 0.99);
}

// Each group's ratios come from a fit without it: a group of its own law does not hide.
TEST(LeftOut, GroupsAreEstimatedFromTheOthers) {
  std::vector<Sample> samples;
  for (double x : {1.0, 2.0, 4.0, 8.0})
    for (const char* group : {"a", "b", "c"}) samples.push_back({group, {x}, (1 + x) * (*group == 'c' ? 2 : 1)});
  const std::vector<double> ratios = left_out_ratios(kLine, line, samples);
  for (size_t i = 0; i < samples.size(); ++i)
    if (samples[i].group == "c") EXPECT_NEAR(ratios[i], 2, 1e-5);
}

// By hand: correlation c and as much noise as signal, so that one neighbour counts c / 2 and two at one place 2 c / 3.
TEST(Nearby, FollowsItsNeighbours) {
  const std::vector<CalibrationNeighbour> one = {{"gpu", {64, 256}, 1.2}};
  const Nearby nearby(one, {1, 2});
  auto at = [](const char* family, std::vector<double> extents) {
    return Sample{.group = "g", .features = {}, .measured = 1, .family = family, .at = std::move(extents)};
  };
  EXPECT_NEAR(nearby.factor(at("gpu", {64, 256})), std::sqrt(1.2), 1e-12);
  const double octave = std::exp(-0.5), half = std::exp(-0.125);
  EXPECT_NEAR(nearby.factor(at("gpu", {128, 256})), std::pow(1.2, octave / 2), 1e-12);
  EXPECT_NEAR(nearby.factor(at("gpu", {64, 512})), std::pow(1.2, half / 2), 1e-12);
  EXPECT_NEAR(nearby.factor(at("gpu", {1, 256})), 1, 1e-7);
  EXPECT_EQ(nearby.factor(at("other", {64, 256})), 1);
  EXPECT_EQ(nearby.factor(at("gpu", {})), 1);
  EXPECT_NEAR(Nearby({one[0], one[0]}, {1, 2}).factor(at("gpu", {64, 256})), std::pow(1.2, 2 / 3.0), 1e-12);
  EXPECT_THROW(Nearby(one, {1}), Error);
  EXPECT_THROW(Nearby(one, {}), Error);
}

TEST(Nearby, KeepsNoMoreThanItCanSolve) {
  std::vector<Sample> samples(2500, {.group = "g", .features = {}, .measured = 4, .family = "a", .at = {1}});
  samples.push_back({.group = "g", .features = {}, .measured = 4, .family = "b", .at = {1}});
  samples.push_back({.group = "g", .features = {}, .measured = 4, .family = "b", .at = {}});
  const std::vector<CalibrationNeighbour> kept = neighbours_of(samples, std::vector<double>(samples.size(), 1));
  size_t of_a = 0;
  for (const CalibrationNeighbour& n : kept) {
    of_a += n.family == "a";
    EXPECT_NEAR(n.ratio, std::exp(0.25), 1e-12);  // no row moves others by more than a quarter
  }
  EXPECT_LE(of_a, kMostNeighbours);
  EXPECT_GE(of_a, kMostNeighbours / 2);
  EXPECT_EQ(kept.size(), of_a + 1);
}

TEST(Nearby, StandsInTheFile) {
  Calibration c{.model = "gpu_gemm", .chip = "any", .source = "s", .rows = 1};
  c.constants = {{"a", 1, "s"}};
  c.neighbours = {{"A100 float16", {1, 4096, 11008}, 1.25}, {"A100 float16", {2, 4096, 11008}, 1}};
  const std::string file = to_toml(c);
  const Calibration back = parse_calibration(file, "c.toml");
  ASSERT_EQ(back.neighbours.size(), 2u);
  EXPECT_EQ(back.neighbours[0].family, "A100 float16");
  EXPECT_EQ(back.neighbours[0].at, (std::vector<double>{1, 4096, 11008}));
  EXPECT_EQ(back.neighbours[0].ratio, 1.25);
  EXPECT_EQ(to_toml(back), file);
  for (auto [from, to] : {std::pair{"ratio = 1.25", "ratio = 0.0"},
                          {"ratio = 1.25", ""},
                          {"at = [1, ", "at = [0, "},
                          {"at = [1, ", "at = [1.5, "},
                          {"at = [1, ", "at = [\"x\", "},
                          {"family = ", "families = "}}) {
    std::string bad = file;
    bad.replace(bad.find(from), std::strlen(from), to);
    EXPECT_NE(error_of([&] { parse_calibration(bad, "c.toml"); }).find("c.toml line"), std::string::npos) << to;
  }
  for (size_t i = 0; i < kMostNeighbours; ++i) c.neighbours.push_back(c.neighbours[0]);
  EXPECT_NE(error_of([&] { parse_calibration(to_toml(c), "c.toml"); }).find("more than 1000 neighbours"),
            std::string::npos);
}

// Rows of a group are off together: of rows of groups that were not measured the interval holds its share, too. Were rows of
// a group all equal, 19 / 21 lie between the least and the greatest of 20 groups.
TEST(Interval, HoldsOnFurtherGroups) {
  std::mt19937 random(5);
  std::lognormal_distribution<double> of_group(0, 0.2), of_row(0, 0.02);
  const std::vector<Parameter> level = {{"a", "s", 1, 1e-3, 1e3}};
  const Predict predict = [](const std::vector<double>& c, const std::vector<double>&) { return c[0]; };
  double within = 0, all = 0;
  for (int round = 0; round < 60; ++round) {
    BoundModel bound{.parameters = level, .predict = predict, .samples = {}, .rows = {}};
    for (int group = 0; group < 20; ++group) {
      const double off = of_group(random);
      for (int row = 0; row < 10; ++row) bound.samples.push_back({std::to_string(group), {}, off * of_row(random)});
    }
    const Calibration c = calibrate({"level", "", "", "s", nullptr}, bound, "any", "draws");
    for (int group = 0; group < 20; ++group) {
      const double ratio = of_group(random) * of_row(random) / c.constants[0].value;
      within += ratio >= c.low && ratio <= c.high, ++all;
    }
  }
  EXPECT_GE(within / all, 0.885);
  EXPECT_LE(within / all, 0.97);
}

TEST(Rows, LinesOrOneObject) {
  const std::vector<Row> rows = parse_rows("{\"a\": 1}\n\n{\"a\": \"x\"}\n", "f");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].where, "f line 3");
  EXPECT_TRUE((parse_filter("a=1").holds(rows[0])));
  EXPECT_FALSE((parse_filter("a=1").holds(rows[1])));
  EXPECT_TRUE((parse_filter("a=*").holds(rows[1])));
  EXPECT_FALSE((parse_filter("b=1").holds(rows[1])));
  const std::vector<Row> sections = parse_rows("{\"s\": [{\"us\": 1},\n {\"us\": 2}], \"t\": 3}", "f");
  ASSERT_EQ(sections.size(), 2u);
  EXPECT_EQ(sections[1].fields["section"], "s");
  for (const char* bad : {"", "\n\n", "[1]\n", "{\"a\": 1}\n{\"a\"", "1\n2\n", "{\n\"a\": 1}\n"})
    EXPECT_THROW(parse_rows(bad, "f"), Error) << bad;
  // Nested deeper than a stack: no copy of it is made.
  const std::string deep(1'000'000, '[');
  EXPECT_THROW(parse_rows("{\"a\": " + deep + std::string(deep.size(), ']') + "}\n", "f"), Error);
  EXPECT_THROW(parse_filter("a"), Error);
  EXPECT_THROW(parse_filter("=a"), Error);
}

TEST(Rows, CellsUnderTheirColumns) {
  const std::vector<Row> rows = parse_rows(
      "{\"op\": \"x\", \"columns\": [\"M\", \"us\"]}\n[1, 2.5]\n[3, null]\n{\"op\": \"y\", \"columns\": "
      "[\"K\"]}\n[4]\n{\"op\": \"z\"}\n",
      "f");
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].fields, nlohmann::json({{"op", "x"}, {"M", 1}, {"us", 2.5}}));
  EXPECT_EQ(rows[1].fields, nlohmann::json({{"op", "x"}, {"M", 3}}));
  EXPECT_EQ(rows[2].fields, nlohmann::json({{"op", "y"}, {"K", 4}}));
  EXPECT_EQ(rows[3].fields, nlohmann::json({{"op", "z"}}));
  EXPECT_EQ(rows[2].where, "f line 5");
  for (const char* bad :
       {"{\"columns\": [\"M\"]}\n", "{\"columns\": [\"M\"]}\n[1, 2]\n", "{\"columns\": [\"M\"]}\n1\n"})
    EXPECT_THROW(parse_rows(bad, "f"), Error) << bad;
}

/// As calibrate reads them. Errors: there is no row.
TEST(Rows, OfATable) {
  const std::vector<Row> rows =
      parse_rows("\xef\xbb\xbfM, device,us\r\n4,\"A100, 80 \"\"GB\"\"\",12.5\r\n\r\n1e3,,7\r\n", "f.csv");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(number(rows[0].fields, "M"), 4);
  EXPECT_EQ(number(rows[0].fields, "us"), 12.5);
  EXPECT_EQ(rows[0].fields["device"], "A100, 80 \"GB\"");
  EXPECT_EQ(number(rows[1].fields, "M"), 1000);
  EXPECT_FALSE(rows[1].fields.contains("device"));
  EXPECT_EQ(rows[1].where, "f.csv line 4");
  for (const char* bad : {"", "M,us\n", "M,us\n1\n", "M,us\n1,2,3\n", "M,us\n\"1,2\n"})
    EXPECT_THROW(parse_rows(bad, "f.csv"), Error) << bad;
}

// A duration in another unit than its name says is no measurement.
TEST(Rows, DurationsThatNothingTakesAreLeftOut) {
  const Chip chip = shipped("gemmini16");
  for (double us : {0.0, -1.0, 1e-300, 1e300, 1e13})
    EXPECT_TRUE(find_model("engine").bind({{{{"M", 8}, {"N", 8}, {"K", 8}, {"us", us}}, "f"}}, &chip).rows.empty())
        << us;
  EXPECT_EQ(find_model("engine").bind({{{{"M", 8}, {"N", 8}, {"K", 8}, {"us", 3.0}}, "f"}}, &chip).rows.size(), 1u);
}

std::vector<Row> stored(const char* file) { return parse_rows(read_file(reference_file("cost") / file), file); }

std::string word(const Row& row, const char* key) {
  const auto at = row.fields.find(key);
  return at != row.fields.end() && at->is_string() ? at->get<std::string>() : "";
}

/// Mean error on rows that are not `trains`, after a fit to those that are.
Accuracy held_out(const char* name, const std::vector<Row>& rows,
                  const std::function<bool(const Row&, const Sample&)>& trains) {
  const BoundModel bound = find_model(name).bind(rows, nullptr);
  std::vector<Sample> training;
  for (size_t i = 0; i < bound.samples.size(); ++i)
    if (trains(rows[bound.rows[i]], bound.samples[i])) training.push_back(bound.samples[i]);
  const Estimate estimate = learn(bound, training);
  std::vector<double> estimated, measured;
  for (size_t i = 0; i < bound.samples.size(); ++i) {
    if (trains(rows[bound.rows[i]], bound.samples[i])) continue;
    estimated.push_back(estimate(bound.samples[i]));
    measured.push_back(bound.samples[i].measured);
  }
  return accuracy_of(estimated, measured, 0, 1e9);
}

// Analytical cycles stored beside these rows are off by 26.1 % on average; four constants fitted to half of the shapes, 21 %.
TEST(HeldOut, GemminiLayersOfOtherShapes) {
  std::vector<Row> rows;
  for (const Row& row : stored("gemmini_firesim_rtl_cycles.jsonl"))
    if (word(row, "kind").starts_with("firesim_test") && word(row, "kind") != "firesim_test_dataset")
      rows.push_back(row);
  std::set<std::string> shapes, half;
  for (const Sample& s : find_model("gemmini_rtl").bind(rows, nullptr).samples) shapes.insert(s.group);
  size_t i = 0;
  for (const std::string& shape : shapes)
    if (i++ % 2) half.insert(shape);
  for (bool side : {false, true}) {
    const Accuracy a =
        held_out("gemmini_rtl", rows, [&](const Row&, const Sample& s) { return half.contains(s.group) == side; });
    EXPECT_GT(a.rows, 90u);
    EXPECT_LE(a.mean, 0.15);
    EXPECT_GE(a.log_correlation, 0.99);
  }
}

// A data sheet's roofline is off by 33 to 38 %, three fitted constants by 9.3 to 10 %. Asked are 6 %, which the H100 keeps;
// A100 and A40 miss them: docs/chips.md says what was tried.
TEST(HeldOut, GpuGemmsOfOtherModels) {
  const std::vector<Row> rows = stored("gpu_vidur_measured.jsonl");
  for (auto [device, most] : {std::pair{"A100-80GB", 0.065}, {"H100-80GB", 0.055}, {"A40-48GB", 0.072}}) {
    std::vector<Row> own;
    for (const Row& row : rows)
      if (word(row, "device") == device) own.push_back(row);
    const Accuracy a = held_out("gpu_gemm", own, [](const Row& row, const Sample&) {
      return word(row, "model") == "meta-llama/Llama-2-7b-hf";
    });
    EXPECT_LE(a.mean, most) << device;
    EXPECT_GE(a.log_correlation, 0.995) << device;
  }
}

// Bytes alone are off by up to 47 %.
TEST(HeldOut, QuantizedDecodeOfOtherFormats) {
  const std::vector<Row> rows = stored("quant_published.jsonl");
  const BoundModel bound = find_model("quantized_decode").bind(rows, nullptr);
  EXPECT_EQ(bound.samples.size(), 23u);
  const std::vector<double> ratios = left_out_ratios(bound.parameters, bound.predict, bound.samples);
  for (size_t i = 0; i < ratios.size(); ++i) EXPECT_NEAR(1 / ratios[i], 1, 0.1) << bound.samples[i].group;
}

// PEs at work in AlexNet's convolutions on Eyeriss, by the row-stationary mapping of the cost engine: Chen et al., JSSC 2017.
TEST(HeldOut, EyerissPEs) {
  setenv("SATOR_CHIPS", chips_folder().c_str(), 1);
  CostEngine engine(find_chip("eyeriss_v1"));
  int layers = 0;
  for (const Row& row : stored("chips_published.jsonl")) {
    if (row.fields.value("chip", "") != "Eyeriss-v1" || row.fields.value("network", "") != "AlexNet" ||
        !row.fields.contains("shape"))
      continue;
    const nlohmann::json& shape = row.fields.at("shape");
    auto of = [&](const char* key) { return static_cast<int64_t>(number(shape, key)); };
    const int64_t stride = std::max<int64_t>(1, of("stride")), groups = std::max<int64_t>(1, of("groups"));
    const int64_t out = (of("H") - of("R")) / stride + 1;
    Work w{.statement = {}, .operands = {}, .multiply_accumulate = true};
    w.statement.name = "convolution";
    w.statement.domain =
        Domain::box({"n", "k", "p", "q", "c", "r", "s"},
                    {row.fields.at("batch"), of("K_total") / groups, out, out, of("C_per_group"), of("R"), of("R")});
    const QuasiAffine p = variable(2), q = variable(3);
    w.statement.accesses = {
        {"I", Role::read, {{variable(0), variable(4), p * stride + variable(5), q * stride + variable(6)}}},
        {"W", Role::read, {{variable(1), variable(4), variable(5), variable(6)}}},
        {"O", Role::write, {{variable(0), variable(1), p, q}}}};
    w.operands = {{.bits = 16}, {.bits = 16, .kind = OperandKind::weight}, {.bits = 16}};
    EXPECT_EQ(engine.cost({"convolution", {w}}).statements[0].counts->space, number(row.fields, "active_PEs"))
        << row.fields.at("layer");
    ++layers;
  }
  EXPECT_EQ(layers, 5);
}

// Whatever stands in a row's fields: it is read or left out.
TEST(Models, LeaveOutRowsThatTheyCannotRead) {
  const nlohmann::json layer = {{"prob", {{"C", 64}, {"K", 64}, {"N", 1}, {"P", 8}, {"Q", 8}, {"R", 1}, {"S", 1}}},
                                {"mapping", "L3[WIO] K2 - L2[WI] K2 K16X - L1[O] P8 Q8 C4 C16X - L0[W] N1"},
                                {"gemmini_rtl_cycles", 5000}};
  EXPECT_EQ(bind_gemmini_rtl({{layer, "x"}}, nullptr).samples.size(), 1u);
  for (const char* mapping : {"",
                              "L3",
                              "L3[WIO] K2",
                              "L3[WIO] X2 - L2[WI] K2 - L1[O] P8 - L0[W] N1",
                              "L3 K- - L2 - L1 - L0",
                              "K2 - L3 - L2 - L1 - L0",
                              "L3 K99999999999999999999 - L2 - L1 - L0",
                              "L3 K0 - L2 - L1 - L0"}) {
    nlohmann::json bad = layer;
    bad["mapping"] = mapping;
    EXPECT_EQ(bind_gemmini_rtl({{bad, "x"}}, nullptr).samples.size(), 0u) << mapping;
  }
  const nlohmann::json gemm = {{"device", "A100-80GB"}, {"M", 8}, {"N", 64}, {"K", 64}, {"latency_ms", 0.01}};
  EXPECT_EQ(bind_gpu_gemm({{gemm, "x"}}, nullptr).samples.size(), 1u);
  for (const auto& [key, value] : std::initializer_list<std::pair<const char*, nlohmann::json>>{{"M", 0},
                                                                                                {"M", "8"},
                                                                                                {"M", 8.5},
                                                                                                {"M", 1e30},
                                                                                                {"N", -1},
                                                                                                {"K", nullptr},
                                                                                                {"B", 0},
                                                                                                {"latency_ms", 0},
                                                                                                {"latency_ms", -1},
                                                                                                {"dtype", "fp99"},
                                                                                                {"device", "abacus"},
                                                                                                {"device", 3}}) {
    nlohmann::json bad = gemm;
    bad[key] = value;
    EXPECT_EQ(bind_gpu_gemm({{bad, "x"}}, nullptr).samples.size(), 0u) << bad.dump();
  }
  nlohmann::json wide = gemm;
  wide["dtype"] = "fp32(no TF32)";
  EXPECT_EQ(bind_gpu_gemm({{wide, "x"}}, nullptr).samples.size(), 1u);
  // Fewer rows than constants say nothing of them.
  const BoundModel one = bind_gpu_gemm({{gemm, "x"}}, nullptr);
  EXPECT_NE(error_of([&] { calibrate(find_model("gpu_gemm"), one, "any", "one row"); }).find("1 rows are too few for"),
            std::string::npos);
  EXPECT_THROW(bind_engine({{gemm, "x"}}, nullptr), Error);
  EXPECT_THROW(find_model("gpu"), Error);
}

// The engine's own calibration: measurements made by a slower copy of the chip give back how much slower it is.
TEST(Models, EngineFindsASlowerCopy) {
  const Chip chip = find_chip(std::string(SATOR_SOURCE_DIR) + "/chips/gemmini16.toml");
  std::vector<Row> rows;
  for (auto [m, n, k] : {std::tuple{1, 512, 512},
                         {8, 1024, 256},
                         {512, 512, 512},
                         {256, 256, 1024},
                         {1024, 128, 128},
                         {16, 16, 16},
                         {2, 64, 64},
                         {128, 1024, 1024}})
    rows.push_back({{{"M", m}, {"N", n}, {"K", k}, {"dtype", "int8"}, {"us", 1}}, "x"});
  BoundModel bound = bind_engine(rows, &chip);
  ASSERT_EQ(bound.samples.size(), rows.size());
  EXPECT_EQ(bound.undecided, std::vector<std::string>{"vector_time"});  // products alone have no work for it
  const std::vector<double> slower = {1.5, 2.5, 5e-6};
  for (Sample& s : bound.samples) s.measured = bound.predict(slower, s.features);
  const Calibration c = calibrate(find_model("engine"), bound, chip.name, "a slower copy");
  EXPECT_NEAR(c.constant("array_time"), 1.5, 1e-3);
  EXPECT_NEAR(c.constant("memory_time"), 2.5, 1e-3);
  EXPECT_NEAR(c.constant("overhead"), 5e-6, 1e-8);
  const ChipCalibration on_chip = for_chip(parse_calibration(to_toml(c), "c.toml"), chip);
  EXPECT_NEAR(on_chip.memory_time, 2.5, 1e-3);
  // What the engine multiplies its times with is known by name, and is positive.
  auto read = [&](const std::string& from, const std::string& to) {
    std::string file = to_toml(c);
    file.replace(file.find(from), from.size(), to);
    return error_of([&] { parse_calibration(file, "c.toml"); });
  };
  EXPECT_NE(read("array_time", "arry_time").find("c.toml line"), std::string::npos);
  EXPECT_NE(read("name = \"array_time\"\nvalue = ", "name = \"array_time\"\nvalue = -").find("times the description's"),
            std::string::npos);
}

// Rows that the outermost memory binds, at half of its bandwidth: nvdla_small moves a byte per cycle of 1 ns, and a product of
// one row moves N K codes, K inputs and N sums of 16 bits.
std::vector<Row> rows_at_half_bandwidth() {
  std::vector<Row> rows;
  for (auto [n, k] :
       {std::pair{64, 64}, {128, 256}, {512, 512}, {1024, 768}, {768, 3072}, {2048, 2048}, {96, 4000}, {4096, 4096}}) {
    const double bytes = static_cast<double>(n) * k + k + 2.0 * n;
    rows.push_back({{{"M", 1}, {"N", n}, {"K", k}, {"dtype", "int8"}, {"us", 2 * bytes * 1e-3 + 30}}, "x"});
  }
  return rows;
}

TEST(Models, EngineLeavesWhatRowsDoNotSayAsDescribed) {
  const Chip chip = shipped("nvdla_small");
  const BoundModel bound = bind_engine(rows_at_half_bandwidth(), &chip);
  EXPECT_EQ(bound.undecided, (std::vector<std::string>{"array_time", "vector_time"}));
  const Calibration c = calibrate(find_model("engine"), bound, chip.name, "half of the bandwidth");
  EXPECT_NEAR(c.constant("memory_time"), 2, 0.05);
  EXPECT_NEAR(c.constant("overhead"), 30e-6, 1e-6);
  EXPECT_EQ(for_chip(c, chip).array_time, 1);
}

// A calibration is one of its model and of its chip, whatever it is used for.
TEST(Models, CalibrationsOfAnotherChipAreRefusedByName) {
  const Chip chip = shipped("nvdla_small"), other = shipped("gemmini16");
  const Calibration c = calibrate(find_model("engine"), bind_engine(rows_at_half_bandwidth(), &chip), chip.name, "x");
  require(c, "engine", &chip);
  require(c, "engine", nullptr);
  EXPECT_NE(error_of([&] { require(c, "engine", &other); }).find("for chip nvdla_small"), std::string::npos);
  EXPECT_NE(error_of([&] { for_chip(c, other); }).find("needs: model engine, chip gemmini16"), std::string::npos);
  EXPECT_NE(error_of([&] { require(c, "gpu_gemm", &chip); }).find("is of model engine"), std::string::npos);
  // By alias too.
  Calibration by_alias = c;
  by_alias.chip = "gemmini_16";
  require(by_alias, "engine", &other);

  Chip calibrated = chip;
  calibrated.calibration = for_chip(c, chip);
  EXPECT_EQ(changed(calibrated, {.tile = {{8, 8, 8}}}).calibration->rows, 8);
  for (const ChipChanges& changes : {ChipChanges{.pe = {{16, 16}}}, ChipChanges{.dataflow = Stationary::output}})
    EXPECT_NE(error_of([&] { changed(calibrated, changes); }).find("another array or dataflow"), std::string::npos);
}

}  // namespace
}  // namespace sator::dataflow
