#include "engine/tokenizer/pieces.h"

#include "engine/tokenizer/unicode.h"

namespace sator {

Pattern::Pattern(Regex regex) : regex_(std::make_shared<const Regex>(std::move(regex))) {}

Pattern Pattern::inverted() const {
  Pattern other = *this;
  other.invert_ = !invert_;
  return other;
}

void Pattern::stretches(std::string_view piece, std::vector<Stretch>& out) const {
  out.clear();
  if (piece.empty()) {
    out.push_back({0, 0, invert_});
    return;
  }
  size_t last = 0;
  auto add_match = [&](size_t begin, size_t end) {
    if (begin > last) out.push_back({last, begin, invert_});
    out.push_back({begin, end, !invert_});
    last = end;
  };
  if (regex_) {
    regex_->each_match(piece, add_match);
  } else {
    for (size_t i = 0; i < piece.size();) {
      size_t begin = i;
      if (is_member_(next_char(piece, i))) add_match(begin, i);
    }
  }
  if (last < piece.size()) out.push_back({last, piece.size(), invert_});
}

/// Joins the stretches of one piece into the pieces that the behavior asks for; `is_match` then means "drop
/// it".
static void apply(SplitBehavior behavior, std::vector<Stretch>& s) {
  auto merge = [&s](auto joins) {
    size_t kept = 0;
    bool before = false;
    for (size_t i = 0; i < s.size(); ++i) {
      bool is_match = s[i].is_match;
      if (kept > 0 && joins(is_match, before))
        s[kept - 1].end = s[i].end;
      else
        s[kept++] = s[i];
      before = is_match;
    }
    s.resize(kept);
  };
  switch (behavior) {
    case SplitBehavior::removed: return;
    case SplitBehavior::isolated: break;
    case SplitBehavior::contiguous: merge([](bool is_match, bool before) { return is_match == before; }); break;
    case SplitBehavior::merged_with_previous:
      merge([](bool is_match, bool before) { return is_match && !before; });
      break;
    case SplitBehavior::merged_with_next: {
      // The mirror image: seen from the right, a match joins the stretch behind it unless that is a match
      // too.
      size_t kept = s.size();
      bool behind = false;
      for (size_t i = s.size(); i-- > 0;) {
        bool is_match = s[i].is_match;
        if (kept < s.size() && is_match && !behind)
          s[kept].begin = s[i].begin;
        else
          s[--kept] = s[i];
        behind = is_match;
      }
      s.erase(s.begin(), s.begin() + static_cast<ptrdiff_t>(kept));
      break;
    }
  }
  for (Stretch& stretch : s) stretch.is_match = false;
}

void split_pieces(Pieces& pieces, const Pattern& pattern, SplitBehavior behavior) {
  std::vector<Pieces::Piece> result;
  result.reserve(pieces.pieces.size());
  std::vector<Stretch> stretches;
  for (const Pieces::Piece& piece : pieces.pieces) {
    pattern.stretches(pieces.view(piece), stretches);
    apply(behavior, stretches);
    for (const Stretch& s : stretches)
      if (!s.is_match && s.end > s.begin)
        result.push_back({piece.begin + s.begin, piece.begin + s.end, piece.at_start && s.begin == 0});
  }
  pieces.pieces = std::move(result);
}

void rewrite_pieces(Pieces& pieces, const std::function<void(std::string_view, bool, std::string&)>& rewrite) {
  std::string out;
  out.reserve(pieces.text.size() + pieces.text.size() / 2);
  size_t kept = 0;
  for (const Pieces::Piece& piece : pieces.pieces) {
    size_t begin = out.size();
    rewrite(pieces.view(piece), piece.at_start, out);
    if (out.size() > begin) pieces.pieces[kept++] = {begin, out.size(), piece.at_start};
  }
  pieces.pieces.resize(kept);
  pieces.text = std::move(out);
}

std::string replaced(std::string_view s, const std::vector<Stretch>& stretches, std::string_view content) {
  std::string out;
  out.reserve(s.size());
  for (const Stretch& stretch : stretches)
    if (!s.empty()) out += stretch.is_match ? content : s.substr(stretch.begin, stretch.end - stretch.begin);
  return out;
}

std::string replaced(std::string_view s, const Pattern& pattern, std::string_view content) {
  std::vector<Stretch> stretches;
  pattern.stretches(s, stretches);
  return replaced(s, stretches, content);
}

}  // namespace sator
