// Modules and functions alone: decorators, imports, the class.
#include "tir/parse.h"

#include <algorithm>

#include "ir/script/parser.h"
#include "tir/parse_impl.h"

namespace sator::tir {

using script::Expression;
using script::Place;
using script::Statement;
using script::StatementKind;
using Kind = script::ExpressionKind;

std::string decorator_name(const Expression& decorator, const ParseContext& context) {
  const Expression& e = decorator.is(Kind::call) ? decorator.items[0] : decorator;
  std::string name = script::dotted_name(e);
  size_t dot = name.rfind('.');
  if (dot == name.npos) {
    auto at = context.languages.find(name);
    return at == context.languages.end() ? std::string() : at->second;
  }
  std::string prefix = name.substr(0, dot), last = name.substr(dot + 1);
  if (last == "ir_module") return "I.ir_module";
  static const std::map<std::string, std::string> kUsual = {{"T", "T"},
                                                            {"tir", "T"},
                                                            {"tirx", "T"},
                                                            {"R", "R"},
                                                            {"relax", "R"},
                                                            {"I", "I"},
                                                            {"tvm.script.tir", "T"},
                                                            {"tvm.script.relax", "R"}};
  if (auto at = context.languages.find(prefix); at != context.languages.end()) return at->second + "." + last;
  if (auto at = kUsual.find(prefix); at != kUsual.end()) return at->second + "." + last;
  return {};
}

bool decorator_flag(const Statement& def, std::string_view name, bool otherwise) {
  for (const Expression& d : def.decorators) {
    for (const script::Keyword& k : d.keywords) {
      if (k.name == name) return k.value.integer != 0;
    }
  }
  return otherwise;
}

bool is_prim_func(const Statement& def, const ParseContext& context) {
  return std::any_of(def.decorators.begin(), def.decorators.end(), [&](const Expression& d) {
    return decorator_name(d, context) == "T.prim_func";
  });
}

bool is_macro(const Statement& def, const ParseContext& context) {
  return std::any_of(def.decorators.begin(), def.decorators.end(), [&](const Expression& d) {
    const std::string name = decorator_name(d, context);
    return name == "T.macro" || name == "T.inline" || name == "R.macro";
  });
}

void declare_macros(const std::vector<Statement>& body, ParseContext& context) {
  for (const Statement& s : body)
    if (s.kind == StatementKind::function && is_macro(s, context)) context.macros[s.text] = &s;
}

void read_import(const Statement& import, ParseContext& context) {
  for (const script::Parameter& p : import.params) {
    std::string_view meaning = p.annotation.text;
    std::string_view last = meaning.substr(meaning.rfind('.') == meaning.npos ? 0 : meaning.rfind('.') + 1);
    if (last == "tir" || last == "tirx")
      context.languages[p.name] = "T";
    else if (last == "relax")
      context.languages[p.name] = "R";
    else if (last == "ir")
      context.languages[p.name] = "I";
    else if (last == "ir_module")
      context.languages[p.name] = "I.ir_module";
    else if (last == "prim_func")
      context.languages[p.name] = "T.prim_func";
    else if (last == "function" && meaning.find("relax") != meaning.npos)
      context.languages[p.name] = "R.function";
  }
}

bool read_size(const Statement& s, ParseContext& context) {
  if (s.kind != StatementKind::assign || s.targets.size() != 1 || !s.targets[0].is(Kind::name)) return false;
  if (!s.value.is(Kind::call) || s.value.items.size() != 2 || !s.value.items[1].is(Kind::string)) return false;
  const std::string callee = script::dotted_name(s.value.items[0]);
  if (callee != "TypeVar" && !callee.ends_with(".TypeVar")) return false;
  context.sizes.insert(s.targets[0].text);
  return true;
}

bool read_constant(const Statement& s, ParseContext& context) {
  if ((s.kind != StatementKind::assign && s.kind != StatementKind::annotated) || !s.value.present()) return false;
  auto names = [](auto& self, const Expression& e) -> bool {
    if (e.is(Kind::name)) return true;
    return (e.is(Kind::tuple) || e.is(Kind::list)) &&
           std::ranges::all_of(e.items, [&](const Expression& item) { return self(self, item); });
  };
  if (!std::ranges::all_of(s.targets, [&](const Expression& e) { return names(names, e); })) return false;
  context.constants.push_back(&s);
  return true;
}

void declare_functions(const std::vector<Statement>& body, ParseContext& context) {
  for (const Statement& s : body) {
    if (s.kind != StatementKind::function || is_macro(s, context)) continue;
    DType ret = DType::Void();
    std::string name = s.annotation.is(Kind::string) ? s.annotation.text : script::dotted_name(s.annotation);
    size_t dot = name.rfind('.');
    if (is_prim_func(s, context))
      ret = DType::parse(name.substr(dot == name.npos ? 0 : dot + 1)).value_or(DType::Void());
    context.functions[s.text] = ret;
  }
}

namespace {

/// The module of a class, or of functions alone.
class ModuleParser {
 public:
  ModuleParser(const script::Program& program, ParseOptions options) : program_(program) {
    context_.languages = options.languages;
    context_.options = std::move(options);
  }

