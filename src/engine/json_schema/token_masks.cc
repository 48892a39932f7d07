#include "engine/json_schema/token_masks.h"

#include <algorithm>
#include <deque>
#include <numeric>

namespace sator::json_schema {

namespace {

using Frame = Automaton::Frame;

constexpr size_t kMostPlaces = 512;  // masks that are kept: 16 kB each at a vocabulary of 128 k

template <class... Ts>
std::string key_of(Ts... parts) {
  std::string key;
  (key.append(reinterpret_cast<const char*>(&parts), sizeof parts), ...);
  return key;
}

bool begins_text_character(unsigned char byte) { return (byte & 0xc0) != 0x80; }

}  // namespace

TokenTrie::TokenTrie(const std::vector<std::string>& bytes) {
  std::vector<int32_t> order;
  for (size_t id = 0; id < bytes.size(); ++id)
    if (!bytes[id].empty()) order.push_back(static_cast<int32_t>(id));
  auto text = [&](int32_t id) -> const std::string& { return bytes[static_cast<size_t>(id)]; };
  std::ranges::sort(order, [&](int32_t a, int32_t b) { return text(a) < text(b) || (text(a) == text(b) && a < b); });
  nodes.push_back({});
  std::vector<int32_t> path = {0};  // nodes of the bytes of the token before
  std::string before;
  for (int32_t id : order) {
    const std::string& t = text(id);
    longest = std::max(longest, std::ssize(t));
    const auto common = static_cast<size_t>(std::ranges::mismatch(before, t).in1 - before.begin());
    for (; path.size() > common + 1; path.pop_back())
      nodes[static_cast<size_t>(path.back())].end = static_cast<int32_t>(nodes.size());
    for (size_t i = common; i < t.size(); ++i) {
      path.push_back(static_cast<int32_t>(nodes.size()));
      nodes.push_back({.tokens = static_cast<int32_t>(tokens.size()),
                       .depth = static_cast<uint16_t>(i + 1),
                       .byte = static_cast<unsigned char>(t[i])});
    }
    tokens.push_back(id);
    before = t;
  }
  for (int32_t node : path) nodes[static_cast<size_t>(node)].end = static_cast<int32_t>(nodes.size());
  nodes.push_back({.tokens = static_cast<int32_t>(tokens.size())});  // where the last node's tokens end
}

int32_t TokenTrie::child(int32_t node, unsigned char byte) const {
  const int32_t end = nodes[static_cast<size_t>(node)].end;
  for (int32_t i = node + 1; i < end; i = nodes[static_cast<size_t>(i)].end)
    if (nodes[static_cast<size_t>(i)].byte == byte) return i;
  return -1;
}

TokenMasks::TokenMasks(std::vector<std::string> bytes) : bytes_(std::move(bytes)), trie_(bytes_) {
  mask_.resize((bytes_.size() + 63) / 64);
}

std::optional<std::vector<int32_t>> TokenMasks::fewest_tokens(std::string_view text) const {
  struct End {
    int64_t tokens = INT64_MAX;  // that make the text up to here
    size_t begin = 0;            // of the last of them
    int32_t last = -1;
  };
  std::vector<End> ends(text.size() + 1);
  ends[0].tokens = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (ends[i].tokens == INT64_MAX) continue;
    int32_t node = 0;
    for (size_t k = i; k < text.size() && (node = trie_.child(node, static_cast<unsigned char>(text[k]))) >= 0; ++k)
      if (const auto ids = trie_.tokens_at(node); !ids.empty() && ends[i].tokens + 1 < ends[k + 1].tokens)
        ends[k + 1] = {.tokens = ends[i].tokens + 1, .begin = i, .last = ids[0]};
  }
  if (ends.back().tokens == INT64_MAX) return {};
  std::vector<int32_t> out;
  for (size_t i = text.size(); i > 0; i = ends[i].begin) out.push_back(ends[i].last);
  std::ranges::reverse(out);
  return out;
}

