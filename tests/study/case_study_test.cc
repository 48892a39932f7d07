#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "frontend/hf_config.h"
#include "llm/open.h"
#include "runtime/profiler.h"
#include "study/cost_program.h"
#include "study/route_table.h"
#include "study/sample.h"
#include "study/study.h"
#include "study/workers.h"
#include "temp_folder.h"

namespace sator::study {
namespace {

const fs::path kRoot = SATOR_SOURCE_DIR;

/// What docs/case-study-gpt2.md says that it was made by: the schemes that tools/case_study.py has words for.
constexpr const char* kSchemes[] = {"f16",
                                    "int8-tensor+embed",
                                    "int8-input+embed",
                                    "int8-channel+embed",
                                    "int8-group32+embed",
                                    "int8-tensor+embed+a8-tensor",
                                    "int8-channel+embed+a8-embedding",
                                    "int8-channel+embed+a8-token",
                                    "int8-channel+embed+a8-peg8"};

std::string command() {
  std::string line =
      "./sator study examples/gpt2-124m --shapes-only --chip edge_npu32 --context 128,256,512,1024 --routes";
  for (const char* scheme : kSchemes) line += text(" --quant ", scheme);
  return line + " -o case-study\npython3 tools/case_study.py case-study/study.json -o docs/case-study-gpt2.md";
}

/// The study of that command, in a folder of its own.
struct Gpt2 {
  TempFolder folder;
  Study study;
  Gpt2() {
    const auto quiet = [](const std::string&, bool) {};
    const StudyOptions options{.model = kRoot / "examples/gpt2-124m",
                               .schemes = {std::begin(kSchemes), std::end(kSchemes)},
                               .chips = {"edge_npu32"},
                               .sweep = {.batches = {}, .contexts = {128, 256, 512, 1024}},
                               .shapes_only = true,
                               .folder = folder.path()};
    study = run_study(options, model_workers(), quiet);
    RouteQuestion question{
        .model = options.model,
        .schemes = {},
        .chips = {shipped("edge_npu32")},
        .host = shipped("cpu_avx512_vnni"),
        .lengths = {.prompt_len = study.protocol.prompt_len, .context = study.protocol.decode_context}};
    for (const char* scheme : kSchemes) question.schemes.push_back(llm::parse_scheme(scheme));
    study.routes = compare_routes(question, quiet);
    study.routes_host = facts_of(question.host);
    write_study(study, folder.path());
  }
};
const Gpt2& gpt2() {
  static const Gpt2 all;
  return all;
}

/// Runs tools/case_study.py and returns what it printed; with its errors where it ended badly.
std::string script(const std::string& arguments, int* status = nullptr) {
  const TempFolder folder;
  const fs::path out = folder.path() / "out";
  const int ended = std::system(
      text("python3 ", (kRoot / "tools/case_study.py").string(), " ", arguments, " > ", out.string(), " 2>&1").c_str());
  if (status) *status = ended;
  return read_file(out);
}

TEST(CaseStudy, TheDocumentIsWhatTheScriptWrites) {
  const std::string said = script(text((gpt2().folder.path() / "study.json").string(), " --made-by '", command(), "'"));
  EXPECT_TRUE(read_file(kRoot / "docs/case-study-gpt2.md") == said)
      << "docs/case-study-gpt2.md is not what these commands write now, with --made-by and their text:\n"
      << command();
}

TEST(CaseStudy, TheScriptSaysWhatAStudyLacks) {
  const TempFolder folder;
  int status = 0;
  write_file(folder.path() / "a.json", "{\"chips\": []}");
  EXPECT_NE(script((folder.path() / "a.json").string(), &status).find("lacks"), std::string::npos);
  EXPECT_NE(status, 0);
  write_file(folder.path() / "b.json", "not json");
  EXPECT_NE(script((folder.path() / "b.json").string(), &status).find("is no study"), std::string::npos);
  EXPECT_NE(status, 0);
  const std::string said = script(text((gpt2().folder.path() / "study.json").string(), " --chip tpuv9"), &status);
  EXPECT_NE(said.find("no chip tpuv9\n  needs: one of edge_npu32"), std::string::npos) << said;
  EXPECT_NE(status, 0);
}

// What config.json says of the published model is all that these numbers need.
TEST(CaseStudy, ProductsAreThoseOfTheConfiguration) {
  const int64_t width = 768, heads = 12, head = 64, vocab = 50257;
  for (const SchemeResult& scheme : gpt2().study.schemes) {
    SCOPED_TRACE(scheme.name);
    auto expect = [&](const PhaseResult& phase, int64_t tokens, int64_t context) {
      const std::vector<ProductUse> expected = {{"transformer.h.*.attn.c_attn", 1, tokens, 3 * width, width},
                                                {"transformer.h.*.attn", heads, tokens, context, head},
                                                {"transformer.h.*.attn", heads, tokens, head, context},
                                                {"transformer.h.*.attn.c_proj", 1, tokens, width, width},
                                                {"transformer.h.*.mlp.c_fc", 1, tokens, 4 * width, width},
                                                {"transformer.h.*.mlp.c_proj", 1, tokens, width, 4 * width},
                                                {"lm_head", 1, 1, vocab, width}};
      std::vector<ProductUse> found;
      int64_t macs = 0;
      for (const Matmul& row : phase.matmuls) {
        EXPECT_EQ(row.count, row.products[0].j == vocab ? 1 : 12) << row.function;
        EXPECT_TRUE(row.function == "attention" || row.function.find("NT_matmul") != std::string::npos) << row.function;
        for (const ProductUse& use : row.products) {
          // Of attention's scores those of later positions are masked.
          const bool scored = use.batch == heads;
          EXPECT_EQ(use.macs,
                    use.batch * use.i * use.j * use.k - (scored ? heads * head * tokens * (tokens - 1) / 2 : 0))
              << row.function;
          EXPECT_NE(use.tile, "");
          macs += row.count * use.macs;
          found.push_back({row.layer, use.batch, use.i, use.j, use.k});
        }
      }
      EXPECT_TRUE(found == expected);
      const ModelConfig config = read_model_config(kRoot / "examples/gpt2-124m");
      EXPECT_EQ(macs, llm::macs_of_step(config, {.tokens = tokens, .context = context}));
      EXPECT_EQ(macs, phase.cost.macs);
      EXPECT_EQ(phase.kernels_costed, phase.kernels);
    };
    expect(scheme.chips[0].prefill, 128, 128);
    expect(scheme.chips[0].decode, 1, 144);
    // At a context of the sweep a step is spent on the same components as a phase of it.
    for (const SweepPoint& point : scheme.chips[0].sweep) {
      for (const SweepCost* cost : {&point.prefill, &point.decode}) {
        int64_t cycles = 0;
        for (const ComponentCost& c : cost->components) cycles += c.latency_cycles;
        EXPECT_EQ(cycles, cost->latency_cycles);
      }
      if (point.context == 128) EXPECT_EQ(point.prefill.components, scheme.chips[0].prefill.cost.components);
    }
  }
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
