// Speculation without a second model: what a text has had before it may have again.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/session.h"

namespace sator {

/// The tokens that followed when the last tokens of a sequence stood in it before: behind the latest earlier occurrence of its last three tokens, else of its
/// last two. At most `most`; none where neither occurs.
/// Source: Saxena, "Prompt Lookup Decoding", 2023.
std::vector<int32_t> looked_up(std::span<const int32_t> sequence, int64_t most);

/// Runs a session some tokens ahead of a text and goes back where the text turns out otherwise. The logits are, bit for bit,
/// those of a run token by token (session.h).
class LookupRunner {
 public:
  ///   most  tokens of one proposal; 0 runs token by token
  LookupRunner(Session& session, int64_t most) : session_(session), most_(most) {}

  /// The logits behind a token that the text goes on with, [vocab]; until the next call.
  ///   sequence  the text up to that token, which is its last
  ///   left      how many tokens may follow it
  std::span<const float> after(std::span<const int32_t> sequence, int64_t left);
  /// Takes what the session has beyond the text off it.
  ///   id  the text's next token; nothing where it ends
  void settle(std::optional<int32_t> id);

  int64_t proposed() const { return proposed_; }
  int64_t accepted() const { return accepted_; }
  int64_t steps() const { return steps_; }

 private:
  Session& session_;
  int64_t most_;
  std::vector<int32_t> text_;      // what the session holds of the text
  std::vector<int32_t> proposal_;  // what is left of the last one, in the order of the text
  std::vector<float> rows_;        // logits of the last step, [ahead_ + 1, vocab]
  size_t row_ = 0, ahead_ = 0;     // the row that was handed out, and the last one
  int64_t proposed_ = 0, accepted_ = 0, steps_ = 0;
};

}  // namespace sator
