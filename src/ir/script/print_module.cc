#include "ir/script/print_module.h"

#include <algorithm>

namespace sator::script {

std::vector<StmtDoc> print_module(const Module& module, ExprPrinter& exprs, const FunctionPrinter& functions) {
  Printer& printer = exprs.printer;
  std::vector<std::pair<std::string, Func>> sorted(module.functions.begin(), module.functions.end());
  auto place = [&](const auto& f) { return std::pair(f.first == "main" ? 1000 : functions.rank(*f.second), f.first); };
  std::sort(sorted.begin(), sorted.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });

  FrameScope frame(printer, &module);
  Doc name = printer.define(module, printer.options().module_name, *frame);
  if (!module.attrs.empty())
    frame->stmts.push_back(line_doc(call_doc(printer.ir("module_attrs"), {exprs.dict(module.attrs)})));
  if (!module.global_infos.empty())
    frame->stmts.push_back(line_doc(call_doc(printer.ir("module_global_infos"), {exprs.dict(module.global_infos)})));
  for (const auto& [key, func] : sorted) {
    for (StmtDoc& s : functions.print(*func, key)) frame->stmts.push_back(std::move(s));
  }
  Doc decorator("@");
  decorator += printer.ir("ir_module");
  Doc head("class ");
  head += name;
  std::vector<StmtDoc> out;
  out.push_back(line_doc(std::move(decorator)));
  out.push_back(compound_doc(std::move(head), std::move(frame->stmts)));
  return out;
}

}  // namespace sator::script
