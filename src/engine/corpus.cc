#include "engine/corpus.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/figures.h"

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

std::vector<int32_t> token_stream(const Tokenizer& tokenizer, std::string_view text, const WorkMarks& marks,
                                  TextEnd end) {
  std::vector<int32_t> stream;
  for (std::string_view work : works_of(text)) {
    std::vector<int32_t> ids = tokenizer.encode(work);
    stream.insert(stream.end(), marks.before.begin(), marks.before.end());
    stream.insert(stream.end(), ids.begin(), ids.end());
    stream.insert(stream.end(), marks.after.begin(), marks.after.end());
  }
  if (end == TextEnd::open && tokenizer.ids_after().empty() && !stream.empty())
    stream.resize(stream.size() - marks.after.size());
  return stream;
}

namespace {

std::vector<Window> windows_beside_each_other(std::span<const int32_t> stream, size_t size) {
  if (stream.size() < size)
    fail({.what = text("the text has ", counted(std::ssize(stream), "token"), ", less than one window of ", size),
          .needs = text("a text of at least ", size, " tokens"),
          .hint = "use a longer text"});
  std::vector<Window> windows;
  for (size_t i = 0; i < stream.size() / size; ++i)
    windows.push_back({stream.subspan(i * size, size), static_cast<int64_t>(size) - 1});
  return windows;
}

std::vector<Window> sliding_windows(std::span<const int32_t> stream, size_t size, size_t stride) {
  if (stream.size() < 2)
    fail({.what = text("the text has ", counted(std::ssize(stream), "token"), ", and nothing to predict"),
          .needs = "a text of at least 2 tokens",
          .hint = "use a longer text"});
  std::vector<Window> windows;
  size_t scored_to = 1;  // nothing stands before the first token
  for (size_t begin = 0; scored_to < stream.size(); begin += stride) {
    const size_t end = std::min(begin + size, stream.size());
    const size_t first = std::max(scored_to, begin + 1);  // of a window's tokens the first has no context
    if (first < end) windows.push_back({stream.subspan(begin, end - begin), static_cast<int64_t>(end - first)});
    scored_to = end;
  }
  return windows;
}

}  // namespace

std::vector<Window> windows_of(std::span<const int32_t> stream, int64_t tokens, std::optional<int64_t> limit,
                               std::optional<int64_t> stride) {
  if (tokens < 2)
    fail({.what = text("a window of ", counted(tokens, "token"), " predicts nothing"), .needs = "at least 2 tokens"});
  if (stride && (*stride < 1 || *stride > tokens))
    fail({.what = text("a stride of ", counted(*stride, "token"), " for windows of ", tokens),
          .needs = text("from 1 to ", tokens, ": every token is to be in a window"),
          .hint = "half of the window is usual"});
  const auto size = static_cast<size_t>(tokens);
  std::vector<Window> windows =
      stride ? sliding_windows(stream, size, static_cast<size_t>(*stride)) : windows_beside_each_other(stream, size);
  if (limit && windows.size() > static_cast<size_t>(std::max<int64_t>(*limit, 0)))
    windows.resize(static_cast<size_t>(std::max<int64_t>(*limit, 0)));
  return windows;
}

void Perplexity::add_window(double negative_log_likelihood_sum, int64_t predictions) {
  if (predictions < 1) internal_error("a window without predictions");
  sum_ += negative_log_likelihood_sum;
  predictions_ += predictions;
  windows_.push_back({negative_log_likelihood_sum, predictions});
}

double Perplexity::perplexity() const {
  if (windows_.empty()) fail({.what = "there is no window to take the perplexity of", .needs = "at least one window"});
  return std::exp(mean());
}

std::vector<double> Perplexity::window_means() const {
  std::vector<double> means;
  for (const Sum& w : windows_) means.push_back(w.sum / static_cast<double>(w.predictions));
  return means;
}

std::optional<double> Perplexity::standard_error() const {
  if (windows_.size() < 2) return {};
  const auto n = static_cast<double>(windows_.size());
  double squares = 0;
  for (const Sum& w : windows_) {
    const double off = w.sum - mean() * static_cast<double>(w.predictions);
    squares += off * off;
  }
  return perplexity() * std::sqrt(squares * n / (n - 1)) / static_cast<double>(predictions_);
}

}  // namespace sator
