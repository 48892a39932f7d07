#include "engine/prompt_lookup.h"

#include <algorithm>

namespace sator {

std::vector<int32_t> looked_up(std::span<const int32_t> sequence, int64_t most) {
  for (const size_t n : {size_t{3}, size_t{2}}) {
    if (sequence.size() <= n) continue;
    const std::span<const int32_t> last = sequence.last(n);
    for (size_t begin = sequence.size() - n; begin-- > 0;) {
      if (!std::ranges::equal(sequence.subspan(begin, n), last)) continue;
      const std::span<const int32_t> behind = sequence.subspan(begin + n);
      const auto count = std::min(behind.size(), static_cast<size_t>(std::max<int64_t>(most, 0)));
      return {behind.begin(), behind.begin() + static_cast<ptrdiff_t>(count)};
    }
  }
  return {};
}

void LookupRunner::settle(std::optional<int32_t> id) {
  if (row_ == ahead_) return;  // nothing is ahead
  // proposal_ begins with the token whose logits are the next row.
  if (id && proposal_.front() == *id) return;
  const int64_t wanted = session_.position() - static_cast<int64_t>(ahead_ - row_);
  ahead_ = row_;
  proposal_.clear();
  if (session_.keep(wanted) == wanted) return;
  // Layers with a window had given back what is needed again: the text is read once more, which gives the same bits.
  session_.reset();
  if (wanted > 0) session_.append(std::span(text_).first(static_cast<size_t>(wanted)));
}

std::span<const float> LookupRunner::after(std::span<const int32_t> sequence, int64_t left) {
  const auto vocab = static_cast<size_t>(session_.limits().vocab_size);
  auto row = [&] { return std::span(rows_).subspan(row_ * vocab, vocab); };
  const int32_t id = sequence.back();
  settle(id);
  if (row_ < ahead_) {  // it was right
    proposal_.erase(proposal_.begin());
    ++row_, ++accepted_;
    text_.push_back(id);
    return row();
  }
  ++steps_;
  row_ = ahead_ = 0;
  if (most_ == 0) return session_.append({&id, 1});
  text_.assign(sequence.begin(), sequence.end());
  // What is left of a proposal that was right so far holds on.
  if (!proposal_.empty() && proposal_.front() == id)
    proposal_.erase(proposal_.begin());
  else
    proposal_.clear();
  if (proposal_.empty()) proposal_ = looked_up(sequence, most_);
  const int64_t room = std::min(left, session_.limits().context_window - session_.position() - 1);
  ahead_ = static_cast<size_t>(std::clamp<int64_t>(
      std::min<int64_t>(Session::kQuickStep - 1, std::ssize(proposal_)), 0, std::max<int64_t>(room, 0)));
  std::vector<int32_t> step = {id};
  step.insert(step.end(), proposal_.begin(), proposal_.begin() + static_cast<ptrdiff_t>(ahead_));
  proposed_ += static_cast<int64_t>(ahead_);
  rows_.resize(step.size() * vocab);
  if (ahead_ == 0) {
    const std::span<const float> logits = session_.append(step);
    std::ranges::copy(logits, rows_.begin());
    return row();
  }
  session_.append_all(step, [&](int64_t i, std::span<const float> logits) {
    std::ranges::copy(logits, rows_.begin() + i * static_cast<int64_t>(vocab));
  });
  return row();
}

}  // namespace sator
