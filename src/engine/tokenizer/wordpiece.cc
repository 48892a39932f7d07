#include "engine/tokenizer/wordpiece.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "engine/tokenizer/unicode.h"

namespace sator {

namespace {

int32_t unknown_id(const Vocabulary& vocabulary, const std::string& unknown, std::string_view word) {
  if (auto id = vocabulary.id_of(unknown)) return *id;
  fail({.what = text("the tokenizer has no token for ", string_literal(word.substr(0, 60))),
        .needs = text("words of the vocabulary, as it lacks ", string_literal(unknown.substr(0, 60)), " itself")});
}

}  // namespace

std::shared_ptr<const TokenModel> WordPiece::read(const JsonAt& at) {
  auto model = std::make_shared<WordPiece>();
  model->vocabulary_ = Vocabulary::read(at.at("vocab"));
  model->unknown_ = at.string_or("unk_token", "[UNK]");
  model->prefix_ = at.string_or("continuing_subword_prefix", "##");
  model->max_chars_ = static_cast<size_t>(at.integer_or("max_input_chars_per_word", 100, 0));
  for (const auto& [token, id] : at.at("vocab").json().get_ref<const Json::object_t&>())
    model->longest_ = std::max(model->longest_, token.size());
  return model;
}

bool WordPiece::encode_known(std::string_view word, std::vector<int32_t>& out) const {
  std::string buffer;
  for (size_t begin = 0; begin < word.size();) {
    // No token is longer than the longest, so a long word costs no more than its length times that.
    size_t end = begin;
    while (end < word.size() && end - begin < longest_) end += char_bytes(word[end]);
    std::optional<int32_t> id;
    while (end > begin) {
      std::string_view part = word.substr(begin, end - begin);
      if (begin > 0) part = buffer.assign(prefix_).append(part);
      if ((id = vocabulary_.id_of(part))) break;
      do --end;
      while (end > begin && (static_cast<unsigned char>(word[end]) & 0xc0) == 0x80);
    }
    if (!id) return false;
    out.push_back(*id);
    begin = end;
  }
  return true;
}

void WordPiece::encode(std::string_view word, std::vector<int32_t>& out) const {
  const auto starts_char = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; };
  const size_t before = out.size(), chars = static_cast<size_t>(std::ranges::count_if(word, starts_char));
  if (chars <= max_chars_ && encode_known(word, out)) return;
  out.resize(before);
  out.push_back(unknown_id(vocabulary_, unknown_, word));
}

std::shared_ptr<const TokenModel> WordLevel::read(const JsonAt& at) {
  auto model = std::make_shared<WordLevel>();
  model->vocabulary_ = Vocabulary::read(at.at("vocab"));
  model->unknown_ = at.string_or("unk_token", "<unk>");
  return model;
}

void WordLevel::encode(std::string_view word, std::vector<int32_t>& out) const {
  auto id = vocabulary_.id_of(word);
  out.push_back(id ? *id : unknown_id(vocabulary_, unknown_, word));
}

}  // namespace sator
