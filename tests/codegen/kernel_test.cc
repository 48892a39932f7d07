// What a kernel does with its arguments, its threads, its memory and its failures; integer dot products.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <random>

#include "base/float16.h"
#include "codegen/llvm.h"
#include "codegen/programs.h"
#include "codegen/run_kernel.h"
#include "codegen/signature.h"
#include "ir/builtins.h"
#include "tir/interp.h"
#include "tir/parse.h"

namespace sator::codegen {
namespace {

using tir::LoopKind;

std::vector<Expr> shape(std::initializer_list<int64_t> extents) {
  std::vector<Expr> out;
  for (int64_t x : extents) out.push_back(int_imm(x, i64));
  return out;
}

/// acc[g] += sum over `size` of a[size * g + j] * b[size * g + j], in vectors of `lanes` groups.
tir::PrimFuncRef dots(int64_t groups, int lanes, DType da, DType db, int size = 4) {
  BufferRef a = make_buffer("A", shape({groups * size}), da), b = make_buffer("B", shape({groups * size}), db),
            c = make_buffer("C", shape({groups}), size == 4 ? i32 : f32);
  VarRef g = make_var("g", i64);
  Expr first = g * lanes;
  auto ramp = [&](const Expr& base, int n) -> Expr {
    return n == 1 ? base : Expr(make<Ramp>(base, int_imm(1, i64), int{n}));
  };
  Expr sum = call_builtin(size == 4 ? "tir.dot4" : "tir.dot2",
                          {load(c, {ramp(first, lanes)}),
                           load(a, {ramp(first * size, size * lanes)}),
                           load(b, {ramp(first * size, size * lanes)})});
  return prim_func({a, b, c}, tir::for_loop(g, int_imm(groups / lanes, i64), tir::store(c, sum, {ramp(first, lanes)})));
}

TEST(Lookup16, ChoosesBytesAtEveryLevel) {
  constexpr int64_t kBytes = 3 * 256;
  for (const target::CpuLevel* level : target::host_levels())
    for (int lanes : {1, 4, 12, 16, 24, 48, 64, 96, 128, 192}) {
      BufferRef index = make_buffer("index", shape({kBytes}), u8), out = make_buffer("out", shape({kBytes}), u8);
      VarRef g = make_var("g", i64);
      const Expr first = Expr(g) * lanes;
      const Expr at = lanes == 1 ? first : Expr(make<Ramp>(first, int_imm(1, i64), int{lanes}));
      std::vector<Expr> args = {load(index, {at})};
      for (uint32_t word : {0x81020304u, 0x05060708u, 0x090a0bffu, 0x0d0e0f00u}) {
        const Expr w = int_imm(word, u32);
        args.push_back(lanes == 1 ? w : Expr(make<Broadcast>(w, int{lanes})));
      }
      const tir::Stmt body = tir::store(out, call_builtin("tir.lookup16", args), {at});
      const tir::PrimFuncRef f = prim_func({index, out}, tir::for_loop(g, int_imm(kBytes / lanes, i64), body));
      Data<uint8_t> in(kBytes), result(kBytes);
      for (size_t i = 0; i < kBytes; ++i) in[i] = static_cast<uint8_t>(i);  // the upper four bits too
      ASSERT_EQ(run_kernel(f, *level, {in.raw(), result.raw()}), 0);
      const uint8_t table[] = {4, 3, 2, 0x81, 8, 7, 6, 5, 0xff, 0x0b, 0x0a, 9, 0, 0x0f, 0x0e, 0x0d};
      for (size_t i = 0; i < kBytes; ++i)
        ASSERT_EQ(result[i], table[i % 16]) << level->name << " " << lanes << " " << i;
    }
}

TEST(Dot4, IsExactForAllValuesAtEveryLevel) {
  constexpr int64_t kGroups = 65536 / 4 + 96;
  std::mt19937 random(7);
  for (bool a_signed : {false, true})
    for (bool b_signed : {false, true}) {
      Data<uint8_t> a(kGroups * 4), b(kGroups * 4);
      for (size_t i = 0; i < kGroups * 4; ++i) {  // every pair of bytes once, then extremes side by side
        a[i] = static_cast<uint8_t>(i < 65536 ? i >> 8 : random() & 1 ? 255 : 128);
        b[i] = static_cast<uint8_t>(i < 65536 ? i : random() & 1 ? 127 : 128);
      }
      std::vector<int32_t> start(kGroups), expected(kGroups);
      for (size_t g = 0; g < kGroups; ++g) {
        start[g] = static_cast<int32_t>(random());
        uint32_t sum = static_cast<uint32_t>(start[g]);
        for (size_t j = 4 * g; j < 4 * g + 4; ++j) {
          int x = a_signed ? static_cast<int8_t>(a[j]) : a[j], y = b_signed ? static_cast<int8_t>(b[j]) : b[j];
          sum += static_cast<uint32_t>(x * y);
        }
        expected[g] = static_cast<int32_t>(sum);
      }
      for (const target::CpuLevel* level : target::host_levels())
        for (int lanes : {1, 2, 4, 8, 16, 32, 24}) {
          Data<int32_t> c(kGroups);
          std::copy(start.begin(), start.end(), c.memory);
          ASSERT_EQ(
              run_kernel(
                  dots(kGroups, lanes, a_signed ? i8 : u8, b_signed ? i8 : u8), *level, {a.raw(), b.raw(), c.raw()}),
              0);
          size_t wrong = 0, n = kGroups / static_cast<size_t>(lanes) * static_cast<size_t>(lanes);
          for (size_t g = 0; g < n; ++g) wrong += c[g] != expected[g];
          EXPECT_EQ(wrong, 0u) << level->name << ", " << lanes << " lanes, " << (a_signed ? "s8 x " : "u8 x ")
                               << (b_signed ? "s8" : "u8");
        }
    }
}

TEST(Dot4, IsOneInstructionWhereTheCpuHasIt) {
  std::string vnni = compile_listing(*passes::lower(dots(64, 16, u8, i8)), "k", target::cpu_level("avx512")).assembly;
  EXPECT_NE(vnni.find("vpdpbusd"), std::string::npos);
  std::string avx2 = compile_listing(*passes::lower(dots(64, 8, u8, i8)), "k", target::cpu_level("avx2")).assembly;
  EXPECT_NE(avx2.find("vpmaddwd"), std::string::npos);
  EXPECT_EQ(avx2.find("vpmaddubsw"), std::string::npos) << "saturates";
}

// Source of the order: Intel's manual, VDPBF16PS, adds the product of the odd elements, then that of the even ones, each sum
// rounded once.
TEST(Dot2, AddsTheSecondProductFirstAtEveryLevel) {
  constexpr int64_t kGroups = 2048 + 96;
  std::mt19937 random(7);
  for (DType dtype : {bf16, f16}) {
    const auto narrow = [&](float v) { return dtype == bf16 ? f32_to_bf16(v) : f32_to_f16(v); };
    const auto wide = [&](uint16_t v) { return dtype == bf16 ? bf16_to_f32(v) : f16_to_f32(v); };
    std::normal_distribution<float> normal;
    Data<uint16_t> a(kGroups * 2), b(kGroups * 2);
    for (size_t i = 0; i < kGroups * 2; ++i) a[i] = narrow(normal(random)), b[i] = narrow(normal(random));
    std::vector<float> start(kGroups), expected(kGroups);
    size_t other_order = 0;
    for (size_t g = 0; g < kGroups; ++g) {
      start[g] = normal(random);
      const auto added = [&](size_t i, float sum) { return std::fma(wide(a[i]), wide(b[i]), sum); };
      expected[g] = added(2 * g, added(2 * g + 1, start[g]));
      other_order += expected[g] != added(2 * g + 1, added(2 * g, start[g]));
    }
    EXPECT_GT(other_order, 20u) << "the numbers must tell the orders apart";
    for (const target::CpuLevel* level : target::host_levels())
      for (int lanes : {1, 2, 4, 8, 16, 32, 24, 5, 19}) {
        Data<float> c(kGroups);
        std::copy(start.begin(), start.end(), c.memory);
        ASSERT_EQ(run_kernel(dots(kGroups, lanes, dtype, dtype, 2), *level, {a.raw(), b.raw(), c.raw()}), 0);
        size_t wrong = 0, n = kGroups / static_cast<size_t>(lanes) * static_cast<size_t>(lanes);
        for (size_t g = 0; g < n; ++g) wrong += c[g] != expected[g];
        EXPECT_EQ(wrong, 0u) << level->name << ", " << lanes << " lanes of " << text(dtype);
      }
  }
}

TEST(Dot2, IsOneInstructionWhereTheCpuHasIt) {
  const auto listing = [](const char* level) {
    return compile_listing(*passes::lower(dots(64, 16, bf16, bf16, 2)), "k", target::cpu_level(level)).assembly;
  };
  EXPECT_NE(listing("avx512_bf16").find("vdpbf16ps"), std::string::npos);
  EXPECT_EQ(listing("avx512").find("vdpbf16ps"), std::string::npos);
}

// Looking at such a loop takes LLVM longer than all else, and what it makes of it is the same.
TEST(Kernel, LlvmDoesNotTryToWriteOutLongIterations) {
  const auto ir = [](int stores) {
    BufferRef a = make_buffer("A", shape({8 * stores}), f32), out = make_buffer("Out", shape({8 * stores}), f32);
    VarRef i = make_var("i", i64);
    std::vector<tir::Stmt> all;
    for (int j = 0; j < stores; ++j) all.push_back(tir::store(out, load(a, {i * stores + j}), {i * stores + j}));
    tir::PrimFuncRef f = prim_func({a, out}, tir::for_loop(i, int_imm(8, i64), tir::seq(all)));
    return compile_listing(*passes::lower(f), "k", target::cpu_level("avx2")).ir;
  };
  EXPECT_NE(ir(65).find("llvm.loop.unroll.disable"), std::string::npos);
  EXPECT_EQ(ir(64).find("llvm.loop.unroll.disable"), std::string::npos);
}

TEST(Kernel, GetsSymbolicSizesAndScalars) {
  // out[i] = a[i] * s + n for i < n, s a float parameter, n from a's shape.
  VarRef n = make_size_var("n"), s = make_var("s", f32), i = make_var("i", i64);
  BufferRef a = make_buffer("A", {n}, f32), out = make_buffer("Out", {n}, f32);
  tir::PrimFuncRef f =
      prim_func({a, out}, tir::for_loop(i, n, tir::store(out, load(a, {i}) * s + cast_to(f32, n), {i})), {s});
  KernelArguments arguments = kernel_arguments(*f);
  ASSERT_EQ(arguments.values.size(), 2u);
  EXPECT_EQ(arguments.values[0], s);
  EXPECT_EQ(arguments.values[1], n);
  runtime::KernelSignature signature = kernel_signature(*f);
  EXPECT_EQ(signature.values[0].dim, -1);
  EXPECT_EQ(signature.values[0].param, 2);
  EXPECT_EQ(signature.values[1].param, 0);
  EXPECT_EQ(signature.values[1].dim, 0);
  Data<float> x(5), y(8);
  for (size_t k = 0; k < 5; ++k) x[k] = static_cast<float>(k);
  y[5] = -1;
  double scale = 0.5;
  ASSERT_EQ(run_kernel(f, *target::host_levels()[0], {x.raw(), y.raw()}, {std::bit_cast<int64_t>(scale), 5}), 0);
  for (size_t k = 0; k < 5; ++k) EXPECT_EQ(y[k], 0.5f * static_cast<float>(k) + 5);
  EXPECT_EQ(y[5], -1);
}

TEST(Kernel, RefusesASizeThatNothingGives) {
  VarRef n = make_size_var("n");
  BufferRef a = make_buffer("A", {n * 4}, f32);
  tir::PrimFuncRef f = prim_func({a}, tir::store(a, float_imm(0), {int_imm(0, i64)}));
  EXPECT_THROW(kernel_signature(*f), Error);
}

TEST(Kernel, ParallelLoopsCoverTheirRangeOnceForAnyNumberOfThreads) {
  VarRef n = make_size_var("n"), i = make_var("i", i64);
  BufferRef a = make_buffer("A", {n}, i32);
  tir::Stmt loop = tir::for_loop(i, n - 3, tir::store(a, load(a, {i + 3}) + 1, {i + 3}), LoopKind::parallel);
  for (int64_t extent : {3, 4, 5, 1000})
    for (int threads : {1, 2, 3}) {
      Data<int32_t> x(1000);
      std::fill(x.memory, x.memory + 1000, 10);
      ASSERT_EQ(run_kernel(prim_func({a}, loop), *target::host_levels()[0], {x.raw()}, {extent}, threads), 0);
      for (int64_t k = 0; k < 1000; ++k) ASSERT_EQ(x[static_cast<size_t>(k)], k >= 3 && k < extent ? 11 : 10);
    }
}

TEST(Kernel, TakesLargeBuffersFromTheWorkspaceAndGivesThemBack) {
  // Each parallel iteration fills 100 kB of its own, then sums it.
  constexpr int64_t kSize = 25000;
  BufferRef out = make_buffer("Out", shape({8}), i32), scratch = make_buffer("scratch", shape({kSize}), i32);
  VarRef t = make_var("t", i64), i = make_var("i", i64), j = make_var("j", i64);
  tir::Stmt fill = tir::for_loop(i, int_imm(kSize, i64), tir::store(scratch, cast_to(i32, i * t), {i}));
  tir::Stmt sum = tir::for_loop(j, int_imm(kSize, i64), tir::store(out, load(out, {t}) + load(scratch, {j}), {t}));
  tir::Stmt body =
      make<tir::Allocate>(scratch->data, i32, scratch->shape, bool_imm(true), Attrs{}, tir::seq({fill, sum}));
  Ref<Jit> jit = Jit::create(*target::host_levels()[0]);
  SatorKernel kernel =
      jit->add(*passes::lower(prim_func({out}, tir::for_loop(t, int_imm(8, i64), body, LoopKind::parallel))));
  Ref<runtime::ThreadPool> pool = runtime::ThreadPool::create(2);
  size_t mark = pool->workspace_mark();
  Data<int32_t> x(8);
  std::fill(x.memory, x.memory + 8, 0);
  void* buffers[] = {x.raw()};
  ASSERT_EQ(kernel(buffers, nullptr, pool->context()), 0);
  for (int64_t k = 0; k < 8; ++k)
    EXPECT_EQ(x[static_cast<size_t>(k)], static_cast<int32_t>(k * (kSize * (kSize - 1) / 2)));
  EXPECT_EQ(pool->workspace_mark(), mark);
}

TEST(Kernel, ReportsAFailedAssertionFromAParallelLoop) {
  VarRef n = make_size_var("n"), i = make_var("i", i64);
  BufferRef a = make_buffer("A", {n}, i32);
  tir::Stmt body = make<tir::AssertStmt>(
      lt(load(a, {i}), int_imm(100)), string_imm("a token is out of range"), tir::store(a, int_imm(7), {i}));
  Ref<Jit> jit = Jit::create(*target::host_levels()[0]);
  SatorKernel kernel = jit->add(*passes::lower(prim_func({a}, tir::for_loop(i, n, body, LoopKind::parallel))));
  Ref<runtime::ThreadPool> pool = runtime::ThreadPool::create(2);
  Data<int32_t> x(16);
  std::fill(x.memory, x.memory + 16, 1);
  x[13] = 100;
  void* buffers[] = {x.raw()};
  int64_t values[] = {16};
  EXPECT_NE(kernel(buffers, values, pool->context()), 0);
  EXPECT_NE(pool->take_error().find("a token is out of range"), std::string::npos);
  EXPECT_EQ(x[0], 7);
  EXPECT_EQ(x[13], 100);
  values[0] = 13;
  EXPECT_EQ(kernel(buffers, values, pool->context()), 0);
}

// A reduction over nothing gives the value of its init, wherever its loops are.
TEST(Kernel, RunsTheInitOfAReductionWithoutIterations) {
  for (const char* nest : {"i, k in T.grid(5, n)", "k, i in T.grid(n, 5)"}) {
    tir::PrimFuncRef f = tir::parse_function(text(R"(
@T.prim_func
def f(a: T.handle, B: T.Buffer((5,), "float32")):
    n = T.int64(is_size_var=True)
    A = T.match_buffer(a, (5, n), "float32")
    for )",
                                                  nest,
                                                  R"(:
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(2)
            B[vi] = B[vi] + A[vi, vk]
)"));
    for (const target::CpuLevel* level : target::host_levels()) {
      for (int64_t n : {0, 3}) {
        Data<float> a(16), b(5), meant(5);
        std::fill(a.memory, a.memory + 15, 1.0F);
        for (Data<float>* result : {&b, &meant}) std::fill(result->memory, result->memory + 5, -77.0F);
        EXPECT_EQ(run_kernel(f, *level, {a.raw(), b.raw()}, {n}), 0);
        const tir::Argument views[] = {tir::ArrayView{a.raw(), f32, {5, n}}, tir::ArrayView{meant.raw(), f32, {5}}};
        tir::Interpreter(f).run(views);
        for (size_t i = 0; i < 5; ++i) {
          EXPECT_EQ(b[i], static_cast<float>(2 + n)) << nest;
          EXPECT_EQ(meant[i], static_cast<float>(2 + n)) << nest;
        }
      }
    }
  }
}

// Embeddings of token ids: the ids are looked at before the first row is copied.
TEST(Kernel, RefusesAnIndexThatLiesOutsideOfItsBuffer) {
  tir::PrimFuncRef f = tir::parse_function(R"(
@T.prim_func
def f(A: T.Buffer((3, 64), "float32"), a: T.handle, b: T.handle):
    n = T.int64(is_size_var=True)
    ids = T.match_buffer(a, (n,), "int32")
    B = T.match_buffer(b, (n, 64), "float32")
    for i in T.parallel(n):
        for j in T.vectorized(64):
            with T.block("T_take"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[ids[vi], vj]
)");
  Data<float> table(3 * 64), out(4 * 64);
  for (size_t k = 0; k < table.size; ++k) table[k] = static_cast<float>(k);
  Data<int32_t> ids(4);
  for (const target::CpuLevel* level : target::host_levels()) {
    Ref<Jit> jit = Jit::create(*level);
    SatorKernel kernel = jit->add(*passes::lower(f));
    Ref<runtime::ThreadPool> pool = runtime::ThreadPool::create(2);
    void* buffers[] = {table.raw(), ids.raw(), out.raw()};
    int64_t values[] = {4};
    for (int32_t wrong : {-1, 3, INT32_MAX, INT32_MIN}) {
      ids[0] = 2, ids[1] = 0, ids[2] = wrong, ids[3] = 1;
      EXPECT_NE(kernel(buffers, values, pool->context()), 0);
      EXPECT_NE(pool->take_error().find("an index of A is out of range: ids[i] is not in [0, 3)"), std::string::npos);
    }
    ids[2] = 2;
    EXPECT_EQ(kernel(buffers, values, pool->context()), 0);
    EXPECT_EQ(out[2 * 64 + 5], 2 * 64 + 5);
  }
}

// A comparison of many lanes may be one of offsets, but not where the numbers come from memory, by a name or as they are.
TEST(Kernel, ComparisonsOfDataWrap) {
  const tir::PrimFuncRef f = tir::parse_function(R"(
@T.prim_func
def f(A: T.Buffer((4,), "int32"), B: T.Buffer((4, 64), "bool"), C: T.Buffer((4, 64), "bool")):
    for i in range(4):
        t: T.int32 = A[i]
        for j in T.vectorized(64):
            B[i, j] = t + j < 5
        for j in T.vectorized(64):
            C[i, j] = A[i] * 4 + j < 5
)");
  Data<int32_t> a(4);
  Data<uint8_t> b(4 * 64), c(4 * 64);
  a[0] = INT32_MAX, a[1] = INT32_MAX - 9, a[2] = INT32_MIN, a[3] = (1 << 30) + 1;
  auto wrapped = [](int64_t v) { return static_cast<int32_t>(static_cast<uint32_t>(v)); };
  for (const target::CpuLevel* level : target::host_levels()) {
    Ref<Jit> jit = Jit::create(*level);
    SatorKernel kernel = jit->add(*passes::lower(f));
    Ref<runtime::ThreadPool> pool = runtime::ThreadPool::create(1);
    void* buffers[] = {a.raw(), b.raw(), c.raw()};
    ASSERT_EQ(kernel(buffers, nullptr, pool->context()), 0) << pool->take_error();
    for (size_t k = 0; k < 4 * 64; ++k) {
      const int64_t v = a[k / 64], j = static_cast<int64_t>(k % 64);
      EXPECT_EQ(b[k], wrapped(v + j) < 5) << level->name << ", element " << k;
      EXPECT_EQ(c[k], wrapped(v * 4 + j) < 5) << level->name << ", element " << k;
    }
  }
}

// Integers wrap, and an index is what is left of them: 2^30 * 4 is 0, in a let too.
TEST(Kernel, IndicesOfDataWrapAsTheirCheckDoes) {
  const tir::PrimFuncRef f = tir::parse_function(R"(
@T.prim_func
def f(A: T.Buffer((8,), "float32"), ids: T.Buffer((4,), "int32"), B: T.Buffer((8,), "float32")):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            t: T.int32 = ids[vi]
            B[vi] = A[ids[vi] * 4 + vi] + A[t * 4 + 1]
            B[ids[vi] * 8 // 8 + 4 + vi] = A[ids[vi] * 65536 * 65536 + 2]
)");
  Data<float> table(8), out(8);
  for (size_t k = 0; k < table.size; ++k) table[k] = static_cast<float>(1 << k);
  Data<int32_t> ids(4);
  for (const target::CpuLevel* level : target::host_levels()) {
    Ref<Jit> jit = Jit::create(*level);
    SatorKernel kernel = jit->add(*passes::lower(f));
    Ref<runtime::ThreadPool> pool = runtime::ThreadPool::create(1);
    void* buffers[] = {table.raw(), ids.raw(), out.raw()};
    ids[0] = 1 << 30, ids[1] = -(1 << 30), ids[2] = INT32_MIN, ids[3] = 0;
    ASSERT_EQ(kernel(buffers, nullptr, pool->context()), 0) << pool->take_error();
    for (size_t k = 0; k < 4; ++k) {
      EXPECT_EQ(out[k], (1 << k) + 2) << level->name;
      EXPECT_EQ(out[4 + k], 4) << level->name;
    }
    ids[3] = 2;
    EXPECT_NE(kernel(buffers, nullptr, pool->context()), 0);
  }
}

// The instruction would end the process on a zero, and on the least number by -1.
TEST(Kernel, RefusesADivisionByZeroAndWrapsTheLeastByMinusOne) {
  for (const char* kind : {"serial", "parallel", "vectorized"}) {
    SCOPED_TRACE(kind);
    tir::PrimFuncRef f = tir::parse_function(text(R"(
@T.prim_func
def f(A: T.Buffer((24,), "int32"), B: T.Buffer((24,), "int32"), Q: T.Buffer((24,), "int32"), R: T.Buffer((24,), "int32"), S: T.Buffer((24,), "int32"), U: T.Buffer((24,), "int32")):
    for i in T.)",
                                                  kind,
                                                  R"((24):
        with T.block("divide"):
            vi = T.axis.spatial(24, i)
            Q[vi] = A[vi] // B[vi]
            R[vi] = A[vi] % B[vi]
            S[vi] = T.truncdiv(A[vi], B[vi])
            U[vi] = T.if_then_else(B[vi] == 7, T.truncmod(A[vi], B[vi]), 0)
)"));
    Data<int32_t> a(24), b(24),
        results[4] = {Data<int32_t>(24), Data<int32_t>(24), Data<int32_t>(24), Data<int32_t>(24)},
        meant[4] = {Data<int32_t>(24), Data<int32_t>(24), Data<int32_t>(24), Data<int32_t>(24)};
    for (size_t i = 0; i < 24; ++i) {
      a[i] = i % 3 == 0 ? INT32_MIN : static_cast<int32_t>(i * 37) - 400;
      b[i] = std::array{-1, 7, -5, 1, INT32_MIN, 3}[i % 6];
    }
    std::vector<tir::Argument> views = {tir::ArrayView{a.raw(), i32, {24}}, tir::ArrayView{b.raw(), i32, {24}}};
    for (Data<int32_t>& m : meant) views.push_back(tir::ArrayView{m.raw(), i32, {24}});
    tir::Interpreter(f).run(views);
    for (const target::CpuLevel* level : target::host_levels()) {
      Ref<Jit> jit = Jit::create(*level);
      SatorKernel kernel = jit->add(*passes::lower(f));
      Ref<runtime::ThreadPool> pool = runtime::ThreadPool::create(2);
      void* buffers[] = {a.raw(), b.raw(), results[0].raw(), results[1].raw(), results[2].raw(), results[3].raw()};
      EXPECT_EQ(kernel(buffers, nullptr, pool->context()), 0) << pool->take_error();
      for (size_t r = 0; r < 4; ++r)
        for (size_t i = 0; i < 24; ++i) EXPECT_EQ(results[r][i], meant[r][i]) << a[i] << " by " << b[i] << ", " << r;
      const int32_t kept = std::exchange(b[21], 0);
      EXPECT_NE(kernel(buffers, nullptr, pool->context()), 0);
      EXPECT_NE(pool->take_error().find("a division by zero: the divisor is B["), std::string::npos);
      b[21] = kept;
    }
  }
}

// A row of 40 in vectors of 16: what the masked last vector leaves in memory of the kernel's own is read one by one.
TEST(Kernel, MaskedVectorsEndInsideOfLocalMemory) {
  tir::PrimFuncRef f = tir::parse_function(R"(
@T.prim_func
def f(A: T.Buffer((40,), "float32"), B: T.Buffer((40,), "float32")):
    E = T.alloc_buffer((40,))
    for k in range(3):
        for j in T.vectorized(16):
            if k * 16 + j < 40:
                E[k * 16 + j] = A[k * 16 + j] * T.float32(2)
    for k in range(40):
        B[k] = E[k]
)");
  Data<float> a(40), b(40);
  for (size_t i = 0; i < 40; ++i) a[i] = static_cast<float>(i), b[i] = -1;
  for (const target::CpuLevel* level : target::host_levels()) {
    ASSERT_EQ(run_kernel(f, *level, {a.raw(), b.raw()}), 0);
    for (size_t i = 0; i < 40; ++i) EXPECT_EQ(b[i], 2 * static_cast<float>(i)) << level->name << " " << i;
  }
}

// Lanes that a mask switches off may lie in front of memory of the kernel's own, too.
TEST(Kernel, MaskedVectorsMayBeginBeforeLocalMemory) {
  tir::PrimFuncRef f = tir::parse_function(R"(
@T.prim_func
def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    E = T.alloc_buffer((14,))
    for j in T.vectorized(16):
        if j >= 2:
            E[j - 2] = A[j] * T.float32(2)
    for j in T.vectorized(16):
        B[j] = T.float32(0)
        if j >= 2:
            B[j] = E[j - 2] + T.float32(1)
)");
  Data<float> a(16), b(16);
  for (size_t i = 0; i < 16; ++i) a[i] = static_cast<float>(i), b[i] = -1;
  for (const target::CpuLevel* level : target::host_levels()) {
    ASSERT_EQ(run_kernel(f, *level, {a.raw(), b.raw()}), 0);
    for (size_t i = 0; i < 16; ++i)
      EXPECT_EQ(b[i], i < 2 ? 0 : 2 * static_cast<float>(i) + 1) << level->name << " " << i;
  }
}

// Codes become floats in the fraction of a power of two (arithmetic.cc): exact for every code, place and constant, as a
// conversion is.
TEST(Kernel, CodesLessAConstantAreExact) {
  struct Form {
    uint32_t shift, mask;
    double constant;
  };
  std::vector<Form> forms = {{3, 255, 0.5},
                             {3, 255, 8388609},
                             {3, 0x7fffff, 8388608},
                             {3, 0x7fffff, -8388608},
                             {0, 0x7fffff, 1},
                             {0, 0xffffff, 3},
                             {9, 0x7fff, 16384},
                             {8, 255, -32769},
                             {30, 255, 1}};
  for (uint32_t bits : {2u, 4u, 8u})
    for (uint32_t shift = 0; shift < 32; shift += bits)
      forms.push_back({shift, (1u << bits) - 1, static_cast<double>((1 << (bits - 1)) - 1)});
  for (const Form& form : forms) {
    tir::PrimFuncRef f = tir::parse_function(text(R"(
@T.prim_func
def f(A: T.Buffer((64,), "uint32"), B: T.Buffer((64,), "float32")):
    for i in range(4):
        for j in T.vectorized(16):
            B[i * 16 + j] = T.Cast("float32", T.bitwise_and(T.shift_right(A[i * 16 + j], T.uint32()",
                                                  static_cast<int64_t>(form.shift),
                                                  ")), T.uint32(",
                                                  static_cast<int64_t>(form.mask),
                                                  "))) - T.float32(",
                                                  form.constant,
                                                  ")"));
    Data<uint32_t> a(64);
    Data<float> b(64);
    for (uint32_t i = 0; i < 64; ++i) a[i] = i * 67108859u + i;
    for (const target::CpuLevel* level : target::host_levels()) {
      ASSERT_EQ(run_kernel(f, *level, {a.raw(), b.raw()}), 0);
      for (size_t i = 0; i < 64; ++i)
        EXPECT_EQ(b[i], static_cast<float>((a[i] >> form.shift) & form.mask) - static_cast<float>(form.constant))
            << level->name << " " << form.shift << " " << form.mask << " " << form.constant << " " << i;
    }
  }
}

TEST(Kernel, CodesOfOneWordInItsLanesAreExact) {
  tir::PrimFuncRef f = tir::parse_function(R"(
@T.prim_func
def f(A: T.Buffer((2,), "uint32"), B: T.Buffer((16,), "float32")):
    for j in T.vectorized(16):
        B[j] = T.Cast("float32", T.bitwise_and(T.shift_right(A[j // 8], T.Cast("uint32", j % 8 * 4)), T.uint32(15))) - T.float32(7)
)");
  Data<uint32_t> a(2);
  Data<float> b(16);
  a[0] = 0x76543210u, a[1] = 0xfedcba98u;
  for (const target::CpuLevel* level : target::host_levels()) {
    ASSERT_EQ(run_kernel(f, *level, {a.raw(), b.raw()}), 0);
    for (size_t j = 0; j < 16; ++j) EXPECT_EQ(b[j], static_cast<float>(j) - 7) << level->name << " " << j;
  }
}

TEST(Kernel, EmitsTheSameBytesEachTime) {
  tir::PrimFuncRef f = passes::lower(dots(64, 16, u8, i8));
  const target::CpuLevel& level = target::cpu_level("avx512");
  EXPECT_EQ(compile_object(*f, "k", level), compile_object(*f, "k", level));
}

TEST(Kernel, NamesWhatACpuDoesNotHave) {
  BufferRef a = make_buffer("A", shape({4}), f32);
  VarRef i = make_var("i", i64);
  tir::Stmt bound = make<tir::For>(i,
                                   int_imm(0, i64),
                                   int_imm(4, i64),
                                   LoopKind::thread_binding,
                                   "threadIdx.x",
                                   Attrs{},
                                   tir::store(a, float_imm(0), {i}));
  EXPECT_THROW(compile_object(*passes::lower(prim_func({a}, bound)), "k", target::cpu_level("avx2")), Error);
  tir::Stmt gpu = tir::store(a, call(f32, "tir.tvm_warp_activemask", {}), {int_imm(0, i64)});
  EXPECT_THROW(compile_object(*passes::lower(prim_func({a}, gpu)), "k", target::cpu_level("avx2")), Error);
}

}  // namespace
}  // namespace sator::codegen
