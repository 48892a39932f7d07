// Graphs that the virtual machine cannot run are the user's errors, with what has to be done before.
#include "codegen/vm_codegen.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "relax/parse.h"

namespace sator::codegen {
namespace {

std::string refusal(const ModuleRef& module) {
  try {
    vm_codegen(module);
  } catch (const InternalError& e) {
    return text("internal: ", e.what());
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(VmCodegen, NamesWhatIsLeftOfTheGraph) {
  ModuleRef cast = relax::parse_module(R"(
@R.function
def main(x: R.Tensor(ndim=1, dtype="float32")):
    n = T.int64()
    y = R.match_cast(x, R.Tensor((n,), "float32"))
    return y
)");
  EXPECT_NE(refusal(cast).find("function main has a match_cast"), std::string::npos) << refusal(cast);
  EXPECT_NE(refusal(cast).find("run VMShapeLower before"), std::string::npos);
  EXPECT_EQ(refusal(cast).find("internal"), std::string::npos);
}

TEST(VmCodegen, NamesAFunctionThatTheModuleHasNot) {
  ModuleRef module = relax::parse_module(R"(
@I.ir_module
class Module:
    @R.function
    def helper(x: R.Tensor((2,), "float32")):
        return x
    @R.function
    def main(x: R.Tensor((2,), "float32")):
        y = Module.helper(x)
        return y
)");
  Module without = *module;
  without.functions.erase("helper");
  const std::string words = refusal(ModuleRef(new Module(without)));
  EXPECT_NE(words.find("function main names a function helper that the module has not"), std::string::npos) << words;
  EXPECT_EQ(words.find("internal"), std::string::npos);
}

}  // namespace
}  // namespace sator::codegen
