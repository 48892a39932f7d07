// Products on matrix tiles, against the interpreter: the same bits for any number of rows, depth and signs.
#include <gtest/gtest.h>

#include <list>
#include <random>

#include "base/float16.h"
#include "codegen/llvm.h"
#include "codegen/programs.h"
#include "codegen/run_kernel.h"
#include "tir/interp.h"
#include "tir/parse.h"

namespace sator::codegen {
namespace {

/// Products C [rows, 72] += A [rows, depth + 8] * B [2 panels], of which C begins at column 4, A at column 8 and B at element 4.
struct Case {
  std::string a, b;
  int64_t depth = 64, rows = 32;
  bool from_zero = false;
  int64_t products = 1, lines = 0;  // lines: asked for in advance, by one more than the rows ahead
  int64_t columns = 64;
  bool narrow = false;  // 16 columns that lie side by side, not in half a panel
  bool is_float() const { return a == "bfloat16"; }
  int64_t group() const { return is_float() ? 2 : 4; }
  int64_t elements_of_a() const { return products * rows * (depth + 8) + 8; }
  int64_t elements_of_b() const { return products * 2 * 32 * depth / (b == "uint32" ? 4 : 1) + 4; }
  int64_t elements_of_c() const { return products * rows * 72; }
};

tir::PrimFuncRef program(const Case& c, bool constant_rows) {
  const int64_t stride = c.depth + 8;
  const std::string rows = constant_rows ? text(c.rows) : "T.Cast(\"int64\", N[0])";
  return tir::parse_function(text(R"(
from tvm.script import tir as T

@T.prim_func
def main(N: T.Buffer((1,), "int32"), A: T.Buffer(()",
                                  c.elements_of_a(),
                                  R"(,), ")",
                                  c.a,
                                  R"("), B: T.Buffer(()",
                                  c.elements_of_b(),
                                  R"(,), ")",
                                  c.b,
                                  R"("), C: T.Buffer(()",
                                  c.elements_of_c(),
                                  R"(,), ")",
                                  c.is_float() ? "float32" : "int32",
                                  R"(")):
    T.evaluate(T.tile_product(T.address_of(C[4]), 72, T.address_of(A[8]), )",
                                  stride,
                                  ", T.address_of(B[4]), ",
                                  c.columns > 16 ? 32 * c.depth
                                  : c.narrow     ? 16 * c.group()
                                                 : 32 * c.group(),
                                  ", ",
                                  rows,
                                  ", ",
                                  c.columns,
                                  ", ",
                                  c.depth,
                                  c.lines > 0 ? text(", ", rows, " + 1, ") : ", 0, ",
                                  c.from_zero ? 1 : 0,
                                  ", ",
                                  c.products,
                                  ", ",
                                  c.rows * 72,
                                  ", ",
                                  c.rows * stride,
                                  ", ",
                                  2 * 32 * c.depth,
                                  ", ",
                                  c.lines,
                                  "))\n"));
}

bool can_run() { return target::host_runs(target::cpu_level("amx")); }

std::string code_of(const tir::PrimFuncRef& f) {
  return compile_listing(*passes::lower(f), "k", target::cpu_level("amx")).assembly;
}

