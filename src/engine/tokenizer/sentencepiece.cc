// What SentencePiece does with a text, by its own files. Source: google/sentencepiece, src/normalizer.cc,
// src/bpe_model.cc and src/sentencepiece_processor.cc, whose results these functions give.
#include "engine/tokenizer/sentencepiece.h"

#include <algorithm>
#include <queue>
#include <unordered_set>

#include "base/error.h"
#include "base/text.h"
#include "engine/tokenizer/unicode.h"

namespace sator {

namespace {

using File = SentencePieceFile;

constexpr std::string_view kWordMark = "\u2581";

/// The user-defined pieces, which nothing changes or divides.
std::shared_ptr<const ByteTrie> user_defined_of(const File& file) {
  auto trie = std::make_shared<ByteTrie>();
  for (size_t k = 0; k < file.pieces.size(); ++k)
    if (file.pieces[k].type == File::Type::user_defined) trie->add(file.pieces[k].text, static_cast<int32_t>(k));
  return trie;
}

/// Byte-pair encoding by scores: of all neighbours whose joint is a piece those with the best score are joined first,
/// of equal ones the leftmost; joints that are unused come apart again at the end.
class ScoredBpe final : public TokenModel {
 public:
  explicit ScoredBpe(const File& file) : user_defined_(user_defined_of(file)), unknown_(file.unknown) {
    for (const File::Piece& p : file.pieces) {
      const auto id = static_cast<int32_t>(pieces_.size());
      vocabulary_.add(p.text, id);
      const bool joins =
          p.type == File::Type::normal || p.type == File::Type::user_defined || p.type == File::Type::unused;
      pieces_.push_back({p.score, joins, p.type == File::Type::unused});
    }
    if (file.byte_fallback) byte_ids_ = byte_token_ids(vocabulary_);
  }

  void encode(std::string_view piece, std::vector<int32_t>& out) const override;

 private:
  struct PieceInfo {
    float score;
    bool joins, unused;
  };
  struct Symbol {
    size_t begin, length;  // length 0: it has become a part of another
    int64_t before, behind;
    bool fixed;
  };
  struct Joint {
    float score;
    int64_t left, right;
    size_t length;
    bool operator<(const Joint& o) const { return score < o.score || (score == o.score && left > o.left); }
  };
  using Parts = std::unordered_map<std::string_view, std::pair<std::string_view, std::string_view>>;

  std::vector<Symbol> symbols_of(std::string_view piece) const;
  void resegment(std::string_view s, const Parts& parts, std::vector<int32_t>& out, bool& unknown_before) const;

