#include "runtime/kv_cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <complex>
#include <fstream>
#include <map>
#include <memory>
#include <random>

#include "allocation_count.h"
#include "kv_kernels.h"

namespace sator::runtime {
namespace {

using testing::KVShape;

constexpr double kScale = 0.3;

// One sequence as a dense model keeps it: per layer and position, H + 2G rows of D numbers as they came.
using History = std::vector<std::vector<std::vector<float>>>;

// A cache and, beside it, the whole history of each sequence, from which attention is computed anew each time.
class Model {
 public:
  ///   unrotated  layers that have no rotary embedding
  ///   unbounded  layers that see all positions, where the shape has a window
  Model(const KVShape& shape, KVCacheConfig config, int threads = 1, const Dims& unrotated = {},
        const Dims& unbounded = {})
      : shape_(shape), unrotated_(unrotated), unbounded_(unbounded) {
    config.window = shape.window;
    config.num_qo_heads = shape.qo_heads;
    config.num_kv_heads = shape.kv_heads;
    config.head_dim = shape.dim;
    config.dtype = shape.dtype;
    config.in_pairs = shape.in_pairs;
    if (shape.rope > 0) {
      std::vector<float> inv_freq;
      for (int64_t j = 0; j < shape.rope / 2; ++j)
        inv_freq.push_back(
            static_cast<float>(std::pow(500.0, -2.0 * static_cast<double>(j) / static_cast<double>(shape.rope))));
      config.rope_inv_freq = Tensor::of<float>(inv_freq, Dims{shape.rope / 2}, f32);
    }
    if (shape.biased) {
      std::vector<float> slopes;
      for (int64_t h = 0; h < shape.qo_heads; ++h) slopes.push_back(0.7f / static_cast<float>(h + 2));
      config.alibi_slopes = Tensor::of<float>(slopes, Dims{shape.qo_heads}, f32);
    }
    config_ = config;
    ExecutableBuilder b;
    KernelTable table;
    testing::add_kv_kernels(b, table, shape);
    KVShape plain = shape;
    plain.rope = 0;
    if (unrotated.size() > 0) testing::add_kv_kernels(b, table, plain, "_plain");
    KVShape whole = shape;
    whole.window = 0;
    if (unbounded.size() > 0) testing::add_kv_kernels(b, table, whole, "_whole");
    vm = std::make_unique<VirtualMachine>(b.finish(), table, ThreadPool::create(threads));
    if (shape.sinks) {
      std::vector<float> scores;
      for (int64_t h = 0; h < shape.qo_heads; ++h) scores.push_back(1.5f - static_cast<float>(h));
      sinks = Tensor::of<float>(scores, Dims{shape.qo_heads}, f32);
    }
    auto kernel = [&](const char* name) { return vm->executable().find(name); };
    std::vector<PagedKVCache::OtherLayers> others;
    if (unrotated.size() > 0)
      others.push_back(
          {.kv_append = kernel("kv_append_plain"), .attention = kernel("attention_plain"), .layers = unrotated});
    if (unbounded.size() > 0)
      others.push_back({.rope_inv_freq = config.rope_inv_freq,
                        .kv_append = kernel("kv_append_whole"),
                        .attention = kernel("attention_whole"),
                        .layers = unbounded});
    cache = PagedKVCache::create(*vm, config, kernel("kv_append"), kernel("attention"), others);
  }

  void add(int64_t id) {
    cache->add_sequence(id);
    histories_[id] = History(static_cast<size_t>(config_.num_layers));
  }
  void fork(int64_t parent, int64_t child, int64_t position = -1) {
    cache->fork_sequence(parent, child, position);
    histories_[child] = histories_[parent];
    if (position >= 0)
      for (auto& layer : histories_[child]) layer.resize(static_cast<size_t>(position));
  }
  void popn(int64_t id, int64_t n) {
    cache->popn(id, n);
    for (auto& layer : histories_[id]) layer.resize(layer.size() - static_cast<size_t>(n));
  }
  void remove(int64_t id) {
    cache->remove_sequence(id);
    histories_.erase(id);
  }

  /// Runs one step with random numbers and returns the largest difference to dense attention over all layers.
  double step(const std::vector<int64_t>& ids, const std::vector<int64_t>& lengths) {
    cache->begin_forward(ids, lengths);
    int64_t n = 0;
    for (int64_t length : lengths) n += length;
    const int64_t rows = shape_.qo_heads + 2 * shape_.kv_heads;
    double worst = 0;
    for (int64_t layer = 0; layer < config_.num_layers; ++layer) {
      Ref<Tensor> qkv = Tensor::empty(Dims{n, rows, shape_.dim}, f32),
                  o = Tensor::empty(Dims{n, shape_.qo_heads, shape_.dim}, f32);
      for (int64_t i = 0; i < qkv->num_elements(); ++i) qkv->data_as<float>()[i] = normal_(random_);
      cache->attention_with_fused_qkv(*vm, layer, kScale, qkv, o, sinks ? Value(sinks) : Value());
      int64_t token = 0;
      for (size_t i = 0; i < ids.size(); ++i)
        for (int64_t j = 0; j < lengths[i]; ++j, ++token) {
          const float* row = qkv->data_as<float>() + token * rows * shape_.dim;
          auto& history = histories_[ids[i]][static_cast<size_t>(layer)];
          history.emplace_back(row, row + rows * shape_.dim);
          std::vector<double> expected = dense(history, layer);
          for (size_t e = 0; e < expected.size(); ++e)
            worst =
                std::max(worst,
                         std::abs(expected[e] -
                                  o->data_as<float>()[token * shape_.qo_heads * shape_.dim + static_cast<int64_t>(e)]));
        }
    }
    cache->end_forward();
    return worst;
  }

