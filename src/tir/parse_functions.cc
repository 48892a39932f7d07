// T.<name>(...) where it stands for a value: one row per name.
#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "arith/index_map.h"
#include "ir/builtins.h"
#include "target/config.h"
#include "tir/parse_eval.h"

namespace sator::tir {

using script::Expression;

namespace {

// ---- The arithmetic behind names ----

Expr float_fold(const char* op, const Expr& x, double (*fn)(double)) {
  if (x->dtype.is_integer() || x->dtype.is_bool()) return x;
  if (const FloatImm* f = x.as<FloatImm>()) return float_imm(fn(f->value), x->dtype);
  return call_builtin(op, {x});
}

Expr absolute(const Expr& x) {
  if (x->dtype.is_uint() || x->dtype.is_bool()) return x;
  if (const IntImm* i = x.as<IntImm>()) return i->value < 0 ? -x : x;
  if (x->dtype.is_int()) return make<Select>(ge(x, constant(0, x->dtype)), x, -x);
  return float_fold("tir.fabs", x, [](double v) { return std::fabs(v); });
}

Expr is_nan(const Expr& x) {
  if (x->dtype.is_integer() || x->dtype.is_bool()) return bool_imm(false);
  if (const FloatImm* f = x.as<FloatImm>()) return bool_imm(std::isnan(f->value));
  if (x->dtype.bits <= 16) return call_builtin("tir.isnan", {cast_to(f32.with_lanes(x->dtype.all_lanes()), x)});
  return call_builtin("tir.isnan", {x});
}

Expr is_inf(const Expr& x) {
  if (x->dtype.is_integer() || x->dtype.is_bool()) return bool_imm(false);
  return logical_and(eq(absolute(x), constant(INFINITY, x->dtype)), logical_not(is_nan(x)));
}

Expr limit_value(DType d, bool is_max) {
  if (d.is_bool()) return bool_imm(is_max);
  if (d.is_integer()) return int_imm(is_max ? max_int(d) : min_int(d), d);
  double largest = d.is_bfloat()                 ? 3.3895313892515355e38
                   : d.code == DType::Code::e4m3 ? 448.0
                   : d.code == DType::Code::e5m2 ? 57344.0
                   : d.bits == 16                ? 65504.0
                   : d.bits == 32                ? static_cast<double>(std::numeric_limits<float>::max())
                                                 : std::numeric_limits<double>::max();
  return float_imm(is_max ? largest : -largest, d);
}

Expr likely(const Expr& x) { return x.as<IntImm>() ? x : call_builtin("tir.likely", {x}); }

Expr is_finite(const Expr& x) { return logical_and(logical_not(is_inf(x)), logical_not(is_nan(x))); }
Expr floor_of(const Expr& x) {
  return float_fold("tir.floor", x, [](double v) { return std::floor(v); });
}
Expr ceil_of(const Expr& x) {
  return float_fold("tir.ceil", x, [](double v) { return std::ceil(v); });
}
Expr trunc_of(const Expr& x) {
  return float_fold("tir.trunc", x, [](double v) { return std::trunc(v); });
}
Expr round_of(const Expr& x) {
  return float_fold("tir.round", x, [](double v) { return std::round(v); });
}
Expr nearbyint_of(const Expr& x) {
  return float_fold("tir.nearbyint", x, [](double v) { return std::nearbyint(v); });
}
Expr ceildiv_of(Expr a, Expr b) { return ceildiv(a, b); }

/// A pointer to a buffer as an argument of a packed call.
Expr packed_buffer(const Buffer& b) {
  Expr shape = call_builtin("tir.tvm_stack_make_shape", b.shape);
  Expr strides = b.strides.empty() ? int_imm(0) : call_builtin("tir.tvm_stack_make_shape", b.strides);
  Expr zero = b.dtype.is_float() ? float_imm(0, b.dtype) : int_imm(0, b.dtype);
  Expr offset = b.elem_offset ? b.elem_offset : int_imm(0);
  return call_builtin("tir.tvm_stack_make_array", {b.data, shape, strides, int_imm(b.rank()), zero, offset});
}

// ---- Rows ----

using Unary = Expr (*)(const Expr&);
template <Unary fn>
Value unary(Evaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"x", "dtype"});
  return ev.located(call.place, [&]() -> Value { return fn(a.expr("x")); });
}
using Binary = Expr (*)(Expr, Expr);
template <Binary fn>
Value folding(Evaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"a", "b"});
  return ev.located(call.place, [&]() -> Value { return fn(a.expr("a"), a.expr("b")); });
}
/// The node itself, whatever its operands.
template <class T>
Value exact(Evaluator& ev, const Expression& call) {
  Arguments args(ev, call, {"a", "b"});
  Expr a = args.expr("a"), b = args.expr("b");
  bool is_logic = std::is_same_v<T, And> || std::is_same_v<T, Or>;
  if (a->dtype != b->dtype || a->dtype.is_handle() || (is_logic && !a->dtype.is_bool()))
    args.fail({.what = text("operands of ", a->dtype, " and ", b->dtype),
               .needs = is_logic ? "two bools" : "two numbers of one dtype",
               .hint = "cast one of them"});
  return Expr(make<T>(std::move(a), std::move(b)));
}
template <int which>  // 0 and, 1 or, 2 xor, 3 shift_left, 4 shift_right, 5 pow
Value named(Evaluator& ev, const Expression& call) {
  static constexpr std::string_view kNames[] = {
      "bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right", "pow"};
  Arguments a(ev, call, {"x", "y"});
  const Value &u = a.need("x"), &v = a.need("y");
  Expr x = a.expr("x"), y = a.expr("y");
  if (u.is_plain())
    x = ev.to_expr_like(u, y->dtype, call.place);
  else if (v.is_plain())
    y = ev.to_expr_like(v, x->dtype, call.place);
  return ev.located(call.place, [&]() -> Value { return named_binary(kNames[which], x, y); });
}

