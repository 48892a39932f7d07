#include "study/routes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "frontend/hf_config.h"
#include "passes/byoc.h"
#include "relax/parse.h"
#include "study/json.h"
#include "study/route_table.h"
#include "study/sample.h"
#include "temp_folder.h"

namespace sator::study {
namespace {

const fs::path kModel = fs::path(SATOR_SOURCE_DIR) / "examples/gpt2-124m";

/// The calls of GPT-2's steps under a scheme, as the two kinds of routes have them.
class Program {
 public:
  Program(const char* scheme, bool with_patterns, bool merged = false, int64_t prompt_len = 128)
      : at_(with_patterns ? program_with_patterns(kModel, {.scheme = llm::parse_scheme(scheme)}, shipped("edge_npu32"),
                                                  merged, prompt_len)
                          : program_at_phase3(kModel, {.scheme = llm::parse_scheme(scheme)})),
        workload_(at_.module, at_.program) {}

  RouteStep cost(Route route, const char* chip, const char* function, const llm::StepSize& step) const {
    return RouteCoster(shipped(chip), shipped("cpu_avx512_vnni")).cost(route, workload_.calls(function, step));
  }

 private:
  ProgramAtPhase3 at_;
  llm::Workload workload_;
};

// TENET's array has no vector unit: products run on it, whatever else there is on the host.
TEST(Routes, WithoutAVectorUnitTheRestIsTheHosts) {
  const RouteStep step =
      Program("f16", false).cost(Route::schedule, "tenet-8x8", "decode", {.tokens = 1, .context = 64});
  EXPECT_EQ(step.share(), 1);
  EXPECT_GT(step.launches_on_host, 0);
  EXPECT_GT(step.host_s, 0);
}

// Shares by the arithmetic of config.json alone: 12 layers of width 768, a vocabulary of 50,257.
TEST(Routes, SharesAreThoseOfTheConfiguration) {
  const ModelConfig config = read_model_config(kModel);
  struct Step {
    const char* function;
    llm::StepSize size;
  };
  for (const char* scheme : {"f16", "int8-channel+embed+a8-token"}) {
    const Program whole(scheme, false), with_patterns(scheme, true);
    for (const Step& step :
         {Step{"prefill", {.tokens = 128, .context = 128}}, Step{"decode", {.tokens = 1, .context = 256}}}) {
      SCOPED_TRACE(testing::Message() << step.function << " " << scheme);
      const int64_t all = llm::macs_of_step(config, step.size);
      const int64_t tokens = step.size.tokens, rectangle = 12 * 2 * 768 * tokens * step.size.context;
      // No token sees a later one: half of a square of tokens x tokens, less the diagonal's half, is masked. An intrinsic computes it all
      // the same; blocks of R tokens leave out what none of theirs sees: of n tokens (n + R) / 2 positions each are left.
      const int64_t masked = 12 * 2 * 768 * tokens * (tokens - 1) / 2, attention = rectangle - masked;
      const RouteStep schedule = whole.cost(Route::schedule, "edge_npu32", step.function, step.size);
      EXPECT_EQ(schedule.macs, all);
      EXPECT_EQ(schedule.macs_on_chip, all);
      EXPECT_EQ(schedule.launches_on_host, 0);
      EXPECT_EQ(schedule.host_s, 0);
      // 50,257 = 29 x 1733 is no multiple of 32; everything else is. The last of 1,571 tiles has 17 columns.
      const RouteStep tensorize = whole.cost(Route::tensorize, "edge_npu32", step.function, step.size);
      EXPECT_EQ(tensorize.macs, all);
      EXPECT_EQ(tensorize.macs_on_chip, all);
      const int64_t run = schedule.macs_issued - (all - attention), products = 12 * 2 * 768;
      int64_t columns_again = 0;  // of keys and values: in for each block that sees them
      if (tokens > 1) {
        const int64_t block = 2 * run / products / tokens - tokens;
        EXPECT_EQ(run, products * tokens * (tokens + block) / 2);
        EXPECT_TRUE(block == 16 || block == 32 || block == 64) << block;
        columns_again = tokens / block * (tokens + block) / 2 - tokens;
      } else {
        EXPECT_EQ(run, rectangle);
      }
      EXPECT_EQ(tensorize.macs_issued, all + masked + 768 * (1571 * 32 - 50257));
      EXPECT_EQ(tensorize.launches_on_host, 0);
      const auto is_padded = [](const RouteKernel& k) { return !k.padded.empty(); };
      ASSERT_EQ(std::ranges::count_if(tensorize.kernels, is_padded), 1);
      EXPECT_NE(
          std::ranges::find_if(tensorize.kernels, is_padded)->padded[0].find("50257 outputs along an axis to 50272"),
          std::string::npos);
      EXPECT_GE(tensorize.outside_bytes + static_cast<double>(products * columns_again * 4), schedule.outside_bytes);
      // Attention is a call of the cache: no op of the graph.
      const RouteStep pattern = with_patterns.cost(Route::pattern, "edge_npu32", step.function, step.size);
      EXPECT_EQ(pattern.macs, all);
      EXPECT_EQ(pattern.macs_on_chip, all - attention);
      EXPECT_EQ(pattern.launches_on_chip, 12 * 4 + 1);
      EXPECT_EQ(pattern.macs_issued, pattern.macs_on_chip);
      EXPECT_EQ(std::ranges::count_if(pattern.kernels, [](const RouteKernel& k) { return !k.why.empty(); }), 1);
      // What is not fused to its product passes the memory once more; codes that a product's chain makes save some of it.
      if (std::string(scheme) == "f16") EXPECT_GT(pattern.outside_bytes, schedule.outside_bytes);
    }
  }
}

// A context that is no multiple of the array's 32: scores are padded to 224 columns, values to 224 rows.
TEST(Routes, ARaggedContextIsPadded) {
  const ModelConfig config = read_model_config(kModel);
  const llm::StepSize step{.tokens = 1, .context = 200};
  const RouteStep tensorize = Program("f16", false).cost(Route::tensorize, "edge_npu32", "decode", step);
  EXPECT_EQ(tensorize.share(), 1);
  EXPECT_EQ(tensorize.macs_issued,
            llm::macs_of_step(config, step) + 768 * (1571 * 32 - 50257) + 12 * 2 * 768 * (224 - 200));
  EXPECT_EQ(tensorize.launches_on_host, 0);
}

// Heads have 64 elements: of 256 x 256 PEs attention uses a quarter of the rows or columns, the rest multiplies zeros.
TEST(Routes, ALargeArrayMultipliesZeros) {
  const llm::StepSize step{.tokens = 1, .context = 512};
  const RouteStep tensorize = Program("f16", false).cost(Route::tensorize, "tpuv1", "decode", step);
  EXPECT_EQ(tensorize.share(), 1);
  const auto attention = std::ranges::find(tensorize.kernels, "attention", &RouteKernel::function);
  ASSERT_NE(attention, tensorize.kernels.end());
  EXPECT_EQ(attention->macs, 2 * 768 * 512);
  EXPECT_EQ(attention->macs_issued, 4 * attention->macs);
}

// The two matrices of an MLP are neighbours once the activation between them is the chip's: their kernels become one, and what
// lies between, 3,072 numbers of 4 bytes, crosses the chip's edge no more. A prompt's would be 1.5 MB, and stays apart.
TEST(Routes, NeighbouringPartsAreMergedWhereThereIsRoom) {
  const llm::StepSize token{.tokens = 1, .context = 128}, prompt{.tokens = 128, .context = 128};
  const Program apart("f16", true), together("f16", true, true);
  const RouteStep pattern = apart.cost(Route::pattern, "edge_npu32", "decode", token);
  const RouteStep merged = together.cost(Route::merged, "edge_npu32", "decode", token);
  EXPECT_EQ(merged.macs_on_chip, pattern.macs_on_chip);
  EXPECT_EQ(pattern.launches_on_chip, 12 * 4 + 1);
  EXPECT_EQ(merged.launches_on_chip, 12 * 3 + 1);
  EXPECT_EQ(pattern.outside_bytes - merged.outside_bytes, 12 * 2 * 3072 * 4);
  EXPECT_EQ(together.cost(Route::merged, "edge_npu32", "prefill", prompt).launches_on_chip, 12 * 4 + 1);
}

// Half of the 256 KB between parts holds 131,072 / (3072 * 4) = 10.7 rows: a prompt of 10 tokens is merged, one of 11 is not.
TEST(Routes, MergedIsJudgedForThePromptThatIsAsked) {
  for (const int64_t rows : {10, 11}) {
    SCOPED_TRACE(rows);
    const Program together("f16", true, true, rows);
    const RouteStep step = together.cost(Route::merged, "edge_npu32", "prefill", {.tokens = rows, .context = rows});
    EXPECT_EQ(step.launches_on_chip, 12 * (rows == 10 ? 3 : 4) + 1);
  }
}

// A chip that takes the gated MLP of a Llama whole, and nothing else: per layer and token 3 products of 64 x 160, in one launch.
TEST(Routes, AGraphOfAChipsFileTakesTheGatedMlpWhole) {
  TempFolder folder;
  write_file(folder.path() / "config.json",
             R"({"model_type":"llama","vocab_size":100,"hidden_size":64,"intermediate_size":160,"num_hidden_layers":3,
                 "num_attention_heads":4,"num_key_value_heads":2,"eos_token_id":2,"bos_token_id":1,"torch_dtype":"float16",
                 "max_position_embeddings":256})");
  const std::string plain = read_file(chips_folder() / "tpuv4_like.toml");
  const Chip chip = parse_chip(plain + R"toml(
[[pattern]]
name = "gated_mlp"
graph = [
  "gate, up = split(rescale?(matmul(x, dequantize?(w13))))",
  "y = rescale?(matmul(silu(gate) * up, dequantize?(w2)))",
]
constant_weight = true
)toml",
                               "gated.toml");
  const ModelConfig config = read_model_config(folder.path());
  for (const char* scheme : {"f16", "int8-channel", "int4-group32"}) {
    SCOPED_TRACE(scheme);
    std::vector<std::string> notes;
    const ProgramAtPhase3 at =
        program_with_patterns(folder.path(), {.scheme = llm::parse_scheme(scheme)}, chip, false, 24, &notes);
    const llm::Workload workload(at.module, at.program);
    for (const int64_t tokens : {1, 24}) {
      const llm::StepSize size{.tokens = tokens, .context = 24};
      const RouteStep step = RouteCoster(chip, shipped("cpu_avx512_vnni"))
                                 .cost(Route::pattern, workload.calls(tokens == 1 ? "decode" : "prefill", size));
      EXPECT_EQ(step.macs, llm::macs_of_step(config, size));
      EXPECT_EQ(step.macs_on_chip, 3 * tokens * 3 * 64 * 160);
      EXPECT_EQ(step.launches_on_chip, 3) << "one per layer";
    }
  }
}

