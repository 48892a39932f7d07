#include "statement_values.h"

#include "base/text.h"
#include "tir/copy.h"

namespace sator::conformance {

using script::Expression;
using script::ExpressionKind;
using tir::Arguments;
using tir::Evaluator;
using tir::Stmt;
using tir::Value;
using tir::Values;

namespace {

Stmt statement(const Arguments& a, const char* name) {
  const NodeRef* n = a.need(name).as<NodeRef>();
  const auto* s = n ? n->as<tir::StmtNode>() : nullptr;
  if (!s) throw Unsupported{text("a ", name, " that is no statement")};
  return ref(*s);
}

VarRef variable(const Arguments& a, const char* name) {
  Expr e = a.expr(name);
  const auto* v = e.as<Var>();
  if (!v) throw Unsupported{text("a ", name, " that is no variable")};
  return ref(*v);
}

BufferRef buffer(const Arguments& a) {
  const BufferRef* b = a.need("buffer").as<BufferRef>();
  if (!b) throw Unsupported{"a buffer of this kind"};
  return *b;
}

Expr like(const Arguments& a, const char* name, DType dtype) {
  return a.evaluator.to_expr_like(a.need(name), dtype, a.place_of(name));
}

NodeRef function(const Arguments& a) {
  tir::PrimFunc func;
  auto add = [&](const BufferRef& b) {
    func.params.push_back(make_var(b->name + "_handle", DType::Handle()));
    func.buffer_map.emplace_back(func.params.back(), b);
  };
  const Values* params = a.need("params").as<Values>();
  if (!params) throw Unsupported{"parameters that are no list"};
  for (const Value& p : params->items) {
    if (const BufferRef* b = p.as<BufferRef>()) {
      add(*b);
    } else {
      const Expr* e = p.as<Expr>();
      const auto* v = e ? e->as<Var>() : nullptr;
      if (!v) throw Unsupported{"a parameter that is no variable"};
      func.params.push_back(ref(*v));
    }
  }
  func.body = statement(a, "body");
  for (const BufferRef& b : tir::free_names(func.body).buffers) {
    if (std::ranges::none_of(func.buffer_map, [&](const auto& known) { return known.second == b; })) add(b);
  }
  return NodeRef(new tir::PrimFunc(std::move(func)));
}

/// An expression without its places in the text.
std::string key_of(const Expression& e) {
  std::string out = text("(", static_cast<int>(e.kind), " ", e.text, " ", e.integer, " ", join(e.names, ","));
  for (const Expression& item : e.items) out += key_of(item);
  for (const script::Keyword& k : e.keywords) out += k.name + key_of(k.value);
  return out + ")";
}

bool is_pass(const Expression& e) {
  return e.is(ExpressionKind::call) && script::dotted_name(e.items[0]).starts_with("tir.transform.");
}

}  // namespace

std::optional<Value> statement_value(Evaluator& ev, const std::string& name, const Expression& call) {
  if (name == "T.LetStmt") {
    Arguments a(ev, call, {"var", "value", "body", "span"});
    VarRef var = variable(a, "var");
    return NodeRef(make<tir::LetStmt>(like(a, "value", var->dtype), var, statement(a, "body")));
  }
  if (name == "T.SeqStmt") {
    Arguments a(ev, call, {"seq", "span"});
    const Values* list = a.need("seq").as<Values>();
    std::vector<Stmt> stmts;
    for (const Value& v : list ? list->items : std::vector<Value>()) {
      const NodeRef* n = v.as<NodeRef>();
      const auto* s = n ? n->as<tir::StmtNode>() : nullptr;
      if (!s) throw Unsupported{"a sequence of other things than statements"};
      stmts.push_back(ref(*s));
    }
    return NodeRef(tir::seq(std::move(stmts)));
  }
  if (name == "T.BufferStore") {
    Arguments a(ev, call, {"buffer", "value", "indices", "predicate", "span"});
    if (a.find("predicate")) throw Unsupported{"stores with a predicate"};
    BufferRef b = buffer(a);
    return NodeRef(tir::store(b, like(a, "value", b->dtype), a.exprs("indices")));
  }
  if (name == "T.BufferLoad") {
    Arguments a(ev, call, {"buffer", "indices", "predicate", "span"});
    if (a.find("predicate")) throw Unsupported{"loads with a predicate"};
    return load(buffer(a), a.exprs("indices"));
  }
  if (name == "T.IfThenElse") {
    Arguments a(ev, call, {"condition", "then_case", "else_case", "span"});
    Expr condition = a.expr("condition");
    if (!condition->dtype.is_bool()) condition = make<NE>(condition, int_imm(0, condition->dtype));
    return NodeRef(make<tir::IfThenElse>(
        condition, statement(a, "then_case"), a.find("else_case") ? statement(a, "else_case") : Stmt()));
  }
  if (name == "T.Evaluate") return NodeRef(make<tir::Evaluate>(Arguments(ev, call, {"value", "span"}).expr("value")));
  if (name == "T.PrimFunc") {
    Arguments a(ev, call, {"params", "body", "ret_type", "buffer_map", "attrs", "span"});
    for (const char* other : {"ret_type", "buffer_map", "attrs"}) {
      if (a.find(other)) throw Unsupported{text("a function made with ", other)};
    }
    return function(a);
  }
  if (name == "tvm.IRModule.from_expr") {
    Arguments a(ev, call, {"expr"});
    const NodeRef* n = a.need("expr").as<NodeRef>();
    const auto* f = n ? n->as<tir::PrimFunc>() : nullptr;
    if (!f) throw Unsupported{"a module of this"};
    return NodeRef(make<Module>(std::map<std::string, Func>{{"main", Func(f)}}, Attrs(), Attrs()));
  }
  return {};
}

std::optional<Value> statement_attribute(const NodeRef& object, const std::string& name) {
  if (const auto* f = object->as<tir::PrimFunc>(); f && name == "body") return NodeRef(f->body);
  if (const auto* n = object->as<tir::LetStmt>()) {
    if (name == "var") return Expr(n->var);
    if (name == "value") return n->value;
    if (name == "body") return NodeRef(n->body);
  }
  if (const auto* n = object->as<tir::IfThenElse>()) {
    if (name == "condition") return n->condition;
    if (name == "then_case") return NodeRef(n->then_case);
    if (name == "else_case" && n->else_case) return NodeRef(n->else_case);
  }
  if (const auto* n = object->as<tir::AttrStmt>()) {
    if (name == "attr_key") return n->key;
    if (name == "value") return n->value;
    if (name == "body") return NodeRef(n->body);
  }
  if (const auto* n = object->as<tir::For>()) {
    if (name == "loop_var") return Expr(n->var);
    if (name == "extent") return n->extent;
    if (name == "body") return NodeRef(n->body);
  }
  if (const auto* n = object->as<tir::BufferStore>()) {
    if (name == "value") return n->value;
    if (name == "buffer") return n->buffer;
  }
  if (const auto* n = object->as<tir::Evaluate>(); n && name == "value") return n->value;
  return {};
}

std::optional<Value> statement_item(Evaluator& ev, const NodeRef& object, const Expression& e) {
  if (const auto* module = object->as<Module>(); module && e.items[1].is(ExpressionKind::string)) {
    auto at = module->functions.find(e.items[1].text);
    if (at == module->functions.end()) throw Failed{"no function " + e.items[1].text};
    return NodeRef(at->second);
  }
  const auto* list = object->as<tir::Seq>();
  if (!list) return {};
  const Value index = ev.eval(e.items[1]);
  const tir::Integer* i = index.as<tir::Integer>();
  if (!i || i->value < 0 || i->value >= static_cast<int64_t>(list->stmts.size())) throw Failed{"no such statement"};
  return NodeRef(list->stmts[static_cast<size_t>(i->value)]);
}

std::optional<Value> PassCalls::result(Evaluator& ev, const Expression& call) {
  if (!call.is(ExpressionKind::call) || call.items.size() != 2 || !is_pass(call.items[0])) return {};
  auto [at, fresh] = done_.try_emplace(key_of(call));
  if (fresh) {
    const Value operand = ev.eval(call.items[1]);
    const NodeRef* n = operand.as<NodeRef>();
    ModuleRef before = n ? cast<Module>(*n) : nullptr;
    if (const auto* f = n ? n->as<tir::PrimFunc>() : nullptr)
      before = make<Module>(std::map<std::string, Func>{{"main", Func(f)}}, Attrs(), Attrs());
    if (!before) throw Unsupported{"a pass of something that is no module"};
    Expression of_before = call;
    of_before.items[1] = {.kind = ExpressionKind::name, .text = "case_before"};
    at->second = transformed(request_, before, of_before);
  }
  return NodeRef(at->second);
}

}  // namespace sator::conformance
