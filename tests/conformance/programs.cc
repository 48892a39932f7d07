#include "cases.h"
#include "relax/parse.h"
#include "relax/print.h"
#include "support/texttest.h"
#include "tir/print.h"

namespace sator::conformance {

ModuleRef parse_program(const std::string& text, bool verify) {
  for (size_t at = 0; (at = text.find("R.emit_te(", at)) != text.npos; ++at)
    if (!text.substr(at + 10).starts_with("topi.")) throw Unsupported{"formulas of Python in a graph"};
  bool has_graphs = text.find("@R.") != text.npos || text.find("R.ExternFunc") != text.npos;
  return has_graphs ? relax::parse_module(text, "", {.verify = verify})
                    : tir::parse_module(text, "", {.verify = verify});
}

ModuleRef without_global_symbols(const ModuleRef& module) {
  auto functions = module->functions;
  for (auto& [name, func] : functions) {
    Attrs attrs = func->attrs;
    attrs.erase("global_symbol");
    if (const auto* f = func.as<tir::PrimFunc>())
      func = with(*f, &tir::PrimFunc::attrs, std::move(attrs));
    else if (const auto* g = func.as<relax::Function>())
      func = with(*g, &relax::Function::attrs, std::move(attrs));
  }
  return with(module, &Module::functions, std::move(functions));
}

std::string print_program(const ModuleRef& module) {
  if (module->functions.size() == 1) {
    const Func& func = module->functions.begin()->second;
    if (const auto* f = func.as<tir::PrimFunc>()) return tir::to_script(*f);
  }
  return relax::to_script(*module);
}

bool same_program(const ModuleRef& a, const ModuleRef& b, bool ignore_global_symbol) {
  if (!ignore_global_symbol) return equal(a, b, true);
  ModuleRef x = without_global_symbols(a), y = without_global_symbols(b);
  if (x->functions.size() == 1 && y->functions.size() == 1)
    return equal(x->functions.begin()->second, y->functions.begin()->second, true);
  return equal(x, y, true);
}

std::string difference(const std::string& expected, const std::string& got) {
  return test::line_difference(expected, got);
}

}  // namespace sator::conformance
