#include "runtime/kv_cache.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "base/float16.h"
#include "runtime/memory.h"

namespace sator::runtime {

namespace {

constexpr int64_t kPage = PagedSequences::kPageSize;
constexpr int64_t kMaxSlots = (int64_t{1} << 31) - 1;  // slots are int32

[[noreturn]] void refuse(const std::string& what, std::string needs) {
  fail({.what = "KV cache: " + what, .needs = std::move(needs)});
}

// As many pages as the worst case takes in which each sequence leaves 15 positions of its last page empty.
int64_t pages_in_pool(const KVCacheConfig& c) {
  return (c.max_total_seq_len + (kPage - 1) * c.max_num_sequences) / kPage;
}

void check_config(const KVCacheConfig& c) {
  struct Size {
    const char* name;
    int64_t value;
  };
  for (Size size : {Size{"max_num_sequences", c.max_num_sequences},
                    Size{"max_total_seq_len", c.max_total_seq_len},
                    Size{"prefill_chunk_size", c.prefill_chunk_size},
                    Size{"num_layers", c.num_layers},
                    Size{"num_qo_heads", c.num_qo_heads},
                    Size{"num_kv_heads", c.num_kv_heads},
                    Size{"head_dim", c.head_dim}})
    if (size.value < 1 || size.value > (1 << 30)) refuse(text(size.name, " is ", size.value), "a size from 1 to 2^30");
  if (pages_in_pool(c) > kMaxSlots / kPage)
    refuse(text(pages_in_pool(c), " pages"), "fewer than 2^27 pages of 16 positions");
  if (c.num_qo_heads % c.num_kv_heads != 0)
    refuse(text(c.num_qo_heads, " query heads for ", c.num_kv_heads, " key heads"),
           "a number of query heads that the number of key heads divides");
  if (c.dtype != f32 && c.dtype != f16 && c.dtype != bf16)
    refuse(text("dtype ", c.dtype), "float32, float16 or bfloat16");
  if (c.in_pairs && c.head_dim % 2 != 0) refuse(text("pages in pairs for heads of ", c.head_dim), "an even head_dim");
  if (c.alibi_dtype != f32 && c.alibi_dtype != bf16)
    refuse(text("linear biases in ", c.alibi_dtype), "float32 or bfloat16");
  const Tensor* slopes = c.alibi_slopes.get();
  if (slopes && (slopes->dtype() != f32 || slopes->shape() != Dims{c.num_qo_heads}))
    refuse(text("alibi_slopes is a ", *slopes, " tensor for ", c.num_qo_heads, " heads"), "float32[num_qo_heads]");
}

// [H, B]; null without slopes.
Value bias_table(const KVCacheConfig& c) {
  if (!c.alibi_slopes) return {};
  constexpr int64_t kBlock = 4 * kPage;
  const int64_t positions = (c.max_total_seq_len + kBlock - 1) / kBlock * kBlock;
  auto rounded = [&](float x) { return c.alibi_dtype == bf16 ? bf16_to_f32(f32_to_bf16(x)) : x; };
  Ref<Tensor> table = Tensor::empty(Dims{c.num_qo_heads, positions}, f32);
  float* to = table->data_as<float>();
  for (int64_t h = 0; h < c.num_qo_heads; ++h) {
    const float slope = rounded(c.alibi_slopes->data_as<const float>()[h]);
    for (int64_t p = 0; p < positions; ++p)
      *to++ = static_cast<float>(rounded(slope * rounded(static_cast<float>(p))) * c.alibi_scale);
  }
  return table;
}

bool has_sinks(const VirtualMachine& vm, int32_t index) {
  const auto& functions = vm.executable().functions;
  return index >= 0 && index < static_cast<int32_t>(functions.size()) &&
         std::ranges::any_of(
             functions[static_cast<size_t>(index)].kernel.params,
             [](const KernelParam& p) { return p.name == "sinks"; });
}

void check_kernel(const VirtualMachine& vm, int32_t index, const char* role, size_t num_params) {
  const auto& functions = vm.executable().functions;
  if (index < 0 || index >= static_cast<int32_t>(functions.size()))
    refuse(text(role, " is function ", index), "a function of the program");
  const FunctionInfo& f = functions[static_cast<size_t>(index)];
  if (f.kind != FunctionKind::kernel || f.kernel.params.size() != num_params)
    refuse(text(role, " is ", f.kind == FunctionKind::kernel ? describe_signature(f) : f.name),
           text("a kernel of ", num_params, " parameters, as kv_cache.h describes it"));
}

// The tensor as float32 of this shape; the very same value if it is so already.
Value as_rows(const Value& value, const char* name, const Dims& shape) {
  const Tensor* tensor = value.as<Tensor>();
  if (tensor == nullptr || tensor->dtype() != f32 || tensor->num_elements() != count_elements(shape))
    refuse(text(name, " of the attention is ", value.describe()), text("float32 with the elements of ", shape));
  return tensor->shape() == shape ? value : Value(tensor->reshaped(shape));
}

}  // namespace

void PagedKVCache::StepTensor::allocate(int64_t capacity) {
  Ref<Tensor> made = Tensor::empty(Dims{capacity}, i32);
  tensor = made.get();
  data = made->data_as<int32_t>();
  value = made;
}

void PagedKVCache::StepTensor::resize(int64_t extent) { tensor->show(tensor->storage(), 0, std::array{extent}); }

PagedKVCache::RopeTable::RopeTable(const KVCacheConfig& c, const Tensor& frequencies, double factor) : scale(factor) {
  if (frequencies.dtype() != f32 || frequencies.rank() != 1 || frequencies.dim(0) < 1 ||
      2 * frequencies.dim(0) > c.head_dim)
    refuse(text("rope_inv_freq is a ", frequencies, " tensor for heads of ", c.head_dim),
           "float32[R / 2] with 2 <= R <= head_dim");
  const auto* data = frequencies.data_as<const float>();
  inv_freq.assign(data, data + frequencies.dim(0));
  rows = Tensor::empty(Dims{c.max_total_seq_len, 2 * frequencies.dim(0)}, f32);
}

// The angle is rounded to float32 before its cosine is taken, as in the models' reference code; the cosine itself is computed
// in double.
void PagedKVCache::RopeTable::fill(int64_t positions) {
  const size_t half = inv_freq.size();
  float* row = rows.as<Tensor>()->data_as<float>() + static_cast<size_t>(filled) * 2 * half;
  for (; filled < positions; ++filled, row += 2 * half)
    for (size_t j = 0; j < half; ++j) {
      const double angle = static_cast<float>(filled) * inv_freq[j];
      row[j] = static_cast<float>(std::cos(angle) * scale);
      row[half + j] = static_cast<float>(std::sin(angle) * scale);
    }
}

PagedKVCache::Pool::Pool(const KVCacheConfig& c, int64_t w)
    : window(w),
      num_pages(std::min(pages_in_pool(c), c.max_num_sequences * PagedSequences::most_pages(c.max_total_seq_len, w,
                                                                                            c.prefill_chunk_size))),
      sequences(num_pages, c.max_num_sequences, c.max_total_seq_len, w) {
  slots.allocate(c.prefill_chunk_size);
  page_indptr.allocate(c.max_num_sequences + 1);
  page_table.allocate(c.max_num_sequences * std::min(PagedSequences::pages_for(c.max_total_seq_len), pages_in_pool(c)));
}

PagedKVCache::PagedKVCache(const KVCacheConfig& config)
    : config_(config), layers_(static_cast<size_t>(config.num_layers)) {
  bias_ = bias_table(config);
  for (StepTensor* per_token : {&positions_, &token_seq_}) per_token->allocate(config.prefill_chunk_size);
  kv_lengths_.allocate(config.max_num_sequences);
  q_indptr_.allocate(config.max_num_sequences + 1);
}

size_t PagedKVCache::pool_of(int64_t window) {
  if (window < 0)
    refuse(text("a window of ", window, " positions"), "a window of at least one, or 0 for all positions");
  if (window >= config_.max_total_seq_len) window = 0;
  const auto at = std::ranges::find(pools_, window, &Pool::window);
  if (at != pools_.end()) return static_cast<size_t>(at - pools_.begin());
  pools_.emplace_back(config_, window);
  return pools_.size() - 1;
}

template <class F>
void PagedKVCache::for_each_page_tensor(const Pool& pool, F&& visit) const {
  for (const Layer& layer : layers_)
    if (&pools_[layer.pool] == &pool)
      for (const Value* pages : {&layer.k_pages, &layer.v_pages}) {
        const Tensor& tensor = *pages->as<Tensor>();
        visit(tensor.data_as<char>(), static_cast<size_t>(tensor.size_bytes() / pool.num_pages));
      }
}

Ref<PagedKVCache> PagedKVCache::create(VirtualMachine& vm, const KVCacheConfig& config, int32_t kv_append,
                                       int32_t attention, const std::vector<OtherLayers>& others) {
  check_config(config);
  Ref<PagedKVCache> cache(new PagedKVCache(config));
  cache->assign(vm, {config.rope_inv_freq, config.rope_scale, kv_append, attention, config.window, {}});
  for (const OtherLayers& other : others) {
    for (int64_t layer : other.layers)
      if (layer < 0 || layer >= config.num_layers)
        refuse(text("another attention of layer ", layer), text("a layer below ", config.num_layers));
    cache->assign(vm, other);
  }
  cache->allocate_pages();
  return cache;
}

// The pages of all layers lie in one storage: those of a layer alone are often too few for the system's huge pages.
void PagedKVCache::allocate_pages() {
  constexpr int64_t kMost = int64_t{1} << 62;
  const int64_t heads = config_.num_kv_heads, dim = config_.head_dim;
  auto for_each_tensor = [&](auto&& visit) {
    for (Layer& layer : layers_) {
      const int64_t pages = pools_[layer.pool].num_pages;
      visit(layer.k_pages, config_.in_pairs ? Dims{pages, heads, dim / 2, kPage, 2} : Dims{pages, heads, dim, kPage});
      visit(layer.v_pages, config_.in_pairs ? Dims{pages, heads, kPage / 2, dim, 2} : Dims{pages, heads, kPage, dim});
    }
  };
  auto bytes_of = [&](const Dims& shape) {
    const int64_t bytes = std::min(Tensor::bytes_of(shape, config_.dtype).value_or(kMost), kMost);
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  };
  int64_t total = 0, offset = 0;
  for_each_tensor([&](Value&, const Dims& shape) { total = std::min(total + bytes_of(shape), kMost); });
  const Ref<Storage> storage = Storage::allocate(total);
  for_each_tensor([&](Value& tensor, const Dims& shape) {
    tensor = Tensor::view(storage, offset, shape, config_.dtype);
    offset += bytes_of(shape);
  });
}

void PagedKVCache::assign(const VirtualMachine& vm, const OtherLayers& to) {
  const KVCacheConfig& c = config_;
  Value rope;
  if (to.rope_inv_freq) rope = rope_tables_.emplace_back(c, *to.rope_inv_freq, to.rope_scale).rows;
  check_kernel(vm, to.kv_append, "kv_append", to.rope_inv_freq ? 7 : 4);
  const bool sinks = has_sinks(vm, to.attention);
  check_kernel(vm, to.attention, "attention", c.alibi_slopes || sinks ? 12 : 11);
  const size_t pool = pool_of(to.window);
  auto set = [&](Layer& layer) {
    layer.rope = rope, layer.kv_append = to.kv_append, layer.attention = to.attention, layer.sinks = sinks;
    layer.pool = pool;
  };
  if (to.layers.size() == 0) std::ranges::for_each(layers_, set);
  for (int64_t layer : to.layers) set(layers_[static_cast<size_t>(layer)]);
  if (!to.rope_inv_freq || rotated_q_tensor_) return;
  rotated_q_ = Tensor::empty(Dims{c.prefill_chunk_size, c.num_qo_heads, c.head_dim}, f32);
  rotated_q_tensor_ = rotated_q_.as<Tensor>();
}

int64_t PagedKVCache::size_bytes() const {
  int64_t bytes = 0;
  for (const Layer& layer : layers_)
    for (const Value* pages : {&layer.k_pages, &layer.v_pages}) bytes += pages->as<Tensor>()->size_bytes();
  return bytes;
}

void PagedKVCache::require_no_step(const char* what) const {
  if (in_step_) refuse(text(what, " while a step is open"), "end_forward first");
}

void PagedKVCache::require_step(const char* what) const {
  if (!in_step_) refuse(text(what, " outside of a step"), "begin_forward first");
}

int64_t PagedKVCache::num_available_pages() const {
  int64_t least = INT64_MAX;
  for (const Pool& pool : pools_) least = std::min(least, pool.sequences.num_available_pages());
  return least;
}

bool PagedKVCache::can_go_on_from(int64_t id, int64_t length) const {
  return std::ranges::all_of(pools_, [&](const Pool& pool) { return pool.sequences.can_go_on_from(id, length); });
}

void PagedKVCache::clear() {
  for (Pool& pool : pools_) pool.sequences.clear();
  in_step_ = false;
}

void PagedKVCache::add_sequence(int64_t id) {
  require_no_step("add_sequence");
  for (Pool& pool : pools_) pool.sequences.add(id);
}

void PagedKVCache::remove_sequence(int64_t id) {
  require_no_step("remove_sequence");
  for (Pool& pool : pools_) pool.sequences.remove(id);
}

void PagedKVCache::fork_sequence(int64_t parent, int64_t child, int64_t position) {
  require_no_step("fork_sequence");
  for (Pool& pool : pools_) pool.sequences.require_can_go_on_from(parent, position);
  for (Pool& pool : pools_) pool.sequences.fork(parent, child, position);
}

void PagedKVCache::popn(int64_t id, int64_t n) {
  require_no_step("popn");
  for (Pool& pool : pools_) pool.sequences.require_can_go_on_from(id, sequence_length(id) - n);
  for (Pool& pool : pools_) pool.sequences.popn(id, n);
}

void PagedKVCache::begin_forward(std::span<const int64_t> ids, std::span<const int64_t> append_lengths) {
  require_no_step("begin_forward");
  if (ids.size() != append_lengths.size() || ids.empty())
    refuse(text(ids.size(), " sequences and ", append_lengths.size(), " lengths"),
           "one length for each of at least one sequence");
  int64_t tokens = 0;
  for (int64_t length : append_lengths) {
    if (length < 0 || length > config_.prefill_chunk_size - tokens)
      refuse(text("a step of ", length, " tokens after ", tokens, " others"),
             text("lengths >= 0, together at most ", config_.prefill_chunk_size, ", prefill_chunk_size"));
    tokens += length;
  }
  if (tokens == 0) refuse("a step without tokens", "at least one token");
  for (Pool& pool : pools_) pool.sequences.require_room(ids, append_lengths);
  for (Pool& pool : pools_) {
    const PagedSequences::Growth growth = pool.sequences.extend(ids, append_lengths);
    for_each_page_tensor(pool, [&](char* pages, size_t page_bytes) {
      auto at = [&](int32_t page) { return pages + static_cast<size_t>(page) * page_bytes; };
      for (auto [from, to] : growth.copies) std::memcpy(at(to), at(from), page_bytes);
      for (int32_t page : growth.fresh) std::memset(at(page), 0, page_bytes);
    });
  }
  num_tokens_ = tokens;
  fill_step(ids, append_lengths);
  in_step_ = true;
}

void PagedKVCache::Pool::fill_step(std::span<const int64_t> ids, std::span<const int64_t> append_lengths) {
  int32_t token = 0, entry = 0;
  page_indptr.data[0] = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    const int64_t length = sequences.length(ids[i]);
    const std::span<const int32_t> pages = sequences.pages(ids[i]);
    for (int64_t position = length - append_lengths[i]; position < length; ++position)
      slots.data[token++] =
          static_cast<int32_t>(pages[static_cast<size_t>(position / kPage)] * kPage + position % kPage);
    for (int32_t page : pages) page_table.data[entry++] = std::max(page, 0);
    page_indptr.data[i + 1] = entry;
  }
  slots.resize(token);
  page_indptr.resize(static_cast<int64_t>(ids.size()) + 1);
  page_table.resize(entry);
}

