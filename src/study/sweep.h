// Batches and contexts beside the protocol's: what each costs, from the same program at other sizes.
#pragma once

#include "study/costing.h"
#include "study/links.h"
#include "study/sweep_axes.h"

namespace sator::study {

/// A launch of a step, and how many there are like it in all layers.
struct CountedCall {
  llm::KernelCall call;
  int64_t count = 1;
};

/// Steps of a program at any size. What a step launches does not depend on the tokens before it but in the sizes of
/// kernels that touch the KV cache, so the program is walked once per number of tokens. The calls of a step are valid until the
/// next step is asked for.
class Steps {
 public:
  ///   repeats  of the workload's program: launches of blocks count as often as these stand for others
  Steps(const llm::Workload& workload, const llm::Repeats& repeats) : workload_(workload), repeats_(repeats) {}

  /// The step that takes `tokens` of a prompt in, `context` with it.
  std::span<const CountedCall> prefill(int64_t tokens, int64_t context);

  /// Which tokens of a prompt the head sees.
  enum class Logits { last, all };

  /// That step for `batch` prompts at once, all equally long. Layers see the tokens of all prompts as rows of one product;
  /// attention is launched once for all of them, each with keys and values of its own.
  std::span<const CountedCall> prefill_of(int64_t batch, int64_t tokens, int64_t context, Logits logits = Logits::last);

  /// The step that appends one token to each of `batch` sequences, which then have `context` tokens. All layers but
  /// attention see the tokens as rows of one product; attention is launched once for all sequences.
  std::span<const CountedCall> decode(int64_t batch, int64_t context);

 private:
  struct Walked {
    std::vector<CountedCall> calls;
    std::vector<std::vector<std::string>> sizes_of_context;  // per call: its sizes that are the context
  };
  Walked& walked(const std::string& function, int64_t tokens);
  std::span<const CountedCall> at(const std::string& function, int64_t tokens, int64_t context);

  const llm::Workload& workload_;
  const llm::Repeats& repeats_;
  std::map<std::pair<std::string, int64_t>, Walked> walked_;
  std::vector<CountedCall> batched_;
};

/// The sum of a step's kernels, with what several chips send each other.
SweepCost step_cost(std::span<const CountedCall> calls, int64_t tokens, ChipCoster& coster, const Links& links);

/// All points, batch by batch. A batch of prompts is taken in one after the other, in steps of at most `chunk` tokens.
std::vector<SweepPoint> sweep_of(Steps& steps, int64_t chunk, const SweepAxes& axes, ChipCoster& coster,
                                 const Links& links);

/// A table per chip: a line per scheme, batch and context; empty without a sweep.
std::string sweep_table(const Study& study);

/// One line per scheme, chip, batch and context.
std::string sweep_csv(const Study& study);

}  // namespace sator::study
