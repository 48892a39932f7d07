#include "study/case_study.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/hf_config.h"
#include "llm/open.h"
#include "runtime/profiler.h"
#include "study/cost_program.h"
#include "study/sample.h"

namespace sator::study {
namespace {

const fs::path kRoot = SATOR_SOURCE_DIR;

const CaseStudy& gpt2() {
  static const CaseStudy study =
      make_case_study({.model = kRoot / "examples/gpt2-124m"}, [](const std::string&, bool) {});
  return study;
}

TEST(CaseStudy, TheDocumentIsWhatTheProgramWrites) {
  const std::string command = "./sator case_study examples/gpt2-124m -o docs/case-study-gpt2.md";
  EXPECT_TRUE(read_file(kRoot / "docs/case-study-gpt2.md") == case_study_text(gpt2(), command))
      << "docs/case-study-gpt2.md is not what the program writes now: `" << command << "` writes it anew";
}

// What config.json says of the published model is all that these numbers need.
TEST(CaseStudy, ProductsAreThoseOfTheConfiguration) {
  const int64_t n = 128, width = 768, heads = 12, head = 64, vocab = 50257;
  for (const SchemeCosts& scheme : gpt2().schemes) {
    SCOPED_TRACE(scheme.kind.scheme);
    auto expect = [&](const StepCosts& step, int64_t tokens) {
      const int64_t context = step.step.context;
      std::vector<std::pair<std::string, ProductSize>> expected = {
          {"transformer.h.*.attn.c_attn", {.i = tokens, .j = 3 * width, .k = width}},
          {"transformer.h.*.attn", {.batch = heads, .i = tokens, .j = context, .k = head}},
          {"transformer.h.*.attn", {.batch = heads, .i = tokens, .j = head, .k = context}},
          {"transformer.h.*.attn.c_proj", {.i = tokens, .j = width, .k = width}},
          {"transformer.h.*.mlp.c_fc", {.i = tokens, .j = 4 * width, .k = width}},
          {"transformer.h.*.mlp.c_proj", {.i = tokens, .j = width, .k = 4 * width}},
          {"lm_head", {.i = 1, .j = vocab, .k = width}}};
      std::vector<ProductSize> found;
      std::vector<std::string> layers;
      int64_t macs = 0;
      for (const MatmulRow& row : step.matmuls) {
        EXPECT_EQ(row.kernel.count, row.products[0].size.j == vocab ? 1 : 12) << row.kernel.function;
        for (const ProductUse& use : row.products) {
          const ProductSize& s = use.size;
          // Of attention's scores those of later positions are masked.
          const bool scored = s.batch == heads;
          EXPECT_EQ(use.macs, s.batch * s.i * s.j * s.k - (scored ? heads * head * tokens * (tokens - 1) / 2 : 0))
              << row.kernel.function;
          macs += row.kernel.count * use.macs;
          found.push_back(s);
          layers.push_back(row.kernel.layer);
        }
      }
      ASSERT_EQ(found.size(), expected.size());
      for (size_t p = 0; p < found.size(); ++p) EXPECT_TRUE(found[p] == expected[p].second) << expected[p].first;
      EXPECT_EQ(layers.back(), "lm_head");
      const ModelConfig config = read_model_config(kRoot / "examples/gpt2-124m");
      EXPECT_EQ(macs, llm::macs_of_step(config, {.tokens = tokens, .context = context}));
      EXPECT_EQ(macs, step.all.cost.macs);
      EXPECT_EQ(step.all.kernels_costed, step.all.kernels);
    };
    expect(scheme.prefill, n);
    ASSERT_EQ(scheme.decode.size(), 4U);
    for (const StepCosts& step : scheme.decode) expect(step, 1);
  }
}

// The names that the seeds know: a product's kernel is called after what was fused to it.
TEST(CaseStudy, KernelsHaveTheirPrintedNames) {
  for (const SchemeCosts& scheme : gpt2().schemes)
    for (const MatmulRow& row : scheme.prefill.matmuls)
      EXPECT_TRUE(row.kernel.function == "attention" || row.kernel.function.find("NT_matmul") != std::string::npos)
          << row.kernel.function;
}

TEST(CaseStudy, WrongLengthsAreRefused) {
  auto error_of = [](CaseStudyOptions options) -> std::string {
    options.model = kRoot / "examples/gpt2-124m";
    try {
      make_case_study(options, [](const std::string&, bool) {});
    } catch (const Error& error) {
      return error.reason.what;
    }
    return "";
  };
  EXPECT_EQ(error_of({.prompt_len = 0}), "a prompt of 0 tokens");
  EXPECT_EQ(error_of({.prompt_len = 1025}), "a prompt of 1025 tokens");
  EXPECT_EQ(error_of({.contexts = {128, 1025}}), "a decode step at 1025 tokens");
  EXPECT_EQ(error_of({.contexts = {}}), "no context for a decode step");
  EXPECT_NE(error_of({.chip = "gemini16"}), "");
}

// A run on the virtual machine: the shapes of the tensors that each kernel got are the i, j and k that the program states
// without running, and so are the tokens in the cache that attention found.
TEST(CaseStudy, ARunHasTheSameSizes) {
  const fs::path folder = kRoot / "examples/gpt2-stories";
  for (const char* scheme : {"int8-channel+a8-token"}) {
    SCOPED_TRACE(scheme);
    const llm::OpenModel model = llm::open_model(folder, {.scheme = llm::parse_scheme(scheme), .threads = 1});
    const ProgramAtPhase3 at = program_at_phase3(folder, {.scheme = model.scheme, .program = model.program});
    const llm::Workload workload(at.module, at.program);
    dataflow::CostEngine engine(shipped("edge_npu32"));
    Session session = model.session();
    runtime::Profiler profiler(session.vm());
    const std::vector<int32_t> prompt(21, 7);
    int64_t context = 0;
    for (int64_t tokens : {21, 1, 1}) {
      context += tokens;
      profiler.time([&] { session.append(std::span(prompt).first(static_cast<size_t>(tokens))); });
      const runtime::Profile profile = profiler.take();
      const auto calls = workload.calls(tokens > 1 ? "prefill" : "decode", {.tokens = tokens, .context = context});
      size_t next = 0, products = 0;
      for (const runtime::CallRecord& record : profile.records) {
        if (!record.is_kernel || record.function.starts_with("shape_func")) continue;
        ASSERT_LT(next, calls.size());
        const llm::KernelCall& call = calls[next++];
        ASSERT_EQ(call.function, record.function);
        for (const auto& [name, value] : record.values)
          if (auto known = call.sizes.find(name); known != call.sizes.end()) EXPECT_EQ(known->second, value) << name;
        const dataflow::TirWork work =
            dataflow::work_of(*call.work, {call.function, call.sizes, call.params}, &engine.chip());
        const dataflow::KernelCost cost = engine.cost(work.kernel, work.placements);
        for (const dataflow::StatementCost& s : cost.statements) {
          if (!s.on_array()) continue;
          ++products;
          const ProductSize size = product_size(s);
          if (record.function == "attention") {
            auto kv_len = std::ranges::find(record.values, "kv_len", &runtime::CallRecord::NamedValue::name);
            ASSERT_NE(kv_len, record.values.end());
            EXPECT_EQ(kv_len->value, context);
            EXPECT_EQ(size.i, record.arguments.front().shape[0]);  // rows of the queries
            const auto& q = record.arguments.back().shape;         // of the output: tokens, heads, elements of a head
            EXPECT_EQ(size.batch, q[1]);
            EXPECT_EQ(std::minmax(size.j, size.k), std::minmax(kv_len->value, q[2]));
          } else {
            EXPECT_EQ(size.i, record.arguments.back().shape[0]) << record.function;
            EXPECT_EQ(size.j, record.arguments.back().shape[1]) << record.function;
            const bool has_input = std::ranges::any_of(record.arguments, [&](const runtime::CallRecord::Argument& a) {
              return a.shape.size() == 2 && a.shape[0] == size.i && a.shape[1] == size.k;
            });
            EXPECT_TRUE(has_input) << record.function;
          }
        }
      }
      EXPECT_EQ(next, calls.size());
      EXPECT_EQ(products, 8U * (4 + 2) + 1);
    }
  }
}

}  // namespace
}  // namespace sator::study