void PagedKVCache::fill_step(std::span<const int64_t> ids, std::span<const int64_t> append_lengths) {
  for (Pool& pool : pools_) pool.fill_step(ids, append_lengths);
  auto num_sequences = static_cast<int64_t>(ids.size());
  int32_t token = 0;
  longest_ = scores_ = 0;
  q_indptr_.data[0] = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    const int64_t length = sequences().length(ids[i]);
    for (int64_t position = length - append_lengths[i]; position < length; ++position, ++token) {
      positions_.data[token] = static_cast<int32_t>(position);
      token_seq_.data[token] = static_cast<int32_t>(i);
      scores_ += position + 1;
    }
    q_indptr_.data[i + 1] = token;
    kv_lengths_.data[i] = static_cast<int32_t>(length);
    longest_ = std::max(longest_, length);
  }
  for (RopeTable& table : rope_tables_) table.fill(longest_);
  for (StepTensor* per_token : {&positions_, &token_seq_}) per_token->resize(num_tokens_);
  kv_lengths_.resize(num_sequences);
  q_indptr_.resize(num_sequences + 1);
  if (rotated_q_tensor_)
    rotated_q_tensor_->show(
        rotated_q_tensor_->storage(), 0, std::array{num_tokens_, config_.num_qo_heads, config_.head_dim});
}

