#include "engine/json_schema/pattern.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "engine/json_schema/pattern_syntax.h"
#include "engine/tokenizer/unicode.h"

namespace sator::json_schema {

namespace {

/// A nondeterministic automaton over bytes. Thompson's: every state has one kind of way on.
struct Nfa {
  enum class Kind { byte, split, begin, end, match };
  struct State {
    Kind kind;
    int32_t out = -1, other = -1;  // other: of split
    unsigned char low = 0, high = 0;
  };
  std::vector<State> states;
  const std::string& where;

  int32_t add(State s) {
    constexpr size_t kMost = 200'000;
    if (states.size() > kMost)
      fail({.what = text(where, ": the pattern makes an automaton of more than ", kMost, " states"),
            .needs = "fewer characters, each of them counted as often as it is repeated",
            .hint = "take smaller counts"});
    states.push_back(s);
    return static_cast<int32_t>(states.size()) - 1;
  }

  /// A state from which the expression leads to `to`. Built from the end, so that nothing has to be patched.
  int32_t lead(const Regular& r, int32_t to) {
    switch (r.kind) {
      case Regular::Kind::begin: return add({.kind = Kind::begin, .out = to});
      case Regular::Kind::end: return add({.kind = Kind::end, .out = to});
      case Regular::Kind::chars: return lead_chars(r.chars, to);
      case Regular::Kind::sequence:
        for (size_t i = r.parts.size(); i-- > 0;) to = lead(r.parts[i], to);
        return to;
      case Regular::Kind::choice: {
        int32_t at = lead(r.parts.back(), to);
        for (size_t i = r.parts.size() - 1; i-- > 0;)
          at = add({.kind = Kind::split, .out = lead(r.parts[i], to), .other = at});
        return at;
      }
      case Regular::Kind::repeat: return lead_repeat(r, to);
    }
    internal_error("a regular expression of no kind");
  }

  int32_t lead_repeat(const Regular& r, int32_t to) {
    int32_t at = to;
    if (r.most < 0) {
      const int32_t loop = add({.kind = Kind::split, .other = to});
      const int32_t body = lead(r.parts[0], loop);
      states[static_cast<size_t>(loop)].out = body;
      at = loop;
    }
    // A part that reads nothing leads to where it begins: more of them are no more.
    for (int64_t i = r.least; i < r.most; ++i) {
      const int32_t part = lead(r.parts[0], at);
      if (part == at) break;
      at = add({.kind = Kind::split, .out = part, .other = to});
    }
    for (int64_t i = 0; i < r.least; ++i)
      if (const int32_t part = lead(r.parts[0], at); std::exchange(at, part) == part) break;
    return at;
  }

  int32_t lead_chars(const CharRanges& ranges, int32_t to) {
    int32_t at = -1;
    for (const auto& [low, high] : ranges) lead_range(low, high, to, at);
    return at < 0 ? add({.kind = Kind::byte, .out = to, .low = 1, .high = 0}) : at;  // an empty class leads nowhere
  }
  /// Adds the byte sequences of a range, which is cut where lengths or leading bytes change.
  void lead_range(char32_t low, char32_t high, int32_t to, int32_t& at) {
    for (char32_t last : {char32_t{0x7f}, char32_t{0x7ff}, char32_t{0xd7ff}, char32_t{0xffff}})
      if (low <= last && high > last) {
        lead_range(low, last, to, at);
        return lead_range(last == 0xd7ff ? std::max<char32_t>(last + 1, 0xe000) : last + 1, high, to, at);
      }
    if (low > high || (low >= 0xd800 && high <= 0xdfff)) return;
    for (int bits = 6; bits <= 18; bits += 6) {
      const char32_t mask = (char32_t{1} << bits) - 1;
      if (high < 0x80 || (low & ~mask) == (high & ~mask)) continue;
      if ((low & mask) != 0) {
        lead_range(low, low | mask, to, at);
        return lead_range((low | mask) + 1, high, to, at);
      }
      if ((high & mask) != mask) {
        lead_range(low, (high & ~mask) - 1, to, at);
        return lead_range(high & ~mask, high, to, at);
      }
    }
    std::string first, last;
    append_char(first, low), append_char(last, high);
    int32_t next = to;
    for (size_t i = first.size(); i-- > 0;)
      next = add({.kind = Kind::byte,
                  .out = next,
                  .low = static_cast<unsigned char>(first[i]),
                  .high = static_cast<unsigned char>(last[i])});
    at = at < 0 ? next : add({.kind = Kind::split, .out = next, .other = at});
  }
};

/// The sets of states that a text may lead to.
class Subsets {
 public:
  Subsets(const Nfa& nfa, int32_t start) : nfa_(nfa), start_(start), mark_(nfa.states.size(), 0) {}

