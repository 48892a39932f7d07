// transform, transform_error: passes of the table, by the names that TVM gives them.
#include <algorithm>

#include "base/text.h"
#include "cases.h"
#include "passes/pass.h"
#include "relax/nodes.h"

namespace sator::conformance {

namespace {

/// "relax.transform.LegalizeOps()": the pass. Unsupported: another form, options, a pass that is not built.
const passes::Pass& pass_of(const std::string& written) {
  size_t dot = written.rfind('.', written.find('('));
  std::string name = written.substr(dot == written.npos ? 0 : dot + 1);
  size_t paren = name.find('(');
  std::string options = paren == name.npos ? "" : name.substr(paren);
  name = name.substr(0, paren);
  auto at = std::ranges::find(passes::passes(), name, &passes::Pass::name);
  if (at == passes::passes().end()) throw Unsupported{"pass " + name};
  if (options != "()") throw Unsupported{"pass " + name + " with options"};
  return *at;
}

/// Without what StaticPlanBlockMemory notes of its plan, beyond TVM.
ModuleRef without_plan(const ModuleRef& module) {
  ModuleRef out = module;
  for (const auto& [name, func] : module->functions) {
    const auto* f = func.as<relax::Function>();
    if (!f) continue;
    Attrs attrs = f->attrs;
    std::erase_if(attrs, [](const auto& a) { return a.first.starts_with("memory."); });
    out = with_function(out, name, with(*f, &relax::Function::attrs, std::move(attrs)));
  }
  return out;
}

ModuleRef transformed(const Json& request, bool& began_last) {
  if (request.contains("opaque")) throw Unsupported{"values of Python that the case captured"};
  if (request.contains("before_deps") || request.contains("after_deps"))
    throw Unsupported{"scripts that the case captured"};
  if (request.contains("ctx") && !request["ctx"].empty()) throw Unsupported{"contexts around a pass"};
  if (!request.contains("actions")) throw Unsupported{"expressions in place of passes"};
  std::vector<const passes::Pass*> list;
  for (const Json& action : request["actions"]) list.push_back(&pass_of(action.at("pass")));
  ModuleRef module = parse_program(request.at("before"));
  for (const passes::Pass* p : list) {
    began_last = p == list.back();
    module = p->run(module, {});
  }
  return module;
}

}  // namespace

void run_transform(const Json& request) {
  // What the result is compared with must be readable before anything counts as a failure.
  bool unchanged = request.value("unchanged", false), began_last = false;
  if (!unchanged && !request.contains("after")) throw Unsupported{"a case without a result"};
  ModuleRef got = without_plan(transformed(request, began_last));
  ModuleRef expected = parse_program(unchanged ? request.at("before") : request.at("after"));
  bool ignore = request.contains("check") && request["check"].value("ignore_global_symbol", false);
  if (!same_program(expected, got, ignore))
    throw Failed{"the result differs\n" + difference(print_program(expected), print_program(got))};
}

void run_transform_error(const Json& request) {
  bool began_last = false;
  try {
    transformed(request, began_last);
  } catch (const Error& e) {
    if (began_last) return;
    throw Failed{text("refused too early\n", e.what())};
  }
  throw Failed{"accepted"};
}

}  // namespace sator::conformance
