// Functions of graphs: their signatures and statements.
#include <algorithm>

#include "ir/visit.h"
#include "relax/outline.h"
#include "relax/parse_impl.h"
#include "relax/struct_info.h"

namespace sator::relax {

using script::Expression;
using script::Place;
using script::Statement;
using script::StatementKind;
using tir::LanguageName;
using tir::Values;
using Kind = script::ExpressionKind;

FunctionParser::FunctionParser(const script::Source& source, const ModuleScope& scope)
    : GraphEvaluator(source, scope) {}

namespace {

bool is_name(std::string_view s) {
  if (s.empty() || (s[0] >= '0' && s[0] <= '9')) return false;
  return std::ranges::all_of(
      s, [](char c) { return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); });
}

/// Names that stand for extents in the annotation of a parameter, as strings or as sizes declared around the module: the
/// function defines them.
void collect_sizes(const Expression& e, const std::set<std::string, std::less<>>& sizes,
                   std::vector<std::string>& out) {
  if (!e.is(Kind::call)) return;
  std::string callee = script::dotted_name(e.items[0]);
  std::string_view last = std::string_view(callee).substr(callee.rfind('.') == callee.npos ? 0 : callee.rfind('.') + 1);
  auto add = [&](const Expression& extent) {
    const bool is_size =
        extent.is(Kind::string) ? is_name(extent.text) : extent.is(Kind::name) && sizes.contains(extent.text);
    if (is_size) out.push_back(extent.text);
  };
  auto argument = [&](size_t place, std::string_view name) -> const Expression* {
    for (const script::Keyword& k : e.keywords) {
      if (k.name == name) return &k.value;
    }
    return e.items.size() > place ? &e.items[place] : nullptr;
  };
  if (last == "Tensor" || last == "DTensor" || last == "Shape") {
    const Expression* shape = argument(1, last == "Shape" ? "values" : "shape");
    if (shape && (shape->is(Kind::tuple) || shape->is(Kind::list))) std::ranges::for_each(shape->items, add);
  } else if (last == "Prim") {
    if (const Expression* value = argument(2, "value")) add(*value);
  } else if (last == "Tuple" || last == "Callable") {
    size_t count = last == "Tuple" ? e.items.size() : std::min<size_t>(e.items.size(), 2);
    for (size_t i = 1; i < count; ++i) {
      const Expression& item = e.items[i];
      if (!item.is(Kind::tuple) && !item.is(Kind::list))
        collect_sizes(item, sizes, out);
      else
        for (const Expression& inner : item.items) collect_sizes(inner, sizes, out);
    }
    if (const Expression* params = argument(1, "params"); params && e.items.size() < 2) {
      for (const Expression& inner : params->items) collect_sizes(inner, sizes, out);
    }
  }
}

bool names(const Expression& e, const std::string& name) {
  if (e.is(Kind::name) && e.text == name) return true;
  return std::ranges::any_of(e.items, [&](const Expression& i) { return names(i, name); }) ||
         std::ranges::any_of(e.keywords, [&](const script::Keyword& k) { return names(k.value, name); });
}

/// Whether the function uses what `name` is around it: it reads the name, and none of its parameters and variables is named so.
bool uses_from_outside(const Statement& def, const std::string& name) {
  bool read = false, own = false;
  auto look = [&](auto&& self, const std::vector<Statement>& body) -> void {
    for (const Statement& s : body) {
      if (s.kind == StatementKind::function) {
        read |= uses_from_outside(s, name);
        continue;
      }
      own |= std::ranges::any_of(s.targets, [&](const Expression& t) { return names(t, name); });
      read |= names(s.value, name);
      self(self, s.body);
      self(self, s.orelse);
    }
  };
  own = std::ranges::any_of(def.params, [&](const script::Parameter& p) { return p.name == name; });
  look(look, def.body);
  return read && !own;
}

VarRef size_of(const tir::Value& v) {
  const Expr* e = v.as<Expr>();
  const Var* var = e ? e->as<Var>() : nullptr;
  return var ? ref(*var) : nullptr;
}

VarRef named(const VarRef& v, const std::string& name) {
  return v->is_size ? make_size_var(name, v->dtype) : make_var(name, v->dtype);
}

}  // namespace