  /// Follows what reads no byte. `matched`: whether the match is reached; it stays reached, whatever follows.
  std::vector<int32_t> closure(std::vector<int32_t> open, bool at_begin, bool at_end, bool& matched) {
    std::vector<int32_t> out;
    ++round_;
    while (!open.empty()) {
      const int32_t s = open.back();
      open.pop_back();
      if (std::exchange(mark_[static_cast<size_t>(s)], round_) == round_) continue;
      const Nfa::State& state = nfa_.states[static_cast<size_t>(s)];
      switch (state.kind) {
        case Nfa::Kind::byte: out.push_back(s); break;
        case Nfa::Kind::split: open.push_back(state.out), open.push_back(state.other); break;
        case Nfa::Kind::begin:
          if (at_begin) open.push_back(state.out);
          break;
        case Nfa::Kind::end:
          out.push_back(s);  // the text may end here
          if (at_end) open.push_back(state.out);
          break;
        case Nfa::Kind::match: matched = true; break;
      }
    }
    std::ranges::sort(out);
    return out;
  }

  Dfa all(const std::string& where) {
    Dfa d;
    std::map<std::vector<int32_t>, int32_t> number;
    std::vector<std::vector<int32_t>> order;
    constexpr int32_t kFound = -2;  // the one state in which the pattern was found
    auto numbered = [&](std::vector<int32_t> open, bool at_begin) {
      bool matched = false, matched_at_end = false;
      std::vector<int32_t> set = closure(std::move(open), at_begin, false, matched);
      if (matched) set = {kFound};
      auto [at, fresh] = number.try_emplace(set, 0);
      if (!fresh) return at->second;
      if (d.size() > kMostStates)
        fail({.what = text(where, ": the pattern makes an automaton of more than ", kMostStates, " states"),
              .needs = "a pattern that has to remember less: a count behind .* is remembered from each place on",
              .hint = "tie it to the begin by ^, or take smaller counts"});
      if (!matched) closure(set, at_begin, true, matched_at_end);
      order.push_back(set);
      return at->second = d.add_state(matched || matched_at_end);
    };
    d.start = numbered({start_}, true);
    for (size_t i = 0; i < order.size(); ++i) {
      const std::vector<int32_t> set = order[i];
      const auto from = i + 1;
      if (set.size() == 1 && set[0] == kFound) {
        d.next[from].fill(static_cast<int32_t>(from));
        continue;
      }
      // Bytes between two borders of the states' ranges lead to the same set.
      std::array<bool, 257> border{};
      for (int32_t s : set) {
        const Nfa::State& state = nfa_.states[static_cast<size_t>(s)];
        if (state.kind == Nfa::Kind::byte && state.low <= state.high) border[state.low] = border[state.high + 1] = true;
      }
      int32_t to = 0;
      for (size_t byte = 0; byte < 256; ++byte) {
        if (byte == 0 || border[byte]) {
          std::vector<int32_t> open = {start_};  // the match may begin later
          for (int32_t s : set) {
            const Nfa::State& state = nfa_.states[static_cast<size_t>(s)];
            if (state.kind == Nfa::Kind::byte && state.low <= byte && byte <= state.high) open.push_back(state.out);
          }
          to = numbered(std::move(open), false);
        }
        d.next[from][byte] = to;
      }
    }
    return d;
  }

 private:
  const Nfa& nfa_;
  int32_t start_;
  std::vector<int64_t> mark_;
  int64_t round_ = 0;
};

}  // namespace

Dfa pattern_dfa(const std::string& pattern, const std::string& where) {
  const Regular syntax = read_pattern_syntax(pattern, where);
  Nfa nfa{.where = where};
  const int32_t match = nfa.add({.kind = Nfa::Kind::match});
  const int32_t start = nfa.lead(syntax, match);
  return intersection(utf8_texts(), Subsets(nfa, start).all(where), where + ": the pattern");
}

}  // namespace sator::json_schema
