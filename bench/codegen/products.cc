// What the default rules make of matrix products: f32 at the weight shapes of GPT-2 and Llama-1B, and products of one row
// and of a few against a plain read of the same bytes. Usage: codegen_products_bench [--json] [--threads N] [gemm|gemv|few]
#include <immintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "codegen/jit.h"
#include "functions.h"
#include "passes/lower/lower.h"
#include "rules/cpu.h"
#include "runtime/thread_pool.h"
#include "schedule/schedule.h"

using namespace sator;

namespace {

bool one_thread = false;

/// With one thread it is the thread's own time: other programs on the machine disturb less.
double now() {
  timespec t;
  clock_gettime(one_thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Timed {
  double best, median;
};
Timed middle(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return {v[0], v[v.size() / 2]};
}
template <class F>
double once(F&& call) {
  double start = now();
  call();
  return now() - start;
}
/// Two calls to warm up, then at least `least` calls and about `budget` seconds.
template <class F>
Timed timed(F&& call, double budget, size_t least = 3) {
  call();
  call();
  std::vector<double> v;
  for (double end = now() + budget; v.size() < least || (now() < end && v.size() < 3000);) v.push_back(once(call));
  return middle(std::move(v));
}
/// Two calls in turn: what a neighbour of the machine takes, it takes from both.
template <class F, class G>
std::pair<Timed, Timed> timed_in_turn(F&& first, G&& second, double budget) {
  first();
  second();
  std::vector<double> a, b;
  for (double end = now() + budget; a.size() < 5 || now() < end;) {
    a.push_back(once(first));
    b.push_back(once(second));
  }
  return {middle(std::move(a)), middle(std::move(b))};
}

/// Memory in huge pages, as weights lie.
class Memory {
 public:
  explicit Memory(size_t bytes) : bytes_((bytes + (4 << 20)) >> 21 << 21), data_(std::aligned_alloc(2 << 20, bytes_)) {
    madvise(data_, bytes_, MADV_HUGEPAGE);
  }
  ~Memory() { std::free(data_); }
  Memory(const Memory&) = delete;
  /// Numbers around 0 of size 0.02, no denormals.
  void* floats() {
    auto* p = static_cast<float*>(data_);
    for (size_t i = 0; i < bytes_ / 4; ++i) p[i] = (static_cast<float>(i * 2654435761u >> 24) - 127.5f) / 6000;
    return data_;
  }
  void* words() {
    auto* p = static_cast<uint32_t*>(data_);
    for (size_t i = 0; i < bytes_ / 4; ++i) p[i] = static_cast<uint32_t>(i * 2654435761u);
    return data_;
  }

 private:
  size_t bytes_;
  void* data_;
};

__attribute__((target("avx2"))) void read_all(const char* p, size_t n) {
  __m256i s[4] = {};
  size_t quarter = n / 4 / 256 * 256;
  for (size_t i = 0; i < quarter; i += 32)
    for (size_t j = 0; j < 4; ++j) {
      if (i % 64 == 0) __builtin_prefetch(p + j * quarter + i + 2048);
      s[j] = _mm256_or_si256(s[j], _mm256_load_si256(reinterpret_cast<const __m256i*>(p + j * quarter + i)));
    }
  __m256i all = _mm256_or_si256(_mm256_or_si256(s[0], s[1]), _mm256_or_si256(s[2], s[3]));
  volatile int sink = _mm256_extract_epi32(all, 0);
  (void)sink;
}

struct Bench {
  const target::CpuLevel& level;
  Ref<codegen::Jit> jit;
  Ref<runtime::ThreadPool> pool;
  bool json;

  SatorKernel kernel(const tir::PrimFuncRef& func) {
    ModuleRef module = rules::schedule_for_cpu(schedule::Schedule(func, "main").module(), level);
    return jit->add(*passes::lower(cast<tir::PrimFunc>(module->functions.at("main"))));
  }
};

void gemm(Bench& b) {
  constexpr std::pair<int64_t, int64_t> kShapes[] = {
      {2304, 768}, {768, 768}, {3072, 768}, {768, 3072}, {50257, 768}, {2048, 2048}, {8192, 2048}, {2048, 8192}};
  for (auto [n, k] : kShapes) {
    SatorKernel many = b.kernel(bench::product_f32(make_size_var("m"), n, k)),
                one = b.kernel(bench::product_f32(bench::size(1), n, k));
    Memory w(static_cast<size_t>((n + 31) / 32 * 32 * k * 4)), x(static_cast<size_t>(512 * k * 4)),
        y(static_cast<size_t>(512 * n * 4));
    void* buffers[] = {x.floats(), w.floats(), y.words()};
    for (int64_t m : {1, 16, 128, 512}) {
      Timed t = timed([&] { (m == 1 ? one : many)(buffers, &m, b.pool->context()); }, 0.08);
      double gf = 2e-9 * static_cast<double>(m * n * k);
      if (b.json)
        std::printf(
            "{\"bench\": \"gemm_f32\", \"case\": \"%ld x %ld x %ld\", \"m\": %ld, \"n\": %ld, \"k\": %ld, \"gflops\": "
            "%.2f, \"best_gflops\": %.2f}\n",
            m,
            n,
            k,
            m,
            n,
            k,
            gf / t.median,
            gf / t.best);
      else
        std::printf("f32 %4ld x %5ld x %4ld: %7.1f GF/s, best %7.1f\n", m, n, k, gf / t.median, gf / t.best);
      std::fflush(stdout);
    }
  }
}

/// `rows`: 1, or how many rows the kernel for any number of them is called with.
void gemv(Bench& b, size_t total, int64_t rows) {
  constexpr int64_t k = 2048;
  Memory w(total + (1 << 20)), x(k * 4 * 64), y(total / k * 64 + (1 << 20)), scale(total / 4 + (1 << 20));
  void *weights = w.words(), *input = x.floats(), *scales = scale.floats();
  const double budget = total > (256u << 20) ? 2 : 0.8;
  auto plain_read = [&] {
    constexpr size_t kPart = 1 << 18;
    b.pool->for_each_chunk(static_cast<int64_t>(total / kPart), [&](int64_t begin, int64_t end, SatorContext*) {
      read_all(static_cast<const char*>(weights) + static_cast<size_t>(begin) * kPart,
               static_cast<size_t>(end - begin) * kPart);
    });
  };
  struct Kind {
    const char* name;
    tir::PrimFuncRef (*func)(const Expr&, int64_t, int64_t);
    double bytes_per_weight;  ///< codes and scales
    std::vector<void*> buffers;
    double reach;
  };
  void* out = y.words();
  for (const Kind& kind : {Kind{"f32", bench::product_f32, 4, {input, weights, out}, 0.8},
                           Kind{"int8 x f32", bench::product_int8, 1, {input, weights, scales, out}, 0.8},
                           Kind{"int4 group 32 x int8",
                                bench::product_int4,
                                0.625,
                                {input, weights, scales, input, out},
                                total > (256u << 20) ? 0.65 : 0.8}}) {
    int64_t n = static_cast<int64_t>(static_cast<double>(total) / kind.bytes_per_weight) / k / 256 * 256;
    SatorKernel kernel = b.kernel(kind.func(rows == 1 ? bench::size(1) : make_size_var("n"), n, k));
    std::vector<void*> buffers = kind.buffers;
    auto [read, product] = timed_in_turn(plain_read, [&] { kernel(buffers.data(), &rows, b.pool->context()); }, budget);
    double rate = static_cast<double>(total) / read.median / 1e9,
           speed = static_cast<double>(n * k) * kind.bytes_per_weight / product.median / 1e9;
    if (b.json)
      std::printf(
          "{\"bench\": \"gemv\", \"case\": \"%s, %zu MB, %ld rows\", \"gb_per_s\": %.2f, \"plain_read_gb_per_s\": "
          "%.2f, "
          "\"ratio\": %.3f, \"reach\": %.2f}\n",
          kind.name,
          total >> 20,
          rows,
          speed,
          rate,
          speed / rate,
          kind.reach);
    else
      std::printf("gemv %-22s %4zu MB, %2ld rows: %6.2f GB/s = %.2f of a plain read (%.2f)\n",
                  kind.name,
                  total >> 20,
                  rows,
                  speed,
                  speed / rate,
                  rate);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  bool json = false, with_gemm = true, with_gemv = true, with_few = true;
  int threads = 0;
  for (int i = 1; i < argc; ++i) {
    std::string arg = argv[i];
    if (arg == "--json") json = true;
    if (arg == "--threads" && i + 1 < argc) threads = std::atoi(argv[++i]);
    if (arg == "gemm") with_gemv = with_few = false;
    if (arg == "gemv") with_gemm = with_few = false;
    if (arg == "few") with_gemm = with_gemv = false;
  }
  one_thread = threads == 1;
  const target::CpuLevel& level = *target::levels_for("native").front();
  Bench b{level, codegen::Jit::create(level), runtime::ThreadPool::create(threads), json};
  if (with_gemm) gemm(b);
  if (with_gemv)
    for (size_t mb : {64, 1024}) gemv(b, mb << 20, 1);
  if (with_few)
    for (int64_t rows : {2, 4, 8, 13}) gemv(b, size_t{64} << 20, rows);
}
