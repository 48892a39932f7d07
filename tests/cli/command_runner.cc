// Text tests of the program `sator`: a command line in, its standard output or its error out.
#include <filesystem>
#include <iostream>
#include <sstream>

#include "base/error.h"
#include "cli/app.h"
#include "cli/commands.h"
#include "support/runners.h"

namespace sator::test {

// Words are separated by spaces and line ends; '...' keeps a word with spaces together.
static std::vector<std::string> words_of(const TestCase& test) {
  std::vector<std::string> words;
  bool inside = false, open = false;
  for (char c : test.text("command")) {
    if (c == '\'') {
      if (!inside && !open) words.emplace_back();
      open = true;
      inside = !inside;
    } else if (!inside && (c == ' ' || c == '\n')) {
      open = false;
    } else {
      if (!open) words.emplace_back();
      open = true;
      words.back() += c;
    }
  }
  if (inside)
    fail({.what = "a quote ' is not closed", .needs = "pairs of '", .hint = "close it", .where = test.place()});
  return words;
}

std::string run_command(const TestCase& test) {
  fs::current_path(SATOR_SOURCE_DIR);
  std::vector<std::string> words = words_of(test);
  if (words.empty() || words[0] != "sator")
    fail({.what = "the command does not begin with sator",
          .needs = "sator COMMAND [OPTIONS]",
          .hint = "write the line as a user types it in the root of the checkout",
          .where = test.place()});
  words.erase(words.begin());
  std::istringstream in(test.find("stdin") ? test.text("stdin") + "\n" : "");
  std::ostringstream out, notes;
  cli::dispatch(words, cli::command_table(), in, out, notes);
  return out.str();
}

}  // namespace sator::test