  std::unique_ptr<VirtualMachine> vm;
  Ref<PagedKVCache> cache;
  Ref<Tensor> sinks;  // null: none

 private:
  // Element d of a head after rotation by its position, through complex numbers: pairs (j, j + R/2) turn by the angle.
  double rotated(const float* head, int64_t d, int64_t position, int64_t layer) const {
    int64_t half = shape_.rope / 2;
    if (d >= shape_.rope || std::ranges::find(unrotated_, layer) != unrotated_.end()) return head[d];
    int64_t j = d % half;
    double inv_freq = config_.rope_inv_freq->data_as<float>()[j];
    std::complex<double> turned =
        std::complex<double>(head[j], head[j + half]) * std::polar(1.0, static_cast<double>(position) * inv_freq);
    return d < half ? turned.real() : turned.imag();
  }

  // What the pages can keep of a number.
  double kept(double x) const {
    uint32_t bits = 0;
    if (shape_.dtype == f32) return x;
    runtime::testing::store(&bits, shape_.dtype, 0, static_cast<float>(x));
    return runtime::testing::load(&bits, shape_.dtype, 0);
  }

  // What linear biases add to a score.
  double bias(int64_t h, int64_t position) const {
    if (!shape_.biased) return 0;
    auto rounded = [&](double x) {
      return config_.alibi_dtype == bf16 ? bf16_to_f32(f32_to_bf16(static_cast<float>(x))) : static_cast<float>(x);
    };
    const double slope = rounded(config_.alibi_slopes->data_as<float>()[h]);
    return rounded(slope * rounded(static_cast<double>(position))) * config_.alibi_scale;
  }

  // Attention of the last position over the whole history, in double: [H, D].
  std::vector<double> dense(const std::vector<std::vector<float>>& history, int64_t layer) const {
    auto last = static_cast<int64_t>(history.size()) - 1;
    std::vector<double> out(static_cast<size_t>(shape_.qo_heads * shape_.dim));
    for (int64_t h = 0; h < shape_.qo_heads; ++h) {
      int64_t g = h * shape_.kv_heads / shape_.qo_heads;
      std::vector<double> weights;
      const bool bounded = shape_.window > 0 && std::ranges::find(unbounded_, layer) == unbounded_.end();
      const int64_t first = bounded ? std::max<int64_t>(last + 1 - shape_.window, 0) : 0;
      for (int64_t p = 0; p <= last; ++p) {
        double dot = 0;
        for (int64_t d = 0; d < shape_.dim; ++d)
          dot +=
              rotated(history.back().data() + h * shape_.dim, d, last, layer) *
              kept(rotated(history[static_cast<size_t>(p)].data() + (shape_.qo_heads + g) * shape_.dim, d, p, layer));
        weights.push_back(p < first ? 0 : std::exp(dot * kScale + bias(h, p) - bias(h, last)));
      }
      double sum = sinks ? std::exp(static_cast<double>(sinks->data_as<float>()[h])) : 0;
      for (double w : weights) sum += w;
      for (int64_t p = 0; p <= last; ++p)
        for (int64_t d = 0; d < shape_.dim; ++d)
          out[static_cast<size_t>(h * shape_.dim + d)] +=
              weights[static_cast<size_t>(p)] / sum *
              kept(history[static_cast<size_t>(p)]
                          [static_cast<size_t>((shape_.qo_heads + shape_.kv_heads + g) * shape_.dim + d)]);
    }
    return out;
  }

