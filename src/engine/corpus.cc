#include "engine/corpus.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace sator {

std::vector<std::string_view> works_of(std::string_view text) {
  constexpr std::string_view kSeparator = "<|endoftext|>";
  if (text.ends_with('\n')) text.remove_suffix(1);
  std::vector<std::string_view> works;
  size_t begin = 0;  // of the work
  auto add = [&](size_t end) {
    if (end > begin) works.push_back(text.substr(begin, end - begin));
  };
  for (size_t line = 0; line <= text.size();) {
    size_t end = std::min(text.find('\n', line), text.size());
    if (text.substr(line, end - line) == kSeparator) {
      add(line == begin ? begin : line - 1);  // without the newline before the separator
      begin = end + 1;
    }
    line = end + 1;
  }
  add(text.size());
  return works;
}

WorkMarks work_marks(const Tokenizer& tokenizer, std::optional<int32_t> end_of_text) {
  WorkMarks marks{tokenizer.ids_before(), tokenizer.ids_after()};
  if (tokenizer.eos_id()) end_of_text = tokenizer.eos_id();
  if (marks.after.empty() && end_of_text) marks.after.push_back(*end_of_text);
  return marks;
}

std::vector<int32_t> token_stream(const Tokenizer& tokenizer, std::string_view text, const WorkMarks& marks) {
  std::vector<int32_t> stream;
  for (std::string_view work : works_of(text)) {
    std::vector<int32_t> ids = tokenizer.encode(work);
    stream.insert(stream.end(), marks.before.begin(), marks.before.end());
    stream.insert(stream.end(), ids.begin(), ids.end());
    stream.insert(stream.end(), marks.after.begin(), marks.after.end());
  }
  return stream;
}

std::vector<std::span<const int32_t>> windows_of(std::span<const int32_t> stream, int64_t tokens,
                                                 std::optional<int64_t> limit) {
  if (tokens < 2)
    fail({.what = text("a window of ", tokens, " tokens predicts nothing"), .needs = "at least 2 tokens"});
  auto size = static_cast<size_t>(tokens);
  if (stream.size() < size)
    fail({.what = text("the text has ", stream.size(), " tokens, less than one window of ", tokens),
          .needs = text("a text of at least ", tokens, " tokens"),
          .hint = "use a longer text"});
  size_t count = stream.size() / size;
  if (limit) count = std::min(count, static_cast<size_t>(std::max<int64_t>(*limit, 0)));
  std::vector<std::span<const int32_t>> windows;
  for (size_t i = 0; i < count; ++i) windows.push_back(stream.subspan(i * size, size));
  return windows;
}

namespace {

// Four logits at a time: what every 64-bit machine has registers for. The order of the sums is part of the result.
constexpr size_t kLanes = 4;
typedef float Floats __attribute__((vector_size(kLanes * sizeof(float))));
typedef int32_t Ints __attribute__((vector_size(kLanes * sizeof(int32_t))));
typedef double Doubles __attribute__((vector_size(kLanes * sizeof(double))));

/// Adds exp(x - max) for x <= max, relative error below 2e-7; nothing where x - max is below -87.
inline void add_exp(const Floats& x, float max, Doubles& sums) {
  constexpr float kLowest = -87;
  Floats shifted = x - max;
  Floats clamped = shifted < kLowest ? Floats{} + kLowest : shifted;
  // Adding and taking off 1.5 * 2^23 rounds to the nearest integer.
  Floats n = (clamped * 1.44269504f + 12582912.0f) - 12582912.0f;
  // ln 2 in two parts: the first has few bits, so that n times it is exact.
  Floats r = (clamped - n * 0.693359375f) + n * 2.12194440e-4f;
  Floats p = r * 1.9875691e-4f + 1.3981999e-3f;
  p = p * r + 8.3334519e-3f;
  p = p * r + 4.1665796e-2f;
  p = p * r + 1.6666665e-1f;
  p = p * r + 5.0000001e-1f;
  p = p * r * r + r + 1.0f;
  Ints scale = (__builtin_convertvector(n, Ints) + 127) << 23;  // the bits of 2^n
  Floats exponential = p * std::bit_cast<Floats>(scale);
  sums += __builtin_convertvector(shifted < kLowest ? Floats{} : exponential, Doubles);
}

/// Calls `visit` with four logits at a time; behind the last one stand -infinities.
template <class Visit>
void each_lanes(std::span<const float> logits, const Visit& visit) {
  Floats lanes;
  size_t whole = logits.size() / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    std::memcpy(&lanes, logits.data() + i, sizeof lanes);
    visit(lanes);
  }
  if (whole == logits.size()) return;
  lanes = Floats{} - INFINITY;
  std::memcpy(&lanes, logits.data() + whole, (logits.size() - whole) * sizeof(float));
  visit(lanes);
}

}  // namespace

double negative_log_likelihood(std::span<const float> logits, int32_t target) {
  if (target < 0 || static_cast<size_t>(target) >= logits.size())
    fail({.what = text("token ", target, " is outside the model's vocabulary of ", logits.size()),
          .needs = "a tokenizer that belongs to the model",
          .hint = "check that tokenizer and weights come from the same folder"});
  Floats maxima = Floats{} - INFINITY;
  Ints nans = {};
  each_lanes(logits, [&](const Floats& x) {
    maxima = x > maxima ? x : maxima;
    nans |= x != x;
  });
  float max = -INFINITY;
  bool is_nan = false;
  for (size_t j = 0; j < kLanes; ++j) {
    max = std::max(max, maxima[j]);
    is_nan |= nans[j] != 0;
  }
  if (is_nan || !std::isfinite(max))
    fail({.what = is_nan ? "a logit is not a number" : text("the largest logit is ", max),
          .needs = "finite logits",
          .hint = "the model's arithmetic overflowed: check weights, dtype and scheme"});
  Doubles sums = {};
  each_lanes(logits, [&](const Floats& x) { add_exp(x, max, sums); });
  double sum = 0;
  for (size_t j = 0; j < kLanes; ++j) sum += sums[j];
  return std::log(sum) + (static_cast<double>(max) - static_cast<double>(logits[static_cast<size_t>(target)]));
}

void Perplexity::add_window(double negative_log_likelihood_sum, int64_t predictions) {
  if (predictions < 1) internal_error("a window without predictions");
  sum_ += negative_log_likelihood_sum;
  predictions_ += predictions;
  means_.push_back(negative_log_likelihood_sum / static_cast<double>(predictions));
}

double Perplexity::perplexity() const {
  if (means_.empty()) fail({.what = "there is no window to take the perplexity of", .needs = "at least one window"});
  return std::exp(mean());
}

double Perplexity::standard_error() const {
  if (means_.size() < 2) return 0;
  auto n = static_cast<double>(means_.size());
  double average = 0, squares = 0;
  for (double m : means_) average += m / n;
  for (double m : means_) squares += (m - average) * (m - average);
  return perplexity() * std::sqrt(squares / (n - 1) / n);
}

}  // namespace sator
