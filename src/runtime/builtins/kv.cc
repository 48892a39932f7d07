#include "base/error.h"
#include "runtime/builtins/functions.h"
#include "runtime/kv_cache.h"

namespace sator::runtime::builtin {

namespace {

KVState& state(const Args& args) {
  auto* state = dynamic_cast<KVState*>(args[0].as_object());
  if (state == nullptr) args.fail_expected(0, "a KV cache");
  return *state;
}

PagedKVCache& cache(const Args& args) { return args.object<PagedKVCache>(0, "a paged KV cache"); }

}  // namespace

Value kv_cache_create(VirtualMachine& vm, const Args& args) {
  const Dims& sizes = args.shape(0).dims;
  if (sizes.size() != 4)
    args.fail_expected(0, "the shape (max_num_sequences, max_total_seq_len, prefill_chunk_size, page_size)");
  if (sizes[3] != PagedSequences::kPageSize)
    fail({.what = text("a KV cache with pages of ", sizes[3], " positions"),
          .needs = text("page_size = ", PagedSequences::kPageSize)});
  KVCacheConfig config{
      .max_num_sequences = sizes[0],
      .max_total_seq_len = sizes[1],
      .prefill_chunk_size = sizes[2],
      .num_layers = args.integer(1),
      .num_qo_heads = args.integer(2),
      .num_kv_heads = args.integer(3),
      .head_dim = args.integer(4),
      .dtype = args.dtype(7),
      .rope_scale = args.number(6),
  };
  auto tensor_or_nothing = [&](size_t i) { return args[i].is_null() ? Ref<Tensor>() : Ref<Tensor>(&args.tensor(i)); };
  config.rope_inv_freq = tensor_or_nothing(5);
  config.alibi_slopes = tensor_or_nothing(10);
  config.alibi_scale = args.number(11);
  config.alibi_dtype = args.dtype(12);
  config.window = args.integer(13);
  config.in_pairs = args.integer(14) != 0;
  std::vector<PagedKVCache::OtherLayers> others;
  for (size_t i = 15; i < args.size(); i += 6) {
    if (args.size() - i < 6)
      args.fail_expected(args.size() - 1,
                         "six arguments of other layers: rope_inv_freq, rope_scale, two kernels, window, the layers");
    others.push_back({tensor_or_nothing(i),
                      args.number(i + 1),
                      args.closure(i + 2).function,
                      args.closure(i + 3).function,
                      args.integer(i + 4),
                      args.shape(i + 5).dims});
    if (others.back().layers.size() == 0) args.fail_expected(i + 5, "the layers that have these, one or more");
  }
  return PagedKVCache::create(vm, config, args.closure(8).function, args.closure(9).function, others);
}

Value kv_state_clear(VirtualMachine&, const Args& args) { return state(args).clear(), Value(); }
Value kv_state_add_sequence(VirtualMachine&, const Args& args) {
  return state(args).add_sequence(args.integer(1)), Value();
}
Value kv_state_remove_sequence(VirtualMachine&, const Args& args) {
  return state(args).remove_sequence(args.integer(1)), Value();
}

Value kv_state_fork_sequence(VirtualMachine&, const Args& args) {
  state(args).fork_sequence(args.integer(1), args.integer(2), args.size() == 4 ? args.integer(3) : -1);
  return {};
}

Value kv_state_popn(VirtualMachine&, const Args& args) {
  return state(args).popn(args.integer(1), args.integer(2)), Value();
}

Value kv_state_begin_forward(VirtualMachine&, const Args& args) {
  state(args).begin_forward(args.shape(1).dims, args.shape(2).dims);
  return {};
}

Value kv_state_end_forward(VirtualMachine&, const Args& args) { return state(args).end_forward(), Value(); }

Value kv_attention_with_fused_qkv(VirtualMachine& vm, const Args& args) {
  const bool has_sinks = args.size() == 6;
  cache(args).attention_with_fused_qkv(
      vm, args.integer(1), args.number(2), args[3], args[has_sinks ? 5 : 4], has_sinks ? args[4] : Value());
  return {};
}

Value kv_get_query_positions(VirtualMachine&, const Args& args) { return cache(args).get_query_positions(); }
Value kv_get_num_available_pages(VirtualMachine&, const Args& args) { return cache(args).num_available_pages(); }
Value kv_get_total_sequence_length(VirtualMachine&, const Args& args) { return cache(args).total_sequence_length(); }

Value kv_debug_get_kv(VirtualMachine&, const Args& args) {
  PagedKVCache::KeysAndValues dense = cache(args).debug_get_kv(args.integer(1), args.integer(2), args.integer(3));
  return Tuple::of({dense.k, dense.v});
}

}  // namespace sator::runtime::builtin
