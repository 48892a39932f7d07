// parse, roundtrip, equiv, print, script_error: programs as text.
#include "base/text.h"
#include "cases.h"
#include "ir/script/source.h"
#include "relax/print.h"
#include "tir/print.h"

namespace sator::conformance {

namespace {

const std::string& before_of(const Json& request) {
  if (request.contains("opaque")) throw Unsupported{"values of Python that the case captured"};
  if (request.contains("before_deps") || request.contains("after_deps"))
    throw Unsupported{"scripts that the case captured"};
  return request.at("before").get_ref<const std::string&>();
}

bool ignores_symbol(const Json& request) {
  return request.contains("check") && request["check"].value("ignore_global_symbol", false);
}

}  // namespace

void run_parse(const Json& request) { parse_program(before_of(request), true); }

void run_roundtrip(const Json& request) {
  ModuleRef program = parse_program(before_of(request));
  std::string printed = print_program(program);
  ModuleRef again = parse_program(printed);
  if (!same_program(program, again, program->functions.size() == 1))
    throw Failed{"parsed again, the printed program differs\n" + printed + "\nthat is\n" + print_program(again)};
}

void run_equiv(const Json& request) {
  ModuleRef before = parse_program(before_of(request)), after = parse_program(request.at("after"));
  bool single = before->functions.size() == 1 && after->functions.size() == 1;
  if (!same_program(before, after, single || ignores_symbol(request)))
    throw Failed{"the two programs differ\n" + difference(print_program(after), print_program(before))};
}

void run_print(const Json& request) {
  ModuleRef module = parse_program(before_of(request));
  std::string expr = request.at("expr"), expected = request.at("after");
  // Only the plain script of the function under the name `main` is asked for here.
  const std::string kRenamed = "$before.with_attr('global_symbol', 'main')", kWhole = "$before";
  std::string rest = expr.starts_with(kRenamed) ? expr.substr(kRenamed.size())
                     : expr.starts_with(kWhole) ? expr.substr(kWhole.size())
                                                : expr;
  if (!rest.empty() && rest != ".script()") throw Unsupported{"printing options"};
  std::string printed;
  if (expr.starts_with(kRenamed)) {
    const auto* f = module->functions.begin()->second.as<tir::PrimFunc>();
    Attrs attrs = f->attrs;
    attrs["global_symbol"] = string_imm("main");
    printed = tir::to_script(*with(*f, &tir::PrimFunc::attrs, std::move(attrs)));
  } else {
    const std::string& before = before_of(request);
    const auto* lone = module->functions.begin()->second.as<relax::Function>();
    printed = lone && before.find("class ") == before.npos ? relax::to_script(*lone) : print_program(module);
  }
  bool contains = request.contains("op") && request["op"] == "contains";
  bool holds = contains ? printed.find(trim(expected)) != printed.npos : trim(printed) == trim(expected);
  if (!holds) throw Failed{"the printed text differs\n" + difference(std::string(trim(expected)), printed)};
}

void run_script_error(const Json& request) {
  try {
    parse_program(before_of(request), true);
  } catch (const script::SourceError& e) {
    if (!request.contains("error_line") || request["error_line"].is_null()) return;
    int line = request["error_line"].get<int>() + 1;
    if (e.at.line != line)
      throw Failed{text("the error is reported at line ", e.at.line, ", not at line ", line, "\n", e.what())};
    return;
  } catch (const Error& e) {
    throw Failed{text("the error names no place\n", e.what())};
  }
  throw Failed{"the program is accepted"};
}

}  // namespace sator::conformance