// ---- Signatures ----

/// The sizes that the parameters define; a declaration in the body (n = T.int64()) says of what kind one is.
std::map<std::string, VarRef> FunctionParser::define_sizes(const Statement& def) {
  std::vector<std::string> names;
  for (const script::Parameter& p : def.params) {
    if (!p.annotation.present() || p.is_star)
      fail(p.place,
           {.what = text("the parameter ", p.name, " has no annotation"),
            .needs = "struct info: R.Tensor(...), R.Shape(...), ...",
            .hint = "annotate it"});
    collect_sizes(p.annotation, scope_.context.sizes, names);
  }
  std::map<std::string, VarRef> sizes;
  for (const std::string& name : names) sizes.emplace(name, make_var(name, i64));
  auto declare = [&](const Expression& target, const tir::Value& value) {
    if (auto at = sizes.find(target.text); target.is(Kind::name) && at != sizes.end()) {
      if (VarRef v = size_of(value); v && v->name.empty()) at->second = named(v, target.text);
    }
  };
  for (const Statement& s : def.body) {
    if (s.kind != StatementKind::assign || s.targets.size() != 1) continue;
    const Expression& target = s.targets[0];
    auto is_size = [&](const Expression& t) { return t.is(Kind::name) && sizes.count(t.text); };
    if (is_size(target)) {
      declare(target, eval(s.value));
    } else if (target.is(Kind::tuple) && s.value.is(Kind::tuple) && target.items.size() == s.value.items.size()) {
      for (size_t i = 0; i < target.items.size(); ++i) {
        if (is_size(target.items[i])) declare(target.items[i], eval(s.value.items[i]));
      }
    }
  }
  for (const auto& [name, var] : sizes) define(name, Expr(var), def.place, true);
  return sizes;
}

StructInfo FunctionParser::signature(const Statement& def) {
  push_scope();
  define_sizes(def);
  std::vector<StructInfo> params;
  for (const script::Parameter& p : def.params) params.push_back(annotation(p.annotation, true));
  StructInfo ret = def.annotation.present() ? annotation(def.annotation, true) : object_info();
  pop_scope();
  return func_info(std::move(params), std::move(ret), tir::decorator_flag(def, "pure", true));
}

FuncRef FunctionParser::parse(const Statement& def) { return function(def, false); }

FuncRef FunctionParser::function(const Statement& def, bool is_inner) {
  Frame frame;
  Frame* outer = std::exchange(frame_, &frame);
  push_scope();
  frame.sizes = define_sizes(def);
  StructInfo ret = def.annotation.present() ? annotation(def.annotation, true) : nullptr;
  for (const script::Parameter& p : def.params) {
    RVarRef param = spanned(make_rvar(p.name, annotation(p.annotation, true)), source.span(p.place));
    frame.builder.fresh_name(p.name);
    frame.params.push_back(param);
    define(p.name, NodeRef(param), p.place, true);
  }
  frame.is_private = is_inner || tir::decorator_flag(def, "private", false);
  frame.builder.begin_scope(frame.params);
  frame.builder.begin_block(false);
  frame.builder.normal_forms = false;  // a program is what its text says
  body(def.body);
  if (!frame.result)
    fail(def.place,
         {.what = text("the function ", def.text, " returns nothing"),
          .needs = "a return statement at its end",
          .hint = "add `return ...`"});
  frame.blocks.push_back(frame.builder.end_block());
  if (!frame.is_private) {
    const bool is_named = !frame.attrs.emplace("global_symbol", string_imm(def.text)).second;
    // In a module its name there counts, by which others call it.
    if (is_named && scope_.context.options.verify && !scope_.context.modules.empty() &&
        string_attr(frame.attrs, "global_symbol") != def.text)
      fail(def.place,
           {.what = text("the attribute global_symbol of ", def.text, " is another name"),
            .needs = "the function's own name",
            .hint = "remove it"});
  }
  FuncRef func = located(def.place, [&] {
    bool checks = scope_.context.options.verify;
    FuncRef made = frame.builder.end_function(frame.params,
                                              frame.blocks,
                                              frame.result,
                                              frame.attrs,
                                              tir::decorator_flag(def, "pure", true),
                                              checks ? ret : nullptr);
    // Unchecked, a declaration stands unless more is known of the result.
    bool stands = !checks && ret && !is_base_of(ret, made->ret, frame.builder.arith());
    return stands ? with(made, &Function::ret, ret) : made;
  });
  pop_scope();
  frame_ = outer;
  return spanned(func, source.span(def.place));
}