  KVShape shape_;
  Dims unrotated_, unbounded_;
  KVCacheConfig config_;
  std::map<int64_t, History> histories_;
  std::mt19937 random_{7};
  std::normal_distribution<float> normal_;
};

KVCacheConfig sizes(int64_t sequences, int64_t total, int64_t chunk, int64_t layers = 2) {
  return {
      .max_num_sequences = sequences, .max_total_seq_len = total, .prefill_chunk_size = chunk, .num_layers = layers};
}

constexpr double kTolerance = 1e-5;  // f32 sums of 24 products of numbers of size 1, against double

class PagedAttention : public ::testing::TestWithParam<KVShape> {};

// Lengths around the page edges, in one prefill, in chunks, and token by token.
TEST_P(PagedAttention, EqualsDenseAttentionAtEveryLength) {
  for (int64_t length : {1, 2, 15, 16, 17, 33}) {
    Model m(GetParam(), sizes(1, 64, 64));
    m.add(5);
    EXPECT_LT(m.step({5}, {length}), kTolerance) << length;
    EXPECT_LT(m.step({5}, {3}), kTolerance) << length;
    EXPECT_LT(m.step({5}, {1}), kTolerance) << length;
    EXPECT_EQ(m.cache->total_sequence_length(), length + 4);
  }
}

TEST_P(PagedAttention, ServesSequencesOfDifferentLengthsTogether) {
  Model m(GetParam(), sizes(4, 200, 64));
  for (int64_t id : {10, 20, 30}) m.add(id);
  EXPECT_LT(m.step({10, 20}, {17, 3}), kTolerance);
  EXPECT_LT(m.step({30, 10, 20}, {16, 1, 14}), kTolerance);
  EXPECT_LT(m.step({20, 30, 10}, {1, 0, 40}), kTolerance);  // one of them rests
  for (int i = 0; i < 20; ++i) EXPECT_LT(m.step({10, 20, 30}, {1, 1, 1}), kTolerance);
}

TEST_P(PagedAttention, ForksShareUntilTheyWrite) {
  Model m(GetParam(), sizes(8, 256, 64));
  m.add(1);
  EXPECT_LT(m.step({1}, {21}), kTolerance);
  int64_t available = m.cache->num_available_pages();
  m.fork(1, 2);
  m.fork(1, 3, 18);  // in the middle of the second page
  m.fork(1, 4, 16);  // at a page's edge
  m.fork(1, 5, 0);
  EXPECT_EQ(m.cache->num_available_pages(), available);
  // 1, 2 and 3 write into the shared second page: two of them copy it, the last one keeps it. 4 and 5 begin new pages.
  EXPECT_LT(m.step({1, 2, 3, 4, 5}, {1, 1, 1, 1, 1}), kTolerance);
  EXPECT_EQ(m.cache->num_available_pages(), available - 4);
  for (int i = 0; i < 12; ++i) EXPECT_LT(m.step({5, 4, 3, 2, 1}, {1, 2, 1, 2, 1}), kTolerance);
  m.remove(1);
  EXPECT_LT(m.step({2, 3}, {1, 1}), kTolerance);
  for (int64_t id : {2, 3, 4, 5}) m.remove(id);
  EXPECT_EQ(m.cache->num_available_pages(), m.cache->num_pages());
}

TEST_P(PagedAttention, GoesOnFromWherePopnLeft) {
  Model m(GetParam(), sizes(2, 128, 64));
  m.add(1);
  EXPECT_LT(m.step({1}, {40}), kTolerance);
  m.fork(1, 2);
  m.popn(1, 5);  // within a shared page
  EXPECT_LT(m.step({1, 2}, {2, 2}), kTolerance);
  m.popn(1, 37);  // to nothing
  EXPECT_EQ(m.cache->sequence_length(1), 0);
  EXPECT_LT(m.step({1, 2}, {20, 1}), kTolerance);
  m.popn(2, 27);  // to a page's edge
  EXPECT_EQ(m.cache->sequence_length(2), 16);
  EXPECT_LT(m.step({2}, {1}), kTolerance);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, PagedAttention,
    ::testing::Values(KVShape{.qo_heads = 2, .kv_heads = 2, .dim = 24},
                      KVShape{.qo_heads = 6, .kv_heads = 2, .dim = 24, .rope = 24},
                      KVShape{.qo_heads = 3, .kv_heads = 1, .dim = 10, .rope = 4},
                      KVShape{.qo_heads = 4, .kv_heads = 2, .dim = 8, .dtype = f16},
                      KVShape{.qo_heads = 4, .kv_heads = 2, .dim = 8, .dtype = bf16},
                      KVShape{.qo_heads = 4, .kv_heads = 2, .dim = 8, .rope = 8, .dtype = f16},
                      KVShape{.qo_heads = 4, .kv_heads = 2, .dim = 8, .dtype = bf16, .in_pairs = true}),
    [](const auto& info) {
      const KVShape& s = info.param;
      return text('h', s.qo_heads, 'g', s.kv_heads, 'd', s.dim, 'r', s.rope, '_', s.dtype, s.in_pairs ? "_pairs" : "");
    });

// Random steps, forks, pops and removals; all sequences are checked against the dense model, and no page gets lost.
TEST(PagedKVCache, SurvivesARandomWorkload) {
  Model m({.qo_heads = 2, .kv_heads = 1, .dim = 4, .rope = 4}, sizes(6, 300, 40, 1));
  std::mt19937 random(3);
  std::map<int64_t, int64_t> lengths;
  int64_t next_id = 0;
  auto any = [&] { return std::next(lengths.begin(), static_cast<int64_t>(random() % lengths.size()))->first; };
  int steps = 0;
  for (int round = 0; round < 300; ++round) {
    uint32_t action = random() % 10;
    if (lengths.empty() || (action == 0 && lengths.size() < 6)) {
      m.add(next_id);
      lengths[next_id++] = 0;
    } else if (action == 1 && lengths.size() < 6) {
      int64_t parent = any(), position = static_cast<int64_t>(random() % static_cast<uint64_t>(lengths[parent] + 1));
      m.fork(parent, next_id, position);
      lengths[next_id++] = position;
    } else if (action == 2) {
      int64_t id = any(), n = static_cast<int64_t>(random() % static_cast<uint64_t>(lengths[id] + 1));
      m.popn(id, n);
      lengths[id] -= n;
    } else if (action == 3) {
      int64_t id = any();
      m.remove(id);
      lengths.erase(id);
    } else {
      std::vector<int64_t> ids, appended;
      for (auto& [id, length] : lengths)
        if (random() % 3 != 0 && length < 80) {
          ids.push_back(id);
          appended.push_back(1 + static_cast<int64_t>(random() % 5));
        }
      if (ids.empty()) continue;
      try {
        ASSERT_LT(m.step(ids, appended), kTolerance) << round;
        for (size_t i = 0; i < ids.size(); ++i) lengths[ids[i]] += appended[i];
        ++steps;
      } catch (const Error&) {
        ASSERT_LT(m.cache->num_available_pages(), 12) << "refused though pages were free";
      }
    }
  }
  EXPECT_GT(steps, 100);
  while (!lengths.empty()) {
    m.remove(lengths.begin()->first);
    lengths.erase(lengths.begin());
  }
  EXPECT_EQ(m.cache->num_available_pages(), m.cache->num_pages());
}

TEST(PagedKVCache, ThePoolHoldsTheWorstCase) {
  // 3 sequences of 17, 17 and 30 positions are 64 in all and need 2 pages each.
  Model m({.qo_heads = 1, .kv_heads = 1, .dim = 4}, sizes(3, 64, 64, 1));
  for (int64_t id : {0, 1, 2}) m.add(id);
  EXPECT_LT(m.step({0, 1, 2}, {17, 17, 30}), kTolerance);
  EXPECT_EQ(m.cache->num_pages(), 6);
}

// A page that held NaN is handed to another sequence, whose kernel loads all 16 positions of it.
TEST(PagedKVCache, HandsOutPagesWithoutNaN) {
  Model m({.qo_heads = 1, .kv_heads = 1, .dim = 4}, sizes(1, 32, 32, 1));
  m.add(1);
  m.cache->begin_forward(std::array<int64_t, 1>{1}, std::array<int64_t, 1>{32});
  Ref<Tensor> qkv = Tensor::empty(Dims{32, 3, 4}, f32), o = Tensor::empty(Dims{32, 1, 4}, f32);
  std::fill_n(qkv->data_as<float>(), qkv->num_elements(), NAN);
  m.cache->attention_with_fused_qkv(*m.vm, 0, kScale, qkv, o);
  m.cache->end_forward();
  m.remove(1);
  m.add(2);
  EXPECT_LT(m.step({2}, {1}), kTolerance);
  EXPECT_LT(m.step({2}, {17}), kTolerance);
}

TEST(PagedKVCache, ShowsItsContent) {
  Model m({.qo_heads = 2, .kv_heads = 2, .dim = 3, .dtype = f16}, sizes(1, 40, 40));
  m.add(1);
  std::array<int64_t, 1> id{1}, length{20};
  m.cache->begin_forward(id, length);
  Ref<Tensor> qkv = Tensor::empty(Dims{20, 6, 3}, f32), o = Tensor::empty(Dims{20, 2, 3}, f32);
  for (int64_t i = 0; i < 360; ++i) qkv->data_as<float>()[i] = static_cast<float>(i);
  m.cache->attention_with_fused_qkv(*m.vm, 1, kScale, qkv, o);
  m.cache->end_forward();
  auto [k, v] = m.cache->debug_get_kv(1, 15, 18);
  EXPECT_EQ(k->shape(), (Dims{2, 3, 2, 3}));
  for (int64_t p = 0; p < 3; ++p)
    for (int64_t g = 0; g < 2; ++g)
      for (int64_t d = 0; d < 3; ++d) {
        int64_t at = 18 + (p * 2 + g) * 3 + d;  // in layer 1
        EXPECT_EQ(k->data_as<float>()[at], static_cast<float>((15 + p) * 18 + (2 + g) * 3 + d));
        EXPECT_EQ(v->data_as<float>()[at], static_cast<float>((15 + p) * 18 + (4 + g) * 3 + d));
      }
  EXPECT_THROW(m.cache->debug_get_kv(1, 15, 21), Error);
}

TEST(PagedKVCache, ADecodeStepAllocatesNothing) {
  KVShape shape{.qo_heads = 4, .kv_heads = 2, .dim = 8, .rope = 8};
  for (bool rope : {false, true}) {
    shape.rope = rope ? 8 : 0;
    Model m(shape, sizes(2, 1000, 64, 3));
    m.add(1);
    m.add(2);
    m.step({1, 2}, {10, 3});
    Value qkv = Tensor::empty(Dims{2, 8, 8}, f32), o = Tensor::empty(Dims{2, 4, 8}, f32);
    std::fill_n(qkv.as<Tensor>()->data_as<float>(), 128, 0.5f);
    std::array<int64_t, 2> ids{1, 2}, lengths{1, 1};
    testing::start_counting_allocations();
    for (int step = 0; step < 100; ++step) {
      m.cache->begin_forward(ids, lengths);
      for (int64_t layer = 0; layer < 3; ++layer) m.cache->attention_with_fused_qkv(*m.vm, layer, kScale, qkv, o);
      m.cache->end_forward();
    }
    EXPECT_EQ(testing::stop_counting_allocations(), 0);
  }
}

TEST(PagedKVCache, RecordsItsKernelsWithWhatTheyAttendTo) {
  Model m({.qo_heads = 2, .kv_heads = 1, .dim = 4}, sizes(2, 64, 64));
  m.add(1);
  m.add(2);
  m.step({1}, {20});
  std::vector<CallRecord> records;
  m.vm->set_instrument([&](const CallRecord& r) { records.push_back(r); });
  m.step({1, 2}, {2, 3});
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[2].function, "kv_append");
  EXPECT_EQ(records[3].function, "attention");
  EXPECT_EQ(records[3].annotation, "layers.1");
  std::map<std::string, int64_t> values;
  for (const auto& v : records[3].values) values[v.name] = v.value;
  EXPECT_EQ(values["n"], 5);
  EXPECT_EQ(values["num_sequences"], 2);
  EXPECT_EQ(values["kv_len"], 22);
  EXPECT_EQ(values["scores"], 21 + 22 + 1 + 2 + 3);
}

std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.reason.what;
  }
  return "no error";
}