void TokenMasks::add_mask(const Mask& m) {
  for (size_t i = 0; i < m.size(); ++i) mask_[i] |= m[i];
}

std::span<const uint64_t> TokenMasks::of(Automaton& a) {
  std::string key = a.key();
  if (const auto known = places_.find(key); known != places_.end()) return known->second;
  std::ranges::fill(mask_, 0);
  levels_.resize(static_cast<size_t>(trie_.longest) + 4);  // references to them must stay
  const Automaton::Mark mark = a.mark();
  std::vector<int32_t> others;
  for (int32_t top : a.tops()) {
    if (top == Automaton::kEnd) continue;
    const Frame f = a.frame(top);
    if (f.kind == Frame::Kind::string)
      add_string(a, f);
    else if (f.kind == Frame::Kind::name)
      add_name(a, f, top);
    else
      others.push_back(top);
    a.release(mark);
  }
  if (!others.empty()) walk(a, 0, others, 0);
  a.release(mark);
  if (places_.size() >= kMostPlaces) places_.clear();
  return places_[std::move(key)] = mask_;
}

void TokenMasks::step_all(Automaton& a, const std::vector<int32_t>& tops, unsigned char byte,
                          std::vector<int32_t>& out) {
  out.clear();
  for (int32_t top : tops)
    if (top != Automaton::kEnd) a.step(top, byte, out);
}

void TokenMasks::walk(Automaton& a, int32_t node, const std::vector<int32_t>& tops, size_t depth) {
  const Automaton::Mark mark = a.mark();
  std::vector<int32_t>& next = levels_[depth];
  const int32_t end = trie_.nodes[static_cast<size_t>(node)].end;
  for (int32_t i = node + 1; i < end; i = trie_.nodes[static_cast<size_t>(i)].end) {
    step_all(a, tops, trie_.nodes[static_cast<size_t>(i)].byte, next);
    if (!next.empty()) {
      add_tokens(trie_.tokens_at(i));
      if (trie_.nodes[static_cast<size_t>(i)].end > i + 1) walk(a, i, next, depth + 1);
    }
    a.release(mark);
  }
}

void TokenMasks::walk_suffix(Automaton& a, const std::vector<Suffix>& tree, int32_t node,
                             const std::vector<int32_t>& tops, size_t depth) {
  const Automaton::Mark mark = a.mark();
  std::vector<int32_t>& next = levels_[depth];
  for (const auto& [byte, child] : tree[static_cast<size_t>(node)].children) {
    step_all(a, tops, byte, next);
    if (!next.empty()) {
      add_tokens(tree[static_cast<size_t>(child)].tokens);
      walk_suffix(a, tree, child, next, depth + 1);
    }
    a.release(mark);
  }
}

// ---- strings

void TokenMasks::add_string(Automaton& a, const Frame& f) {
  const Shape& s = a.shapes().shapes[static_cast<size_t>(f.of)];
  // Beyond what one token can have, more room is as good as less.
  const int64_t room = s.most < 0 ? trie_.longest : std::min(s.most - f.count, trie_.longest);
  const int64_t missing = std::clamp<int64_t>(s.least - f.count, 0, trie_.longest + 1);
  const StringMask& m =
      string_mask(a.shapes().dfas[static_cast<size_t>(s.dfa)], s.dfa, f.state, f.reader, room, missing);
  add_mask(m.inside);
  add_tokens(m.exits[0].tokens);
  if (f.parent != Automaton::kEnd) walk_suffix(a, m.exits, 0, {f.parent}, 0);
}

