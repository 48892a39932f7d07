// Programs in messages: underlined, labelled, shortened.
#include <gtest/gtest.h>

#include "tir/parse.h"
#include "tir/print.h"

namespace sator::tir {
namespace {

const char* kMatmul = R"(
@T.prim_func
def matmul(A: T.Buffer((128, 100), "float32"), B: T.Buffer((100, 128), "float32"), C: T.Buffer((128, 128), "float32")):
    for i, j in T.grid(128, 128):
        for k_0 in T.parallel(4):
            for k_1 in range(25):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    vk = T.axis.reduce(100, k_0 * 25 + k_1)
                    T.reads(A[vi, vk], B[vk, vj])
                    T.writes(C[vi, vj])
                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)";

template <class T>
Ref<const T> first(const PrimFunc& func, auto test) {
  Ref<const T> found;
  walk(ref(func), [&](const T& n) {
    if (!found && test(n)) found = ref(n);
  });
  return found;
}

TEST(Excerpt, UnderlinesALoopAndABlock) {
  PrimFuncRef f = parse_function(kMatmul);
  auto loop = first<For>(*f, [](const For& n) { return n.kind == LoopKind::parallel; });
  auto block = first<Block>(*f, [](const Block& n) { return n.name->text == "C"; });
  EXPECT_EQ(excerpt(*f, {{loop, "cannot run in parallel"}, {block->name, "reduces over vk"}}),
            R"(@T.prim_func
def matmul(A: T.Buffer((128, 100), "float32"), B: T.Buffer((100, 128), "float32"), C: T.Buffer((128, 128), "float32")):
    # with T.block("root"):
    for i, j in T.grid(128, 128):
        for k_0 in T.parallel(4):
        ^^^^^^^^^^^^^^^^^^^^^^^^ cannot run in parallel
            for k_1 in range(25):
                with T.block("C"):
                     ^^^^^^^^^^^^ reduces over vk
                    vi, vj = T.axis.remap("SS", [i, j])
                    vk = T.axis.reduce(100, k_0 * 25 + k_1)
                    T.reads(A[vi, vk], B[vk, vj])
                    T.writes(C[vi, vj])
                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj])");
}

TEST(Excerpt, ALoopOfAGridIsItsVariableAndAVariableWhereItIsDefined) {
  PrimFuncRef f = parse_function(kMatmul);
  auto loop = first<For>(*f, [](const For& n) { return n.var->name == "j"; });
  auto var = first<For>(*f, [](const For& n) { return n.var->name == "k_1"; })->var;
  std::string text = excerpt(*f, {{loop, "here"}, {var, "there"}});
  EXPECT_NE(text.find("    for i, j in T.grid(128, 128):\n           ^ here\n"), text.npos) << text;
  EXPECT_NE(text.find("            for k_1 in range(25):\n                ^^^ there\n"), text.npos) << text;
}

TEST(Excerpt, LongProgramsAreShortenedToTheNestAroundTheMarks) {
  std::string source = "@T.prim_func\ndef f(A: T.Buffer((64,), \"int32\")):\n";
  for (int i = 0; i < 20; ++i) source += "    A[" + std::to_string(i) + "] = 0\n";
  source += "    for i in range(4):\n";
  for (int i = 20; i < 40; ++i) source += "        A[" + std::to_string(i) + "] = i\n";
  PrimFuncRef f = parse_function(source);
  auto store = first<BufferStore>(*f, [](const BufferStore& n) { return is_int(n.indices[0], 30); });
  EXPECT_EQ(excerpt(*f, {{store, "is wrong"}}),
            R"(@T.prim_func
def f(A: T.Buffer((64,), "int32")):
    ... 20 lines
    for i in range(4):
        ... 8 lines
        A[28] = i
        A[29] = i
        A[30] = i
        ^^^^^^^^^ is wrong
        A[31] = i
        A[32] = i
        ... 7 lines)");
}

TEST(Text, StatementsAndExpressionsInMessages) {
  PrimFuncRef f = parse_function(kMatmul);
  auto loop = first<For>(*f, [](const For& n) { return n.kind == LoopKind::parallel; });
  auto realize = first<BlockRealize>(*f, [](const BlockRealize& n) { return n.block->name->text == "C"; });
  auto store = first<BufferStore>(*f, [](const BufferStore&) { return true; });
  EXPECT_EQ(text("vk = ", realize->values[2]), "vk = k_0 * 25 + k_1");
  EXPECT_EQ(text(loop), "for k_0 in T.parallel(4)");
  EXPECT_EQ(text(store), "C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]");
  EXPECT_EQ(text(realize->block->reads[0]), "A[vi, vk]");
  EXPECT_EQ(text(realize->block->name), "\"C\"");
}

}  // namespace
}  // namespace sator::tir