Value fn_not(Evaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"a"});
  Expr x = a.expr("a");
  if (!x->dtype.is_bool())
    a.fail({.what = text("T.Not of ", x->dtype), .needs = "a bool", .hint = "compare with 0 first"});
  return Expr(make<Not>(std::move(x)));
}

Value fn_select(Evaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"condition", "true_value", "false_value"});
  Expr c = a.expr("condition"), t = a.expr("true_value"), f = a.expr("false_value");
  if (!c->dtype.is_bool() || t->dtype != f->dtype)
    a.fail({.what = text("T.Select of ", c->dtype, ", ", t->dtype, " and ", f->dtype),
            .needs = "a bool and two values of one dtype",
            .hint = "cast one of the values"});
  return Expr(make<Select>(std::move(c), std::move(t), std::move(f)));
}

Value fn_if_then_else(Evaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"cond", "t", "f"});
  return ev.located(call.place, [&]() -> Value { return if_then_else(a.expr("cond"), a.expr("t"), a.expr("f")); });
}

Value fn_Cast(Evaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"dtype", "value"});
  return Expr(make<Cast>(a.dtype("dtype"), a.expr("value")));
}
Value fn_cast(Evaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"src", "dtype"});
  return ev.located(call.place, [&]() -> Value { return cast_to(a.dtype("dtype"), a.expr("src")); });
}
Value fn_reinterpret(Evaluator& ev, const Expression& call) {
  // Given by name, the dtype leaves the value as the only argument.
  bool is_named =
      std::any_of(call.keywords.begin(), call.keywords.end(), [](const auto& k) { return k.name == "dtype"; });
  Arguments a(
      ev,
      call,
      is_named ? std::vector<std::string_view>{"value", "dtype"} : std::vector<std::string_view>{"dtype", "value"});
  DType d = a.dtype("dtype");
  Expr x = a.expr("value");
  if (x->dtype == d) return x;
  return Expr(sator::call(d, "tir.reinterpret", {x}));
}

/// The argument `lanes` of a vector of elements of `element`: an integer, or `T.vscale() * 4`.
Lanes lanes_argument(const Arguments& a, DType element) {
  std::optional<Lanes> lanes = as_lanes(a.expr("lanes"));
  if (!lanes || lanes->count < 2 || lanes->count * element.lanes > 65535 || (lanes->scalable && element.is_scalable))
    a.fail({.what = text("a vector of ", a.expr("lanes"), " values of ", element),
            .needs = "2 to 65535 lanes, or T.vscale() times that many",
            .hint = "use the value itself where there is one lane"});
  return *lanes;
}

