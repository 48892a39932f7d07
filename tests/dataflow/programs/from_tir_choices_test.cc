// What is counted where a program chooses: conditions, choices in values, indices that are looked up, copies.
#include <gtest/gtest.h>

#include <random>

#include "arith/eval.h"
#include "base/error.h"
#include "dataflow/cost/cost.h"
#include "dataflow/counts/enumerate.h"
#include "dataflow/programs/from_tir.h"
#include "dataflow/programs/tir_cases.h"
#include "tir/parse.h"

namespace sator::dataflow {
namespace {

TirWork read(const char* program, std::vector<ParamFacts> params = {}, std::map<std::string, int64_t> sizes = {}) {
  return work_of(*tir::parse_function(program), {.name = "f", .sizes = std::move(sizes), .params = std::move(params)});
}

/// Elements that all statements of the program touch of a tensor, by listing their instances: with repetition, and distinct.
struct Touched {
  int64_t total = 0, footprint = 0;
};
Touched touched(const TirWork& work, const std::string& tensor, Role role = Role::read) {
  Touched sum;
  for (const Work& w : work.kernel.work) {
    auto counts = enumerate({w.statement, {{number(0)}, {}}, {Domain::box({"p"}, {1}), {}}}, 1 << 20);
    for (const TensorCounts& t : std::get<Counts>(counts).tensors)
      if (t.tensor == tensor && t.role == role) sum.total += t.total, sum.footprint += t.footprint;
  }
  return sum;
}

int64_t instances(const Work& w) {
  return std::get<Counts>(enumerate({w.statement, {{number(0)}, {}}, {Domain::box({"p"}, {1}), {}}}, 1 << 20)).macs;
}

TEST(Choices, AnIndexThatIsNeitherAffineNorLookedUpIsRefused) {
  try {
    read(R"(
@T.prim_func
def f(A: T.Buffer((100,), "float32"), B: T.Buffer((10,), "float32")):
    for i in range(10):
        with T.block("square"):
            vi = T.axis.spatial(10, i)
            B[vi] = A[vi * vi]
)");
    ADD_FAILURE() << "accepted";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("vi * vi"), std::string::npos) << e.what();
  }
}

TEST(Choices, AnIndexWithASizeThatNobodyGaveIsRefused) {
  const char* const program = R"(
@T.prim_func
def f(a: T.handle, B: T.Buffer((10,), "float32"), offset: T.int64):
    n = T.int64()
    A = T.match_buffer(a, (n,), "float32")
    for i in range(10):
        with T.block("shift"):
            vi = T.axis.spatial(10, i)
            B[vi] = A[T.Cast("int64", vi) + offset]
)";
  EXPECT_THROW(read(program, {}, {{"n", 100}}), Error);
  EXPECT_EQ(touched(read(program, {}, {{"n", 100}, {"offset", 5}}), "A").footprint, 10);
}

