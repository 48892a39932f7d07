#include "study/json.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "study/by_hand.h"
#include "study/page.h"
#include "study/sample.h"
#include "temp_folder.h"

namespace sator::study {
namespace {

Study sample() {
  return sample_study({default_samples()[1], default_samples()[9], default_samples()[10]}, {"tpuv1", "edge_npu32"});
}

Study read_back(const Study& study, Kernels kernels) {
  return from_json(parse_json(to_json(study, kernels).dump(), "study.json"), "study.json");
}

TEST(StudyJson, ReadsBackAsItWasWritten) {
  Study study = sample();
  study.schemes[1].host_calls = {{"prefill", "qkv", 12.25}, {"decode", "qkv", 0.5}};
  study.schemes[1].compared = Compared{{0.25, 0.01}, {1e-7, {}}, 0.75};
  study.schemes[1].window_nats = {3.5, 3.25};
  study.schemes[2].standard_error.reset();
  study.schemes[2].host_decode.reset();
  study.protocol.reference = "f32";
  study.protocol.measured_at = "2026-11-22T20:45:03Z";
  study.protocol.rounds = 5;
  const RouteStep step{.macs = 7,
                       .macs_on_chip = 5,
                       .macs_issued = 6,
                       .launches_on_chip = 1,
                       .launches_on_host = 2,
                       .chip_s = 1e-3,
                       .host_s = 1e-5,
                       .outside_bytes = 12.5,
                       .kernels = {{.function = "head", .count = 2, .why = "it is wide", .padded = {"a", "b"}}}};
  study.routes = {{.chip = "tpuv1",
                   .scheme = "f16",
                   .lengths = {.prompt_len = 16, .context = 17},
                   .routes = {{Route::schedule, "f16", step, {}}, {Route::merged, "f16", {}, step}},
                   .notes = {"not joined"}},
                  {.chip = "edge_npu32",
                   .scheme = "f16",
                   .lengths = {},
                   .routes = {{Route::schedule, "f16", step, step}},
                   .notes = {}}};
  study.routes_host = study.chips[1];
  EXPECT_EQ(read_back(study, Kernels::included), study);
  study = sample();
  study.schemes[1].host_calls.clear();
  for (SchemeResult& scheme : study.schemes)
    for (ChipResult& chip : scheme.chips) chip.prefill.rows.clear(), chip.decode.rows.clear();
  EXPECT_EQ(read_back(sample(), Kernels::left_out), study);
}

TEST(StudyJson, NamesTheBaselineOfEachChip) {
  Study study = study_by_hand({{"f16", 30.0, 3, 5}, {"f16+a16", 30.0, 6, 5}}, {"npu", "gpu"});
  study.chips[1].is_16_bit = true;
  Json json = to_json(study);
  EXPECT_EQ(json.at("chips")[0].at("ratio_baseline"), "f16");
  EXPECT_EQ(json.at("chips")[1].at("ratio_baseline"), "f16+a16");
  EXPECT_EQ(read_back(study, Kernels::included), study);
  // Of an earlier version, whose ratios were to f16.
  for (const char* key : {"is_16_bit", "ratio_baseline"}) json["chips"][1].erase(key);
  EXPECT_FALSE(from_json(json, "study.json").chips[1].is_16_bit);
}

TEST(StudyJson, ExtremesReadBack) {
  Study study = study_by_hand({{"f16", std::numeric_limits<double>::infinity(), 1, 3}, {"int4", {}, 7, 9}}, {"chip"});
  study.schemes[0].name = "quotes \" and \\ and \n and <tags> µ";
  study.schemes[1].chips[0].decode.cost.levels[0].read_bits = 12345678901;  // ends inside of a byte
  EXPECT_EQ(read_back(study, Kernels::included), study);
  study.schemes.clear();
  EXPECT_EQ(read_back(study, Kernels::included), study);
}

// A model of many like layers has many like kernels: each is written once.
TEST(StudyJson, KernelsThatDifferInTheirLayerAloneAreWrittenOnce) {
  Study study = sample();
  std::vector<KernelRow>& rows = study.schemes[0].chips[0].prefill.rows;
  ASSERT_FALSE(rows.empty());
  rows.resize(1);
  for (const char* layer : {"h.1.mlp", "h.2.mlp", "h.3.mlp"}) {
    rows.push_back(rows[0]);
    rows.back().layer = layer;
  }
  rows[2].cost.latency_cycles += 1;
  const Json kernels = to_json(study, Kernels::included)["rows"][0]["prefill"]["kernels"];
  EXPECT_EQ(kernels[1], (Json{{"as", 0}, {"layer", "h.1.mlp"}}));
  EXPECT_FALSE(kernels[2].contains("as"));
  EXPECT_EQ(kernels[3], (Json{{"as", 0}, {"layer", "h.3.mlp"}}));
  EXPECT_EQ(read_back(study, Kernels::included), study);
  Json damaged = to_json(study, Kernels::included);
  damaged["rows"][0]["prefill"]["kernels"][1]["as"] = 1;
  EXPECT_NE(error_of([&] { from_json(damaged, "study.json"); }).find("kernels[1].as is 1"), std::string::npos);
}

// The keys that users' scripts rely on.
TEST(StudyJson, HasTheAgreedKeys) {
  const Json json = to_json(sample());
  EXPECT_EQ(json.at("model"), "gpt2-stories");
  EXPECT_EQ(json.at("schema_version"), kSchemaVersion);
  for (const char* key : {"windows", "prompt_len", "gen_len"})
    EXPECT_TRUE(json.at("protocol").at(key).is_number()) << key;
  ASSERT_EQ(json.at("rows").size(), 6U);
  for (const Json& row : json.at("rows")) {
    for (const char* key : {"scheme", "chip"}) EXPECT_TRUE(row.at(key).is_string()) << key;
    for (const char* key : {"perplexity",
                            "standard_error",
                            "weight_bytes",
                            "bits_per_weight",
                            "host_prefill_tokens_per_s",
                            "host_prefill_tokens_per_s_min",
                            "host_decode_tokens_per_s_max",
                            "host_decode_tokens_per_s"})
      EXPECT_TRUE(row.at(key).is_number()) << key;
    for (const char* phase : {"prefill", "decode"}) {
      const Json& cost = row.at(phase);
      for (const char* key : {"latency_s", "latency_cycles", "macs", "mac_units_used", "energy_j", "utilization"})
        EXPECT_TRUE(cost.at(key).is_number()) << key;
      EXPECT_TRUE(cost.at("bound").is_string());
      EXPECT_TRUE(cost.at("bytes").at("dram").is_number());
      for (const char* key : {"required", "achieved", "available"})
        EXPECT_TRUE(cost.at("bandwidth").at("dram").at(key).is_number()) << key;
      double bytes = 0;
      for (const Json& level : cost.at("levels"))
        if (level.at("name") == "dram")
          bytes = level.at("read_bytes").get<double>() + level.at("write_bytes").get<double>();
      EXPECT_EQ(cost.at("bytes").at("dram").get<double>(), bytes);
    }
  }
}

TEST(StudyJson, WhatWasNotMeasuredIsNull) {
  const Json json = to_json(study_by_hand({{"f16", {}, 1, 1}}, {"chip"}));
  EXPECT_TRUE(json.at("rows").at(0).at("perplexity").is_null());
  EXPECT_TRUE(json.at("rows").at(0).at("host_decode_tokens_per_s").is_null());
}

// A chip whose file states no energies, as a folder of TENET's: 0 J would be a claim.
TEST(StudyJson, EnergiesThatNothingStatesAreNull) {
  Study study = study_by_hand({{"f16", {}, 10, 5}}, {"chip"});
  study.chips[0].node_nm = 0;
  for (PhaseResult* phase : {&study.schemes[0].chips[0].prefill, &study.schemes[0].chips[0].decode}) {
    phase->cost.energy_j = 0, phase->cost.energy_node_nm = 0;
    phase->cost.energy.clear();
  }
  const Json json = to_json(study);
  for (const char* key : {"energy_j", "energy_node_nm"})
    EXPECT_TRUE(json.at("rows").at(0).at("prefill").at(key).is_null()) << key;
  EXPECT_TRUE(json.at("chips").at(0).at("node_nm").is_null());
  EXPECT_EQ(read_back(study, Kernels::left_out), study);
  const std::string page = html_page(study);
  for (const char* words : {"0 J", "0 nm"}) EXPECT_EQ(page.find(words), std::string::npos) << words;
}

TEST(StudyJson, DamageIsNamedByItsPlace) {
  const Json good = to_json(sample(), Kernels::included);
  auto error = [&](const std::function<void(Json&)>& damage) {
    Json json = good;
    damage(json);
    return error_of([&] { from_json(json, "study.json"); });
  };
  EXPECT_NE(error([](Json& j) { j.erase("protocol"); }).find("protocol"), std::string::npos);
  EXPECT_NE(error([](Json& j) { j["rows"][2]["prefill"].erase("macs"); }).find("rows[2].prefill"), std::string::npos);
  EXPECT_NE(error([](Json& j) { j["rows"][0]["decode"]["latency_s"] = "fast"; }).find("latency_s"), std::string::npos);
  EXPECT_NE(error([](Json& j) { j["rows"][0]["scheme"] = "int9"; }).find("int9"), std::string::npos);
  EXPECT_NE(error([](Json& j) { j["rows"].erase(0); }).find("one row for each scheme and chip"), std::string::npos);
  EXPECT_NE(error([](Json& j) { j["rows"].erase(j["rows"].size() - 1); }).find("one for each of the"),
            std::string::npos);
  EXPECT_NE(error([](Json& j) { j["rows"].push_back(j["rows"][0]); }).find("one row for each"), std::string::npos);
  EXPECT_NE(error([](Json& j) { j["schema_version"] = 99; }).find("99"), std::string::npos);
  EXPECT_NE(error([](Json& j) { j["routes"] = Json::array({{{"chip", "x"}}}); }).find("routes[0]"), std::string::npos);
  EXPECT_NE(error([](Json& j) { j["rows"][0]["decode"]["levels"][0]["read_bytes"] = -1; }).find("read_bytes"),
            std::string::npos);
}

}  // namespace
}  // namespace sator::study
