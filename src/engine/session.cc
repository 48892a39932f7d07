#include "engine/session.h"

#include <algorithm>

#include "base/error.h"

namespace sator {

using runtime::Shape;
using runtime::Tensor;
using runtime::Value;

namespace {

constexpr int64_t kSequence = 0;

std::span<const float> row(const Value& logits, int64_t i, int64_t vocab) {
  const Tensor* t = logits.as<Tensor>();
  if (!t || t->dtype() != f32 || t->num_elements() < (i + 1) * vocab)
    internal_error(text("the model returned ", logits.describe(), " where logits were expected"));
  return {t->data_as<float>() + i * vocab, static_cast<size_t>(vocab)};
}

}  // namespace

Session::Session(std::shared_ptr<runtime::VirtualMachine> vm, Value params, ModelLimits limits)
    : vm_(std::move(vm)), params_(std::move(params)), one_token_(Tensor::empty({1}, i32)), limits_(limits) {
  cache_ = vm_->call("create_kv_cache", {});
  reset();
}

void Session::reset() {
  cache().clear();
  cache().add_sequence(kSequence);
  position_ = 0;
}

int64_t Session::keep(int64_t length) {
  length = std::min(length, position_);
  if (!cache().can_go_on_from(kSequence, length)) {
    reset();
    return 0;
  }
  cache().popn(kSequence, position_ - length);
  return position_ = length;
}

runtime::PagedKVCache& Session::cache() {
  auto* cache = cache_.as<runtime::PagedKVCache>();
  if (!cache) internal_error(text("create_kv_cache returned ", cache_.describe()));
  return *cache;
}

void Session::check(std::span<const int32_t> ids) const {
  if (ids.empty()) fail({.what = "there is no token to append", .needs = "one token or more", .hint = "give a prompt"});
  for (int32_t id : ids) {
    if (id < 0 || id >= limits_.vocab_size)
      fail({.what = text("token id ", id, " is outside of the vocabulary of ", limits_.vocab_size, " tokens"),
            .needs = "0 <= id < vocabulary size",
            .hint = "encode the text with the model's own tokenizer"});
  }
  int64_t total = position_ + static_cast<int64_t>(ids.size());
  if (total > limits_.context_window)
    fail({.what = text(total, " tokens do not fit into the context window of ", limits_.context_window),
          .needs = "prompt and generated tokens together within the context window",
          .hint = "shorten the prompt or generate fewer tokens"});
}

Value Session::step(const char* function, std::span<const int32_t> ids) {
  const int64_t sequence[] = {kSequence}, length[] = {static_cast<int64_t>(ids.size())};
  Ref<Tensor> tokens = ids.size() == 1 ? one_token_ : Tensor::empty({length[0]}, i32);
  std::copy(ids.begin(), ids.end(), tokens->data_as<int32_t>());
  cache().begin_forward(sequence, length);
  Value logits;
  try {
    logits = vm_->call(function, {tokens, cache_, params_});
  } catch (...) {  // the step did not happen
    cache().end_forward();
    cache().popn(kSequence, length[0]);
    throw;
  }
  cache().end_forward();
  position_ += length[0];
  return logits;
}

std::span<const float> Session::append(std::span<const int32_t> ids) {
  check(ids);
  while (!ids.empty()) {
    size_t n = std::min(ids.size(), static_cast<size_t>(limits_.prefill_chunk));
    logits_ = step(function_of(static_cast<int64_t>(n)), ids.first(n));
    ids = ids.subspan(n);
  }
  return row(logits_, 0, limits_.vocab_size);
}

void Session::append_all(std::span<const int32_t> ids,
                         FunctionRef<void(int64_t index, std::span<const float> logits)> take) {
  check(ids);
  for (int64_t done = 0; !ids.empty();) {
    size_t n = std::min(ids.size(), static_cast<size_t>(limits_.prefill_chunk));
    logits_ = step("verify", ids.first(n));
    for (size_t i = 0; i < n; ++i)
      take(done + static_cast<int64_t>(i), row(logits_, static_cast<int64_t>(i), limits_.vocab_size));
    done += static_cast<int64_t>(n);
    ids = ids.subspan(n);
  }
}

}  // namespace sator
