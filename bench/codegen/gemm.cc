// How close the emitter comes to the machine: kernels in their final scheduled form, against the ceilings of the same
// run. Usage: codegen_gemm_bench [threads]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

#include <sys/mman.h>

#include "codegen/jit.h"
#include "ir/builtins.h"
#include "codegen/llvm.h"
#include "passes/lower/lower.h"
#include "runtime/thread_pool.h"

using namespace sator;
using namespace sator::tir;

namespace {

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}
/// Seconds of this thread: other programs on the machine do not count.
double cpu() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

void* huge(size_t bytes) {
  size_t rounded = (bytes + (4 << 20)) >> 21 << 21;
  void* p = std::aligned_alloc(2 << 20, rounded);
  madvise(p, rounded, MADV_HUGEPAGE);
  return p;
}

Stmt nest(std::vector<std::pair<VarRef, LoopKind>> loops, std::vector<int64_t> extents, Stmt body) {
  for (size_t i = loops.size(); i-- > 0;) body = for_loop(loops[i].first, int_imm(extents[i], i64), body, loops[i].second);
  return body;
}
VarRef var(const char* name) { return make_var(name, i64); }
Stmt allocated(const BufferRef& b, Stmt body) {
  return make<Allocate>(b->data, b->dtype, b->shape, bool_imm(true), Attrs{}, make<DeclBuffer>(b, body));
}
std::vector<Expr> shape(std::vector<int64_t> extents) {
  std::vector<Expr> out;
  for (int64_t x : extents) out.push_back(int_imm(x, i64));
  return out;
}
PrimFuncRef function(std::vector<BufferRef> buffers, Stmt body) {
  std::vector<VarRef> params;
  std::vector<std::pair<VarRef, BufferRef>> map;
  for (const BufferRef& b : buffers) {
    params.push_back(make_var(b->name + "_handle", DType::Handle()));
    map.emplace_back(params.back(), b);
  }
  PrimFuncRef f = make<PrimFunc>(params, map, DType::Void(), Attrs{{"tir.noalias", bool_imm(true)}}, body);
  return f;
}

/// C[M, N] = A[M, K] B, B packed as [N / 32][K][32]; register tile R x 32, row blocks of MB, K blocks of KC.
PrimFuncRef gemm_f32(int64_t M, int64_t N, int64_t K, int64_t R, int64_t KC, int64_t MB, int64_t V = 16) {
  MB = std::min(MB / R * R, M / R * R);
  constexpr int64_t P = 32;
  auto S = LoopKind::serial, U = LoopKind::unrolled, Vec = LoopKind::vectorized, Par = LoopKind::parallel;
  BufferRef A = make_buffer("A", shape({M, K}), f32), B = make_buffer("B", shape({N / P, K, P}), f32), C = make_buffer("C", shape({M, N}), f32);
  BufferRef ap = make_buffer("A_packed", shape({MB / R, KC, R}), f32), acc = make_buffer("C_local", shape({R, P}), f32, "local");
  VarRef m0 = var("m0"), k0 = var("k0"), t = var("t"), n = var("n");
  VarRef pm = var("pm"), pi = var("pi"), pk = var("pk");
  Stmt pack = nest({{pm, Par}, {pk, S}, {pi, U}}, {MB / R, KC, R},
                   store(ap, load(A, {m0 * MB + pm * R + pi, k0 * KC + pk}), {pm, pk, pi}));
  VarRef i = var("i"), j0 = var("j0"), j1 = var("j1"), k = var("k");
  auto tile = [&](auto make_store) {
    VarRef x = var("i"), y0 = var("j0"), y1 = var("j1");
    return nest({{x, U}, {y0, U}, {y1, Vec}}, {R, P / V, V}, make_store(x, y0 * V + y1));
  };
  Expr first = make<EQ>(k0, int_imm(0, i64));
  auto at = [&](const Expr& x, const Expr& y) { return std::vector<Expr>{m0 * MB + t * R + x, n * P + y}; };
  Stmt init = tile([&](Expr x, Expr y) { return store(acc, float_imm(0), {x, y}); });
  Stmt read = tile([&](Expr x, Expr y) { return store(acc, load(C, at(x, y)), {x, y}); });
  Stmt prefetch = seq({make<Evaluate>(call(i32, "tir.prefetch", {call_builtin("tir.address_of", {load(B, {n, k0 * KC + k + 8, int_imm(0, i64)})}), int_imm(0), int_imm(3), int_imm(1)})),
                       make<Evaluate>(call(i32, "tir.prefetch", {call_builtin("tir.address_of", {load(B, {n, k0 * KC + k + 8, int_imm(16, i64)})}), int_imm(0), int_imm(3), int_imm(1)}))});
  Stmt update = for_loop(k, int_imm(KC, i64), seq({prefetch, tile([&](Expr x, Expr y) {
                           return store(acc, load(acc, {x, y}) + load(ap, {t, k, x}) * load(B, {n, k0 * KC + k, y}), {x, y});
                         })}));
  Stmt write = tile([&](Expr x, Expr y) { return store(C, load(acc, {x, y}), at(x, y)); });
  Stmt micro = allocated(acc, seq({make<IfThenElse>(first, init, read), update, write}));
  Stmt compute = nest({{n, Par}, {t, S}}, {N / P, MB / R}, micro);
  return function({A, B, C}, nest({{m0, S}, {k0, S}}, {M / MB, K / KC}, allocated(ap, seq({pack, compute}))));
}

