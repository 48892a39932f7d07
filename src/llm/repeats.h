// Blocks that are alike: a program whose costs alone are asked for has few of them in place of all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "frontend/model_config.h"

namespace sator::llm {

/// Which blocks of a model a program has, and for how many each stands. Where blocks of the same kinds follow each other again and
/// again, one repetition in the middle stands for all but the first and the last: these have other neighbours, with which their
/// kernels may be fused.
class Repeats {
 public:
  /// All blocks, each for itself.
  explicit Repeats(const ModelConfig& config);
  /// As few as stand for all. Blocks that differ in a constant (AttentionConfig::scale_by_layer) are all kept.
  static Repeats alike(const ModelConfig& config);

  /// Numbers of the blocks that the program has, in order.
  const std::vector<int64_t>& kept() const { return kept_; }
  /// How many blocks that of a number stands for.
  int64_t times(int64_t block) const;
  /// How many layers, or tensors, one of this name stands for: 1 outside of blocks.
  int64_t times(const std::string& name) const;

  /// Puts items that carry the name of their layer where the model has them: those of blocks which stand for others as often, with
  /// the others' names. Items of a program's function come in its order.
  template <class Item>
  void expand(std::vector<Item>& items, std::string Item::* layer) const {
    if (runs_.empty()) return;
    std::vector<Item> out;
    for (size_t i = 0; i < items.size();) {
      const Run* run = run_of(number_of(items[i].*layer));
      if (!run) {
        out.push_back(std::move(items[i++]));
        continue;
      }
      size_t end = i;  // of one repetition
      for (int64_t last = run->first; end < items.size(); ++end) {
        const int64_t number = number_of(items[end].*layer);
        if (run_of(number) != run || number < last) break;
        last = number;
      }
      for (int64_t time = 0; time < run->times; ++time)
        for (size_t item = i; item < end; ++item) {
          out.push_back(items[item]);
          out.back().*layer = moved(items[item].*layer, time * run->period);
        }
      i = end;
    }
    items = std::move(out);
  }

 private:
  /// Blocks first ... first + period - 1, which stand for `times` such repetitions, themselves the first of them.
  struct Run {
    int64_t first, period, times;
  };
  const Run* run_of(int64_t block) const;
  /// The number of the block that a layer is of; -1 outside of blocks.
  int64_t number_of(const std::string& layer) const;
  std::string moved(const std::string& layer, int64_t blocks) const;

  std::string block_;  ///< what names of blocks begin with: "model.layers."
  std::vector<int64_t> kept_;
  std::vector<Run> runs_;
};

}  // namespace sator::llm
