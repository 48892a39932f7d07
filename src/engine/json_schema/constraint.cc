#include "engine/json_schema/constraint.h"

#include <algorithm>

#include "base/error.h"
#include "engine/json_schema/completion.h"

namespace sator::json_schema {

static std::vector<std::string> token_bytes(const Tokenizer& tokenizer, int64_t vocab_size) {
  std::vector<std::string> bytes(static_cast<size_t>(vocab_size));
  for (int64_t id = 0; id < vocab_size; ++id)
    if (const auto token = static_cast<int32_t>(id); !tokenizer.is_special(token))
      bytes[static_cast<size_t>(id)] = tokenizer.bytes_of(token);
  return bytes;
}

/// By how many bytes one value that need not be there, or could be shorter, makes a document longer at most.
static int64_t longest_extra(const Shapes& shapes) {
  int64_t longest = 0;
  auto extra = [&](int64_t bytes) {
    if (bytes < Shapes::kNoBytes) longest = std::max(longest, bytes);
  };
  auto least = [&](ValueId v) {
    return v == kNoValue ? int64_t{0} : int64_t{shapes.least_bytes[static_cast<size_t>(v)]};
  };
  constexpr int64_t kQuotesColonComma = 4, kMadeUpName = 16;
  for (const Shape& s : shapes.shapes) {
    for (const Shape::Name& n : s.names)
      if (!n.required && n.value != kNoValue) extra(kQuotesColonComma + std::ssize(n.name) + least(n.value));
    for (ValueId v : s.other_values)
      if (v != kNoValue) extra(kQuotesColonComma + kMadeUpName + least(v));
    if (s.kind != Shape::Kind::array) continue;
    extra(1 + least(s.rest));
    for (ValueId v : s.prefix) extra(1 + least(v));
  }
  for (size_t v = 0; v < shapes.of_value.size(); ++v)
    for (int32_t s : shapes.of_value[v])
      extra(shapes.least_bytes_of(shapes.shapes[static_cast<size_t>(s)]) - shapes.least_bytes[v]);
  return longest;
}

JsonConstraint::JsonConstraint(std::shared_ptr<const Shapes> shapes, const Tokenizer& tokenizer, int64_t vocab_size)
    : place_(std::move(shapes)), masks_(token_bytes(tokenizer, vocab_size)) {
  constexpr int64_t kOpenedByOneToken = 2, kBrackets = 16;
  slack_ = kOpenedByOneToken * longest_extra(place_.shapes()) + kBrackets;
  forced_.resize(static_cast<size_t>(vocab_size + 63) / 64);
}

void JsonConstraint::restart() { place_.restart(); }

std::span<const uint64_t> JsonConstraint::allowed(int64_t tokens_left) {
  constexpr int64_t kFarFromTheEnd = 20'000;
  if (tokens_left < kFarFromTheEnd) {
    const std::optional<std::string> rest = completion_of(place_);
    const std::vector<int32_t> tokens = rest ? masks_.longest_tokens(*rest) : std::vector<int32_t>();
    if (!tokens.empty() && tokens_left <= std::ssize(tokens) + slack_) {
      std::ranges::fill(forced_, 0);
      forced_[static_cast<size_t>(tokens[0]) / 64] |= uint64_t{1} << (tokens[0] % 64);
      return forced_;
    }
  }
  if (place_.is_complete() && tokens_left <= slack_) {  // a number that could go on: it ends here
    std::ranges::fill(forced_, 0);
    return forced_;
  }
  const std::span<const uint64_t> mask = masks_.of(place_);
  if (place_.can_go_on() && !place_.is_complete() && std::ranges::all_of(mask, [](uint64_t word) { return word == 0; }))
    fail({.what = "no token of the vocabulary goes on with the JSON document",
          .needs = "a tokenizer that has all bytes as tokens",
          .hint = "allow other characters in the schema, or take another model"});
  return mask;
}

void JsonConstraint::take(int32_t id) {
  if (!place_.take(masks_.bytes_of(id)))
    internal_error(text("token ", id, " was allowed and does not go on with the document"));
}

}  // namespace sator::json_schema