int threads_used = 1;

struct Timed {
  double median, best;
};
template <class F>
Timed timed(F&& f, int repeats = 9) {
  std::vector<double> v;
  f();
  for (int r = 0; r < repeats; ++r) {
    double t = threads_used > 1 ? now() : cpu();
    f();
    v.push_back((threads_used > 1 ? now() : cpu()) - t);
  }
  std::sort(v.begin(), v.end());
  return {v[v.size() / 2], v[0]};
}

}  // namespace

int main(int argc, char** argv) {
  int threads = threads_used = argc > 1 ? std::atoi(argv[1]) : 1;
  const target::CpuLevel& level = target::cpu_level(argc > 2 ? argv[2] : "avx512");
  Ref<codegen::Jit> jit = codegen::Jit::create(level);
  Ref<runtime::ThreadPool> pool = runtime::ThreadPool::create(threads);
  float *A = static_cast<float*>(huge(64 << 20)), *B = static_cast<float*>(huge(128 << 20)), *C = static_cast<float*>(huge(64 << 20));
  for (size_t i = 0; i < (16 << 20); ++i) A[i] = static_cast<float>((i * 2654435761u) >> 16 & 255) / 256.f - .5f;
  for (size_t i = 0; i < (32 << 20); ++i) B[i] = static_cast<float>((i * 2654435761u) >> 16 & 255) / 256.f - .5f;
  if (argc > 3) {
    codegen::Listing l = codegen::compile_listing(*passes::lower(gemm_f32(512, 2304, 768, 14, 384, 512)), "gemm", level);
    std::puts(!std::strcmp(argv[3], "ir") ? l.ir.c_str() : !std::strcmp(argv[3], "opt") ? l.optimized.c_str() : l.assembly.c_str());
    return 0;
  }
  struct Shape {
    int64_t m, n, k;
  };
  for (auto [M, N, K] : {Shape{128, 2304, 768}, {512, 2304, 768}, {512, 768, 3072}, {1024, 1024, 1024}, {512, 8192, 2048}}) {
    for (int64_t R : {14, 12, 6}) {
      int64_t KC = K % 512 == 0 ? 512 : 384, m = M / R * R;
      double t0 = now();
      SatorKernel kernel = jit->add(*passes::lower(gemm_f32(m, N, K, R, KC, 512, level.vector_bits / 32)));
      double compile = now() - t0;
      void* buffers[] = {A, B, C};
      Timed t = timed([&] { kernel(buffers, nullptr, pool->context()); });
      // One element against double arithmetic.
      double worst = 0;
      int64_t blocks = std::min<int64_t>(512 / R * R, m), rows = m / blocks * blocks;
      for (int64_t i = 0; i < rows; i += 37)
        for (int64_t j = 0; j < N; j += 97) {
          double sum = 0;
          for (int64_t k = 0; k < K; ++k) sum += double(A[i * K + k]) * B[(j / 32 * K + k) * 32 + j % 32];
          worst = std::max(worst, std::abs(sum - C[i * N + j]));
        }
      std::printf("%4ld x %4ld x %4ld tile %2ldx32: %6.1f GF/s (best %6.1f), compiled in %.0f ms, error %.1e\n", rows, N, K, R,
                  2.0 * rows * N * K / t.median / 1e9, 2.0 * rows * N * K / t.best / 1e9, compile * 1e3, worst);
    }
  }
}
