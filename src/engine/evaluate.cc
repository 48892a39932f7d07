#include "engine/evaluate.h"

#include <algorithm>
#include <chrono>

#include "engine/divergence.h"
#include "engine/sampling.h"

namespace sator {

/// Runs a window alone and calls visit(i, logits, target) for its i-th prediction.
template <class Visit>
static void each_prediction(Session& session, const Window& window, const Visit& visit) {
  session.reset();
  const auto ids = static_cast<int64_t>(window.ids.size());
  const int64_t first = ids - 1 - window.scored;  // position whose logits are of the first prediction
  session.append_all(window.ids, [&](int64_t at, std::span<const float> logits) {
    if (at >= first && at + 1 < ids) visit(at - first, logits, window.ids[static_cast<size_t>(at + 1)]);
  });
}

Perplexity evaluate_perplexity(Session& session, std::span<const Window> windows,
                               FunctionRef<void(int64_t done)> progress) {
  Perplexity result;
  for (const Window& window : windows) {
    double sum = 0;
    each_prediction(session, window, [&](int64_t, std::span<const float> logits, int32_t target) {
      sum += negative_log_likelihood(logits, target);
    });
    result.add_window(sum, window.scored);
    progress(result.windows());
  }
  return result;
}

namespace {

/// A reference's logits of the predictions of one window.
struct ReferenceWindow {
  std::vector<float> logits;  // [predictions, vocab]
  std::vector<Softmax> softmax;

  std::span<const float> row(size_t i) const {
    const size_t vocab = logits.size() / softmax.size();
    return {logits.data() + i * vocab, vocab};
  }
};

void add_reference(ComparedQuality& quality, Session& session, const Window& window, ReferenceWindow& reference) {
  const auto vocab = static_cast<size_t>(session.limits().vocab_size);
  reference.softmax.resize(static_cast<size_t>(window.scored));
  reference.logits.resize(reference.softmax.size() * vocab);
  double sum = 0;
  each_prediction(session, window, [&](int64_t i, std::span<const float> logits, int32_t target) {
    const auto at = static_cast<size_t>(i);
    std::copy(logits.begin(), logits.end(), reference.logits.begin() + static_cast<ptrdiff_t>(at * vocab));
    reference.softmax[at] = softmax_of(logits);
    sum += negative_log_likelihood(reference.softmax[at], logits, target);
  });
  quality.perplexity.add_window(sum, window.scored);
}

void add_compared(ComparedQuality& quality, Session& session, const Window& window, const ReferenceWindow& reference,
                  DivergenceMeter& meter) {
  double sum = 0, kl = 0;
  int64_t same = 0;
  each_prediction(session, window, [&](int64_t i, std::span<const float> logits, int32_t target) {
    const auto at = static_cast<size_t>(i);
    const Softmax softmax = softmax_of(logits);
    sum += negative_log_likelihood(softmax, logits, target);
    const Divergence d = meter.measure(reference.row(at), reference.softmax[at], logits, softmax);
    kl += d.kl;
    same += d.same_top;
  });
  quality.perplexity.add_window(sum, window.scored);
  quality.window_kl.push_back(kl / static_cast<double>(window.scored));
  quality.same_top += same;
}

}  // namespace

std::vector<ComparedQuality> compare_quality(std::span<Session> sessions, std::span<const Window> windows,
                                             FunctionRef<void(int64_t done)> progress,
                                             FunctionRef<void(size_t session)> failed) {
  std::vector<ComparedQuality> all(sessions.size());
  std::vector<bool> out(sessions.size());
  ReferenceWindow reference;
  DivergenceMeter meter;
  for (int64_t done = 0; const Window& window : windows) {
    add_reference(all[0], sessions[0], window, reference);
    for (size_t s = 1; s < sessions.size(); ++s) {
      if (out[s]) continue;
      try {
        add_compared(all[s], sessions[s], window, reference, meter);
      } catch (...) {
        out[s] = true;
        failed(s);
      }
    }
    progress(++done);
  }
  return all;
}

namespace {

std::vector<int32_t> random_ids(int64_t count, int64_t vocab, uint64_t seed) {
  Random random(seed);
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (int32_t& id : ids) id = static_cast<int32_t>(random.next() % static_cast<uint64_t>(vocab));
  return ids;
}

double seconds(FunctionRef<void()> work) {
  auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  size_t half = v.size() / 2;
  return v.size() % 2 ? v[half] : (v[half - 1] + v[half]) / 2;
}

}  // namespace

/// The median of the runs after the warm-up.
static double median_of_runs(const SpeedOptions& options, FunctionRef<double()> run) {
  if (options.warm_up) run();
  std::vector<double> speeds;
  for (int r = 0; r < options.repeats; ++r) speeds.push_back(run());
  return median(std::move(speeds));
}

double measure_prefill(Session& session, int64_t tokens, const SpeedOptions& options) {
  std::vector<int32_t> ids = random_ids(tokens, session.limits().vocab_size, options.seed);
  const double speed = median_of_runs(options, [&] {
    session.reset();
    return static_cast<double>(tokens) / seconds([&] { session.append(ids); });
  });
  session.reset();
  return speed;
}

double measure_decode(Session& session, int64_t context, int64_t steps, const SpeedOptions& options) {
  std::vector<int32_t> ids = random_ids(context + steps, session.limits().vocab_size, options.seed);
  session.reset();
  const double speed = median_of_runs(options, [&] {
    std::vector<double> each;
    const int64_t held = session.keep(context);
    if (held < context)
      session.append(std::span(ids).subspan(static_cast<size_t>(held), static_cast<size_t>(context - held)));
    for (int64_t i = 0; i < steps; ++i) {
      int32_t id = ids[static_cast<size_t>(context + i)];
      each.push_back(seconds([&] { session.append({&id, 1}); }));
    }
    return 1 / median(std::move(each));
  });
  session.reset();
  return speed;
}

}  // namespace sator
