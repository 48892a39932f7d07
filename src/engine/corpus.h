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
//   2. the stream is cut into windows of 512 ids that do not overlap; an incomplete last one is dropped. `perplexity
//      --stride` has them overlap (windows_of)
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

/// Whether an end-of-text token that the tokenizer does not itself put there follows the last work too.
enum class TextEnd { marked, open };

/// The ids of all works with their marks, as one stream.
std::vector<int32_t> token_stream(const Tokenizer& tokenizer, std::string_view text, const WorkMarks& marks,
                                  TextEnd end = TextEnd::marked);

/// A window of a stream: run alone from position 0, and its last `scored` ids are predicted.
struct Window {
  std::span<const int32_t> ids;
  int64_t scored = 0;  ///< fewer than ids.size()
};

/// The windows of a stream, at most `limit` of them if that is given.
///   without a stride   windows beside each other, an incomplete last one dropped; of each all but the first id is scored
///   with a stride      each begins so many ids behind the one before, the last ends with the stream; an id is scored in the
///                      first window that has it with something before it, so once, with tokens - stride ids of context at
///                      least. As Hugging Face's page "Perplexity of fixed-length models" does it.
/// Errors: the stream is shorter than one window (with a stride: than 2 ids); `tokens` is below 2; the stride is not from 1
/// to `tokens`.
std::vector<Window> windows_of(std::span<const int32_t> stream, int64_t tokens = kWindowTokens,
                               std::optional<int64_t> limit = {}, std::optional<int64_t> stride = {});

/// Perplexity over windows.
class Perplexity {
 public:
  /// Adds a window whose `predictions` have the likelihoods' sum.
  void add_window(double negative_log_likelihood_sum, int64_t predictions);

  int64_t windows() const { return static_cast<int64_t>(windows_.size()); }
  int64_t predictions() const { return predictions_; }
  double mean() const { return sum_ / static_cast<double>(predictions_); }
  /// Of each window, nats per prediction.
  std::vector<double> window_means() const;
  /// exp(mean). Errors: no window was added.
  double perplexity() const;
  /// Of the perplexity, from the spread of the windows (tokens of one window are not independent). With sums s[w] of n[w]
  /// predictions in W windows: perplexity * sqrt(W / (W - 1) * sum((s[w] - mean * n[w])^2)) / sum(n[w]); for windows of one
  /// size this is perplexity * sd / sqrt(W). Nothing with fewer than two windows.
  /// Source: Cochran, "Sampling Techniques", 1977, section 6.4: the variance of a ratio.
  std::optional<double> standard_error() const;

 private:
  struct Sum {
    double sum = 0;
    int64_t predictions = 0;
  };
  double sum_ = 0;
  int64_t predictions_ = 0;
  std::vector<Sum> windows_;
};

}  // namespace sator
