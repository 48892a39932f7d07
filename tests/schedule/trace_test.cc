// A trace is text that replays.
#include "schedule/trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "schedule/primitives.h"
#include "schedule/schedule.h"
#include "schedule/script.h"
#include "tir/parse.h"
#include "tir/print.h"

namespace sator::schedule {
namespace {

TEST(Trace, ItsTextIsAScriptThatMakesTheSameProgram) {
  tir::PrimFuncRef f = tir::parse_function(R"(@T.prim_func(private=True)
def f(A: T.Buffer((64, 32), "float32"), B: T.Buffer((32, 48), "float32"), C: T.Buffer((64, 48), "float32")):
    for i, j, k in T.grid(64, 48, 32):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)");
  Schedule s(f, "f");
  Script(s).run(
      "c = cache_write(\"C\", 0, \"local\")\ni, j, k = get_loops(\"C\")\n"
      "j0, j1 = split(j, [None, 16])\ni0, i1 = split(i, [None, 4])\nreorder(j0, i0, k, i1, j1)\n"
      "reverse_compute_at(c, i0)\nvectorize(j1)\nunroll(i1)\nparallel(j0)\ndecompose_reduction(\"C\", k)\n"
      "transform_layout(\"C_update\", (\"read\", 2), lambda k, j: (j // 16, k, j % 16))\n");
  Schedule again(f, "f");
  Script(again).run(s.trace().as_python());
  EXPECT_TRUE(equal(s.func(), again.func())) << s.trace().as_python() << tir::to_script(*again.func());
  EXPECT_FALSE(equal(s.func(), f));
}

// Of several functions a trace says which ones it worked on.
TEST(Trace, ItGoesFromFunctionToFunction) {
  const ModuleRef module = tir::parse_module(R"(@I.ir_module
class Module:
    @T.prim_func
    def first(A: T.Buffer((64,), "float32")):
        for i in range(64):
            with T.block("fill"):
                vi = T.axis.spatial(64, i)
                A[vi] = T.float32(1)
    @T.prim_func
    def second(A: T.Buffer((32,), "float32")):
        for i in range(32):
            with T.block("fill"):
                vi = T.axis.spatial(32, i)
                A[vi] = T.float32(2)
)");
  Schedule s(module);
  for (const char* name : {"second", "first"}) {
    s.work_on(name);
    vectorize(s, get_loops(s, get_block(s, "fill", ""))[0]);
  }
  Schedule again(module);
  Script(again).run(s.trace().as_python());
  EXPECT_TRUE(equal(s.module(), again.module())) << s.trace().as_python();
}

/// A product and what follows it, element by element.
tir::PrimFuncRef product_and_relu() {
  return tir::parse_function(R"(@T.prim_func(private=True)
def f(A: T.Buffer((64, 36), "float32"), B: T.Buffer((36, 48), "float32"), D: T.Buffer((64, 48), "float32")):
    C = T.alloc_buffer((64, 48))
    for i, j, k in T.grid(64, 48, 36):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(64, 48):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(C[vi, vj], T.float32(0))
)");
}

constexpr const char* kSampled =
    "c = get_block(\"C\")\n"
    "i, j, k = get_loops(c)\n"
    "i0, i1, i2 = split(i, sample_perfect_tile(i, n=3))\n"
    "k0, k1 = split(k, sample_partitioned_tile(k, n=2, partition_pos=1, innerpart_factor=3))\n"
    "annotate(i0, \"unroll\", sample_categorical([0, 16, 64], [0.25, 0.25, 0.5]))\n"
    "enter_postproc()\n"
    "d = get_block(\"D\")\n"
    "l = sample_compute_location(c)\n"
    "compute_at(c, l)\n";

Schedule sampled(uint64_t seed) {
  Schedule s(product_and_relu(), "f");
  s.seed(seed);
  Script(s).run(kSampled);
  return s;
}

TEST(Trace, WhatIsChosenFollowsFromTheSeed) {
  std::set<std::string> programs;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const Schedule s = sampled(seed);
    EXPECT_TRUE(equal(s.func(), sampled(seed).func()));
    programs.insert(tir::to_script(*s.func()));
  }
  EXPECT_GT(programs.size(), 6U);
}

// Factors of a choice are named in the steps that use them; a decision that is edited reaches these.
TEST(Trace, DecisionsReplayAsTextAndAsJson) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const Schedule s = sampled(seed);
    Schedule text(product_and_relu(), "f"), json(product_and_relu(), "f"), steps(product_and_relu(), "f");
    Script(text).run(s.trace().as_python());
    EXPECT_TRUE(equal(s.func(), text.func())) << s.trace().as_python();
    Script(json).run(script_of_json({s.trace().as_json(), "trace"}));
    EXPECT_TRUE(equal(s.func(), json.func())) << s.trace().as_json().dump();
    EXPECT_EQ(s.trace().as_json(), json.trace().as_json());
    s.trace().apply_to(steps);
    EXPECT_TRUE(equal(s.func(), steps.func()));
  }
  Json json = sampled(0).trace().as_json();
  const Json expected_split = {"Split", {"l1", "v4", "v5", "v6"}, {1, 0}, {"l7", "l8", "l9"}};
  EXPECT_EQ(json[0][3], expected_split) << json.dump();
  ASSERT_EQ(json[1][0][0], 2);
  json[1][0][1] = {2, 2, 16};
  Schedule s(product_and_relu(), "f");
  Script(s).run(script_of_json({json, "trace"}));
  const std::string program = tir::to_script(*s.func());
  EXPECT_NE(program.find("in T.grid(2, 16, 48"), std::string::npos) << program;
}

