// The compiled attention kernel against its description in runtime/kv_cache.h, computed in double precision: batches
// whose sequences begin and end inside of tiles, grouped heads, odd sizes, both dtypes of the cache.
#include "llm/attention.h"

#include <gtest/gtest.h>

#include <complex>
#include <map>
#include <numeric>
#include <random>

#include "codegen/run_kernel.h"
#include "codegen/signature.h"
#include "runtime/kv_kernels.h"
#include "tir/interp.h"

namespace sator::llm {
namespace {

/// A step: for each sequence, how many positions it has and how many of them are this step's tokens.
struct Sequence {
  int32_t length, tokens;
};

/// The function as it is compiled for a level with matrix tiles.
tir::PrimFuncRef on_tiles(const tir::PrimFuncRef& func) {
  tir::Stmt body = transform(func->body, [](const Call& n) -> Expr {
    return n.op == "tir.has_matrix_tiles" ? int_imm(1, boolean) : Expr(ref(n));
  });
  return passes::with_body(func, body);
}

/// The largest difference to the reference, the mean one, and the results themselves. Apart: each token is a sequence of its own, on the
/// same pages. Without a level the interpreter runs what one with matrix tiles would.
double largest_difference(const AttentionShape& s, const std::vector<Sequence>& sequences,
                          const target::CpuLevel* level, int threads, std::vector<float>* result = nullptr,
                          double* mean = nullptr, bool apart = false) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  const auto batch = static_cast<int32_t>(sequences.size());
  std::vector<int32_t> token_seq, positions, q_indptr = {0}, lengths, page_indptr = {0}, page_table;
  for (int32_t i = 0; i < batch; ++i) {
    const Sequence& q = sequences[static_cast<size_t>(i)];
    for (int32_t p = q.length - q.tokens; p < q.length; ++p) token_seq.push_back(i), positions.push_back(p);
    q_indptr.push_back(static_cast<int32_t>(positions.size()));
    lengths.push_back(q.length);
    for (int32_t p = 0; p < q.length; p += 16) page_table.push_back(static_cast<int32_t>(page_table.size()));
    page_indptr.push_back(static_cast<int32_t>(page_table.size()));
  }
  std::shuffle(page_table.begin(), page_table.end(), random);  // pages lie anywhere
  // Where there is a window, pages before the block of 64 positions that it reaches hold NaN: nothing may be read there.
  std::vector<bool> poisoned(page_table.size());
  for (int32_t i = 0; s.window > 0 && i < batch; ++i) {
    const Sequence& q = sequences[static_cast<size_t>(i)];
    const int64_t unseen = std::max<int64_t>(q.length - q.tokens + 1 - s.window, 0) / 64 * 4;
    for (int64_t p = 0; p < unseen; ++p)
      poisoned[static_cast<size_t>(page_table[static_cast<size_t>(page_indptr[static_cast<size_t>(i)] + p)])] = true;
  }
  auto sequences_of_step = batch;
  if (apart) {
    const std::vector<int32_t> first = page_indptr;
    page_indptr.clear();
    for (size_t i = 0; i < token_seq.size(); ++i)
      page_indptr.push_back(first[static_cast<size_t>(token_seq[i])]), token_seq[i] = static_cast<int32_t>(i);
    page_indptr.push_back(first.back());
    sequences_of_step = static_cast<int32_t>(token_seq.size());
    lengths.resize(token_seq.size()), q_indptr.resize(token_seq.size() + 1);  // the kernel reads neither
  }
  const auto n = static_cast<int64_t>(positions.size()), pages = static_cast<int64_t>(page_table.size());
  const int64_t heads = s.num_qo_heads + 2 * s.num_kv_heads, page = s.num_kv_heads * s.head_dim * 16;
  codegen::Data<float> q(static_cast<size_t>(n * heads * s.head_dim));
  codegen::Data<char> k(static_cast<size_t>(pages * page * 4)), v(static_cast<size_t>(pages * page * 4));
  codegen::Data<float> o(static_cast<size_t>(n * s.num_qo_heads * s.head_dim)), want(o.size);
  for (size_t i = 0; i < q.size; ++i) q[i] = normal(random);
  for (int64_t i = 0; i < pages * page; ++i) {
    const bool poison = poisoned[static_cast<size_t>(i / page)];
    runtime::testing::store(k.raw(), s.cache_dtype, i, poison ? NAN : normal(random));
    runtime::testing::store(v.raw(), s.cache_dtype, i, poison ? NAN : normal(random));
  }
  const int64_t limit = (*std::ranges::max_element(lengths) + 63) / 64 * 64;
  codegen::Data<float> bias(static_cast<size_t>(s.num_qo_heads * limit));
  for (size_t i = 0; i < bias.size; ++i) bias[i] = 2 * normal(random);
  std::vector<void*> buffers = {q.raw(),
                                token_seq.data(),
                                positions.data(),
                                q_indptr.data(),
                                lengths.data(),
                                page_indptr.data(),
                                page_table.data(),
                                k.raw(),
                                v.raw(),
                                o.raw()};
  codegen::Data<float> sinks(static_cast<size_t>(s.num_qo_heads));
  for (size_t i = 0; i < sinks.size; ++i) sinks[i] = 2 * normal(random);
  if (s.biased) buffers.insert(buffers.end() - 1, bias.raw());
  if (s.sinks) buffers.insert(buffers.end() - 1, sinks.raw());
  tir::PrimFuncRef func = attention_kernel(s);
  const double scale = 1 / std::sqrt(static_cast<double>(s.head_dim));
  std::map<std::string, int64_t> sizes = {{"n", n},
                                          {"b", sequences_of_step},
                                          {"b1", sequences_of_step + 1},
                                          {"m", pages},
                                          {"pages", pages},
                                          {"heads", heads},
                                          {"limit", limit},
                                          {"sm_scale", std::bit_cast<int64_t>(scale)}};
  std::vector<int64_t> values;
  for (const VarRef& name : codegen::kernel_arguments(*passes::lower(func)).values)
    values.push_back(sizes.at(name->name));
  if (level) {
    EXPECT_EQ(codegen::run_kernel(func, *level, buffers, values, threads), 0);
  } else {
    auto of = [](auto& data, DType dtype, std::vector<int64_t> shape) {
      return tir::ArrayView{.data = data.raw(), .dtype = dtype, .shape = std::move(shape), .strides = {}};
    };
    auto numbers = [](std::vector<int32_t>& data) {
      return tir::ArrayView{
          .data = data.data(), .dtype = i32, .shape = {static_cast<int64_t>(data.size())}, .strides = {}};
    };
    std::vector<tir::Argument> args = {of(q, f32, {n, heads, s.head_dim}),
                                       numbers(token_seq),
                                       numbers(positions),
                                       numbers(q_indptr),
                                       numbers(lengths),
                                       numbers(page_indptr),
                                       numbers(page_table),
                                       of(k, s.cache_dtype, {pages, s.num_kv_heads, s.head_dim / 2, 16, 2}),
                                       of(v, s.cache_dtype, {pages, s.num_kv_heads, 8, s.head_dim, 2}),
                                       of(o, f32, {n, s.num_qo_heads, s.head_dim}),
                                       scale};
    if (s.biased) args.insert(args.end() - 2, of(bias, f32, {s.num_qo_heads, limit}));
    if (s.sinks) args.insert(args.end() - 2, of(sinks, f32, {s.num_qo_heads}));
    tir::Interpreter(on_tiles(func)).run(args);
  }