/// Without tiles here, only that it compiles: what the interpreter says is checked below.
void expect_as_interpreted(const Case& c, bool constant_rows) {
  const target::CpuLevel& level = target::cpu_level("amx");
  const tir::PrimFuncRef f = program(c, constant_rows);
  if (!can_run()) {
    const bool in_vectors = c.is_float() && c.rows == 1 && constant_rows;
    EXPECT_NE(code_of(f).find(in_vectors ? "vfmadd" : "tdpb"), std::string::npos);
    return;
  }
  std::mt19937 random(static_cast<unsigned>(c.depth * 100 + c.rows));
  const auto size_a = static_cast<size_t>(c.elements_of_a()), size_c = static_cast<size_t>(c.elements_of_c());
  const auto size_b = static_cast<size_t>(c.elements_of_b());
  const size_t bytes_a = c.is_float() ? 2 : 1, bytes_b = c.is_float() ? 2 : c.b == "uint32" ? 4 : 1;
  Data<int32_t> n(1);
  n[0] = static_cast<int32_t>(c.rows);
  Data<uint8_t> a(size_a * bytes_a), b(size_b * bytes_b);
  Data<uint32_t> said(size_c), done(size_c);
  auto fill = [&](Data<uint8_t>& v) {
    for (size_t i = 0; i < v.size; i += 2) {
      const auto number = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 300;
      const uint16_t bits = c.is_float() ? f32_to_bf16(number) : static_cast<uint16_t>(random());
      v[i] = static_cast<uint8_t>(bits);
      if (i + 1 < v.size) v[i + 1] = static_cast<uint8_t>(bits >> 8);
    }
  };
  fill(a), fill(b);
  for (size_t i = 0; i < size_c; ++i)
    said[i] = done[i] = c.is_float() ? std::bit_cast<uint32_t>(static_cast<float>(random() % 100) / 7) : random();
  auto view = [&](void* data, DType dtype, size_t count) {
    tir::ArrayView v{.dtype = dtype};
    v.shape = {static_cast<int64_t>(count)};
    v.data = data;
    return tir::Argument(v);
  };
  const std::vector<BufferRef> buffers = [&] {
    std::vector<BufferRef> out;
    for (const VarRef& p : f->params) out.push_back(f->buffer_of(p));
    return out;
  }();
  const std::vector<tir::Argument> arguments = {view(n.raw(), i32, 1),
                                                view(a.raw(), buffers[1]->dtype, size_a),
                                                view(b.raw(), buffers[2]->dtype, size_b),
                                                view(said.raw(), buffers[3]->dtype, size_c)};
  tir::Interpreter(f).run(arguments);
  ASSERT_EQ(run_kernel(f, level, {n.raw(), a.raw(), b.raw(), done.raw()}), 0);
  size_t wrong = 0;
  for (size_t i = 0; i < size_c; ++i) wrong += said[i] != done[i];
  EXPECT_EQ(wrong, 0U) << c.a << " x " << c.b << ", " << c.rows << " rows, depth " << c.depth << ", from zero "
                       << c.from_zero << ", constant rows " << constant_rows << ", " << c.products << " products";
}

TEST(Tiles, SumBytesAsInterpreted) {
  for (const char* a : {"int8", "uint8"})
    for (const char* b : {"int8", "uint8", "uint32"})
      for (int64_t depth : {4, 32, 64, 96, 200})
        expect_as_interpreted({.a = a, .b = b, .depth = depth, .rows = 21, .from_zero = depth % 64 == 0}, depth > 40);
  for (int64_t rows : {1, 15, 16, 17, 31, 32})
    for (int64_t depth : {64, 72})
      for (bool from_zero : {false, true})
        expect_as_interpreted({.a = "int8", .b = "uint32", .depth = depth, .rows = rows, .from_zero = from_zero},
                              false);
}

// One row is summed in vectors, in the order of the tiles.
TEST(Tiles, SumBfloat16AsInterpreted) {
  for (int64_t rows : {1, 2, 16, 17, 32})
    for (int64_t depth : {32, 160})
      for (bool from_zero : {false, true})
        for (bool constant : {false, true}) {
          Case c{.a = "bfloat16", .b = "bfloat16", .depth = depth, .rows = rows, .from_zero = from_zero};
          c.lines = depth > 32 ? 7 : 0;
          expect_as_interpreted(c, constant);
        }
}

// Those of one step are written out up to 8, and their sums are stored later; others are loops.
TEST(Tiles, SumProductsOneAfterTheOther) {
  for (int64_t rows : {1, 16, 21, 32})
    for (int64_t depth : {32, 64, 96})
      for (int64_t products : {4, 9})
        for (bool from_zero : {false, true}) {
          Case c{.a = "int8", .b = "uint8", .depth = depth, .rows = rows, .from_zero = from_zero, .products = products};
          expect_as_interpreted(c, false);
          c.a = c.b = "bfloat16";
          expect_as_interpreted(c, true);
        }
}

