// Methods and functions of Python that rewrite the graphs of a module without being passes.
#include "cases.h"
#include "ir/script/parser.h"
#include "passes/byoc.h"
#include "passes/dead_code_elimination.h"
#include "passes/graph/graph.h"
#include "relax/bind.h"
#include "relax/rewrite.h"

namespace sator::conformance {

namespace {

using relax::FuncRef;
using script::Expression;
using script::ExpressionKind;

/// The one graph function of a module.
std::pair<std::string, FuncRef> only_graph(const ModuleRef& module) {
  std::pair<std::string, FuncRef> out;
  for (const auto& [name, func] : module->functions) {
    FuncRef f = cast<relax::Function>(func);
    if (!f) continue;
    if (out.second) throw Unsupported{"a method of one of several functions"};
    out = {name, f};
  }
  if (!out.second) throw Unsupported{"a method of a function that is no graph"};
  return out;
}

using ModuleOf = std::function<ModuleRef(const Expression&)>;

/// $before.params[0].struct_info.shape[1], and $before['main'].params[0]...
std::optional<NodeRef> part_of_function(const Expression& e, const ModuleOf& module) {
  if (e.is(ExpressionKind::subscript) && e.items[0].is(ExpressionKind::attribute) && e.items[0].text == "params" &&
      e.items[1].is(ExpressionKind::integer)) {
    FuncRef f = only_graph(module(e.items[0].items[0])).second;
    return NodeRef(f->params.at(static_cast<size_t>(e.items[1].integer)));
  }
  if (e.is(ExpressionKind::subscript) && e.items[0].is(ExpressionKind::attribute) && e.items[0].text == "shape" &&
      e.items[1].is(ExpressionKind::integer)) {
    auto owner = part_of_function(e.items[0].items[0].items[0], module);
    const auto* var = owner ? owner->as<relax::RVar>() : nullptr;
    const auto* info = var ? var->sinfo.as<relax::TensorInfo>() : nullptr;
    auto shape = info ? relax::shape_of(*info) : std::nullopt;
    if (shape) return NodeRef(shape->at(static_cast<size_t>(e.items[1].integer)));
  }
  return {};
}

relax::NamedValues entries(const Json& request, const Expression& dict, const ModuleOf& module) {
  relax::NamedValues out;
  PythonValues values(request);
  for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    auto part = part_of_function(dict.items[i], module);
    out.emplace_back(part ? *part : values.node(dict.items[i]), values.node(dict.items[i + 1]));
  }
  return out;
}

/// A pattern as Python builds it. Unsupported: parts that have no word here.
passes::DFPattern pattern_of(const Expression& e) {
  if (!e.is(ExpressionKind::call)) throw Unsupported{"patterns of this form"};
  const Expression& callee = e.items[0];
  const std::string name = script::dotted_name(callee);
  auto op_word = [](const std::string& op) { return op.starts_with("relax.") ? op.substr(6) : op; };
  if (name.ends_with(".wildcard")) return passes::wildcard();
  if (name.ends_with(".is_tuple_get_item"))
    return passes::is_tuple_get_item(pattern_of(e.items.at(1)), static_cast<size_t>(e.items.at(2).integer));
  if (name.ends_with(".make_fused_bias_activation_pattern")) {
    passes::DFPattern out = passes::is_op(op_word(e.items.at(1).text), {passes::wildcard(), passes::wildcard()});
    std::string activation;
    for (const script::Keyword& k : e.keywords) {
      if (k.name == "with_bias" && k.value.integer != 0) out = passes::is_op("add", {out, passes::wildcard()});
      if (k.name == "activation") activation = k.value.text;
    }
    return activation.empty() ? out : passes::is_op(op_word(activation), {out});
  }
  // is_op("relax.add")(a, b)
  if (callee.is(ExpressionKind::call) && script::dotted_name(callee.items[0]).ends_with(".is_op")) {
    std::vector<passes::DFPattern> args;
    for (size_t i = 1; i < e.items.size(); ++i) args.push_back(pattern_of(e.items[i]));
    return passes::is_op(op_word(callee.items.at(1).text), std::move(args));
  }
  throw Unsupported{"the pattern " + name};
}

/// relax.transform.FuseOpsByPattern([(name, pattern), ...], bind_constants, annotate_codegen)(module).
ModuleRef fused_by_pattern(const Expression& pass, const ModuleRef& module) {
  std::vector<passes::FusionPattern> patterns;
  if (pass.items.size() < 2 || !pass.items[1].is(ExpressionKind::list)) throw Unsupported{"a registry of patterns"};
  for (const Expression& row : pass.items[1].items) {
    if (row.items.size() != 2) throw Unsupported{"patterns with a check of Python"};
    patterns.push_back({row.items[0].text, "", {pattern_of(row.items[1])}});
  }
  bool keeps_constants = pass.items.size() < 3 || pass.items[2].integer != 0;
  bool annotates = pass.items.size() > 3 && pass.items[3].integer != 0;
  for (const script::Keyword& k : pass.keywords) {
    if (k.name == "bind_constants") keeps_constants = k.value.integer != 0;
    if (k.name == "annotate_codegen") annotates = k.value.integer != 0;
  }
  ModuleRef out = passes::fuse_ops_by_pattern(
      module, {}, patterns, {.backend_functions = false, .keeps_constants = keeps_constants});
  return annotates ? passes::annotate_codegen(out) : out;
}

/// gen_mod(module, name, {parameter: tensor}): the function of the name as main, with parameters bound.
ModuleRef with_main(const Json& request, const Expression& call, const ModuleRef& all) {
  PythonValues values(request);
  std::map<std::string, Func> functions;
  for (const auto& [name, func] : all->functions) {
    FuncRef f = cast<relax::Function>(func);
    if (f && name != call.items[2].text) continue;
    if (f) f = with(f, &relax::Function::attrs, Attrs{{"global_symbol", string_imm("main")}});
    functions.emplace(f ? "main" : name, f ? Func(f) : func);
  }
  ModuleRef out = make<Module>(std::move(functions), Attrs(), Attrs());
  relax::BlockBuilder builder(out);
  relax::NamedValues bound;
  for (size_t i = 0; i + 1 < call.items[3].items.size(); i += 2) {
    const Expression& value = call.items[3].items[i + 1];
    if (!value.is(ExpressionKind::call)) throw Unsupported{"a tensor of unknown contents"};
    bound.emplace_back(string_imm(call.items[3].items[i].text), values.node(value));
  }
  FuncRef main = cast<relax::Function>(out->functions.at("main"));
  return with_function(out, "main", relax::bind_params(main, bound, builder));
}

std::map<std::string, FuncRef> functions(const Expression& dict, const ModuleOf& module) {
  std::map<std::string, FuncRef> out;
  for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const Expression& key = dict.items[i];
    std::string name = key.is(ExpressionKind::call) && key.items.size() == 2 ? key.items[1].text : key.text;
    if (!out.emplace(name, only_graph(module(dict.items[i + 1])).second).second)
      fail({.what = "two functions are named " + name, .needs = "one function per name", .hint = "leave one out"});
  }
  return out;
}

}  // namespace

