#include <gtest/gtest.h>

#include "passes/device/device.h"
#include "tir/copy.h"
#include "tir/parse.h"
#include "tir/verify.h"

namespace sator::passes {
namespace {

constexpr const char* kProgram = R"(
@T.prim_func
def f(a: T.handle, n: T.int32):
    A = T.match_buffer(a, (n, 8), "float32")
    tx = T.launch_thread("threadIdx.x", 8)
    S = T.allocate([8], "float32", "shared")
    S_1 = T.decl_buffer((8,), "float32", data=S, scope="shared")
    for i in range(n):
        x: T.float32 = A[i, tx]
        S_1[tx] = x
)";

TEST(ConvertSSA, FunctionsShareNoVariables) {
  tir::PrimFuncRef f = tir::parse_function(kProgram, "f");
  ModuleRef module = make<Module>(std::map<std::string, Func>{{"a", f}, {"b", f}, {"c", f}}, Attrs(), Attrs());
  ModuleRef out = convert_ssa(module, {});
  std::unordered_set<const Var*> all;
  size_t count = 0;
  for (const auto& [name, func] : out->functions) {
    tir::PrimFuncRef g = cast<tir::PrimFunc>(func);
    EXPECT_TRUE(equal(f, g)) << name;
    EXPECT_TRUE(tir::verify(*g).empty()) << name;
    std::unordered_set<const Var*> own = tir::defined_in(*g);
    count += own.size();
    all.insert(own.begin(), own.end());
    // What is used is what the function defines.
    for (const VarRef& v : vars_in(g->body)) EXPECT_TRUE(own.contains(v.get())) << name << ": " << v->name;
  }
  EXPECT_EQ(count, 3 * 7u);  // a, n, the pointer of A, tx, S, i, x
  EXPECT_EQ(all.size(), count);
}

TEST(ConvertSSA, KeepsWhatSharesNothing) {
  tir::PrimFuncRef f = tir::parse_function(kProgram, "f");
  ModuleRef module =
      make<Module>(std::map<std::string, Func>{{"a", f}, {"b", tir::parse_function(kProgram, "g")}}, Attrs(), Attrs());
  EXPECT_EQ(convert_ssa(module, {}), module);
}

TEST(FreeNames, WhatIsNotDefinedInside) {
  tir::PrimFuncRef f = tir::parse_function(kProgram, "f");
  tir::FreeNames names = tir::free_names(f->body);
  std::vector<std::string> vars;
  for (const VarRef& v : names.vars) vars.push_back(v->name);
  std::ranges::sort(vars);
  EXPECT_EQ(vars, (std::vector<std::string>{"A", "n"}));
  ASSERT_EQ(names.buffers.size(), 1u);
  EXPECT_EQ(names.buffers[0]->name, "A");
}

}  // namespace
}  // namespace sator::passes
