// The programs printed in the project's seed documents: they parse, and what is printed of them parses back.
#include <gtest/gtest.h>

#include "base/file.h"
#include "relax/parse.h"
#include "relax/print.h"
#include "tir/print.h"

namespace sator::relax {
namespace {

fs::path seeds() { return fs::path(SATOR_SOURCE_DIR) / ".." / "shared" / "reference" / "seeds"; }

/// The document whose name begins with these digits; empty where the documents are not there.
std::string document(const std::string& number) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(seeds(), none)) {
    if (entry.path().filename().string().starts_with(number)) return read_file(entry.path());
  }
  return "";
}

/// The programs of a document: from a decorator at the beginning of a line up to a fence, a notebook's prompt, or two
/// empty lines.
std::vector<std::string> programs_of(const std::string& document) {
  std::vector<std::string> out;
  std::string program;
  bool blank = false;
  auto finish = [&] {
    if (!program.empty()) out.push_back(std::exchange(program, ""));
  };
  for (std::string_view line : split(document, '\n')) {
    bool is_blank = trim(line).empty();
    if (line.starts_with("```") || line.starts_with("In [") || (is_blank && blank)) finish();
    bool begins = line.starts_with("@tvm.script.ir_module") || line.starts_with("@I.ir_module") ||
                  line.starts_with("@R.function");
    if (begins) finish();
    if (begins || !program.empty()) program += std::string(line) + "\n";
    blank = is_blank;
  }
  finish();
  return out;
}

void expect_round_trip(const std::string& program) {
  ModuleRef module;
  try {
    module = parse_module(program);
  } catch (const Error& e) {
    FAIL() << program << "\n" << e.what();
  }
  std::string printed = to_script(*module);
  ModuleRef again = parse_module(printed);
  EXPECT_TRUE(equal(module, again)) << printed;
  EXPECT_EQ(to_script(*again), printed);
}

class Seeds : public testing::Test {
 protected:
  void SetUp() override {
    if (document("001").empty()) GTEST_SKIP() << "the seed documents are not in " << seeds();
  }
};

TEST_F(Seeds, EveryProgramRoundTrips) {
  std::vector<std::string> programs = programs_of(document("001"));
  for (std::string& p : programs_of(document("004"))) programs.push_back(std::move(p));
  // Vector addition as it is written and as it was printed, in the notebook; on the slides again, a matrix product, and a
  // graph.
  EXPECT_EQ(programs.size(), 5u);
  for (const std::string& p : programs) expect_round_trip(p);
}

TEST_F(Seeds, ThePrintedFormIsOurs) {
  std::vector<std::string> programs = programs_of(document("001"));
  ASSERT_EQ(programs.size(), 2u);
  std::string ours = to_script(*parse_module(programs[0]));
  EXPECT_NE(ours.find(std::string(trim(programs[1]))), ours.npos) << ours;
}

TEST_F(Seeds, AScheduledLoopNestParses) {
  std::string slides = document("004");
  size_t begin = slides.find("for i_0 in tir.parallel(8):");
  ASSERT_NE(begin, slides.npos);
  std::string nest = slides.substr(begin, slides.find("```", begin) - begin);
  std::string program =
      "@tir.prim_func\ndef main(A_1: tir.Buffer((128,), \"float32\"), B_1: tir.Buffer((128,), \"float32\"), "
      "C_1: tir.Buffer((128,), \"float32\")):\n";
  for (std::string_view line : split(nest, '\n')) program += "    " + std::string(line) + "\n";
  expect_round_trip(program);
}

}  // namespace
}  // namespace sator::relax
