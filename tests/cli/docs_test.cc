// What the documents tell a reader to type exists: commands, their options, files that are linked.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "base/file.h"
#include "base/text.h"
#include "cli/commands.h"

namespace sator::cli {
namespace {

const fs::path kRoot = SATOR_SOURCE_DIR;

std::vector<fs::path> documents() {
  std::vector<fs::path> found = {kRoot / "README.md"};
  for (const char* folder : {"docs", "examples", "tools"})
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder))
      if (entry.path().extension() == ".md") found.push_back(entry.path());
  return found;
}

/// The command of that name; null if there is none.
const Command* find_command(const std::vector<Command>& commands, const std::string& name) {
  auto found = std::find_if(commands.begin(), commands.end(), [&](const Command& c) { return c.name == name; });
  return found == commands.end() ? nullptr : &*found;
}

bool has_option(const Command& command, const std::string& flag) {
  if (flag == "--help" || flag == "--json") return true;
  return std::any_of(command.options.begin(), command.options.end(), [&](const Option& option) {
    const std::string names = option.name.substr(0, option.name.find(' '));
    const std::vector<std::string_view> flags = split(names, ',');
    return std::find(flags.begin(), flags.end(), flag) != flags.end();
  });
}

TEST(Documents, CommandsAndTheirOptionsExist) {
  const std::vector<Command> commands = command_table();
  // "`sator opt`", "    ./sator study MODEL --quant f16   remark", "$ ./sator generate ...": up to the remark or the quote.
  const std::regex call(R"((?:^ {4}|\$ |`)(?:\./)?sator ([a-z_]+)((?: ?[^ `]+)*))");
  const std::regex flag(R"((?:^| )(--?[a-z][a-z-]*))");
  int calls = 0, flags = 0;
  for (const fs::path& document : documents()) {
    const std::string content = read_file(document);
    for (std::string_view line : split(content, '\n')) {
      const std::string text(line);
      for (std::sregex_iterator at(text.begin(), text.end(), call), end; at != end; ++at) {
        ++calls;
        const Command* command = find_command(commands, (*at)[1]);
        EXPECT_TRUE(command) << document << ": " << text;
        if (!command) continue;
        const std::string rest = (*at)[2];
        for (std::sregex_iterator f(rest.begin(), rest.end(), flag); f != end; ++f, ++flags)
          EXPECT_TRUE(has_option(*command, (*f)[1])) << document << ": " << (*f)[1] << " in: " << text;
      }
    }
  }
  EXPECT_GE(calls, 10);
  EXPECT_GE(flags, 10);
}

TEST(Documents, LinkedFilesExist) {
  const std::regex link(R"(\]\(([^)#:]+)\))");
  int links = 0;
  for (const fs::path& document : documents()) {
    const std::string content = read_file(document);
    for (std::sregex_iterator at(content.begin(), content.end(), link), end; at != end; ++at, ++links)
      EXPECT_TRUE(fs::exists(document.parent_path() / (*at)[1].str())) << document << " links " << (*at)[1];
  }
  EXPECT_GE(links, 3);
}

}  // namespace
}  // namespace sator::cli