TEST(Trace, TilesAreFactorsOfTheExtent) {
  for (uint64_t seed = 0; seed < 64; ++seed) {
    Schedule s(product_and_relu(), "f");
    s.seed(seed);
    const std::vector<Loop> loops = get_loops(s, get_block(s, "C", ""));
    auto tiles = [&](const Factors& factors) {
      std::vector<int64_t> out;
      for (std::optional<Expr> f : factors) s.evaluate(f), out.push_back(*as_int(*f));
      return out;
    };
    const std::vector<int64_t> perfect = tiles(sample_perfect_tile(s, loops[0], 4, 8)),
                               parts = tiles(sample_partitioned_tile(s, loops[2], 3, 1, 6));
    EXPECT_EQ(perfect[0] * perfect[1] * perfect[2] * perfect[3], 64);
    EXPECT_LE(perfect[3], 8);
    EXPECT_EQ(parts[0] * parts[1] * parts[2], 36);
    EXPECT_EQ(parts[1] * parts[2] % 6, 0);
  }
}

// Arguments of chosen numbers that cannot be computed are refused as any others: the schedule goes on as it was.
TEST(Trace, AStepWhoseArgumentsFailLeavesTheScheduleAsItWas) {
  Schedule s(product_and_relu(), "f");
  Script script(s);
  script.run("i, j, k = get_loops(\"C\")\nz = sample_categorical([0], [1.0])\n");
  const size_t steps = s.trace().steps.size();
  EXPECT_THROW(script.run("split(i, [None, z])\n"), Error);
  EXPECT_THROW(script.run("split(i, [None, 4 // z])\n"), Error);
  EXPECT_EQ(s.trace().steps.size(), steps);
  script.run("split(j, [None, 16])\n");
  EXPECT_EQ(s.trace().steps.size(), steps + 1);
}

// As TVM's tests have it: the block is inlined, and what nobody uses goes.
TEST(Trace, IsSimplified) {
  Schedule s(product_and_relu(), "f");
  Script(s).run(
      "b = get_block(\"C\")\ni, j, k = get_loops(b)\nget_loops(get_block(\"D\"))\nsplit(i, [None, 32])\n"
      "sample_categorical([3], [1.0])\nenter_postproc()\nparallel(j)\n");
  EXPECT_EQ(s.trace().simplified(false).as_python(),
            "b0 = sch.get_block(name=\"C\", func_name=\"\")\n"
            "l1, l2, l3 = sch.get_loops(block=b0)\n"
            "l4, l5 = sch.split(loop=l1, factors=[None, 32], preserve_unit_iters=True, disable_predication=False)\n"
            "sch.enter_postproc()\n"
            "sch.parallel(loop=l2)\n");
  EXPECT_EQ(s.trace().simplified(true).steps.size(), 3U);
}

// A trace that TVM wrote (its instructions: inputs, then attributes; the side of a buffer behind its index).
TEST(Trace, ReadsTvmsJson) {
  const Json trace = Json::parse(R"([
    [["GetBlock", [], ["C", "f"], ["b0"]],
     ["CacheWrite", ["b0"], [0, "local"], ["b1"]],
     ["ReIndex", ["b0"], [0, 0], ["b9"]],
     ["GetLoops", ["b0"], [], ["l2", "l3", "l4"]],
     ["SamplePerfectTile", ["l2"], [2, 16], ["v5", "v6"]],
     ["Split", ["l2", "v5", "v6"], [1, 0], ["l7", "l8"]],
     ["Reorder", ["l7", "l4", "l8", "l3"], [], []],
     ["ReverseComputeAt", ["b1", "l7"], [1, -1], []],
     ["Annotate", ["l8", "\"a string\""], ["key"], []],
     ["Vectorize", ["l3"], [], []]],
    [[4, [8, 8]]]])");
  Schedule s(product_and_relu(), "f"), by_hand(product_and_relu(), "f");
  Script(s).run(script_of_json({trace, "trace"}));
  Script(by_hand).run(
      "w = cache_write(\"C\", 0, \"local\")\nreindex(\"C\", (\"read\", 0))\ni, j, k = get_loops(\"C\")\n"
      "i0, i1 = split(i, [8, 8])\nreorder(i0, k, i1, j)\nreverse_compute_at(w, i0, True, -1)\n"
      "annotate(i1, \"key\", \"a string\")\nvectorize(j)\n");
  EXPECT_TRUE(equal(s.func(), by_hand.func())) << tir::to_script(*s.func()) << tir::to_script(*by_hand.func());
  auto error = [&](const char* json) {
    try {
      script_of_json({Json::parse(json), "trace"});
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(error(R"([[["Slpit", [], [], []]], []])").find("[0][0][0] is \"Slpit\""), std::string::npos);
  EXPECT_NE(error(R"([[["Split", [], [1, 0], []]], []])").find("has 0 inputs"), std::string::npos);
  EXPECT_NE(error(R"([[["Vectorize", ["l0; import os"], [], []]], []])").find("name of a result"), std::string::npos);
  EXPECT_NE(error(R"([[["TransformBlockLayout", ["b0"], ["{\"root\": 1}"], []]], []])").find("as Python"),
            std::string::npos);
  EXPECT_NE(error(R"([[], [[0, 1]]])").find("index of an instruction"), std::string::npos);
  EXPECT_NE(error(R"({"a": 1})").find("array"), std::string::npos);
}

}  // namespace
}  // namespace sator::schedule
