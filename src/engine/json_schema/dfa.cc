#include "engine/json_schema/dfa.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace sator::json_schema {

bool Dfa::contains(std::string_view text) const {
  int32_t state = start;
  for (char c : text) state = step(state, static_cast<unsigned char>(c));
  return accepting(state);
}

std::vector<int32_t> distances(const Dfa& d) {
  const auto n = static_cast<size_t>(d.size());
  std::vector<std::vector<int32_t>> before(n);
  for (int32_t s = 1; s < d.size(); ++s) {
    int32_t last = Dfa::kDead;
    for (int32_t t : d.next[static_cast<size_t>(s)])
      if (t != last && t != Dfa::kDead) before[static_cast<size_t>(last = t)].push_back(s);
  }
  std::vector<int32_t> distance(n, -1), queue;
  for (int32_t s = 1; s < d.size(); ++s)
    if (d.accepting(s)) distance[static_cast<size_t>(s)] = 0, queue.push_back(s);
  for (size_t i = 0; i < queue.size(); ++i)
    for (int32_t s : before[static_cast<size_t>(queue[i])])
      if (int32_t& at = distance[static_cast<size_t>(s)]; at < 0)
        at = distance[static_cast<size_t>(queue[i])] + 1, queue.push_back(s);
  return distance;
}

Dfa pruned(const Dfa& d) {
  const std::vector<int32_t> distance = distances(d);
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
  if (counted > kMostStates / 9)
    fail({.what = text("a pattern beside a length of ", counted), .needs = "lengths below 2,000 beside a pattern"});
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
      fail({.what = text(what, " makes an automaton of more than ", kMostStates, " states"),
            .needs = "shorter patterns, or fewer of them at once"});
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

std::string shortest_from(const Dfa& d, const std::vector<int32_t>& distance, int32_t state) {
  std::string out;
  while (distance[static_cast<size_t>(state)] > 0) {
    // Printable bytes are nicer to read than others that are as short.
    auto leads = [&](int byte) {
      const int32_t to = d.step(state, static_cast<unsigned char>(byte));
      return to != Dfa::kDead && distance[static_cast<size_t>(to)] == distance[static_cast<size_t>(state)] - 1;
    };
    int byte = 'a';
    for (int k = 0; k < 256 && !leads(byte); ++k) byte = (byte + 1) % 256;
    out += static_cast<char>(byte);
    state = d.step(state, static_cast<unsigned char>(byte));
  }
  return out;
}

bool is_infinite(const Dfa& d) {
  // A cycle among states that are all of use.
  const Dfa p = pruned(d);
  std::vector<char> color(static_cast<size_t>(p.size()), 0);
  std::vector<std::pair<int32_t, int>> path;
  if (p.start == Dfa::kDead) return false;
  path.emplace_back(p.start, 0);
  color[static_cast<size_t>(p.start)] = 1;
  while (!path.empty()) {
    auto& [s, byte] = path.back();
    if (byte == 256) {
      color[static_cast<size_t>(s)] = 2;
      path.pop_back();
      continue;
    }
    const int32_t to = p.step(s, static_cast<unsigned char>(byte++));
    if (to == Dfa::kDead) continue;
    if (color[static_cast<size_t>(to)] == 1) return true;
    if (color[static_cast<size_t>(to)] == 0) color[static_cast<size_t>(to)] = 1, path.emplace_back(to, 0);
  }
  return false;
}

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
