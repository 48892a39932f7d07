#include "engine/prompt.h"

#include <fstream>
#include <istream>

#include "base/error.h"
#include "engine/tokenizer/unicode.h"

namespace sator {

std::string read_prompt(std::istream& in, const std::string& where) {
  std::string prompt;
  char chunk[1 << 16];
  while (in.read(chunk, sizeof chunk), in.gcount() > 0) {
    prompt.append(chunk, static_cast<size_t>(in.gcount()));
    if (prompt.size() > kMostPromptBytes)
      fail({.what = text(where, " has more than ", kMostPromptBytes >> 20, " MB"),
            .needs = "a prompt that fits into the model's context",
            .hint = "give the part that is to be continued"});
  }
  if (trim(prompt).empty())
    fail({.what = text(where, " holds no text"),
          .needs = "a text that is continued",
          .hint = "echo 'Once upon a time' | sator generate MODEL --prompt -"});
  require_utf8(prompt, where);
  if (prompt.ends_with('\n')) prompt.pop_back();
  if (prompt.ends_with('\r')) prompt.pop_back();
  return prompt;
}

std::string read_prompt_file(const fs::path& file) {
  if (fs::is_directory(file))
    fail({.what = text(file.string(), " is a folder"), .needs = "a file with the text that is continued"});
  std::ifstream in(file, std::ios::binary);
  if (!in)
    fail({.what = text(file.string(), " cannot be read"),
          .needs = "a file that exists and that this user may read",
          .hint = "--prompt-file - reads standard input"});
  return read_prompt(in, file.string());
}

}  // namespace sator
