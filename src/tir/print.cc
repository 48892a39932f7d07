#include "tir/print.h"

#include "ir/script/print_module.h"
#include "tir/print_impl.h"

namespace sator::tir {

using namespace script;

namespace {

bool is_constant_shape(const Buffer& b) {
  for (const Expr& e : b.shape) {
    if (!vars_in(e).empty()) return false;
  }
  return true;
}

/// A buffer that the short form `A: T.Buffer(shape, dtype)` describes fully.
bool is_simple(const Buffer& b) {
  return b.strides.empty() && is_constant_shape(b) && (!b.elem_offset || is_zero(b.elem_offset)) &&
         b.scope() == "global" && b.data_alignment == 64 && b.offset_factor == 1 && b.axis_separators.empty();
}

bool contains_block(const Stmt& s) {
  bool found = false;
  walk(s, [&](const BlockRealize&) {
    found = true;
    return false;
  });
  return found;
}

}  // namespace

bool ScriptPrinter::is_sugared_root(const PrimFunc& func) const {
  const BlockRealize* realize = func.body.as<BlockRealize>();
  if (!realize || !realize->values.empty() || !is_one(realize->predicate) || !printer.options().syntax_sugar)
    return false;
  const Block& root = *realize->block;
  if (!root.annotations.empty() || !root.match_buffers.empty() || !root.reads.empty() || !root.writes.empty() ||
      root.init || printer.is_marked(root) || printer.is_marked(*root.name) || printer.is_marked(*realize))
    return false;
  const BlockRealize* inner = root.body.as<BlockRealize>();
  return !root.alloc_buffers.empty() || (inner && !inner->block->iter_vars.empty()) ||
         (!inner && contains_block(root.body));
}

void ScriptPrinter::print_params(const PrimFunc& func, std::vector<Doc>& params, Frame& frame) {
  std::vector<std::pair<Doc, BufferRef>> matched;
  for (const VarRef& param : func.params) {
    BufferRef buffer = func.buffer_of(param);
    bool shares_pointer = false;
    for (const auto& [other, b] : func.buffer_map) shares_pointer |= buffer && b != buffer && b->data == buffer->data;
    if (buffer && printer.options().syntax_sugar && is_simple(*buffer) && !shares_pointer &&
        !uses_var(func.body, *param)) {
      Doc name = define_buffer(*buffer, frame);
      BufferArgs args = buffer_args(*buffer, frame, Defines::pointer);
      name += ": ";
      name += call_doc(printer.tir("Buffer"), {args.shape, dtype_doc(buffer->dtype)});
      params.push_back(std::move(name));
      continue;
    }
    Doc name = define_var(*param, frame);
    if (buffer) matched.emplace_back(name, buffer);
    name += ": ";
    name += type(*param);
    params.push_back(std::move(name));
  }
  Attrs attrs = func.attrs;
  if (auto symbol = string_attr(attrs, "global_symbol"); symbol && *symbol == function_name_)
    attrs.erase("global_symbol");
  if (!attrs.empty()) frame.stmts.push_back(line_doc(call_doc(printer.tir("func_attr"), {dict(attrs)})));
  for (const auto& [param, buffer] : matched) {
    Doc name = define_buffer(*buffer, frame);
    Doc value = buffer_decl(*buffer, "match_buffer", {param}, frame, Defines::all);
    frame.stmts.push_back(assign_doc(name, value));
  }
}

std::vector<StmtDoc> ScriptPrinter::print_function(const PrimFunc& func, const std::string& name) {
  FrameScope frame(printer, &func);
  printer.set_root(ref(func));
  function_name_ = name;
  std::vector<Doc> params;
  print_params(func, params, *frame);
  if (is_sugared_root(func)) {
    const Block& root = *func.body.as<BlockRealize>()->block;
    frame->stmts.push_back(comment_doc(text("with ", call_doc(printer.tir("block"), {string_doc("root")}).text, ":")));
    for (const BufferRef& b : root.alloc_buffers) {
      Doc buffer = define_buffer(*b, *frame);
      Doc value =
          buffer_decl(*b, printer.is_head() ? "sblock_alloc_buffer" : "alloc_buffer", {}, *frame, Defines::pointer);
      frame->stmts.push_back(assign_doc(buffer, value));
    }
    print_body(root.body, *frame);
  } else {
    print_body(func.body, *frame);
  }
  Doc decorator("@");
  Doc prim_func = printer.tir("prim_func");
  std::vector<KeywordDoc> flags;
  if (!func.attrs.count("global_symbol")) flags.push_back({"private", boolean_doc(true)});
  if (printer.is_head() && contains_block(func.body)) flags.push_back({"s_tir", boolean_doc(true)});
  decorator += flags.empty() ? prim_func : call_doc(prim_func, {}, flags);
  Doc head("def ");
  head += name;
  head += "(";
  head += bare_tuple_doc(params);
  head += ")";
  if (!func.ret_dtype.is_void()) {
    head += " -> ";
    head += printer.tir(func.ret_dtype.name());
  }
  std::vector<StmtDoc> out;
  out.push_back(line_doc(std::move(decorator)));
  out.push_back(compound_doc(printer.marked(std::move(head), func), std::move(frame->stmts)));
  out.back().blank_after = true;
  return out;
}

namespace {

std::vector<StmtDoc> with_header(const Printer& printer, std::vector<StmtDoc> stmts) {
  std::vector<StmtDoc> out = printer.header();
  for (StmtDoc& s : stmts) out.push_back(std::move(s));
  return out;
}

std::string own_name(const PrimFunc& func) { return string_attr(func.attrs, "global_symbol").value_or("main"); }

}  // namespace

void add_parameters(const PrimFunc& func, std::set<std::string, std::less<>>& names) {
  for (const VarRef& param : func.params) {
    const BufferRef buffer = func.buffer_of(param);
    names.insert(buffer ? buffer->name : param->name);
  }
}

std::string to_script(const PrimFunc& func, PrintOptions options) {
  std::set<std::string, std::less<>> parameters;
  add_parameters(func, parameters);
  Printer printer(keeping(std::move(options), parameters));
  ScriptPrinter tir(printer);
  std::vector<StmtDoc> stmts = tir.print_function(func, own_name(func));
  return printer.render(with_header(printer, std::move(stmts)));
}

std::string to_script(const Module& module, PrintOptions options) {
  Printer printer(std::move(options));
  ScriptPrinter tir(printer);
  tir.module_name = printer.options().module_name;
  auto prim_func = [](const FuncNode& f) -> const PrimFunc& {
    const PrimFunc* p = f.as<PrimFunc>();
    if (!p)
      fail({.what = text("the module has a ", f.info().name),
            .needs = "a module of tensor programs only",
            .hint = "print it with relax::to_script"});
    return *p;
  };
  FunctionPrinter functions{
      .rank = [&](const FuncNode& f) { return prim_func(f), 1; },
      .print = [&](const FuncNode& f, const std::string& name) { return tir.print_function(prim_func(f), name); }};
  std::vector<StmtDoc> stmts = print_module(module, tir, functions);
  return printer.render(with_header(printer, std::move(stmts)));
}

std::string to_script(const Stmt& stmt, PrintOptions options) {
  Printer printer(std::move(options));
  ScriptPrinter tir(printer);
  FrameScope frame(printer, nullptr);
  printer.set_root(stmt);
  frame->allow_concise_scoping = true;
  std::vector<StmtDoc> stmts = tir.print_stmt(stmt);
  for (StmtDoc& s : stmts) frame->stmts.push_back(std::move(s));
  return printer.render(frame->stmts);
}

std::string excerpt(const PrimFunc& func, const std::vector<At>& at) {
  Printer printer({.underline = at});
  ScriptPrinter tir(printer);
  return printer.excerpt(tir.print_function(func, own_name(func)));
}

Reason with_program(Reason reason, const PrimFunc& func) {
  reason.program = excerpt(func, reason.at);
  return reason;
}

void append_text(std::string& out, const StmtNode& stmt) {
  Printer printer;
  ScriptPrinter tir(printer);
  FrameScope frame(printer, nullptr);
  printer.set_root(ref(stmt));
  std::vector<StmtDoc> stmts = tir.print_stmt(ref(stmt));
  if (!stmts.empty()) out += stmts.front().head.text;
}

void append_text(std::string& out, const BufferRegion& region) {
  Printer printer;
  FrameScope frame(printer, nullptr);
  out += ExprPrinter(printer).region(*region.buffer, region.region).text;
}

}  // namespace sator::tir
