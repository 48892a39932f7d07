// query: what analyses say of a function, and what passes leave in its attributes.
#include "cases.h"
#include "ir/script/parser.h"
#include "passes/run.h"
#include "passes/to_vm.h"
#include "pattern_values.h"
#include "relax/outline.h"
#include "relax/verify.h"
#include "tir/analysis.h"
#include "tir/verify.h"

namespace sator::conformance {

namespace {

using script::Expression;
using script::ExpressionKind;

const tir::PrimFunc& only_function(const ModuleRef& module) {
  if (module->functions.size() != 1) throw Unsupported{"an analysis of several functions"};
  const auto* f = module->functions.begin()->second.as<tir::PrimFunc>();
  if (!f) throw Unsupported{"an analysis of a graph"};
  return *f;
}

/// calculate_allocated_bytes of a module or, under the name main, of a function; its items, and .get(key, otherwise).
std::optional<Json> allocated(const Json& request, const ModuleRef& before, const Expression& e) {
  if (e.is(ExpressionKind::subscript) && e.items[1].is(ExpressionKind::string)) {
    auto of = allocated(request, before, e.items[0]);
    if (of && !of->contains(e.items[1].text)) throw Failed{"no entry " + e.items[1].text + " in " + of->dump()};
    return of ? std::optional((*of)[e.items[1].text]) : std::nullopt;
  }
  if (!e.is(ExpressionKind::call)) return {};
  if (e.items[0].is(ExpressionKind::attribute) && e.items[0].text == "get" && e.items.size() == 3) {
    auto of = allocated(request, before, e.items[0].items[0]);
    return of ? std::optional(of->value(e.items[1].text, Json(e.items[2].integer))) : std::nullopt;
  }
  if (script::dotted_name(e.items[0]) != "tir.analysis.calculate_allocated_bytes") return {};
  ModuleRef module = transformed(request, before, e.items[1]);
  const bool one = e.items[1].is(ExpressionKind::subscript);
  Json out = Json::object();
  for (const auto& [name, func] : module->functions) {
    const auto* f = func.as<tir::PrimFunc>();
    if (f) out[one ? "main" : name] = tir::allocated_bytes(*f);
  }
  return out;
}

NodeRef graph_part(const Json& request, const ModuleRef& before, const Expression& e);

/// What Python makes of parts: relax.SeqExpr([relax.BindingBlock([part, ...])], part), relax.get_shape_of(part).
NodeRef made_of_parts(const Json& request, const ModuleRef& before, const Expression& e) {
  const std::string name = script::dotted_name(e.items[0]);
  if (name == "relax.get_shape_of" && e.items.size() == 2) {
    NodeRef part = graph_part(request, before, e.items[1]);
    const auto* value = part ? part.as<relax::RelaxExprNode>() : nullptr;
    const auto* info = value ? value->sinfo.as<relax::TensorInfo>() : nullptr;
    return info ? NodeRef(info->shape) : nullptr;
  }
  if (name == "relax.BindingBlock" && e.items.size() == 2) {
    std::vector<relax::Binding> bindings;
    for (const Expression& item : e.items[1].items) {
      NodeRef part = graph_part(request, before, item);
      bindings.push_back(part ? cast<relax::BindingNode>(part) : nullptr);
      if (!bindings.back()) return nullptr;
    }
    return make<relax::BindingBlock>(std::move(bindings), false);
  }
  if (name == "relax.SeqExpr" && e.items.size() == 3) {
    std::vector<relax::BindingBlockRef> blocks;
    for (const Expression& item : e.items[1].items) {
      NodeRef part = graph_part(request, before, item);
      blocks.push_back(part ? cast<relax::BindingBlock>(part) : nullptr);
      if (!blocks.back()) return nullptr;
    }
    NodeRef body = graph_part(request, before, e.items[2]);
    return body
               ? NodeRef(make<relax::SeqExpr>(std::move(blocks), cast<relax::RelaxExprNode>(body), relax::StructInfo()))
               : nullptr;
  }
  return nullptr;
}

/// A part of a graph function, as F.body.blocks[0].bindings[1].value names it; null where the words lead to none.
NodeRef graph_part(const Json& request, const ModuleRef& before, const Expression& e) {
  auto of = [&](size_t item) { return graph_part(request, before, e.items[item]); };
  auto is_body = [](const Expression& x) { return x.is(ExpressionKind::attribute) && x.text == "body"; };
  if (is_body(e) && !is_body(e.items[0])) {
    ModuleRef m = transformed(request, before, e.items[0]);
    const auto* f = m->functions.size() == 1 ? m->functions.begin()->second.as<relax::Function>() : nullptr;
    return f ? NodeRef(f->body) : nullptr;
  }
  if (e.is(ExpressionKind::call)) return made_of_parts(request, before, e);
  // One of a list: of blocks, bindings or arguments; -1 is the last binding.
  auto is_minus_one = [](const Expression& x) {
    return x.is(ExpressionKind::integer) ? x.integer == -1
                                         : x.is(ExpressionKind::unary) && x.text == "-" && x.items[0].integer == 1;
  };
  const bool is_last = e.is(ExpressionKind::subscript) && is_minus_one(e.items[1]);
  if (e.is(ExpressionKind::subscript) && (is_last || e.items[1].is(ExpressionKind::integer)) &&
      e.items[0].is(ExpressionKind::attribute)) {
    NodeRef owner = graph_part(request, before, e.items[0].items[0]);
    const std::string& list = e.items[0].text;
    const auto* of_bindings = owner ? owner.as<relax::BindingBlock>() : nullptr;
    if (is_last && (!of_bindings || of_bindings->bindings.empty())) return nullptr;
    const auto i = is_last ? of_bindings->bindings.size() - 1 : static_cast<size_t>(e.items[1].integer);
    if (const auto* seq = owner ? owner.as<relax::SeqExpr>() : nullptr; seq && list == "blocks")
      return seq->blocks.at(i);
    if (const auto* block = owner ? owner.as<relax::BindingBlock>() : nullptr; block && list == "bindings")
      return block->bindings.at(i);
    if (const auto* call = owner ? owner.as<relax::RCall>() : nullptr; call && list == "args") return call->args.at(i);
    if (const auto* call = owner ? owner.as<relax::RCall>() : nullptr; call && list == "sinfo_args")
      return call->sinfo_args.at(i);
    return nullptr;
  }
  if (!e.is(ExpressionKind::attribute)) return nullptr;
  NodeRef owner = of(0);
  if (const auto* b = owner ? owner.as<relax::VarBinding>() : nullptr; b && e.text == "value") return b->value;
  if (const auto* b = owner ? owner.as<relax::VarBinding>() : nullptr; b && e.text == "var") return b->var;
  if (const auto* b = owner ? owner.as<relax::MatchCast>() : nullptr; b && e.text == "value") return b->value;
  if (const auto* c = owner ? owner.as<relax::RCall>() : nullptr; c && e.text == "op") return c->op;
  if (const auto* f = owner ? owner.as<relax::SeqExpr>() : nullptr; f && e.text == "body") return f->body;
  if (const auto* t = owner ? owner.as<relax::TensorInfo>() : nullptr; t && e.text == "shape") return t->shape;
  return nullptr;
}

/// The name of an op, function or variable of a graph.
std::optional<Json> graph_name(const Json& request, const ModuleRef& before, const Expression& e) {
  if (!e.is(ExpressionKind::attribute) || (e.text != "name" && e.text != "name_hint" && e.text != "global_symbol"))
    return {};
  NodeRef owner = graph_part(request, before, e.items[0]);
  if (!owner) return {};
  if (const auto* op = owner.as<relax::Op>()) return "relax." + op->name;
  if (const auto* v = owner.as<relax::GlobalVar>()) return v->name;
  if (const auto* v = owner.as<relax::RVar>()) return v->name;
  if (const auto* f = owner.as<relax::ExternFunc>()) return f->name;
  return {};
}

/// pattern.match(part of a graph), with var2val: also through the variables of the module's graphs.
std::optional<Json> pattern_match(const Json& request, const ModuleRef& before, const Expression& e) {
  if (!e.items[0].is(ExpressionKind::attribute) || e.items[0].text != "match") return {};
  NodeRef built = PythonValues(request).node(e.items[0].items[0]);
  const auto* pattern = built ? built.as<PatternValue>() : nullptr;
  NodeRef part = graph_part(request, before, e.items.at(1));
  relax::RExpr value = part ? cast<relax::RelaxExprNode>(part) : nullptr;
  if (!pattern || !value) return {};
  std::map<relax::RVarRef, relax::RExpr> values;
  const bool through_variables = !e.keywords.empty();
  for (const auto& [name, func] : before->functions)
    if (through_variables) walk(func, [&](const relax::VarBinding& b) { values[b.var] = b.value; });
  auto value_of = [&](const relax::RVarRef& v) {
    auto at = values.find(v);
    return at == values.end() ? relax::RExpr() : at->second;
  };
  return passes::match_expression(pattern->pattern, value, value_of).has_value();
}

/// What analyses of graphs say.
std::optional<Json> graph_analysis(const Json& request, const ModuleRef& before, const std::string& name,
                                   const Expression& e) {
  auto module = [&] { return transformed(request, before, e.items.at(1)); };
  if (name == "relax.analysis.well_formed") {
    // One function of a module is asked without the others.
    const ModuleRef asked = module();
    const auto* f =
        e.items[1].is(ExpressionKind::subscript) ? asked->functions.begin()->second.as<relax::Function>() : nullptr;
    return f ? relax::verify(*f).empty() : passes::verify(*asked).empty();
  }
  if (name == "tvm.ir.structural_equal" && e.items.size() == 3)
    return same_program(module(), transformed(request, before, e.items[2]), false);
  if (name == "relax.analysis.has_reshape_pattern") return passes::is_reshape(only_function(module()));
  if (name == "relax.analysis.contains_impure_call") {
    NodeRef part = graph_part(request, before, e.items.at(1));
    if (!part) {
      ModuleRef m = module();
      const auto* f = m->functions.size() == 1 ? m->functions.begin()->second.as<relax::Function>() : nullptr;
      if (!f) throw Unsupported{"an analysis of several functions"};
      part = f->body;
    }
    std::string own_name;
    for (const script::Keyword& k : e.keywords) {
      NodeRef symbol = k.name == "own_name" ? graph_part(request, before, k.value) : nullptr;
      if (!symbol || !symbol.as<relax::GlobalVar>()) throw Unsupported{"an analysis with such options"};
      own_name = symbol.as<relax::GlobalVar>()->name;
    }
    const auto* inner = part.as<relax::LocalFunction>();
    return relax::contains_impure_call(inner ? inner->function->body : cast<relax::RelaxExprNode>(part), own_name);
  }
  if (name == "relax.analysis.name_to_binding") {
    Json names = Json::array();
    for (const auto& [symbol, func] : module()->functions) {
      walk(func, [&](const relax::VarBinding& b) { names.push_back(b.var->name); });
      walk(func, [&](const relax::MatchCast& b) { names.push_back(b.var->name); });
    }
    return names;
  }
  return {};
}

/// The number of a member of an enumeration, as Python shows it: <OpPatternKind.kElemWise: 0>.
std::optional<int64_t> enumerated(const Json& value) {
  const std::string shown = value.is_string() ? value.get<std::string>() : "";
  const size_t colon = shown.rfind(": ");
  if (!shown.starts_with("<") || !shown.ends_with(">") || colon == shown.npos) return {};
  return std::stoll(shown.substr(colon + 2));
}

/// The key of the attribute that is the statement at PASSES($before)['f'].body.body.
Json attribute_key(const Json& request, const ModuleRef& before, const Expression& e) {
  const Expression* at = &e;
  size_t depth = 0;
  for (; at->is(ExpressionKind::attribute) && at->text == "body"; at = &at->items[0]) ++depth;
  if (depth == 0) throw Unsupported{"a query of this form"};
  ModuleRef m = transformed(request, before, *at);
  tir::Stmt stmt = only_function(m).body;
  while (--depth > 0) {
    if (const auto* attr = stmt.as<tir::AttrStmt>()) {
      stmt = attr->body;
    } else if (const auto* loop = stmt.as<tir::For>()) {
      stmt = loop->body;
    } else {
      throw Failed{"no such statement"};
    }
  }
  const auto* attr = stmt.as<tir::AttrStmt>();
  if (!attr) throw Failed{"the statement is no attribute"};
  return attr->key;
}

/// The value of a query, as JSON.
Json answer_of(const Json& request, const ModuleRef& before, const Expression& e) {
  if (auto bytes = allocated(request, before, e)) return *bytes;
  if (auto name = graph_name(request, before, e)) return *name;
  auto module = [&](size_t item) { return transformed(request, before, e.items[item]); };
  if (!e.is(ExpressionKind::call)) {
    // PASSES($before)['f'].attrs['key']
    if (e.is(ExpressionKind::subscript) && e.items[0].is(ExpressionKind::attribute) && e.items[0].text == "attrs") {
      ModuleRef m = transformed(request, before, e.items[0].items[0]);
      const Attrs& attrs = m->functions.begin()->second->attrs;
      auto at = attrs.find(e.items[1].text);
      if (at == attrs.end()) throw Failed{"no attribute " + e.items[1].text};
      if (const auto* number = at->second.as<IntImm>()) return number->value;
      const auto* target = at->second.as<TargetConfig>();
      if (!target || target->config.size() != 1) throw Unsupported{"the value of an attribute"};
      return "tvm.target.Target('" + string_attr(target->config, "kind").value_or("") + "')";
    }
    if (e.is(ExpressionKind::attribute) && e.text == "attr_key") return attribute_key(request, before, e.items[0]);
    if (e.is(ExpressionKind::attribute) && e.text == "attrs") {
      ModuleRef m = transformed(request, before, e.items[0]);
      Json keys = Json::array();
      for (const auto& [key, value] : m->functions.begin()->second->attrs) keys.push_back(key);
      return keys;
    }
    throw Unsupported{"a query of this form"};
  }
  const std::string name = script::dotted_name(e.items[0]);
  if (auto matched = pattern_match(request, before, e)) return *matched;
  if (auto analysed = graph_analysis(request, before, name, e)) return *analysed;
  if (e.items[0].is(ExpressionKind::attribute) && e.items[0].text == "same_as")
    return transformed(request, before, e.items[0].items[0]) == module(1);
  if (name == "tir.analysis.verify_well_formed") return tir::verify(only_function(module(1))).empty();
  if (name == "tir.analysis.is_pure_function") return !tir::not_pure(only_function(module(1)));
  if (name == "tir.analysis.calculate_workspace_bytes")
    return tir::workspace_bytes(only_function(module(1)), e.items.at(2).integer);
  if (name == "tir.analysis.calculate_constant_bytes")
    return tir::constant_bytes(only_function(module(1)), e.items.at(2).integer);
  if (name == "tir.analysis.estimate_tir_flops") return static_cast<int64_t>(tir::estimate_flops(*module(1)));
  throw Unsupported{"queries of " + name};
}

}  // namespace

NodeRef part_of_graph(const Json& request, const ModuleRef& before, std::string source) {
  for (size_t at; (at = source.find("$before")) != source.npos;) source.replace(at, 7, "case_before");
  return graph_part(request, before, script::parse("value = " + source + "\n").body.at(0).value);
}

void ask(const Json& request, const ModuleRef& before, const std::string& source) {
  script::Program program;
  try {
    program = script::parse("value = " + source + "\n");
  } catch (const Error&) {
    throw Unsupported{"cases of kind query"};
  }
  Json got = answer_of(request, before, program.body.at(0).value);
  const std::string op = request.value("op", "==");
  const Json& after = request.at("after");
  // Numbers are written out.
  const auto member = enumerated(after);
  const bool same =
      got == after || (after.is_string() && got.dump() == after.get<std::string>()) || (member && got == *member);
  const bool among = got.is_object() ? after.is_string() && got.contains(after.get<std::string>())
                                     : got.is_array() && std::ranges::find(got, after) != got.end();
  const bool holds = op == "true" ? got == true : op == "false" ? got == false : op == "in" ? among : same;
  if (!holds) throw Failed{"it is " + got.dump()};
}

void run_query(const Json& request) {
  if (request.contains("opaque") || !request.contains("before") || !request["before"].is_string() ||
      !request.contains("expr"))
    throw Unsupported{"cases of kind query"};
  std::string source = request.at("expr");
  for (size_t at; (at = source.find("$before")) != source.npos;) source.replace(at, 7, "case_before");
  ask(request, parse_program(request.at("before")), source);
}

}  // namespace sator::conformance