void PagedKVCache::end_forward() {
  require_step("end_forward");
  in_step_ = false;
}

void PagedKVCache::attention_with_fused_qkv(VirtualMachine& vm, int64_t layer, double sm_scale, const Value& qkv,
                                            const Value& o, const Value& sinks) {
  require_step("attention");
  if (layer < 0 || layer >= config_.num_layers)
    refuse(text("attention of layer ", layer), text("a layer below ", config_.num_layers));
  const int64_t heads = config_.num_qo_heads, all_heads = heads + 2 * config_.num_kv_heads;
  Value qkv_rows = as_rows(qkv, "qkv", Dims{num_tokens_, all_heads, config_.head_dim});
  Value o_rows = as_rows(o, "o", Dims{num_tokens_, heads, config_.head_dim});
  const Layer& own = layers_[static_cast<size_t>(layer)];
  if (own.sinks == sinks.is_null())
    refuse(text("attention of layer ", layer, own.sinks ? " is given no sinks" : " is given sinks"),
           own.sinks ? "sinks, which its kernel takes" : "none, for its kernel takes none");
  const Pool& pool = pools_[own.pool];
  const Value &k = own.k_pages, &v = own.v_pages;
  const bool rotated = !own.rope.is_null();
  char where[32];
  std::snprintf(where, sizeof where, "layers.%d", static_cast<int>(layer));

  if (rotated) {
    const Value* append[] = {&qkv_rows, &positions_.value, &own.rope, &pool.slots.value, &rotated_q_, &k, &v};
    vm.call_kernel(own.kv_append, append, {}, where);
  } else {
    const Value* append[] = {&qkv_rows, &pool.slots.value, &k, &v};
    vm.call_kernel(own.kv_append, append, {}, where);
  }
  const Value scale = sm_scale;
  Value sinks_of_heads;
  std::array<const Value*, 13> attend = {rotated ? &rotated_q_ : &qkv_rows,
                                         &token_seq_.value,
                                         &positions_.value,
                                         &q_indptr_.value,
                                         &kv_lengths_.value,
                                         &pool.page_indptr.value,
                                         &pool.page_table.value,
                                         &k,
                                         &v};
  size_t count = 9;
  if (!bias_.is_null()) attend[count++] = &bias_;
  if (!sinks.is_null()) {
    sinks_of_heads = as_rows(sinks, "sinks", Dims{heads});
    attend[count++] = &sinks_of_heads;
  }
  attend[count++] = &o_rows;
  attend[count++] = &scale;
  const std::span<const Value* const> arguments(attend.data(), count);
  const std::array extra{VirtualMachine::Extra{"num_sequences", kv_lengths_.tensor->dim(0)},
                         VirtualMachine::Extra{"kv_len", longest_},
                         VirtualMachine::Extra{"scores", scores_}};
  vm.call_kernel(own.attention, arguments, extra, where);
}