// ---- Statements ----

void FunctionParser::body(const std::vector<Statement>& stmts) {
  for (const Statement& s : stmts) statement(s);
}

void FunctionParser::statement(const Statement& s) {
  if (frame_->result)
    fail(s.place,
         {.what = "a statement after return", .needs = "one return, at the end of the function", .hint = "remove it"});
  if (frame_->has_output)
    fail(s.place,
         {.what = "a statement after R.output",
          .needs = "R.output as the last statement of a dataflow block",
          .hint = "move it before R.output"});
  switch (s.kind) {
    case StatementKind::pass:
    case StatementKind::import: return;
    case StatementKind::expression: return expression_statement(s);
    case StatementKind::assign:
    case StatementKind::annotated: return assign(s);
    case StatementKind::with: return dataflow(s);
    case StatementKind::if_: return branch(s);
    case StatementKind::function: return local_function(s);
    case StatementKind::return_:
      if (frame_->depth > 0)
        fail(s.place,
             {.what = "return inside a block",
              .needs = "return at the end of the function",
              .hint = "bind the value and return it there"});
      if (!s.value.present())
        fail(s.place,
             {.what = "return without a value",
              .needs = "a value; R.tuple() for none",
              .hint = "write `return R.tuple()`"});
      frame_->result = to_graph(eval(s.value), s.value.place);
      return;
    default:
      fail(s.place,
           {.what = "this statement is not part of a graph",
            .needs = "assignments, if, with R.dataflow(), functions, return",
            .hint = "loops belong into tensor programs"});
  }
}

/// A macro's statements stand where it is called; it gives what it returns.
tir::Value FunctionParser::call_language(const std::string& name, const Expression& call) {
  if (!name.starts_with(kMacro)) return GraphEvaluator::call_language(name, call);
  if (!frame_)
    fail(call.place, {.what = "a macro in a signature", .needs = "statements of a function", .hint = "call it there"});
  tir::Value out;
  in_macro(*scope_.context.macros.at(name.substr(kMacro.size())), call, [&](const Statement& def) {
    for (size_t i = 0; i < def.body.size(); ++i) {
      const bool is_last = i + 1 == def.body.size();
      if (is_last && def.body[i].kind == StatementKind::return_ && def.body[i].value.present())
        out = eval(def.body[i].value);
      else
        statement(def.body[i]);
    }
  });
  return out;
}

void FunctionParser::expression_statement(const Statement& s) {
  if (s.value.is(Kind::string)) return;  // a docstring
  if (s.value.is(Kind::call)) {
    tir::Value callee = s.value.items[0].is(Kind::attribute) ? eval(s.value.items[0]) : tir::Value();
    const LanguageName* name = callee.as<LanguageName>();
    if (name && name->name == "R.func_attr") return func_attr(s.value);
    if (name && name->name == "R.output") return output(s.value);
  }
  tir::Value v = eval(s.value);
  if (v.is_none()) return;
  const NodeRef* n = v.as<NodeRef>();
  if (n && n->as<MatchCast>()) {
    Expression target = s.value;
    target.kind = Kind::name;
    target.text = "_";
    bind(target, v, nullptr);
    return;
  }
  RVarRef var = emit(to_graph(v, s.place), "_", nullptr, s.place);
  const TupleInfo* t = var->sinfo.as<TupleInfo>();
  if (!t || !t->items.empty())
    fail(s.place,
         {.what = text("a value that is ", var->sinfo, " is not bound"),
          .needs = "a variable for every value that is not empty",
          .hint = "write `name = ...`"});
}

