#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/regex.h"

namespace sator {

/// Normalized text on its way to the model: one buffer and the pieces it is cut into, in order, none of them
/// empty.
struct Pieces {
  struct Piece {
    size_t begin, end;
    bool at_start;  // the piece begins where the whole input began
  };
  std::string text;
  std::vector<Piece> pieces;

  Pieces(std::string s, bool at_start) : text(std::move(s)) {
    if (!text.empty()) pieces.push_back({0, text.size(), at_start});
  }
  std::string_view view(const Piece& p) const { return std::string_view(text).substr(p.begin, p.end - p.begin); }
};

/// A stretch of a piece: what a pattern matched, or what lies between two matches.
struct Stretch {
  size_t begin, end;
  bool is_match;
};

/// What becomes of the matches when a piece is cut: a piece of their own, nothing, the end of the piece
/// before them, the begin of the piece behind them, one piece with adjacent matches.
enum class SplitBehavior { isolated, removed, merged_with_previous, merged_with_next, contiguous };

/// Something to find in a piece: a regular expression, or a class of characters.
class Pattern {
 public:
  explicit Pattern(Regex regex);
  /// Each character of the class is a match by itself.
  explicit Pattern(std::function<bool(char32_t)> is_member) : is_member_(std::move(is_member)) {}
  /// The same pattern with matches and what lies between them exchanged.
  Pattern inverted() const;

  /// The piece as stretches that cover it. An empty piece is one stretch without a match.
  void stretches(std::string_view piece, std::vector<Stretch>& out) const;

 private:
  std::shared_ptr<const Regex> regex_;
  std::function<bool(char32_t)> is_member_;
  bool invert_ = false;
};

/// Cuts each piece by the pattern.
void split_pieces(Pieces& pieces, const Pattern& pattern, SplitBehavior behavior);

/// Rewrites each piece's text: `rewrite(piece, out)` appends what replaces it.
void rewrite_pieces(Pieces& pieces,
                    const std::function<void(std::string_view, bool at_start, std::string& out)>& rewrite);

/// `s` with each match replaced by `content`, literally; an empty text stays empty.
std::string replaced(std::string_view s, const Pattern& pattern, std::string_view content);
/// The same where the stretches of `s` are already known.
std::string replaced(std::string_view s, const std::vector<Stretch>& stretches, std::string_view content);

}  // namespace sator
