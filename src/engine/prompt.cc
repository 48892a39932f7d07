#include "engine/prompt.h"

#include <fstream>
#include <istream>

#include "base/error.h"
#include "engine/tokenizer/unicode.h"

namespace sator {

std::string read_text(std::istream& in, const std::string& where, const std::string& what, const char* hint) {
  std::string all;
  char chunk[1 << 16];
  while (in.read(chunk, sizeof chunk), in.gcount() > 0) {
    all.append(chunk, static_cast<size_t>(in.gcount()));
    if (all.size() > kMostTextBytes)
      fail({.what = text(where, " has more than ", kMostTextBytes >> 20, " MB"), .needs = what});
  }
  if (trim(all).empty()) fail({.what = text(where, " holds no text"), .needs = what, .hint = hint});
  require_utf8(all, where);
  return all;
}

std::string read_text_file(const fs::path& file, const std::string& what) {
  if (fs::is_directory(file)) fail({.what = text(file.string(), " is a folder"), .needs = text("a file with ", what)});
  std::ifstream in(file, std::ios::binary);
  if (!in)
    fail({.what = text(file.string(), " cannot be read"), .needs = "a file that exists and that this user may read"});
  return read_text(in, file.string(), what, "");
}

static const char* const kContinued = "a text that is continued";

static std::string without_line_end(std::string prompt) {
  if (prompt.ends_with('\n')) prompt.pop_back();
  if (prompt.ends_with('\r')) prompt.pop_back();
  return prompt;
}

std::string read_prompt(std::istream& in, const std::string& where) {
  return without_line_end(
      read_text(in, where, kContinued, "echo 'Once upon a time' | sator generate MODEL --prompt -"));
}

std::string read_prompt_file(const fs::path& file) { return without_line_end(read_text_file(file, kContinued)); }

}  // namespace sator
