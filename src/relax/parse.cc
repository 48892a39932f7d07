#include "relax/parse.h"

#include <algorithm>

#include "ir/script/parser.h"
#include "relax/evaluate.h"
#include "relax/parse_impl.h"
#include "relax/verify.h"

namespace sator::relax {

using script::Expression;
using script::Statement;
using script::StatementKind;
using Kind = script::ExpressionKind;

namespace {

/// A class of functions, or functions alone.
class ModuleParser {
 public:
  ModuleParser(const script::Program& program, tir::ParseOptions options) : program_(program) {
    scope_.context.languages = options.languages;
    scope_.context.options = std::move(options);
    for (const Statement& s : program_.body) {
      if (s.kind == StatementKind::import) tir::read_import(s, scope_.context);
      tir::read_size(s, scope_.context);
    }
  }

  bool checks_calls = false;

  ModuleRef parse() {
    const Statement* module = module_class();
    if (module) scope_.context.modules = {module->text, "cls"};
    if (module && !checks(*module)) scope_.context.options.verify = false;
    const std::vector<Statement>& body = module ? module->body : program_.body;
    for (const Statement& s : program_.body)
      if (is_assignment(s) && !tir::read_size(s, scope_.context)) outside(s);
    for (const Statement& s : body) {
      if (s.kind == StatementKind::expression) declaration(s);
    }
    tir::declare_macros(program_.body, scope_.context);
    tir::declare_macros(body, scope_.context);
    // Functions may call each other, whatever their order.
    tir::declare_functions(body, scope_.context);
    for (const Statement& s : body) declare(s, module != nullptr);
    collect_programs();
    for (const Statement& s : body) tensor_program(s);
    for (const Statement& s : body) member(s, module != nullptr);
    for (const auto& [name, func] : scope_.programs->module()->functions)
      if (func.as<tir::PrimFunc>()) functions_.emplace(name, func);
    if (functions_.empty() && !module && scope_.context.macros.empty())
      source().fail({},
                    {.what = "the text holds no function",
                     .needs = "a class with @I.ir_module, or a function with @R.function or @T.prim_func",
                     .hint = "add one"});
    ModuleRef out = make<Module>(std::move(functions_), std::move(attrs_), std::move(infos_));
    if (scope_.context.options.verify && (!module || checks(*module))) verify_graphs(*out);
    return out;
  }

 private:
  const script::Source& source() const { return *program_.source; }

  bool is_decorated(const Statement& s, std::string_view name) const {
    return std::ranges::any_of(s.decorators,
                               [&](const Expression& d) { return tir::decorator_name(d, scope_.context) == name; });
  }

  /// False for a program that says check_well_formed=False.
  static bool checks(const Statement& s) {
    for (const Expression& d : s.decorators) {
      for (const script::Keyword& k : d.keywords) {
        if (k.name == "check_well_formed" && k.value.integer == 0) return false;
      }
    }
    return true;
  }

  void verify_graphs(const Module& module) const {
    for (const Statement& s : program_.body) {
      if (s.kind == StatementKind::function && !checks(s)) return;
    }
    std::vector<Reason> reasons;
    for (const auto& [name, func] : module.functions)
      if (const Function* f = func.as<Function>(); f && !checks_calls)
        std::ranges::move(verify(*f), std::back_inserter(reasons));
    if (checks_calls) reasons = verify(module);
    for (Reason& reason : reasons) {
      // Where the first of the nodes to blame stands in the text.
      Span at;
      for (const At& a : reason.at) {
        const auto* node = dynamic_cast<const NodeBase*>(a.node.get());
        if (node && node->span.line > 0) {
          at = node->span;
          break;
        }
      }
      for (const auto& [name, func] : module.functions)
        if (at.line == 0 && reason.where == text("in func ", name)) at = func->span;
      reason.where += text(", line ", at.line, ", column ", at.column);
      throw script::SourceError(std::move(reason), at);
    }
  }

