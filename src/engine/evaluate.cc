#include "engine/evaluate.h"

#include <algorithm>
#include <chrono>

#include "engine/sampling.h"

namespace sator {

Perplexity evaluate_perplexity(Session& session, std::span<const std::span<const int32_t>> windows,
                               FunctionRef<void(int64_t done)> progress) {
  Perplexity result;
  for (std::span<const int32_t> window : windows) {
    session.reset();
    double sum = 0;
    auto predicted = static_cast<int64_t>(window.size()) - 1;
    session.append_all(window, [&](int64_t i, std::span<const float> logits) {
      if (i < predicted) sum += negative_log_likelihood(logits, window[static_cast<size_t>(i + 1)]);
    });
    result.add_window(sum, predicted);
    progress(result.windows());
  }
  return result;
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

double measure_prefill(Session& session, int64_t tokens, const SpeedOptions& options) {
  std::vector<int32_t> ids = random_ids(tokens, session.limits().vocab_size, options.seed);
  std::vector<double> speeds;
  for (int r = 0; r <= options.repeats; ++r) {  // the first warms up
    session.reset();
    double s = seconds([&] { session.append(ids); });
    if (r > 0) speeds.push_back(static_cast<double>(tokens) / s);
  }
  session.reset();
  return median(std::move(speeds));
}

double measure_decode(Session& session, int64_t context, int64_t steps, const SpeedOptions& options) {
  std::vector<int32_t> ids = random_ids(context + steps, session.limits().vocab_size, options.seed);
  session.reset();
  session.append(std::span(ids).first(static_cast<size_t>(context)));
  std::vector<double> speeds;
  for (int r = 0; r <= options.repeats; ++r) {
    std::vector<double> each;
    for (int64_t i = 0; i < steps; ++i) {
      int32_t id = ids[static_cast<size_t>(context + i)];
      each.push_back(seconds([&] { session.append({&id, 1}); }));
    }
    session.drop(steps);
    if (r > 0) speeds.push_back(1 / median(std::move(each)));
  }
  session.reset();
  return median(std::move(speeds));
}

}  // namespace sator