void FunctionParser::func_attr(const Expression& call) {
  tir::Arguments a(*this, call, {"attrs"});
  if (frame_->depth > 0)
    fail(call.place,
         {.what = "R.func_attr inside a block",
          .needs = "the statements of the function itself",
          .hint = "move it to the top"});
  for (auto& [key, value] : to_attrs(a.need("attrs"), call.place)) {
    if (frame_->is_private && key == "global_symbol")
      fail(call.place,
           {.what = "a private function with the attribute global_symbol",
            .needs = "one or the other",
            .hint = "remove private=True"});
    if (!frame_->attrs.emplace(key, value).second)
      fail(call.place,
           {.what = text("the function attribute ", string_literal(key), " is set twice"),
            .needs = "each attribute once",
            .hint = "remove one"});
  }
}

// ---- Assignments ----

void FunctionParser::assign(const Statement& s) {
  if (s.targets.size() != 1)
    fail(
        s.place,
        {.what = "several targets of one assignment", .needs = "one: a = ...", .hint = "write one statement for each"});
  if (!s.value.present())
    fail(s.place,
         {.what = "a declaration without a value", .needs = "name: struct info = value", .hint = "add the value"});
  tir::Value value = eval(s.value);
  bind(s.targets[0], std::move(value), s.annotation.present() ? annotation(s.annotation, false) : nullptr);
}

void FunctionParser::bind(const Expression& target, tir::Value value, StructInfo info) {
  if (target.is(Kind::name)) {
    define(target.text, bind_name(target, value, std::move(info)), target.place, true);
    return;
  }
  if (!target.is(Kind::tuple) && !target.is(Kind::list))
    fail(target.place,
         {.what = "an assignment to a part of a value",
          .needs = "a name, or several in a tuple",
          .hint = "graphs do not change values"});
  if (info)
    fail(target.place,
         {.what = "an annotation of several names", .needs = "one name before ':'", .hint = "bind them one by one"});
  if (!value.as<Values>()) {
    // The items of a tuple of the graph.
    RExpr whole = located(target.place, [&] { return frame_->builder.normalize(to_graph(value, target.place)); });
    const TupleInfo* t = whole->sinfo.as<TupleInfo>();
    if (!t)
      fail(target.place,
           {.what = text("a value that is ", whole->sinfo, " bound to ", target.items.size(), " names"),
            .needs = "a tuple",
            .hint = "bind it to one name"});
    if (!is_leaf(whole)) whole = emit(whole, "", nullptr, target.place);
    Values items;
    for (size_t i = 0; i < t->items.size(); ++i) items.items.push_back(NodeRef(tuple_get(whole, static_cast<int>(i))));
    value = std::move(items);
  }
  const std::vector<tir::Value>& items = value.as<Values>()->items;
  if (items.size() != target.items.size())
    fail(target.place,
         {.what = text(items.size(), " values for ", target.items.size(), " names"),
          .needs = "one value per name",
          .hint = "count them"});
  for (size_t i = 0; i < items.size(); ++i) bind(target.items[i], items[i], nullptr);
}

