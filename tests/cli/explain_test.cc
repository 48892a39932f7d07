#include <gtest/gtest.h>

#include <sstream>

#include "cli/app.h"
#include "cli/commands.h"
#include "study/study.h"
#include "temp_folder.h"

namespace sator::cli {
namespace {

/// A study without kernels: two schemes on one chip.
study::Study sample() {
  study::Study s;
  s.model = {"tiny", "models/tiny", "gpt2", 2, 100, 64, 8000};
  s.protocol = {.prompt_len = 16, .gen_len = 10, .decode_context = 21};
  s.chips = {{.name = "chip", .rows = 8, .columns = 8, .clock_hz = 1e9}};
  for (const char* name : {"f16", "int4"}) {
    study::SchemeResult& scheme = s.schemes.emplace_back();
    scheme.name = name;
    scheme.weight_bytes = name[0] == 'f' ? 16000 : 4000;
    scheme.parameters = 8000;
    scheme.bits_per_weight = name[0] == 'f' ? 16 : 4;
    scheme.chips = {{.chip = "chip"}};
  }
  return s;
}

struct Result {
  int status;
  std::string out, notes;
};

class Explain : public testing::Test {
 protected:
  Explain() { study::write_study(sample(), folder_.path()); }
  Result run(std::vector<std::string> args) {
    args.insert(args.begin(), {"explain", folder_.path().string()});
    std::istringstream in;
    std::ostringstream out, notes;
    const int status = run_app(args, {explain_command()}, in, out, notes);
    return {status, out.str(), notes.str()};
  }
  TempFolder folder_;
};

TEST_F(Explain, Answers) {
  const Result r = run({"weight_bytes", "--scheme", "int4"});
  EXPECT_EQ(r.status, 0) << r.notes;
  EXPECT_NE(r.out.find("4.00 kB = 8,000 parameters x 4.000 bits / 8"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("f16 takes 16.0 kB, 4.00x that"), std::string::npos) << r.out;
}

TEST_F(Explain, NamesWhatThereIs) {
  EXPECT_NE(run({"--scheme", "int8"}).notes.find("one of f16, int4"), std::string::npos);
  EXPECT_NE(run({"--scheme", "f16", "--chip", "ship"}).notes.find("one of chip"), std::string::npos);
  EXPECT_NE(run({"speed", "--scheme", "f16"}).notes.find("one of latency, energy, bytes"), std::string::npos);
  EXPECT_NE(run({"speed"}).status, 0);
}

// int4 answers a request in 1.5 us on the second chip, f16 in 1.2 us on the first.
TEST_F(Explain, TheWinnerNeedsNoOptions) {
  study::Study s = sample();
  s.chips.push_back(s.chips[0]);
  s.chips[1].name = "other";
  const int64_t cycles[2][2] = {{200, 700}, {900, 500}};  // of prefill; [scheme][chip]
  for (size_t i = 0; i < 2; ++i) {
    s.schemes[i].chips.push_back({.chip = "other"});
    for (size_t c = 0; c < 2; ++c) {
      study::ChipResult& on = s.schemes[i].chips[c];
      for (study::PhaseResult* phase : {&on.prefill, &on.decode}) {
        phase->cost.latency_cycles = phase == &on.prefill ? cycles[i][c] : 100;
        phase->cost.latency_s = static_cast<double>(phase->cost.latency_cycles) * 1e-9;
        at(phase->cost.components, study::Component::array).latency_cycles = phase->cost.latency_cycles;
        study::KernelRow& kernel = phase->rows.emplace_back();
        kernel.function = "f";
        kernel.cost = phase->cost;
      }
    }
  }
  study::write_study(s, folder_.path());
  Result r = run({});
  EXPECT_EQ(r.status, 0) << r.notes;
  EXPECT_TRUE(r.out.starts_with("f16 is fastest on chip: 1.20 µs for 16 + 10 tokens")) << r.out;
  EXPECT_NE(r.out.find("Explained is f16 on chip; others: --scheme NAME, --chip NAME."), std::string::npos) << r.out;
  for (const char* phase : {"\nprefill latency of f16 on chip", "\ndecode latency of f16 on chip"})
    EXPECT_NE(r.out.find(phase), std::string::npos) << r.out;
  EXPECT_NE(run({"--chip", "other"}).out.find("prefill latency of int4 on other"), std::string::npos);
  EXPECT_NE(run({"--scheme", "int4"}).out.find("prefill latency of int4 on other"), std::string::npos);
  EXPECT_EQ(run({"--scheme", "int4", "--chip", "chip"}).out.find("Explained is"), std::string::npos);
}

TEST_F(Explain, OtherFoldersAreRefused) {
  TempFolder empty;
  std::istringstream in;
  std::ostringstream out, notes;
  EXPECT_NE(run_app({"explain", empty.path().string()}, {explain_command()}, in, out, notes), 0);
  EXPECT_NE(notes.str().find("holds no study"), std::string::npos) << notes.str();
  auto words = [&](const char* file) {
    TempFolder folder;
    folder.write(file, "{}");
    std::ostringstream said;
    EXPECT_NE(run_app({"explain", folder.path().string()}, {explain_command()}, in, out, said), 0);
    return said.str();
  };
  EXPECT_NE(words("config.json").find("is a model, and no study"), std::string::npos);
  EXPECT_NE(words("config.json").find("then `sator explain FOLDER`"), std::string::npos);
  EXPECT_NE(words(".parts/version").find("unfinished study"), std::string::npos);
}

}  // namespace
}  // namespace sator::cli
