// Loop nests of any form: what the rule makes of them means what they meant, and has parallel and vector loops.
#include "rules/nest.h"

#include <gtest/gtest.h>

#include <random>

#include "rules/cpu.h"
#include "target/cpu.h"
#include "tir/interp.h"
#include "tir/parse.h"

namespace sator::rules {
namespace {

/// A sum over `reductions` of `term` into C[`result`], over these extents; s stands for spatial, r for reduced iterators.
std::string nest(const std::string& extents, const std::string& kinds, const std::string& buffers,
                 const std::string& store) {
  std::string names, block;
  for (size_t i = 0; i < kinds.size(); ++i) {
    names += text(i ? ", " : "", "i", i);
    block += text(i ? ", " : "", "v", i);
  }
  const bool reduces = kinds.find('R') != kinds.npos;
  std::string out = text("@T.prim_func\ndef main(",
                         buffers,
                         "):\n    for ",
                         names,
                         " in T.grid(",
                         extents,
                         "):\n        with T.block(\"C\"):\n            ",
                         block,
                         " = T.axis.remap(\"",
                         kinds,
                         "\", [",
                         names,
                         "])\n");
  const std::string target(trim(store.substr(0, store.find('='))));
  if (reduces) out += text("            with T.init():\n                ", target, " = T.float32(0)\n");
  return out + text("            ", store, "\n");
}

struct Case {
  const char *extents, *kinds, *buffers, *store;
};

/// What the scheduled function leaves in its buffers is what the function as it was leaves there, and it has a parallel loop.
void expect_same(const tir::PrimFuncRef& func, const schedule::Schedule& s, const std::string& what) {
  bool is_parallel = false;
  walk(s.func()->body, [&](const tir::For& loop) { is_parallel |= loop.kind == tir::LoopKind::parallel; });
  EXPECT_TRUE(is_parallel) << what;
  std::vector<std::vector<float>> plain, fast;
  std::mt19937 random(3);
  for (const VarRef& p : func->params) {
    int64_t count = 1;
    for (const Expr& e : func->buffer_of(p)->shape) count *= *as_int(e);
    // Small integers: their sums are exact in any order.
    std::vector<float>& values = plain.emplace_back(static_cast<size_t>(count));
    for (float& v : values) v = static_cast<float>(static_cast<int>(random() % 9) - 4);
  }
  fast = plain;
  auto arguments = [&](std::vector<std::vector<float>>& memory) {
    std::vector<tir::Argument> out;
    for (size_t i = 0; i < memory.size(); ++i) {
      tir::ArrayView view{.dtype = f32};
      for (const Expr& e : func->buffer_of(func->params[i])->shape) view.shape.push_back(*as_int(e));
      view.data = memory[i].data();
      out.emplace_back(view);
    }
    return out;
  };
  tir::Interpreter(func).run(arguments(plain));
  tir::Interpreter(s.func()).run(arguments(fast));
  EXPECT_EQ(plain, fast) << what;
}

TEST(Nest, MeansTheSame) {
  for (const Case& c : {
           // Along the result; a tile of registers; a tail.
           Case{"3, 9, 40, 7",
                "SSSR",
                "A: T.Buffer((3, 9, 7)), B: T.Buffer((3, 7, 40)), C: T.Buffer((3, 9, 40))",
                "C[v0, v1, v2] = C[v0, v1, v2] + A[v0, v1, v3] * B[v0, v3, v2]"},
           // An operand that lies across: laid out anew.
           Case{"32, 5, 7, 6, 3",
                "SSSRR",
                "A: T.Buffer((6, 5, 9)), B: T.Buffer((32, 6, 3)), C: T.Buffer((32, 5, 7))",
                "C[v0, v1, v2] = C[v0, v1, v2] + A[v3, v1, v2 + v4] * B[v0, v3, v4]"},
           // Both lie along the sum: one is laid out anew, in one piece where it is not whole tiles.
           Case{"2, 40, 17, 36",
                "SSSR",
                "A: T.Buffer((2, 40, 36)), B: T.Buffer((2, 17, 36)), C: T.Buffer((2, 40, 17))",
                "C[v0, v1, v2] = C[v0, v1, v2] + A[v0, v1, v3] * B[v0, v2, v3]"},
           Case{"2, 3, 17, 300",
                "SSSR",
                "A: T.Buffer((2, 3, 300)), B: T.Buffer((2, 17, 300)), C: T.Buffer((2, 3, 17))",
                "C[v0, v1, v2] = C[v0, v1, v2] + A[v0, v1, v3] * B[v0, v2, v3]"},
           // Along what is reduced, whole vectors and not; over several axes.
           Case{"5, 64", "SR", "A: T.Buffer((5, 64)), C: T.Buffer((5,))", "C[v0] = C[v0] + A[v0, v1]"},
           Case{"4, 3, 37", "RSR", "A: T.Buffer((4, 3, 37)), C: T.Buffer((3,))", "C[v1] = C[v1] + A[v0, v1, v2]"},
           // Few results: cut into parts.
           Case{"4500, 8", "RS", "A: T.Buffer((4500, 8)), C: T.Buffer((8,))", "C[v1] = C[v1] + A[v0, v1]"},
           Case{"70, 71", "RR", "A: T.Buffer((70, 71)), C: T.Buffer((1,))", "C[0] = C[0] + A[v0, v1]"},
           Case{"1, 8209", "SR", "A: T.Buffer((1, 8209)), C: T.Buffer((1,))", "C[v0] = C[v0] + A[v0, v1]"},
           // Several vectors of partial results, folded to one: whole, three of them, with a rest.
           Case{"3, 512", "SR", "A: T.Buffer((3, 512)), C: T.Buffer((3,))", "C[v0] = C[v0] + A[v0, v1]"},
           Case{"3, 336", "SR", "A: T.Buffer((3, 336)), C: T.Buffer((3,))", "C[v0] = C[v0] + A[v0, v1]"},
           Case{"2, 3, 301",
                "SSR",
                "A: T.Buffer((2, 3, 301)), C: T.Buffer((2, 3))",
                "C[v0, v1] = C[v0, v1] + A[v0, v1, v2]"},
           // Without a reduction: transposed, strided, flat.
           Case{"33, 18", "SS", "A: T.Buffer((18, 33)), C: T.Buffer((33, 18))", "C[v0, v1] = A[v1, v0]"},
           Case{"3, 17", "SS", "A: T.Buffer((3, 40)), C: T.Buffer((3, 17))", "C[v0, v1] = A[v0, v1 * 2 + 1]"},
           Case{"5000", "S", "A: T.Buffer((5000,)), C: T.Buffer((5000,))", "C[v0] = A[v0] + T.float32(1)"},
       }) {
    const tir::PrimFuncRef func = tir::parse_function(nest(c.extents, c.kinds, c.buffers, c.store));
    for (const char* level : {"avx512", "avx2"}) {
      schedule::Schedule s(func);
      schedule_nest(s, s.block_named("C"), target::cpu_level(level));
      expect_same(func, s, text(c.store, " for ", level));
    }
  }
}

TEST(Nest, ReducesPairsOfPositionAndValue) {
  struct Pairs {
    const char *extents, *kinds, *a, *c, *element, *result, *position;
  };
  for (const Pairs& c : {
           // Lanes along what is reduced, a tile along the results, parts of one result; with a rest and without.
           Pairs{"5, 300", "SR", "5, 300", "5", "v0, v1", "v0", "v1"},
           Pairs{"5, 320", "SR", "5, 320", "5", "v0, v1", "v0", "v1"},
           Pairs{"37, 70", "RS", "37, 70", "70", "v0, v1", "v1", "v0"},
           Pairs{"70, 71", "RR", "70, 71", "1", "v0, v1", "0", "v0 * 71 + v1"},
           Pairs{"1, 8192", "SR", "1, 8192", "1", "v0, v1", "v0", "v1"},
           Pairs{
               "4, 5, 6, 44", "RRRR", "4, 5, 6, 44", "1", "v0, v1, v2, v3", "0", "((v0 * 5 + v1) * 6 + v2) * 44 + v3"},
       }) {
    const std::string kinds = c.kinds;
    std::string names, block;
    for (size_t i = 0; i < kinds.size(); ++i) {
      names += text(i ? ", " : "", "i", i);
      block += text(i ? ", " : "", "v", i);
    }
    const std::string r = c.result, a = text("A[", c.element, "]"), p = text("T.Cast(\"float32\", ", c.position, ")");
    const std::string keep = text("V[", r, "] > ", a, " or V[", r, "] == ", a, " and P[", r, "] < ", p);
    const std::string program = text("@T.prim_func\ndef main(A: T.Buffer((",
                                     c.a,
                                     ",)), P: T.Buffer((",
                                     c.c,
                                     ",)), V: T.Buffer((",
                                     c.c,
                                     ",))):\n",
                                     "    for ",
                                     names,
                                     " in T.grid(",
                                     c.extents,
                                     "):\n",
                                     "        with T.block(\"C\"):\n",
                                     "            ",
                                     block,
                                     " = T.axis.remap(\"",
                                     kinds,
                                     "\", [",
                                     names,
                                     "])\n",
                                     "            with T.init():\n",
                                     "                P[",
                                     r,
                                     "] = T.float32(-1)\n",
                                     "                V[",
                                     r,
                                     "] = T.float32(\"-inf\")\n",
                                     "            p: T.float32 = T.Select(",
                                     keep,
                                     ", P[",
                                     r,
                                     "], ",
                                     p,
                                     ")\n",
                                     "            v: T.float32 = T.Select(V[",
                                     r,
                                     "] > ",
                                     a,
                                     ", V[",
                                     r,
                                     "], ",
                                     a,
                                     ")\n",
                                     "            P[",
                                     r,
                                     "] = p\n",
                                     "            V[",
                                     r,
                                     "] = v\n");
    const tir::PrimFuncRef func = tir::parse_function(program);
    for (const char* level : {"avx512", "avx2"}) {
      schedule::Schedule s(func);
      schedule_nest(s, s.block_named("C"), target::cpu_level(level));
      expect_same(func, s, text(program, " for ", level));
    }
  }
}

}  // namespace
}  // namespace sator::rules
