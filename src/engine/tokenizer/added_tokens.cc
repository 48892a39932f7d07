#include "engine/tokenizer/added_tokens.h"

#include <algorithm>

#include "base/error.h"
#include "engine/tokenizer/unicode.h"

namespace sator {

// The search looks this far ahead at each place of a text; the longest token in use has a few hundred bytes.
static constexpr size_t kMaxContentBytes = 4096;

void AddedTokens::add(const AddedToken& token, const Vocabulary& model) {
  if (token.content.empty()) return;
  if (token.content.size() > kMaxContentBytes)
    fail({.what = text("an added token has ",
                       token.content.size(),
                       " bytes: ",
                       string_literal(token.content.substr(0, 40)),
                       "..."),
          .needs = text("at most ", kMaxContentBytes, " bytes")});
  std::optional<int32_t> id = id_of(token.content);
  if (!id) {
    id = model.id_of(token.content);
    if (!id && token.id >= 0) {
      if (model.token_of(token.id) || find(token.id))
        fail({.what = text(
                  "the added token ", string_literal(token.content), " has the id ", token.id, " of another token"),
              .needs = "ids of their own"});
      id = token.id;
      ++beyond_model_;
    } else if (!id) {
      auto model_size = static_cast<int32_t>(model.size());
      id = highest_ >= model_size || model_size == 0 ? highest_ + 1 : model_size;
      ++beyond_model_;
    }
    ids_.emplace(token.content, *id);
    order_.push_back(*id);
  }
  tokens_[*id] = token;
  highest_ = std::max(highest_, *id);
}

void AddedTokens::finish(const Normalizer& normalize) {
  // Of two whose normalized contents are equal the first is found; special tokens go first.
  for (bool special : {true, false})
    for (int32_t id : order_) {
      AddedToken& token = tokens_.at(id);
      if (token.special != special) continue;
      token.shown = token.content;
      if (token.normalized && normalize) {
        NormalText normal{token.content};
        normalize(normal);
        token.shown = std::move(normal.text);
      }
      (token.normalized ? normalized_ : raw_).add(token.shown, id);
    }
}

std::optional<int32_t> AddedTokens::id_of(std::string_view content) const {
  auto found = ids_.find(content);
  if (found == ids_.end()) return {};
  return found->second;
}

const AddedToken* AddedTokens::find(int32_t id) const {
  auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : &found->second;
}

bool AddedTokens::is_special(int32_t id) const {
  const AddedToken* token = find(id);
  if (!token) return false;
  auto named = id_of(token->shown);
  return named && tokens_.at(*named).special;
}

/// The begin of the character that ends at `end`.
static size_t char_before(std::string_view s, size_t end) {
  do --end;
  while (end > 0 && (static_cast<unsigned char>(s[end]) & 0xc0) == 0x80);
  return end;
}

static bool word_ends_at(std::string_view s, size_t end) {
  if (end == 0) return false;
  size_t i = char_before(s, end);
  return is_word(next_char(s, i));
}

static bool word_begins_at(std::string_view s, size_t i) { return i < s.size() && is_word(next_char(s, i)); }

void AddedTokens::split(const ByteTrie& trie, std::string_view s, std::vector<TokenSplit>& out) const {
  out.clear();
  size_t done = 0;  // the end of what is already in `out`
  auto add_text = [&](size_t begin, size_t end) {
    if (begin < end) out.push_back({s.substr(begin, end - begin), -1, begin});
  };
  for (size_t i = 0; !trie.empty() && i < s.size();) {
    if (!trie.may_begin(s[i])) {
      ++i;
      continue;
    }
    size_t begin = i, end = i;
    int32_t id = -1;
    trie.prefixes(s.substr(i), [&](size_t length, int32_t found) { id = found, end = begin + length; });
    if (id < 0) {
      ++i;
      continue;
    }
    i = end;  // matches do not overlap, whatever becomes of this one
    const AddedToken& token = tokens_.at(id);
    if (token.single_word && (word_ends_at(s, begin) || word_begins_at(s, end))) continue;
    if (token.lstrip) {
      begin = std::max(begin, done);  // a token before it may have taken the same whitespace
      while (begin > done) {
        size_t before = char_before(s, begin), at = before;
        if (before < done || !is_white_space(next_char(s, at))) break;
        begin = before;
      }
    }
    if (token.rstrip) {
      while (end < s.size()) {
        size_t behind = end;
        if (!is_white_space(next_char(s, behind))) break;
        end = behind;
      }
    }
    if (begin >= end) continue;
    add_text(done, begin);
    out.push_back({s.substr(begin, end - begin), id, begin});
    done = end;
  }
  add_text(done, s.size());
}

}  // namespace sator