Value fn_ramp(Evaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"base", "stride", "lanes"});
  Expr base = a.expr("base");
  Expr stride = ev.to_expr_like(a.need("stride"), base->dtype, call.place);
  Lanes lanes = lanes_argument(a, base->dtype);
  if (!base->dtype.is_integer() || base->dtype != stride->dtype)
    a.fail({.what = text("a ramp of ", lanes, " lanes from ", base->dtype, " in steps of ", stride->dtype),
            .needs = "integers of one dtype",
            .hint = "cast the base or the step"});
  return Expr(make<Ramp>(std::move(base), std::move(stride), lanes));
}
Value fn_broadcast(Evaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"value", "lanes"});
  Expr value = a.expr("value");
  Lanes lanes = lanes_argument(a, value->dtype);
  return Expr(make<Broadcast>(std::move(value), lanes));
}
Value fn_shuffle(Evaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"vectors", "indices"});
  std::vector<Expr> vectors = a.exprs("vectors"), indices = a.exprs("indices");
  int64_t lanes = 0;
  for (const Expr& v : vectors) lanes += v->dtype.lanes;
  bool fits = !vectors.empty() && !indices.empty() && indices.size() <= 65535;
  for (const Expr& v : vectors) fits &= v->dtype.element() == vectors[0]->dtype.element();
  for (const Expr& i : indices) fits &= as_int(i) && *as_int(i) >= 0 && *as_int(i) < lanes;
  if (!fits)
    a.fail({.what = "a shuffle whose indices do not fit its vectors",
            .needs = "constant indices of existing lanes, vectors of one dtype",
            .hint = "count the lanes from 0"});
  return Expr(make<Shuffle>(std::move(vectors), std::move(indices)));
}

Value fn_let(Evaluator& ev, const Expression& call) {  // T.Let(body, where={var: value})
  Arguments a(ev, call, {"expr", "where"});
  const DictValue* where = a.need("where").as<DictValue>();
  const Expr* var = where && where->items.size() == 1 ? where->items[0].first.as<Expr>() : nullptr;
  const Var* v = var ? var->as<Var>() : nullptr;
  if (!v)
    a.fail({.what = "T.Let without one variable",
            .needs = "where={variable: value}",
            .hint = "declare the variable first: x = T.int32()"});
  Expr value = ev.to_expr_like(where->items[0].second, v->dtype, call.place);
  return Expr(make<Let>(std::move(value), ref(*v), a.expr("expr")));
}

Value fn_min_value(Evaluator& ev, const Expression& call) {
  return limit_value(Arguments(ev, call, {"dtype"}).dtype("dtype"), false);
}
Value fn_max_value(Evaluator& ev, const Expression& call) {
  return limit_value(Arguments(ev, call, {"dtype"}).dtype("dtype"), true);
}
Value fn_infinity(Evaluator& ev, const Expression& call) {
  return float_imm(INFINITY, Arguments(ev, call, {"dtype"}).dtype("dtype"));
}
Value fn_int_imm(Evaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"dtype", "value"});
  const DType dtype = a.dtype("dtype");
  if (const Integer* number = a.need("value").as<Integer>()) require_in_range(a, *number, dtype);
  return int_imm(a.integer("value"), dtype);
}
Value fn_float_imm(Evaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"dtype", "value"});
  Expr e = ev.to_expr_like(a.need("value"), a.dtype("dtype"), call.place);
  if (!e.as<FloatImm>())
    a.fail(
        {.what = "T.FloatImm of another kind of value", .needs = "a float dtype and a number", .hint = "use T.cast"});
  return e;
}
/// T.const(1, "int32"): as tvm.tir.const, also of a bool.
Value fn_const(Evaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"value", "dtype"});
  const DType dtype = a.dtype("dtype");
  if (const bool* b = a.need("value").as<bool>(); b && dtype == boolean) return bool_imm(*b);
  return ev.to_expr_like(a.need("value"), dtype, call.place);
}
Value fn_string_imm(Evaluator& ev, const Expression& call) {
  return string_imm(Arguments(ev, call, {"value"}).str("value"));
}

Value fn_var(Evaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"name", "dtype"});
  return Expr(make_var(a.str("name"), a.dtype("dtype")));
}
Value fn_size_var(Evaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"name", "dtype"});
  return Expr(make_size_var(a.str("name"), a.dtype("dtype")));
}
Value fn_old_var(Evaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"dtype", "name"});
  return Expr(make_var(a.str("name", ""), a.dtype("dtype")));
}
Value fn_handle(Evaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"dtype", "storage_scope", "is_size_var"});
  if (!a.find("dtype")) return Expr(make_var("", DType::Handle()));
  return Expr(make_pointer("", a.dtype("dtype"), a.str("storage_scope", "global")));
}

