// Names of functions and the symbols that others link to: in programs as passes leave them. Text states no such program.
#include <gtest/gtest.h>

#include "base/error.h"
#include "passes/run.h"
#include "relax/parse.h"
#include "relax/print.h"

namespace sator::test {
namespace {

constexpr const char* kProgram = R"(@I.ir_module
class Module:
    @R.function(private=True)
    def api(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.exp(x)
        return y
    @R.function
    def inner(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        y = cls.api(x)
        return y
)";

ModuleRef with_symbol(const ModuleRef& module, const std::string& name, const std::string& symbol) {
  auto f = cast<relax::Function>(module->functions.at(name));
  return with_function(module, name, with(f, &relax::Function::attrs, Attrs{{"global_symbol", string_imm(symbol)}}));
}

const passes::Pass& normalize() { return passes::pass_named("NormalizeGlobalVar"); }

TEST(NormalizeGlobalVar, APrivateFunctionMakesRoom) {
  ModuleRef before = with_symbol(relax::parse_module(kProgram), "inner", "api");
  ModuleRef after = passes::run_pass(normalize(), before, {});
  ASSERT_EQ(after->functions.size(), 2u);
  EXPECT_TRUE(has_attr(after->functions.at("api")->attrs, "global_symbol"));
  EXPECT_FALSE(has_attr(after->functions.at("api1")->attrs, "global_symbol"));
  EXPECT_NE(relax::to_script(*after).find("cls.api1(x)"), std::string::npos);
}

TEST(NormalizeGlobalVar, NamesThatAreSymbolsStay) {
  ModuleRef before = relax::parse_module(kProgram);
  EXPECT_EQ(passes::run_pass(normalize(), before, {}), before);
}

TEST(NormalizeGlobalVar, TwoOfOneSymbolAreRefused) {
  ModuleRef before = with_symbol(with_symbol(relax::parse_module(kProgram), "inner", "f"), "api", "f");
  try {
    normalize().run(before, {});
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("two functions have the global_symbol f"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("make one of them private"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace sator::test
