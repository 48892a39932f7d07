// How close the emitter comes to the machine: the recipes for matrix products as scheduled programs, against ceilings of
// the same run. Usage: codegen_recipes_bench [threads] [level]
// With one thread, time is the thread's own: other programs on the machine disturb less.
#include <immintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <string>
#include <vector>

#include "base/float16.h"
#include "codegen/jit.h"
#include "kernels.h"
#include "passes/lower/lower.h"
#include "runtime/thread_pool.h"
#include "tir/parse.h"

using namespace sator;

namespace {

int threads = 1;

double seconds(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}
double now() { return seconds(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC); }

/// Median and best of several runs.
struct Timed {
  double median, best;
};
template <class F>
Timed timed(F&& f, int repeats = 9) {
  std::vector<double> v;
  f();
  for (int r = 0; r < repeats; ++r) {
    double t = now();
    f();
    v.push_back(now() - t);
  }
  std::sort(v.begin(), v.end());
  return {v[v.size() / 2], v[0]};
}

/// Memory in huge pages.
template <class T>
T* alloc(size_t n) {
  size_t bytes = (n * sizeof(T) + (4 << 20)) >> 21 << 21;
  void* p = std::aligned_alloc(2 << 20, bytes);
  madvise(p, bytes, MADV_HUGEPAGE);
  return static_cast<T*>(p);
}
uint32_t noise(size_t i) { return static_cast<uint32_t>(i * 2654435761u) >> 15; }

std::string filled(std::string s, const std::map<std::string, int64_t>& values) {
  for (const auto& [name, value] : values)
    for (size_t at; (at = s.find("{" + name + "}")) != s.npos;) s.replace(at, name.size() + 2, std::to_string(value));
  return s;
}

__attribute__((target("avx512f"))) double fma_flops(int64_t n) {
  __m512 acc[24], x = _mm512_set1_ps(1.0001f), y = _mm512_set1_ps(0.9999f);
  for (__m512& a : acc) a = _mm512_setzero_ps();
  for (int64_t i = 0; i < n; ++i) {
#pragma GCC unroll 24
    for (int j = 0; j < 24; ++j) acc[j] = _mm512_fmadd_ps(x, y, acc[j]);
    asm volatile("" : "+v"(x));
  }
  for (int j = 1; j < 24; ++j) acc[0] = _mm512_add_ps(acc[0], acc[j]);
  volatile float sink = _mm512_cvtss_f32(acc[0]);
  (void)sink;
  return 24.0 * 32 * static_cast<double>(n);
}

__attribute__((target("avx512f"))) void read_all(const char* p, size_t n) {
  __m512i s[4] = {};
  for (size_t i = 0; i < n; i += 256) {
    for (size_t j = 0; j < 4; ++j) {
      __builtin_prefetch(p + i + 4096 + 64 * j);
      s[j] = _mm512_or_si512(s[j], _mm512_load_si512(p + i + 64 * j));
    }
  }
  __m512i all = _mm512_or_si512(_mm512_or_si512(s[0], s[1]), _mm512_or_si512(s[2], s[3]));
  volatile int sink = _mm_cvtsi128_si32(_mm512_castsi512_si128(all));
  (void)sink;
}

struct Bench {
  Ref<codegen::Jit> jit;
  Ref<runtime::ThreadPool> pool;
  int lanes;

