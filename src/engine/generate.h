#pragma once

#include "engine/sampling.h"
#include "engine/session.h"

namespace sator {

struct GenerateOptions {
  SamplingParams sampling;  ///< temperature 0 is greedy
  int64_t max_tokens = 128;
  std::vector<int32_t> stop_ids;     ///< generation ends before any of these
  std::vector<int32_t> before = {};  ///< what the session holds already: penalties look at it too
};

enum class StopReason { stop_token, max_tokens, context_full, told };

/// What a generation did and how long its two phases took. A decode step runs the model on one token.
struct Generated {
  StopReason reason = StopReason::max_tokens;
  double prefill_s = 0;  ///< the prompt
  int64_t decode_steps = 0;
  double decode_s = 0;  ///< the steps; not what sampling and showing text take
};

/// Continues the session's sequence by `prompt` and then by sampled tokens, each of which is handed out as it comes;
/// `take` returns false to stop. Errors: as of Session::append.
Generated generate(Session& session, std::span<const int32_t> prompt, const GenerateOptions& options,
                   FunctionRef<bool(int32_t id)> take);

}  // namespace sator
