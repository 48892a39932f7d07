// Texts of a schema that take few tokens.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/json_schema/token_masks.h"

namespace sator::json_schema {

/// Of texts with equally many bytes a vocabulary writes some in fewer tokens: 150 characters may be ten words, or 150 times an "a".
class LongTokens {
 public:
  /// They must outlive it.
  ///   bytes  of each token
  LongTokens(const TokenTrie& trie, const std::vector<std::string>& bytes);

  /// A word of so many characters at most, as long as there is one. Empty: there is none.
  std::string_view word(int64_t characters) const;
  /// The longest token with which a text goes on, from a state of one of the automata, such that no other way to an accepting state has fewer bytes.
  /// Empty: there is none of two bytes or more, or the search was given up.
  std::string_view on_shortest_way(const Shapes& shapes, int32_t dfa, int32_t state);

 private:
  std::string_view search(const Dfa& d, const std::vector<int64_t>& distance, int32_t state) const;

  const TokenTrie& trie_;
  const std::vector<std::string>& bytes_;
  std::vector<uint16_t> deepest_;        // [node of the tree] bytes of the longest token below
  std::vector<std::string_view> words_;  // [characters] the longest one of so many at most
  std::map<std::pair<int32_t, int32_t>, std::string_view> chosen_;  // [automaton, state]
};

}  // namespace sator::json_schema
