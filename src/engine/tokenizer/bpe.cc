#include "engine/tokenizer/bpe.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <queue>

#include "base/error.h"
#include "base/interrupt.h"
#include "engine/tokenizer/unicode.h"

namespace sator {

namespace {

constexpr size_t kSmallChars = 0x250;
/// Up to this many symbols a scan over all pairs beats the queue.
constexpr size_t kShort = 24;

}  // namespace

std::shared_ptr<const TokenModel> Bpe::read(const JsonAt& at) {
  if (auto dropout = at.find("dropout"); dropout && dropout->number() != 0)
    dropout->fail(text("is ", dropout->number(), ": merges would be left out at random"), "null or 0");
  auto bpe = std::make_shared<Bpe>();
  bpe->prefix_ = at.string_or("continuing_subword_prefix", "");
  bpe->suffix_ = at.string_or("end_of_word_suffix", "");
  bpe->fuse_unknown_ = at.boolean_or("fuse_unk", false);
  bpe->ignore_merges_ = at.boolean_or("ignore_merges", false);
  bpe->vocabulary_ = Vocabulary::read(at.at("vocab"));
  bpe->read_merges(at.at("merges"));
  if (auto unknown = at.find("unk_token")) {
    bpe->unknown_ = bpe->id_of(unknown->string());
    if (!bpe->unknown_)
      unknown->fail(text("is ", string_literal(unknown->string()), ", which is not in the vocabulary"),
                    "a token of the vocabulary");
  }
  if (at.boolean_or("byte_fallback", false)) bpe->byte_ids_ = byte_token_ids(bpe->vocabulary_);
  bpe->finish();
  return bpe;
}

std::shared_ptr<const TokenModel> Bpe::of_ranks(const std::vector<std::pair<std::string, int32_t>>& ranks) {
  auto bpe = std::make_shared<Bpe>();
  TextMap<int32_t> ids;
  ids.reserve(ranks.size());
  bpe->vocabulary_.reserve(ranks.size());
  for (const auto& [bytes, rank] : ranks) {
    ids.emplace(bytes, rank);
    std::string token;
    for (char c : bytes) append_char(token, byte_alphabet().char_of[static_cast<unsigned char>(c)]);
    bpe->vocabulary_.add(token, rank);
  }
  bpe->merges_ = PairMap<Merge>(2 * ranks.size());
  for (const auto& [bytes, rank] : ranks)
    for (size_t cut = 1; cut < bytes.size(); ++cut) {
      const auto left = ids.find(std::string_view(bytes).substr(0, cut));
      const auto right = ids.find(std::string_view(bytes).substr(cut));
      if (left == ids.end() || right == ids.end()) continue;
      bpe->merges_(static_cast<uint32_t>(left->second), static_cast<uint32_t>(right->second)) = {
          static_cast<uint32_t>(rank), rank};
    }
  bpe->ignore_merges_ = true;
  bpe->finish();
  return bpe;
}

void Bpe::finish() {
  small_chars_.assign(kSmallChars, -1);
  for (size_t c = 0; c < kSmallChars; ++c) {
    std::string token;
    append_char(token, static_cast<char32_t>(c));
    small_chars_[c] = id_of(token).value_or(-1);
  }
}

void Bpe::add_merge(const JsonAt& merges, size_t rank, std::string_view left, std::string_view right) {
  auto bad = [&](std::string_view why) {
    merges.fail(text("[",
                     rank,
                     "] joins ",
                     string_literal(left.substr(0, 60)),
                     " and ",
                     string_literal(right.substr(0, 60)),
                     ": ",
                     why),
                "two tokens of the vocabulary whose joint is one too");
  };
  auto a = id_of(left), b = id_of(right);
  if (!a || !b) bad("one of them is not in the vocabulary");
  if (right.size() < prefix_.size()) bad("the right one lacks the prefix of subwords");
  auto joined = id_of(text(left, right.substr(prefix_.size())));
  if (!joined) bad("the joint is not in the vocabulary");
  if (!left.empty() && !right.empty()) {
    size_t last = left.size() - 1, first = 0;
    while (last > 0 && (static_cast<unsigned char>(left[last]) & 0xc0) == 0x80) --last;
    char32_t from = next_char(left, last), to = next_char(right, first);
    joints_(from, to) = 1;
  }
  merges_(static_cast<uint32_t>(*a), static_cast<uint32_t>(*b)) = {static_cast<uint32_t>(rank), *joined};
}

void Bpe::read_merges(const JsonAt& merges) {
  if (!merges.is_array()) merges.fail("is no array", "an array of merges");
  const Json& list = merges.json();
  merges_ = PairMap<Merge>(list.size());
  size_t rank = 0;
  for (const Json& merge : list) {
    if (merge.is_string()) {
      const auto& line = merge.get_ref<const std::string&>();
      if (line.starts_with("#version")) continue;
      size_t space = line.find(' ');
      if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos)
        merges.fail(text("[", rank, "] is ", string_literal(line.substr(0, 60))),
                    "two tokens with one space between them");
      add_merge(merges, rank, std::string_view(line).substr(0, space), std::string_view(line).substr(space + 1));
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      add_merge(merges, rank, merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>());
    } else {
      merges.fail(text("[", rank, "] is ", merge.dump().substr(0, 60)), "\"left right\" or [\"left\", \"right\"]");
    }
    ++rank;
  }
}

