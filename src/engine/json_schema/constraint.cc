#include "engine/json_schema/constraint.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/figures.h"
#include "engine/json_schema/completion.h"

namespace sator::json_schema {

static std::vector<std::string> token_bytes(const Tokenizer& tokenizer, int64_t vocab_size) {
  std::vector<std::string> bytes(static_cast<size_t>(vocab_size));
  for (int64_t id = 0; id < vocab_size; ++id)
    if (const auto token = static_cast<int32_t>(id); !tokenizer.is_special(token))
      bytes[static_cast<size_t>(id)] = tokenizer.bytes_of(token);
  return bytes;
}

JsonConstraint::JsonConstraint(std::shared_ptr<const Shapes> shapes, const Tokenizer& tokenizer, int64_t vocab_size)
    : place_(std::move(shapes)),
      masks_(token_bytes(tokenizer, vocab_size)),
      long_tokens_(masks_.trie(), masks_.all_bytes()) {
  mask_.resize(static_cast<size_t>(vocab_size + 63) / 64);
}

/// Whether what may follow adds nothing to a document: its end, whitespace, or further digits of a number.
static bool is_spent(const Automaton& place) {
  auto reads_number = [](const Automaton& a) {
    return std::ranges::any_of(a.tops(), [&](int32_t top) {
      return top != Automaton::kEnd && a.frame(top).kind == Automaton::Frame::Kind::number;
    });
  };
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    Automaton next = place;
    if (c == ' ' || c == '\t' || c == '\n' || !next.take({&c, 1})) continue;
    const bool ends = next.is_complete() && !next.can_go_on();
    if (!ends && !(reads_number(place) && reads_number(next))) return false;
  }
  return true;
}

void JsonConstraint::restart(int64_t tokens, int64_t least) {
  place_.restart();
  refused_.clear(), early_.clear(), over_.clear();
  may_end_ = false;
  tokens_left_ = tokens, missing_ = least;
  if (find_way(place_, tokens)) return;
  const Shapes& shapes = place_.shapes();
  fail({.what = text("the JSON document of the schema that has the fewest bytes, ",
                     shapes.least_bytes[static_cast<size_t>(shapes.root)],
                     ", does not fit into ",
                     counted(tokens, "token")),
        .needs = "as many tokens as that document takes, of a tokenizer that has all of its characters",
        .hint = "allow more tokens (--max-tokens, the model's context), or a shorter document (minLength, minItems)"});
}

bool JsonConstraint::can_go_on() const { return missing_ > 0 ? !is_spent(place_) : place_.can_go_on(); }

bool JsonConstraint::is_whole(std::string_view text) const {
  Automaton a = place_;
  a.restart();
  return a.take(text) && a.is_complete();
}

/// Whether a document can be completed from a place with so many tokens; how is kept.
bool JsonConstraint::find_way(const Automaton& from, int64_t tokens) {
  const std::optional<std::string> rest = completion_of(from, tokens * masks_.longest_token(), &long_tokens_);
  std::optional<std::vector<int32_t>> way = rest ? masks_.fewest_tokens(*rest) : std::nullopt;
  if (!way || std::ssize(*way) > tokens) return false;
  std::ranges::reverse(*way);
  way_ = std::move(*way);
  return true;
}

bool JsonConstraint::has_one_way() const {
  constexpr int64_t kMostRefused = 16;  // a model that will not end is not asked again
  return std::ssize(way_) == tokens_left_ || std::ssize(refused_) == kMostRefused;
}

std::span<const uint64_t> JsonConstraint::allowed() {
  constexpr int64_t kMostEarly = 64;  // nor one that only ends
  if (has_one_way()) {
    std::ranges::fill(mask_, 0);
    if (!way_.empty()) mask_[static_cast<size_t>(way_.back()) / 64] |= uint64_t{1} << (way_.back() % 64);
    return mask_;
  }
  std::ranges::copy(masks_.of(place_), mask_.begin());
  auto leave_out = [&](const std::vector<int32_t>& ids) {
    for (int32_t id : ids) mask_[static_cast<size_t>(id) / 64] &= ~(uint64_t{1} << (id % 64));
  };
  leave_out(refused_);
  leave_out(early_);
  if (std::ssize(early_) == kMostEarly || std::ranges::all_of(mask_, [](uint64_t bits) { return bits == 0; })) {
    may_end_ = true;
    const std::vector<int32_t> over = std::exchange(over_, {});
    const bool all_end = over.size() == early_.size();
    for (int32_t id : std::exchange(early_, {}))
      if (all_end || std::ranges::find(over, id) == over.end())  // first what has its end before it
        mask_[static_cast<size_t>(id) / 64] |= uint64_t{1} << (id % 64);
  }
  return mask_;
}

bool JsonConstraint::take(int32_t id) {
  Automaton next = place_;
  if (!next.take(masks_.bytes_of(id)))
    internal_error(text("token ", id, " was allowed and does not go on with the document"));
  if (missing_ > 1 && !may_end_ && !has_one_way() && is_spent(next) && !is_spent(place_)) {
    early_.push_back(id);
    if (next.is_complete()) over_.push_back(id);
    return false;
  }
  if (!way_.empty() && way_.back() == id) {
    way_.pop_back();
  } else if (!find_way(next, tokens_left_ - 1)) {
    refused_.push_back(id);
    return false;
  }
  place_ = std::move(next);
  --tokens_left_, --missing_;
  refused_.clear(), early_.clear(), over_.clear();
  may_end_ = false;
  return true;
}

}  // namespace sator::json_schema