// Half a panel, or as many columns by themselves, for which one tile of columns does.
TEST(Tiles, SumSixteenColumns) {
  for (int64_t rows : {1, 15, 16, 17, 32})
    for (int64_t depth : {32, 64, 96, 160})
      for (int64_t products : {1, 3})
        for (bool narrow : {false, true}) {
          Case c{
              .a = "int8", .b = "int8", .depth = depth, .rows = rows, .from_zero = products == 3, .products = products};
          c.columns = 16, c.narrow = narrow;
          expect_as_interpreted(c, false);
          c.a = c.b = "bfloat16";
          expect_as_interpreted(c, true);
        }
}

/// Three products of 16 rows of A [16, 192] and the second half of a panel, in tiles 0 and 3; the third is added to the first.
tir::PrimFuncRef held_sums(const std::string& a, const std::string& b, int64_t depth, const std::string& more = "") {
  const int64_t width = b == "uint32" ? 4 : 1;
  auto dot = [&](int tile, int64_t k, int from_zero) {
    const int64_t at = (k * 32 + 64) / width;
    return text("    T.tile_dot(",
                tile,
                ", T.address_of(A[",
                k,
                "]), 192, T.address_of(B[",
                at,
                "]), ",
                depth,
                ", ",
                from_zero,
                ")\n");
  };
  return tir::parse_function(
      text("from tvm.script import tir as T\n\n@T.prim_func\ndef main(A: T.Buffer((3072,), \"",
           a,
           "\"), B: T.Buffer((",
           6144 / width,
           ",), \"",
           b,
           "\"), C: T.Buffer((640,), \"int32\")):\n",
           dot(0, 0, 1),
           dot(3, 64, 1),
           dot(0, 128, 0),
           "    T.tile_store(3, T.address_of(C[4]), 20)\n    T.tile_store(0, T.address_of(C[324]), 16)\n",
           more));
}

/// What the function leaves in C, which is full of -7 before, in the interpreter and, where tiles are, as machine code.
std::vector<std::vector<int32_t>> run_held_sums(const tir::PrimFuncRef& f, Data<uint8_t>& a, Data<uint8_t>& b) {
  Data<int32_t> said(640), done(640);
  std::fill_n(said.memory, said.size, -7), std::fill_n(done.memory, done.size, -7);
  std::vector<tir::Argument> arguments;
  for (void* data : {a.raw(), b.raw(), said.raw()}) {
    const BufferRef buffer = f->buffer_of(f->params[arguments.size()]);
    tir::ArrayView v{.dtype = buffer->dtype};
    v.shape = {*as_int(buffer->shape[0])};
    v.data = data;
    arguments.emplace_back(v);
  }
  tir::Interpreter(f).run(arguments);
  std::vector<std::vector<int32_t>> out = {{said.memory, said.memory + said.size}};
  if (can_run()) {
    EXPECT_EQ(run_kernel(f, target::cpu_level("amx"), {a.raw(), b.raw(), done.raw()}), 0);
    out.emplace_back(done.memory, done.memory + done.size);
  }
  return out;
}

// Against sums written out: C[i, j] is one of A[i, k] times the byte of column j + 16 in a panel.
TEST(Tiles, HoldSumsUntilTheyAreStored) {
  Data<uint8_t> x(3072), y(6144);
  std::mt19937 random(3);
  for (Data<uint8_t>* bytes : {&x, &y})
    for (size_t i = 0; i < bytes->size; ++i) (*bytes)[i] = static_cast<uint8_t>(random());
  auto value = [](const std::string& dtype, uint8_t v) { return dtype == "int8" ? static_cast<int8_t>(v) : int{v}; };
  for (const char* a : {"int8", "uint8"})
    for (const char* b : {"int8", "uint8", "uint32"})
      for (size_t depth : {4, 32, 64}) {
        std::vector<int32_t> expected(640, -7);
        for (size_t i = 0; i < 16; ++i)
          for (size_t j = 0; j < 16; ++j) {
            int32_t sums[3] = {0, 0, 0};
            for (size_t p = 0; p < 3; ++p)
              for (size_t k = 0; k < depth; ++k)
                sums[p] += value(a, x[i * 192 + p * 64 + k]) * value(b, y[p * 2048 + 64 + k / 4 * 128 + j * 4 + k % 4]);
            expected[4 + i * 20 + j] = sums[1];
            expected[324 + i * 16 + j] = sums[0] + sums[2];
          }
        for (const std::vector<int32_t>& sums : run_held_sums(held_sums(a, b, static_cast<int64_t>(depth)), x, y))
          EXPECT_EQ(sums, expected) << a << " x " << b << " over " << depth;
      }
}

