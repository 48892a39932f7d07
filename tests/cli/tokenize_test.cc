#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/json.h"
#include "base/text.h"
#include "cli/app.h"
#include "cli/commands.h"
#include "temp_folder.h"

namespace sator::cli {
namespace {

struct Result {
  int status;
  std::string out, notes;
};

Result tokenize(std::vector<std::string> args, const std::string& input) {
  std::istringstream in(input);
  std::ostringstream out, notes;
  args.insert(args.begin(), "tokenize");
  int status = run_app(args, {tokenize_command()}, in, out, notes);
  return {status, out.str(), notes.str()};
}

const std::string kModel = (fs::path(SATOR_SOURCE_DIR) / "examples/gpt2-stories").string();

TEST(Tokenize, AddsIdsAndTheDecodedText) {
  // Ids of "Once upon a time" and the like: models/gpt2-stories/expected.json of the reference data.
  Result r = tokenize({kModel}, "{\"text\": \"Once upon a time\", \"n\": 1}\n\n{\"text\":\"a<|endoftext|>\"}");
  EXPECT_EQ(r.status, kSuccess) << r.notes;
  std::vector<std::string_view> lines = split(r.out, '\n');
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(
      parse_json(lines[0], "out"),
      (Json{{"text", "Once upon a time"}, {"n", 1}, {"ids", {5837, 594, 259, 580}}, {"decoded", "Once upon a time"}}));
  Json second = parse_json(lines[1], "out");
  EXPECT_EQ(second["ids"].back(), 0);
  EXPECT_EQ(second["decoded"], "a<|endoftext|>");
  r = tokenize({kModel, "--skip-special"}, "{\"text\":\"a<|endoftext|>\"}");
  EXPECT_EQ(parse_json(split(r.out, '\n')[0], "out")["decoded"], "a");
}

TEST(Tokenize, SaysWhichLineIsWrong) {
  Result r = tokenize({kModel}, "{\"text\": \"a\"}\n{\"txt\": \"a\"}\n");
  EXPECT_EQ(r.status, kUserMistake);
  EXPECT_NE(r.notes.find("standard input line 2 has no \"text\""), std::string::npos) << r.notes;
  r = tokenize({kModel}, "{\"text\": \"a");
  EXPECT_EQ(r.status, kUserMistake);
  EXPECT_NE(r.notes.find("standard input line 1 is not valid JSON"), std::string::npos) << r.notes;
  r = tokenize({kModel}, "{\"text\": \"a\xff\"}");
  EXPECT_EQ(r.status, kUserMistake);
  EXPECT_NE(r.notes.find("UTF-8"), std::string::npos) << r.notes;
  TempFolder empty;
  r = tokenize({empty.path().string()}, "");
  EXPECT_EQ(r.status, kUserMistake);
  EXPECT_NE(r.notes.find("no tokenizer"), std::string::npos) << r.notes;
  EXPECT_EQ(tokenize({kModel, "--quantization", "nonsense"}, "").status, kUserMistake);
  EXPECT_EQ(tokenize({kModel, "--quantization", "int8-channel"}, "").status, kSuccess);
}

}  // namespace
}  // namespace sator::cli