Ref<Tensor> PagedKVCache::get_query_positions() const {
  require_step("get_query_positions");
  return Tensor::view(positions_.tensor->storage(), 0, Dims{num_tokens_}, i32);
}

PagedKVCache::KeysAndValues PagedKVCache::debug_get_kv(int64_t id, int64_t begin, int64_t end) const {
  if (begin < 0 || begin > end || end > sequence_length(id))
    refuse(text("positions ", begin, " to ", end, " of sequence ", id, " of length ", sequence_length(id)),
           "0 <= begin <= end <= length");
  for (const Pool& pool : pools_)
    if (begin < end && pool.sequences.pages(id)[static_cast<size_t>(begin / kPage)] < 0)
      refuse(text("position ", begin, " of sequence ", id, " was given back by layers with a window of ", pool.window),
             "positions that the next token sees");
  const int64_t heads = config_.num_kv_heads, dim = config_.head_dim;
  Dims shape{config_.num_layers, end - begin, heads, dim};
  KeysAndValues dense{Tensor::empty(shape, f32), Tensor::empty(shape, f32)};
  auto element = [&](const Value& tensor, int64_t index) {
    const Tensor& t = *tensor.as<Tensor>();
    if (t.dtype() == f16) return f16_to_f32(t.data_as<uint16_t>()[index]);
    return t.dtype() == bf16 ? bf16_to_f32(t.data_as<uint16_t>()[index]) : t.data_as<float>()[index];
  };
  // The place of element d at a position of the page, in a page's part of one head.
  const int64_t pair = config_.in_pairs ? 2 : 1;
  auto key = [&](int64_t d, int64_t offset) { return (d / pair * kPage + offset) * pair + d % pair; };
  auto value = [&](int64_t d, int64_t offset) { return (offset / pair * dim + d) * pair + offset % pair; };
  int64_t at = 0;
  for (const Layer& layer : layers_) {
    const std::span<const int32_t> pages = pools_[layer.pool].sequences.pages(id);
    for (int64_t position = begin; position < end; ++position) {
      int64_t page = pages[static_cast<size_t>(position / kPage)], offset = position % kPage;
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t d = 0; d < dim; ++d, ++at) {
          const int64_t part = (page * heads + h) * dim * kPage;
          dense.k->data_as<float>()[at] = element(layer.k_pages, part + key(d, offset));
          dense.v->data_as<float>()[at] = element(layer.v_pages, part + value(d, offset));
        }
    }
  }
  return dense;
}

}  // namespace sator::runtime
