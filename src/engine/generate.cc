#include "engine/generate.h"

#include <algorithm>

namespace sator {

StopReason generate(Session& session, std::span<const int32_t> prompt, const GenerateOptions& options,
                    FunctionRef<bool(int32_t id)> take) {
  Sampler sampler(options.sampling);
  std::span<const float> logits = session.append(prompt);
  for (int64_t i = 0; i < options.max_tokens; ++i) {
    int32_t id = sampler.sample(logits);
    if (std::find(options.stop_ids.begin(), options.stop_ids.end(), id) != options.stop_ids.end())
      return StopReason::stop_token;
    if (!take(id)) return StopReason::told;
    if (i + 1 == options.max_tokens) break;
    if (session.position() == session.limits().context_window) return StopReason::context_full;
    logits = session.append({&id, 1});
  }
  return StopReason::max_tokens;
}

}  // namespace sator
