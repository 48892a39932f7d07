// Batches, contexts and chips that share layers, from the example's program: nothing is run.
#include "study/sweep.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "dataflow/cost/collective.h"
#include "study/by_hand.h"
#include "study/cost_program.h"
#include "study/json.h"
#include "study/sample.h"
#include "study/traces.h"
#include "study/workers.h"
#include "temp_folder.h"

namespace sator::study {
namespace {

constexpr int64_t kLayers = 8, kWidth = 256;  // of examples/gpt2-stories

SchemeJob job_of(const std::string& scheme, SweepAxes sweep, int64_t chips = 1) {
  SchemeJob job{.scheme = llm::parse_scheme(scheme), .options = {}, .decode_context = 144};
  job.options.model = std::string(SATOR_SOURCE_DIR) + "/examples/gpt2-stories";
  job.options.shapes_only = true;
  job.options.sweep = std::move(sweep);
  job.options.changes.chips = chips;
  return job;
}

ChipResult cost_of(const SchemeJob& job, const Chip& chip) {
  return model_workers().cost(job, std::vector<Chip>{chip}, [](const std::string&, bool) {}).at(0);
}

// One sequence at the protocol's lengths is what the study's phases are.
TEST(Sweep, HasTheStudysPhasesAmongItsPoints) {
  for (const char* scheme : {"f16", "int8-channel+a8"}) {
    const ChipResult result = cost_of(job_of(scheme, {{1}, {128, 144}}), shipped("edge_npu32"));
    ASSERT_EQ(result.sweep.size(), 2U);
    const SweepCost &prefill = result.sweep[0].prefill, &decode = result.sweep[1].decode;
    EXPECT_EQ(prefill.latency_cycles, result.prefill.cost.latency_cycles);
    EXPECT_EQ(prefill.macs, result.prefill.cost.macs);
    EXPECT_EQ(decode.latency_cycles, result.decode.cost.latency_cycles);
    EXPECT_EQ(decode.macs, result.decode.cost.macs);
    EXPECT_EQ(decode.bound, result.decode.cost.bound);
    EXPECT_NEAR(decode.utilization, result.decode.cost.utilization, 1e-9);
    EXPECT_NEAR(decode.energy_j / result.decode.cost.energy_j, 1, 1e-9);
    EXPECT_EQ(decode.kernels_without_cost, 0);
  }
}

// A prompt of one token more than a chunk: a session takes that token in by its decode function.
TEST(Sweep, ALastChunkOfOneTokenIsADecodeStep) {
  TempFolder model;
  Json config = parse_json(read_file(fs::path(SATOR_SOURCE_DIR) / "examples/gpt2-stories/config.json"), "config.json");
  config["n_positions"] = 1024;
  model.write("config.json", config.dump());
  const int64_t chunk = llm::kPrefillChunk;
  auto cost = [&](int64_t prompt_len) {
    SchemeJob job = job_of("int8-channel+a8", {{1}, {prompt_len}});
    job.options.model = model.path();
    job.options.prompt_len = prompt_len;
    job.decode_context = chunk + 1;
    return cost_of(job, shipped("edge_npu32"));
  };
  const ChipResult one_chunk = cost(chunk), more = cost(chunk + 1), token = cost(1);
  EXPECT_EQ(more.prefill.cost.latency_cycles,
            one_chunk.prefill.cost.latency_cycles + one_chunk.decode.cost.latency_cycles);
  EXPECT_EQ(more.prefill.cost.macs, one_chunk.prefill.cost.macs + one_chunk.decode.cost.macs);
  EXPECT_EQ(more.sweep.at(0).prefill.latency_cycles, more.prefill.cost.latency_cycles);
  std::set<std::string> launched, decode;
  for (const KernelRow& row : token.prefill.rows) launched.insert(row.function);
  for (const KernelRow& row : token.decode.rows) decode.insert(row.function);
  EXPECT_EQ(launched, decode);
}

// Blocks that are alike, few of them counted as often as there are more, cost what all do.
TEST(Sweep, LikeBlocksAreCostedOnce) {
  const SchemeJob job = job_of("int8-channel+a8", {});
  ChipCoster coster(shipped("edge_npu32"));
  SweepCost whole[2], one[2];
  for (bool once : {false, true}) {
    const ProgramAtPhase3 at =
        program_at_phase3(job.options.model, {.scheme = job.scheme, .program = {.alike_once = once}});
    const llm::Workload workload(at.module, at.program);
    if (once) EXPECT_LT(at.program.attention.size(), static_cast<size_t>(kLayers));
    Steps steps(workload, at.program.repeats);
    (once ? one : whole)[0] = step_cost(steps.prefill(77, 77), 77, coster, {});
    (once ? one : whole)[1] = step_cost(steps.decode(5, 90), 5, coster, {});
  }
  for (int phase : {0, 1}) {
    EXPECT_EQ(one[phase].latency_cycles, whole[phase].latency_cycles);
    EXPECT_EQ(one[phase].macs, whole[phase].macs);
    EXPECT_EQ(one[phase].outer_bytes, whole[phase].outer_bytes);
    EXPECT_EQ(one[phase].bound, whole[phase].bound);
  }
}

/// What a step of a published model launches, layer by layer: "function, layer, count".
std::vector<std::string> launches_of(const fs::path& config, const std::string& scheme, bool once) {
  struct Launch {
    std::string function, layer;
    int64_t count;
  };
  const ProgramAtPhase3 at =
      program_at_phase3(config, {.scheme = llm::parse_scheme(scheme), .program = {.alike_once = once}});
  const llm::Workload workload(at.module, at.program);
  std::vector<llm::KernelCall> calls;
  // A second step launches attention at another size.
  for (const llm::StepSize& step : {llm::StepSize{.tokens = 512, .context = 512}, {.tokens = 512, .context = 1024}})
    for (llm::KernelCall& call : workload.calls("prefill", step)) calls.push_back(std::move(call));
  std::vector<Launch> launches;
  for (const PhaseKernel& k : kernels_of(calls, shipped("edge_npu32")))
    launches.push_back({k.calls.function, k.calls.layer, k.calls.count});
  at.program.repeats.expand(launches, &Launch::layer);
  std::vector<std::string> out = {text(llm::weight_bytes(at.program), " bytes of weights"),
                                  text(llm::cache_bytes(at.program, 4096), " of cache")};
  for (const Launch& l : launches) out.push_back(text(l.function, ", ", l.layer, ", ", l.count));
  return out;
}

// Where few blocks stand for those like them, each layer of the model launches what it does in the program of all blocks, in
// the same order: layers that differ by turns (Gemma 3, SmolLM3, gpt-oss), first ones of another kind (DeepSeek), factors
// that lie between a block and the next (Granite), parallel halves (Command R).
TEST(Sweep, LikeBlocksLaunchWhatAllBlocksDo) {
  for (const auto& [model, scheme] : {std::pair{"gemma-3-27b", "f16"},
                                      {"smollm3-3b", "int4-group32"},
                                      {"gpt-oss-20b", "int8-channel"},
                                      {"deepseek-v2-lite", "int4-group32+a8"},
                                      {"granite-3.1-8b", "int4-group32+a8"},
                                      {"command-r7b", "int8-channel+a8"}}) {
    const fs::path folder = fs::path(SATOR_SOURCE_DIR) / "tests/reference/models/published" / model;
    EXPECT_EQ(launches_of(folder, scheme, true), launches_of(folder, scheme, false)) << model;
  }
}

// A batch does the work of its sequences, but reads the weights once.
TEST(Sweep, BatchesShareTheWeights) {
  const ChipResult result = cost_of(job_of("f16", {{1, 4, 16}, {100}}), shipped("edge_npu32"));
  ASSERT_EQ(result.sweep.size(), 3U);
  const SweepPoint& one = result.sweep[0];
  for (const SweepPoint& point : result.sweep) {
    EXPECT_EQ(point.decode.macs, point.batch * one.decode.macs);
    EXPECT_EQ(point.prefill.macs, point.batch * one.prefill.macs);
    EXPECT_EQ(point.prefill.latency_cycles, point.batch * one.prefill.latency_cycles);
    EXPECT_GE(point.decode.latency_cycles, one.decode.latency_cycles);
    if (point.batch > 1) EXPECT_LT(point.decode.outer_bytes, point.batch * one.decode.outer_bytes / 2);
  }
}

// Prompts that are taken in together do the work of each, by the arithmetic of the configuration, but read the weights once;
// with logits for every token the head sees all of them.
TEST(Sweep, PromptsTakenInTogetherShareTheWeights) {
  const SchemeJob job = job_of("f16", {});
  const ProgramAtPhase3 at = program_at_phase3(job.options.model, {.scheme = job.scheme});
  const ModelConfig config = llm::config_of(job.options.model);
  const llm::Workload workload(at.module, at.program);
  Steps steps(workload, at.program.repeats);
  ChipCoster coster(shipped("edge_npu32"));
  const int64_t tokens = 33, head = kWidth * config.vocab_size;
  const SweepCost one = step_cost(steps.prefill(tokens, tokens), tokens, coster, {});
  EXPECT_EQ(one.macs, llm::macs_of_step(config, {.tokens = tokens, .context = tokens}));
  for (int64_t batch : {1, 2, 7}) {
    const SweepCost last = step_cost(steps.prefill_of(batch, tokens, tokens), batch * tokens, coster, {});
    const SweepCost all =
        step_cost(steps.prefill_of(batch, tokens, tokens, Steps::Logits::all), batch * tokens, coster, {});
    EXPECT_EQ(last.macs, batch * one.macs) << batch;
    EXPECT_EQ(all.macs, batch * (one.macs + (tokens - 1) * head)) << batch;
    EXPECT_EQ(last.kernels_without_cost + all.kernels_without_cost, 0);
    if (batch > 1) EXPECT_LT(last.outer_bytes, batch * one.outer_bytes);
  }
}

// A batch's attention is one launch: the step launches as many kernels as one sequence's, and each sequence has keys and
// values of its own.
TEST(Sweep, ABatchLaunchesAttentionOnce) {
  const SchemeJob job = job_of("f16", {});
  const ProgramAtPhase3 at = program_at_phase3(job.options.model, {.scheme = job.scheme});
  const llm::Workload workload(at.module, at.program);
  Steps steps(workload, at.program.repeats);
  ChipCoster coster(shipped("a100"));
  auto attention = [&](int64_t batch) {
    int64_t launches = 0;
    SweepCost cost;
    for (const CountedCall& c : steps.decode(batch, 144))
      if (c.call.function == "attention") launches += c.count, cost = coster.cost_of(c.call);
    EXPECT_EQ(launches, kLayers) << batch;
    return cost;
  };
  const SweepCost one = attention(1), many = attention(64);
  EXPECT_EQ(many.macs, 64 * one.macs);
  EXPECT_EQ(many.outer_bytes, 64 * one.outer_bytes);
  EXPECT_GE(many.latency_cycles, one.latency_cycles);
  EXPECT_LT(many.latency_cycles,
            64 * one.latency_cycles / 4);  // a launch takes longer than a sequence's keys and values
}

// Each further token in the cache is another multiply-accumulate per number of the layers' queries, for scores and for values.
TEST(Sweep, ContextsGrowByAttentionAlone) {
  const ChipResult result = cost_of(job_of("f16", {{1, 3}, {57, 58, 511, 512}}), shipped("edge_npu32"));
  for (size_t p : {0U, 2U, 4U, 6U}) {
    const SweepPoint &less = result.sweep[p], &more = result.sweep[p + 1];
    EXPECT_EQ(more.context, less.context + 1);
    EXPECT_EQ(more.decode.macs - less.decode.macs, less.batch * kLayers * 2 * kWidth);
  }
}

Chip linked() {
  Chip chip = shipped("edge_npu32");
  chip.link = ChipLink{.name = "link",
                       .source = "by hand",
                       .bytes_per_second = 1e9,
                       .latency_s = 1e-6,
                       .chips = 8,
                       .energy_per_bit = {.picojoules = 10, .source = "by hand"}};
  return chip;
}

// Two chips halve every product of the layers; the head is whole on both. 2 x 2 (n - 1) / n x bytes and 2 messages a layer.
TEST(Parallel, ChipsShareLayersAndSumTwiceInEach) {
  const ChipResult one = cost_of(job_of("f16", {}), linked()), two = cost_of(job_of("f16", {{4}, {100}}, 2), linked());
  const int64_t head = one.decode.rows.back().cost.macs;
  EXPECT_GT(head, 0);
  EXPECT_EQ(2 * two.decode.cost.macs - head, one.decode.cost.macs);
  struct Phase {
    const PhaseResult& result;
    int64_t tokens;
  };
  for (const Phase& phase : {Phase{two.prefill, 128}, Phase{two.decode, 1}}) {
    int64_t sums = 0, cycles = 0;
    for (const KernelRow& row : phase.result.rows) {
      cycles += row.cost.latency_cycles * row.count;
      if (row.function != "all_reduce") continue;
      ++sums;
      const double seconds = static_cast<double>(phase.tokens * kWidth * 4) / 1e9 + 2e-6;
      EXPECT_EQ(row.cost.latency_cycles, static_cast<int64_t>(std::ceil(seconds * 1e9 - 1e-6)));
      EXPECT_EQ(at(row.cost.components, Component::links).latency_cycles, row.cost.latency_cycles);
    }
    EXPECT_EQ(sums, 2 * kLayers);
    EXPECT_EQ(cycles, phase.result.cost.latency_cycles);
    EXPECT_EQ(at(phase.result.cost.components, Component::links).latency_cycles,
              2 * kLayers * dataflow::all_reduce_s(linked(), 2, static_cast<double>(phase.tokens * kWidth * 4)) * 1e9);
  }
  // The sweep's steps send as many tokens as the batch has.
  const ChipResult alone = cost_of(job_of("f16", {{1}, {100}}, 2), linked());
  EXPECT_GT(two.sweep.at(0).decode.latency_cycles, alone.sweep.at(0).decode.latency_cycles);
}

// A chip leaks as long as a phase takes, also while it waits for the others.
TEST(Parallel, StaticPowerIsThatOfTheWholePhase) {
  Chip chip = linked();
  chip.static_watts = 0.5, chip.static_source = "by hand";
  const Cost cost = cost_of(job_of("f16", {}, 2), chip).prefill.cost;
  double leaked = 0;
  for (const EnergyShare& part : cost.energy)
    if (part.name == "static") leaked += part.joules;
  EXPECT_NEAR(leaked, 0.5 * cost.latency_s, 1e-9 * leaked);
}

TEST(Parallel, WhatDoesNotDivideIsRefused) {
  EXPECT_NE(error_of([] { cost_of(job_of("f16", {}, 3), linked()); }).find("4 heads cannot be shared by 3 chips"),
            std::string::npos);
  const std::string folder = std::string(SATOR_SOURCE_DIR) + "/chips/";
  EXPECT_EQ(dataflow::described_chip(folder + "h100.toml", {.chips = 4}).name, "h100[4 chips]");
  EXPECT_NE(error_of([&] { dataflow::described_chip(folder + "tpuv1.toml", {.chips = 2}); }).find("tpuv1 has no link"),
            std::string::npos);
  EXPECT_NE(error_of([&] { dataflow::described_chip(folder + "h100.toml", {.chips = 1 << 20}); }).find("chips over"),
            std::string::npos);
}

Study swept() {
  Study study = study_by_hand({{"f16", 20, 1000, 100}}, {"a", "b"});
  study.protocol.parallel = 2;
  SweepCost decode{.latency_cycles = 2000,
                   .latency_s = 2e-6,
                   .macs = 7,
                   .utilization = 0.5,
                   .energy_j = 4e-6,
                   .outer_bytes = 99,
                   .bound = "dram",
                   .kernels_without_cost = 1};
  SweepCost prefill = decode;
  prefill.latency_s = 3e-3;
  study.schemes[0].chips[1].sweep = {{4, 128, prefill, decode}};
  return study;
}

TEST(Sweep, IsWrittenAndReadAgain) {
  const Study study = swept();
  const Json json = to_json(study);
  EXPECT_EQ(json["sweep"].size(), 1U);
  EXPECT_EQ(json["sweep"][0]["chip"], "b");
  EXPECT_EQ(json["sweep"][0]["decode"]["latency_s"], 2e-6);
  EXPECT_EQ(from_json(json, "study.json"), study);
  const std::string csv = sweep_csv(study), table = sweep_table(study);
  // 4 tokens in 2 us; 1 uJ each.
  EXPECT_NE(csv.find("tiny,f16,b,4,128,decode,2e-06,2000,2e+06,7,0.5,4e-06,1e-06,99,dram,1\n"), std::string::npos)
      << csv;
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3);
  EXPECT_EQ(table.find("sweep on a"), std::string::npos);
  EXPECT_NE(table.find("sweep on b"), std::string::npos);
  EXPECT_NE(table.find("f16          4      128    3.00 ms      2.00"), std::string::npos) << table;
  EXPECT_EQ(sweep_table(study_by_hand({{"f16", 20, 1000, 100}}, {"a"})), "");
}

// A node per launch, each after the one before; their times are the phase's.
TEST(Traces, AreChakrasMessages) {
  Study study = study_by_hand({{"f16", 20, 1000, 100}}, {"edge_npu32"});
  study.schemes[0].chips[0] = cost_of(job_of("f16", {}, 2), linked());
  const auto files = trace_files(study);
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[1].first, "chakra/edge_npu32/f16.decode.json");
  const PhaseResult& decode = study.schemes[0].chips[0].decode;
  std::vector<nlohmann::json> messages;
  for (std::string_view line : split(files[1].second, '\n'))
    if (!line.empty()) messages.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(messages.size(), static_cast<size_t>(decode.launches) + 1);
  EXPECT_EQ(messages[0]["version"], "0.0.4");
  int64_t end = 0, sums = 0;
  double exact = 0;
  for (size_t n = 1; n < messages.size(); ++n) {
    const nlohmann::json& node = messages[n];
    EXPECT_EQ(node["id"], text(n));
    if (n > 1) EXPECT_EQ(node["dataDeps"][0], text(n - 1));
    EXPECT_EQ(node["startTimeMicros"], text(end));
    end += std::stoll(node["durationMicros"].get<std::string>());
    std::map<std::string, nlohmann::json> attributes;
    for (const auto& a : node["attr"]) attributes[a["name"]] = a;
    exact += attributes.at("duration_ns")["doubleVal"].get<double>();
    if (node["type"] == "COMP_NODE") continue;
    EXPECT_EQ(node["type"], "COMM_COLL_NODE");
    EXPECT_EQ(attributes.at("comm_size")["int64Val"], text(kWidth * 4));
    ++sums;
  }
  EXPECT_EQ(sums, 2 * kLayers);
  EXPECT_NEAR(exact * 1e-9 / decode.cost.latency_s, 1, 1e-9);
  EXPECT_EQ(end, std::llround(decode.cost.latency_s * 1e6));
}

}  // namespace
}  // namespace sator::study
