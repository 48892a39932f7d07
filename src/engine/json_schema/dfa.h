// Deterministic automata over bytes: what a string's text or a number may be.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sator::json_schema {

/// State 0 is dead: no text leads on from it, and every state from which none does is state 0 (prune).
struct Dfa {
  static constexpr int32_t kDead = 0;
  using Row = std::array<int32_t, 256>;
  std::vector<Row> next = {Row{}};
  std::vector<char> accepts = {0};
  int32_t start = kDead;

  int32_t add_state(bool accepting) {
    next.push_back(Row{});
    accepts.push_back(accepting);
    return static_cast<int32_t>(next.size()) - 1;
  }
  int32_t size() const { return static_cast<int32_t>(next.size()); }
  int32_t step(int32_t state, unsigned char byte) const { return next[static_cast<size_t>(state)][byte]; }
  bool accepting(int32_t state) const { return accepts[static_cast<size_t>(state)] != 0; }
  bool is_empty() const { return start == kDead; }
  bool contains(std::string_view text) const;
};

/// Automata larger than this are refused by name.
inline constexpr int32_t kMostStates = 20000;

/// The same language without states that lead nowhere.
Dfa pruned(const Dfa& d);

/// Texts that are UTF-8, of `least` to `most` characters (-1: any number). Surrogates are no characters.
Dfa utf8_texts(int64_t least = 0, int64_t most = -1);

/// Both run at once; `accepts` says which pairs of verdicts accept. A dead half goes on as state 0.
/// Errors: more than kMostStates states; `what` names the schema's part in it.
Dfa product(const Dfa& a, const Dfa& b, const std::function<bool(bool, bool)>& accepts, const std::string& what);
Dfa intersection(const Dfa& a, const Dfa& b, const std::string& what);
/// The texts of UTF-8 that `d` does not have.
Dfa complement(const Dfa& d, const std::string& what);
/// One text.
Dfa only(std::string_view text);

/// Bytes of one as it is written in a string of JSON: 2 of a quote, 6 of most control characters.
int64_t written_bytes(unsigned char byte);
/// How many written bytes at least lead from each state to an accepting one; -1 where none do.
std::vector<int64_t> distances(const Dfa& d);
/// The same, where a text that ends at a state costs so many bytes more; -1: none ends there.
std::vector<int64_t> distances(const Dfa& d, const std::vector<int64_t>& ends);
/// One of the shortest texts that lead from a state to an accepting one.
std::string shortest_from(const Dfa& d, const std::vector<int64_t>& distance, int32_t state);
/// How many texts lead from each state to an accepting one; kInfinite: more than any number.
inline constexpr int64_t kInfinite = INT64_MAX;
std::vector<int64_t> text_counts(const Dfa& d);
bool is_infinite(const Dfa& d);
/// All texts of a finite language without dead ends, where there are at most `most`; nothing where there are more.
std::optional<std::vector<std::string>> texts_of(const Dfa& d, size_t most);

}  // namespace sator::json_schema