std::optional<ModuleRef> graph_method(const Json& request, const Expression& call, const ModuleOf& module) {
  const Expression& callee = call.items[0];
  const bool one_dict = call.items.size() == 2 && call.items[1].is(ExpressionKind::dict);
  if (callee.is(ExpressionKind::attribute) && one_dict) {
    const std::string& method = callee.text;
    if (method != "bind_params" && method != "bind_symbolic_vars" && method != "inline_functions") return {};
    ModuleRef all = module(callee.items[0]);
    auto [name, f] = only_graph(all);
    relax::BlockBuilder builder(all);
    FuncRef out = method == "bind_params" ? relax::bind_params(f, entries(request, call.items[1], module), builder)
                  : method == "bind_symbolic_vars"
                      ? relax::bind_sizes(f, entries(request, call.items[1], module), builder)
                      : passes::inline_functions(f, functions(call.items[1], module), builder);
    return with_function(all, name, out);
  }
  const std::string name = script::dotted_name(callee);
  if (name == "relax.analysis.remove_all_unused" && call.items.size() == 2) {
    return relax::rewrite_functions(module(call.items[1]),
                                    [](const FuncRef& f, relax::BlockBuilder&) { return passes::without_unused(f); });
  }
  if (name == "relax.dpl.rewrite_call" && call.items.size() == 4)
    return PythonValues(request).rewritten(call.items[1], call.items[2], module(call.items[3]));
  if (name == "gen_mod" && call.items.size() == 4) return with_main(request, call, module(call.items[1]));
  if (callee.is(ExpressionKind::call) && call.items.size() == 2 &&
      script::dotted_name(callee.items[0]) == "relax.transform.FuseOpsByPattern")
    return fused_by_pattern(callee, module(call.items[1]));
  // A pass whose option is a part of the program: BindSymbolicVars({$before['main'].params[0].struct_info.shape[1]: 16}).
  if (callee.is(ExpressionKind::call) && script::dotted_name(callee.items[0]) == "relax.transform.BindSymbolicVars" &&
      callee.items.size() == 2 && callee.items[1].is(ExpressionKind::dict)) {
    std::vector<NodeRef> pairs;
    for (const auto& [key, value] : entries(request, callee.items[1], module))
      pairs.push_back(make<Array>(std::vector<NodeRef>{key, value}));
    return passes::bind_symbolic_vars(module(call.items[1]),
                                      {.config = {{"BindSymbolicVars.binding_map", make<Array>(pairs)}}});
  }
  return {};
}

}  // namespace sator::conformance
