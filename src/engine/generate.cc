#include "engine/generate.h"

#include <algorithm>
#include <chrono>

namespace sator {

Generated generate(Session& session, std::span<const int32_t> prompt, const GenerateOptions& options,
                   FunctionRef<bool(int32_t id)> take) {
  Generated done;
  Sampler sampler(options.sampling);
  std::vector<int32_t> sequence = options.before;
  sequence.insert(sequence.end(), prompt.begin(), prompt.end());
  auto timed = [&](std::span<const int32_t> ids, double& seconds) {
    const auto start = std::chrono::steady_clock::now();
    const std::span<const float> logits = session.append(ids);
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return logits;
  };
  auto ended = [&](StopReason reason) {
    done.reason = reason;
    return done;
  };
  std::span<const float> logits = timed(prompt, done.prefill_s);
  for (int64_t i = 0; i < options.max_tokens; ++i) {
    int32_t id = sampler.sample(logits, sequence);
    if (std::find(options.stop_ids.begin(), options.stop_ids.end(), id) != options.stop_ids.end())
      return ended(StopReason::stop_token);
    if (!take(id)) return ended(StopReason::told);
    if (i + 1 == options.max_tokens) break;
    if (session.position() == session.limits().context_window) return ended(StopReason::context_full);
    sequence.push_back(id);
    logits = timed({&id, 1}, done.decode_s);
    ++done.decode_steps;
  }
  return ended(StopReason::max_tokens);
}

}  // namespace sator