Value fn_range(Evaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"begin", "end"});
  Expr begin = a.expr("begin"), end = a.expr("end");
  return ev.located(call.place,
                    [&]() -> Value { return NodeRef(make<Range>(begin, is_zero(begin) ? end : end - begin)); });
}
Value fn_meta_var(Evaluator& ev, const Expression& call) {
  return MetaVar{std::make_shared<Value>(Arguments(ev, call, {"value"}).need("value"))};
}

Value fn_target(Evaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"target_config", "host"});
  auto config = [&](const Value& v) -> Attrs {
    if (v.as<DictValue>()) return ev.to_attrs(v, call.place);
    if (const NodeRef* n = v.as<NodeRef>()) {
      if (const TargetConfig* t = n->as<TargetConfig>()) return t->config;
    }
    const std::string* s = v.as<std::string>();
    if (!s)
      a.fail({.what = text("a target made from ", v.kind()),
              .needs = "a dictionary or a string",
              .hint = "T.target(\"llvm\")"});
    return target_from_text(*s)->config;
  };
  Attrs attrs = config(a.need("target_config"));
  if (const Value* host = a.find("host")) attrs.insert_or_assign("host", make<TargetConfig>(config(*host)));
  return NodeRef(make<TargetConfig>(std::move(attrs)));
}

Value fn_comm_reducer(Evaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"combiner", "identity"});
  const LambdaValue* lambda = a.need("combiner").as<LambdaValue>();
  std::vector<Expr> identity = a.exprs("identity");
  if (!lambda || lambda->expression->names.size() != 2 * identity.size())
    a.fail({.what = "a reducer whose lambda does not take two values per identity",
            .needs = "lambda of 2 n parameters and n identities",
            .hint = "lambda x, y: x + y with [T.float32(0)]"});
  std::vector<VarRef> lhs, rhs;
  ev.push_scope();
  for (size_t i = 0; i < lambda->expression->names.size(); ++i) {
    const std::string& name = lambda->expression->names[i];
    VarRef v = make_var(name, identity[i % identity.size()]->dtype);
    (i < identity.size() ? lhs : rhs).push_back(v);
    ev.define(name, Expr(v), lambda->expression->place);
  }
  Value body = ev.eval(lambda->expression->items[0]);
  std::vector<Expr> result = ev.to_exprs(body, lambda->expression->place);
  ev.pop_scope();
  if (result.size() != identity.size())
    a.fail({.what = text("a reducer of ", result.size(), " results and ", identity.size(), " identities"),
            .needs = "as many of both",
            .hint = "return a tuple"});
  return NodeRef(make<CommReducer>(std::move(lhs), std::move(rhs), std::move(result), std::move(identity)));
}

/// T.index_map(lambda i: (i // 16, i % 16)).
Value fn_index_map(Evaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"mapping", "inverse_index_map", "index_dtype"});
  const LambdaValue* lambda = a.need("mapping").as<LambdaValue>();
  if (!lambda)
    a.fail({.what = "an index map of " + a.need("mapping").kind(),
            .needs = "a lambda from indices to indices",
            .hint = "T.index_map(lambda i: (i // 16, i % 16))"});
  auto map = index_map_of(ev, *lambda, a.dtype("index_dtype", i64));
  const Value* inverse = a.find("inverse_index_map");
  if (!inverse || inverse->is_none()) return NodeRef(map);
  const LambdaValue* back = inverse->as<LambdaValue>();
  const NodeRef* made = inverse->as<NodeRef>();
  auto known = back   ? index_map_of(ev, *back, a.dtype("index_dtype", i64))
               : made ? sator::cast<arith::IndexMap>(*made)
                      : nullptr;
  if (!known)
    a.fail({.what = "an inverse that is " + inverse->kind(),
            .needs = "a lambda, or another T.index_map",
            .hint = "leave the inverse out"});
  return NodeRef(with(*map, &arith::IndexMap::inverse_index_map, known));
}

