#include <istream>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "engine/tokenizer/tokenizer.h"
#include "frontend/hf_config.h"
#include "llm/scheme.h"

namespace sator::cli {

namespace {

struct TokenizeOptions {
  std::string folder;
  bool add_special = false, skip_special = false;
  std::optional<std::string> scheme;
};

void tokenize(const TokenizeOptions& options, Streams& io) {
  if (options.scheme) llm::parse_scheme(*options.scheme);
  Tokenizer tokenizer = load_tokenizer(options.folder);
  int64_t line_number = 0, texts = 0, tokens = 0;
  for (std::string line; std::getline(io.in, line);) {
    ++line_number;
    if (trim(line).empty()) continue;
    std::string source = text("standard input line ", line_number);
    Json row = parse_json(line, source, DuplicateNames::last_wins);
    std::vector<int32_t> ids = tokenizer.encode(JsonAt(row, source).at("text").string(), options.add_special);
    row["decoded"] = tokenizer.decode(ids, options.skip_special);
    ++texts, tokens += static_cast<int64_t>(ids.size());
    row["ids"] = std::move(ids);
    io.out << row.dump() << '\n';
  }
  io.json = {{"texts", texts}, {"tokens", tokens}, {"vocab_size", tokenizer.vocab_size()}};
}

}  // namespace

Command tokenize_command() {
  auto options = std::make_shared<TokenizeOptions>();
  return {
      .name = "tokenize",
      .does = "adds token ids to JSON lines {\"text\": ...} of standard input",
      .options =
          {
              {.name = "FOLDER",
               .help = "a model, or a folder with its tokenizer's files",
               .into = &options->folder,
               .required = true},
              {"--add-special", "put the special tokens around each text, as for a prompt", &options->add_special},
              {"--skip-special", "leave special tokens out of \"decoded\"", &options->skip_special},
              {"--quantization SCHEME",
               "accepted as by the other commands of a model; ids do not depend on it",
               &options->scheme},
          },
      .run = [options](Streams& io) { tokenize(*options, io); },
      .details =
          "Each line comes back with \"ids\" and with \"decoded\", the text that these ids decode to:\n"
          "  echo '{\"text\": \"Once upon a time\"}' | sator tokenize examples/gpt2-stories\n"
          "truncation and padding in tokenizer.json are ignored: they form batches for training, and ids would not be "
          "those of\nthe whole text.",
      .also = {"encode", "tokenizer", "tok"}};
}

}  // namespace sator::cli