/// What FuseOpsByPattern says of x [n, 64] f32 times a matrix of the model's [64, 96], packed 4 or 8 codes to a word by `words`
/// columns, under a pattern with these limits; "taken" where it is.
std::string verdict(const std::function<void(ChipPattern&)>& limit, int64_t words = 24) {
  const ModuleRef module =
      relax::parse_module(text(R"(
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def dequantize(codes: T.Buffer((T.int64(64), T.int64()",
                               words,
                               R"()), "uint32"), w: T.Buffer((T.int64(64), T.int64(96)), "float32")):
        T.func_attr({"role": "dequantize", "tir.noalias": T.bool(True)})
        for i, j in T.grid(T.int64(64), T.int64(96)):
            with T.block("dequantize"):
                vi, vj = T.axis.remap("SS", [i, j])
                w[vi, vj] = T.Cast("float32", codes[vi, vj // T.int64()",
                               96 / words,
                               R"()])

    @R.function
    def main(x: R.Tensor(("n", 64), "float32"), params: R.Tuple(R.Tensor((64, )",
                               words,
                               R"(), "uint32"))) -> R.Tensor(("n", 96), "float32"):
        n = T.int64()
        R.func_attr({"num_input": 1})
        cls = Module
        with R.dataflow():
            codes = params[0]
            w = R.call_tir(cls.dequantize, (codes,), out_sinfo=R.Tensor((64, 96), dtype="float32"))
            gv = R.matmul(x, w)
            R.output(gv)
        return gv
)"));
  Chip chip = shipped("gemmini16");
  limit(chip.patterns.at(0));
  std::string said;
  passes::PassContext ctx{.bounds = {{"n", 128}}};
  ctx.explain = [&](const std::string&, const std::string& message) {
    if (said.empty()) said = message.substr(message.find(": ") + 2);
  };
  const ModuleRef fused = passes::fuse_ops_by_pattern(module, ctx, passes::patterns_of(chip));
  return fused != module && said.empty() ? "taken" : said;
}

// A pattern takes what its limits allow, and says why not.
TEST(Routes, PatternsHaveLimits) {
  EXPECT_EQ(verdict([](ChipPattern&) {}), "taken");
  EXPECT_EQ(verdict([](ChipPattern& p) { p.constant_weight = true; }), "taken");
  EXPECT_EQ(verdict([](ChipPattern& p) { p.dtypes = {"float32"}; }), "taken");
  EXPECT_EQ(verdict([](ChipPattern& p) { p.dtypes = {"int8", "float16"}; }),
            "its first factor is of float32, and not of int8 or float16");
  EXPECT_EQ(verdict([](ChipPattern& p) { p.weight_bits = {8}; }, 24), "taken");
  EXPECT_EQ(verdict([](ChipPattern& p) { p.weight_bits = {4}; }, 12), "taken");
  EXPECT_EQ(verdict([](ChipPattern& p) { p.weight_bits = {4}; }, 24), "its weights are stored in 8 bits, and not in 4");
  EXPECT_EQ(verdict([](ChipPattern& p) { p.max_m = 128, p.max_n = 96, p.max_k = 64; }), "taken");
  EXPECT_EQ(verdict([](ChipPattern& p) { p.max_m = 127; }), "it has 128 rows, and at most 127 are allowed");
  EXPECT_EQ(verdict([](ChipPattern& p) { p.max_n = 95; }), "it has 96 columns, and at most 95 are allowed");
  EXPECT_EQ(verdict([](ChipPattern& p) { p.max_k = 63; }), "it has 64 summands, and at most 63 are allowed");
}

TEST(Routes, AGraphsOpIsRefusedAtItsLine) {
  const std::string plain = read_file(chips_folder() / "tpuv4_like.toml");
  const auto line = std::ranges::count(plain, '\n') + 5;
  for (const auto& [op, message] : {std::pair{"sliu(h)", "there is no op called \"sliu\""},
                                    {"silu(h, h)", "silu has 2 operands"},
                                    {"matmul(h, h, h)", "matmul has 3 operands"}}) {
    const Chip chip = parse_chip(
        text(plain, "\n[[pattern]]\nname = \"a\"\ngraph = [\"h = matmul(x, w)\",\n\"y = ", op, "\"]\n"), "my.toml");
    const std::string said = error_of([&] { passes::patterns_of(chip); });
    EXPECT_NE(said.find(message), std::string::npos) << said;
    EXPECT_NE(said.find(text("my.toml line ", line)), std::string::npos) << said;
  }
}

TEST(Routes, AnUnknownOpOfAPatternIsRefusedAtItsLine) {
  Chip chip = shipped("gemmini16");
  chip.patterns.at(0).ops.push_back({{"rleu"}, true});
  try {
    passes::patterns_of(chip);
    FAIL() << "accepted";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("there is no op called \"rleu\""), std::string::npos) << message;
    EXPECT_NE(message.find("gemmini16.toml line "), std::string::npos) << message;
    EXPECT_NE(message.find("did you mean relu"), std::string::npos) << message;
  }
}

// What a study's table of routes says is what the steps are.
TEST(Routes, TablesHaveEveryRouteAndReason) {
  const auto all = compare_routes({.model = kModel,
                                   .schemes = {llm::parse_scheme("f16")},
                                   .chips = {shipped("gemmini16")},
                                   .host = shipped("cpu_avx512_vnni"),
                                   .lengths = {.prompt_len = 16, .context = 17}},
                                  [](const std::string&, bool) {});
  ASSERT_EQ(all.size(), 1U);
  ASSERT_EQ(all[0].routes.size(), 3U) << "gemmini16 keeps nothing between";
  const std::string table = routes_table(all);
  for (const char* words : {"schedule", "tensorize", "pattern", "no pattern takes attention", "50257 outputs"})
    EXPECT_NE(table.find(words), std::string::npos) << words << "\n" << table;
  size_t kernels = 0;
  for (const RouteCosts& by : all[0].routes) kernels += by.prefill.kernels.size() + by.decode.kernels.size();
  EXPECT_EQ(std::ranges::count(routes_csv(all), '\n'), 1 + static_cast<int64_t>(kernels));
  EXPECT_EQ(routes_json(all).size(), 6U);
}

}  // namespace
}  // namespace sator::study
