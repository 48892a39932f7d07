#include "graph_objects.h"

#include "cases.h"
#include "passes/run.h"
#include "relax/outline.h"

namespace sator::conformance {

using script::Expression;
using tir::Arguments;

namespace {

template <class T>
const T* part(const tir::Value& v) {
  const NodeRef* n = v.as<NodeRef>();
  return n ? n->as<T>() : nullptr;
}

/// The items of a list, each of that kind of node.
template <class T>
std::vector<Ref<const T>> parts(const tir::Value& v, const char* what) {
  std::vector<Ref<const T>> out;
  const auto* list = v.as<tir::Values>();
  if (!list) throw Unsupported{text("a list of ", what)};
  for (const tir::Value& item : list->items) {
    const NodeRef* n = item.as<NodeRef>();
    Ref<const T> node = n ? cast<T>(*n) : nullptr;
    if (!node) throw Unsupported{text("a list of ", what)};
    out.push_back(node);
  }
  return out;
}

relax::RVarRef variable(const tir::Value& v) {
  const NodeRef* n = v.as<NodeRef>();
  relax::RVarRef var = n ? cast<relax::RVar>(*n) : nullptr;
  if (!var) throw Unsupported{"a binding of something else than a variable"};
  return var;
}

relax::FuncRef function_of(const tir::Value& v) {
  const auto* local = part<relax::LocalFunction>(v);
  if (!local) throw Unsupported{"a module of something else than graphs"};
  return local->function;
}

/// The module of functions by name.
tir::Value module_of(std::map<std::string, Func> functions) {
  return NodeRef(make<Module>(std::move(functions), Attrs(), Attrs()));
}

}  // namespace

std::optional<tir::Value> graph_object(relax::GraphEvaluator& ev, const std::string& name, const Expression& call) {
  auto graph = [&](const tir::Value& v) { return ev.to_graph(v, call.place); };
  if (name == "relax.GlobalVar")
    return NodeRef(relax::global_var(Arguments(ev, call, {"name_hint"}).str("name_hint"), nullptr));
  if (name == "relax.VarBinding") {
    Arguments a(ev, call, {"var", "value"});
    return NodeRef(make<relax::VarBinding>(graph(a.need("value")), variable(a.need("var"))));
  }
  if (name == "relax.MatchCast") {
    Arguments a(ev, call, {"var", "value", "struct_info"});
    return NodeRef(make<relax::MatchCast>(
        graph(a.need("value")), ev.to_sinfo(a.need("struct_info"), call.place), variable(a.need("var"))));
  }
  if (name == "relax.BindingBlock" || name == "relax.DataflowBlock") {
    Arguments a(ev, call, {"bindings"});
    return NodeRef(make<relax::BindingBlock>(parts<relax::BindingNode>(a.need("bindings"), "bindings"),
                                             name == "relax.DataflowBlock"));
  }
  if (name == "relax.SeqExpr") {
    Arguments a(ev, call, {"blocks", "body"});
    return NodeRef(make<relax::SeqExpr>(
        parts<relax::BindingBlock>(a.need("blocks"), "blocks"), graph(a.need("body")), relax::StructInfo()));
  }
  if (name == "relax.If") {
    Arguments a(ev, call, {"cond", "true_branch", "false_branch"});
    return NodeRef(make<relax::If>(
        graph(a.need("cond")), graph(a.need("true_branch")), graph(a.need("false_branch")), relax::StructInfo()));
  }
  if (name == "relax.Call") {
    Arguments a(ev, call, {"op", "args", "attrs", "sinfo_args"});
    std::vector<relax::RExpr> args;
    if (const auto* list = a.need("args").as<tir::Values>())
      for (const tir::Value& v : list->items) args.push_back(graph(v));
    std::vector<relax::StructInfo> infos;
    if (const tir::Value* given = a.find("sinfo_args")) infos = ev.to_sinfos(*given, call.place);
    return NodeRef(relax::call(graph(a.need("op")), std::move(args), {}, std::move(infos)));
  }
  if (name == "relax.Function") {
    Arguments a(ev, call, {"params", "body", "ret_struct_info", "is_pure"});
    relax::RExpr body = graph(a.need("body"));
    const tir::Value* ret = a.find("ret_struct_info");
    relax::StructInfo info = ret ? ev.to_sinfo(*ret, call.place) : body->sinfo;
    relax::FuncRef f = make<relax::Function>(
        parts<relax::RVar>(a.need("params"), "parameters"), body, info, a.boolean("is_pure", true), Attrs());
    return NodeRef(make<relax::LocalFunction>(f, relax::info_of(*f)));
  }
  if (name == "tvm.IRModule.from_expr" || name == "tvm.ir.module.IRModule.from_expr") {
    Arguments a(ev, call, {"expr"});
    relax::FuncRef f = function_of(a.need("expr"));
    return module_of({{string_attr(f->attrs, "global_symbol").value_or("main"), f}});
  }
  if (name == "tvm.IRModule" || name == "tvm.ir.IRModule" || name == "tvm.ir.module.IRModule") {
    Arguments a(ev, call, {"functions"});
    const auto* dict = a.need("functions").as<tir::DictValue>();
    if (!dict) throw Unsupported{"a module of something else than graphs"};
    std::map<std::string, Func> functions;
    for (const auto& [key, value] : dict->items) {
      const auto* symbol = part<relax::GlobalVar>(key);
      const std::string* written = key.as<std::string>();
      if (!symbol && !written) throw Unsupported{"a module with such names"};
      functions.emplace(symbol ? symbol->name : *written, function_of(value));
    }
    return module_of(std::move(functions));
  }
  if (name == "relax.analysis.well_formed") {
    Arguments a(ev, call, {"mod", "check_struct_info"});
    const auto* module = part<Module>(a.need("mod"));
    if (!module) throw Unsupported{"well_formed of something else than a module"};
    return passes::verify(*module).empty();
  }
  if (name.starts_with("relax.transform.")) {
    // The pass, or what it makes of a module.
    if (!call.items[0].is(script::ExpressionKind::call)) {
      if (call.items.size() > 1 || !call.keywords.empty())
        throw Unsupported{"a pass with options, of a module of parts"};
      return tir::Value(tir::LanguageName{name});
    }
    Arguments a(ev, call, {"mod"});
    const NodeRef* module = a.need("mod").as<NodeRef>();
    if (!module || !module->as<Module>()) throw Unsupported{"a pass of something else than a module"};
    return NodeRef(passes::pass_named(name.substr(16)).run(cast<Module>(*module), {}));
  }
  return {};
}

std::optional<tir::Value> graph_object_method(relax::GraphEvaluator& ev, const tir::Value& object,
                                              const Expression& call) {
  const auto* local = part<relax::LocalFunction>(object);
  const Expression& callee = call.items[0];
  if (!local || !callee.is(script::ExpressionKind::attribute)) return {};
  Attrs attrs = local->function->attrs;
  if (callee.text == "with_attrs" || (callee.text == "with_attr" && call.items.size() == 2)) {
    Arguments a(ev, call, {"attrs"});
    for (const auto& [key, value] : ev.to_attrs(a.need("attrs"), call.place)) attrs[key] = value;
  } else if (callee.text == "with_attr") {
    Arguments a(ev, call, {"key", "value"});
    attrs[a.str("key")] = ev.to_attribute(a.need("value"), call.place);
  } else {
    return {};
  }
  return NodeRef(with(*local,
                      &relax::LocalFunction::function,
                      relax::FuncRef(with(local->function, &relax::Function::attrs, std::move(attrs)))));
}

std::optional<tir::Value> graph_object_attribute(const tir::Value& object, const std::string& name) {
  if (const auto* block = part<relax::BindingBlock>(object); block && name == "bindings") {
    tir::Values out;
    for (const relax::Binding& b : block->bindings) out.items.push_back(NodeRef(b));
    return out;
  }
  const NodeRef* n = object.as<NodeRef>();
  relax::Binding binding = n ? cast<relax::BindingNode>(*n) : nullptr;
  if (binding && name == "var") return NodeRef(relax::bound_var(binding));
  if (binding && name == "value") return NodeRef(relax::bound_value(binding));
  if (part<relax::LocalFunction>(object) && (name == "with_attr" || name == "with_attrs")) return object;
  return {};
}

}  // namespace sator::conformance