int32_t Bpe::id_of_char(std::string_view c, bool first, bool last) const {
  bool bare = (first || prefix_.empty()) && (!last || suffix_.empty());
  if (!bare) return id_of(text(first ? "" : prefix_, c, last ? suffix_ : "")).value_or(-1);
  size_t i = 0;
  if (char32_t code = next_char(c, i); code < kSmallChars) return small_chars_[code];
  return id_of(c).value_or(-1);
}

void Bpe::symbols_of(std::string_view piece, Symbols& symbols) const {
  bool pending_unknown = false;
  auto flush = [&] {
    if (pending_unknown) symbols.push_back(*unknown_);
    pending_unknown = false;
  };
  for (size_t i = 0; i < piece.size();) {
    size_t begin = i, length = char_bytes(piece[i]);
    i += length;
    std::string_view c = piece.substr(begin, length);
    bool first = begin == 0, last = i == piece.size();
    if (int32_t id = id_of_char(c, first, last); id >= 0) {
      flush();
      symbols.push_back(id);
      continue;
    }
    if (!byte_ids_.empty()) {
      // With affixes the fallback spells them too, as the reference does.
      std::string spelled =
          prefix_.empty() && suffix_.empty() ? std::string(c) : text(first ? "" : prefix_, c, last ? suffix_ : "");
      bool complete = std::all_of(
          spelled.begin(), spelled.end(), [&](char b) { return byte_ids_[static_cast<unsigned char>(b)] >= 0; });
      if (complete) {
        // An unknown token that is still pending comes behind these bytes: the reference's order.
        for (char b : spelled) symbols.push_back(byte_ids_[static_cast<unsigned char>(b)]);
        continue;
      }
    }
    if (!unknown_) continue;
    if (!fuse_unknown_) flush();
    pending_unknown = true;
  }
  flush();
}

void Bpe::encode(std::string_view piece, std::vector<int32_t>& out) const {
  if (piece.empty()) return;
  if (ignore_merges_)
    if (auto id = id_of(piece)) {
      out.push_back(*id);
      return;
    }
  Symbols symbols;
  symbols.reserve(piece.size());
  symbols_of(piece, symbols);
  symbols.size() <= kShort ? merge_short(symbols) : merge_long(symbols);
  out.insert(out.end(), symbols.begin(), symbols.end());
}