  const Statement* module_class() const {
    const Statement* module = nullptr;
    for (const Statement& s : program_.body) {
      if (s.kind != StatementKind::class_) continue;
      if (module || !is_decorated(s, "I.ir_module"))
        source().fail(s.place,
                      {.what = text("the class ", s.text, module ? " is a second module" : " is no module"),
                       .needs = "one class with @I.ir_module",
                       .hint = "remove or decorate the class"});
      module = &s;
    }
    return module;
  }

  [[noreturn]] void not_a_member(const Statement& s) const {
    source().fail(s.place,
                  {.what = "this statement is not part of a module",
                   .needs = "functions, I.module_attrs, name = R.ExternFunc(...)",
                   .hint = "remove it"});
  }

  static bool is_assignment(const Statement& s) {
    return s.kind == StatementKind::assign || s.kind == StatementKind::annotated;
  }

  /// metadata = {...}: the constants that the program refers to; or a value that it names.
  void outside(const Statement& s) {
    if (s.targets.size() != 1 || !s.targets[0].is(Kind::name) || s.targets[0].text != "metadata") {
      if (!tir::read_constant(s, scope_.context)) not_a_member(s);
      return;
    }
    scope_.metadata = GraphEvaluator(source(), scope_).eval(s.value);
    if (!scope_.metadata.as<tir::DictValue>())
      source().fail(s.value.place,
                    {.what = text("metadata is ", scope_.metadata.kind()),
                     .needs = "{\"relax.expr.Constant\": [R.const(...), ...]}",
                     .hint = "print the program again with its constants"});
  }

  void declaration(const Statement& s) {
    if (s.value.is(Kind::string)) return;  // a docstring
    std::string name = s.value.is(Kind::call) ? script::dotted_name(s.value.items[0]) : "";
    bool is_attrs = name.ends_with(".module_attrs");
    if (!is_attrs && !name.ends_with(".module_global_infos")) not_a_member(s);
    GraphEvaluator ev(source(), scope_);
    tir::Arguments a(ev, s.value, {"attrs"});
    (is_attrs ? attrs_ : infos_) = ev.to_attrs(a.need("attrs"), s.place);
    scope_.global_infos = infos_;
    auto devices = infos_.find("vdevice");
    if (is_attrs || devices == infos_.end()) return;
    const Array* list = devices->second.as<Array>();
    scope_.has_devices = true;
    for (const NodeRef& d : list ? list->items : std::vector<NodeRef>{devices->second}) {
      auto device = cast<VDevice>(d);
      if (!device)
        source().fail(s.place,
                      {.what = "an entry of \"vdevice\" is no device",
                       .needs = "I.vdevice(target, id, scope)",
                       .hint = "check the list"});
      scope_.devices.push_back(std::move(device));
    }
  }

  void declare(const Statement& s, bool in_class) {
    StructInfo info;
    if (s.kind == StatementKind::function) {
      if (tir::is_macro(s, scope_.context)) return;
      if (is_decorated(s, "R.function")) {
        info = FunctionParser(source(), scope_).signature(s);
      } else if (tir::is_prim_func(s, scope_.context)) {
        DType ret = scope_.context.functions.at(s.text);
        info = opaque_func_info(ret.is_void() ? tuple_info({}) : prim_info(ret), false);
      } else {
        source().fail(s.place,
                      {.what = text("the function ", s.text, " is not decorated"),
                       .needs = "@R.function or @T.prim_func",
                       .hint = "decorate it"});
      }
      add_name(s, s.text, std::move(info));
    } else if (is_assignment(s) && in_class) {
      const bool is_call = s.targets.size() == 1 && s.targets[0].is(Kind::name) && s.value.is(Kind::call);
      if (!is_call || !script::dotted_name(s.value.items[0]).ends_with("ExternFunc")) {
        if (!tir::read_constant(s, scope_.context)) not_a_member(s);
        return;
      }
      tir::Value v = GraphEvaluator(source(), scope_).eval(s.value);
      const NodeRef* n = v.as<NodeRef>();
      const ExternFunc* f = n ? n->as<ExternFunc>() : nullptr;
      if (!f) not_a_member(s);
      functions_.emplace(s.targets[0].text, make<ExternDecl>(f->name, Attrs()));
      add_name(s, s.targets[0].text, f->sinfo);
    }
  }

