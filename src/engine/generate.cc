#include "engine/generate.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "engine/prompt_lookup.h"

namespace sator {

/// Takes in the prompt, with what the model believed of each of its tokens; returns the logits of the last one.
static std::vector<float> read_with_logprobs(Session& session, std::span<const int32_t> prompt, int64_t best,
                                             std::vector<TokenLogprob>& out) {
  std::vector<float> last;
  session.append_all(prompt, [&](int64_t at, std::span<const float> logits) {
    const auto next = static_cast<size_t>(at) + 1;
    if (next < prompt.size())
      out.push_back(logprob_of(logits, prompt[next], best));
    else
      last.assign(logits.begin(), logits.end());
  });
  return last;
}

namespace {

bool has(std::span<const int32_t> ids, int32_t id) { return std::ranges::find(ids, id) != ids.end(); }

/// Draws of the tokens that may follow: those that the constraint allows, and those that end a text which is complete.
class ConstrainedText {
 public:
  ConstrainedText(TokenConstraint& constraint, std::span<const int32_t> stops, int64_t tokens, int64_t least)
      : constraint_(constraint), stops_(stops), missing_(least) {
    constraint_.restart(tokens, least);
  }
  int32_t next(FunctionRef<int32_t(std::span<const uint64_t> allowed)> draw) {
    for (;;)
      if (const int32_t id = draw(allowed()); has(stops_, id) || constraint_.take(id)) return --missing_, id;
  }
  bool is_over() const {
    return constraint_.is_complete() && ((stops_.empty() && missing_ <= 0) || !constraint_.can_go_on());
  }

 private:
  std::span<const uint64_t> allowed() {
    const std::span<const uint64_t> allowed = constraint_.allowed();
    mask_.assign(allowed.begin(), allowed.end());
    for (int32_t id : stops_)
      if (id >= 0 && static_cast<size_t>(id) / 64 < mask_.size()) {
        const uint64_t bit = uint64_t{1} << (id % 64);
        (mask_[static_cast<size_t>(id) / 64] |= bit) ^= constraint_.is_complete() ? 0 : bit;
      }
    return mask_;
  }

  TokenConstraint& constraint_;
  std::span<const int32_t> stops_;
  int64_t missing_;  // tokens before the text may end
  std::vector<uint64_t> mask_;
};

}  // namespace

Generated generate(Session& session, std::span<const int32_t> prompt, const GenerateOptions& options,
                   FunctionRef<bool(int32_t id)> take) {
  Generated done;
  Sampler sampler(options.sampling);
  std::vector<int32_t> sequence = options.before;
  sequence.insert(sequence.end(), prompt.begin(), prompt.end());
  const size_t begun = sequence.size();
  const int64_t begin = session.position();
  std::vector<float> kept;  // logits of the prompt's last token, where those of all its tokens were asked for
  auto timed = [](double& seconds, auto&& step) {
    const auto start = std::chrono::steady_clock::now();
    const std::span<const float> logits = step();
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return logits;
  };
  LookupRunner runner(session, options.prompt_lookup);
  auto ended = [&](StopReason reason) {
    runner.settle({});
    done.reason = reason;
    done.runs = runner.steps(), done.proposed = runner.proposed(), done.accepted = runner.accepted();
    return done;
  };
  std::optional<ConstrainedText> constrained;
  const int64_t room = session.limits().context_window - begin - std::ssize(prompt) + 1;
  if (options.constraint && room > 0)  // without room the prompt is refused
    constrained.emplace(*options.constraint,
                        options.stop_ids,
                        std::min(options.max_tokens, room),
                        options.sampling.least_tokens(static_cast<int64_t>(begun)));
  std::span<const float> logits = timed(done.prefill_s, [&]() -> std::span<const float> {
    if (!options.prompt_logprobs) return session.append(prompt);
    return kept = read_with_logprobs(session, prompt, *options.prompt_logprobs, done.prompt_logprobs);
  });
  for (int64_t i = 0; i < options.max_tokens; ++i) {
    auto draw = [&](std::span<const uint64_t> allowed) { return sampler.sample(logits, sequence, begun, allowed); };
    const int32_t id = constrained ? constrained->next(draw) : draw({});
    if (has(options.stop_ids, id)) return ended(StopReason::stop_token);
    if (options.logprobs) done.logprobs.push_back(logprob_of(logits, id, *options.logprobs));
    sequence.push_back(id);
    runner.settle(id);
    if (!take(id)) return ended(StopReason::told);
    if (constrained && constrained->is_over()) return ended(StopReason::complete);
    if (i + 1 == options.max_tokens) break;
    if (begin + std::ssize(sequence) - std::ssize(options.before) > session.limits().context_window)
      return ended(StopReason::context_full);
    logits = timed(done.decode_s, [&] { return runner.after(sequence, options.max_tokens - i - 2); });
    ++done.decode_steps;
  }
  return ended(StopReason::max_tokens);
}

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {
  for (const std::string& s : stops_)
    if (s.empty()) fail({.what = "a text ends before an empty text", .needs = "stop strings of one character or more"});
}

std::string StopStrings::push(std::string_view piece) {
  if (found_) return "";
  held_ += piece;
  // The first that is complete counts, of several that are so at once the one that begins first.
  std::pair<size_t, size_t> first(held_.npos, held_.npos);  // where it ends, where it begins
  for (const std::string& s : stops_)
    if (const size_t at = held_.find(s); at != held_.npos) first = std::min(first, {at + s.size(), at});
  if (first.first != held_.npos) {
    found_ = true;
    return held_.substr(0, first.second);
  }
  // The longest end that may be the beginning of a stop string waits.
  size_t waits = 0;
  for (const std::string& s : stops_)
    for (size_t n = std::min(s.size() - 1, held_.size()); n > waits; --n)
      if (held_.ends_with(std::string_view(s).substr(0, n))) waits = n;
  std::string out = held_.substr(0, held_.size() - waits);
  held_.erase(0, out.size());
  return out;
}

GeneratedText generate_text(Session& session, const Tokenizer& tokenizer, std::span<const int32_t> prompt,
                            const GenerateOptions& options, FunctionRef<bool(const std::string& piece)> take) {
  GeneratedText out;
  std::vector<int32_t> before = options.before;
  before.insert(before.end(), prompt.begin(), prompt.end());
  StreamDecoder decoder(tokenizer);
  decoder.begin_after(before);
  StopStrings stops(options.stop_strings);
  auto show = [&](const std::string& piece) {
    out.text += piece;
    return take(piece);
  };
  out.done = generate(session, prompt, options, [&](int32_t id) {
    out.ids.push_back(id);
    return show(stops.push(decoder.push(id))) && !stops.found();
  });
  if (!stops.found()) {
    std::string end = stops.push(decoder.finish());
    if (!stops.found()) end += stops.rest();
    show(end);
  }
  if (stops.found()) out.done.reason = StopReason::stop_string;
  if (const auto& c = options.constraint) {
    const bool is_cut = out.done.reason == StopReason::stop_string || out.done.reason == StopReason::told;
    out.is_whole = is_cut ? c->is_whole(out.text) : c->is_complete();
  }
  return out;
}

}  // namespace sator
