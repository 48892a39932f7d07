// How long a whole model takes to cost on one thread: a Llama of 7 billion parameters, six schemes, a prefill of 512 tokens and
// 512 decode positions, from config.json to sums. The model's layers are equal: the program has one of them. Usage: study_model_costs_bench [--json] [CHIP]
#include <cstdio>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "study/cost_program.h"
#include "study/sweep.h"

using namespace sator;
using namespace sator::study;

namespace {

constexpr const char* kSchemes[] = {
    "f16", "int8-channel", "int8-channel+a8", "int4-group32", "int4-group128+a8", "q4f16_1"};
constexpr int64_t kPrompt = 512, kPositions = 512;

// Llama-2-7B's published sizes.
constexpr const char* kConfig = R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008,
  "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 32000,
  "max_position_embeddings": 4096, "rms_norm_eps": 1e-05, "torch_dtype": "float16", "tie_word_embeddings": false})";

/// Seconds of this thread: other programs on the machine disturb less.
double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Seconds of the parts of the work.
struct Spent {
  double program = 0, prefill = 0, decode = 0;
  double total() const { return program + prefill + decode; }
};

}  // namespace

int main(int argc, char** argv) {
  bool as_json = false;
  std::string chip = "edge_npu32";
  for (int i = 1; i < argc; ++i)
    if (!std::strcmp(argv[i], "--json"))
      as_json = true;
    else
      chip = argv[i];
  const fs::path folder = fs::temp_directory_path() / "sator-bench-7b";
  fs::create_directories(folder);
  write_file(folder / "config.json", kConfig);
  auto report = [&](const std::string& name, nlohmann::ordered_json figures) {
    nlohmann::ordered_json row = {{"bench", "study_model_costs"}, {"case", name}};
    row.update(figures);
    if (as_json)
      std::printf("%s\n", row.dump().c_str());
    else
      std::printf("%-20s %s\n", name.c_str(), figures.dump().c_str());
    std::fflush(stdout);
  };
  Spent all;
  ChipCoster coster(find_chip(chip));
  for (const char* name : kSchemes) {
    Spent spent;
    double start = now();
    auto lap = [&start](double& into) {
      const double at = now();
      into += at - start;
      start = at;
    };
    const ProgramAtPhase3 at =
        program_at_phase3(folder, {.scheme = llm::parse_scheme(name), .program = {.alike_once = true}});
    const llm::Workload workload(at.module, at.program);
    Steps steps(workload, at.program.repeats);
    lap(spent.program);
    const SweepCost prefill = step_cost(steps.prefill(kPrompt, kPrompt), kPrompt, coster, {});
    lap(spent.prefill);
    int64_t cycles = 0, without = prefill.kernels_without_cost;
    for (int64_t position = 1; position <= kPositions; ++position) {
      const SweepCost step = step_cost(steps.decode(1, kPrompt + position), 1, coster, {});
      cycles += step.latency_cycles;
      without += step.kernels_without_cost;
    }
    lap(spent.decode);
    report(name,
           {{"program_s", spent.program},
            {"prefill_s", spent.prefill},
            {"decode_s", spent.decode},
            {"prefill_cycles", prefill.latency_cycles},
            {"decode_cycles", cycles},
            {"without_cost", without}});
    all.program += spent.program, all.prefill += spent.prefill, all.decode += spent.decode;
  }
  report("six schemes",
         {{"chip", coster.chip().name},
          {"program_s", all.program},
          {"prefill_s", all.prefill},
          {"decode_s", all.decode},
          {"total_s", all.total()},
          {"ratio", 1 / all.total()},
          {"reach", 1.0}});
  return 0;
}
