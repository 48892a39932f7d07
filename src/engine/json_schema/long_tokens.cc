#include "engine/json_schema/long_tokens.h"

#include <algorithm>

namespace sator::json_schema {

namespace {

bool is_letter(char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; }
/// Letters, with a space before them or none.
bool is_word(std::string_view token) {
  if (token.starts_with(' ')) token.remove_prefix(1);
  return !token.empty() && std::ranges::all_of(token, is_letter);
}

}  // namespace

LongTokens::LongTokens(const TokenTrie& trie, const std::vector<std::string>& bytes)
    : trie_(trie), bytes_(bytes), words_(1) {
  deepest_.resize(trie.nodes.size());
  for (size_t i = trie.nodes.size() - 1; i-- > 0;) {
    deepest_[i] = trie.nodes[i].depth;
    for (auto below = static_cast<int32_t>(i) + 1; below < trie.nodes[i].end;
         below = trie.nodes[static_cast<size_t>(below)].end)
      deepest_[i] = std::max(deepest_[i], deepest_[static_cast<size_t>(below)]);
  }
  for (const std::string& token : bytes) {
    if (!is_word(token)) continue;
    if (token.size() >= words_.size()) words_.resize(token.size() + 1);
    if (words_[token.size()].empty()) words_[token.size()] = token;
  }
  for (size_t n = 1; n < words_.size(); ++n)
    if (words_[n].empty()) words_[n] = words_[n - 1];
}

std::string_view LongTokens::word(int64_t characters) const {
  return words_[static_cast<size_t>(std::clamp<int64_t>(characters, 0, std::ssize(words_) - 1))];
}

std::string_view LongTokens::on_shortest_way(const Shapes& shapes, int32_t dfa, int32_t state) {
  const auto [at, fresh] = chosen_.try_emplace({dfa, state});
  if (fresh)
    at->second = search(shapes.dfas[static_cast<size_t>(dfa)], shapes.distances[static_cast<size_t>(dfa)], state);
  return at->second;
}

std::string_view LongTokens::search(const Dfa& d, const std::vector<int64_t>& distance, int32_t state) const {
  int looks = 4096;  // nodes of the tree; a long token is found sooner, and hides those that are no longer
  std::vector<int32_t> states(static_cast<size_t>(trie_.longest) + 1);
  states[0] = state;
  std::string_view best;
  for (int32_t i = 1; i < trie_.nodes[0].end && looks > 0; --looks) {
    const TokenTrie::Node& node = trie_.nodes[static_cast<size_t>(i)];
    const int32_t from = states[node.depth - 1U], to = d.step(from, node.byte);
    const bool is_nearer = to != Dfa::kDead && written_bytes(node.byte) == 1 &&
                           distance[static_cast<size_t>(to)] + 1 == distance[static_cast<size_t>(from)];
    if (!is_nearer || deepest_[static_cast<size_t>(i)] <= best.size()) {
      i = node.end;
      continue;
    }
    states[node.depth] = to;
    const auto tokens = trie_.tokens_at(i);
    if (!tokens.empty() && node.depth > std::max<size_t>(best.size(), 1))
      best = bytes_[static_cast<size_t>(tokens.front())];
    ++i;
  }
  return best;
}

}  // namespace sator::json_schema
