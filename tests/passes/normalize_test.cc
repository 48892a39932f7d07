// Normal forms of graphs that text does not state: names apart from symbols, variables of which nothing is known.
#include <gtest/gtest.h>

#include "base/error.h"
#include "passes/run.h"
#include "relax/ops/table.h"
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

const passes::Pass& normalize_names() { return passes::pass_named("NormalizeGlobalVar"); }

TEST(NormalizeGlobalVar, APrivateFunctionMakesRoom) {
  ModuleRef before = with_symbol(relax::parse_module(kProgram), "inner", "api");
  ModuleRef after = passes::run_pass(normalize_names(), before, {});
  ASSERT_EQ(after->functions.size(), 2u);
  EXPECT_TRUE(has_attr(after->functions.at("api")->attrs, "global_symbol"));
  EXPECT_FALSE(has_attr(after->functions.at("api1")->attrs, "global_symbol"));
  EXPECT_NE(relax::to_script(*after).find("cls.api1(x)"), std::string::npos);
}

TEST(NormalizeGlobalVar, NamesThatAreSymbolsStay) {
  ModuleRef before = relax::parse_module(kProgram);
  EXPECT_EQ(passes::run_pass(normalize_names(), before, {}), before);
}

TEST(NormalizeGlobalVar, TwoOfOneSymbolAreRefused) {
  ModuleRef before = with_symbol(with_symbol(relax::parse_module(kProgram), "inner", "f"), "api", "f");
  try {
    normalize_names().run(before, {});
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("two functions have the global_symbol f"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("make one of them private"), std::string::npos) << e.what();
  }
}

TEST(Normalize, AVariableHasWhatIsKnownOfItsValue) {
  using relax::RExpr;
  relax::RVarRef x = relax::make_rvar("x", relax::tensor_info({int_imm(4)}, f32));
  relax::RVarRef y = relax::make_rvar("y", nullptr), z = relax::make_rvar("z", nullptr);
  std::vector<relax::Binding> bindings = {
      make<relax::VarBinding>(relax::make_call("exp", {RExpr(x)}), y),
      make<relax::VarBinding>(relax::call(relax::op_ref("add"), {y, relax::make_call("sin", {RExpr(y)})}), z)};
  RExpr body = make<relax::SeqExpr>(
      std::vector{make<relax::BindingBlock>(std::move(bindings), false)}, RExpr(z), relax::StructInfo());
  Func f = make<relax::Function>(std::vector{x}, body, x->sinfo, true, Attrs{{"global_symbol", string_imm("main")}});
  ModuleRef before = make<Module>(std::map<std::string, Func>{{"main", f}}, Attrs(), Attrs());
  ModuleRef after = passes::pass_named("Normalize").run(before, {});
  EXPECT_TRUE(passes::verify(*after).empty());
  const std::string script = relax::to_script(*after);
  EXPECT_NE(script.find("y: R.Tensor((4,), dtype=\"float32\") = R.exp(x)"), std::string::npos) << script;
  EXPECT_NE(script.find("z: R.Tensor((4,), dtype=\"float32\") = R.add(y, gv)"), std::string::npos) << script;
}

}  // namespace
}  // namespace sator::test
