#include "engine/tokenizer/unigram.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "engine/tokenizer/unicode.h"

namespace sator {

namespace {
constexpr double kUnknownPenalty = 10;
}  // namespace

std::shared_ptr<const TokenModel> Unigram::read(const JsonAt& at) {
  auto model = std::make_shared<Unigram>();
  JsonAt vocab = at.at("vocab");
  if (!vocab.is_array()) vocab.fail("is no array", "[[token, score], ...]");
  // Not through JsonAt: a vocabulary has hundreds of thousands of members.
  const Json& list = vocab.json();
  if (std::ssize(list) > Vocabulary::kMaxId) vocab.fail("is too long", text("at most ", Vocabulary::kMaxId, " tokens"));
  model->vocabulary_.reserve(list.size());
  double least = HUGE_VAL;
  for (const Json& entry : list) {
    const auto id = static_cast<int32_t>(model->scores_.size());
    bool good = entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_number();
    if (!good) vocab.fail(text("[", id, "] is ", entry.dump().substr(0, 60)), "[token, score]");
    model->vocabulary_.add(entry[0].get_ref<const std::string&>(), id);
    model->scores_.push_back(entry[1].get<double>());
    least = std::min(least, model->scores_.back());
  }
  for (int32_t id = 0; id < std::ssize(list); ++id) {
    const std::string& token = *model->vocabulary_.token_of(id);
    model->trie_.add(token, *model->vocabulary_.id_of(token));
  }
  if (auto unknown = at.find("unk_id")) {
    if (list.empty()) vocab.fail("is empty", "the unknown token at least");
    model->unknown_ = static_cast<int32_t>(unknown->integer(0, std::ssize(list) - 1));
  }
  model->unknown_score_ = least - kUnknownPenalty;
  if (at.boolean_or("byte_fallback", false)) model->byte_ids_ = byte_token_ids(model->vocabulary_);
  return model;
}

std::shared_ptr<const TokenModel> Unigram::of_sentencepiece(const std::vector<Piece>& pieces, int32_t unknown,
                                                            bool byte_fallback) {
  auto model = std::make_shared<Unigram>();
  // The greatest score begins at the least positive float: that is what SentencePiece compares with.
  float least = FLT_MAX, greatest = FLT_MIN;
  for (const Piece& p : pieces)
    if (p.kind == Piece::Kind::normal) least = std::min(least, p.score), greatest = std::max(greatest, p.score);
  for (const Piece& p : pieces) {
    const auto id = static_cast<int32_t>(model->scores_.size());
    model->vocabulary_.add(p.text, id);
    const float bonus = static_cast<float>(p.text.size()) * greatest;
    model->scores_.push_back(p.kind == Piece::Kind::user_defined ? bonus - 0.1 : p.score);
    if (p.kind == Piece::Kind::normal || p.kind == Piece::Kind::user_defined) model->trie_.add(p.text, id);
  }
  model->unknown_ = unknown;
  model->unknown_score_ = least - static_cast<float>(kUnknownPenalty);
  if (byte_fallback) model->byte_ids_ = byte_token_ids(model->vocabulary_);
  model->sentencepiece_ = true;
  return model;
}

/// The best way that ends at a byte of the piece.
struct Unigram::Step {
  double score = 0;
  int64_t begin = -1;  // of the last token; -1: no way is known
  int32_t id = 0;      // of the last token
};

void Unigram::encode(std::string_view piece, std::vector<int32_t>& out) const {
  std::vector<Step> steps(piece.size() + 1);
  auto offer = [&](size_t begin, size_t end, double score, int32_t id) {
    Step& step = steps[end];
    if (step.begin < 0 || score > step.score)
      step = {sentencepiece_ ? static_cast<float>(score) : score, static_cast<int64_t>(begin), id};
  };
  RareInterruptCheck check;
  for (size_t at = 0; at < piece.size();) {
    check();
    const size_t length = char_bytes(piece[at]);
    const double before = steps[at].score;
    bool known = false;  // one token is this character
    trie_.prefixes(piece.substr(at), [&](size_t n, int32_t id) {
      offer(at, at + n, scores_[static_cast<size_t>(id)] + before, id);
      known |= n == length;
    });
    if (!known) {
      if (!unknown_)
        fail({.what = text("the tokenizer has no token for ", string_literal(piece.substr(at, length))),
              .needs = "text of the vocabulary's characters, as it has no unknown token"});
      const double score = unknown_score_ + before;
      offer(at, at + length, sentencepiece_ ? static_cast<float>(score) : score, *unknown_);
    }
    at += length;
  }

  std::vector<std::pair<size_t, int32_t>> path;  // begin and id of each token, the last first
  for (size_t end = piece.size(); end > 0; end = path.back().first)
    path.emplace_back(static_cast<size_t>(steps[end].begin), steps[end].id);
  for (size_t k = path.size(); k-- > 0;) {
    const size_t begin = path[k].first;
    if (!unknown_ || path[k].second != *unknown_) {
      out.push_back(path[k].second);
      continue;
    }
    while (k > 0 && path[k - 1].second == *unknown_) --k;  // neighbours that are unknown become one token
    const size_t end = k > 0 ? path[k - 1].first : piece.size();
    add_unknown(piece.substr(begin, end - begin), out);
  }
}

void Unigram::add_unknown(std::string_view text, std::vector<int32_t>& out) const {
  // In `tokenizers` unknown neighbours together may be a token again.
  if (auto id = sentencepiece_ ? std::nullopt : vocabulary_.id_of(text)) return out.push_back(*id);
  auto id_of = [&](char b) { return byte_ids_[static_cast<unsigned char>(b)]; };
  if (!byte_ids_.empty() && std::ranges::all_of(text, [&](char b) { return id_of(b) >= 0; })) {
    for (char b : text) out.push_back(id_of(b));
    return;
  }
  out.push_back(*unknown_);
}

}  // namespace sator