const TokenMasks::StringMask& TokenMasks::string_mask(const Dfa& d, int32_t dfa, int32_t state, StringReader reader,
                                                      int64_t room, int64_t missing) {
  const auto [known, fresh] = strings_.try_emplace(key_of(dfa, state, reader.stage, room, missing));
  StringMask& m = known->second;
  if (!fresh) return m;
  struct At {
    int32_t state;
    int64_t room, missing;
    StringReader reader;
  };
  m.inside.resize(mask_.size());
  m.exits.emplace_back();
  std::vector<At> at(static_cast<size_t>(trie_.longest) + 1);
  at[0] = {state, room, missing, reader};
  const auto last = std::ssize(trie_.nodes) - 1;
  for (int32_t i = 1; i < last;) {
    const TokenTrie::Node& node = trie_.nodes[static_cast<size_t>(i)];
    At now = at[node.depth - 1u];
    unsigned char c = 0;
    bool leads_on = false;
    switch (now.reader.take(node.byte, c)) {
      case StringReader::Read::refused: break;
      case StringReader::Read::closed:
        if (d.accepting(now.state) && now.missing <= 0) merge(m.exits, 0, i);
        break;
      case StringReader::Read::character_byte:
        now.state = d.step(now.state, c);
        if (begins_text_character(c)) --now.room, --now.missing;
        leads_on = now.state != Dfa::kDead && now.room >= 0;
        break;
      case StringReader::Read::nothing:
        leads_on = now.room >= 1 && std::ranges::any_of(now.reader.possible(), [&](unsigned char e) {
                     return d.step(now.state, e) != Dfa::kDead;
                   });
        break;
    }
    if (!leads_on) {
      i = node.end;
      continue;
    }
    for (int32_t id : trie_.tokens_at(i)) m.inside[static_cast<size_t>(id) / 64] |= uint64_t{1} << (id % 64);
    at[node.depth] = now;
    ++i;
  }
  return m;
}

void TokenMasks::merge(std::vector<Suffix>& tree, int32_t at, int32_t node) {
  const auto ids = trie_.tokens_at(node);
  std::vector<int32_t>& tokens = tree[static_cast<size_t>(at)].tokens;
  tokens.insert(tokens.end(), ids.begin(), ids.end());
  const int32_t end = trie_.nodes[static_cast<size_t>(node)].end;
  for (int32_t i = node + 1; i < end; i = trie_.nodes[static_cast<size_t>(i)].end) {
    const unsigned char byte = trie_.nodes[static_cast<size_t>(i)].byte;
    auto& children = tree[static_cast<size_t>(at)].children;
    auto child = std::ranges::find(children, byte, [](const auto& c) { return c.first; });
    int32_t to = 0;
    if (child == children.end()) {
      to = static_cast<int32_t>(tree.size());
      children.emplace_back(byte, to);
      tree.emplace_back();
    } else {
      to = child->second;
    }
    merge(tree, to, i);
  }
}

// ---- names of members

void TokenMasks::add_name(Automaton& a, const Frame& f, int32_t top) {
  const Shape& s = a.shapes().shapes[static_cast<size_t>(f.of)];
  auto has_control = [](const Shape::Name& n) {
    return std::ranges::any_of(n.name, [](char c) { return c >= 0 && c < 0x20; });
  };
  if (f.reader.stage != StringReader::Stage::plain || !a.all_free(s) || std::ranges::any_of(s.names, has_control))
    return walk(a, 0, {top}, 0);
  add_schema_names(a, f, s);
  const Automaton::Seen seen = a.seen_of(a.frame(f.parent));
  const bool leads_on = a.shapes().distances[static_cast<size_t>(s.dfa)][static_cast<size_t>(f.state)] >= 0;
  if (!leads_on || !a.has_room(s, seen, false)) return;
  const NameMask& m = name_mask(a, s, f.state);
  add_mask(m.inside);
  const std::string text = a.text_of(f);
  for (const NameExit& exit : m.exits) {
    const std::string name = text + exit.text;
    if (std::ranges::binary_search(s.names, name, {}, &Shape::Name::name) ||
        std::ranges::binary_search(seen.others, name))
      continue;
    add_behind_name(a, f, name, exit.state, exit.node);
  }
}

