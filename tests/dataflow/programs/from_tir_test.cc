// Tensor programs as the cost engine sees them.
#include "dataflow/programs/from_tir.h"
#include "base/error.h"
#include "dataflow/cost/cost.h"
#include "dataflow/counts/gemm.h"
#include "shipped_chips.h"
#include "tir/parse.h"

#include <gtest/gtest.h>

namespace sator::dataflow {
namespace {

int64_t outside_bits(const KernelCost& c, const std::string& tensor) {
  int64_t bits = 0;
  for (const Traffic& t : c.outside)
    if (t.tensor == tensor) bits += t.read_bits + t.write_bits;
  return bits;
}

const char* const kMatmul = R"(
@T.prim_func
def matmul(var_A: T.handle, W: T.Buffer((768, 512), "int8"), var_C: T.handle):
    n = T.int64()
    A = T.match_buffer(var_A, (n, T.int64(512)), "int8")
    C = T.match_buffer(var_C, (n, T.int64(768)), "int32")
    for i, j, k in T.grid(n, T.int64(768), T.int64(512)):
        with T.block("NT_matmul"):
            v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
            T.reads(A[v_i, v_k], W[v_j, v_k])
            T.writes(C[v_i, v_j])
            with T.init():
                C[v_i, v_j] = T.int32(0)
            C[v_i, v_j] = C[v_i, v_j] + T.Cast("int32", A[v_i, v_k]) * T.Cast("int32", W[v_j, v_k])
)";

TEST(FromTir, AMatmulIsTheSameProductAsByHand) {
  tir::PrimFuncRef f = tir::parse_function(kMatmul);
  FunctionFacts facts{.name = "matmul", .sizes = {{"n", 96}}, .params = {{}, {OperandKind::weight}, {}}};
  TirWork read = work_of(*f, facts);
  EXPECT_TRUE(read.notes.empty());
  ASSERT_EQ(read.kernel.work.size(), 1u);
  const Work& w = read.kernel.work[0];
  EXPECT_TRUE(w.multiply_accumulate);
  EXPECT_EQ(w.vector_ops, 0);
  ASSERT_EQ(w.statement.accesses.size(), 3u);
  EXPECT_EQ(w.operands[0].bits, 8);
  EXPECT_EQ(w.operands[1].kind, OperandKind::weight);
  EXPECT_EQ(w.operands[2].bits, 32);
  Work by_hand{.statement = gemm(96, 768, 512),
               .operands = {{.bits = 8}, {.bits = 8, .kind = OperandKind::weight}, {.bits = 32}},
               .multiply_accumulate = true};
  for (const char* chip : {"tpuv1", "gemmini16", "edge_npu32"}) {
    KernelCost got = CostEngine(shipped(chip)).cost(read.kernel),
               want = CostEngine(shipped(chip)).cost({"by hand", {by_hand}});
    EXPECT_EQ(got.macs, int64_t{96} * 768 * 512);
    EXPECT_EQ(got.latency_cycles, want.latency_cycles);
    for (size_t m = 0; m < want.memories.size(); ++m) {
      EXPECT_EQ(got.memories[m].read_bytes, want.memories[m].read_bytes);
      EXPECT_EQ(got.memories[m].write_bytes, want.memories[m].write_bytes);
    }
  }
}

TEST(FromTir, ASizeWithoutAValueIsNamed) {
  tir::PrimFuncRef f = tir::parse_function(kMatmul);
  try {
    work_of(*f, {.name = "matmul", .sizes = {}, .params = {}});
    ADD_FAILURE() << "accepted";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("loop i"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("give the sizes in n"), std::string::npos) << e.what();
  }
}

const char* const kDequantizeMatmul = R"(
@T.prim_func
def fused_dequantize_NT_matmul(Q: T.Buffer((1024, 64), "uint32"), S: T.Buffer((1024, 16), "float16"), A: T.Buffer((1, 512), "float16"), C: T.Buffer((1, 1024), "float16")):
    W = T.alloc_buffer((1024, 512), "float16")
    for i0, i1 in T.grid(1024, 512):
        with T.block("dequantize"):
            v0, v1 = T.axis.remap("SS", [i0, i1])
            W[v0, v1] = (T.Cast("float16", T.bitwise_and(T.shift_right(Q[v0, v1 // 8], T.Cast("uint32", v1 % 8 * 4)), T.uint32(15))) - T.float16(7)) * S[v0, v1 // 32]
    for i, j, k in T.grid(1, 1024, 512):
        with T.block("NT_matmul"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float16(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * W[vj, vk]
)";

TEST(FromTir, DequantizeIsTakenIntoItsProduct) {
  tir::PrimFuncRef f = tir::parse_function(kDequantizeMatmul);
  FunctionFacts facts{.name = "fused", .sizes = {}, .params = {{OperandKind::weight}, {OperandKind::scale}, {}, {}}};
  TirWork read = work_of(*f, facts);
  ASSERT_EQ(read.kernel.work.size(), 2u);
  EXPECT_EQ(read.kernel.work[0].vector_work, VectorWork::dequantize);
  // Conversion, subtraction, product with the scale; cutting the code out of its word is wiring.
  EXPECT_EQ(read.kernel.work[0].vector_ops, 3);
  EXPECT_TRUE(read.kernel.work[1].multiply_accumulate);
  for (const char* chip : {"tpuv1", "gemmini16", "edge_npu32"}) {
    KernelCost c = CostEngine(shipped(chip)).cost(read.kernel);
    // One token: every packed word and every scale once, and nothing of what they make.
    EXPECT_EQ(outside_bits(c, "Q"), 32 * 1024 * 64) << chip;
    EXPECT_EQ(outside_bits(c, "S"), 16 * 1024 * 16) << chip;
    EXPECT_EQ(outside_bits(c, "W"), 0) << chip;
    EXPECT_EQ(c.macs, 1024 * 512);
    for (const StatementCost& s : c.statements)
      if (s.name == "dequantize") {
        EXPECT_EQ(s.vector_ops, 3 * 1024 * 512) << chip;
      }
  }
}

/// A product with weights of 4 bits, eight in a word, taken out of the words and multiplied as integers.
const char* const kUnpackMatmul = R"(
@T.prim_func
def fused_unpack_NT_matmul(Q: T.Buffer((1024, 64), "uint32"), A: T.Buffer((1, 512), "int8"), C: T.Buffer((1, 1024), "int32")):
    W = T.alloc_buffer((1024, 512), "uint8")
    for i0, i1 in T.grid(1024, 512):
        with T.block("unpack"):
            v0, v1 = T.axis.remap("SS", [i0, i1])
            W[v0, v1] = T.Cast("uint8", T.bitwise_and(T.shift_right(Q[v0, v1 // 8], T.Cast("uint32", v1 % 8 * 4)), T.uint32(15)))
    for i, j, k in T.grid(1, 1024, 512):
        with T.block("NT_matmul"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0
            C[vi, vj] = C[vi, vj] + T.Cast("int32", A[vi, vk]) * T.Cast("int32", W[vj, vk])
)";

// Packing is how codes are stored: the array takes them at their width, nothing is computed, and every bit moves once.
TEST(FromTir, PackedCodesAreMultipliedAtTheirWidth) {
  tir::PrimFuncRef f = tir::parse_function(kUnpackMatmul);
  TirWork read = work_of(*f, {.name = "fused", .sizes = {}, .params = {{OperandKind::weight, 4}, {}, {}}});
  ASSERT_EQ(read.kernel.work.size(), 2u);
  EXPECT_EQ(read.kernel.work[0].vector_ops, 0);
  EXPECT_EQ(read.kernel.work[1].operands[1].bits, 4);
  EXPECT_EQ(read.kernel.work[1].operands[1].kind, OperandKind::weight);
  for (const char* chip : {"tpuv1", "gemmini16", "edge_npu32"}) {
    KernelCost c = CostEngine(shipped(chip)).cost(read.kernel);
    EXPECT_EQ(outside_bits(c, "Q"), 4 * 1024 * 512) << chip;
    EXPECT_EQ(outside_bits(c, "W"), 0) << chip;
    for (const StatementCost& s : c.statements) {
      EXPECT_EQ(s.vector_ops, 0) << chip;
    }
  }
  KernelCost c = CostEngine(shipped("edge_npu32")).cost(read.kernel);
  for (const StatementCost& s : c.statements)
    if (s.on_array()) {
      EXPECT_EQ(s.precision->weight_bits, 4);  // the chip multiplies 4 by 8 bits
      EXPECT_EQ(s.precision->activation_bits, 8);
    }
}

// A code that crosses words is read from two, and is one code all the same.
TEST(FromTir, CodesThatCrossWordsAreCodes) {
  for (int bits : {3, 5, 6, 7}) {
    SCOPED_TRACE(bits);
    const auto script = [&](const char* rows) {
      return text(R"(
@T.prim_func
def f(Q: T.Buffer((64, )",
                  512 * bits / 32,
                  R"(), "uint32"), A: T.Buffer((1, 512), "int8"), C: T.Buffer((1, 64), "int32")):
    W = T.alloc_buffer((64, 512), "uint8")
    for i0, i1)",
                  rows,
                  R"(
            W[v0, v1] = T.Cast("uint8", T.bitwise_and(T.Cast("uint32", T.shift_right(T.bitwise_or(T.Cast("uint64", Q[v0, v1 * )",
                  bits,
                  R"( // 32]), T.shift_left(T.Cast("uint64", Q[v0, (v1 * )",
                  bits,
                  " + ",
                  bits - 1,
                  R"() // 32]), T.uint64(32))), T.Cast("uint64", v1 * )",
                  bits,
                  R"( % 32))), T.uint32()",
                  (1 << bits) - 1,
                  R"()))
    for i, j, k in T.grid(1, 64, 512):
        with T.block("matmul"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0
            C[vi, vj] = C[vi, vj] + T.Cast("int32", A[vi, vk]) * T.Cast("int32", W[vj, vk])
)");
    };
    // As it is written, and with k in parts that end inside of words.
    for (const char* rows : {R"( in T.grid(64, 512):
        with T.block("unpack"):
            v0, v1 = T.axis.remap("SS", [i0, i1]))",
                             R"(, i2 in T.grid(64, 64, 8):
        with T.block("unpack"):
            v0 = T.axis.spatial(64, i0)
            v1 = T.axis.spatial(512, i1 * 8 + i2))"}) {
      TirWork read = work_of(*tir::parse_function(script(rows)),
                             {.name = "f", .sizes = {}, .params = {{OperandKind::weight, bits}, {}, {}}});
      ASSERT_EQ(read.kernel.work.size(), 2u);
      EXPECT_EQ(read.kernel.work[0].operands.size(), 2u);  // the code and the number
      EXPECT_EQ(read.kernel.work[0].operands[0].bits, bits);
      for (const char* chip : {"tpuv1", "edge_npu32"}) {
        KernelCost c = CostEngine(shipped(chip)).cost(read.kernel);
        EXPECT_EQ(outside_bits(c, "Q"), bits * 64 * 512) << chip;
        EXPECT_EQ(c.macs, 64 * 512) << chip;
      }
    }
  }
}

// Codes of 3 bits straddle words: these are read as words, at all of their bits.
TEST(FromTir, CodesThatDoNotFillWordsAreReadAsWords) {
  const char* const text = R"(
@T.prim_func
def f(Q: T.Buffer((16, 6), "uint32"), W: T.Buffer((16, 6), "float32")):
    for i, j in T.grid(16, 6):
        with T.block("take"):
            vi, vj = T.axis.remap("SS", [i, j])
            W[vi, vj] = T.Cast("float32", Q[vi, vj])
)";
  TirWork read =
      work_of(*tir::parse_function(text), {.name = "f", .sizes = {}, .params = {{OperandKind::weight, 3}, {}}});
  EXPECT_EQ(read.kernel.work[0].operands[0].bits, 32);
  EXPECT_EQ(outside_bits(CostEngine(shipped("tpuv1")).cost(read.kernel), "Q"), 16 * 6 * 32);
}

// Stored floats become wider ones without arithmetic: the product has the stored width, and no memory holds the wide ones.
TEST(FromTir, WidenedWeightsKeepTheirWidth) {
  const char* const text = R"(
@T.prim_func
def f(Q: T.Buffer((1024, 512), "float16"), A: T.Buffer((1, 512), "float32"), C: T.Buffer((1, 1024), "float32")):
    W = T.alloc_buffer((1024, 512), "float32")
    for i0, i1 in T.grid(1024, 512):
        with T.block("widen"):
            v0, v1 = T.axis.remap("SS", [i0, i1])
            W[v0, v1] = T.Cast("float32", Q[v0, v1])
    for i, j, k in T.grid(1, 1024, 512):
        with T.block("NT_matmul"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * W[vj, vk]
)";
  TirWork read =
      work_of(*tir::parse_function(text), {.name = "f", .sizes = {}, .params = {{OperandKind::weight}, {}, {}}});
  EXPECT_EQ(read.kernel.work[1].operands[1].bits, 16);
  KernelCost c = CostEngine(shipped("edge_npu32")).cost(read.kernel);
  EXPECT_EQ(outside_bits(c, "Q"), 16 * 1024 * 512);
  int64_t statements_beside = 0;
  for (const StatementCost& s : c.statements) {
    if (s.on_array()) {
      EXPECT_EQ(s.passes, 2);  // 16 by 32 bits on multipliers of 16 by 16
    }
    statements_beside += !s.on_array() && s.counts.has_value();
  }
  EXPECT_EQ(statements_beside, 0);
}

// What is made of codes counts with 16 bits, of codes of as many and more with those that it has.
TEST(FromTir, WhatIsMadeOfWideCodesKeepsItsWidth) {
  for (const auto& [bits, made] : {std::pair(12, 16), {15, 16}, {16, 32}, {28, 32}}) {
    const std::string script = text(R"(
@T.prim_func
def f(Q: T.Buffer((64, 32), "uint32"), A: T.Buffer((1, 32), "float32"), C: T.Buffer((1, 64), "float32")):
    W = T.alloc_buffer((64, 32), "float32")
    for i0, i1 in T.grid(64, 32):
        with T.block("dequantize"):
            v0, v1 = T.axis.remap("SS", [i0, i1])
            W[v0, v1] = T.reinterpret("float32", T.bitwise_and(Q[v0, v1], T.uint32()",
                                    (1 << bits) - 1,
                                    R"())) * T.float32(2)
    for i, j, k in T.grid(1, 64, 32):
        with T.block("matmul"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * W[vj, vk]
)");
    const TirWork read = work_of(*tir::parse_function(script),
                                 {.name = "f", .sizes = {}, .params = {{OperandKind::weight, bits}, {}, {}}});
    ASSERT_EQ(read.kernel.work.size(), 2u);
    EXPECT_EQ(read.kernel.work[1].operands[1].bits, made) << bits;
  }
}

// Of a table of codes only the rows that are taken are read and made: three of 1024.
TEST(FromTir, RowsTakenOfCodesAreMadeAlone) {
  const char* const text = R"(
@T.prim_func
def f(Q: T.Buffer((1024, 64), "uint32"), S: T.Buffer((1024, 16), "float16"), ids: T.Buffer((3,), "int32"), C: T.Buffer((3, 512), "float16")):
    W = T.alloc_buffer((1024, 512), "float16")
    for i0, i1 in T.grid(1024, 512):
        with T.block("dequantize"):
            v0, v1 = T.axis.remap("SS", [i0, i1])
            W[v0, v1] = (T.Cast("float16", T.bitwise_and(T.shift_right(Q[v0, v1 // 8], T.Cast("uint32", v1 % 8 * 4)), T.uint32(15))) - T.float16(7)) * S[v0, v1 // 32]
    for i, c in T.grid(3, 512):
        with T.block("take"):
            vi, vc = T.axis.remap("SS", [i, c])
            C[vi, vc] = W[ids[vi], vc]
)";
  TirWork read =
      work_of(*tir::parse_function(text),
              {.name = "f", .sizes = {}, .params = {{OperandKind::weight, 4}, {OperandKind::scale}, {}, {}}});
  for (const char* chip : {"tpuv1", "gemmini16", "edge_npu32"}) {
    KernelCost c = CostEngine(shipped(chip)).cost(read.kernel);
    EXPECT_EQ(outside_bits(c, "Q"), 3 * 512 * 4) << chip;
    EXPECT_EQ(outside_bits(c, "S"), 3 * 16 * 16) << chip;
    EXPECT_EQ(outside_bits(c, "C"), 3 * 512 * 16) << chip;
    int64_t operations = 0;
    for (const StatementCost& s : c.statements) operations += s.vector_ops;
    EXPECT_EQ(operations, 3 * 512 * 3) << chip;  // conversion, subtraction, product with the scale
  }
}

const char* const kSoftmax = R"(
@T.prim_func
def softmax(A: T.Buffer((12, 100), "float32"), B: T.Buffer((12, 100), "float32")):
    m = T.alloc_buffer((12,), "float32")
    e = T.alloc_buffer((12, 100), "float32")
    s = T.alloc_buffer((12,), "float32")
    for i, k in T.grid(12, 100):
        with T.block("max"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                m[vi] = T.min_value("float32")
            m[vi] = T.max(m[vi], A[vi, vk])
    for i, k in T.grid(12, 100):
        with T.block("exp"):
            vi, vk = T.axis.remap("SS", [i, k])
            e[vi, vk] = T.exp(A[vi, vk] - m[vi])
    for i, k in T.grid(12, 100):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                s[vi] = T.float32(0)
            s[vi] = s[vi] + e[vi, vk]
    for i, k in T.grid(12, 100):
        with T.block("norm"):
            vi, vk = T.axis.remap("SS", [i, k])
            B[vi, vk] = e[vi, vk] / s[vi]
)";

TEST(FromTir, RowsWithoutProductsRunOnTheVectorUnit) {
  TirWork read = work_of(*tir::parse_function(kSoftmax), {.name = "softmax", .sizes = {}, .params = {}});
  ASSERT_EQ(read.kernel.work.size(), 4u);
  EXPECT_EQ(read.kernel.work[0].vector_work, VectorWork::reduce);
  EXPECT_EQ(read.kernel.work[1].vector_work, VectorWork::elementwise);
  EXPECT_EQ(read.kernel.work[2].vector_work, VectorWork::reduce);
  KernelCost c = CostEngine(shipped("edge_npu32")).cost(read.kernel);
  EXPECT_EQ(c.macs, 0);
  // The input comes in once, the output leaves once, rows between stay on the chip.
  EXPECT_EQ(outside_bits(c, "A"), 32 * 1200);
  EXPECT_EQ(outside_bits(c, "B"), 32 * 1200);
  EXPECT_EQ(outside_bits(c, "e"), 0);
  int64_t ops = 0;
  for (const StatementCost& s : c.statements) ops += s.vector_ops;
  EXPECT_EQ(ops, 1200 * (1 + (8 + 1) + 1 + 4));  // max; exp of a difference; sum; division
}

const char* const kTake = R"(
@T.prim_func
def take(W: T.Buffer((50257, 768), "float16"), ids: T.Buffer((7,), "int32"), B: T.Buffer((7, 768), "float16")):
    for i, j in T.grid(7, 768):
        with T.block("take"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = W[ids[vi], vj]
)";

TEST(FromTir, LookedUpRowsAreDistinct) {
  TirWork read =
      work_of(*tir::parse_function(kTake), {.name = "take", .sizes = {}, .params = {{OperandKind::weight}, {}, {}}});
  ASSERT_EQ(read.notes.size(), 1u);
  KernelCost c = CostEngine(shipped("tpuv1")).cost(read.kernel);
  EXPECT_EQ(outside_bits(c, "W"), 16 * 7 * 768);
  EXPECT_EQ(outside_bits(c, "ids"), 32 * 7);
}

const char* const kRagged = R"(
@T.prim_func
def scaled(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32")):
    for i_0, i_1 in T.grid(4, 32):
        with T.block("B"):
            vi = T.axis.spatial(100, i_0 * 32 + i_1)
            T.where(i_0 * 32 + i_1 < 100)
            B[vi] = A[vi] * T.float32(2)
)";

TEST(FromTir, PredicatesAndTriangularLoopsAreGuards) {
  TirWork read = work_of(*tir::parse_function(kRagged), {.name = "scaled", .sizes = {}, .params = {}});
  KernelCost c = CostEngine(shipped("tpuv1")).cost(read.kernel);
  EXPECT_EQ(c.statements[0].instances, 100);
  EXPECT_EQ(outside_bits(c, "A"), 3200);
  TirWork causal = work_of(*tir::parse_function(R"(
@T.prim_func
def causal(Q: T.Buffer((64, 16), "int8"), K: T.Buffer((64, 16), "int8"), S: T.Buffer((64, 64), "int32")):
    for i in range(64):
        for j in range(i + 1):
            for k in range(16):
                S[i, j] = S[i, j] + T.Cast("int32", Q[i, k]) * T.Cast("int32", K[j, k])
)"),
                           {.name = "causal", .sizes = {}, .params = {{}, {OperandKind::kv}, {}}});
  KernelCost scores = CostEngine(shipped("gemmini16")).cost(causal.kernel);
  EXPECT_EQ(scores.macs, 64 * 65 / 2 * 16);
  EXPECT_EQ(outside_bits(scores, "K"), 8 * 64 * 16);
}

// The same product after a schedule for Gemmini's memories: the loops bound to the array and the copies state the mapping.
const char* const kScheduled = R"(
@T.prim_func
def scheduled(A: T.Buffer((64, 64), "int8"), W: T.Buffer((64, 64), "int8"), C: T.Buffer((64, 64), "int32")):
    A_s = T.alloc_buffer((64, 64), "int8", scope="scratchpad")
    W_s = T.alloc_buffer((64, 64), "int8", scope="scratchpad")
    C_a = T.alloc_buffer((64, 64), "int32", scope="accumulator")
    for i, k in T.grid(64, 64):
        with T.block("A_s"):
            v0, v1 = T.axis.remap("SS", [i, k])
            A_s[v0, v1] = A[v0, v1]
    for j_0 in range(4):
        for j, k in T.grid(16, 64):
            with T.block("W_s"):
                v0 = T.axis.spatial(64, j_0 * 16 + j)
                v1 = T.axis.spatial(64, k)
                W_s[v0, v1] = W[v0, v1]
        for k_0 in range(4):
            for i in range(64):
                for k_1 in T.thread_binding(16, thread="pe.x"):
                    for j_1 in T.thread_binding(16, thread="pe.y"):
                        with T.block("C"):
                            vi = T.axis.spatial(64, i)
                            vj = T.axis.spatial(64, j_0 * 16 + j_1)
                            vk = T.axis.reduce(64, k_0 * 16 + k_1)
                            with T.init():
                                C_a[vi, vj] = 0
                            C_a[vi, vj] = C_a[vi, vj] + T.Cast("int32", A_s[vi, vk]) * T.Cast("int32", W_s[vj, vk])
        for i, j in T.grid(64, 16):
            with T.block("C_a"):
                v0 = T.axis.spatial(64, i)
                v1 = T.axis.spatial(64, j_0 * 16 + j)
                C[v0, v1] = C_a[v0, v1]
)";

TEST(FromTir, BoundLoopsAndCopiesStateTheMapping) {
  Chip chip = shipped("gemmini16");
  FunctionFacts facts{.name = "scheduled", .sizes = {}, .params = {{}, {OperandKind::weight}, {}}};
  TirWork read = work_of(*tir::parse_function(kScheduled), facts, &chip);
  ASSERT_EQ(read.kernel.work.size(), 1u);
  ASSERT_EQ(read.placements.size(), 1u);
  ASSERT_TRUE(read.placements[0].has_value());
  // Time runs over j_0, k_0, i. The scratchpad holds all of A, and W by tiles of j_0; so do the accumulators.
  EXPECT_EQ(read.placements[0]->mapping.time.size(), 3u);
  EXPECT_EQ(read.placements[0]->held_by_access, (std::vector<std::vector<size_t>>{{0, 0, 3}, {0, 1, 3}, {0, 3, 1}}));
  KernelCost c = CostEngine(chip).cost(read.kernel, read.placements);
  EXPECT_EQ(c.macs, 64 * 64 * 64);
  EXPECT_EQ(c.statements[0].stream_cycles, 4 * 4 * 64);
  EXPECT_EQ(outside_bits(c, "A"), 8 * 64 * 64);
  EXPECT_EQ(outside_bits(c, "W"), 8 * 64 * 64);
  EXPECT_EQ(outside_bits(c, "C"), 32 * 64 * 64);
  // Every tile of weights enters the array once, every activation once per tile of outputs.
  for (const Traffic& t : c.statements[0].traffic) {
    if (t.memory != 1) continue;
    EXPECT_EQ(t.read_bits, t.tensor == "W" ? 8 * 64 * 64 : 8 * 64 * 64 * 4);
  }
}

}  // namespace
}  // namespace sator::dataflow