void Bpe::each_part(std::string_view piece, const std::function<void(std::string_view)>& visit) const {
  // Affixes depend on the place in the piece, and a piece that is a token may bypass the merges.
  if (ignore_merges_ || !prefix_.empty() || !suffix_.empty()) return visit(piece);
  size_t begin = 0;
  char32_t before = 0;
  bool before_is_token = false;  // unknown characters are not cut off: they may be fused, or be several byte tokens
  for (size_t i = 0; i < piece.size();) {
    size_t at = i;
    char32_t c = next_char(piece, i);
    bool is_token = id_of_char(piece.substr(at, i - at), true, true) >= 0;
    if (is_token && before_is_token && !joints_.find(before, c)) {
      visit(piece.substr(begin, at - begin));
      begin = at;
    }
    before = c, before_is_token = is_token;
  }
  visit(piece.substr(begin));
}

void Bpe::merge_short(Symbols& s) const {
  constexpr uint32_t kNone = UINT32_MAX;
  Merge pairs[kShort];  // pairs[i]: the merge of s[i] and s[i + 1]
  auto look = [&](size_t i) {
    const Merge* m = merge_of(s[i], s[i + 1]);
    pairs[i] = m ? *m : Merge{kNone, 0};
  };
  size_t n = s.size();
  for (size_t i = 0; i + 1 < n; ++i) look(i);
  while (n > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < n; ++i)
      if (pairs[i].rank < pairs[best].rank) best = i;
    if (pairs[best].rank == kNone) break;
    s[best] = pairs[best].id;
    for (size_t i = best + 1; i + 1 < n; ++i) s[i] = s[i + 1], pairs[i] = pairs[i + 1];
    --n;
    if (best + 1 < n) look(best);
    if (best > 0) look(best - 1);
  }
  s.resize(n);
}

void Bpe::merge_long(Symbols& s) const {
  // Symbols form a list; a merged pair keeps the left place, the right one dies. The queue holds candidates,
  // the lowest rank first and of equal ranks the leftmost; one whose pair has changed since is dropped when
  // it comes up.
  struct Candidate {
    uint32_t rank, place;
    int32_t left, right;
    bool operator<(const Candidate& o) const { return std::pair(rank, place) > std::pair(o.rank, o.place); }
  };
  constexpr uint32_t kEnd = UINT32_MAX;
  auto n = static_cast<uint32_t>(s.size());
  std::vector<uint32_t> before(n), behind(n);
  for (uint32_t i = 0; i < n; ++i) before[i] = i == 0 ? kEnd : i - 1, behind[i] = i + 1 == n ? kEnd : i + 1;
  std::vector<Candidate> candidates;
  candidates.reserve(n);
  auto candidate = [&](uint32_t i) -> std::optional<Candidate> {
    const Merge* m = merge_of(s[i], s[behind[i]]);
    if (!m) return {};
    return Candidate{m->rank, i, s[i], s[behind[i]]};
  };
  for (uint32_t i = 0; i + 1 < n; ++i)
    if (auto c = candidate(i)) candidates.push_back(*c);
  std::priority_queue<Candidate> queue(std::less<Candidate>(), std::move(candidates));
  constexpr int32_t kDead = -1;
  RareInterruptCheck check;
  while (!queue.empty()) {
    check();
    Candidate top = queue.top();
    queue.pop();
    uint32_t i = top.place;
    if (s[i] != top.left || behind[i] == kEnd || s[behind[i]] != top.right) continue;
    uint32_t j = behind[i];
    s[i] = merge_of(top.left, top.right)->id;
    s[j] = kDead;
    behind[i] = behind[j];
    if (behind[i] != kEnd) {
      before[behind[i]] = i;
      if (auto c = candidate(i)) queue.push(*c);
    }
    if (before[i] != kEnd)
      if (auto c = candidate(before[i])) queue.push(*c);
  }
  std::erase(s, kDead);
}

}  // namespace sator
