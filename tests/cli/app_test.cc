#include "cli/app.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <sstream>
#include <streambuf>

#include "base/error.h"
#include "base/file.h"
#include "cli/commands.h"

namespace sator::cli {
namespace {

struct Values {
  std::string model, scheme = "f32";
  bool greedy = false;
  int64_t max_tokens = 128;
  std::optional<double> temperature;
  std::vector<std::string> chips;
  std::vector<int64_t> ids;
};

// A command with an option of each kind; `end` is what it does when run.
Command sample(std::shared_ptr<Values> v, std::function<void(Streams&)> end = [](Streams&) {}) {
  return {.name = "generate",
          .does = "streams text",
          .options = {{.name = "MODEL", .help = "a model folder", .into = &v->model, .required = true},
                      {"--greedy", "take the likeliest token", &v->greedy},
                      {"-n,--max-tokens N", "tokens to generate", &v->max_tokens},
                      {.name = "--quantization SCHEME",
                       .help = "of the weights",
                       .into = &v->scheme,
                       .choices = {"f32", "q4f16_1"}},
                      {"--temperature T", "of sampling", &v->temperature},
                      {"--chip NAME", "may be repeated", &v->chips},
                      {"--ids IDS", "token ids", &v->ids}},
          .run = std::move(end)};
}

struct Result {
  int status;
  std::string out, notes;
};

Result run(const std::vector<std::string>& args, const Command& command) {
  std::istringstream in;
  std::ostringstream out, notes;
  int status = run_app(args, {command, version_command()}, in, out, notes);
  return {status, out.str(), notes.str()};
}

TEST(App, FillsEveryKindOfOption) {
  auto v = std::make_shared<Values>();
  Result r = run({"generate",
                  "--chip",
                  "a",
                  "--chip=b",
                  "folder",
                  "--greedy",
                  "-n",
                  "7",
                  "--temperature",
                  "0.5",
                  "--quantization",
                  "q4f16_1",
                  "--ids",
                  "1,2,3"},
                 sample(v));
  EXPECT_EQ(r.status, 0) << r.notes;
  EXPECT_EQ(v->model, "folder");
  EXPECT_TRUE(v->greedy);
  EXPECT_EQ(v->max_tokens, 7);
  EXPECT_EQ(v->scheme, "q4f16_1");
  EXPECT_EQ(v->temperature, 0.5);
  EXPECT_EQ(v->chips, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(v->ids, (std::vector<int64_t>{1, 2, 3}));
}

TEST(App, WhatIsNotGivenKeepsItsDefault) {
  auto v = std::make_shared<Values>();
  EXPECT_EQ(run({"generate", "folder"}, sample(v)).status, 0);
  EXPECT_EQ(v->max_tokens, 128);
  EXPECT_FALSE(v->temperature.has_value());
  EXPECT_TRUE(v->chips.empty());
}

TEST(App, AnArgumentMayHaveTheNameOfACommand) {
  auto v = std::make_shared<Values>();
  EXPECT_EQ(run({"generate", "version"}, sample(v)).status, 0);
  EXPECT_EQ(v->model, "version");
}

TEST(App, MistakesOnTheCommandLineEndWithStatus1AndAWayOn) {
  struct Row {
    std::vector<std::string> args;
    std::string words;
  };
  for (const Row& row : std::vector<Row>{
           {{"generat", "x"}, "did you mean generate?"},
           {{"--generate"}, "sator has no command --generate"},
           {{"generate"}, "MODEL is required"},
           {{"generate", "x", "--gredy"}, "did you mean --greedy"},
           {{"generate", "x", "--temperature", "-1", "--gredy"}, "has no option --gredy"},
           {{"generate", "x", "--max-tokens", "many"}, "many"},
           {{"generate", "x", "--max-tokens", ""}, "a number is missing"},
           {{"generate", "x", "--temperature="}, "--temperature"},
           {{"generate", "x", "--ids", ""}, "a number is missing"},
           {{"generate", "x", "--ids", "1,,2"}, "a number is missing"},
           {{"generate", "x", "--ids", "1,2,"}, "a number is missing"},
           {{"generate", "x", "--ids", "1,2x"}, "2x"},
           {{"generate", "x", "--ids", "99999999999999999999"}, "99999999999999999999"},
           {{"generate", "x", "--quantization", "f33"}, "f33"},
           {{"generate", "x", "y"}, "y"},
           {{"generate", "x", "-n", "1", "--max-tokens=2"}, "error: --max-tokens is given 2 times\n"},
           {{"generate", "x", "--temperature", "1", "--temperature", "1", "--temperature", "1"},
            "error: --temperature is given 3 times\n"},
       }) {
    Result r = run(row.args, sample(std::make_shared<Values>()));
    EXPECT_EQ(r.status, 1) << row.words;
    EXPECT_EQ(r.out, "");
    EXPECT_TRUE(r.notes.starts_with("error: ")) << r.notes;
    EXPECT_NE(r.notes.find(row.words), std::string::npos) << r.notes;
    EXPECT_NE(r.notes.find("\n  needs: "), std::string::npos) << r.notes;
    EXPECT_NE(r.notes.find("\n  hint:  "), std::string::npos) << r.notes;
  }
}

TEST(App, WhatIsThrownDecidesTheStatus) {
  auto status = [](std::function<void(Streams&)> end) {
    return run({"generate", "x"}, sample(std::make_shared<Values>(), std::move(end))).status;
  };
  EXPECT_EQ(status([](Streams&) { fail({.what = "no such folder"}); }), 1);
  EXPECT_EQ(status([](Streams&) { throw std::bad_alloc(); }), 1);
  EXPECT_EQ(status([](Streams&) { std::filesystem::directory_iterator("/no/such/folder"); }), 1);
  EXPECT_EQ(status([](Streams&) { internal_error("a pass broke the module"); }), 70);
  EXPECT_EQ(status([](Streams&) { throw std::out_of_range("at"); }), 70);
  EXPECT_EQ(status([](Streams& io) { io.out.setstate(std::ios::badbit); }), 1);
}

TEST(App, JsonIsWrittenAfterSuccessOnly) {
  fs::path file = fs::temp_directory_path() / text("sator-app-", static_cast<int64_t>(::getpid()), "/r.json");
  auto v = std::make_shared<Values>();
  auto report = [](Streams& io) { io.json = {{"tokens", 3}, {"text", "\xff"}}; };
  EXPECT_EQ(run({"generate", "x", "--json", file.string()}, sample(v, [](Streams&) { fail({.what = "no"}); })).status,
            1);
  EXPECT_FALSE(fs::exists(file));
  EXPECT_EQ(run({"generate", "x", "--json", file.string()}, sample(v, report)).status, 0);
  EXPECT_EQ(nlohmann::json::parse(read_file(file))["tokens"], 3);
  EXPECT_EQ(run({"generate", "x", "--json", "/proc/none/r.json"}, sample(v, report)).status, 1);
  fs::remove_all(file.parent_path());
}

TEST(App, HelpGoesToStandardOutput) {
  Command command = sample(std::make_shared<Values>());
  for (const auto& args : std::vector<std::vector<std::string>>{{"generate", "--help"}, {"help", "generate"}}) {
    Result r = run(args, command);
    EXPECT_EQ(r.status, 0) << r.notes;
    EXPECT_NE(r.out.find("\nusage: sator generate MODEL [OPTIONS]\n"), std::string::npos) << r.out;
    EXPECT_NE(r.out.find("-n, --max-tokens N     tokens to generate [128]\n"), std::string::npos) << r.out;
    EXPECT_NE(r.out.find("of the weights: f32, q4f16_1 [f32]\n"), std::string::npos) << r.out;
    EXPECT_NE(r.out.find("--json FILE"), std::string::npos) << r.out;
  }
  EXPECT_NE(run({}, command).out.find("generate  streams text"), std::string::npos);
  EXPECT_EQ(run({"--version"}, command).out.substr(0, 6), "sator ");
}

/// A text without an end, that counts what is read of it.
class Endless : public std::streambuf {
 public:
  int64_t read = 0;

 private:
  int_type underflow() override {
    read += std::ssize(block_);
    setg(block_.data(), block_.data(), block_.data() + block_.size());
    return traits_type::to_int_type(block_[0]);
  }
  std::string block_ = std::string(1 << 16, 'a');
};

TEST(CommandTable, NoMoreOfStandardInputIsReadThanATextMayHave) {
  const std::string model = std::string(SATOR_SOURCE_DIR) + "/examples/gpt2-stories";
  for (const auto& args : std::vector<std::vector<std::string>>{{"generate", model, "--prompt", "-"},
                                                                {"perplexity", model, "--text", "-"},
                                                                {"fmt", "-"},
                                                                {"opt", "-"},
                                                                {"build", "-", "-o", "/nowhere/a.so"}}) {
    SCOPED_TRACE(args[0]);
    Endless text;
    std::istream in(&text);
    std::ostringstream out, notes;
    EXPECT_EQ(run_app(args, command_table(), in, out, notes), 1);
    EXPECT_NE(notes.str().find("standard input has more than 64 MB"), std::string::npos) << notes.str();
    EXPECT_LE(text.read, (64 << 20) + (1 << 17));
  }
}

TEST(CommandTable, NamesAreUniqueAndLinesAreShort) {
  std::vector<std::string> names;
  for (const Command& command : command_table()) {
    EXPECT_EQ(std::count(names.begin(), names.end(), command.name), 0) << command.name;
    EXPECT_LE(command.does.size(), 100u) << command.name;
    names.push_back(command.name);
    Result r = run({command.name, "--help"}, command);
    EXPECT_EQ(r.status, 0) << r.notes;  // CLI11 refuses option names that clash or cannot be parsed
  }
}

}  // namespace
}  // namespace sator::cli