tir::Value FunctionParser::bind_name(const Expression& target, const tir::Value& value, StructInfo info) {
  const std::string& name = target.text;
  if (VarRef size = size_of(value)) return Expr(bind_size(name, size, target.place));
  if (const NodeRef* n = value.as<NodeRef>()) {
    if (const MatchCast* m = n->as<MatchCast>()) {
      if (info && !equal(info, m->sinfo))
        fail(target.place,
             {.what = text("annotated as ", info, ", cast to ", m->sinfo),
              .needs = "one struct info",
              .hint = "remove the annotation"});
      RVarRef var = located(target.place, [&]() -> RVarRef {
        BlockBuilder& b = frame_->builder;
        RExpr v = b.normalize(m->value);
        if (base_check(v->sinfo, m->sinfo, b.arith()) == BaseCheck::disjoint)
          sator::fail({.what = text("match_cast of ", v->sinfo, " to ", m->sinfo),
                       .needs = "struct info that the value can have",
                       .hint = "check dtype and rank"});
        RVarRef out = b.in_dataflow() ? make_dataflow_var(name, m->sinfo) : make_rvar(name, m->sinfo);
        b.fresh_name(name);
        b.emit_binding(spanned(bind_match_cast(out, v, m->sinfo), source.span(target.place)));
        return out;
      });
      return NodeRef(var);
    }
    if (!n->as<RelaxExprNode>()) return value;
  } else if (const Values* list = value.as<Values>(); list && !list->is_tuple) {
    return value;  // a Python list, known while parsing
  } else if (value.as<bool>() || value.as<tir::Integer>() || value.as<double>()) {
    double number = value.as<double>() ? *value.as<double>()
                    : value.as<bool>() ? *value.as<bool>()
                                       : static_cast<double>(value.as<tir::Integer>()->value);
    DType dtype = value.as<double>() ? f32 : value.as<bool>() ? boolean : i32;
    return NodeRef(emit(scalar_constant(number, dtype), name, std::move(info), target.place));
  } else if (!value.as<Values>() && !info) {
    return value;  // a name for something that is known while parsing
  }
  return NodeRef(emit(to_graph(value, target.place), name, std::move(info), target.place));
}

/// n = T.int64(): declares a size, or says again what the signature defines.
VarRef FunctionParser::bind_size(const std::string& name, const VarRef& value, Place place) {
  if (!value->name.empty() && value->name != name)
    fail(place,
         {.what = text("the size ", value->name, " under another name, ", name),
          .needs = "one name per size",
          .hint = text("use ", value->name)});
  const tir::Value* known = find(name);
  if (!known) return value->name.empty() ? named(value, name) : value;
  VarRef before = size_of(*known);
  // A parameter may have the name of a size, as in `p: R.Prim(value="p")`: the declaration means the size.
  if (auto at = frame_->sizes.find(name); !before && at != frame_->sizes.end()) before = at->second;
  if (!before)
    fail(place,
         {.what = text("the name ", name, " is ", known->kind(), " already"),
          .needs = "a name of its own for a size",
          .hint = "rename one of them"});
  if (before->dtype != value->dtype || before->is_size != value->is_size)
    fail(place,
         {.what = text("the size ", name, " is a ", before->dtype, ", declared as ", value->dtype),
          .needs = "one kind of variable",
          .hint = "declare it as it is used"});
  return before;
}

/// Binds a value. An annotation of a call says what it gives.
RVarRef FunctionParser::emit(const RExpr& value, const std::string& name, StructInfo info, Place place) {
  return located(place, [&]() -> RVarRef {
    BlockBuilder& b = frame_->builder;
    bool was_inferred = value->sinfo != nullptr;
    RExpr v = b.normalize(value);
    if (info) {
      if (scope_.context.options.verify && base_check(info, v->sinfo, b.arith()) == BaseCheck::disjoint)
        sator::fail({.what = text("a value that is ", v->sinfo, " is annotated as ", info),
                     .needs = "struct info that holds for the value",
                     .hint = "correct the annotation"});
      if (!was_inferred) v = with_sinfo(v, info);
    }
    // Of a name for another value the annotation may tell more than is known of that value.
    bool tells_more = info && was_inferred && !equal(info, v->sinfo) && is_base_of(v->sinfo, info, b.arith());
    const StructInfo& known = tells_more ? info : v->sinfo;
    const std::string unique = name.empty() ? b.fresh_name(b.in_dataflow() ? "lv" : "gv") : name;
    if (!name.empty()) b.fresh_name(name);
    RVarRef var =
        spanned(b.in_dataflow() ? make_dataflow_var(unique, known) : make_rvar(unique, known), source.span(place));
    b.emit_binding(spanned(bind_value(var, std::move(v)), source.span(place)));
    return var;
  });
}