Value fn_call_packed(Evaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"*args"});
  std::vector<Expr> args;
  for (const Value& v : a.rest()) {
    const BufferRef* b = v.as<BufferRef>();
    args.push_back(b ? packed_buffer(**b) : ev.to_expr(v, call.place));
  }
  std::string name = script::dotted_name(call.items[0]);
  const Builtin* row = find_builtin_by_script(name.substr(name.rfind('.') + 1));
  DType dtype = row->dtype;  // unless told, as older scripts do
  for (const script::Keyword& k : call.keywords)
    if (k.name == "dtype") dtype = ev.to_dtype(ev.eval(k.value), k.value.place);
  return Expr(sator::call(dtype, std::string(row->op), std::move(args)));
}

/// T.Call(dtype, op, args): any builtin by its full name, tvm.ir.Op.get("tir.call_extern") or "tir.call_extern".
Value fn_call(Evaluator& ev, const Expression& call) {
  Expression named = call;
  std::string op;
  for (Expression& item : named.items) {
    const bool is_op = item.is(script::ExpressionKind::call) && item.items.size() == 2 &&
                       script::dotted_name(item.items[0]).ends_with("Op.get");
    if (is_op) item = Expression(item.items[1]);
  }
  Arguments a(ev, named, {"dtype", "op", "args"});
  op = a.str("op");
  if (!find_builtin(op))
    a.fail({.what = text("T.Call of ", string_literal(op)),
            .needs = "the name of a builtin with its language: \"tir.call_extern\"",
            .hint = "T.NAME(...) calls it too"});
  std::vector<Expr> args;
  if (const Values* list = a.need("args").as<Values>())
    for (const Value& v : list->items) args.push_back(ev.to_expr(v, a.place_of("args")));
  else
    args = a.exprs("args");
  return Expr(sator::call(a.dtype("dtype"), op, std::move(args)));
}

/// tir.call_tir(cls.f, x): as cls.f(x).
Value fn_call_tir(Evaluator& ev, const Expression& call) {
  if (call.items.size() < 2)
    ev.fail(call.place,
            {.what = "T.call_tir without a function", .needs = "cls.f, then its arguments", .hint = "cls.f(x)"});
  Expression direct = call;
  direct.items.erase(direct.items.begin());
  return ev.eval(direct);
}

Value fn_type_annotation(Evaluator& ev, const Expression& call) {
  return Expr(sator::call(Arguments(ev, call, {"dtype"}).dtype("dtype"), "tir.type_annotation", {}));
}

Value fn_llvm_id(Evaluator& ev, const Expression& call) { return Arguments(ev, call, {"name"}).str("name"); }

const std::unordered_map<std::string_view, ScriptFunction>& functions() {
  static const std::unordered_map<std::string_view, ScriptFunction> table = {
      {"Add", exact<Add>},
      {"Sub", exact<Sub>},
      {"Mul", exact<Mul>},
      {"Div", exact<Div>},
      {"Mod", exact<Mod>},
      {"FloorDiv", exact<FloorDiv>},
      {"FloorMod", exact<FloorMod>},
      {"Min", exact<Min>},
      {"Max", exact<Max>},
      {"EQ", exact<EQ>},
      {"NE", exact<NE>},
      {"LT", exact<LT>},
      {"LE", exact<LE>},
      {"GT", exact<GT>},
      {"GE", exact<GE>},
      {"And", exact<And>},
      {"Or", exact<Or>},
      {"Not", fn_not},
      {"Select", fn_select},
      {"truncdiv", folding<div>},
      {"truncmod", folding<truncmod>},
      {"floordiv", folding<floordiv>},
      {"floormod", folding<floormod>},
      {"div", folding<div>},
      {"ceildiv", folding<ceildiv_of>},
      {"min", folding<min>},
      {"max", folding<max>},
      {"bitwise_and", named<0>},
      {"bitwise_or", named<1>},
      {"bitwise_xor", named<2>},
      {"shift_left", named<3>},
      {"shift_right", named<4>},
      {"pow", named<5>},
      {"power", named<5>},
      {"abs", unary<absolute>},
      {"fabs", unary<absolute>},
      {"isnan", unary<is_nan>},
      {"isinf", unary<is_inf>},
      {"isfinite", unary<is_finite>},
      {"likely", unary<likely>},
      {"floor", unary<floor_of>},
      {"ceil", unary<ceil_of>},
      {"trunc", unary<trunc_of>},
      {"round", unary<round_of>},
      {"nearbyint", unary<nearbyint_of>},
      {"if_then_else", fn_if_then_else},
      {"Cast", fn_Cast},
      {"cast", fn_cast},
      {"reinterpret", fn_reinterpret},
      {"Ramp", fn_ramp},
      {"ramp", fn_ramp},
      {"Broadcast", fn_broadcast},
      {"broadcast", fn_broadcast},
      {"Shuffle", fn_shuffle},
      {"Let", fn_let},
      {"min_value", fn_min_value},
      {"max_value", fn_max_value},
      {"infinity", fn_infinity},
      {"const", fn_const},
      {"IntImm", fn_int_imm},
      {"FloatImm", fn_float_imm},
      {"StringImm", fn_string_imm},
      {"Var", fn_var},
      {"SizeVar", fn_size_var},
      {"var", fn_old_var},
      {"handle", fn_handle},
      {"Ptr", fn_handle},
      {"ptr", fn_handle},
      {"buffer_var", fn_handle},
      {"Range", fn_range},
      {"meta_var", fn_meta_var},
      {"target", fn_target},
      {"comm_reducer", fn_comm_reducer},
      {"index_map", fn_index_map},
      {"call_packed", fn_call_packed},
      {"call_cpacked", fn_call_packed},
      {"tvm_call_packed", fn_call_packed},
      {"tvm_call_cpacked", fn_call_packed},
      {"Call", fn_call},
      {"call_tir", fn_call_tir},
      {"type_annotation", fn_type_annotation},
      {"llvm_lookup_intrinsic_id", fn_llvm_id},
  };
  return table;
}

}  // namespace

