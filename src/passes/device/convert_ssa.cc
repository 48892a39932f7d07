// No variable is defined by two functions: the later one gets variables of its own.
#include "passes/device/device.h"
#include "tir/copy.h"

namespace sator::passes {

ModuleRef convert_ssa(const ModuleRef& module, const PassContext&) {
  std::unordered_set<const Var*> taken;
  ModuleRef out = module;
  for (const auto& [name, func] : module->functions) {
    tir::PrimFuncRef f = cast<tir::PrimFunc>(func);
    if (!f) continue;
    std::unordered_set<const Var*> own = tir::defined_in(*f);
    if (std::ranges::any_of(own, [&](const Var* v) { return taken.contains(v); })) {
      f = tir::fresh_function(f);
      own = tir::defined_in(*f);
      out = with_function(out, name, f);
    }
    taken.insert(own.begin(), own.end());
  }
  return out;
}

}  // namespace sator::passes