TEST(PagedKVCache, RefusesWhatItCannotDoAndStaysAsItWas) {
  Model m({.qo_heads = 1, .kv_heads = 1, .dim = 4}, sizes(2, 32, 20, 1));
  PagedKVCache& c = *m.cache;
  auto begin = [&](std::vector<int64_t> ids, std::vector<int64_t> lengths) {
    return refusal([&] { c.begin_forward(ids, lengths); });
  };
  m.add(1);
  m.add(2);
  m.step({1}, {20});
  EXPECT_EQ(refusal([&] { c.add_sequence(1); }), "the KV cache already has a sequence 1");
  EXPECT_EQ(refusal([&] { c.add_sequence(3); }), "the KV cache already holds 2 sequences");
  EXPECT_EQ(refusal([&] { c.remove_sequence(3); }), "the KV cache has no sequence 3");
  EXPECT_EQ(refusal([&] { c.fork_sequence(1, 2); }), "the KV cache already has a sequence 2");
  EXPECT_EQ(refusal([&] { c.popn(1, 21); }), "21 positions cannot be dropped from sequence 1 of length 20");
  EXPECT_EQ(begin({1}, {}), "KV cache: 1 sequences and 0 lengths");
  EXPECT_EQ(begin({1, 2}, {15, 6}), "KV cache: a step of 6 tokens after 15 others");
  EXPECT_EQ(begin({1}, {-1}), "KV cache: a step of -1 tokens after 0 others");
  EXPECT_EQ(begin({1}, {0}), "KV cache: a step without tokens");
  EXPECT_EQ(begin({2, 2}, {1, 1}), "sequence 2 is named twice in one step");
  EXPECT_EQ(begin({9}, {1}), "the KV cache has no sequence 9");
  EXPECT_EQ(begin({1}, {13}), "sequence 1 of length 20 cannot grow by 13");
  EXPECT_EQ(c.num_available_pages(), 1);
  EXPECT_EQ(begin({2}, {17}), "the step needs 2 pages of the KV cache, but 1 are free");
  EXPECT_EQ(c.sequence_length(2), 0);
  EXPECT_EQ(refusal([&] { c.end_forward(); }), "KV cache: end_forward outside of a step");
  Value qkv = Tensor::empty(Dims{1, 3, 4}, f32), o = Tensor::empty(Dims{1, 1, 4}, f32);
  auto attend = [&](int64_t layer, const Value& in, const Value& out) {
    return refusal([&] { c.attention_with_fused_qkv(*m.vm, layer, kScale, in, out); });
  };
  EXPECT_EQ(attend(0, qkv, o), "KV cache: attention outside of a step");
  c.begin_forward(std::array<int64_t, 1>{2}, std::array<int64_t, 1>{1});
  EXPECT_EQ(attend(1, qkv, o), "KV cache: attention of layer 1");
  EXPECT_EQ(attend(0, o, o), "KV cache: qkv of the attention is a float32[1, 1, 4] tensor");
  EXPECT_EQ(attend(0, qkv, Value()), "KV cache: o of the attention is nothing");
  EXPECT_EQ(refusal([&] { c.popn(1, 1); }), "KV cache: popn while a step is open");
  std::fill_n(qkv.as<Tensor>()->data_as<float>(), 12, 1.0f);
  Value flat_qkv = qkv.as<Tensor>()->reshaped(Dims{1, 1, 12}), flat_o = o.as<Tensor>()->reshaped(Dims{4});
  EXPECT_EQ(attend(0, flat_qkv, flat_o), "no error");  // any shape with the right elements
  EXPECT_EQ(o.as<Tensor>()->data_as<float>()[3], 1.0f);
  EXPECT_EQ(c.get_query_positions()->data_as<int32_t>()[0], 0);
  c.clear();
  EXPECT_EQ(c.num_available_pages(), c.num_pages());
}

