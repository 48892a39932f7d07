#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Text tests: files *.test below tests/, many cases each. docs/tests.md shows the form.
namespace sator::test {

namespace fs = std::filesystem;

/// `--- NAME ARGS` and the lines below it, without blank lines at its end and without a final line end.
struct Section {
  std::string name;
  std::string args;
  std::string text;
  int line = 0;  ///< of the header, from 1
};

/// `case NAME: DESCRIPTION` and its sections.
struct TestCase {
  fs::path file;
  int line = 0;
  std::string name, description;
  std::vector<Section> sections;
  int end_line = 0;  ///< the line after the last one of the case that is not blank

  /// The section of that name, or null.
  const Section* find(std::string_view section) const;
  /// Its text; a Reason that names case and section if it is missing.
  const std::string& text(std::string_view section) const;
  /// What follows the section's name on its header line.
  const std::string& args(std::string_view section) const;
  /// "tests/schedule/split.test:exact": what a filter is matched with. Paths are relative to the checkout.
  std::string id() const;
  /// "tests/schedule/split.test:12", as compilers name a place.
  std::string place() const;
};

/// How cases with a section of one name are run.
///   section   the section that asks for this runner: "script" for cases with `--- script`
///   inputs    the other sections it reads; a case that has any further one is refused, so a misspelled name is noticed.
///             An input that has an argument but no text is that of the earlier case so named: `--- program exact`
///   does      one line for `sator_texttest --runners`
///   run       the result, compared with `--- expect`; an Error it throws is compared with `--- expect error`
struct Runner {
  std::string section;
  std::vector<std::string> inputs;
  std::string does;
  std::function<std::string(const TestCase&)> run;
};

/// All runners: the table in runners.cc.
const std::vector<Runner>& runners();

/// Thrown by a runner that cannot run here, for instance without a file that is not part of the checkout.
struct Skip {
  std::string reason;
};

/// The cases of one file. Errors: text outside of a case, two cases or sections of one name, a file without cases.
std::vector<TestCase> parse_cases(const fs::path& file, std::string_view text);

/// What became of one case.
///   got       the result, or the words of the Error without their leading "error: "
///   problem   why the case failed beside a difference: no expectation, unknown section, crash, time
struct Outcome {
  enum class Status { passed, failed, skipped };
  Status status = Status::passed;
  std::string got;
  bool is_error = false;
  std::string problem;
  double seconds = 0;
};

/// Runs one case in this process. Errors other than the runner's own become the outcome's problem.
Outcome run_case(const TestCase& test, const std::vector<TestCase>& file_cases, const std::vector<Runner>& table);

/// Whether the lines of an expected error stand in the error's words, in this order, beginning with its first line: hint and
/// program may be left out.
bool error_matches(std::string_view expected, std::string_view got);

/// The difference of two texts, line by line: "- " only in `expected`, "+ " only in `got`, "  " in both, with some context.
std::string line_difference(std::string_view expected, std::string_view got);

/// The file's text with the expectations of the given cases replaced (or added where a case has none).
struct Blessing {
  const TestCase* test;
  const Outcome* outcome;
};
std::string blessed(std::string_view text, const std::vector<Blessing>& blessings);

struct TextTestOptions {
  std::vector<fs::path> roots;  ///< folders or files
  std::string filter;           ///< part of a case's id, in any case of letters
  bool bless = false;
  bool isolate = true;   ///< each case in a process of its own, so that a crash fails one case
  int jobs = 0;          ///< processes at a time; 0: one per core
  double limit_s = 120;  ///< per case
  fs::path report;       ///< JSON in the shape of GoogleTest's, if not empty
};

/// Runs the cases and prints failures and a summary; the number of failed cases.
int run_text_tests(const TextTestOptions& options, const std::vector<Runner>& table, std::ostream& out);

}  // namespace sator::test