TEST(Tiles, ThatHoldSumsAreRefusedWithWords) {
  auto refusal = [](const tir::PrimFuncRef& f, const char* level) -> std::string {
    try {
      compile_listing(*passes::lower(f), "k", target::cpu_level(level));
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  auto interpreted = [](const tir::PrimFuncRef& f) -> std::string {
    Data<uint8_t> a(3072), b(6144);
    std::fill_n(a.memory, a.size, uint8_t{1}), std::fill_n(b.memory, b.size, uint8_t{1});
    try {
      run_held_sums(f, a, b);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  const tir::PrimFuncRef good = held_sums("int8", "int8", 64);
  EXPECT_EQ(refusal(good, "amx"), "");
  EXPECT_EQ(interpreted(good), "");
  EXPECT_NE(refusal(good, "avx512").find("tile_dot at the level avx512"), std::string::npos);
  EXPECT_NE(refusal(held_sums("int8", "int8", 68), "amx").find("tile_dot over 68"), std::string::npos);
  EXPECT_NE(refusal(held_sums("int8", "bfloat16", 64), "amx").find("tile_dot of int8 and bfloat16"), std::string::npos);
  auto with = [](const std::string& line) { return held_sums("int8", "int8", 64, "    " + line + "\n"); };
  EXPECT_NE(refusal(with("T.tile_dot(1, T.address_of(A[0]), 192, T.address_of(B[0]), 32, 1)"), "amx")
                .find("one depth in a function"),
            std::string::npos);
  const tir::PrimFuncRef fifth = with("T.tile_store(4, T.address_of(C[0]), 16)"),
                         empty = with("T.tile_store(1, T.address_of(C[0]), 16)");
  EXPECT_NE(refusal(fifth, "amx").find("tile_store of tile 4"), std::string::npos);
  EXPECT_NE(interpreted(fifth).find("tile_store of matrix tile 4"), std::string::npos);
  EXPECT_NE(interpreted(empty).find("matrix tile 1 is used before anything is in it"), std::string::npos);
}

TEST(Tiles, AreRefusedWithWords) {
  auto refusal = [](const Case& c, const char* level) -> std::string {
    try {
      compile_listing(*passes::lower(program(c, true)), "k", target::cpu_level(level));
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(refusal({.a = "int8", .b = "int8"}, "avx512").find("tile_product at the level avx512"), std::string::npos);
  EXPECT_NE(refusal({.a = "bfloat16", .b = "bfloat16", .depth = 48}, "amx").find("a multiple of 32 bfloat16"),
            std::string::npos);
  EXPECT_NE(refusal({.a = "int8", .b = "int8", .rows = 33}, "amx").find("tile_product of 33 rows"), std::string::npos);
  EXPECT_NE(refusal({.a = "int8", .b = "int8", .products = 0}, "amx").find("and a product"), std::string::npos);
  Case lines{.a = "int8", .b = "int8"};
  lines.lines = 33;
  EXPECT_NE(refusal(lines, "amx").find("tile_product that asks for 33 lines"), std::string::npos);
  EXPECT_NE(refusal({.a = "int8", .b = "int8", .depth = int64_t{1} << 31}, "amx").find("less than 2147483648"),
            std::string::npos);
  EXPECT_NE(refusal({.a = "int8", .b = "bfloat16"}, "amx").find("tile_product of int32, int8 and bfloat16"),
            std::string::npos);
}

/// The interpreter's sums of a program with one row and `rows` for their number at run time; the message where it refuses.
std::string refused_by_interpreter(const Case& c, int32_t rows, std::vector<float>* sums = nullptr,
                                   const std::vector<float>& a = {}) {
  const tir::PrimFuncRef f = program(c, false);
  std::list<std::vector<char>> memory;
  std::vector<tir::Argument> arguments;
  for (const VarRef& p : f->params) {
    const BufferRef b = f->buffer_of(p);
    tir::ArrayView v{.dtype = b->dtype};
    v.shape = {*as_int(b->shape[0])};
    v.data = memory.emplace_back(static_cast<size_t>(v.shape[0] * b->dtype.bytes())).data();
    arguments.emplace_back(v);
  }
  auto data = [&](size_t i) { return std::get<tir::ArrayView>(arguments[i]).data; };
  *static_cast<int32_t*>(data(0)) = rows;
  for (size_t k = 0; k < a.size(); ++k) static_cast<uint16_t*>(data(1))[8 + k] = f32_to_bf16(a[k]);
  if (!a.empty())
    for (int64_t k = 0; k < c.elements_of_b(); ++k) static_cast<uint16_t*>(data(2))[k] = f32_to_bf16(1);
  try {
    tir::Interpreter(f).run(arguments);
  } catch (const Error& e) {
    return e.what();
  }
  if (sums) sums->assign(static_cast<float*>(data(3)) + 4, static_cast<float*>(data(3)) + 68);
  return "";
}

// By hand, where 2^24 + 1 rounds to 2^24: the even products are summed to 0, the odd ones to 3. In their order it were 2, exactly 4.
TEST(Tiles, SumEvenAndOddProductsApart) {
  constexpr float kBig = 16777216;
  std::vector<float> a(32), sums;
  a[0] = kBig, a[1] = 1, a[2] = 1, a[3] = 2, a[4] = -kBig;
  ASSERT_EQ(refused_by_interpreter({.a = "bfloat16", .b = "bfloat16", .depth = 32, .rows = 1}, 1, &sums, a), "");
  EXPECT_EQ(sums, std::vector<float>(64, 3));
  // Of each 32 for themselves: 2^24 + 3, which rounds to 2^24 + 4, then 1 - 2^24. Over all 64 it were 2^24 and 3 - 2^24.
  a.resize(64);
  a[4] = 0, a[32] = 1, a[33] = -kBig;
  ASSERT_EQ(refused_by_interpreter({.a = "bfloat16", .b = "bfloat16", .depth = 64, .rows = 1}, 1, &sums, a), "");
  EXPECT_EQ(sums, std::vector<float>(64, 5));
}

TEST(Tiles, HaveThirtyTwoRowsAtMost) {
  const Case c{.a = "int8", .b = "int8", .rows = 33};
  EXPECT_NE(refused_by_interpreter(c, 33).find("tile_product of 33 rows"), std::string::npos);
  EXPECT_EQ(refused_by_interpreter(c, 32), "");
  const tir::PrimFuncRef f = program(c, false);
  EXPECT_NE(code_of(f).find("tile_product of more than 32 rows"), std::string::npos);
  if (!can_run()) return;
  Data<int32_t> n(1), sums(33 * 72);
  Data<uint8_t> a(33 * 72 + 8), b(2 * 32 * 64 + 4);
  n[0] = 33;
  EXPECT_EQ(run_kernel(f, target::cpu_level("amx"), {n.raw(), a.raw(), b.raw(), sums.raw()}), 1);
}

TEST(Tiles, AreGivenBack) {
  const std::string code = code_of(program({.a = "int8", .b = "int8"}, true));
  EXPECT_NE(code.find("tdpbssd"), std::string::npos);
  EXPECT_NE(code.find("tilerelease"), std::string::npos);
}

}  // namespace
}  // namespace sator::codegen
