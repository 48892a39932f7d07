#include "engine/json_schema/dfa.h"

#include <algorithm>
#include <map>
#include <queue>

#include "base/error.h"

namespace sator::json_schema {

bool Dfa::contains(std::string_view text) const {
  int32_t state = start;
  for (char c : text) state = step(state, static_cast<unsigned char>(c));
  return accepting(state);
}

int64_t written_bytes(unsigned char byte) {
  if (byte == '"' || byte == '\\') return 2;
  if (byte >= 0x20) return 1;
  return std::string_view("\b\f\n\r\t").find(static_cast<char>(byte)) == std::string_view::npos ? 6 : 2;
}

std::vector<int64_t> distances(const Dfa& d) {
  std::vector<int64_t> ends;
  for (char accepting : d.accepts) ends.push_back(accepting ? 0 : -1);
  return distances(d, ends);
}

std::vector<int64_t> distances(const Dfa& d, const std::vector<int64_t>& ends) {
  const auto n = static_cast<size_t>(d.size());
  std::vector<std::vector<std::pair<int32_t, int64_t>>> before(n);  // and what the byte costs
  for (int32_t s = 1; s < d.size(); ++s)
    for (size_t byte = 0; byte < 256; ++byte)
      if (const int32_t to = d.next[static_cast<size_t>(s)][byte]; to != Dfa::kDead) {
        const std::pair edge(s, written_bytes(static_cast<unsigned char>(byte)));
        auto& edges = before[static_cast<size_t>(to)];
        if (edges.empty() || edges.back() != edge) edges.push_back(edge);
      }
  // Dijkstra's, from the ends.
  std::vector<int64_t> distance(n, -1);
  std::priority_queue<std::pair<int64_t, int32_t>, std::vector<std::pair<int64_t, int32_t>>, std::greater<>> open;
  for (int32_t s = 1; s < d.size(); ++s)
    if (ends[static_cast<size_t>(s)] >= 0) open.emplace(ends[static_cast<size_t>(s)], s);
  while (!open.empty()) {
    const auto [bytes, s] = open.top();
    open.pop();
    int64_t& at = distance[static_cast<size_t>(s)];
    if (at >= 0) continue;
    at = bytes;
    for (const auto& [from, cost] : before[static_cast<size_t>(s)])
      if (distance[static_cast<size_t>(from)] < 0) open.emplace(bytes + cost, from);
  }
  return distance;
}

Dfa pruned(const Dfa& d) {
  const std::vector<int64_t> distance = distances(d);
  Dfa out;
  std::vector<int32_t> number(static_cast<size_t>(d.size()), Dfa::kDead), order;
  auto numbered = [&](int32_t s) {
    if (s == Dfa::kDead || distance[static_cast<size_t>(s)] < 0) return Dfa::kDead;
    int32_t& at = number[static_cast<size_t>(s)];
    if (at == Dfa::kDead) at = out.add_state(d.accepting(s)), order.push_back(s);
    return at;
  };
  out.start = numbered(d.start);
  for (size_t i = 0; i < order.size(); ++i)
    for (size_t byte = 0; byte < 256; ++byte) {
      const int32_t to = numbered(d.next[static_cast<size_t>(order[i])][byte]);
      out.next[i + 1][byte] = to;
    }
  return out;
}

/// Adds the states between characters: `from` reads one character and is in `to`.
static void add_character(Dfa& d, int32_t from, int32_t to) {
  auto range = [&](int32_t state, int low, int high, int32_t next) {
    for (int b = low; b <= high; ++b) d.next[static_cast<size_t>(state)][static_cast<size_t>(b)] = next;
  };
  auto state = [&](int low, int high, int32_t next) {
    const int32_t s = d.add_state(false);
    range(s, low, high, next);
    return s;
  };
  const int32_t last = state(0x80, 0xbf, to), last2 = state(0x80, 0xbf, last);
  range(from, 0x00, 0x7f, to);
  range(from, 0xc2, 0xdf, last);
  range(from, 0xe1, 0xef, last2);
  range(from, 0xe0, 0xe0, state(0xa0, 0xbf, last));
  range(from, 0xed, 0xed, state(0x80, 0x9f, last));  // no surrogates
  range(from, 0xf0, 0xf0, state(0x90, 0xbf, last2));
  range(from, 0xf1, 0xf3, state(0x80, 0xbf, last2));
  range(from, 0xf4, 0xf4, state(0x80, 0x8f, last2));
}

Dfa utf8_texts(int64_t least, int64_t most) {
  Dfa d;
  const int64_t counted = most >= 0 ? most : least;  // beyond it nothing changes
  if (most >= 0 && most < least) return d;
  std::vector<int32_t> at;
  for (int64_t n = 0; n <= counted; ++n) at.push_back(d.add_state(n >= least));
  d.start = at[0];
  for (int64_t n = 0; n <= counted; ++n)
    if (n < counted)
      add_character(d, at[static_cast<size_t>(n)], at[static_cast<size_t>(n + 1)]);
    else if (most < 0)
      add_character(d, at[static_cast<size_t>(n)], at[static_cast<size_t>(n)]);
  return d;
}

Dfa product(const Dfa& a, const Dfa& b, const std::function<bool(bool, bool)>& accepts, const std::string& what) {
  Dfa d;
  std::map<std::pair<int32_t, int32_t>, int32_t> number;
  std::vector<std::pair<int32_t, int32_t>> order;
  auto numbered = [&](int32_t x, int32_t y) {
    auto [at, fresh] = number.try_emplace({x, y}, 0);
    if (!fresh) return at->second;
    if (d.size() > kMostStates)
      fail({.what = text(what, " make an automaton of more than ", kMostStates, " states"),
            .needs = "shorter patterns and lengths, or fewer of them at once",
            .hint = "leave out what matters least, or take smaller counts"});
    order.emplace_back(x, y);
    return at->second = d.add_state(accepts(a.accepting(x), b.accepting(y)));
  };
  d.start = numbered(a.start, b.start);
  for (size_t i = 0; i < order.size(); ++i) {
    const auto [x, y] = order[i];
    int32_t last_x = -1, last_y = -1, last = 0;
    for (size_t byte = 0; byte < 256; ++byte) {
      const int32_t p = a.next[static_cast<size_t>(x)][byte], q = b.next[static_cast<size_t>(y)][byte];
      if (p != last_x || q != last_y) last = numbered(p, q), last_x = p, last_y = q;
      d.next[i + 1][byte] = last;
    }
  }
  return pruned(d);
}

Dfa intersection(const Dfa& a, const Dfa& b, const std::string& what) {
  return product(a, b, [](bool x, bool y) { return x && y; }, what);
}

Dfa complement(const Dfa& d, const std::string& what) {
  return product(utf8_texts(), d, [](bool is_text, bool y) { return is_text && !y; }, what);
}

Dfa only(std::string_view text) {
  Dfa d;
  int32_t at = d.start = d.add_state(text.empty());
  for (size_t i = 0; i < text.size(); ++i) {
    const int32_t to = d.add_state(i + 1 == text.size());
    d.next[static_cast<size_t>(at)][static_cast<unsigned char>(text[i])] = to;
    at = to;
  }
  return d;
}

std::string shortest_from(const Dfa& d, const std::vector<int64_t>& distance, int32_t state) {
  std::string out;
  while (distance[static_cast<size_t>(state)] > 0) {
    // Printable bytes are nicer to read than others that are as short.
    auto leads = [&](int byte) {
      const int32_t to = d.step(state, static_cast<unsigned char>(byte));
      return to != Dfa::kDead && distance[static_cast<size_t>(to)] + written_bytes(static_cast<unsigned char>(byte)) ==
                                     distance[static_cast<size_t>(state)];
    };
    int byte = 'a';
    for (int k = 0; k < 256 && !leads(byte); ++k) byte = (byte + 1) % 256;
    out += static_cast<char>(byte);
    state = d.step(state, static_cast<unsigned char>(byte));
  }
  return out;
}

std::vector<int64_t> text_counts(const Dfa& d) {
  constexpr int64_t kMany = kInfinite / 512;  // counts end here, that no sum overflows
  const std::vector<int64_t> distance = distances(d);
  const auto n = static_cast<size_t>(d.size());
  std::vector<std::vector<int32_t>> before(n);  // once for each byte
  std::vector<int32_t> uncounted(n, 0), ready;
  std::vector<int64_t> counts(n, kInfinite);
  counts[Dfa::kDead] = 0;
  for (size_t s = 1; s < n; ++s) {
    if (distance[s] < 0) {
      counts[s] = 0;
      continue;
    }
    for (int32_t to : d.next[s])
      if (distance[static_cast<size_t>(to)] >= 0)
        before[static_cast<size_t>(to)].push_back(static_cast<int32_t>(s)), ++uncounted[s];
    if (uncounted[s] == 0) ready.push_back(static_cast<int32_t>(s));
  }
  // From the ends; states of a cycle, and those that lead to one, are never ready.
  for (size_t i = 0; i < ready.size(); ++i) {
    const auto s = static_cast<size_t>(ready[i]);
    int64_t count = d.accepts[s] != 0;
    for (int32_t to : d.next[s]) count += counts[static_cast<size_t>(to)];
    counts[s] = std::min(count, kMany);
    for (int32_t from : before[s])
      if (--uncounted[static_cast<size_t>(from)] == 0) ready.push_back(from);
  }
  return counts;
}

bool is_infinite(const Dfa& d) { return text_counts(d)[static_cast<size_t>(d.start)] == kInfinite; }

std::optional<std::vector<std::string>> texts_of(const Dfa& d, size_t most) {
  std::vector<std::string> out;
  std::vector<std::pair<int32_t, std::string>> open = {{d.start, ""}};
  while (!open.empty()) {
    const auto [s, text] = open.back();
    open.pop_back();
    if (d.accepting(s)) out.push_back(text);
    if (out.size() > most) return {};
    for (int byte = 255; byte >= 0; --byte)
      if (const int32_t to = d.step(s, static_cast<unsigned char>(byte)); to != Dfa::kDead)
        open.emplace_back(to, text + static_cast<char>(byte));
  }
  return out;
}

}  // namespace sator::json_schema
