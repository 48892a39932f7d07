#include "relax/print.h"

#include "ir/script/print_module.h"
#include "relax/print_impl.h"
#include "relax/struct_info.h"
#include "tir/print.h"
#include "tir/print_impl.h"

namespace sator::relax {

using namespace script;

std::vector<StmtDoc> GraphPrinter::print_function(const Function& func, const std::string& name, bool is_nested) {
  FrameScope frame(printer, &func);
  if (!is_nested) {
    function_frame_ = &*frame;
    alias_printed_ = false;
  }
  std::set<const Var*> signature_vars;
  std::set<const Var*>* outer = std::exchange(signature_vars_, &signature_vars);
  Doc ret = func.ret ? sinfo(func.ret) : Doc();
  std::vector<Doc> params;
  for (const RVarRef& p : func.params) {
    Doc param = define(*p);
    if (p->sinfo) {
      param += ": ";
      param += sinfo(p->sinfo);
    }
    params.push_back(std::move(param));
  }
  signature_vars_ = outer;

  Attrs attrs = func.attrs;
  auto symbol = string_attr(attrs, "global_symbol");
  if (!is_nested && symbol && *symbol == name) attrs.erase("global_symbol");
  if (!attrs.empty()) frame->stmts.push_back(line_doc(call_doc(printer.relax("func_attr"), {attr_dict(attrs)})));
  std::vector<KeywordDoc> keywords;
  if (!func.is_pure) keywords.push_back({"pure", boolean_doc(false)});
  if (!is_nested && !symbol) keywords.push_back({"private", boolean_doc(true)});
  Doc decorator("@");
  Doc function = printer.relax("function");
  decorator += keywords.empty() ? function : call_doc(function, {}, keywords);

  const SeqExpr* s = func.body.as<SeqExpr>();
  std::vector<StmtDoc> body = s ? seq(*s, true) : std::vector{line_doc(expr(func.body))};
  for (StmtDoc& s : body) frame->stmts.push_back(std::move(s));
  Doc head("def ");
  head += name;
  head += "(";
  head += bare_tuple_doc(params);
  head += ")";
  if (func.ret) {
    head += " -> ";
    head += ret;
  }
  std::vector<StmtDoc> out;
  out.push_back(line_doc(std::move(decorator)));
  out.push_back(compound_doc(printer.marked(std::move(head), func), std::move(frame->stmts)));
  out.back().blank_after = true;
  if (!is_nested) function_frame_ = nullptr;
  return out;
}

std::vector<StmtDoc> GraphPrinter::metadata_section() const {
  std::vector<std::pair<Doc, Doc>> kinds;
  for (const auto& [kind, objects] : printer.all_metadata()) {
    std::vector<Doc> items;
    for (const NodeRef& object : objects) {
      const Constant* c = object.as<Constant>();
      items.push_back(c ? constant_doc(printer, *c) : Doc("None"));
    }
    kinds.emplace_back(string_doc(kind), list_doc(items));
  }
  if (kinds.empty()) return {};
  return {assign_doc(Doc("metadata"), dict_doc(kinds)), line_doc(Doc())};
}

namespace {

std::string finished(Printer& printer, const GraphPrinter& graph, std::vector<StmtDoc> stmts, bool show_meta) {
  std::vector<StmtDoc> metadata = graph.metadata_section();
  std::vector<StmtDoc> out = printer.header();
  if (show_meta) out.insert(out.end(), metadata.begin(), metadata.end());
  out.insert(out.end(), stmts.begin(), stmts.end());
  if (!show_meta && !metadata.empty()) {
    out.push_back(line_doc(Doc()));
    out.push_back(comment_doc("Metadata omitted. Use show_meta=True in script() method to show it."));
  }
  return printer.render(out);
}

std::string own_name(const Function& f) { return string_attr(f.attrs, "global_symbol").value_or("main"); }

}  // namespace

std::string to_script(const Module& module, const ScriptOptions& options) {
  std::set<std::string, std::less<>> parameters;
  for (const auto& [name, func] : module.functions) {
    if (const auto* p = func.as<tir::PrimFunc>()) tir::add_parameters(*p, parameters);
    if (const auto* f = func.as<Function>())
      for (const RVarRef& param : f->params) parameters.insert(param->name);
  }
  Printer printer(keeping(options, parameters));
  tir::ScriptPrinter tir(printer);
  GraphPrinter graph(printer, options);
  graph.module = &module;
  tir.module_name = graph.module_name = options.module_name;
  FunctionPrinter functions{
      .rank = [](const FuncNode& f) { return f.as<tir::PrimFunc>() ? 1
                                             : f.as<ExternDecl>()  ? 2
                                                                   : 3; },
      .print = [&](const FuncNode& f, const std::string& name) -> std::vector<StmtDoc> {
        if (const tir::PrimFunc* p = f.as<tir::PrimFunc>()) return tir.print_function(*p, name);
        if (const ExternDecl* e = f.as<ExternDecl>())
          return {assign_doc(Doc(name), call_doc(printer.relax("ExternFunc"), {string_doc(e->name)}))};
        return graph.print_function(*f.as<Function>(), name);
      }};
  return finished(printer, graph, print_module(module, graph, functions), options.show_meta);
}

std::string to_script(const Function& func, const ScriptOptions& options) {
  std::set<std::string, std::less<>> parameters;
  for (const RVarRef& param : func.params) parameters.insert(param->name);
  Printer printer(keeping(options, parameters));
  GraphPrinter graph(printer, options);
  return finished(printer, graph, graph.print_function(func, own_name(func)), options.show_meta);
}

std::string to_script(const NodeRef& part, const ScriptOptions& options) {
  if (const Function* f = part.as<Function>()) return to_script(*f, options);
  if (const Module* m = part.as<Module>()) return to_script(*m, options);
  Printer printer(options);
  GraphPrinter graph(printer, options);
  FrameScope frame(printer, nullptr);
  std::vector<StmtDoc> stmts;
  if (const auto* b = part.as<BindingNode>())
    stmts = graph.binding(ref(*b));
  else if (const auto* b = part.as<BindingBlock>())
    stmts = graph.block(*b);
  else if (const auto* s = part.as<SeqExpr>())
    stmts = graph.seq(*s, false);
  else if (const auto* n = part.as<If>())
    stmts = graph.branch(*n, nullptr);
  else if (const auto* e = part.as<RelaxExprNode>())
    stmts.push_back(line_doc(graph.expr(ref(*e))));
  else if (const auto* s = part.as<StructInfoNode>())
    stmts.push_back(line_doc(graph.sinfo(ref(*s))));
  else
    stmts.push_back(line_doc(graph.attribute(part)));
  std::vector<StmtDoc> all = std::move(frame->stmts);
  all.insert(all.end(), stmts.begin(), stmts.end());
  return printer.render(all);
}

Reason with_program(Reason reason, const Function& func) {
  ScriptOptions options;
  options.underline = reason.at;
  Printer printer(options);
  GraphPrinter graph(printer, options);
  reason.program = printer.excerpt(graph.print_function(func, own_name(func)));
  return reason;
}

void append_text(std::string& out, const RelaxExprNode& e) { out += to_script(ref(e)); }
void append_text(std::string& out, const StructInfoNode& info) {
  Printer printer;
  GraphPrinter graph(printer, {});
  FrameScope frame(printer, nullptr);
  out += graph.sinfo(ref(info)).text;
}

}  // namespace sator::relax