ScriptFunction find_script_function(std::string_view name) {
  auto at = functions().find(name);
  return at == functions().end() ? nullptr : at->second;
}

std::vector<std::string> script_function_names() {
  std::vector<std::string> names;
  for (const auto& [name, fn] : functions()) names.emplace_back(name);
  for (const Builtin& b : builtins()) names.emplace_back(b.script);
  return names;
}

arith::IndexMapRef index_map_of(Evaluator& ev, const LambdaValue& lambda, DType dtype) {
  const Expression& written = *lambda.expression;
  std::vector<VarRef> inputs;
  ev.push_scope();
  for (const std::string& name : written.names) {
    inputs.push_back(make_var(name, dtype));
    ev.define(name, Expr(inputs.back()), written.place);
  }
  const Value body = ev.eval(written.items[0]);
  std::vector<Expr> outputs;
  if (const auto* list = body.as<Values>()) {
    for (const Value& item : list->items) outputs.push_back(ev.to_expr_like(item, dtype, written.place));
  } else {
    outputs.push_back(ev.to_expr_like(body, dtype, written.place));
  }
  ev.pop_scope();
  return make<arith::IndexMap>(std::move(inputs), std::move(outputs), nullptr);
}

Expr named_binary(std::string_view name, Expr a, Expr b) {
  match_dtypes(a, b, std::string(name).c_str());
  bool is_pow = name == "pow";
  DType d = a->dtype;
  if (is_pow ? !d.is_float() : !(d.is_integer() || (d.is_bool() && !name.starts_with("shift"))))
    fail({.what = text(name, " of ", d),
          .needs = is_pow ? "real operands" : "integer operands",
          .hint = "cast the operands"});
  const IntImm *x = a.as<IntImm>(), *y = b.as<IntImm>();
  if (y && name.starts_with("shift") && (y->value < 0 || y->value >= d.bits))
    fail({.what = text(name, " by ", y->value, " of ", d),
          .needs = text("0 to ", d.bits - 1),
          .hint = "check the distance"});
  if (x && y) {
    int64_t v = name == "bitwise_and"   ? x->value & y->value
                : name == "bitwise_or"  ? x->value | y->value
                : name == "bitwise_xor" ? x->value ^ y->value
                : name == "shift_left"  ? static_cast<int64_t>(static_cast<uint64_t>(x->value) << y->value)
                : d.is_uint()           ? static_cast<int64_t>(static_cast<uint64_t>(x->value) >> y->value)
                                        : x->value >> y->value;
    return cast_to(d, int_imm(v, d.is_uint() ? u64 : i64));
  }
  if (y && y->value == 0 && name.starts_with("shift")) return a;
  return call_builtin(find_builtin_by_script(name)->op, {std::move(a), std::move(b)});
}

}  // namespace sator::tir
