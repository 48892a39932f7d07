// `sator chat`: messages from a pipe and from a terminal.
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/json.h"
#include "cli/app.h"
#include "cli/commands.h"
#include "cli/program.h"
#include "engine/chat.h"
#include "frontend/hf_config.h"
#include "llm/open.h"
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
    for (const char* key : {"quantization", "kv_cache_dtype"}) EXPECT_EQ(told.at(key), whole.at(key));
    answers.push_back(a["text"]);
    text.resize(text.size() - std::string("<|assistant|>\n").size());
    text += "<|assistant|>\n" + answers.back() + end + "\n";
  }
  EXPECT_EQ(answers[0], answers[2]);
  EXPECT_EQ(told["answers"][0]["held_tokens"], 0);
  EXPECT_GT(told["answers"][1]["held_tokens"], told["answers"][0]["prompt_tokens"]);
  EXPECT_EQ(run.out, answers[0] + "\n" + answers[1] + "\n" + answers[2] + "\n");
}

// An answer that broke off leaves a session from which the next message goes on as from a new one.
TEST(Chat, AnErrorInAnAnswerIsForgotten) {
  const llm::OpenModel model = llm::open_model(kExample, {});
  auto made = [&](bool breaks) {
    Chat chat(model.session(), load_tokenizer(kExample), ChatTemplate::read(kTemplate, kExample), {.max_tokens = 12});
    chat.say("Once upon", [](const std::string&) { return true; });
    int pieces = 0;
    auto fails = [&](const std::string&) {
      if (++pieces == 5) fail({.what = "broken off"});
      return true;
    };
    if (breaks) EXPECT_NE(error_of([&] { chat.say("and then", fails); }).find("broken off"), std::string::npos);
    EXPECT_EQ(chat.messages().size(), 2U);
    return chat.say("a time", [](const std::string&) { return true; }).text;
  };
  EXPECT_EQ(made(true), made(false));
}

// What was answered before is written, and the status says that not all was.
TEST(Chat, AnAnswerThatIsCutOffIsNoDocument) {
  TempFolder folder;
  const std::string schema = (folder.path() / "schema.json").string(), json = (folder.path() / "chat.json").string();
  write_file(schema, R"({"const": {"a": 1}})");
  auto chat = [&](const char* stop, const char* tokens) {
    return run_command(
        chat_of(kExample.string(), {"--json-schema", schema, "--stop", stop, "--max-tokens", tokens, "--json", json}),
        "Hi\nyo\n");
  };
  for (const char* stop : {"1", "}"}) {
    const Said run = chat(stop, "50");
    EXPECT_EQ(run.status, 1);
    EXPECT_NE(run.notes.find("the JSON document is not complete"), std::string::npos) << run.notes;
    const Json told = parse_json(read_file(json), json);
    ASSERT_EQ(told["answers"].size(), 2);
    EXPECT_EQ(told["answers"][1]["stopped_by"], "stop_string");
  }
  EXPECT_EQ(chat("no such text", "50").status, 0);
  const Said none = chat("no such text", "2");
  EXPECT_EQ(none.status, 1);
  EXPECT_NE(none.notes.find("does not fit into 2 tokens"), std::string::npos) << none.notes;
  EXPECT_EQ(parse_json(read_file(json), json)["answers"].size(), 0);
}

// The text is the one that the first answer goes on from, and no model is needed for it.
TEST(Chat, PrintsThePromptOfTheFirstMessage) {
  TempFolder folder;
  const std::string json = (folder.path() / "prompt.json").string(), tools = (folder.path() / "tools.json").string();
  const std::string system = (folder.path() / "only.jinja").string();
  const Said run = run_command(chat_of(kExample.string(), {"--system", "S", "--print-prompt", "--json", json}),
                               "\n //Once \nignored\n");
  ASSERT_EQ(run.status, 0) << run.notes;
  const std::string prompt = "<|system|>\nS<|endoftext|>\n<|user|>\n//Once <|endoftext|>\n<|assistant|>\n";
  EXPECT_EQ(run.out, prompt + "\n");
  const Json told = parse_json(read_file(json), json);
  EXPECT_EQ(told["prompt"], prompt);
  EXPECT_EQ(told["prompt_ids"], Json(load_tokenizer(kExample).encode(prompt)));

  const Said command = run_command(chat_of(kExample.string(), {"--print-prompt"}), "/reset\nOnce\n");
  EXPECT_NE(command.notes.find("/reset is no message"), std::string::npos) << command.notes;

  // The order of a tool's members is the file's.
  write_file(tools, R"([{"type": "function", "function": {"name": "now", "arguments": {}}}])");
  write_file(system, "{% for t in tools %}{{ t | tojson }}{% endfor %}|{{ messages | length }}");
  auto with_tools = [&] {
    return run_command({"chat", kExample.string(), "--chat-template", system, "--tools", tools, "--print-prompt"},
                       "Hi\n");
  };
  EXPECT_EQ(with_tools().out, "{\"type\": \"function\", \"function\": {\"name\": \"now\", \"arguments\": {}}}|1\n");
  for (const char* wrong : {R"({"type": "function"})", "[1]"}) {
    write_file(tools, wrong);
    const Said refused = with_tools();
    EXPECT_EQ(refused.status, 1);
    EXPECT_NE(refused.notes.find("is no list of objects"), std::string::npos) << refused.notes;
  }
  // Templates have integers of 64 bits: none becomes a float in silence.
  write_file(tools, R"([{"most": 18446744073709551616}])");
  EXPECT_NE(with_tools().notes.find("the integer 18446744073709551616 is beyond 64 bits"), std::string::npos);
}

