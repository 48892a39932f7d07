#include "support/machine_code.h"

#include "base/error.h"
#include "codegen/jit.h"
#include "passes/lower/lower.h"

namespace sator::test {

double some_ulps(const std::string&, DType d) {
  const double ulp = d.is_bfloat() ? 0x1p-7 : d.bits == 16 ? 0x1p-10 : d.bits == 32 ? 0x1p-23 : 0x1p-52;
  return 64 * ulp;
}

std::string machine_difference(const tir::PrimFuncRef& func, uint64_t seed, const Allowed& allowed, bool* ran) {
  constexpr int64_t kIterations = 1'000'000;
  if (ran) *ran = false;
  RandomArguments expected(*func, seed, Values::fractions);
  if (!expected.usable()) return "";
  try {
    expected.interpret(func, kIterations);
  } catch (const Error&) {
    return "";
  }
  tir::PrimFuncRef lowered = passes::lower(func);
  if (ran) *ran = true;
  RandomArguments by_interpreter(*func, seed, Values::fractions);
  try {
    by_interpreter.interpret(lowered, 100 * kIterations);
  } catch (const Error& e) {
    return text("lowered, it is at fault: ", e.what());
  }
  if (std::string d = expected.difference(by_interpreter, allowed); !d.empty()) return "lowered: " + d;
  for (const target::CpuLevel* level : target::host_levels()) {
    Ref<codegen::Jit> jit = codegen::Jit::create(*level);
    SatorKernel kernel = jit->add(*lowered);
    RandomArguments by_machine(*func, seed, Values::fractions);
    std::string d = by_machine.call(kernel, *func);
    if (d.empty()) d = expected.difference(by_machine, allowed);
    if (!d.empty()) return text("machine code for ", level->name, ": ", d);
  }
  return "";
}

}  // namespace sator::test