// Position t of a paged cache lies in row t % 16 of the page that the table names for t // 16: 40 positions are 40 rows, in
// three pages.
constexpr const char* kPaged = R"(
@T.prim_func
def f(K: T.Buffer((4096, 8), "float32"), pages: T.Buffer((3,), "int32"), B: T.Buffer((40, 8), "float32")):
    for t, d in T.grid(40, 8):
        with T.block("take"):
            vt, vd = T.axis.remap("SS", [t, d])
            B[vt, vd] = K[pages[vt // 16] * 16 + vt % 16, vd]
)";
TEST(Choices, TheRestOfALookedUpIndexPicksRowsToo) {
  const TirWork work = read(kPaged);
  EXPECT_EQ(touched(work, "K").footprint, 40 * 8);
  EXPECT_EQ(touched(work, "pages").footprint, 3);
}

TEST(Choices, VariablesCarryWhatWasLookedUp) {
  const TirWork work = read(R"(
@T.prim_func
def f(K: T.Buffer((256, 8), "float32"), ids: T.Buffer((5,), "int32"), B: T.Buffer((5, 8), "float32")):
    for t, d in T.grid(5, 8):
        with T.block("take"):
            vr = T.axis.opaque(256, ids[t])
            vt, vd = T.axis.remap("SS", [t, d])
            B[vt, vd] = K[vr, vd]
)");
  EXPECT_EQ(touched(work, "K").footprint, 5 * 8);
}

// Padding: the 64 elements of A lie between two zeros at each end.
TEST(Choices, AChoiceOnIndicesReadsWhereItHolds) {
  const TirWork work = read(R"(
@T.prim_func
def f(A: T.Buffer((64,), "float32"), P: T.Buffer((68,), "float32")):
    for i in range(68):
        with T.block("pad"):
            vi = T.axis.spatial(68, i)
            P[vi] = T.if_then_else(2 <= vi and vi < 66, A[vi - 2], T.float32(0))
)");
  EXPECT_EQ(touched(work, "A").total, 64);
  EXPECT_EQ(touched(work, "A").footprint, 64);
  EXPECT_EQ(touched(work, "P", Role::write).total, 68);  // each element once: the arms are disjoint
  EXPECT_TRUE(work.notes.empty());
  for (const Work& w : work.kernel.work) EXPECT_EQ(w.vector_ops, 0);  // which side it is follows from the index
}

// Half of the elements come from A, half from B, and both halves are summed with C.
TEST(Choices, EachArmHasItsOwnReadsAndWork) {
  const TirWork work = read(R"(
@T.prim_func
def f(A: T.Buffer((32,), "float32"), B: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32"), D: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("rotate"):
            vi = T.axis.spatial(64, i)
            D[vi] = T.Select(vi < 32, A[vi] * T.float32(2), B[vi]) + C[vi]
)");
  EXPECT_EQ(touched(work, "A").total, 32);
  EXPECT_EQ(touched(work, "B").total, 32);
  EXPECT_EQ(touched(work, "C").total, 64);
  double operations = 0;
  for (const Work& w : work.kernel.work) operations += w.vector_ops * static_cast<double>(instances(w));
  EXPECT_EQ(operations, 32 * 2 + 32 * 1);
}

// The last element has no neighbour: its sum stays as it is. A sum into another element is no running sum.
TEST(Choices, AnArmThatAddsNothingIsNoWork) {
  const TirWork masked = read(R"(
@T.prim_func
def f(A: T.Buffer((16, 16), "int8"), W: T.Buffer((16,), "int8"), C: T.Buffer((16,), "int32")):
    for i, k in T.grid(16, 16):
        with T.block("causal"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + T.if_then_else(vk <= vi, T.Cast("int32", A[vi, vk]) * T.Cast("int32", W[vk]), 0)
)");
  ASSERT_EQ(masked.kernel.work.size(), 1U);
  EXPECT_TRUE(masked.kernel.work[0].multiply_accumulate);
  EXPECT_EQ(instances(masked.kernel.work[0]), 16 * 17 / 2);
  const TirWork scan = read(R"(
@T.prim_func
def f(A: T.Buffer((16,), "float32"), C: T.Buffer((17,), "float32")):
    for i in range(16):
        with T.block("scan"):
            vi = T.axis.opaque(16, i)
            C[vi + 1] = C[vi] + T.if_then_else(vi < 8, A[vi], T.float32(0))
)");
  EXPECT_EQ(touched(scan, "A").total, 8);
  EXPECT_EQ(touched(scan, "C").total, 16);
  EXPECT_EQ(touched(scan, "C", Role::write).total, 16);
}

TEST(Choices, TheOtherSideOfAConditionIsGuarded) {
  const TirWork work = read(R"(
@T.prim_func
def f(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32"), C: T.Buffer((100,), "float32")):
    for i in range(100):
        if i < 10 or i >= 90:
            C[i] = A[i]
        else:
            C[i] = B[i]
)");
  EXPECT_EQ(touched(work, "A").total, 20);
  EXPECT_EQ(touched(work, "B").total, 80);
  EXPECT_TRUE(work.notes.empty());
}

TEST(Choices, OfAConditionOnDataBothSidesCountAndThatIsSaid) {
  const TirWork value = read(R"(
@T.prim_func
def f(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32"), C: T.Buffer((100,), "float32")):
    for i in range(100):
        C[i] = T.if_then_else(A[i] < T.float32(0), B[i], A[i])
)");
  EXPECT_EQ(touched(value, "B").total, 100);
  ASSERT_EQ(value.notes.size(), 1U);
  EXPECT_NE(value.notes[0].find("upper bound"), std::string::npos);
  const TirWork branch = read(R"(
@T.prim_func
def f(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32"), C: T.Buffer((100,), "float32")):
    for i in range(100):
        if A[i] < T.float32(0):
            C[i] = B[i]
        else:
            C[i] = A[i]
)");
  EXPECT_EQ(touched(branch, "B").total, 100);
  EXPECT_EQ(touched(branch, "C", Role::write).total, 200);
  ASSERT_EQ(branch.notes.size(), 1U);
}

// Conditions drawn at random: each point lies in one case where the condition holds, and in one of the opposite's else.
TEST(Choices, CasesAreDisjointAndCoverTheCondition) {
  std::mt19937 random(7);
  auto draw = [&](int n) { return static_cast<int64_t>(random() % static_cast<unsigned>(n)); };
  const VarRef x = make_var("x", i64), y = make_var("y", i64);
  const VarValues values = {{x, variable(0)}, {y, variable(1)}};
  auto side = [&]() -> Expr {
    switch (draw(4)) {
      case 0: return Expr(x);
      case 1: return Expr(y) + int_imm(draw(3), i64);
      case 2: return floordiv(Expr(x), 3);
      default: return int_imm(draw(8), i64);
    }
  };
  auto condition = [&](int depth, auto& self) -> Expr {
    if (depth == 0 || draw(4) == 0) {
      Expr a = side(), b = side();
      switch (draw(6)) {
        case 0: return make<LT>(a, b);
        case 1: return make<LE>(a, b);
        case 2: return make<GT>(a, b);
        case 3: return make<GE>(a, b);
        case 4: return make<EQ>(a, b);
        default: return make<NE>(a, b);
      }
    }
    Expr a = self(depth - 1, self);
    if (draw(4) == 0) return make<Not>(a);
    Expr b = self(depth - 1, self);
    return draw(2) ? Expr(make<And>(a, b)) : Expr(make<Or>(a, b));
  };
  int decided = 0;
  for (int round = 0; round < 300; ++round) {
    const Expr c = condition(2, condition);
    const auto yes = cases_of(c, true, values), no = cases_of(c, false, values);
    if (!yes || !no) continue;
    ++decided;
    for (int64_t px = 0; px < 8; ++px)
      for (int64_t py = 0; py < 8; ++py) {
        const std::vector<int64_t> point = {px, py};
        auto met = [&](const std::vector<Guards>& cases) {
          int64_t n = 0;
          for (const Guards& guards : cases)
            n += std::all_of(guards.begin(), guards.end(), [&](const auto& g) { return evaluate(g, point) >= 0; });
          return n;
        };
        const bool holds = arith::evaluate(c, {{x, px}, {y, py}}).value() != 0;
        EXPECT_EQ(met(*yes), holds ? 1 : 0) << text(c) << " at " << px << ", " << py;
        EXPECT_EQ(met(*no), holds ? 0 : 1) << text(c) << " at " << px << ", " << py;
      }
  }
  EXPECT_GT(decided, 200);
}

// Two buffers filled from each other hold one tensor.
TEST(Choices, CopiesOfEachOtherEnd) {
  const TirWork work = read(R"(
@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    X = T.alloc_buffer((8,), "float32", scope="sram")
    Y = T.alloc_buffer((8,), "float32", scope="pe")
    for i in range(8):
        X[i] = A[i]
    for i in range(8):
        Y[i] = X[i]
    for i in range(8):
        X[i] = Y[i]
    for i in range(8):
        B[i] = X[i] * T.float32(2)
)");
  ASSERT_EQ(work.kernel.work.size(), 1U);
  EXPECT_EQ(touched(work, "A").footprint, 8);
}

TEST(Choices, ABufferThatHoldsTwoTensorsInTurnIsItsOwn) {
  const TirWork work = read(R"(
@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    X = T.alloc_buffer((8,), "float32", scope="sram")
    for i in range(8):
        X[i] = A[i]
    for i in range(8):
        X[i] = B[i]
    for i in range(8):
        C[i] = X[i] * T.float32(2)
)");
  EXPECT_EQ(touched(work, "B").footprint, 8);
}

// Codes and scales that are looked up by an index are codes and scales still.
TEST(Choices, TheIndexOfAGatherIsNoOperand) {
  const TirWork work = read(R"(
@T.prim_func
def f(Q: T.Buffer((100, 8), "int8"), S: T.Buffer((100,), "float32"), ids: T.Buffer((3,), "int32"), C: T.Buffer((3, 8), "float32")):
    for i, c in T.grid(3, 8):
        with T.block("take"):
            vi, vc = T.axis.remap("SS", [i, c])
            C[vi, vc] = T.Cast("float32", Q[ids[vi], vc]) * S[ids[vi]]
)",
                            {{OperandKind::weight, 8}, {OperandKind::scale}, {}, {}});
  ASSERT_EQ(work.kernel.work.size(), 1U);
  EXPECT_EQ(work.kernel.work[0].vector_work, VectorWork::dequantize);
}

// A product whose left operand is gathered is the product of what is gathered with the right one.
TEST(Choices, AGatheredOperandIsAFactor) {
  const TirWork work = read(R"(
@T.prim_func
def f(X: T.Buffer((100, 16), "int8"), ids: T.Buffer((4,), "int32"), W: T.Buffer((8, 16), "int8"), C: T.Buffer((4, 8), "int32")):
    for i, j, k in T.grid(4, 8, 16):
        with T.block("matmul"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0
            C[vi, vj] = C[vi, vj] + T.Cast("int32", X[ids[vi], vk]) * T.Cast("int32", W[vj, vk])
)",
                            {{}, {}, {OperandKind::weight}, {}});
  auto product = product_of(work.kernel.work.at(0));
  ASSERT_TRUE(product);
  EXPECT_EQ(work.kernel.work[0].statement.accesses[product->first].tensor, "X");
  EXPECT_EQ(work.kernel.work[0].statement.accesses[product->second].tensor, "W");
}

// What is asked of indices alone is the control's work: one multiplication and one conversion of the truth value remain.
TEST(Choices, QuestionsAboutIndicesAreNoArithmetic) {
  const TirWork work = read(R"(
@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("mask"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi] * T.Cast("float32", (1 < vi and vi * vi < 50) or not (vi % 3 == 0))
)");
  EXPECT_EQ(work.kernel.work.at(0).vector_ops, 2);
}

// Kernels whose relations are alike share counts, but not what was decided for other roles.
TEST(Choices, EqualRelationsInOtherRolesDoNotShareACost) {
  auto kernel = [](bool weight_first) {
    Work w{.statement = {}, .operands = {}, .multiply_accumulate = true};
    w.statement.domain = Domain::box({"i", "j", "k"}, {96, 320, 160});
    w.statement.accesses = {{"A", Role::read, {{variable(0), variable(2)}}},
                            {"B", Role::read, {{variable(2), variable(1)}}},
                            {"C", Role::write, {{variable(0), variable(1)}}}};
    w.operands = {{.bits = 8}, {.bits = 8}, {.bits = 8}};
    w.operands[weight_first ? 0 : 1].kind = OperandKind::weight;
    return Kernel{"k", {w}};
  };
  auto swapped = [&] {
    Kernel k = kernel(false);
    std::swap(k.work[0].statement.accesses[0].role, k.work[0].statement.accesses[2].role);
    std::swap(k.work[0].operands[0], k.work[0].operands[2]);
    return k;
  };
  const Chip chip = find_chip(std::string(SATOR_SOURCE_DIR) + "/chips/tpuv1.toml");
  CostEngine one(chip);
  one.cost(kernel(false));
  for (const Kernel& other : {kernel(true), swapped()}) {
    const KernelCost got = one.cost(other), want = CostEngine(chip).cost(other);
    EXPECT_EQ(got.latency_cycles, want.latency_cycles);
    ASSERT_EQ(got.outside.size(), want.outside.size());
    for (size_t t = 0; t < want.outside.size(); ++t) {
      EXPECT_EQ(got.outside[t].read_bits, want.outside[t].read_bits);
      EXPECT_EQ(got.outside[t].write_bits, want.outside[t].write_bits);
    }
    for (size_t t = 0; t < 3; ++t)
      EXPECT_EQ(got.statements[0].counts->tensors[t].role, want.statements[0].counts->tensors[t].role);
  }
}

}  // namespace
}  // namespace sator::dataflow
