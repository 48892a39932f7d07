// The launches read from a program against what a run launches, and against the arithmetic of the configuration.
#include "llm/workload.h"

#include <gtest/gtest.h>

#include <cmath>

#include "dataflow/cost/cost.h"
#include "driver/compile.h"
#include "llm/open.h"
#include "reference_data.h"
#include "runtime/profiler.h"

namespace sator::llm {
namespace {

fs::path example() { return fs::path(SATOR_SOURCE_DIR) / "examples/gpt2-stories"; }

struct Built {
  ModelConfig config;
  Program program;
  Workload workload;
};

Built build(const fs::path& folder, const std::string& scheme) {
  ModelConfig config = read_model_config(folder);
  Program program = program_of(folder, {.scheme = parse_scheme(scheme)});
  ModuleRef module = driver::to_phase3(program.module, {.bounds = {{"seq_len", program.limits.prefill_chunk}}});
  Workload workload(module, program);
  return {std::move(config), std::move(program), std::move(workload)};
}

std::vector<dataflow::Kernel> kernels_of(const std::vector<KernelCall>& calls) {
  std::vector<dataflow::Kernel> out;
  for (const KernelCall& c : calls) out.push_back(dataflow::work_of(*c.work, {c.function, c.sizes, c.params}).kernel);
  return out;
}

int64_t macs_of(const std::vector<dataflow::Kernel>& kernels) {
  static dataflow::CostEngine engine(find_chip("gemmini16"));
  int64_t macs = 0;
  for (const dataflow::Kernel& k : kernels) macs += engine.cost(k).macs;
  return macs;
}

class Models : public testing::TestWithParam<const char*> {
 protected:
  fs::path folder() const {
    return std::string(GetParam()) == "example" ? example() : reference_data(fs::path("models") / GetParam());
  }
};

// A tied head reads the embedding's weights, and is a layer of its own.
TEST_P(Models, TheHeadHasItsOwnName) {
  for (const char* scheme : {"f32", "int8-channel+embed", "int4-group32+embed+a8"}) {
    SCOPED_TRACE(scheme);
    const std::vector<KernelCall> calls = build(folder(), scheme).workload.calls("decode", {.tokens = 1, .context = 9});
    EXPECT_EQ(calls.back().layer, "lm_head");
    EXPECT_EQ(std::count_if(calls.begin(),
                            calls.end(),
                            [](const KernelCall& c) {
                              return c.layer == "lm_head" && c.function.find("NT_matmul") != std::string::npos;
                            }),
              1);
  }
}

// The codes of the next layer's inputs are made behind a product: it stays the product of its own layer. Every product of a
// matrix has another layer within a step.
TEST_P(Models, AProductBelongsToTheLayerOfItsWeights) {
  for (const char* scheme : {"f32", "int8-input+embed", "int8-channel+embed+a8", "int8-tensor+embed+a8-tensor"}) {
    SCOPED_TRACE(scheme);
    std::set<std::string> seen;
    for (const KernelCall& c : build(folder(), scheme).workload.calls("decode", {.tokens = 1, .context = 9}))
      if (c.function.find("matmul") != std::string::npos)
        EXPECT_TRUE(seen.insert(c.layer).second) << c.function << " of " << c.layer;
  }
}

TEST_P(Models, MacsFollowFromTheConfiguration) {
  for (const char* scheme : {"f32",
                             "f16",
                             "int8-tensor",
                             "int8-channel",
                             "int8-input",
                             "int8-channel+a8",
                             "int4-group32",
                             "int4-group32+a8",
                             "q4f16_1",
                             "bf16+a16",
                             "int4-group32+embed+a16",
                             "int8-channel+a8-peg8"}) {
    SCOPED_TRACE(scheme);
    Built b = build(folder(), scheme);
    const StepSize prefill{.tokens = 24, .context = 40}, decode{.tokens = 1, .context = 33};
    EXPECT_EQ(macs_of(kernels_of(b.workload.calls("prefill", prefill))), macs_of_step(b.config, prefill));
    EXPECT_EQ(macs_of(kernels_of(b.workload.calls("decode", decode))), macs_of_step(b.config, decode));
  }
}

// Products by head, through the latent vector; experts chosen from groups.
TEST(LatentAttention, MacsFollowFromTheConfiguration) {
  for (const char* family : {"deepseek-v2", "deepseek-v3"})
    for (const char* scheme : {"f32", "int8-channel", "int4-group32"}) {
      SCOPED_TRACE(text(family, " ", scheme));
      const Built b = build(reference_data(fs::path("models/families") / family), scheme);
      // One token: of the experts of a layer exactly as many as it takes.
      const StepSize decode{.tokens = 1, .context = 33};
      EXPECT_EQ(macs_of(kernels_of(b.workload.calls("decode", decode))), macs_of_step(b.config, decode));
    }
}

// Layers with a window meet at most as many positions; one of three models has it in some layers only.
TEST(Windows, LeaveWorkOut) {
  for (const char* family : {"mistral", "starcoder2", "gemma3"}) {
    SCOPED_TRACE(family);
    const Built b = build(reference_data(fs::path("models/families") / family), "f32");
    ASSERT_EQ(b.config.attention.window, 6);
    for (const StepSize& step :
         {StepSize{.tokens = 24, .context = 40}, {.tokens = 4, .context = 4}, {.tokens = 1, .context = 33}})
      EXPECT_EQ(macs_of(kernels_of(b.workload.calls(step.tokens > 1 ? "prefill" : "decode", step))),
                macs_of_step(b.config, step));
  }
}

// A chip with multipliers of 16-bit floats runs every product at that width under +a16, and none of f16 alone.
TEST_P(Models, ProductsOfNarrowFactorsAreNarrow) {
  dataflow::CostEngine engine(find_chip("h100"));
  auto products_at_another_width = [&](const std::string& scheme) {
    int found = 0;
    for (const StepSize& step : {StepSize{.tokens = 24, .context = 40}, StepSize{.tokens = 1, .context = 33}})
      for (const dataflow::Kernel& k :
           kernels_of(build(folder(), scheme).workload.calls(step.tokens > 1 ? "prefill" : "decode", step)))
        for (const std::string& note : engine.cost(k).notes) found += note.find("runs as") != std::string::npos;
    return found;
  };
  for (const char* scheme : {"f16+a16", "bf16+a16", "q4f16_1+a16", "int8-channel+a16", "int4-group32-asym+embed+a16"})
    EXPECT_EQ(products_at_another_width(scheme), 0) << scheme;
  EXPECT_GT(products_at_another_width("f16"), 0);
}

// What a decode step reads of each parameter, by the kernels that take it, is what the parameters are stored in.
TEST_P(Models, WeightsAreReadAtTheirStoredWidth) {
  for (const char* scheme :
       {"f32", "f16", "int8-channel", "int4-group32", "int8-channel+a8", "int4-group32+a8", "f16+a16"}) {
    SCOPED_TRACE(scheme);
    Built b = build(folder(), scheme);
    int64_t bits = 0;
    for (const KernelCall& c : b.workload.calls("decode", {.tokens = 1, .context = 9})) {
      size_t next = 0;
      for (const VarRef& p : c.work->params) {
        BufferRef buffer = c.work->buffer_of(p);
        if (!buffer) continue;
        const dataflow::ParamFacts facts = next < c.params.size() ? c.params[next] : dataflow::ParamFacts{};
        ++next;
        if (facts.kind != dataflow::OperandKind::weight && facts.kind != dataflow::OperandKind::scale) continue;
        if (c.function.find("take") != std::string::npos) continue;  // rows of a table
        int64_t elements = 1;
        for (const Expr& e : buffer->shape) elements *= *as_int(e);
        if (auto groups = c.sizes.find("groups"); groups != c.sizes.end()) elements *= groups->second;  // experts
        // Packed codes are read as words; unpacked ones at their own width.
        bits += elements * (buffer->dtype == u32 || facts.bits == 0 ? buffer->dtype.bits : facts.bits);
      }
    }
    double stored = 0;
    for (const ParamSpec& p : b.program.params) {
      bool table = false;
      for (const std::string& name : p.source.tensors)
        table |=
            name.ends_with("wpe.weight") || (name.ends_with("embed_tokens.weight") && !b.config.tie_word_embeddings);
      if (!table) stored += static_cast<double>(p.bytes()) * 8 * p.read_share;
    }
    EXPECT_EQ(bits, std::llround(stored));
  }
}

TEST_P(Models, WhatIsReadIsWhatRuns) {
  for (const char* scheme : {"f32", "int4-group32", "int8-channel+a8", "int4-group64+a16"}) {
    SCOPED_TRACE(scheme);
    Built b = build(folder(), scheme);
    OpenModel model = open_model(folder(), {.scheme = parse_scheme(scheme), .threads = 2});
    Session session = model.session();
    std::vector<int32_t> ids(11, 3);
    session.append(ids);
    runtime::Profiler profiler(session.vm());
    session.append(std::vector<int32_t>(7, 5));
    std::vector<runtime::CallRecord> records = profiler.take().records;
    // Size arithmetic between kernels is no work of the model.
    std::erase_if(records,
                  [](const runtime::CallRecord& r) { return !r.is_kernel || r.function.starts_with("shape_func"); });
    std::vector<KernelCall> calls = b.workload.calls("prefill", {.tokens = 7, .context = 18});
    ASSERT_EQ(records.size(), calls.size()) << [&] {
      std::map<std::string, int> extra;
      for (const auto& r : records) ++extra[r.function];
      for (const auto& c : calls) --extra[c.function];
      std::string out;
      for (const auto& [name, n] : extra)
        if (n != 0) out += text(name, " ran ", n, " times more than was read\n");
      return out;
    }();
    for (size_t i = 0; i < calls.size(); ++i) {
      EXPECT_EQ(records[i].function, calls[i].function);
      EXPECT_FALSE(calls[i].layer.empty() && records[i].function.starts_with("NT_matmul")) << calls[i].function;
      for (const auto& value : records[i].values) {
        auto at = calls[i].sizes.find(value.name);
        if (at != calls[i].sizes.end() && value.name != "pages") {
          EXPECT_EQ(at->second, value.value) << calls[i].function;
        }
      }
    }
  }
}

TEST_P(Models, EveryLayerIsNamed) {
  Built b = build(folder(), "int8-channel+a8");
  const int64_t layers = b.config.layers;
  std::set<std::string> names;
  for (const KernelCall& c : b.workload.calls("decode", {.tokens = 1, .context = 4})) {
    EXPECT_FALSE(c.layer.empty()) << c.function;
    names.insert(c.layer);
  }
  for (int64_t i = 0; i < layers; ++i) {
    const std::string part = text(".", i, ".");
    EXPECT_GE(std::ranges::count_if(names, [&](const std::string& n) { return n.find(part) != n.npos; }), 4) << part;
  }
}

// A token takes k experts that are all different; many take all of them. In between: two tokens leave out each of 4 experts with
// probability 1/4 where each takes 2.
TEST(Workload, ExpertsThatAreExpected) {
  EXPECT_EQ(expected_experts(128, 8, 1), 8);
  EXPECT_EQ(expected_experts(4, 2, 2), 3);
  EXPECT_EQ(expected_experts(60, 4, 2), 8);  // 7.73
  EXPECT_EQ(expected_experts(8, 2, 512), 8);
  EXPECT_EQ(expected_experts(5, 5, 3), 5);
}

INSTANTIATE_TEST_SUITE_P(Workload, Models,
                         testing::Values("example", "tiny/gpt2-a", "tiny/llama-a", "families/qwen2-moe"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace_if(
                               name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
                           return name;
                         });

}  // namespace
}  // namespace sator::llm
