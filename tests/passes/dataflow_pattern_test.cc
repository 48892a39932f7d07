// Patterns of expressions: what each kind matches, and calls that others take the place of.
#include <gtest/gtest.h>

#include "passes/dataflow_pattern.h"
#include "relax/ops/table.h"
#include "relax/outline.h"
#include "relax/parse.h"
#include "relax/print.h"
#include "relax/rewrite.h"
#include "support/graphs.h"

namespace sator::test {
namespace {

using namespace passes;
using relax::RExpr;

constexpr const char* kGraph = R"(@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        with R.dataflow():
            a = R.add(x, y)
            b = R.multiply(a, R.const(2.0, "float32"))
            t = (b, x)
            c = t[1]
            d = R.add(b, c)
            s = R.sum(d, axis=[1], keepdims=True)
            r = R.subtract(d, s)
            R.output(r)
        return r
)";

/// The bindings of the graph by their names, and whether a pattern matches one.
class Patterns : public testing::Test {
 protected:
  Patterns() : module(relax::parse_module(kGraph)) {
    walk(module->functions.at("main"), [&](const relax::VarBinding& b) {
      vars.emplace(b.var->name, b.var);
      values.emplace(b.var, b.value);
    });
  }
  bool matches(const DFPattern& pattern, const std::string& name) const {
    auto value_of = [&](const relax::RVarRef& v) {
      auto at = values.find(v);
      return at == values.end() ? RExpr() : at->second;
    };
    return match_expression(pattern, vars.at(name), value_of).has_value();
  }

  ModuleRef module;
  std::map<std::string, relax::RVarRef> vars;
  std::map<relax::RVarRef, RExpr> values;
};

TEST_F(Patterns, LeavesGoByTheirKindAndName) {
  EXPECT_TRUE(matches(is_op("add", {is_var("x"), is_var()}), "a"));
  EXPECT_FALSE(matches(is_op("add", {is_var("y"), is_var()}), "a"));
  EXPECT_TRUE(matches(is_dataflow_var("b"), "b"));
  EXPECT_FALSE(matches(is_dataflow_var(), "r"));  // it leaves the block
  EXPECT_TRUE(matches(is_op("multiply", {wildcard(), is_constant()}), "b"));
  EXPECT_FALSE(matches(is_op("add", {wildcard(), is_constant()}), "a"));
}

TEST_F(Patterns, TuplesInOrderAndInAnyOrder) {
  const DFPattern product = is_op("multiply", {wildcard(), wildcard()});
  EXPECT_TRUE(matches(is_tuple({product, is_var("x")}), "t"));
  EXPECT_FALSE(matches(is_tuple({is_var("x"), product}), "t"));
  EXPECT_TRUE(matches(is_tuple({is_var("x"), product}, /*unordered=*/true), "t"));
  EXPECT_FALSE(matches(is_tuple({product}, true), "t"));
  EXPECT_TRUE(matches(is_any_item(wildcard()), "c"));
  EXPECT_TRUE(matches(is_tuple_get_item(is_tuple({wildcard(), wildcard()}), 1), "c"));
  EXPECT_FALSE(matches(is_tuple_get_item(wildcard(), 0), "c"));
}

TEST_F(Patterns, WhatIsKnownOfAValue) {
  EXPECT_TRUE(matches(has_shape(wildcard(), {int_imm(2), int_imm(1)}), "s"));
  EXPECT_FALSE(matches(has_shape(wildcard(), {int_imm(2), int_imm(3)}), "s"));
  EXPECT_TRUE(matches(has_dtype(wildcard(), f32), "s"));
  EXPECT_FALSE(matches(has_dtype(wildcard(), f16), "s"));
  EXPECT_TRUE(matches(has_struct_info(wildcard(), relax::tensor_info(f32, 2)), "d"));
  EXPECT_FALSE(matches(has_struct_info(wildcard(), relax::tensor_info(f32, 3)), "d"));
  EXPECT_TRUE(matches(has_attrs(is_op("sum", {wildcard()}), {{"keepdims", bool_imm(true)}}), "s"));
  EXPECT_FALSE(matches(has_attrs(is_op("sum", {wildcard()}), {{"keepdims", bool_imm(false)}}), "s"));
}

TEST_F(Patterns, Combinations) {
  const DFPattern sum = is_op("add", {wildcard(), wildcard()}),
                  two_rows = has_shape(wildcard(), {int_imm(2), int_imm(3)});
  EXPECT_TRUE(matches(sum & two_rows, "d"));
  EXPECT_FALSE(matches(sum & two_rows, "r"));
  EXPECT_TRUE(matches(sum | is_any_item(wildcard()), "c"));
  EXPECT_TRUE(matches(except(sum), "b"));
  EXPECT_FALSE(matches(except(sum), "a"));
  const DFPattern same = one_value(wildcard());
  EXPECT_FALSE(matches(is_op("add", {same, same}), "d"));
}

TEST_F(Patterns, CallsAreReplacedAndWhatTheyReadGoes) {
  // (p + q) * c is p * c + q * c.
  const DFPattern p = wildcard(), q = wildcard(), c = is_constant();
  const DFPattern product = is_op("multiply", {is_op("add", {p, q}), c});
  ModuleRef after = relax::rewrite_functions(module, [&](const relax::FuncRef& f, relax::BlockBuilder& builder) {
    return rewrite_matches(f, builder, product, [&](const RExpr&, const Matched& matched) {
      auto times = [&](const DFPattern& part) -> RExpr {
        return relax::make_call("multiply", {matched.at(part), matched.at(c)});
      };
      return relax::make_call("add", {times(p), times(q)});
    });
  });
  EXPECT_EQ(relax::to_script(*after).find("R.add(x, y)"), std::string::npos) << relax::to_script(*after);
  std::mt19937_64 random(7);
  const auto args = arguments_for(*graph_of(*module), random, [](size_t) { return int64_t{1}; });
  EXPECT_EQ(difference(relax::GraphInterpreter(module).call("main", copies(*args)),
                       relax::GraphInterpreter(after).call("main", copies(*args))),
            std::nullopt)
      << relax::to_script(*after);
  // Where the rewrite keeps each call, the function is the same.
  relax::BlockBuilder builder(module);
  auto main = cast<relax::Function>(module->functions.at("main"));
  EXPECT_EQ(rewrite_matches(main, builder, product, [](const RExpr& call, const Matched&) { return call; }), main);
}

}  // namespace
}  // namespace sator::test