// ---- Blocks ----

void FunctionParser::dataflow(const Statement& s) {
  tir::Value context =
      s.items.size() == 1 && s.items[0].context.is(Kind::call) ? eval(s.items[0].context.items[0]) : tir::Value();
  const LanguageName* name = context.as<LanguageName>();
  if (!name || name->name != "R.dataflow" || s.items[0].target.present())
    fail(s.place, {.what = "'with' in a graph", .needs = "with R.dataflow():", .hint = "graphs know no other"});
  BlockBuilder& b = frame_->builder;
  if (b.in_dataflow())
    fail(s.place, {.what = "a dataflow block inside a dataflow block", .needs = "one block", .hint = "join them"});
  frame_->blocks.push_back(b.end_block());
  b.begin_block(true);
  ++frame_->depth;
  push_scope();
  body(s.body);
  pop_scope();
  --frame_->depth;
  BindingBlockRef block = b.end_block();
  // The outputs are visible outside, so they are no dataflow variables.
  NodeMap visible;
  for (auto& [written, var] : frame_->output) {
    auto [at, is_new] = visible.emplace(var, nullptr);
    if (is_new) at->second = spanned(make_rvar(var->name, var->sinfo), var->span);
    define(written, at->second, s.place, true);
  }
  if (!visible.empty()) block = replaced(block, visible);
  b.begin_block(true);
  for (const Binding& binding : block->bindings) b.emit_binding(binding);
  frame_->blocks.push_back(b.end_block());
  frame_->output.clear();
  frame_->has_output = false;
  b.begin_block(false);
}

void FunctionParser::output(const Expression& call) {
  BlockBuilder& b = frame_->builder;
  if (!b.in_dataflow())
    fail(
        call.place,
        {.what = "R.output outside of a dataflow block", .needs = "with R.dataflow(): around it", .hint = "remove it"});
  for (size_t i = 1; i < call.items.size(); ++i) {
    const Expression& item = call.items[i];
    tir::Value v = eval(item);
    const NodeRef* n = v.as<NodeRef>();
    const RVar* var = n ? n->as<RVar>() : nullptr;
    if (!item.is(Kind::name) || !var || !var->is_dataflow)
      fail(item.place,
           {.what = "an output that this dataflow block does not bind",
            .needs = "names of variables of the block",
            .hint = "remove it; it is visible anyway"});
    frame_->output.emplace_back(item.text, ref(*var));
  }
  frame_->has_output = true;
}

void FunctionParser::branch(const Statement& s) {
  BlockBuilder& b = frame_->builder;
  if (b.in_dataflow())
    fail(s.place,
         {.what = "'if' inside a dataflow block",
          .needs = "a block without branches",
          .hint = "end the dataflow block before it"});
  if (s.orelse.empty())
    fail(s.place,
         {.what = "'if' without 'else'", .needs = "both branches bind the value", .hint = "add the else branch"});
  RExpr condition = to_graph(eval(s.value), s.value.place);
  std::string name, other;
  RExpr then_branch = branch_body(s.body, "_then", name, s.place);
  RExpr else_branch = branch_body(s.orelse, "_else", other, s.place);
  if (name != other)
    fail(s.place,
         {.what = text("the branches bind ", name, " and ", other, " last"),
          .needs = "the same name in both",
          .hint = "rename one of them"});
  RExpr value = make<If>(std::move(condition), std::move(then_branch), std::move(else_branch), StructInfo());
  RVarRef var = emit(spanned(value, source.span(s.place)), name, nullptr, s.place);
  define(name, NodeRef(var), s.place, true);
}

