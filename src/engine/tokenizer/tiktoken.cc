#include "engine/tokenizer/tiktoken.h"

#include <bitset>
#include <charconv>
#include <unordered_set>

#include "base/error.h"
#include "base/text.h"
#include "engine/tokenizer/charsmap.h"
#include "engine/tokenizer/vocabulary.h"

namespace sator {

namespace {

/// The longest token of a published vocabulary has 128 bytes. Each of a token's cuts is looked up.
constexpr size_t kMaxTokenBytes = 1024;

constexpr std::string_view kR50k = R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s)";
constexpr std::string_view kCl100k =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)";
constexpr std::string_view kO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct EncodingRow {
  std::string_view name, pattern;
  std::vector<std::pair<std::string, int32_t>> special;
  int extra = 0;  // so many tokens <|extra_0|>, ... behind them
};
const EncodingRow kEncodings[] = {
    {"r50k_base", kR50k, {{"<|endoftext|>", 50256}}},
    {"p50k_base", kR50k, {{"<|endoftext|>", 50256}}},
    {"cl100k_base",
     kCl100k,
     {{"<|endoftext|>", 100257},
      {"<|fim_prefix|>", 100258},
      {"<|fim_middle|>", 100259},
      {"<|fim_suffix|>", 100260},
      {"<|endofprompt|>", 100276}}},
    {"o200k_base", kO200k, {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}}},
    {"qwen", kQwen, {{"<|endoftext|>", -1}, {"<|im_start|>", -1}, {"<|im_end|>", -1}}, 205},
    {"QWenTokenizer", kQwen, {{"<|endoftext|>", -1}, {"<|im_start|>", -1}, {"<|im_end|>", -1}}, 205},
};

struct Line {
  std::string bytes;
  int32_t rank;
};

std::optional<Line> read_line(std::string_view line) {
  const size_t space = line.find(' ');
  if (space == std::string_view::npos || space == 0) return {};
  auto bytes = base64_decoded(line.substr(0, space));
  const std::string_view number = line.substr(space + 1);
  int32_t rank = -1;
  auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), rank);
  if (!bytes || bytes->empty() || error != std::errc() || end != number.data() + number.size() || rank < 0) return {};
  return Line{std::move(*bytes), rank};
}

}  // namespace

bool looks_like_tiktoken(std::string_view text) {
  std::string_view line = text.substr(0, text.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return read_line(line).has_value();
}

std::vector<std::pair<std::string, int32_t>> read_tiktoken(std::string_view text, const std::string& where) {
  std::vector<std::pair<std::string, int32_t>> out;
  std::unordered_set<std::string> seen;
  std::unordered_set<int32_t> ranks;
  std::bitset<256> single;
  size_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    auto bad = [&](const std::string& why) {
      fail({.what = sator::text("line ", number, " ", why),
            .needs = "lines of a token in base64, a space, and its rank",
            .where = where});
    };
    auto token = read_line(line);
    if (!token) bad(sator::text("is ", string_literal(line.substr(0, 60))));
    if (token->rank > Vocabulary::kMaxId)
      bad(sator::text("has the rank ", token->rank, ", beyond ", Vocabulary::kMaxId));
    if (token->bytes.size() > kMaxTokenBytes) bad(sator::text("has a token of ", token->bytes.size(), " bytes"));
    if (!seen.insert(token->bytes).second) bad("has a token that an earlier line has too");
    if (!ranks.insert(token->rank).second) bad(sator::text("has the rank ", token->rank, " of an earlier line"));
    if (token->bytes.size() == 1) single.set(static_cast<unsigned char>(token->bytes[0]));
    out.emplace_back(std::move(token->bytes), token->rank);
  }
  if (!single.all())
    fail({.what = sator::text(where, " has tokens for ", single.count(), " of the 256 bytes"),
          .needs = "a token for each byte, so that any text has ids"});
  return out;
}

std::optional<TiktokenEncoding> tiktoken_encoding(std::string_view name) {
  for (const EncodingRow& row : kEncodings) {
    if (row.name != name) continue;
    TiktokenEncoding out{std::string(row.pattern), row.special};
    for (int k = 0; k < row.extra; ++k) out.special.emplace_back(text("<|extra_", k, "|>"), -1);
    return out;
  }
  return {};
}

std::vector<std::string_view> tiktoken_encodings() {
  std::vector<std::string_view> names;
  for (const EncodingRow& row : kEncodings) names.push_back(row.name);
  return names;
}

}  // namespace sator