  buffers.back() = want.raw();
  const int64_t reference_values[] = {n, heads, std::bit_cast<int64_t>(scale), limit};
  Ref<runtime::ThreadPool> pool = runtime::ThreadPool::create(1);
  runtime::testing::attention_kernel({s.num_qo_heads,
                                      s.num_kv_heads,
                                      s.head_dim,
                                      0,
                                      s.cache_dtype,
                                      s.narrow,
                                      s.biased,
                                      s.sinks,
                                      false,
                                      s.window,
                                      s.in_pairs()},
                                     buffers.data(),
                                     reference_values,
                                     pool->context());
  double largest = 0;
  double sum = 0;
  for (size_t i = 0; i < o.size; ++i) {
    const double difference = std::fabs(static_cast<double>(o[i]) - want[i]);
    largest = std::max(largest, difference);
    sum += difference;
  }
  if (mean) *mean = sum / static_cast<double>(o.size);
  if (result) result->assign(o.memory, o.memory + o.size);
  return largest;
}

// Sums of 16 to 1000 products of size 1 in f32, weights that sum to 1: errors of some 1e-6.
constexpr double kTolerance = 5e-6;

class Attention : public testing::TestWithParam<const target::CpuLevel*> {};

TEST_P(Attention, TilesAndSingleTokensOfSeveralSequences) {
  const std::vector<Sequence> batch = {{37, 37}, {1, 1}, {130, 3}, {64, 12}, {500, 1}, {19, 5}};
  for (DType cache : {f32, f16, bf16})
    EXPECT_LT(largest_difference({4, 2, 64, 0, cache}, batch, GetParam(), 1), kTolerance) << cache.name();
}

// Weights are rounded beside the largest score so far, which is the row's own where there is one block of 64 positions. A
// weight on the edge of two numbers goes either way with the last bit of exp; they are few, so the mean is compared.
TEST_P(Attention, NarrowFactors) {
  const std::vector<Sequence> batch = {{37, 37}, {1, 1}, {60, 3}, {64, 12}};
  for (DType cache : {f16, bf16}) {
    double mean = 0;
    EXPECT_LT(largest_difference({4, 2, 64, 0, cache, true}, batch, GetParam(), 1, nullptr, &mean), 2e-3);
    EXPECT_LT(mean, 1e-6) << cache.name();
  }
  EXPECT_LT(largest_difference({4, 2, 64, 0, f16, true}, {{500, 1}, {300, 40}}, GetParam(), 1), 1e-3);
}

// Pages in pairs: odd numbers of pairs, heads that share keys, windows, biases; and heads of odd size, which have none.
TEST_P(Attention, ProductsInPairs) {
  const AttentionShape shapes[] = {{.num_qo_heads = 5, .num_kv_heads = 1, .head_dim = 2},
                                   {.num_qo_heads = 6, .num_kv_heads = 2, .head_dim = 30, .window = 6},
                                   {.num_qo_heads = 3, .num_kv_heads = 3, .head_dim = 20, .biased = true},
                                   {.num_qo_heads = 2, .num_kv_heads = 1, .head_dim = 33}};
  for (AttentionShape shape : shapes) {
    shape.cache_dtype = bf16, shape.narrow = true;
    EXPECT_EQ(shape.in_pairs(), shape.head_dim % 2 == 0);
    double mean = 0;
    const std::vector<Sequence> batch = {{37, 37}, {1, 1}, {60, 3}, {64, 12}, {63, 1}};
    EXPECT_LT(largest_difference(shape, batch, GetParam(), 1, nullptr, &mean), 8e-3) << shape.head_dim;
    EXPECT_LT(mean, 2e-6) << shape.head_dim;
  }
}

TEST_P(Attention, HeadsOfAnySize) {
  for (int64_t d : {1, 20, 80, 200})
    EXPECT_LT(largest_difference({3, 1, d, 0, f32}, {{70, 29}, {33, 1}}, GetParam(), 1), kTolerance) << d;
}

// Four heads of one token pass over keys and values together: shares that four divides, and that it does not.
TEST_P(Attention, HeadsThatShareKeys) {
  const std::vector<Sequence> batch = {{70, 1}, {33, 2}, {500, 1}, {19, 5}};
  for (int64_t share : {2, 4, 5, 7, 8}) {
    SCOPED_TRACE(share);
    AttentionShape shape{.num_qo_heads = 2 * share, .num_kv_heads = 2, .head_dim = 20};
    EXPECT_LT(largest_difference(shape, batch, GetParam(), 1), kTolerance);
    shape.cache_dtype = bf16;
    EXPECT_LT(largest_difference(shape, batch, GetParam(), 3), kTolerance);
    shape.window = 50;
    EXPECT_LT(largest_difference(shape, batch, GetParam(), 1), kTolerance);
  }
  AttentionShape shape{.num_qo_heads = 7, .num_kv_heads = 1, .head_dim = 20, .biased = true};
  EXPECT_LT(largest_difference(shape, batch, GetParam(), 1), kTolerance);
  shape = {.num_qo_heads = 10, .num_kv_heads = 2, .head_dim = 20, .sinks = true};
  EXPECT_LT(largest_difference(shape, batch, GetParam(), 1), kTolerance);
}

TEST_P(Attention, BiasesByHeadAndKey) {
  AttentionShape shape{.num_qo_heads = 6, .num_kv_heads = 2, .head_dim = 20, .biased = true};
  EXPECT_LT(largest_difference(shape, {{37, 37}, {1, 1}, {130, 3}, {500, 1}, {19, 5}}, GetParam(), 1), kTolerance);
}

TEST_P(Attention, SinksTakeTheirShare) {
  AttentionShape shape{.num_qo_heads = 6, .num_kv_heads = 2, .head_dim = 20, .sinks = true};
  EXPECT_LT(largest_difference(shape, {{37, 37}, {1, 1}, {130, 3}, {500, 1}, {19, 5}}, GetParam(), 1), kTolerance);
  shape.cache_dtype = f16;
  EXPECT_LT(largest_difference(shape, {{37, 37}, {130, 3}}, GetParam(), 1), kTolerance);
  shape.narrow = true;  // weights on the edge of two numbers go either way (NarrowFactors)
  double mean = 0;
  EXPECT_LT(largest_difference(shape, {{37, 37}, {1, 1}, {60, 3}, {64, 12}}, GetParam(), 1, nullptr, &mean), 2e-3);
  EXPECT_LT(mean, 1e-6);
}

TEST_P(Attention, Windows) {
  for (int64_t window : {1, 6, 64, 100, 1000}) {
    AttentionShape shape{.num_qo_heads = 6, .num_kv_heads = 2, .head_dim = 20, .window = window};
    EXPECT_LT(largest_difference(shape, {{37, 37}, {1, 1}, {130, 3}, {500, 1}, {300, 170}, {19, 5}}, GetParam(), 1),
              kTolerance)
        << window;
  }
}

// The work that is costed is what the kernel computes: causal, at the end of kv_len positions, in double by its definition.
TEST_P(Attention, WorkIsWhatIsComputed) {
  constexpr int64_t kTokens = 5, kLength = 23, kHeads = 6, kGroups = 2, kDim = 7;
  for (const auto& [biased, sinks, window] : std::initializer_list<std::tuple<bool, bool, int64_t>>{
           {false, false, 0}, {true, false, 0}, {false, true, 0}, {false, false, 6}, {false, true, 21}}) {
    const tir::PrimFuncRef func = attention_work({.num_qo_heads = kHeads,
                                                  .num_kv_heads = kGroups,
                                                  .head_dim = kDim,
                                                  .window = window,
                                                  .biased = biased,
                                                  .sinks = sinks});
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    codegen::Data<float> q(kTokens * kHeads * kDim), k(kGroups * kLength * kDim), v(k.size), o(q.size);
    codegen::Data<float> extra(biased ? kHeads * kLength : kHeads);
    for (codegen::Data<float>* data : {&q, &k, &v, &extra})
      for (size_t i = 0; i < data->size; ++i) (*data)[i] = normal(random);
    std::vector<void*> buffers = {q.raw(), k.raw(), v.raw(), o.raw()};
    if (biased || sinks) buffers.insert(buffers.end() - 1, extra.raw());
    const double scale = 0.4;
    const std::map<std::string, int64_t> sizes = {
        {"n", kTokens}, {"kv_len", kLength}, {"sm_scale", std::bit_cast<int64_t>(scale)}};
    std::vector<int64_t> values;
    for (const VarRef& name : codegen::kernel_arguments(*passes::lower(func)).values)
      values.push_back(sizes.at(name->name));
    ASSERT_EQ(codegen::run_kernel(func, *GetParam(), buffers, values, 1), 0);
    for (int64_t t = 0; t < kTokens; ++t)
      for (int64_t h = 0; h < kHeads; ++h) {
        const int64_t g = h / (kHeads / kGroups), last = kLength - kTokens + t;
        double sum = sinks ? std::exp(static_cast<double>(extra[static_cast<size_t>(h)])) : 0;
        std::vector<double> want(kDim);
        for (int64_t p = window > 0 ? std::max<int64_t>(last + 1 - window, 0) : 0; p <= last; ++p) {
          double score = 0;
          for (int64_t d = 0; d < kDim; ++d)
            score += static_cast<double>(q[static_cast<size_t>((t * kHeads + h) * kDim + d)]) *
                     k[static_cast<size_t>((g * kLength + p) * kDim + d)];
          const double weight = std::exp(score * scale + (biased ? extra[static_cast<size_t>(h * kLength + p)] : 0));
          sum += weight;
          for (int64_t d = 0; d < kDim; ++d)
            want[static_cast<size_t>(d)] += weight * v[static_cast<size_t>((g * kLength + p) * kDim + d)];
        }
        for (int64_t d = 0; d < kDim; ++d)
          EXPECT_NEAR(
              o[static_cast<size_t>((t * kHeads + h) * kDim + d)], want[static_cast<size_t>(d)] / sum, kTolerance);
      }
  }
}

/// Multiply-adds of the kernel as the interpreter counts them: n tokens that end at position `length`, one head.
int64_t multiply_adds(const AttentionShape& shape, int64_t n, int64_t length) {
  const int64_t pages = (length + 15) / 16, d = shape.head_dim;
  std::vector<float> q(static_cast<size_t>(n * d)), o(q.size()), k(static_cast<size_t>(pages * d * 16)), v(k.size());
  std::vector<int32_t> token_seq(static_cast<size_t>(n)), positions, indptr = {0, static_cast<int32_t>(n)};
  std::vector<int32_t> lengths = {static_cast<int32_t>(length)}, page_indptr = {0, static_cast<int32_t>(pages)}, table;
  for (int64_t t = 0; t < n; ++t) positions.push_back(static_cast<int32_t>(length - n + t));
  for (int64_t p = 0; p < pages; ++p) table.push_back(static_cast<int32_t>(p));
  auto of = [](auto& data, DType dtype, std::vector<int64_t> shape_of) {
    return tir::ArrayView{.data = data.data(), .dtype = dtype, .shape = std::move(shape_of), .strides = {}};
  };
  const std::vector<tir::Argument> args = {of(q, f32, {n, 1, d}),
                                           of(token_seq, i32, {n}),
                                           of(positions, i32, {n}),
                                           of(indptr, i32, {2}),
                                           of(lengths, i32, {1}),
                                           of(page_indptr, i32, {2}),
                                           of(table, i32, {pages}),
                                           of(k, f32, {pages, 1, d, 16}),
                                           of(v, f32, {pages, 1, 16, d}),
                                           of(o, f32, {n, 1, d}),
                                           1.0};
  tir::BlockCounts counts;
  tir::Interpreter(attention_kernel(shape)).run(args, {.counts = &counts});
  return counts.at("attention").multiply_adds;
}

// What the program that runs computes of the triangle: 8 tokens together, over pages of 16 positions up to the last token's, scores
// of two pages at once; with a window from the block of 4 pages on in which the first token's begins. Single tokens take their scores
// in whole blocks.
TEST(AttentionKernel, ComputesPagesUpToTheLastToken) {
  constexpr int64_t kDim = 4;
  for (int64_t window : {0, 40})
    for (const auto& [n, length] :
         std::vector<std::pair<int64_t, int64_t>>{{64, 64}, {1, 1}, {1, 200}, {16, 200}, {37, 120}, {13, 13}}) {
      int64_t want = 0;
      for (int64_t t = 0; t < n; t += 8) {
        const bool together = t + 4 <= n;
        for (int64_t row = t; row < std::min(t + 8, n); row += together ? 8 : 1) {
          const int64_t first = length - n + row, last = together ? std::min(first + 7, length - 1) : first;
          const int64_t from = window > 0 ? std::max<int64_t>(first - window + 1, 0) / 64 * 4 : 0;
          const int64_t pages = last / 16 + 1 - from;
          want += 16 * kDim * (together ? 8 * ((pages + 1) / 2 * 2 + pages) : (pages + 3) / 4 * 4 + pages);
        }
      }
      const AttentionShape shape{.num_qo_heads = 1, .num_kv_heads = 1, .head_dim = kDim, .window = window};
      EXPECT_EQ(multiply_adds(shape, n, length), want) << n << " of " << length << ", window " << window;
    }
  // 512 tokens: 139,264 scores and 135,168 weights for the 131,328 that count.
  EXPECT_EQ(multiply_adds({.num_qo_heads = 1, .num_kv_heads = 1, .head_dim = 2}, 512, 512), 2 * (139264 + 135168));
}

// Pairs turn by the angle of their token's row, as complex numbers in double; what is not rotated stays. Odd heads have an element
// without a partner.
// Of the kernel that runs and of the work that is costed.
TEST_P(Attention, QueriesAndKeysAreRotated) {
  constexpr int64_t kTokens = 5, kLimit = 40, kHeads = 3, kGroups = 1;
  for (const int form : {0, 1, 2, 3})
    for (const auto& [dim, rotary] : {std::pair<int64_t, int64_t>{16, 16}, {12, 6}, {15, 8}, {9, 8}}) {
      const bool interleaved = form % 2 == 1;
      const AttentionShape shape{.num_qo_heads = kHeads,
                                 .num_kv_heads = kGroups,
                                 .head_dim = dim,
                                 .rotary_dim = rotary,
                                 .interleaved = interleaved};
      const tir::PrimFuncRef func = form < 2 ? kv_append_kernel(shape) : kv_append_work(shape);
      std::mt19937 random(7);
      std::normal_distribution<float> normal;
      const int64_t rows = kHeads + 2 * kGroups, half = rotary / 2;
      codegen::Data<float> qkv(static_cast<size_t>(kTokens * rows * dim)),
          q(static_cast<size_t>(kTokens * kHeads * dim));
      codegen::Data<float> table(static_cast<size_t>(kLimit * rotary));
      codegen::Data<float> k(static_cast<size_t>(2 * kGroups * dim * 16)), v(k.size);
      for (size_t i = 0; i < qkv.size; ++i) qkv[i] = normal(random);
      for (size_t i = 0; i < table.size; ++i) table[i] = normal(random);
      std::vector<int32_t> positions = {37, 3, 0, 11, 39}, slots = {30, 2, 16, 7, 21};
      std::vector<void*> buffers = {qkv.raw(), positions.data(), table.raw(), slots.data(), q.raw(), k.raw(), v.raw()};
      const std::map<std::string, int64_t> sizes = {{"n", kTokens}, {"pages", 2}, {"limit", kLimit}};
      std::vector<int64_t> values;
      for (const VarRef& name : codegen::kernel_arguments(*passes::lower(func)).values)
        values.push_back(sizes.at(name->name));
      ASSERT_EQ(codegen::run_kernel(func, *GetParam(), buffers, values, 1), 0);
      for (int64_t t = 0; t < kTokens; ++t)
        for (int64_t h = 0; h < kHeads + kGroups; ++h)
          for (int64_t d = 0; d < dim; ++d) {
            auto in = [&](int64_t e) {
              return static_cast<double>(qkv[static_cast<size_t>((t * rows + h) * dim + e)]);
            };
            double want = in(d);
            if (d < rotary) {
              const int64_t pair = interleaved ? d / 2 : d % half;
              const int64_t first = interleaved ? 2 * pair : pair, second = interleaved ? first + 1 : first + half;
              const float* row = &table[static_cast<size_t>(positions[static_cast<size_t>(t)] * rotary)];
              const std::complex<double> turned =
                  std::complex<double>(in(first), in(second)) * std::complex<double>(row[pair], row[half + pair]);
              want = d == first ? turned.real() : turned.imag();
            }
            const int64_t slot = slots[static_cast<size_t>(t)];
            const float got =
                h < kHeads ? q[static_cast<size_t>((t * kHeads + h) * dim + d)]
                           : k[static_cast<size_t>(((slot / 16 * kGroups + h - kHeads) * dim + d) * 16 + slot % 16)];
            EXPECT_NEAR(got, want, 2e-6) << dim << " " << rotary << " " << form << " " << h << " " << d;
          }
    }
}

// Runs that begin and end at either half of a pair, tokens alone, and a run that goes on in another page: what other tokens of the
// pages hold stays.
TEST_P(Attention, AppendsInPairs) {
  constexpr int64_t kHeads = 4, kGroups = 2, kDim = 20, kPages = 5;
  const AttentionShape shape{
      .num_qo_heads = kHeads, .num_kv_heads = kGroups, .head_dim = kDim, .cache_dtype = bf16, .narrow = true};
  std::vector<int32_t> slots;
  for (int32_t slot = 3; slot < 16; ++slot) slots.push_back(slot);      // from an odd one on
  for (int32_t slot = 32; slot < 38; ++slot) slots.push_back(slot);     // in the page after the next
  for (int32_t slot : {40, 43, 64, 66, 65, 67}) slots.push_back(slot);  // alone, and out of order
  for (int32_t slot = 48; slot < 63; ++slot) slots.push_back(slot);     // up to an even one
  const auto n = static_cast<int64_t>(slots.size());
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  codegen::Data<float> qkv(static_cast<size_t>(n * (kHeads + 2 * kGroups) * kDim));
  for (size_t i = 0; i < qkv.size; ++i) qkv[i] = normal(random);
  codegen::Data<uint16_t> k(static_cast<size_t>(kPages * kGroups * kDim * 16)), v(k.size), want_k(k.size),
      want_v(k.size);
  for (size_t i = 0; i < k.size; ++i)
    k[i] = want_k[i] = static_cast<uint16_t>(i), v[i] = want_v[i] = static_cast<uint16_t>(3 * i);
  const tir::PrimFuncRef func = kv_append_kernel(shape);
  const std::map<std::string, int64_t> sizes = {{"n", n}, {"pages", kPages}};
  std::vector<int64_t> values;
  for (const VarRef& name : codegen::kernel_arguments(*passes::lower(func)).values)
    values.push_back(sizes.at(name->name));
  ASSERT_EQ(codegen::run_kernel(func, *GetParam(), {qkv.raw(), slots.data(), k.raw(), v.raw()}, values, 3), 0);
  void* const buffers[] = {qkv.raw(), slots.data(), want_k.raw(), want_v.raw()};
  runtime::testing::kv_append_kernel(
      {.qo_heads = kHeads, .kv_heads = kGroups, .dim = kDim, .dtype = bf16, .in_pairs = true}, buffers, &n);
  EXPECT_TRUE(std::equal(k.memory, k.memory + k.size, want_k.memory));
  EXPECT_TRUE(std::equal(v.memory, v.memory + v.size, want_v.memory));
}

TEST_P(Attention, SameBitsForAnyNumberOfThreads) {
  std::vector<float> one, three;
  largest_difference({4, 4, 32, 0, f32}, {{75, 75}, {40, 9}}, GetParam(), 1, &one);
  largest_difference({4, 4, 32, 0, f32}, {{75, 75}, {40, 9}}, GetParam(), 3, &three);
  EXPECT_EQ(one, three);
}

// What is read together with its neighbours, and what is read alone: on tiles, in tiles of vectors, token by token.
TEST_P(Attention, SameBitsTogetherAndAlone) {
  AttentionShape shapes[] = {{.num_qo_heads = 3, .num_kv_heads = 3, .head_dim = 64},
                             {.num_qo_heads = 8, .num_kv_heads = 2, .head_dim = 80},
                             {.num_qo_heads = 5, .num_kv_heads = 1, .head_dim = 38, .window = 50, .soft_cap = 2},
                             {.num_qo_heads = 2, .num_kv_heads = 1, .head_dim = 128, .biased = true},
                             {.num_qo_heads = 4, .num_kv_heads = 4, .head_dim = 6, .window = 100, .sinks = true}};
  const std::vector<Sequence> batch = {{75, 75}, {40, 9}, {300, 3}, {129, 1}, {64, 64}, {200, 33}};
  for (AttentionShape& shape : shapes)
    for (DType cache : {f16, bf16}) {
      shape.cache_dtype = cache, shape.narrow = true;
      std::vector<float> together, alone;
      largest_difference(shape, batch, GetParam(), 1, &together);
      largest_difference(shape, batch, GetParam(), 3, &alone, nullptr, true);
      EXPECT_EQ(together, alone) << shape.head_dim << " " << cache.name();
    }
}

// Whether or not this CPU has tiles.
TEST(AttentionOnTiles, AsTheInterpreterDefinesThem) {
  AttentionShape shapes[] = {{.num_qo_heads = 2, .num_kv_heads = 2, .head_dim = 32},
                             {.num_qo_heads = 3, .num_kv_heads = 1, .head_dim = 6, .sinks = true},
                             {.num_qo_heads = 5, .num_kv_heads = 1, .head_dim = 38, .window = 30, .soft_cap = 2},
                             {.num_qo_heads = 2, .num_kv_heads = 1, .head_dim = 70, .biased = true}};
  for (AttentionShape& shape : shapes) {
    SCOPED_TRACE(shape.head_dim);
    shape.cache_dtype = bf16, shape.narrow = true;
    // The reference has no cap; it rounds weights as they are where there is one block of 64 positions.
    if (shape.soft_cap == 0) {
      double mean = 0;
      EXPECT_LT(largest_difference(shape, {{36, 36}, {1, 1}, {50, 3}, {64, 9}}, nullptr, 1, nullptr, &mean), 8e-3);
      EXPECT_LT(mean, 4e-6);  // one weight on the edge of two numbers moves a row: 3e-6 of the mean of so few
    }
    const std::vector<Sequence> batch = {{36, 36}, {1, 1}, {50, 3}, {129, 5}, {63, 1}};
    std::vector<float> together, alone;
    largest_difference(shape, batch, nullptr, 1, &together);
    largest_difference(shape, batch, nullptr, 1, &alone, nullptr, true);
    EXPECT_EQ(together, alone);
  }
}

std::vector<const target::CpuLevel*> levels() {
  std::vector<const target::CpuLevel*> out;
  for (const target::CpuLevel* level : target::host_levels())
    if (level->name == "amx" || level->name == "avx512" || level->name == "avx2" || level->name == "aarch64")
      out.push_back(level);
  return out;
}
INSTANTIATE_TEST_SUITE_P(Levels, Attention, testing::ValuesIn(levels()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace sator::llm