// Of a head (1, 0), the rotated key is the cosine and the sine.
TEST(PagedKVCache, EveryPositionIsRotatedByTheSameBits) {
  const KVShape shape{.qo_heads = 1, .kv_heads = 1, .dim = 6, .rope = 6, .window = 90};
  KVCacheConfig config = sizes(2, 300, 50);
  config.rope_scale = 1.1;
  Model m(shape, config, 1, {}, {1});  // the other layer's scale is 1
  auto step = [&](std::vector<int64_t> ids, std::vector<int64_t> lengths) {
    m.cache->begin_forward(ids, lengths);
    const int64_t n = m.cache->get_query_positions()->dim(0);
    Ref<Tensor> qkv = Tensor::empty(Dims{n, 3, 6}, f32), o = Tensor::empty(Dims{n, 1, 6}, f32);
    for (int64_t i = 0; i < qkv->num_elements(); ++i) qkv->data_as<float>()[i] = i % 6 < 3 ? 1 : 0;
    for (int64_t layer : {0, 1}) m.cache->attention_with_fused_qkv(*m.vm, layer, kScale, qkv, o);
    m.cache->end_forward();
  };
  m.add(1);
  m.add(2);
  step({1}, {3});
  step({1, 2}, {1, 40});
  step({1}, {50});
  m.cache->popn(1, 30);
  step({1, 2}, {35, 1});
  const int64_t length = m.cache->sequence_length(1);
  ASSERT_EQ(length, 59);
  Ref<Tensor> keys = m.cache->debug_get_kv(1, 0, length).k;
  const auto* key = keys->data_as<const float>();
  for (double scale : {1.1, 1.0})
    for (int64_t position = 0; position < length; ++position, key += 6)
      for (int64_t j = 0; j < 3; ++j) {
        const auto inv_freq = static_cast<float>(std::pow(500.0, -2.0 * static_cast<double>(j) / 6));
        const double angle = static_cast<float>(position) * inv_freq;
        ASSERT_EQ(key[j], static_cast<float>(std::cos(angle) * scale)) << position;
        ASSERT_EQ(key[3 + j], static_cast<float>(std::sin(angle) * scale)) << position;
      }
}