  std::shared_ptr<const ByteTrie> user_defined_;
  int32_t unknown_;
  std::vector<PieceInfo> pieces_;
  std::vector<int32_t> byte_ids_;
};

std::vector<ScoredBpe::Symbol> ScoredBpe::symbols_of(std::string_view piece) const {
  std::vector<Symbol> symbols;
  for (size_t at = 0; at < piece.size();) {
    const size_t fixed = user_defined_->longest(piece.substr(at)), length = fixed > 0 ? fixed : char_bytes(piece[at]);
    const auto k = std::ssize(symbols);
    symbols.push_back({at, length, k - 1, at + length < piece.size() ? k + 1 : -1, fixed > 0});
    at += length;
  }
  return symbols;
}

void ScoredBpe::encode(std::string_view piece, std::vector<int32_t>& out) const {
  std::vector<Symbol> symbols = symbols_of(piece);
  std::priority_queue<Joint> queue;
  Parts parts;  // of unused pieces: what they were joined from last
  auto at = [&](int64_t k) -> Symbol& { return symbols[static_cast<size_t>(k)]; };
  auto view = [&](int64_t k) { return piece.substr(at(k).begin, at(k).length); };
  auto offer = [&](int64_t left, int64_t right) {
    if (left < 0 || right < 0 || at(left).fixed || at(right).fixed) return;
    const std::string_view joint = piece.substr(at(left).begin, at(left).length + at(right).length);
    auto id = vocabulary_.id_of(joint);
    if (!id || !pieces_[static_cast<size_t>(*id)].joins) return;
    const PieceInfo& info = pieces_[static_cast<size_t>(*id)];
    queue.push({info.score, left, right, joint.size()});
    if (info.unused) parts[joint] = {view(left), view(right)};
  };
  for (int64_t k = 1; k < std::ssize(symbols); ++k) offer(k - 1, k);
  while (!queue.empty()) {
    const Joint top = queue.top();
    queue.pop();
    Symbol &left = at(top.left), &right = at(top.right);
    if (left.length == 0 || right.length == 0 || left.length + right.length != top.length) continue;
    left.length += right.length;
    left.behind = right.behind;
    if (right.behind >= 0) at(right.behind).before = top.left;
    right.length = 0;
    offer(left.before, top.left);
    offer(top.left, left.behind);
  }
  bool unknown_before = false;
  for (int64_t k = symbols.empty() ? -1 : 0; k >= 0; k = at(k).behind) resegment(view(k), parts, out, unknown_before);
}

void ScoredBpe::resegment(std::string_view s, const Parts& parts, std::vector<int32_t>& out,
                          bool& unknown_before) const {
  std::vector<std::string_view> open = {s};
  while (!open.empty()) {
    const std::string_view part = open.back();
    open.pop_back();
    const std::optional<int32_t> id = vocabulary_.id_of(part);
    if (id && pieces_[static_cast<size_t>(*id)].unused)
      if (auto joined = parts.find(part); joined != parts.end()) {
        open.push_back(joined->second.second);
        open.push_back(joined->second.first);
        continue;
      }
    const bool unknown = !id || *id == unknown_;
    if (!unknown)
      out.push_back(*id);
    else if (!byte_ids_.empty())
      for (char b : part) out.push_back(byte_ids_[static_cast<unsigned char>(b)]);
    else if (!unknown_before)
      out.push_back(unknown_);
    unknown_before = unknown;
  }
}

/// One step of the normalizer: how many bytes of `s` go, and what comes in their place.
struct Prefix {
  std::string_view text;
  size_t length;
};

Prefix normalized_prefix(const Charsmap& map, const ByteTrie& user_defined, std::string_view s) {
  if (size_t fixed = user_defined.longest(s)) return {s.substr(0, fixed), fixed};
  if (auto match = map.longest(s)) return {match->text, match->length};
  const size_t length = char_bytes(s[0]);
  return {s.substr(0, length), length};
}

/// Bytes as text: each character of well-formed UTF-8, and U+FFFD for each byte that is none.
std::string text_of_bytes(std::string_view bytes) {
  std::string out;
  for (size_t i = 0; i < bytes.size();) {
    const size_t length = std::min(char_bytes(bytes[i]), bytes.size() - i);
    const bool good = is_valid_utf8(bytes.substr(i, length));
    out += good ? bytes.substr(i, length) : "\xef\xbf\xbd";
    i += good ? length : 1;
  }
  return out;
}

std::string with_spaces(std::string_view piece) {
  std::string out;
  for (size_t i = 0; i < piece.size();) {
    const bool mark = piece.substr(i).starts_with(kWordMark);
    out += mark ? ' ' : piece[i];
    i += mark ? kWordMark.size() : 1;
  }
  return out;
}

}  // namespace

std::shared_ptr<const TokenModel> model_of(const SentencePieceFile& file) {
  if (file.algorithm == File::Algorithm::bpe) return std::make_shared<ScoredBpe>(file);
  using Kind = Unigram::Piece::Kind;
  std::vector<Unigram::Piece> pieces;
  for (const File::Piece& p : file.pieces)
    pieces.push_back({p.text,
                      p.score,
                      p.type == File::Type::normal         ? Kind::normal
                      : p.type == File::Type::user_defined ? Kind::user_defined
                      : p.type == File::Type::unused       ? Kind::unused
                                                           : Kind::reserved});
  return Unigram::of_sentencepiece(pieces, file.unknown, file.byte_fallback);
}

Normalizer normalizer_of(const SentencePieceFile& file, bool prefix_inside) {
  const std::string space = file.escape_whitespaces ? std::string(kWordMark) : " ";
  return [=,
          map = file.charsmap,
          user_defined = user_defined_of(file),
          collapse = file.remove_extra_whitespaces,
          prefix = file.add_dummy_prefix,
          suffix = file.whitespace_as_suffix](NormalText& s) {
    std::string_view in = s.text;
    std::string out;
    auto step = [&] { return normalized_prefix(map, *user_defined, in); };
    while (collapse && !in.empty() && step().text == " ") in.remove_prefix(step().length);
    const bool dummy = prefix && !in.empty() && (prefix_inside || s.at_start);
    if (dummy && !suffix) out += space;
    for (bool space_before = collapse; !in.empty();) {
      auto [part, length] = step();
      while (space_before && part.starts_with(' ')) part.remove_prefix(1);
      for (char c : part) c == ' ' ? out += space : out += c;
      if (!part.empty()) space_before = collapse && part.ends_with(' ');
      in.remove_prefix(length);
    }
    while (collapse && out.ends_with(space)) out.resize(out.size() - space.size());
    if (dummy && suffix) out += space;
    s.text = std::move(out);
  };
}

Decoder decoder_of(const SentencePieceFile& file, const std::vector<std::string>& shown) {
  std::unordered_map<std::string, int> bytes;
  for (int b = 0; file.byte_fallback && b < 256; ++b) bytes.emplace(byte_token(b), b);
  std::unordered_set<std::string> control;
  for (const File::Piece& p : file.pieces)
    if (p.type == File::Type::control && std::ranges::find(shown, p.text) == shown.end()) control.insert(p.text);
  return [=,
          unknown = file.pieces[static_cast<size_t>(file.unknown)].text,
          surface = file.unknown_surface,
          strips = file.add_dummy_prefix || file.remove_extra_whitespaces,
          strips_all = file.remove_extra_whitespaces](std::vector<std::string>& tokens) {
    std::string out, run;
    auto flush = [&] {
      out += text_of_bytes(run);
      run.clear();
    };
    bool at_begin = true, stripped = false;
    for (const std::string& token : tokens) {
      if (auto byte = bytes.find(token); byte != bytes.end()) {
        run += static_cast<char>(byte->second);
        continue;
      }
      flush();
      if (stripped || !out.empty()) at_begin = false;
      stripped = false;
      if (control.contains(token)) continue;
      if (token == unknown) {
        out += surface;
        continue;
      }
      std::string_view piece = token;
      if (at_begin && strips && piece.starts_with(kWordMark)) {
        piece.remove_prefix(kWordMark.size());
        stripped = !strips_all;
      }
      out += with_spaces(piece);
    }
    flush();
    tokens.assign(1, out);
  };
}

}  // namespace sator