void TokenMasks::add_schema_names(Automaton& a, const Frame& f, const Shape& s) {
  const std::string text = a.text_of(f);
  const Automaton::Seen seen = a.seen_of(a.frame(f.parent));
  for (auto own = std::ranges::lower_bound(s.names, text, {}, &Shape::Name::name);
       own != s.names.end() && own->name.starts_with(text);
       ++own) {
    if (seen.names[static_cast<size_t>(own - s.names.begin())] || own->value == kNoValue ||
        !a.has_room(s, seen, own->required))
      continue;
    int32_t node = 0;
    for (size_t i = text.size(); i < own->name.size() && node >= 0; ++i) {
      const char c = own->name[i];
      if (c == '"' || c == '\\') {
        node = trie_.child(node, '\\');
        if (node >= 0) add_tokens(trie_.tokens_at(node));
      }
      if (node >= 0) node = trie_.child(node, static_cast<unsigned char>(c));
      if (node >= 0) add_tokens(trie_.tokens_at(node));
    }
    if (node >= 0) node = trie_.child(node, '"');
    if (node >= 0) add_behind_name(a, f, own->name, Dfa::kDead, node);
  }
}

/// Tokens that end a name which may stand there, and what they have behind it.
void TokenMasks::add_behind_name(Automaton& a, const Frame& f, const std::string& name, int32_t state, int32_t node) {
  add_tokens(trie_.tokens_at(node));
  if (trie_.nodes[static_cast<size_t>(node)].end == node + 1) return;
  const Automaton::Mark mark = a.mark();
  int32_t colon = 0;
  if (a.close_name(f.parent, name, state, colon)) walk(a, node, {colon}, 0);
  a.release(mark);
}

const TokenMasks::NameMask& TokenMasks::name_mask(const Automaton& a, const Shape& s, int32_t state) {
  const auto [known, fresh] = names_.try_emplace(key_of(s.dfa, state));
  NameMask& m = known->second;
  if (!fresh) return m;
  const Dfa& d = a.shapes().dfas[static_cast<size_t>(s.dfa)];
  const std::vector<int64_t>& distance = a.shapes().distances[static_cast<size_t>(s.dfa)];
  auto leads_on = [&](int32_t q) { return distance[static_cast<size_t>(q)] >= 0; };
  struct At {
    int32_t state;
    StringReader reader;
    std::string text;
  };
  m.inside.resize(mask_.size());
  std::vector<At> at(static_cast<size_t>(trie_.longest) + 1);
  at[0] = {.state = state};
  const auto last = std::ssize(trie_.nodes) - 1;
  for (int32_t i = 1; i < last;) {
    const TokenTrie::Node& node = trie_.nodes[static_cast<size_t>(i)];
    At now = at[node.depth - 1u];
    unsigned char c = 0;
    bool alive = false;
    switch (now.reader.take(node.byte, c)) {
      case StringReader::Read::refused: break;
      case StringReader::Read::closed:
        if (d.accepting(now.state) && (!trie_.tokens_at(i).empty() || trie_.child(i, ':') >= 0))
          m.exits.push_back({now.text, now.state, i});
        break;
      case StringReader::Read::character_byte:
        now.state = d.step(now.state, c);
        now.text += static_cast<char>(c);
        alive = leads_on(now.state);
        break;
      case StringReader::Read::nothing:
        alive =
            std::ranges::any_of(now.reader.possible(), [&](unsigned char e) { return leads_on(d.step(now.state, e)); });
        break;
    }
    if (!alive) {
      i = node.end;
      continue;
    }
    for (int32_t id : trie_.tokens_at(i)) m.inside[static_cast<size_t>(id) / 64] |= uint64_t{1} << (id % 64);
    at[node.depth] = std::move(now);
    ++i;
  }
  return m;
}

}  // namespace sator::json_schema
