#include "llm/repeats.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <tuple>

#include "base/text.h"

namespace sator::llm {

namespace {

/// Blocks of one kind emit the same graph.
using BlockKind = std::tuple<bool, bool, bool>;

std::vector<BlockKind> kinds_of(const ModelConfig& config) {
  const AttentionConfig& a = config.attention;
  auto has = [](const std::vector<int64_t>& blocks, int64_t block) {
    return std::ranges::find(blocks, block) != blocks.end();
  };
  std::vector<BlockKind> kinds;
  for (int64_t b = 0; b < config.layers; ++b)
    kinds.emplace_back(config.has_experts(b), has(a.window_layers, b), has(a.unrotated_layers, b));
  return kinds;
}

/// How often the `period` kinds at `first` follow each other.
int64_t times_at(const std::vector<BlockKind>& kinds, size_t first, size_t period) {
  size_t end = first + period;
  while (end < kinds.size() && kinds[end] == kinds[end - period]) ++end;
  return static_cast<int64_t>((end - first) / period);
}

}  // namespace

Repeats::Repeats(const ModelConfig& config) : block_(config.names.block), kept_(static_cast<size_t>(config.layers)) {
  std::iota(kept_.begin(), kept_.end(), 0);
}

Repeats Repeats::alike(const ModelConfig& config) {
  Repeats out(config);
  if (config.attention.scale_by_layer) return out;
  out.kept_.clear();
  const std::vector<BlockKind> kinds = kinds_of(config);
  auto keep = [&](size_t first, size_t count) {
    for (size_t b = first; b < first + count; ++b) out.kept_.push_back(static_cast<int64_t>(b));
  };
  for (size_t b = 0; b < kinds.size();) {
    int64_t most = 0, times = 0;
    size_t period = 0;
    for (size_t p = 1; 4 * p <= kinds.size() - b; ++p) {
      const int64_t here = times_at(kinds, b, p), spared = (here - 3) * static_cast<int64_t>(p);
      if (spared > most) most = spared, period = p, times = here;
    }
    if (most == 0) {
      keep(b++, 1);
      continue;
    }
    keep(b, 2 * period);
    out.runs_.push_back({static_cast<int64_t>(b + period), static_cast<int64_t>(period), times - 2});
    const size_t last = b + static_cast<size_t>(times - 1) * period;
    keep(last, period);
    b = last + period;
  }
  return out;
}

const Repeats::Run* Repeats::run_of(int64_t block) const {
  const auto at =
      std::ranges::find_if(runs_, [&](const Run& r) { return block >= r.first && block < r.first + r.period; });
  return at == runs_.end() ? nullptr : &*at;
}

int64_t Repeats::times(int64_t block) const {
  const Run* run = run_of(block);
  return run ? run->times : 1;
}

int64_t Repeats::times(const std::string& name) const { return times(number_of(name)); }

int64_t Repeats::number_of(const std::string& layer) const {
  int64_t number = -1;
  if (layer.starts_with(block_)) std::from_chars(layer.data() + block_.size(), layer.data() + layer.size(), number);
  return number;
}

std::string Repeats::moved(const std::string& layer, int64_t blocks) const {
  const int64_t number = number_of(layer);
  return text(block_, number + blocks, layer.substr(block_.size() + std::to_string(number).size()));
}

}  // namespace sator::llm
