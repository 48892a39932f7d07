#include "support/texttest.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/file.h"

namespace sator::test {
namespace {

std::string upper(std::string s) {
  for (char& c : s) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return s;
}

// A kind of case without any compiler behind it: puts a text into capitals.
const std::vector<Runner> kRunners = {
    {.section = "upper",
     .inputs = {"text"},
     .does = "puts a text into capitals",
     .run = [](const TestCase& test) -> std::string {
       const std::string& text = test.text("text");
       if (text == "crash") ::raise(SIGKILL);
       if (text == "hang") ::pause();
       if (text == "skip") throw Skip{"asked to"};
       if (text == "bug") internal_error("a broken invariant");
       if (text == "refuse") fail({.what = "refuse is refused", .needs = "any other word", .hint = "write accept"});
       return upper(text) + "\n\n";
     }},
};

std::vector<TestCase> parse(std::string_view text) { return parse_cases("x.test", text); }

std::string parse_error(std::string_view text) {
  try {
    parse(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

Outcome run_last(std::string_view text) {
  auto cases = parse(text);
  return run_case(cases.back(), cases, kRunners);
}

TEST(ParseCases, ReadsNamesSectionsAndLines) {
  auto cases = parse(
      "# what the file is about\n\n"
      "case first: it does something\n# a remark\n--- text\n\n  a\n# content\n\n--- upper A, B\n\n\ncase second\n--- "
      "upper\n");
  ASSERT_EQ(cases.size(), 2u);
  EXPECT_EQ(cases[0].name, "first");
  EXPECT_EQ(cases[0].description, "it does something");
  EXPECT_EQ(cases[0].line, 3);
  EXPECT_EQ(cases[0].text("text"), "\n  a\n# content");
  EXPECT_EQ(cases[0].args("upper"), "A, B");
  EXPECT_EQ(cases[0].text("upper"), "");
  EXPECT_EQ(cases[0].end_line, 11);
  EXPECT_EQ(cases[1].name, "second");
  EXPECT_EQ(cases[1].description, "");
}

TEST(ParseCases, ABackslashKeepsAHeaderAsContent) {
  auto cases =
      parse("case a: b\n--- text\n\\--- expect\n\\case x: y\n\\\\--- z\n\\n\n---\ncase of one, not a header\n");
  EXPECT_EQ(cases[0].text("text"), "--- expect\ncase x: y\n\\--- z\n\\n\n---\ncase of one, not a header");
}

TEST(ParseCases, RefusesWithThePlace) {
  EXPECT_NE(parse_error("stray\n").find("text outside of a section: stray\n  x.test:1"), std::string::npos);
  EXPECT_NE(parse_error("--- text\n").find("before the first case\n  x.test:1"), std::string::npos);
  EXPECT_NE(parse_error("case a: x\n--- t\ncase a: y\n").find("a second case a\n  x.test:3"), std::string::npos);
  EXPECT_NE(parse_error("case a: x\n--- t\n--- t\n").find("a second section t in case a\n  x.test:3"),
            std::string::npos);
  EXPECT_NE(parse_error("# nothing\n").find("no cases"), std::string::npos);
}

TEST(RunCase, ComparesResultsWithoutTheirLastLineEnds) {
  EXPECT_EQ(run_last("case a: x\n--- text\nab\n--- upper\n--- expect\nAB\n").status, Outcome::Status::passed);
  Outcome outcome = run_last("case a: x\n--- text\nab\n--- upper\n--- expect\nab\n");
  EXPECT_EQ(outcome.status, Outcome::Status::failed);
  EXPECT_EQ(outcome.got, "AB");
  EXPECT_EQ(run_last("case a: x\n--- text\nskip\n--- upper\n--- expect\nA\n").status, Outcome::Status::skipped);
}

TEST(RunCase, AnErrorIsComparedByItsLinesInOrder) {
  const std::string head = "case a: x\n--- text\nrefuse\n--- upper\n--- expect error\n";
  EXPECT_EQ(run_last(head + "refuse is refused\n").status, Outcome::Status::passed);
  EXPECT_EQ(run_last(head + "refuse is refused\n  hint:  write accept\n").status, Outcome::Status::passed);
  EXPECT_EQ(run_last(head + "refuse is refused\n  needs: another rule\n").status, Outcome::Status::failed);
  EXPECT_EQ(run_last(head + "refuse is refused\n  hint:  write accept\n  needs: any other word\n").status,
            Outcome::Status::failed);
  EXPECT_EQ(run_last(head + "  needs: any other word\n").status, Outcome::Status::failed);
}

TEST(RunCase, ResultAndErrorAreNotTakenForEachOther) {
  Outcome error = run_last("case a: x\n--- text\nrefuse\n--- upper\n--- expect\nrefuse is refused\n");
  EXPECT_EQ(error.status, Outcome::Status::failed);
  EXPECT_TRUE(error.is_error);
  EXPECT_EQ(run_last("case a: x\n--- text\nab\n--- upper\n--- expect error\nAB\n").status, Outcome::Status::failed);
  EXPECT_EQ(run_last("case a: x\n--- text\nab\n--- upper\n").status, Outcome::Status::failed);
  EXPECT_EQ(run_last("case a: x\n--- text\nab\n--- upper\n--- expect oops\nAB\n").status, Outcome::Status::failed);
}

TEST(RunCase, AnInputMayBeThatOfAnEarlierCase) {
  const std::string first = "case one: x\n--- text\nab\n--- upper\n--- expect\nAB\n";
  EXPECT_EQ(run_last(first + "case two: y\n--- text one\n--- upper\n--- expect\nAB\n").status, Outcome::Status::passed);
  EXPECT_EQ(
      run_last(first + "case two: y\n--- text one\n--- upper\ncase three: z\n--- text two\n--- upper\n--- expect\nAB\n")
          .status,
      Outcome::Status::passed);
  Outcome unknown = run_last(first + "case two: y\n--- text onne\n--- upper\n--- expect\nAB\n");
  EXPECT_NE(unknown.problem.find("did you mean one?"), std::string::npos) << unknown.problem;
  // A case cannot name itself or a later one.
  EXPECT_EQ(run_last("case one: x\n--- text one\n--- upper\n--- expect\nAB\n").status, Outcome::Status::failed);
}

TEST(RunCase, MisspelledAndMissingSectionsAreNamed) {
  Outcome misspelled = run_last("case a: x\n--- txt\nab\n--- upper\n--- expect\nAB\n");
  EXPECT_NE(misspelled.problem.find("section txt is not read by cases with `--- upper`"), std::string::npos);
  EXPECT_NE(run_last("case a: x\n--- uper\n--- expect\nAB\n").problem.find("did you mean upper?"), std::string::npos);
  Outcome missing = run_last("case a: x\n--- upper\n--- expect\nAB\n");
  EXPECT_NE(missing.got.find("case a has no section text"), std::string::npos);
  EXPECT_EQ(missing.status, Outcome::Status::failed);
}

TEST(LineDifference, ShowsWhatChangedWithItsSurroundings) {
  EXPECT_EQ(line_difference("a\nb\nc", "a\nx\nc"), "  a\n- b\n+ x\n  c\n");
  EXPECT_EQ(line_difference("1\n2\n3\n4\n5\n6", "1\n2\n3\n4\n5\n7"), "  ... 2 lines\n  3\n  4\n  5\n- 6\n+ 7\n");
  EXPECT_EQ(line_difference("a", "a"), "");
}

TEST(Bless, ReplacesAddsAndKeepsTheRest) {
  const std::string text =
      "# head\n\ncase a: x\n--- text\nab\n--- expect\nold\nlines\n\n--- upper\n\ncase b: y\n--- text\n--- "
      "upper\n\n\ncase c: z\n--- upper";
  auto cases = parse(text);
  Outcome good{.got = "NEW"}, error{.got = "--- what\n  needs: x", .is_error = true}, empty{};
  EXPECT_EQ(blessed(text, {{&cases[0], &good}, {&cases[1], &error}, {&cases[2], &empty}}),
            "# head\n\ncase a: x\n--- text\nab\n--- expect\nNEW\n--- upper\n\ncase b: y\n--- text\n--- upper\n"
            "--- expect error\n\\--- what\n  needs: x\n\n\ncase c: z\n--- upper\n--- expect");
  EXPECT_EQ(blessed(text, {}), text);
}

// Whole runs, over a folder of their own.
class RunTextTests : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / text("sator-texttest-", static_cast<int64_t>(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path write(const std::string& name, const std::string& content) {
    write_file(folder_ / name, content);
    return folder_ / name;
  }
  int run(TextTestOptions options = {}) {
    options.roots = {folder_};
    out_.str("");
    return run_text_tests(options, kRunners, out_);
  }
  fs::path folder_;
  std::ostringstream out_;
};

TEST_F(RunTextTests, ACrashOrHangFailsOneCaseOnly) {
  write("a.test",
        "case ok: x\n--- text\na\n--- upper\n--- expect\nA\n"
        "case crash: x\n--- text\ncrash\n--- upper\n--- expect\nA\n"
        "case hang: x\n--- text\nhang\n--- upper\n--- expect\nA\n"
        "case bug: x\n--- text\nbug\n--- upper\n--- expect error\nA\n"
        "case skip: x\n--- text\nskip\n--- upper\n--- expect\nA\n");
  write("sub/b.test", "no case\n");
  EXPECT_EQ(run({.jobs = 2, .limit_s = 0.6, .report = folder_ / "r.json"}), 4);
  EXPECT_NE(out_.str().find("1 passed, 4 failed, 1 skipped"), std::string::npos) << out_.str();
  EXPECT_NE(out_.str().find("crashed: Killed"), std::string::npos) << out_.str();
  EXPECT_NE(out_.str().find("no result after 0.6 s"), std::string::npos) << out_.str();
  EXPECT_NE(out_.str().find("internal error: a broken invariant"), std::string::npos) << out_.str();
  auto report = nlohmann::json::parse(read_file(folder_ / "r.json"));
  int entries = 0, failures = 0;
  for (const auto& suite : report["testsuites"])
    for (const auto& test : suite["testsuite"]) ++entries, failures += test.contains("failures");
  EXPECT_EQ(entries, 6);
  EXPECT_EQ(failures, 4);
}

TEST_F(RunTextTests, FilterMatchesPathAndCase) {
  write("a.test",
        "case one: x\n--- text\na\n--- upper\n--- expect\nA\ncase two: x\n--- text\na\n--- upper\n--- expect\nB\n");
  EXPECT_EQ(run({.filter = "A.TEST:o"}), 0);
  EXPECT_NE(out_.str().find("1 passed, 0 failed"), std::string::npos);
  EXPECT_EQ(run({.filter = "two"}), 1);
}

TEST_F(RunTextTests, BlessingMakesTheNextRunPassAndLeavesCrashesAlone) {
  fs::path file = write("a.test",
                        "case wrong: x\n--- text\nab\n--- upper\n--- expect\nold\n\n"
                        "case refused: x\n--- text\nrefuse\n--- upper\n--- expect\nold\n\n"
                        "case crash: x\n--- text\ncrash\n--- upper\n--- expect\nold\n");
  EXPECT_EQ(run({.bless = true}), 1);
  EXPECT_EQ(read_file(file),
            "case wrong: x\n--- text\nab\n--- upper\n--- expect\nAB\n\n"
            "case refused: x\n--- text\nrefuse\n--- upper\n--- expect error\nrefuse is refused\n"
            "  needs: any other word\n  hint:  write accept\n\n"
            "case crash: x\n--- text\ncrash\n--- upper\n--- expect\nold\n");
  EXPECT_EQ(run(), 1);
  EXPECT_NE(out_.str().find("2 passed, 1 failed"), std::string::npos) << out_.str();
}

}  // namespace
}  // namespace sator::test
