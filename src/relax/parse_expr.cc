// Expressions of graphs: what their parts convert to, struct info annotations, operators and calls of ops.
#include <algorithm>

#include "ir/script/parser.h"
#include "relax/ops/table.h"
#include "relax/parse_impl.h"
#include "relax/struct_info.h"

namespace sator::relax {

using script::Expression;
using script::Place;
using tir::Arguments;
using tir::Integer;
using tir::LanguageName;
using tir::Method;
using tir::ModuleName;
using tir::Values;
using Kind = script::ExpressionKind;

GraphEvaluator::GraphEvaluator(const script::Source& source, const ModuleScope& scope)
    : Evaluator(source), scope_(scope) {
  for (const auto& [name, meaning] : scope.context.languages) languages[name] = meaning;
  around = scope.context.options.around;
  constants = &scope.context.constants;
  push_scope();
  if (!scope.metadata.is_none()) define("metadata", scope.metadata, {});
}

tir::Value GraphEvaluator::unknown_name(const Expression& e) {
  const std::vector<std::string>& modules = scope_.context.modules;
  if (std::ranges::find(modules, e.text) != modules.end()) return ModuleName{};
  if (modules.empty() && scope_.functions.count(e.text)) return ModuleName{e.text};
  if (scope_.context.macros.count(e.text)) return LanguageName{kMacro + e.text};
  // Early scripts name struct info without the language: `x: Tensor((3, 4), "float32")`.
  static constexpr std::string_view kBare[] = {"Tensor", "Shape", "Prim", "Object", "Tuple", "Callable"};
  if (std::ranges::find(kBare, e.text) != std::end(kBare)) return LanguageName{"R." + e.text};
  return Evaluator::unknown_name(e);
}

// ---- Conversions ----

namespace {

/// The part of the graph language behind a value, or null.
template <class Family>
Ref<const Family> node_of(const tir::Value& v) {
  const NodeRef* n = v.as<NodeRef>();
  const Family* p = n && *n ? n->as<Family>() : nullptr;
  return p ? ref(*p) : nullptr;
}

}  // namespace

Value GraphEvaluator::to_argument(const tir::Value& v, Place place) {
  if (v.is_none()) return {};
  if (auto* b = v.as<bool>()) return *b;
  if (auto* d = v.as<double>()) return *d;
  if (auto* s = v.as<std::string>()) return *s;
  if (auto* e = v.as<Expr>()) return *e;
  if (auto* i = v.as<Integer>()) {
    if (i->is_unsigned)
      fail(place,
           {.what = "an integer above 2^63 - 1", .needs = "an int64", .hint = "make a constant of dtype uint64"});
    return i->value;
  }
  if (auto* list = v.as<Values>()) {
    Value::List items;
    for (const tir::Value& item : list->items) items.push_back(to_argument(item, place));
    return {std::move(items), list->is_tuple};
  }
  if (auto* dict = v.as<tir::DictValue>()) {
    Value::Dict items;
    for (const auto& [key, value] : dict->items) items.emplace_back(to_argument(key, place), to_argument(value, place));
    return items;
  }
  if (auto* m = v.as<ModuleName>(); m && !m->function.empty()) {
    auto at = scope_.functions.find(m->function);
    if (at == scope_.functions.end()) {
      std::vector<std::string> names;
      for (const auto& [name, info] : scope_.functions) names.push_back(name);
      auto near = nearest_names(m->function, names);
      fail(place,
           {.what = text("the module has no function ", m->function),
            .needs = "a function of the module",
            .hint = near.empty() ? std::string("check the name") : text("did you mean ", join(near, " or "), "?")});
    }
    return global_var(at->first, at->second);
  }
  if (auto* h = v.as<tir::HostObjectRef>()) {
    if (NodeRef map = (*h)->index_map()) return Value(map);
  }
  if (auto* l = v.as<tir::LambdaValue>()) return Value(NodeRef(tir::index_map_of(*this, *l, i64)));
  if (auto e = node_of<RelaxExprNode>(v)) return RExpr(e);
  if (auto s = node_of<StructInfoNode>(v)) return StructInfo(s);
  if (auto* n = v.as<NodeRef>(); n && *n && !n->as<MatchCast>()) return Value(*n);
  if (auto* l = v.as<LanguageName>(); l && l->name.starts_with("R.")) return to_sinfo(v, place);
  fail(place,
       {.what = text(v.kind(), " as a part of a graph"),
        .needs = "a tensor, a shape, a number or struct info",
        .hint = "check what the name stands for"});
}

RExpr GraphEvaluator::to_graph(const tir::Value& v, Place place) {
  return located(place, [&] {
    Value value = to_argument(v, place);
    RExpr e = to_rexpr(value);
    if (!e)
      sator::fail({.what = text(value, " where a value of the graph is needed"),
                   .needs = "a tensor, a shape, a number or a text",
                   .hint = "check what the name stands for"});
    return e;
  });
}

StructInfo GraphEvaluator::to_sinfo(const tir::Value& v, Place place) {
  if (auto s = node_of<StructInfoNode>(v)) return s;
  if (v.is_none()) return tuple_info({});
  if (auto* l = v.as<LanguageName>()) {
    // Without parentheses.
    if (l->name == "R.Tensor") return tensor_info(DType::Void());
    if (l->name == "R.Object" || l->name == "R.Any") return object_info();
    if (l->name == "R.Shape") return shape_info();
    if (l->name == "R.Tuple") return tuple_info({});
    if (l->name == "R.Callable") return opaque_func_info(object_info(), false);
    // R.Prim("int64"), as newer programs write it.
    if (const auto dtype = DType::parse(l->name.starts_with("T.") ? l->name.substr(2) : "")) return prim_info(*dtype);
  }
  fail(place,
       {.what = text(v.kind(), " where struct info is needed"),
        .needs = "R.Tensor, R.Shape, R.Prim, R.Tuple, R.Callable or R.Object",
        .hint = "annotate the value with one of them"});
}

std::vector<StructInfo> GraphEvaluator::to_sinfos(const tir::Value& v, Place place) {
  std::vector<StructInfo> out;
  if (const Values* list = v.as<Values>()) {
    for (const tir::Value& item : list->items) out.push_back(to_sinfo(item, place));
  } else {
    out.push_back(to_sinfo(v, place));
  }
  return out;
}

Expr GraphEvaluator::to_extent(const tir::Value& v, Place place) {
  Expr e;
  if (const std::string* s = v.as<std::string>()) {
    if (!in_signature_)
      fail(place,
           {.what = text("the extent ", string_literal(*s), " as a string"),
            .needs = "an expression",
            .hint = "strings stand for extents in the signature of a function only"});
    e = eval_expr(script::parse_expression(source, place, *s));
  } else {
    e = to_expr_like(v, i64, place);
  }
  return e.as<IntImm>() && e->dtype != i64 ? cast_to(i64, e) : e;
}

std::vector<Expr> GraphEvaluator::to_extents(const tir::Value& v, Place place) {
  const Values* list = v.as<Values>();
  if (!list)
    fail(place, {.what = text(v.kind(), " as a shape"), .needs = "a list or tuple of extents", .hint = "write (n, 4)"});
  std::vector<Expr> out;
  for (const tir::Value& item : list->items) out.push_back(to_extent(item, place));
  return out;
}

namespace {

/// The number that the digits say, up to 9999.
std::optional<size_t> small_number(std::string_view digits) {
  if (digits.empty() || digits.size() > 4 || digits.find_first_not_of("0123456789") != digits.npos) return {};
  return static_cast<size_t>(std::stoi(std::string(digits)));
}

std::string kind_of(const VDevice& device) {
  const TargetConfig* t = device.target.as<TargetConfig>();
  return t ? string_attr(t->config, "kind").value_or("") : "";
}

}  // namespace

std::string GraphEvaluator::device_name(const std::string& written, Place place) const {
  size_t colon = written.find(':');
  std::string kind = written.substr(0, colon);
  auto number = colon == written.npos ? std::optional<size_t>(0) : small_number(written.substr(colon + 1));
  auto unknown = [&](std::string what) {
    fail(place,
         {.what = std::move(what),
          .needs = "a virtual device of the module: \"cuda:1\", \"llvm\" or \"vdevice:3\"",
          .hint = "list it in I.module_global_infos"});
  };
  if (!number) unknown(text(string_literal(written), " is no name of a device"));
  size_t index = *number;
  if (!scope_.has_devices) return text(kind, ":", index);
  if (kind == "vdevice") {
    if (index >= scope_.devices.size())
      unknown(text("the module has ", scope_.devices.size(), " virtual devices, not ", string_literal(written)));
    kind = kind_of(*scope_.devices[index]);
    size_t before = 0;
    for (size_t i = 0; i < index; ++i) before += kind_of(*scope_.devices[i]) == kind;
    return text(kind, ":", before);
  }
  size_t count = 0;
  for (const auto& d : scope_.devices) count += kind_of(*d) == kind;
  if (index >= count)
    unknown(text("the module has ", count, " virtual devices of kind ", kind, ", not ", string_literal(written)));
  return text(kind, ":", index);
}

std::string GraphEvaluator::device_name(const VDevice& device, Place place) const {
  const std::string kind = kind_of(device);
  int64_t index = scope_.has_devices ? 0 : device.index;
  for (const auto& known : scope_.devices) {
    if (equal(known, ref(device))) return text(kind, ":", index);
    index += kind_of(*known) == kind;
  }
  if (scope_.has_devices || device.memory_scope != "global")
    fail(place,
         {.what = text("the module does not list the virtual device of kind ", kind, ", number ", device.index),
          .needs = "its entry in \"vdevice\"",
          .hint = text("I.module_global_infos({\"vdevice\": [I.vdevice(\"",
                       kind,
                       "\", ",
                       device.index,
                       ", ",
                       string_literal(device.memory_scope),
                       ")]})")});
  return text(kind, ":", index);
}

NodeRef GraphEvaluator::global_info(const std::string& written) const {
  const size_t bracket = written.find('[');
  if (bracket == written.npos || !written.ends_with(']')) return nullptr;
  const auto index = small_number(std::string_view(written).substr(bracket + 1, written.size() - bracket - 2));
  const auto at = scope_.global_infos.find(written.substr(0, bracket));
  const Array* list = at == scope_.global_infos.end() ? nullptr : at->second.as<Array>();
  return list && index && *index < list->items.size() ? list->items[*index] : nullptr;
}

StructInfo GraphEvaluator::annotation(const Expression& e, bool in_signature) {
  bool outer = std::exchange(in_signature_, in_signature);
  StructInfo info = to_sinfo(eval(e), e.place);
  in_signature_ = outer;
  return info;
}

// ---- Operators ----

std::optional<tir::Value> GraphEvaluator::other_operator(std::string_view op, const tir::Value& a, const tir::Value* b,
                                                         Place place) {
  auto is_graph = [](const tir::Value& v) { return node_of<RelaxExprNode>(v) != nullptr; };
  if (!is_graph(a) && !(b && is_graph(*b))) return {};
  static constexpr std::pair<std::string_view, const char*> kOps[] = {{"+", "add"},
                                                                      {"-", "subtract"},
                                                                      {"*", "multiply"},
                                                                      {"/", "divide"},
                                                                      {"//", "floor_divide"},
                                                                      {"**", "power"},
                                                                      {"%", "mod"},
                                                                      {"<", "less"},
                                                                      {">", "greater"},
                                                                      {"<=", "less_equal"},
                                                                      {">=", "greater_equal"},
                                                                      {"@", "matmul"},
                                                                      {"==", "equal"},
                                                                      {"!=", "not_equal"}};
  const char* name = nullptr;
  if (!b) {
    if (op == "-") name = "negative";
  } else {
    for (const auto& [symbol, meaning] : kOps) {
      if (symbol == op) name = meaning;
    }
  }
  if (!name || !find_op(name))
    fail(place,
         {.what = text("'", op, "' of a value of the graph"),
          .needs = "+ - * / // ** < <= > >= == !=",
          .hint = "call the op by its name"});
  return located(place, [&]() -> tir::Value {
    std::vector<Value> args{to_argument(a, place)};
    if (b) args.push_back(to_argument(*b, place));
    return NodeRef(make_call(name, args));
  });
}

tir::Value GraphEvaluator::subscript_other(const tir::Value& object, const Expression& e) {
  if (const tir::DictValue* dict = object.as<tir::DictValue>()) {
    tir::Value key = eval(e.items[1]);
    for (const auto& [k, v] : dict->items) {
      if (k.as<std::string>() && key.as<std::string>() && *k.as<std::string>() == *key.as<std::string>()) return v;
    }
    fail(e.items[1].place,
         {.what = "the dictionary has no such key", .needs = "one of its keys", .hint = "check the name"});
  }
  if (const Method* m = object.as<Method>(); m && (m->name == "shape" || m->name == "strides")) {
    const tir::Value axis = eval(e.items[1]);
    return located(e.place, [&]() -> tir::Value {
      return NodeRef(make_call(m->name == "shape" ? "inspect.tensor_shape_i" : "inspect.tensor_stride_i",
                               {to_argument(*m->object, e.place), to_argument(axis, e.items[1].place)}));
    });
  }
  auto value = node_of<RelaxExprNode>(object);
  if (!value) return Evaluator::subscript_other(object, e);
  tir::Value index = eval(e.items[1]);
  const Integer* i = index.as<Integer>();
  if (!i || i->is_unsigned || i->value < 0 || i->value > INT32_MAX)
    fail(e.items[1].place,
         {.what = text(index.kind(), " as the index of a tuple"),
          .needs = "a constant from 0 on",
          .hint = "use R.take or R.strided_slice for elements of a tensor"});
  return located(e.place, [&]() -> tir::Value {
    return NodeRef(spanned(tuple_get(value, static_cast<int>(i->value)), source.span(e.place)));
  });
}

std::optional<tir::Value> GraphEvaluator::other_attribute(const tir::Value& object, const std::string& name,
                                                          const Expression& e) {
  const RExpr expr = node_of<RelaxExprNode>(object);
  if (name == "struct_info" && expr && expr->sinfo) return NodeRef(expr->sinfo);
  if (name == "astype" && expr) return Method{std::make_shared<tir::Value>(object), name};
  return property(object, name, e.place);
}

/// A.dtype.bits, A.ndim, A.elem_offset, and the first part of A.dtype.bits, A.shape[i], A.strides[i].
std::optional<tir::Value> GraphEvaluator::property(const tir::Value& object, const std::string& name, Place place) {
  auto call = [&](const std::string& op, const tir::Value& tensor) -> tir::Value {
    return located(place, [&] { return NodeRef(make_call("inspect.tensor_" + op, {to_argument(tensor, place)})); });
  };
  const RExpr tensor = node_of<RelaxExprNode>(object);
  if (tensor && tensor->sinfo.as<TensorInfo>()) {
    if (name == "dtype" || name == "shape" || name == "strides")
      return Method{std::make_shared<tir::Value>(object), name};
    if (name == "ndim" || name == "byte_offset" || name == "elem_offset") return call(name, object);
  }
  if (const Method* m = object.as<Method>(); m && m->name == "dtype" && node_of<RelaxExprNode>(*m->object)) {
    if (name == "type_code") return call("dtype_code", *m->object);
    if (name == "bits" || name == "lanes") return call("dtype_" + name, *m->object);
  }
  return {};
}

// ---- Calls ----

tir::Value GraphEvaluator::call_language(const std::string& name, const Expression& call) {
  if (name == "I.VDevice" || name == "tvm.ir.VDevice") return find_graph_function("I.vdevice")(*this, call);
  if (!name.starts_with("R.") && !name.starts_with("I.")) return Evaluator::call_language(name, call);
  std::string rest = name.substr(name.starts_with("R.op.") ? 5 : name.starts_with("R.") ? 2 : 0);
  if (rest.starts_with("distributed.")) rest = "dist." + rest.substr(rest.find('.') + 1);
  // Where the text stands in Python, relax.Call is Python's: it takes objects that scripts have no words for.
  if (rest == "Call")
    if (const tir::HostObjectRef h = host_member("relax.Call")) return call_host(*h, call);
  if (GraphFunction fn = find_graph_function(rest)) return fn(*this, call);
  if (find_op(rest)) return op_call(rest, call);
  // What the surroundings call `relax` may have more: relax.Call(...), relax.Var(...).
  if (name.starts_with("R."))
    if (const tir::HostObjectRef h = host_member("relax." + rest)) return call_host(*h, call);
  auto near = nearest_names(rest, graph_names());
  fail(call.place,
       {.what = text(name, " is not part of the language of graphs"),
        .needs = "an op, or a name that R offers",
        .hint = near.empty() ? std::string("check the spelling") : text("did you mean R.", join(near, " or R."), "?")});
}

/// A function of the module is a variable outside of the text.
tir::Value GraphEvaluator::for_host(const tir::Value& v, Place place) {
  const ModuleName* m = v.as<ModuleName>();
  return m && !m->function.empty() ? NodeRef(to_graph(v, place)) : Evaluator::for_host(v, place);
}

tir::Value GraphEvaluator::op_call(const std::string& name, const Expression& call) {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keywords;
  for (size_t i = 1; i < call.items.size(); ++i) {
    const Expression& item = call.items[i];
    if (!item.is(Kind::star)) {
      positional.push_back(to_argument(eval(item), item.place));
      continue;
    }
    tir::Value v = eval(item.items[0]);
    const Values* list = v.as<Values>();
    if (!list)
      fail(item.place, {.what = text("'*' of ", v.kind()), .needs = "a list or a tuple", .hint = "remove the '*'"});
    for (const tir::Value& inner : list->items) positional.push_back(to_argument(inner, item.place));
  }
  for (const script::Keyword& k : call.keywords) {
    // Newer programs say what an index outside of the tensor gives: "fast" is nothing that one could rely on.
    if (name == "take" && k.name == "mode" && k.value.is(Kind::string) && k.value.text == "fast") continue;
    if (k.name == "ty_args") continue;  // the struct info of the result, which follows from the arguments
    keywords.emplace_back(k.name, to_argument(eval(k.value), k.value.place));
  }
  return located(call.place, [&]() -> tir::Value {
    return NodeRef(spanned(make_call(name, positional, keywords), source.span(call.place)));
  });
}

tir::Value GraphEvaluator::call_other(const tir::Value& callee, const Expression& call) {
  if (const Method* m = callee.as<Method>()) {
    Arguments a(*this, call, {"dtype"});
    return located(call.place, [&]() -> tir::Value {
      return NodeRef(
          make_call(m->name, {to_argument(*m->object, call.place), to_argument(a.need("dtype"), call.place)}));
    });
  }
  const ModuleName* m = callee.as<ModuleName>();
  if (!node_of<RelaxExprNode>(callee) && !(m && !m->function.empty())) return Evaluator::call_other(callee, call);
  Arguments a(*this, call, {"*args"});
  std::vector<RExpr> args;
  for (const tir::Value& v : a.rest()) args.push_back(to_graph(v, call.place));
  return NodeRef(spanned(relax::call(to_graph(callee, call.items[0].place), std::move(args)), source.span(call.place)));
}

}  // namespace sator::relax