RExpr FunctionParser::branch_body(const std::vector<Statement>& stmts, const char* suffix, std::string& name,
                                  Place place) {
  BlockBuilder& b = frame_->builder;
  std::vector<BindingBlockRef> outer = std::exchange(frame_->blocks, {});
  b.begin_block(false);
  ++frame_->depth;
  push_scope();
  body(stmts);
  pop_scope();
  --frame_->depth;
  BindingBlockRef last = b.end_block();
  std::vector<BindingBlockRef> blocks = std::exchange(frame_->blocks, std::move(outer));
  RVarRef result;
  if (last->bindings.empty() && !blocks.empty() && !blocks.back()->bindings.empty())
    result = bound_var(blocks.back()->bindings.back());
  if (result && !result->is_dataflow) {
    // A dataflow block's last binding, which leaves it, is the branch's value.
    name = result->name;
    RVarRef var = make_rvar(name + suffix, result->sinfo);
    blocks.back() = cast<BindingBlock>(replaced(blocks.back(), NodeMap{{result, var}}));
    return make<SeqExpr>(std::move(blocks), RExpr(var), StructInfo());
  }
  if (last->bindings.empty())
    fail(place,
         {.what = "a branch that does not end with a binding",
          .needs = "the value of the branch bound to a name",
          .hint = "bind it after the block"});
  std::vector<Binding> bindings = last->bindings;
  RExpr value;
  if (const VarBinding* v = bindings.back().as<VarBinding>()) {
    name = v->var->name;
    if (is_leaf(v->value) || v->value.as<Tuple>()) {
      value = v->value;
      bindings.pop_back();
    } else {
      RVarRef var = make_rvar(name + suffix, v->var->sinfo);
      bindings.back() = bind_value(var, v->value);
      value = var;
    }
  } else {
    const MatchCast& m = *bindings.back().as<MatchCast>();
    name = m.var->name;
    RVarRef var = make_rvar(name + suffix, m.var->sinfo);
    bindings.back() = bind_match_cast(var, m.value, m.sinfo);
    value = var;
  }
  blocks.push_back(make<BindingBlock>(std::move(bindings), false));
  return make<SeqExpr>(std::move(blocks), std::move(value), StructInfo());
}

// ---- Functions inside ----

void FunctionParser::local_function(const Statement& def) {
  if (std::ranges::any_of(def.decorators,
                          [&](const Expression& d) { return tir::decorator_name(d, scope_.context) == "T.prim_func"; }))
    fail(def.place,
         {.what = "a tensor program inside a graph",
          .needs = "tensor programs beside graphs, in a module",
          .hint = "move it to the module"});
  if (std::ranges::none_of(def.decorators,
                           [&](const Expression& d) { return tir::decorator_name(d, scope_.context) == "R.function"; }))
    fail(def.place,
         {.what = text("the function ", def.text, " is not decorated"), .needs = "@R.function", .hint = "decorate it"});
  BlockBuilder& b = frame_->builder;
  RVarRef reserved;
  if (!find(def.text) && uses_from_outside(def, def.text)) {
    push_scope();
    define_sizes(def);
    std::vector<StructInfo> params;
    for (const script::Parameter& p : def.params) params.push_back(annotation(p.annotation, true));
    StructInfo ret = def.annotation.present() ? annotation(def.annotation, true) : tuple_info({});
    pop_scope();
    StructInfo info = func_info(std::move(params), std::move(ret), tir::decorator_flag(def, "pure", true));
    reserved = b.in_dataflow() ? make_dataflow_var(def.text, info) : make_rvar(def.text, info);
    define(def.text, NodeRef(reserved), def.place, true);
  }
  FuncRef func = function(def, true);
  RExpr value = make<LocalFunction>(func, info_of(*func));
  RVarRef var = reserved;
  if (reserved) {
    b.fresh_name(def.text);
    b.emit_binding(bind_value(reserved, value));
  } else {
    var = emit(value, def.text, nullptr, def.place);
  }
  define(def.text, NodeRef(var), def.place, true);
}

}  // namespace sator::relax
