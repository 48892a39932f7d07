// A compiled model at work: tokens in, logits out.
#pragma once

#include <memory>
#include <span>

#include "base/function_ref.h"
#include "runtime/kv_cache.h"
#include "runtime/vm.h"

namespace sator {

/// What a compiled model says of itself (the metadata of its library).
struct ModelLimits {
  int64_t context_window = 0;  ///< positions of one sequence at most
  int64_t prefill_chunk = 0;   ///< tokens of one forward pass at most
  int64_t vocab_size = 0;
};

/// One sequence on one model. The model's program has these functions (n: tokens of the step):
///   create_kv_cache()                                  -> cache, with sequence 0 to be added
///   prefill(int32[n], cache, params)                   -> logits of the last token, float32[1, vocab]
///   decode(int32[1], cache, params)                    -> logits, float32[1, vocab]
///   verify(int32[n], cache, params)                    -> logits of every token, float32[n, vocab]
class Session {
 public:
  /// `params`: the tuple that transform_params has returned. Errors: the cache does not fit in memory.
  Session(std::shared_ptr<runtime::VirtualMachine> vm, runtime::Value params, ModelLimits limits);

  /// So many tokens in one step take little longer than one: products of up to 13 rows read their weights once. A step of any
  /// number of tokens gives each the logits, and leaves the cache with the keys and values, bit for bit, that steps of one
  /// token give.
  static constexpr int64_t kQuickStep = 13;

  /// The function of the program that appends so many tokens, at most a chunk, in one step.
  static const char* function_of(int64_t tokens) { return tokens == 1 ? "decode" : "prefill"; }

  const ModelLimits& limits() const { return limits_; }
  runtime::VirtualMachine& vm() { return *vm_; }
  /// Tokens in the sequence.
  int64_t position() const { return position_; }

  /// Appends tokens, in chunks, and returns the logits of the last one, [vocab] f32; they stay until the next call.
  /// Errors: no token; an id outside of the vocabulary; the sequence would exceed the context window.
  std::span<const float> append(std::span<const int32_t> ids);
  /// Appends tokens and hands out the logits of each, with its position in `ids`.
  void append_all(std::span<const int32_t> ids, FunctionRef<void(int64_t index, std::span<const float> logits)> take);
  /// Goes back to the first `length` tokens, at most those that there are; to none where layers with a window no longer hold what
  /// the next token would see. Returns how many it has now.
  int64_t keep(int64_t length);
  /// Forgets all tokens.
  void reset();

 private:
  runtime::PagedKVCache& cache();
  void check(std::span<const int32_t> ids) const;
  runtime::Value step(const char* function, std::span<const int32_t> ids);

  std::shared_ptr<runtime::VirtualMachine> vm_;
  runtime::Value params_, cache_, logits_;
  Ref<runtime::Tensor> one_token_;
  ModelLimits limits_;
  int64_t position_ = 0;
};

}  // namespace sator
