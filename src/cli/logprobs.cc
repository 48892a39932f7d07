#include "cli/logprobs.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/figures.h"
#include "base/text.h"
#include "engine/tokenizer/unicode.h"

namespace sator::cli {

namespace {

/// The token's text in quotes, its bytes where they are no text; of an id without a token its number.
std::string quoted(int32_t id, const Tokenizer& tokenizer) {
  if (!tokenizer.token_of(id)) return text("<", id, ">");
  const std::string bytes = tokenizer.bytes_of(id);
  if (is_valid_utf8(bytes)) return string_literal(bytes);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (unsigned char c : string_literal(bytes))
    c < 0x80 ? out += static_cast<char>(c) : out += {'\\', 'x', kDigits[c >> 4], kDigits[c & 15]};
  return out;
}

nlohmann::json as_json(int32_t id, double logprob, const Tokenizer& tokenizer) {
  const std::string bytes = tokenizer.bytes_of(id);
  nlohmann::json row = {{"id", id}, {"token", lossy_utf8(bytes)}, {"logprob", logprob}};
  if (!is_valid_utf8(bytes)) row["bytes"] = std::vector<unsigned char>(bytes.begin(), bytes.end());
  return row;
}

}  // namespace

std::string logprob_table(std::string_view head, std::span<const TokenLogprob> tokens, const Tokenizer& tokenizer) {
  constexpr size_t kWidest = 24;
  size_t width = head.size();
  for (const TokenLogprob& t : tokens) width = std::max(width, display_width(quoted(t.id, tokenizer)));
  width = std::min(width, kWidest);
  const bool shows_best = std::ranges::any_of(tokens, [](const TokenLogprob& t) { return !t.best.empty(); });
  std::string out = text(pad_right(head, width), pad_left("ln p", 10), pad_left("p", 9), pad_left("rank", 7));
  out += shows_best ? "  likeliest\n" : "\n";
  for (const TokenLogprob& t : tokens) {
    out += text(pad_right(quoted(t.id, tokenizer), width),
                pad_left(fixed(t.logprob, 4), 10),
                pad_left(percent(std::exp(t.logprob)), 9),
                pad_left(text(t.rank), 7));
    for (size_t i = 0; i < t.best.size(); ++i)
      out += text(i == 0 ? "  " : ", ", quoted(t.best[i].id, tokenizer), " ", percent(std::exp(t.best[i].logprob)));
    out += "\n";
  }
  return out;
}

nlohmann::json logprobs_as_json(std::span<const TokenLogprob> tokens, const Tokenizer& tokenizer) {
  nlohmann::json all = nlohmann::json::array();
  for (const TokenLogprob& t : tokens) {
    nlohmann::json row = as_json(t.id, t.logprob, tokenizer);
    row["rank"] = t.rank;
    row["best"] = nlohmann::json::array();
    for (const TokenLogprob::Candidate& c : t.best) row["best"].push_back(as_json(c.id, c.logprob, tokenizer));
    all.push_back(std::move(row));
  }
  return all;
}

}  // namespace sator::cli