  SatorKernel kernel(const char* program, std::map<std::string, int64_t> values) {
    values["V"] = lanes;
    return jit->add(*passes::lower(tir::parse_function(filled(program, values))));
  }
};

struct Shape {
  int64_t m, n, k;
};
const Shape kShapes[] = {{128, 2304, 768}, {512, 2304, 768}, {512, 768, 3072}, {1024, 1024, 1024}, {512, 8192, 2048}};

void gemm_f32(Bench& bench, double peak) {
  float *A = alloc<float>(4 << 20), *B = alloc<float>(32 << 20), *C = alloc<float>(8 << 20);
  for (size_t i = 0; i < (4 << 20); ++i) A[i] = static_cast<float>(noise(i) & 255) / 256.f - .5f;
  for (size_t i = 0; i < (32 << 20); ++i) B[i] = static_cast<float>(noise(i + 7) & 255) / 256.f - .5f;
  for (auto [m, n, k] : kShapes)
    for (auto [r, p] : {std::pair(14, 32), {12, 32}, {6, 64}}) {
      int64_t kc = k % 512 == 0 ? 512 : 384, mb = std::min<int64_t>(512, m) / r * r, rows = m / mb * mb;
      SatorKernel kernel =
          bench.kernel(bench::kGemmF32, {{"M", rows}, {"N", n}, {"K", k}, {"R", r}, {"P", p}, {"MB", mb}, {"KC", kc}});
      void* buffers[] = {A, B, C};
      Timed t = timed([&] { kernel(buffers, nullptr, bench.pool->context()); });
      double worst = 0;
      for (int64_t i = 0; i < rows; i += 37)
        for (int64_t j = 0; j < n; j += 97) {
          double sum = 0;
          for (int64_t x = 0; x < k; ++x) sum += double(A[i * k + x]) * B[(j / 32 * k + x) * 32 + j % 32];
          worst = std::max(worst, std::abs(sum - C[i * n + j]));
        }
      double flops = 2.0 * static_cast<double>(rows * n * k);
      std::printf("f32 gemm %4ld x %4ld x %4ld, tile %2dx%d: %6.1f GF/s, best %6.1f = %.2f of the peak; error %.1e\n",
                  rows,
                  n,
                  k,
                  r,
                  p,
                  flops / t.median / 1e9,
                  flops / t.best / 1e9,
                  flops / t.best / peak,
                  worst);
      std::fflush(stdout);
    }
  std::free(A), std::free(B), std::free(C);
}

void gemm_int8(Bench& bench, double peak) {
  uint8_t* A = alloc<uint8_t>(4 << 20);
  int8_t* B = alloc<int8_t>(32 << 20);
  float *SA = alloc<float>(1024), *SW = alloc<float>(8192), *C = alloc<float>(8 << 20);
  int32_t* comp = alloc<int32_t>(8192);
  for (size_t i = 0; i < (4 << 20); ++i) A[i] = static_cast<uint8_t>(noise(i));
  for (size_t i = 0; i < (32 << 20); ++i) B[i] = static_cast<int8_t>(noise(i + 3));
  for (size_t i = 0; i < 1024; ++i) SA[i] = 1;
  for (auto [m, n, k] : kShapes) {
    int64_t r = 14, rows = m / r * r;
    for (int64_t j = 0; j < n; ++j) {
      SW[j] = 1;
      comp[j] = 0;
      for (int64_t x = 0; x < k; ++x) comp[j] += 128 * B[((j / 32 * (k / 4) + x / 4) * 32 + j % 32) * 4 + x % 4];
    }
    SatorKernel kernel = bench.kernel(bench::kGemmInt8, {{"M", rows}, {"N", n}, {"K", k}, {"R", r}});
    void* buffers[] = {A, B, SA, SW, comp, C};
    Timed t = timed([&] { kernel(buffers, nullptr, bench.pool->context()); });
    int64_t wrong = 0;
    for (int64_t i = 0; i < rows; i += 37)
      for (int64_t j = 0; j < n; j += 97) {
        int32_t sum = 0;
        for (int64_t x = 0; x < k; ++x)
          sum += (A[i * k + x] - 128) * B[((j / 32 * (k / 4) + x / 4) * 32 + j % 32) * 4 + x % 4];
        wrong += static_cast<float>(sum) != C[i * n + j];
      }
    double ops = 2.0 * static_cast<double>(rows * n * k);
    std::printf(
        "int8 gemm %4ld x %4ld x %4ld, tile 14x32: %6.1f GOP/s, best %6.1f = %.2f of four times the f32 peak; %ld "
        "wrong\n",
        rows,
        n,
        k,
        ops / t.median / 1e9,
        ops / t.best / 1e9,
        ops / t.best / (4 * peak),
        wrong);
    std::fflush(stdout);
  }
  std::free(A), std::free(B), std::free(SA), std::free(SW), std::free(C), std::free(comp);
}

void gemv(Bench& bench, size_t total) {
  constexpr int64_t k = 2048;
  char* W = alloc<char>(total + 65536);
  for (size_t i = 0; i < total / 8; ++i) reinterpret_cast<uint64_t*>(W)[i] = 0x3c003c003c003c00ull + i % 7;
  float *x = alloc<float>(k), *y = alloc<float>(1 << 22);
  int8_t* q = alloc<int8_t>(k);
  int32_t* sums = alloc<int32_t>(k / 32);
  for (int64_t i = 0; i < k; ++i) x[i] = .01f, q[i] = 3;
  for (int64_t i = 0; i < k / 32; ++i) sums[i] = -96 * 8;
  size_t inner = total < (8u << 20) ? 40 : 1;
  int repeats = total > (256u << 20) ? 5 : 15;
  Timed plain = timed(
      [&] {
        for (size_t z = 0; z < inner; ++z)
          bench.pool->for_each_chunk(static_cast<int64_t>(total >> 18), [&](int64_t begin, int64_t end, SatorContext*) {
            read_all(W + (begin << 18), static_cast<size_t>(end - begin) << 18);
          });
      },
      repeats);
  double rate = static_cast<double>(total * inner) / plain.best / 1e9;
  std::printf("%4zu MB plain read: %6.2f GB/s\n", total >> 20, rate);
  struct Kind {
    const char* name;
    const char* program;
    double bytes_per_weight;
    std::vector<void*> buffers;
  };
  for (const Kind& kind : {Kind{"f32", bench::kGemvF32, 4, {W, x, y}},
                           {"int8 x int8", bench::kGemvInt8, 1, {W, q, sums, y}},
                           {"int4 group 32 x int8", bench::kGemvInt4, 0.5625, {W, q, sums, y}}}) {
    int64_t n = static_cast<int64_t>(static_cast<double>(total) / kind.bytes_per_weight) / k / 32 * 32;
    SatorKernel kernel = bench.kernel(kind.program, {{"N", n}, {"K", k}});
    std::vector<void*> buffers = kind.buffers;
    Timed t = timed(
        [&] {
          for (size_t z = 0; z < inner; ++z) kernel(buffers.data(), nullptr, bench.pool->context());
        },
        repeats);
    double bytes = static_cast<double>(n * k) * kind.bytes_per_weight * static_cast<double>(inner);
    std::printf("%4zu MB gemv %-22s %6.2f GB/s, %.2f of a plain read\n",
                total >> 20,
                kind.name,
                bytes / t.best / 1e9,
                bytes / t.best / 1e9 / rate);
    std::fflush(stdout);
  }
  std::free(W), std::free(x), std::free(y), std::free(q), std::free(sums);
}

}  // namespace

int main(int argc, char** argv) {
  threads = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
  const target::CpuLevel& level = target::cpu_level(argc > 2 ? argv[2] : "avx512");
  if (!target::host_runs(target::cpu_level("avx512"))) {
    std::printf("the ceilings of this bench need AVX-512\n");
    return 0;
  }
  Bench bench{codegen::Jit::create(level), runtime::ThreadPool::create(threads), level.vector_bits / 32};
  auto peak_now = [&] {
    double flops = 0;
    Timed t = timed([&] {
      flops = 0;
      bench.pool->for_each_chunk(threads, [&](int64_t, int64_t, SatorContext*) { fma_flops(1 << 20); });
      flops = threads * 24.0 * 32 * (1 << 20);
    });
    return flops / t.best;
  };
  double peak = peak_now();
  std::printf("f32 peak: %.1f GF/s with %d threads\n", peak / 1e9, threads);
  gemm_f32(bench, peak);
  gemm_int8(bench, peak);
  for (size_t mb : {1, 64, 512}) gemv(bench, mb << 20);
}
