#include "pattern_values.h"

#include <algorithm>

#include "base/text.h"
#include "cases.h"
#include "passes/pattern_matcher.h"

namespace sator::conformance {

using passes::DFPattern;
using script::Expression;
using script::ExpressionKind;
using tir::Arguments;

namespace {

tir::Value value_of(DFPattern p) {
  auto* node = new PatternValue;
  node->pattern = std::move(p);
  return NodeRef(node);
}

const DFPattern* pattern_in(const tir::Value& v) {
  const NodeRef* n = v.as<NodeRef>();
  const auto* p = n ? n->as<PatternValue>() : nullptr;
  return p ? &p->pattern : nullptr;
}

const DFPattern& need_pattern(const tir::Value& v) {
  const DFPattern* p = pattern_in(v);
  if (!p) throw Unsupported{"a pattern from " + v.kind()};
  return *p;
}

std::vector<DFPattern> need_patterns(const tir::Value& v) {
  std::vector<DFPattern> out;
  const auto* list = v.as<tir::Values>();
  if (!list) return {need_pattern(v)};
  for (const tir::Value& item : list->items) out.push_back(need_pattern(item));
  return out;
}

std::string name_of(const tir::Value* v) { return v && v->as<std::string>() ? *v->as<std::string>() : ""; }
std::string op_word(const std::string& op) { return op.starts_with("relax.") ? op.substr(6) : op; }

/// The callee of a pattern that is not called yet: relax.dpl.is_op("relax.add").
DFPattern callee_of_op(const std::string& op) { return passes::is_op(op_word(op), {}); }

}  // namespace

std::optional<tir::Value> pattern_function(relax::GraphEvaluator& ev, const std::string& name, const Expression& call) {
  const std::string prefix = "relax.dpl.";
  if (!name.starts_with(prefix)) return {};
  const std::string what = name.substr(prefix.size());
  if (what == "wildcard") return value_of(passes::wildcard());
  if (what == "is_const") return value_of(passes::is_constant());
  if (what == "is_op") return value_of(callee_of_op(Arguments(ev, call, {"op_name"}).str("op_name")));
  if (what == "is_var" || what == "is_dfv" || what == "is_gv") {
    Arguments a(ev, call, {"name"});
    const std::string wanted = name_of(a.find("name"));
    return value_of(what == "is_var"   ? passes::is_var(wanted)
                    : what == "is_dfv" ? passes::is_dataflow_var(wanted)
                                       : passes::is_global_var(wanted));
  }
  if (what == "ExternFuncPattern") return value_of(passes::is_extern_func(Arguments(ev, call, {"name"}).str("name")));
  if (what == "has_dtype")
    return value_of(passes::has_dtype(passes::wildcard(), Arguments(ev, call, {"dtype"}).dtype("dtype")));
  if (what == "is_shape")
    return value_of(passes::is_shape(ev.to_extents(Arguments(ev, call, {"shape"}).need("shape"), call.place)));
  if (what == "is_tuple") {
    Arguments a(ev, call, {"fields", "unordered"});
    return value_of(passes::is_tuple(need_patterns(a.need("fields")), a.boolean("unordered", false)));
  }
  if (what == "is_tuple_get_item") {
    Arguments a(ev, call, {"tuple_value", "index"});
    const DFPattern& tuple = need_pattern(a.need("tuple_value"));
    if (!a.find("index")) return value_of(passes::is_any_item(tuple));
    return value_of(passes::is_tuple_get_item(tuple, static_cast<size_t>(a.integer("index"))));
  }
  if (what == "FunctionPattern") {
    Arguments a(ev, call, {"params", "body"});
    return value_of(passes::is_function(need_patterns(a.need("params")), need_pattern(a.need("body"))));
  }
  if (what == "is_call_packed") {
    Arguments a(ev, call, {"func_name", "args"});
    std::optional<std::vector<DFPattern>> args;
    if (const tir::Value* given = a.find("args")) args = need_patterns(*given);
    return value_of(passes::is_call_of(passes::is_extern_func(a.str("func_name")), std::move(args)));
  }
  if (what == "is_call_tir") {
    Arguments a(ev, call, {"func_name", "args", "tir_vars"});
    std::vector<DFPattern> parts = {passes::is_global_var(a.str("func_name"))};
    if (const tir::Value* args = a.find("args"))
      parts.push_back(args->as<tir::Values>() ? passes::is_tuple(need_patterns(*args)) : need_pattern(*args));
    else
      parts.push_back(passes::wildcard());
    if (const tir::Value* vars = a.find("tir_vars")) parts.push_back(need_pattern(*vars));
    return value_of(passes::is_op("call_tir", std::move(parts)));
  }
  throw Unsupported{"the pattern " + name};
}

std::optional<tir::Value> pattern_call(relax::GraphEvaluator& ev, const tir::Value& callee, const Expression& call) {
  const DFPattern* p = pattern_in(callee);
  if (!p) return {};
  const Expression& written = call.items[0];
  const std::string method = written.is(ExpressionKind::attribute) ? written.text : "";
  if (method == "match") {
    Arguments a(ev, call, {"expr", "var2val"});
    relax::RExpr e = ev.to_graph(a.need("expr"), call.place);
    return passes::match_expression(*p, e, [](const relax::RVarRef&) { return relax::RExpr(); }).has_value();
  }
  if (method == "has_shape")
    return value_of(passes::has_shape(*p, ev.to_extents(Arguments(ev, call, {"shape"}).need("shape"), call.place)));
  if (method == "has_dtype") return value_of(passes::has_dtype(*p, Arguments(ev, call, {"dtype"}).dtype("dtype")));
  if (method == "has_type")
    return value_of(passes::has_struct_info(*p, ev.to_sinfo(Arguments(ev, call, {"type"}).need("type"), call.place)));
  if (method == "has_struct_info")
    return value_of(
        passes::has_struct_info(*p, ev.to_sinfo(Arguments(ev, call, {"struct_info"}).need("struct_info"), call.place)));
  if (method == "has_attr")
    return value_of(passes::has_attrs(*p, ev.to_attrs(Arguments(ev, call, {"attrs"}).need("attrs"), call.place)));
  if (!method.empty() && !written.text.starts_with("is_")) throw Unsupported{"a pattern's " + method};
  // p(a, b): a call of what p matches.
  const bool any = std::ranges::any_of(call.keywords, [](const script::Keyword& k) {
    return k.name == "varg_default_wildcard" && k.value.integer != 0;
  });
  std::vector<DFPattern> args;
  for (size_t i = 1; i < call.items.size(); ++i) args.push_back(need_pattern(ev.eval(call.items[i])));
  const passes::DFPatternNode& node = **p;
  if (node.kind == passes::DFPatternNode::Kind::op && !any) return value_of(passes::is_op(node.op, std::move(args)));
  return value_of(passes::is_call_of(*p, any ? std::nullopt : std::optional(std::move(args))));
}

std::optional<tir::Value> pattern_operator(std::string_view op, const tir::Value& a, const tir::Value* b) {
  const DFPattern *p = pattern_in(a), *q = b ? pattern_in(*b) : nullptr;
  if (!p) return {};
  if (!b && op == "~") return value_of(passes::except(*p));
  if (q && op == "|") return value_of(*p | *q);
  if (q && op == "&") return value_of(*p & *q);
  throw Unsupported{"an operator of patterns"};
}

std::optional<tir::Value> pattern_item(const tir::Value& object, const tir::Value& index) {
  const DFPattern* p = pattern_in(object);
  if (!p) return {};
  const passes::DFPatternNode& node = **p;
  const tir::Integer* i = index.as<tir::Integer>();
  if (!i) return value_of(passes::is_any_item(*p));
  const int64_t count = static_cast<int64_t>(node.args.size());
  if (node.kind == passes::DFPatternNode::Kind::shape)
    return tir::Value(node.extents.at(static_cast<size_t>(i->value)));
  return value_of(passes::is_tuple_get_item(*p, static_cast<size_t>(i->value < 0 ? i->value + count : i->value)));
}

namespace {

bool same_text(const Expression& a, const Expression& b) {
  auto same_keyword = [](const script::Keyword& x, const script::Keyword& y) {
    return x.name == y.name && same_text(x.value, y.value);
  };
  return a.kind == b.kind && a.text == b.text && a.integer == b.integer && a.real == b.real && a.names == b.names &&
         std::ranges::equal(a.items, b.items, same_text) && std::ranges::equal(a.keywords, b.keywords, same_keyword);
}

/// The places of matches[...] in the expression, in the order of the text.
void collect_matched(Expression& e, const std::string& matches, std::vector<Expression*>& out) {
  if (e.is(ExpressionKind::subscript) && e.items[0].is(ExpressionKind::name) && e.items[0].text == matches) {
    out.push_back(&e);
    return;
  }
  for (Expression& item : e.items) collect_matched(item, matches, out);
  for (script::Keyword& k : e.keywords) collect_matched(k.value, matches, out);
}

}  // namespace

std::vector<DFPattern> take_matched(Expression& body, const std::string& matches,
                                    const std::vector<WrittenPattern>& patterns) {
  std::vector<Expression*> places;
  collect_matched(body, matches, places);
  std::vector<DFPattern> out;
  for (size_t i = 0; i < places.size(); ++i) {
    const Expression& wanted = places[i]->items[1];
    std::vector<DFPattern> equal;
    for (const WrittenPattern& p : patterns)
      if (same_text(*p.expression, wanted)) equal.push_back(p.pattern);
    size_t before = 0, mentions = 0;
    for (size_t k = 0; k < places.size(); ++k) {
      if (!same_text(places[k]->items[1], wanted)) continue;
      before += k < i;
      ++mentions;
    }
    if (equal.size() != 1 && equal.size() != mentions) throw Unsupported{"patterns that cannot be told apart"};
    out.push_back(equal[equal.size() == 1 ? 0 : before]);
  }
  for (size_t i = 0; i < places.size(); ++i) {
    Expression name;
    name.kind = ExpressionKind::name;
    name.text = text("matched", i);
    name.place = places[i]->place;
    *places[i] = std::move(name);
  }
  return out;
}

}  // namespace sator::conformance
