#pragma once

#include "engine/logprobs.h"
#include "engine/sampling.h"
#include "engine/session.h"
#include "engine/tokenizer/tokenizer.h"

namespace sator {

/// What a generated text must be, token by token (json_schema/constraint.h).
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;
  /// Begins a text of at most so many tokens, and of at least `least` where it can go on as long. Errors: no text has so few.
  virtual void restart(int64_t tokens, int64_t least) = 0;
  /// A bit for each token that may follow; until the next call.
  virtual std::span<const uint64_t> allowed() = 0;
  /// Goes on with an allowed token. False where the text could not be ended in time, or would end too early: the token is allowed no longer.
  virtual bool take(int32_t id) = 0;
  /// Whether the text may end here, and whether it may go on.
  virtual bool is_complete() const = 0;
  virtual bool can_go_on() const = 0;
  /// Whether a text is a whole one by itself: one that was cut off may be.
  virtual bool is_whole(std::string_view text) const = 0;
};

struct GenerateOptions {
  SamplingParams sampling;  ///< temperature 0 is greedy
  int64_t max_tokens = 128;
  std::vector<int32_t> stop_ids;               ///< generation ends before any of these
  std::vector<std::string> stop_strings = {};  ///< of generate_text: the text ends before any of these
  std::vector<int32_t> before = {};            ///< what the session holds already: penalties look at it too
  /// Of generated tokens and of the prompt's, their log-probabilities and those of so many of the likeliest tokens.
  std::optional<int64_t> logprobs = {}, prompt_logprobs = {};
  std::shared_ptr<TokenConstraint> constraint = {};  ///< null: any text
  int64_t prompt_lookup =
      0;  ///< tokens that are proposed at once from what the text had before (prompt_lookup.h); 0: none
};

enum class StopReason { stop_token, stop_string, max_tokens, context_full, told, complete };

/// What a generation did and how long its two phases took. A decode step takes in one token; with a lookup several of them may run at once.
struct Generated {
  StopReason reason = StopReason::max_tokens;
  double prefill_s = 0;  ///< the prompt
  int64_t decode_steps = 0;
  double decode_s = 0;                             ///< the steps; not what sampling and showing text take
  int64_t runs = 0;                                ///< of the model, for these steps
  int64_t proposed = 0, accepted = 0;              ///< tokens that a lookup proposed, and those of them that came
  std::vector<TokenLogprob> logprobs = {};         ///< if asked for: of each token that was handed out
  std::vector<TokenLogprob> prompt_logprobs = {};  ///< of the prompt's tokens from the second on
};

/// Continues the session's sequence by `prompt` and then by sampled tokens, each of which is handed out as it comes;
/// `take` returns false to stop. A text under a constraint ends as soon as it is complete and nothing may follow, or no stop token could end it.
/// Errors: as of Session::append.
Generated generate(Session& session, std::span<const int32_t> prompt, const GenerateOptions& options,
                   FunctionRef<bool(int32_t id)> take);

/// Cuts a text that comes in pieces before the first of some strings. What may be the beginning of one waits.
class StopStrings {
 public:
  /// Errors: one of them is empty.
  explicit StopStrings(std::vector<std::string> stops);
  /// What of the text so far is certain, and was not given out before.
  std::string push(std::string_view piece);
  /// Whether one has come: what follows it is no part of the text.
  bool found() const { return found_; }
  /// What waits, where no more text comes.
  std::string rest() { return std::exchange(held_, ""); }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

struct GeneratedText {
  Generated done;
  std::string text;
  std::vector<int32_t> ids;
  bool is_whole = true;  ///< false: the constraint wants more of it
};
/// The same as text, handed out token by token in whole characters, a piece may be empty; `take` returns false to stop it. A token with which a stop
/// string ends is among the ids. Errors: as of generate; an empty stop string.
GeneratedText generate_text(Session& session, const Tokenizer& tokenizer, std::span<const int32_t> prompt,
                            const GenerateOptions& options, FunctionRef<bool(const std::string& piece)> take);

}  // namespace sator