int64_t resident_bytes() {
  int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// Pages and a rotary table for 8 million positions are 3 GB; what a sequence of 20 touches is little of it.
TEST(PagedKVCache, ALongContextTakesNoMemoryUntilItIsUsed) {
  const int64_t before = resident_bytes();
  Model m({.qo_heads = 1, .kv_heads = 1, .dim = 32, .rope = 32}, sizes(1, 8'000'000, 20, 1));
  m.add(1);
  EXPECT_LT(m.step({1}, {20}), kTolerance);
  EXPECT_LT(m.step({1}, {1}), kTolerance);
  EXPECT_LT(resident_bytes() - before, int64_t{64} << 20);
}

TEST(PagedKVCache, LayersThatAreNotRotated) {
  const KVShape shape{.qo_heads = 4, .kv_heads = 2, .dim = 8, .rope = 6};
  Model m(shape, sizes(1, 64, 32, 3), 1, {1});
  m.add(1);
  EXPECT_LT(m.step({1}, {20}), 1e-5);
  EXPECT_LT(m.step({1}, {1}), 1e-5);
  EXPECT_EQ(refusal([&] { Model(shape, sizes(1, 32, 32, 3), 1, {3}); }), "KV cache: another attention of layer 3");
}

// Layers that see a window keep the pages that it reaches, in blocks of 64 positions; the others keep all.
TEST(PagedKVCache, LayersWithAWindowGivePagesBack) {
  for (const Dims& unbounded : {Dims{}, Dims{1}}) {
    const KVShape shape{.qo_heads = 2, .kv_heads = 1, .dim = 4, .rope = 4, .window = 40};
    Model m(shape, sizes(2, 900, 50, 3), 1, {}, unbounded);
    // 39 positions before a step of 50 are 6 pages; up to 63 more and a page to copy are 5. All 900 positions of two sequences are 58 at most.
    const int64_t page_bytes = 2 * 4 * 16 * 4;
    const auto whole = static_cast<int64_t>(unbounded.size());
    EXPECT_EQ(m.cache->size_bytes(), page_bytes * (2 * 11 * (3 - whole) + 58 * whole));
    m.add(1);
    for (int i = 0; i < 9; ++i) ASSERT_LT(m.step({1}, {50}), kTolerance) << i;
    m.fork(1, 2);
    for (int i = 0; i < 70; ++i) ASSERT_LT(m.step({1, 2}, {1, 1}), kTolerance) << i;
    // The step that began at 519 gave back what lies before the block of 480: positions from 448 on are there.
    EXPECT_EQ(refusal([&] { m.cache->debug_get_kv(1, 447, 448); }),
              "KV cache: position 447 of sequence 1 was given back by layers with a window of 40");
    EXPECT_EQ(refusal([&] { m.cache->debug_get_kv(1, 448, 520); }), "no error");
    EXPECT_TRUE(m.cache->can_go_on_from(1, 487));
    EXPECT_FALSE(m.cache->can_go_on_from(1, 486));
    EXPECT_EQ(refusal([&] { m.popn(1, 520 - 486); }),
              "sequence 1 cannot go on from position 486: positions below 448 were given back");
    m.popn(1, 520 - 487);
    EXPECT_EQ(refusal([&] { m.fork(2, 3, 400); }),
              "sequence 2 cannot go on from position 400: positions below 448 were given back");
    ASSERT_LT(m.step({1, 2}, {1, 49}), kTolerance);
    ASSERT_LT(m.step({1}, {50}), kTolerance);
    m.remove(2);
    m.remove(1);
    m.add(4);
    ASSERT_LT(m.step({4}, {33}), kTolerance);
  }
}

// Positions beyond 256 are no numbers of bfloat16, nor are most products.
TEST(PagedKVCache, LinearBiases) {
  const KVShape shape{.qo_heads = 3, .kv_heads = 1, .dim = 8, .biased = true};
  for (DType dtype : {f32, bf16}) {
    KVCacheConfig config = sizes(1, 400, 290, 1);
    config.alibi_dtype = dtype;
    config.alibi_scale = dtype == bf16 ? 0.3 : 1;
    Model m(shape, config);
    m.add(1);
    EXPECT_LT(m.step({1}, {290}), 1e-4) << dtype.name();
    EXPECT_LT(m.step({1}, {1}), 1e-4) << dtype.name();
  }
  KVCacheConfig wrong = sizes(1, 32, 32);
  wrong.alibi_slopes = Tensor::of<float>({1, 2}, Dims{2}, f32);
  EXPECT_EQ(refusal([&] { Model({.qo_heads = 3, .kv_heads = 1, .dim = 8}, wrong); }),
            "KV cache: alibi_slopes is a float32[2] tensor for 3 heads");
  wrong = sizes(1, 32, 32);
  wrong.alibi_dtype = f16;
  EXPECT_EQ(refusal([&] { Model({.qo_heads = 3, .kv_heads = 1, .dim = 8}, wrong); }),
            "KV cache: linear biases in float16");
}

TEST(PagedKVCache, SinksJoinTheSoftmax) {
  for (int64_t rope : {0, 8}) {
    Model m({.qo_heads = 6, .kv_heads = 2, .dim = 8, .rope = rope, .sinks = true}, sizes(1, 64, 40));
    m.add(1);
    EXPECT_LT(m.step({1}, {33}), kTolerance);
    EXPECT_LT(m.step({1}, {1}), kTolerance);
  }
  Model m({.qo_heads = 6, .kv_heads = 2, .dim = 8, .sinks = true}, sizes(1, 64, 40));
  m.add(1);
  m.sinks = Tensor::of<float>({1, 2, 3}, Dims{3}, f32);
  EXPECT_EQ(refusal([&] { m.step({1}, {1}); }), "KV cache: sinks of the attention is a float32[3] tensor");
  Model without({.qo_heads = 6, .kv_heads = 2, .dim = 8, .sinks = true}, sizes(1, 64, 40));
  without.add(1);
  without.sinks = nullptr;
  EXPECT_EQ(refusal([&] { without.step({1}, {1}); }), "KV cache: attention of layer 0 is given no sinks");
  Model plain({.qo_heads = 6, .kv_heads = 2, .dim = 8}, sizes(1, 64, 40));
  plain.add(1);
  plain.sinks = m.sinks;
  EXPECT_EQ(refusal([&] { plain.step({1}, {1}); }), "KV cache: attention of layer 0 is given sinks");
}

TEST(PagedKVCache, RefusesConfigurationsThatDoNotFit) {
  KVShape shape{.qo_heads = 4, .kv_heads = 2, .dim = 8};
  auto make = [&](KVShape s, KVCacheConfig c) { return refusal([&] { Model(s, c); }); };
  EXPECT_EQ(make(shape, sizes(1, 32, 32)), "no error");
  EXPECT_EQ(make(shape, sizes(0, 32, 32)), "KV cache: max_num_sequences is 0");
  EXPECT_EQ(make(shape, sizes(1, 32, 32, -1)), "KV cache: num_layers is -1");
  EXPECT_EQ(make(shape, sizes(1 << 29, 1 << 30, 32)), "KV cache: 570425344 pages");
  EXPECT_EQ(make({.qo_heads = 3, .kv_heads = 2, .dim = 8}, sizes(1, 32, 32)),
            "KV cache: 3 query heads for 2 key heads");
  EXPECT_EQ(make({.qo_heads = 2, .kv_heads = 2, .dim = 8, .dtype = i8}, sizes(1, 32, 32)), "KV cache: dtype int8");
  EXPECT_EQ(make({.qo_heads = 2, .kv_heads = 2, .dim = 8, .rope = 10}, sizes(1, 32, 32)),
            "KV cache: rope_inv_freq is a float32[5] tensor for heads of 8");
  EXPECT_EQ(make({.qo_heads = 2, .kv_heads = 2, .dim = 7, .dtype = bf16, .in_pairs = true}, sizes(1, 32, 32)),
            "KV cache: pages in pairs for heads of 7");
}

// The whole way through bytecode, as a compiled model takes it.
TEST(PagedKVCache, IsDrivenByBytecode) {
  KVShape shape{.qo_heads = 2, .kv_heads = 1, .dim = 4, .rope = 2};
  ExecutableBuilder b;
  KernelTable table;
  auto [kv_append, attention] = testing::add_kv_kernels(b, table, shape);
  auto kv = [&](const char* name) { return b.builtin(text("vm.builtin.", name)); };
  b.begin_function("create", {});
  Arg cache = b.new_register(), nothing = b.new_register();
  b.call(b.builtin("vm.builtin.null_value"), {}, nothing);
  b.call(kv("paged_attention_kv_cache_create"),
         {b.constant(Shape::of({1, 64, 32, 16})),
          Arg::imm(1),
          Arg::imm(2),
          Arg::imm(1),
          Arg::imm(4),
          b.constant(Tensor::of<float>({1.0f}, Dims{1}, f32)),
          b.constant(1.0),
          b.constant(f32),
          Arg::function(kv_append),
          Arg::function(attention),
          nothing,
          b.constant(1.0),
          b.constant(f32),
          Arg::imm(0),
          Arg::imm(0)},
         cache);
  b.ret(cache);
  b.end_function();
  b.begin_function("forward", {"cache", "lengths", "qkv", "o"});
  Arg cached = Arg::reg(0), positions = b.new_register();
  b.call(kv("kv_state_begin_forward"), {cached, b.constant(Shape::of({0})), Arg::reg(1)});
  b.call(kv("attention_kv_cache_attention_with_fused_qkv"),
         {cached, Arg::imm(0), b.constant(0.5), Arg::reg(2), Arg::reg(3)});
  b.call(kv("attention_kv_cache_get_query_positions"), {cached}, positions);
  b.call(kv("kv_state_end_forward"), {cached});
  b.ret(positions);
  b.end_function();
  b.begin_function("manage", {"cache"});
  Arg total = b.new_register();
  b.call(kv("kv_state_clear"), {cached});
  b.call(kv("kv_state_add_sequence"), {cached, Arg::imm(0)});
  b.call(kv("attention_kv_cache_get_total_sequence_length"), {cached}, total);
  b.ret(total);
  b.end_function();
  VirtualMachine vm(b.finish(), table, ThreadPool::create(1));
  Value made = vm.call("create", {});
  ASSERT_NE(made.as<PagedKVCache>(), nullptr);
  EXPECT_EQ(*vm.call("manage", {made}).as_int(), 0);
  Value qkv = Tensor::empty(Dims{3, 4, 4}, f32), o = Tensor::empty(Dims{3, 2, 4}, f32);
  std::fill_n(qkv.as<Tensor>()->data_as<float>(), 48, 2.0f);
  Value at = vm.call("forward", {made, Shape::of({3}), qkv, o});
  EXPECT_EQ(at.as<Tensor>()->data_as<int32_t>()[2], 2);
  EXPECT_EQ(made.as<PagedKVCache>()->total_sequence_length(), 3);
  EXPECT_NEAR(o.as<Tensor>()->data_as<float>()[0], 2.0f, 1e-6);  // an average of equal values
  // y = (2 + 2i) * exp(2i) in elements 0 and 1 of position 2
  auto [k, v] = made.as<PagedKVCache>()->debug_get_kv(0, 2, 3);
  EXPECT_NEAR(k->data_as<float>()[0], 2 * std::cos(2.0) - 2 * std::sin(2.0), 1e-6);
  EXPECT_NEAR(k->data_as<float>()[1], 2 * std::cos(2.0) + 2 * std::sin(2.0), 1e-6);
  EXPECT_EQ(k->data_as<float>()[2], 2.0f);
  EXPECT_EQ(*vm.call("manage", {made}).as_int(), 0);
  EXPECT_THROW(vm.call("manage", {5}), Error);
}

}  // namespace
}  // namespace sator::runtime
