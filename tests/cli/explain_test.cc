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
  EXPECT_NE(run({}).notes.find("one of f16, int4"), std::string::npos);
  EXPECT_NE(run({"--scheme", "int8"}).notes.find("one of f16, int4"), std::string::npos);
  EXPECT_NE(run({"--scheme", "f16", "--chip", "ship"}).notes.find("one of chip"), std::string::npos);
  EXPECT_NE(run({"speed", "--scheme", "f16"}).notes.find("one of latency, energy, bytes"), std::string::npos);
  for (const Result& r : {run({}), run({"speed"})}) EXPECT_NE(r.status, 0);
}

TEST_F(Explain, OtherFoldersAreRefused) {
  TempFolder empty;
  std::istringstream in;
  std::ostringstream out, notes;
  EXPECT_NE(run_app({"explain", empty.path().string()}, {explain_command()}, in, out, notes), 0);
  EXPECT_NE(notes.str().find("study.json"), std::string::npos) << notes.str();
}

}  // namespace
}  // namespace sator::cli
