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

/// A document without its code, in which brackets follow each other too: indented or fenced lines, and what stands between `.
std::string without_code(const std::string& content) {
  std::string out;
  bool fenced = false;
  for (std::string_view line : split(content, '\n')) {
    const bool fence = line.starts_with("```");
    fenced ^= fence;
    if (!fence && !fenced && !line.starts_with("    ")) out += std::string(line) + "\n";
  }
  return std::regex_replace(out, std::regex("`[^`\n]*`"), "");
}

TEST(Documents, LinkedFilesExist) {
  const std::regex link(R"(\]\(([^)#:]+)\))");
  int links = 0;
  for (const fs::path& document : documents()) {
    const std::string content = without_code(read_file(document));
    for (std::sregex_iterator at(content.begin(), content.end(), link), end; at != end; ++at, ++links)
      EXPECT_TRUE(fs::exists(document.parent_path() / (*at)[1].str())) << document << " links " << (*at)[1];
  }
  EXPECT_GE(links, 3);
}

/// What a reader may be sent to from: documents and sources. Parts of one literal are joined.
std::vector<std::pair<fs::path, std::string>> texts() {
  std::vector<std::pair<fs::path, std::string>> found;
  for (const fs::path& document : documents()) found.emplace_back(document, read_file(document));
  const std::regex joint("\"\\s*\\n\\s*\"");
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "src"))
    if (const auto end = entry.path().extension(); end == ".cc" || end == ".h")
      found.emplace_back(entry.path(), std::regex_replace(read_file(entry.path()), joint, ""));
  return found;
}

template <class Visit>
int each_match(const std::string& text, const std::regex& pattern, const Visit& visit) {
  int matches = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at, ++matches) visit(*at);
  return matches;
}

// Hints and comments too: a command that is proposed exists, with the options that stand beside it.
TEST(Hints, CommandsAndTheirOptionsExist) {
  const std::vector<Command> commands = command_table();
  const std::regex call(R"(`(?:\./)?sator ([a-z_]+)([^`]*)`)"), flag(R"((?:^| )(--[a-z][a-z-]*))");
  int calls = 0;
  for (const auto& [path, text] : texts()) {
    if (path.extension() == ".md") continue;  // Documents.CommandsAndTheirOptionsExist
    calls += each_match(text, call, [&, path = path](const std::smatch& m) {
      const Command* command = find_command(commands, m[1]);
      EXPECT_TRUE(command) << path << ": " << m[0];
      if (!command) return;
      each_match(m[2], flag, [&](const std::smatch& f) {
        EXPECT_TRUE(has_option(*command, f[1])) << path << ": " << f[1] << " in: " << m[0];
      });
    });
  }
  EXPECT_GE(calls, 10);
}

// An option that a sentence of the program names is one of some command.
TEST(Hints, OptionsExist) {
  const std::vector<Command> commands = command_table();
  // Of other programs that hints name, and of the program itself.
  std::vector<std::string> known = {"--local-dir", "--version", "--build-id", "--hash-style"};
  for (const Command& command : commands)
    for (const Option& option : command.options) known.insert(known.end(), option.also.begin(), option.also.end());
  const std::regex literal(R"lit("((?:[^"\\\n]|\\.)*)")lit"), flag(R"((?:^|[ `])(--[a-z][a-z-]+))");
  int flags = 0;
  for (const auto& [path, text] : texts()) {
    if (path.extension() == ".md") continue;
    each_match(text, literal, [&, path = path](const std::smatch& words) {
      const std::string inside = words[1];
      flags += each_match(inside, flag, [&](const std::smatch& f) {
        const std::string name = f[1];
        const bool exists = std::ranges::count(known, name) > 0 ||
                            std::ranges::any_of(commands, [&](const Command& c) { return has_option(c, name); });
        EXPECT_TRUE(exists) << path << ": " << name << " in: " << inside;
      });
    });
  }
  EXPECT_GE(flags, 100);
}

// Pages, sources and folders that are named exist. Words in capitals, < and * stand for what is to be put in.
TEST(Hints, FilesExist) {
  const std::regex page(R"(docs/[a-z0-9-]+\.md)"),
      path_in_quotes(R"(`((?:src|tests|tools|docs|bench|examples|chips)/[a-z0-9_./-]+)`)"),
      room(R"(^\| `([a-z]+/)`(?:, `([a-z]+/)`)* \|)");
  int named = 0;
  for (const auto& [path, text] : texts()) {
    const std::regex& pattern = path.extension() == ".md" ? path_in_quotes : page;
    named += each_match(text, pattern, [&, path = path](const std::smatch& m) {
      EXPECT_TRUE(fs::exists(kRoot / m[m.size() - 1].str())) << path << " names " << m[0];
    });
  }
  EXPECT_GE(named, 20);
  int rooms = 0;
  const std::string readme = read_file(kRoot / "README.md");
  for (std::string_view line : split(readme, '\n'))
    rooms += each_match(std::string(line), room, [&](const std::smatch& m) {
      for (size_t i = 1; i < m.size(); ++i) {
        const fs::path folder = m[i].str();
        EXPECT_TRUE(fs::exists(kRoot / folder) || fs::exists(kRoot / "src" / folder)) << "README.md names " << folder;
      }
    });
  EXPECT_GE(rooms, 15);
}

// Numbers are looked at in one place, by the range that their option states.
TEST(Hints, EveryNumberHasARange) {
  for (const Command& command : command_table())
    for (const Option& option : command.options) {
      const bool is_number = std::holds_alternative<int64_t*>(option.into) ||
                             std::holds_alternative<double*>(option.into) ||
                             std::holds_alternative<std::optional<int64_t>*>(option.into) ||
                             std::holds_alternative<std::optional<double>*>(option.into) ||
                             std::holds_alternative<std::vector<int64_t>*>(option.into);
      EXPECT_TRUE(!is_number || option.range) << "sator " << command.name << " " << option.name;
    }
}

}  // namespace
}  // namespace sator::cli
