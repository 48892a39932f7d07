// Text tests: from the text of a file to its cases.
#include <algorithm>

#include "base/error.h"
#include "support/texttest.h"

namespace sator::test {

const Section* TestCase::find(std::string_view section) const {
  for (const Section& s : sections)
    if (s.name == section) return &s;
  return nullptr;
}

static const Section& required(const TestCase& test, std::string_view name) {
  const Section* section = test.find(name);
  if (!section)
    fail({.what = text("case ", test.name, " has no section ", name),
          .needs = text("a section `--- ", name, "`"),
          .hint = "add it, or name an earlier case that has one: `--- program exact`",
          .where = test.place()});
  return *section;
}

const std::string& TestCase::text(std::string_view section) const { return required(*this, section).text; }
const std::string& TestCase::args(std::string_view section) const { return required(*this, section).args; }

static std::string shown(const fs::path& file) {
  fs::path relative = file.lexically_proximate(SATOR_SOURCE_DIR);
  return relative.native().starts_with("..") ? file.string() : relative.string();
}

std::string TestCase::id() const { return sator::text(shown(file), ":", name); }
std::string TestCase::place() const { return sator::text(shown(file), ":", line); }

static bool is_name(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

// "case NAME: DESCRIPTION" or "case NAME"
static std::optional<std::pair<std::string, std::string>> case_header(std::string_view line) {
  if (!line.starts_with("case ")) return {};
  line.remove_prefix(5);
  size_t colon = line.find(':');
  std::string_view name = trim(line.substr(0, colon));
  if (!is_name(name)) return {};
  return std::pair{std::string(name), std::string(colon == std::string_view::npos ? "" : trim(line.substr(colon + 1)))};
}

// "--- NAME ARGS"
static std::optional<Section> section_header(std::string_view line) {
  if (!line.starts_with("--- ")) return {};
  line = trim(line.substr(4));
  size_t space = line.find(' ');
  std::string_view name = line.substr(0, space);
  if (!is_name(name)) return {};
  return Section{.name = std::string(name),
                 .args = std::string(space == std::string_view::npos ? "" : trim(line.substr(space)))};
}

// Content that looks like a header, or begins with a backslash, is written with a backslash before it.
static std::string_view unescaped(std::string_view line) {
  if (!line.starts_with("\\")) return line;
  std::string_view rest = line.substr(1);
  return rest.starts_with("\\") || case_header(rest) || section_header(rest) ? rest : line;
}

std::vector<TestCase> parse_cases(const fs::path& file, std::string_view content) {
  std::vector<TestCase> cases;
  auto refuse = [&](int line, std::string what, std::string needs, std::string hint) {
    fail({.what = std::move(what),
          .needs = std::move(needs),
          .hint = std::move(hint),
          .where = text(shown(file), ":", line)});
  };
  int number = 0;
  for (std::string_view line : split(content, '\n')) {
    ++number;
    TestCase* test = cases.empty() ? nullptr : &cases.back();
    if (auto header = case_header(line)) {
      for (const TestCase& other : cases)
        if (other.name == header->first)
          refuse(number, text("a second case ", other.name), "one case of a name in a file", "rename one of them");
      cases.push_back({.file = file, .line = number, .name = header->first, .description = header->second});
      cases.back().end_line = number + 1;
    } else if (auto section = section_header(line)) {
      if (!test)
        refuse(number,
               text("section ", section->name, " before the first case"),
               "a line `case NAME: description`",
               "add one above");
      if (test->find(section->name))
        refuse(number,
               text("a second section ", section->name, " in case ", test->name),
               "one section of a name in a case",
               "rename it, or start a new case");
      section->line = number;
      test->sections.push_back(std::move(*section));
      test->end_line = number + 1;
    } else if (test && !test->sections.empty()) {
      std::string& body = test->sections.back().text;
      body.append(unescaped(line)).append("\n");
      if (!trim(line).empty()) test->end_line = number + 1;
    } else if (!line.starts_with("#") && !trim(line).empty()) {
      refuse(number,
             text("text outside of a section: ", line),
             "comments (#), `case NAME:` and `--- SECTION` lines here",
             "put it into a section, or a # before it");
    }
  }
  if (cases.empty())
    refuse(number, "the file has no cases", "at least one `case NAME: description`", "add one, or remove the file");
  for (TestCase& test : cases)
    for (Section& section : test.sections)
      while (section.text.ends_with("\n")) section.text.pop_back();
  return cases;
}

}  // namespace sator::test
