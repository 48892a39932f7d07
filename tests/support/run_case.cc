// Text tests: which runner a case asks for, and whether its result is the expected one.
#include <algorithm>

#include "base/error.h"
#include "support/texttest.h"

namespace sator::test {

// The runner whose section the case has and which reads all of its other sections.
static const Runner& runner_of(const TestCase& test, const std::vector<Runner>& table) {
  std::vector<std::string> known = {"expect"};
  const Runner* closest = nullptr;
  for (const Runner& runner : table) {
    known.push_back(runner.section);
    if (!test.find(runner.section)) continue;
    auto reads = [&](const Section& s) {
      return s.name == "expect" || s.name == runner.section ||
             std::find(runner.inputs.begin(), runner.inputs.end(), s.name) != runner.inputs.end();
    };
    if (std::all_of(test.sections.begin(), test.sections.end(), reads)) return runner;
    closest = &runner;
  }
  if (closest)
    for (const Section& s : test.sections) {
      const auto& inputs = closest->inputs;
      if (s.name == "expect" || s.name == closest->section) continue;
      if (std::find(inputs.begin(), inputs.end(), s.name) == inputs.end())
        fail({.what = text("section ", s.name, " is not read by cases with `--- ", closest->section, "`"),
              .needs = inputs.empty() ? "no further section" : text("only the sections ", join(inputs, ", ")),
              .hint = "is the name misspelled?",
              .where = test.place()});
    }
  std::vector<std::string> near;
  for (const Section& s : test.sections)
    if (s.name != "expect")
      for (const std::string& name : nearest_names(s.name, known)) near.push_back(name);
  fail({.what = text("no section of case ", test.name, " says what to run"),
        .needs = text("one of the sections ", join(known, ", ")),
        .hint = near.empty() ? "`sator_texttest --runners` says what each does" : text("did you mean ", near[0], "?"),
        .where = test.place()});
}

// The case with the inputs filled that name an earlier case instead of having a text.
static TestCase with_inputs(TestCase test, const std::vector<TestCase>& file_cases, const Runner& runner) {
  for (Section& section : test.sections) {
    bool input = std::find(runner.inputs.begin(), runner.inputs.end(), section.name) != runner.inputs.end();
    if (!input || section.args.empty() || !section.text.empty()) continue;
    std::string wanted = section.args;
    std::vector<std::string> earlier;
    // Backwards, so that a case that itself names an earlier one leads on to that.
    for (auto other = file_cases.rbegin(); other != file_cases.rend(); ++other) {
      const Section* given = other->find(section.name);
      if (other->line >= test.line || !given) continue;
      earlier.push_back(other->name);
      if (other->name != wanted) continue;
      if (!given->text.empty() || given->args.empty()) {
        section.text = given->text;
        wanted.clear();
        break;
      }
      wanted = given->args;
    }
    if (!wanted.empty()) {
      auto near = nearest_names(wanted, earlier);
      fail({.what = text("no earlier case ", wanted, " with a section ", section.name),
            .needs = "the name of a case above in this file",
            .hint = near.empty() ? "write the section out" : text("did you mean ", join(near, ", "), "?"),
            .where = text(test.place().substr(0, test.place().rfind(':')), ":", section.line)});
    }
    section.args.clear();
  }
  return test;
}

static std::string without_prefix(std::string_view words, std::string_view prefix) {
  return std::string(words.starts_with(prefix) ? words.substr(prefix.size()) : words);
}

static std::string without_end_lines(std::string text) {
  while (text.ends_with("\n")) text.pop_back();
  return text;
}

bool error_matches(std::string_view expected, std::string_view got) {
  std::vector<std::string_view> lines = split(got, '\n'), wanted = split(expected, '\n');
  if (lines[0] != wanted[0]) return false;
  size_t at = 0;
  for (std::string_view line : wanted) {
    while (at < lines.size() && lines[at] != line) ++at;
    if (at++ == lines.size()) return false;
  }
  return true;
}

Outcome run_case(const TestCase& test, const std::vector<TestCase>& file_cases, const std::vector<Runner>& table) {
  using enum Outcome::Status;
  Outcome outcome;
  const Runner* runner = nullptr;
  TestCase filled;
  try {
    runner = &runner_of(test, table);
    filled = with_inputs(test, file_cases, *runner);
  } catch (const Error& error) {
    return {.status = failed, .problem = error.what()};
  }
  try {
    outcome.got = without_end_lines(runner->run(filled));
  } catch (const Skip& skip) {
    return {.status = skipped, .problem = skip.reason};
  } catch (const Error& error) {
    outcome.got = without_end_lines(without_prefix(error.what(), "error: "));
    outcome.is_error = true;
  } catch (const std::exception& error) {
    return {.status = failed, .problem = error.what()};
  }
  const Section* expect = test.find("expect");
  if (!expect) {
    outcome.problem = "the case has no section `expect`; `./dev bless` writes the present result";
  } else if (!expect->args.empty() && expect->args != "error") {
    outcome.problem = text("`--- expect ", expect->args, "` is neither `--- expect` nor `--- expect error`");
  } else {
    bool wants_error = expect->args == "error";
    bool same = outcome.is_error ? error_matches(expect->text, outcome.got) : expect->text == outcome.got;
    if (wants_error == outcome.is_error && same) return outcome;
    if (wants_error != outcome.is_error)
      outcome.problem =
          wants_error ? "an error was expected, but there is a result" : "a result was expected, not an error";
  }
  outcome.status = failed;
  return outcome;
}

}  // namespace sator::test