// Answers are given with the tools in the text.
TEST(Chat, ToolsStandInTheText) {
  TempFolder folder;
  const std::string tools = (folder.path() / "tools.json").string(), json = (folder.path() / "chat.json").string();
  write_file(tools, R"([{"type": "function", "function": {"name": "now"}}])");
  const std::string file = reference_data("chat/chatml-tools.jinja").string();
  auto tokens = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {
        "chat", kExample.string(), "--chat-template", file, "--max-tokens", "1", "--json", json};
    words.insert(words.end(), more.begin(), more.end());
    const Said run = run_command(words, "Hi\n");
    EXPECT_EQ(run.status, 0) << run.notes;
    return parse_json(read_file(json), json)["answers"][0]["prompt_tokens"].get<int64_t>();
  };
  EXPECT_GT(tokens({"--tools", tools}), tokens({}) + 20);
}

TEST(Chat, AnUnknownCommandIsNoMessage) {
  const Said run = run_command(chat_of(kExample.string(), {"--max-tokens", "2"}), "/rest now\nx\n");
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(run.notes.find("/rest is no command"), std::string::npos) << run.notes;
  EXPECT_NE(run.notes.find("/reset, /exit, /help"), std::string::npos) << run.notes;
  TempFolder folder;
  const std::string json = (folder.path() / "chat.json").string();
  const Said messages =
      run_command(chat_of(kExample.string(), {"--max-tokens", "2", "--json", json}), "// a\n /reset\n/exit\nx\n");
  ASSERT_EQ(messages.status, 0) << messages.notes;
  const Json told = parse_json(read_file(json), json);
  ASSERT_EQ(told["answers"].size(), 2);
  EXPECT_EQ(told["answers"][0]["message"], "// a");
  EXPECT_EQ(told["answers"][1]["message"], "/reset");
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

/// The program in a terminal, and what it has shown.
class Terminal {
 public:
  Terminal(const TempFolder& folder, std::vector<std::string> words) {
    words.insert(words.begin(), SATOR_PROGRAM);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const std::string home = (folder.path() / "home").string();
    pid_ = ::forkpty(&terminal_, nullptr, nullptr, nullptr);
    if (pid_ != 0) return;
    ::setenv("SATOR_HOME", home.c_str(), 1);
    ::setenv("TERM", "dumb", 1);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ~Terminal() { ::close(terminal_); }
  const std::string& seen() const { return seen_; }
  bool type(const std::string& keys) { return ::write(terminal_, keys.data(), keys.size()) == std::ssize(keys); }
  /// Whether some words come behind all that was waited for before.
  bool shows(const std::string& words, int seconds = 15) {
    while (true) {
      if (const size_t at = seen_.find(words, from_); at != seen_.npos) {
        from_ = at + words.size();
        return true;
      }
      pollfd ready{.fd = terminal_, .events = POLLIN, .revents = 0};
      char buffer[4096];
      if (::poll(&ready, 1, 1000 * seconds) != 1) return false;
      const ssize_t n = ::read(terminal_, buffer, sizeof buffer);
      if (n <= 0) return false;
      seen_.append(buffer, static_cast<size_t>(n));
    }
  }
  /// The exit status, 1000 and more for a signal.
  int end() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }

 private:
  int terminal_ = -1;
  pid_t pid_ = -1;
  std::string seen_;
  size_t from_ = 0;
};

// In a terminal Ctrl-C ends the answer, and the line after it is the next message; Ctrl-D ends the program.
TEST(Chat, CtrlCEndsTheAnswerAndNotTheProgram) {
  const std::string message = "Once upon a time";
  const Said begun = run_command(chat_of(kExample.string(), {"--max-tokens", "2"}), message + "\n");
  ASSERT_EQ(begun.status, 0) << begun.notes;
  const std::string first = begun.out.substr(0, begun.out.find('\n'));  // what the answer begins with
  ASSERT_GT(first.size(), 1U);
  TempFolder folder;
  Terminal t(folder, chat_of(kExample.string(), {"--max-tokens", "400"}));
  ASSERT_TRUE(t.shows("> ")) << t.seen();
  constexpr int kTimes = 5;
  for (int i = 0; i < kTimes; ++i) {
    ASSERT_TRUE(t.type(message + "\n") && t.shows(message) && t.shows(first)) << t.seen();
    ASSERT_TRUE(t.type("\x03")) << t.seen();
    // With the key a terminal may drop what it has not shown yet, a prompt too; an empty line brings another.
    ASSERT_TRUE(t.shows("> ", 5) || (t.type("\n") && t.shows("> "))) << t.seen();
    ASSERT_TRUE(t.type("/reset\n") && t.shows("a new conversation") && t.shows("> ")) << t.seen();
  }
  // In the moment between the prompt and the first look at the keyboard the key becomes a character of the line, which is sent off.
  bool ended = false;
  for (int i = 0; i < 5 && !ended; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100 << i));
    ended = t.type("\x04") && t.shows(text(kTimes, " answers: "), 3);
    if (!ended) ASSERT_TRUE(t.type("\n") && t.shows("> ")) << t.seen();
  }
  ASSERT_TRUE(ended) << t.seen();
  ASSERT_TRUE(t.shows("already), ") && t.shows(" written at ")) << t.seen();  // the line may come in pieces
  EXPECT_EQ(t.end(), 0) << t.seen();
  // Of answers that nobody ended all steps would have run.
  const std::string summary = t.seen().substr(t.seen().rfind("already), ") + 10);
  EXPECT_LT(std::stoi(summary), kTimes * 399) << t.seen();
}

}  // namespace
}  // namespace sator::cli
