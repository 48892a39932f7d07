#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/tokenizer/tokenizer.h"

namespace sator {

// The protocol by which `sator perplexity` and the calibration of quantization read a text:
//   1. the text is cut into works; each is encoded as a whole; marks go around each; all ids form one stream
//   2. the stream is cut into windows of 512 ids that do not overlap; an incomplete last one is dropped
//   3. each window is run alone from position 0; its ids 2..512 are predicted
//   4. perplexity = exp(mean of -ln p over all predictions)

inline constexpr int64_t kWindowTokens = 512;

/// The works of a text: one newline at its end is stripped, lines that read `<|endoftext|>` separate. A text
/// without such lines is one work; empty works are left out.
std::vector<std::string_view> works_of(std::string_view text);

/// The ids around each work.
struct WorkMarks {
  std::vector<int32_t> before, after;
};

/// Before: what the post-processor puts before a text (Llama's <s>). After: what it puts after one, else the
/// end-of-text token: the tokenizer's, or the one given (config.json's) where the tokenizer names none.
WorkMarks work_marks(const Tokenizer& tokenizer, std::optional<int32_t> end_of_text = {});

/// The ids of all works with their marks, as one stream.
std::vector<int32_t> token_stream(const Tokenizer& tokenizer, std::string_view text, const WorkMarks& marks);

/// The whole windows of a stream, at most `limit` of them if that is given.
/// Errors: the stream is shorter than one window; `tokens` is below 2.
std::vector<std::span<const int32_t>> windows_of(std::span<const int32_t> stream, int64_t tokens = kWindowTokens,
                                                 std::optional<int64_t> limit = {});

/// -ln softmax(logits)[target].
///   logits  [vocab] f32
/// The exponentials have f32's precision, their sum is kept in f64 in an order that depends on the vocabulary
/// alone. Errors: target is outside the vocabulary; a logit is NaN or +infinity (an overflow of the model).
double negative_log_likelihood(std::span<const float> logits, int32_t target);

/// Perplexity over windows.
class Perplexity {
 public:
  /// Adds a window whose `predictions` have the likelihoods' sum.
  void add_window(double negative_log_likelihood_sum, int64_t predictions);

  int64_t windows() const { return static_cast<int64_t>(means_.size()); }
  int64_t predictions() const { return predictions_; }
  double mean() const { return sum_ / static_cast<double>(predictions_); }
  /// exp(mean). Errors: no window was added.
  double perplexity() const;
  /// Of the perplexity, from the spread of the windows' means (tokens of one window are not independent):
  /// perplexity * sd / sqrt(windows). 0 with fewer than two windows.
  double standard_error() const;

 private:
  double sum_ = 0;
  int64_t predictions_ = 0;
  std::vector<double> means_;
};

}  // namespace sator
