// `sator chat`: messages from a pipe and from a terminal.
#include <gtest/gtest.h>
#include <pty.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/json.h"
#include "cli/app.h"
#include "cli/commands.h"
#include "cli/program.h"
#include "reference_data.h"

namespace sator::cli {
namespace {

const std::string kTemplate = reference_data("chat/pipes-lines.jinja").string();

std::vector<std::string> chat_of(const std::string& model, const std::vector<std::string>& more) {
  std::vector<std::string> words = {"chat", model, "--chat-template", kTemplate};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

struct Said {
  int status = 0;
  std::string out, notes;
};
Said run_command(const std::vector<std::string>& words, const std::string& input = "") {
  std::istringstream in(input);
  std::ostringstream out, notes;
  const int status = run_app(words, command_table(), in, out, notes);
  return {status, out.str(), notes.str()};
}

// What the session held of the conversation changes no answer: each is that of `generate` on the text of all before it.
TEST(Chat, AnswersAreThoseOfTheWholeText) {
  TempFolder folder;
  const std::string json = (folder.path() / "chat.json").string();
  const Said run = run_command(chat_of(kExample.string(), {"--max-tokens", "12", "--system", "S", "--json", json}),
                               "Once upon\n\n and then? \n/reset\nOnce upon\n");
  ASSERT_EQ(run.status, 0) << run.notes;
  const Json told = parse_json(read_file(json), json);
  ASSERT_EQ(told["answers"].size(), 3);
  const std::string end = "<|endoftext|>";
  std::string text = "<|system|>\nS" + end + "\n";
  std::vector<std::string> answers;
  for (const Json& a : told["answers"]) {
    if (answers.size() == 2) text = "<|system|>\nS" + end + "\n";  // the new conversation
    text += "<|user|>\n" + a["message"].get<std::string>() + end + "\n<|assistant|>\n";
    const Said alone =
        run_command({"generate", kExample.string(), "--prompt", text, "--max-tokens", "12", "--json", json});
    ASSERT_EQ(alone.status, 0) << alone.notes;
    const Json whole = parse_json(read_file(json), json);
    EXPECT_EQ(a["text"], whole["text"]) << text;
    EXPECT_EQ(a["prompt_tokens"], whole["prompt_ids"].size());
    answers.push_back(a["text"]);
    text.resize(text.size() - std::string("<|assistant|>\n").size());
    text += "<|assistant|>\n" + answers.back() + end + "\n";
  }
  EXPECT_EQ(answers[0], answers[2]);
  EXPECT_EQ(told["answers"][0]["held_tokens"], 0);
  EXPECT_GT(told["answers"][1]["held_tokens"], told["answers"][0]["prompt_tokens"]);
  EXPECT_EQ(run.out, answers[0] + "\n" + answers[1] + "\n" + answers[2] + "\n");
}

TEST(Chat, AModelWithoutATemplateSaysSo) {
  const Said run = run_command({"chat", kExample.string()}, "x\n");
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(run.notes.find("has no chat template"), std::string::npos) << run.notes;
  EXPECT_NE(run.notes.find("--chat-template FILE"), std::string::npos) << run.notes;
}

TEST(Chat, ATemplateThatRefusesIsAnError) {
  TempFolder folder;
  const fs::path file = folder.write("t.jinja", "{{ raise_exception('never') }}");
  const Said run = run_command({"chat", kExample.string(), "--chat-template", file.string()}, "x\n");
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(run.notes.find("the template refuses: never"), std::string::npos) << run.notes;
}

// In a terminal Ctrl-C ends the answer, and the line after it is the next message; Ctrl-D ends the program.
TEST(Chat, CtrlCEndsTheAnswerAndNotTheProgram) {
  TempFolder folder;
  std::vector<std::string> words = chat_of(kExample.string(), {"--max-tokens", "400"});
  words.insert(words.begin(), SATOR_PROGRAM);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int terminal = -1;
  const pid_t pid = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    ::setenv("SATOR_HOME", (folder.path() / "home").c_str(), 1);
    ::setenv("TERM", "dumb", 1);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  std::string seen;
  /// Reads until some words have come `times` times in all.
  auto wait_for = [&](const std::string& expected, int times) {
    auto count = [&] {
      int n = 0;
      for (size_t at = seen.find(expected); at != seen.npos; at = seen.find(expected, at + 1)) ++n;
      return n;
    };
    char buffer[4096];
    while (count() < times) {
      const ssize_t n = ::read(terminal, buffer, sizeof buffer);
      if (n <= 0) return false;
      seen.append(buffer, static_cast<size_t>(n));
    }
    return true;
  };
  auto type = [&](const std::string& keys) { return ::write(terminal, keys.data(), keys.size()) == std::ssize(keys); };
  ASSERT_TRUE(wait_for("> ", 1)) << seen;
  ASSERT_TRUE(type("Once upon a time\n") && wait_for("\r\n", 5)) << seen;
  ASSERT_TRUE(type("\x03") && wait_for("> ", 2)) << seen;
  ASSERT_TRUE(type("and then\n") && wait_for("> ", 3)) << seen;
  ASSERT_TRUE(type("\x04")) << seen;
  wait_for("tok/s\r\n", 1);
  int status = -1;
  ::waitpid(pid, &status, 0);
  ::close(terminal);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status << "\n" << seen;
  EXPECT_NE(seen.find("2 answers: "), std::string::npos) << seen;
}

}  // namespace
}  // namespace sator::cli