  /// Tensor programs that graphs make get names that no function of the module has.
  void collect_programs() {
    std::map<std::string, Func> names;
    for (const auto& [name, info] : scope_.functions) names.emplace(name, make<ExternDecl>(name, Attrs()));
    scope_.programs = std::make_shared<BlockBuilder>(make<Module>(std::move(names), Attrs(), Attrs()));
  }

  void add_name(const Statement& s, const std::string& name, StructInfo info) {
    if (!scope_.functions.emplace(name, std::move(info)).second)
      source().fail(
          s.place,
          {.what = text("the module has two functions ", name), .needs = "names that differ", .hint = "rename one"});
  }

  /// Read before graphs: the body tells whether calls have effects.
  void tensor_program(const Statement& s) {
    if (s.kind != StatementKind::function || !tir::is_prim_func(s, scope_.context)) return;
    tir::PrimFuncRef func = tir::parse_function(source(), s, scope_.context);
    scope_.functions[s.text] = info_of(*func);
    functions_.emplace(s.text, std::move(func));
  }

  void member(const Statement& s, bool in_class) {
    switch (s.kind) {
      case StatementKind::import:
      case StatementKind::pass:
      case StatementKind::expression:
      case StatementKind::assign:
      case StatementKind::annotated: return;
      case StatementKind::function: break;
      case StatementKind::class_:
        if (!in_class) return;
        [[fallthrough]];
      default: not_a_member(s);
    }
    if (tir::is_prim_func(s, scope_.context) || tir::is_macro(s, scope_.context)) return;
    FuncRef func = FunctionParser(source(), scope_).parse(s);
    // What the body tells about the result, later callers see.
    scope_.functions[s.text] = info_of(*func);
    // A function alone goes by the name that it states.
    const std::string name = in_class ? s.text : string_attr(func->attrs, "global_symbol").value_or(s.text);
    functions_.emplace(name, std::move(func));
  }

  const script::Program& program_;
  ModuleScope scope_;
  std::map<std::string, Func> functions_;
  Attrs attrs_, infos_;
};

}  // namespace

ModuleRef parse_module(std::string text, std::string name, tir::ParseOptions options) {
  script::Program program = script::parse(std::move(text), std::move(name), options.indent);
  return ModuleParser(program, options).parse();
}

ModuleRef parse_program(std::string text, std::string name) {
  script::Program program = script::parse(std::move(text), std::move(name));
  ModuleParser parser(program, {});
  parser.checks_calls = true;
  return parser.parse();
}

Func parse_function(std::string text, std::string name) {
  script::Program program = script::parse(std::move(text), std::move(name));
  ModuleRef module = ModuleParser(program, {}).parse();
  if (module->functions.size() != 1)
    program.source->fail({},
                         {.what = sator::text("the text holds ", module->functions.size(), " functions"),
                          .needs = "one function",
                          .hint = "parse it as a module"});
  return module->functions.begin()->second;
}

NodeRef parse_attribute(std::string text, std::string name) {
  const script::Program program = script::parse(std::move(text), std::move(name));
  if (program.body.size() != 1 || program.body[0].kind != script::StatementKind::expression)
    program.source->fail({},
                         {.what = "the text is no expression",
                          .needs = "one value, such as a number, a text in quotes or a list",
                          .hint = "put a text in quotes"});
  const ModuleScope scope;
  GraphEvaluator evaluator(*program.source, scope);
  const script::Expression& value = program.body[0].value;
  return evaluator.to_attribute(evaluator.eval(value), value.place);
}

tir::Value evaluate(std::string text, tir::ParseOptions options) {
  const script::Source source(std::move(text));
  ModuleScope scope;
  scope.context.languages = options.languages;
  scope.context.options = std::move(options);
  GraphEvaluator evaluator(source, scope);
  const auto end = static_cast<uint32_t>(source.text().size());
  tir::Value value = evaluator.eval(script::parse_expression(source, {0, end}, std::string(source.text())));
  if (const tir::Subscript* s = value.as<tir::Subscript>(); s && !s->has_slice())
    return evaluator.to_load(*s, {0, end});
  return value;
}

}  // namespace sator::relax