  ModuleRef parse() {
    for (const Statement& s : program_.body) {
      if (s.kind == StatementKind::import) read_import(s, context_);
      if (!read_size(s, context_)) read_constant(s, context_);
    }
    const Statement* module = nullptr;
    for (const Statement& s : program_.body) {
      if (s.kind != StatementKind::class_) continue;
      bool is_module = std::any_of(s.decorators.begin(), s.decorators.end(), [&](const Expression& d) {
        return decorator_name(d, context_) == "I.ir_module";
      });
      if (!is_module || module)
        source().fail(s.place,
                      {.what = text("the class ", s.text, module ? " is a second module" : " is no module"),
                       .needs = "one class with @I.ir_module",
                       .hint = "remove or decorate the class"});
      module = &s;
    }
    if (module) context_.modules = {module->text, "cls"};
    const std::vector<Statement>& body = module ? module->body : program_.body;
    declare_macros(program_.body, context_);
    declare_macros(body, context_);
    if (module && !decorator_flag(*module, "check_well_formed", true)) context_.options.verify = false;
    declare_functions(body, context_);
    for (const Statement& s : body)
      if (!read_size(s, context_) && !read_constant(s, context_)) member(s);
    if (functions_.empty() && !module && context_.macros.empty())
      source().fail({},
                    {.what = "the text holds no function",
                     .needs = "a class with @I.ir_module, or a function with @T.prim_func",
                     .hint = "add one"});
    return make<Module>(std::move(functions_), std::move(attrs_), std::move(infos_));
  }

 private:
  const script::Source& source() const { return *program_.source; }

  void member(const Statement& s) {
    switch (s.kind) {
      case StatementKind::import:
      case StatementKind::pass: return;
      case StatementKind::expression: return declaration(s);
      case StatementKind::function: break;
      default:
        source().fail(s.place,
                      {.what = "this statement is not part of a module",
                       .needs = "functions, I.module_attrs",
                       .hint = "remove it"});
    }
    if (is_macro(s, context_)) return;
    if (!is_prim_func(s, context_))
      source().fail(s.place,
                    {.what = text("the function ", s.text, " is no tensor program"),
                     .needs = "@T.prim_func",
                     .hint = "decorate it"});
    if (!functions_.emplace(s.text, parse_function(source(), s, context_)).second)
      source().fail(
          s.place,
          {.what = text("the module has two functions ", s.text), .needs = "names that differ", .hint = "rename one"});
  }

  void declaration(const Statement& s) {
    if (s.value.is(Kind::string)) return;  // a docstring
    std::string name = s.value.is(Kind::call) ? script::dotted_name(s.value.items[0]) : "";
    bool is_attrs = name.ends_with(".module_attrs");
    if (!is_attrs && !name.ends_with(".module_global_infos"))
      source().fail(s.place,
                    {.what = "this statement is not part of a module",
                     .needs = "functions, I.module_attrs",
                     .hint = "remove it"});
    FunctionParser ev(source(), context_);
    ev.push_scope();
    Arguments a(ev, s.value, {"attrs"});
    (is_attrs ? attrs_ : infos_) = ev.to_attrs(a.need("attrs"), s.place);
  }

  const script::Program& program_;
  ParseContext context_;
  std::map<std::string, Func> functions_;
  Attrs attrs_, infos_;
};

}  // namespace

ModuleRef parse_module(std::string text, std::string name, ParseOptions options) {
  script::Program program = script::parse(std::move(text), std::move(name), options.indent);
  return ModuleParser(program, options).parse();
}

PrimFuncRef parse_function(std::string text, std::string name, ParseOptions options) {
  script::Program program = script::parse(std::move(text), std::move(name));
  ParseContext context;
  context.languages = options.languages;
  context.options = std::move(options);
  const Statement* def = nullptr;
  for (const Statement& s : program.body) {
    if (s.kind == StatementKind::import) read_import(s, context);
    if (read_size(s, context) || read_constant(s, context)) continue;
    if (s.kind == StatementKind::function && is_macro(s, context)) {
      context.macros[s.text] = &s;
      continue;
    }
    if (s.kind == StatementKind::function && !def)
      def = &s;
    else if (s.kind != StatementKind::import && s.kind != StatementKind::pass)
      program.source->fail(
          s.place,
          {.what = "more than one function", .needs = "one function with @T.prim_func", .hint = "use a module"});
  }
  if (!def || !is_prim_func(*def, context))
    program.source->fail(
        def ? def->place : Place{},
        {.what = "no tensor program", .needs = "a function with @T.prim_func", .hint = "decorate the function"});
  return parse_function(*program.source, *def, context);
}

Expr parse_expr(std::string text, const std::map<std::string, NodeRef>& names) {
  script::Source source(std::move(text));
  ParseContext context;
  FunctionParser ev(source, context);
  ev.push_scope();
  for (const auto& [name, node] : names) {
    if (const Buffer* b = node.as<Buffer>())
      ev.define(name, ref(*b), {});
    else if (const ExprNode* e = node.as<ExprNode>())
      ev.define(name, ref(*e), {});
  }
  return ev.eval_expr(
      script::parse_expression(source, {0, static_cast<uint32_t>(source.text().size())}, std::string(source.text())));
}

}  // namespace sator::tir
