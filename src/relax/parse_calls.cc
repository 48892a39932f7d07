// R.<name>(...) that is more than a call of an op: struct info, values, calls of functions. One row per name.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <unordered_map>

#include "base/float16.h"
#include "base/float8.h"
#include "relax/ops/table.h"
#include "relax/parse_impl.h"

namespace sator::relax {

using script::Expression;
using script::Place;
using tir::Arguments;
using tir::Integer;
using tir::Values;

namespace {

// ---- Struct info ----

int rank_argument(const Arguments& a) {
  int64_t ndim = a.integer("ndim", -1);
  if (ndim < -1 || ndim > 1000)
    a.fail({.what = text("ndim ", ndim), .needs = "-1 (unknown) or the number of axes", .hint = "check the rank"});
  return static_cast<int>(ndim);
}

void need_rank(const Arguments& a, int ndim, size_t extents) {
  if (ndim >= 0 && static_cast<size_t>(ndim) != extents)
    a.fail({.what = text("ndim ", ndim, " and a shape of ", extents, " axes"),
            .needs = "one rank",
            .hint = "leave ndim out"});
}

tir::Value fn_Tensor(GraphEvaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"shape", "dtype", "vdevice", "ndim"});
  return ev.located(call.place, [&]() -> tir::Value {
    const tir::Value* shape = a.find("shape");
    DType dtype = DType::Void();
    if (shape && shape->as<std::string>()) {
      if (a.find("dtype"))
        a.fail(
            {.what = "two dtypes", .needs = "a shape before the dtype", .hint = "write R.Tensor((n, 4), \"float32\")"});
      dtype = ev.to_dtype(*shape, a.place_of("shape"));
      shape = nullptr;
    } else {
      dtype = a.dtype("dtype", DType::Void());
    }
    std::string device = a.str("vdevice", "");
    if (!device.empty()) device = ev.device_name(device, a.place_of("vdevice"));
    int ndim = rank_argument(a);
    if (!shape) return NodeRef(tensor_info(dtype, ndim, device));
    if (const NodeRef* n = shape->as<NodeRef>()) {
      const auto* e = n->as<RelaxExprNode>();
      if (!e || (!n->as<ShapeExpr>() && !(n->as<RVar>() && e->sinfo.as<ShapeInfo>())))
        a.fail({.what = text(shape->kind(), " as the shape of a tensor"),
                .needs = "extents, R.shape([...]) or a variable that is a shape",
                .hint = "write the extents as (n, 4)"});
      return NodeRef(tensor_info(RExpr(e), dtype, device));
    }
    std::vector<Expr> extents = ev.to_extents(*shape, a.place_of("shape"));
    need_rank(a, ndim, extents.size());
    return NodeRef(tensor_info(std::move(extents), dtype, device));
  });
}

tir::Value fn_Shape(GraphEvaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"values", "ndim"});
  return ev.located(call.place, [&]() -> tir::Value {
    int ndim = rank_argument(a);
    const tir::Value* values = a.find("values");
    if (!values) return NodeRef(shape_info(ndim));
    std::vector<Expr> extents = ev.to_extents(*values, a.place_of("values"));
    need_rank(a, ndim, extents.size());
    return NodeRef(shape_expr(std::move(extents))->sinfo);
  });
}

tir::Value fn_Prim(GraphEvaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"dtype", "value"});
  const tir::Value* value = a.find("value");
  if (!value) return NodeRef(prim_info(a.dtype("dtype")));
  // A number with a dtype of its own keeps it, as that of R.prim_value(T.uint8(32)) does.
  const Expr* known = value->as<Expr>();
  Expr e = known ? *known : ev.to_extent(*value, a.place_of("value"));
  if (a.find("dtype") && a.dtype("dtype") != e->dtype)
    a.fail({.what = text("a value of ", e->dtype, " as a ", a.dtype("dtype")),
            .needs = "one dtype",
            .hint = "leave dtype out"});
  return NodeRef(prim_info(std::move(e)));
}

tir::Value fn_Object(GraphEvaluator& ev, const Expression& call) {
  Arguments a(ev, call, {});
  return NodeRef(object_info());
}

tir::Value fn_Tuple(GraphEvaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"*fields"});
  // relax.Tuple([x, y]) of values is a value.
  const Values* list = a.rest().size() == 1 ? a.rest()[0].as<Values>() : nullptr;
  const NodeRef* first = list && !list->items.empty() ? list->items[0].as<NodeRef>() : nullptr;
  if (first && first->as<RelaxExprNode>()) return NodeRef(ev.to_graph(a.rest()[0], call.place));
  std::vector<StructInfo> items;
  for (const tir::Value& v : a.rest()) {
    for (StructInfo& s : ev.to_sinfos(v, call.place)) items.push_back(std::move(s));
  }
  return NodeRef(tuple_info(std::move(items)));
}

tir::Value fn_Callable(GraphEvaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"params", "ret", "purity"});
  const tir::Value *params = a.find("params"), *ret = a.find("ret");
  // A function of unknown parameters is not known to be pure.
  bool pure = a.boolean("purity", params != nullptr);
  StructInfo result = ret ? ev.to_sinfo(*ret, a.place_of("ret")) : object_info();
  if (!params) return NodeRef(opaque_func_info(std::move(result), pure));
  return NodeRef(func_info(ev.to_sinfos(*params, a.place_of("params")), std::move(result), pure));
}

// ---- Values ----

/// The elements of a (nested) list, and its shape; lists of one level are of one length.
void collect(GraphEvaluator& ev, const tir::Value& v, size_t level, std::vector<int64_t>& shape,
             std::vector<tir::Value>& out, Place place) {
  const Values* list = v.as<Values>();
  auto ragged = [&] {
    ev.fail(place,
            {.what = "a list whose parts have different lengths",
             .needs = "a tensor: equal lengths at each level",
             .hint = "check the brackets"});
  };
  if (!list) {
    if (level != shape.size()) ragged();
    out.push_back(v);
    return;
  }
  auto length = static_cast<int64_t>(list->items.size());
  if (out.empty() && level == shape.size()) shape.push_back(length);
  if (level >= shape.size() || shape[level] != length) ragged();
  for (const tir::Value& item : list->items) collect(ev, item, level + 1, shape, out, place);
}

/// Writes one element of a tensor.
void store(GraphEvaluator& ev, const tir::Value& v, DType dtype, char* at, Place place) {
  Expr e = ev.located(place, [&] {
    // "inf" and "nan" stand for themselves.
    if (const std::string* s = v.as<std::string>();
        s && dtype.is_float() && (*s == "inf" || *s == "-inf" || *s == "nan"))
      return float_imm(*s == "nan" ? NAN : *s == "inf" ? INFINITY : -INFINITY, f64);
    return ev.to_expr_like(v, dtype.is_float() ? f64 : dtype.is_uint() ? u64 : i64, place);
  });
  double real = 0;
  int64_t integer = 0;
  if (const FloatImm* f = e.as<FloatImm>()) {
    real = f->value;
    if (!dtype.is_float()) e = nullptr;
  } else if (const IntImm* i = e.as<IntImm>()) {
    integer = i->value;
    real = static_cast<double>(integer);
  } else {
    e = nullptr;
  }
  if (!e)
    ev.fail(place,
            {.what = text(v.kind(), " as an element of ", dtype),
             .needs = text("a number that is a ", dtype),
             .hint = "check dtype and value"});
  if (dtype.is_bool()) integer = integer != 0;
  if (dtype.is_integer() && dtype.bits < 64 && (integer < min_int(dtype) || integer > max_int(dtype)))
    ev.fail(place,
            {.what = text(integer, " as an element of ", dtype),
             .needs = text("a number from ", min_int(dtype), " to ", max_int(dtype)),
             .hint = "choose a wider dtype"});
  if (dtype == f64)
    std::memcpy(at, &real, 8);
  else if (dtype == f32)
    *reinterpret_cast<float*>(at) = static_cast<float>(real);
  else if (dtype == f16)
    *reinterpret_cast<uint16_t*>(at) = f32_to_f16(static_cast<float>(real));
  else if (dtype.is_float8())
    *reinterpret_cast<uint8_t*>(at) = f32_to_f8(static_cast<float>(real), dtype.code);
  else if (dtype == bf16)
    *reinterpret_cast<uint16_t*>(at) = f32_to_bf16(static_cast<float>(real));
  else
    std::memcpy(at, &integer, static_cast<size_t>(dtype.bytes()));  // little-endian: the low bytes
}

tir::Value fn_const(GraphEvaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"value", "dtype", "shape"});
  return ev.located(call.place, [&]() -> tir::Value {
    if (const auto* host = a.need("value").as<tir::HostObjectRef>())
      if (const NodeRef array = (*host)->tensor()) {
        const DType own = array.as<Constant>()->data.tensor->dtype();
        if (a.dtype("dtype", own) != own)
          a.fail({.what = text("an array of ", own, " as a constant of ", a.dtype("dtype", own)),
                  .needs = "the array's own dtype",
                  .hint = "convert it with astype in Python"});
        return array;
      }
    std::vector<int64_t> shape;
    std::vector<tir::Value> elements;
    collect(ev, a.need("value"), 0, shape, elements, a.place_of("value"));
    if (a.find("shape")) {
      shape.clear();
      for (const Expr& e : a.exprs("shape")) shape.push_back(as_int(e).value_or(-1));
    }
    auto is = [&]<class T>(T*) {
      return !elements.empty() &&
             std::ranges::all_of(elements, [](const tir::Value& v) { return v.as<T>() != nullptr; });
    };
    DType standard = is(static_cast<bool*>(nullptr)) ? boolean : is(static_cast<Integer*>(nullptr)) ? i32 : f32;
    DType dtype = a.dtype("dtype", standard);
    if (dtype.is_handle() || dtype.is_void() || dtype.lanes != 1 || (dtype.is_float() && dtype.bits < 16))
      a.fail({.what = text("a constant of ", dtype),
              .needs = "a dtype of numbers of at least 8 bits (16 for reals)",
              .hint = "choose another dtype"});
    auto tensor = runtime::Tensor::empty(runtime::Dims(std::span<const int64_t>(shape)), dtype);
    if (tensor->num_elements() != static_cast<int64_t>(elements.size()))
      a.fail({.what = text(elements.size(), " elements for a shape of ", tensor->num_elements()),
              .needs = "one number per element",
              .hint = "leave the shape out"});
    for (size_t i = 0; i < elements.size(); ++i)
      store(ev,
            elements[i],
            dtype,
            tensor->data_as<char>() + static_cast<int64_t>(i) * dtype.bytes(),
            a.place_of("value"));
    return NodeRef(constant(std::move(tensor)));
  });
}

tir::Value fn_shape(GraphEvaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"values"});
  return ev.located(call.place,
                    [&]() -> tir::Value { return NodeRef(shape_expr(ev.to_extents(a.need("values"), call.place))); });
}
tir::Value fn_prim_value(GraphEvaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"value"});
  Expr value = ev.to_expr_like(a.need("value"), i64, call.place);
  if (value.as<StringImm>())
    a.fail({.what = text("the string ", value, " as a prim_value"), .needs = "a number", .hint = "write R.str(...)"});
  return NodeRef(prim_value(std::move(value)));
}
tir::Value fn_str(GraphEvaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"value"});
  return NodeRef(string_value(a.str("value")));
}
tir::Value fn_dtype(GraphEvaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"value"});
  return NodeRef(dtype_value(a.dtype("value")));
}
tir::Value fn_tuple(GraphEvaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"*fields"});
  std::vector<RExpr> items;
  for (const tir::Value& v : a.rest()) items.push_back(ev.to_graph(v, call.place));
  return NodeRef(tuple(std::move(items)));
}
tir::Value fn_TupleGetItem(GraphEvaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"tuple_value", "index"});
  RExpr t = ev.to_graph(a.need("tuple_value"), call.place);
  int64_t index = a.integer("index");
  if (index < 0 || index > INT32_MAX)
    a.fail({.what = text("item ", index, " of a tuple"), .needs = "an index from 0 on", .hint = "check the index"});
  return ev.located(call.place, [&]() -> tir::Value { return NodeRef(tuple_get(t, static_cast<int>(index))); });
}
tir::Value fn_ExternFunc(GraphEvaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"name"});
  return NodeRef(extern_func(a.str("name")));
}
tir::Value fn_match_cast(GraphEvaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"value", "struct_info"});
  RExpr value = ev.to_graph(a.need("value"), call.place);
  // Not bound yet: the assignment around it has the variable.
  return NodeRef(
      make<MatchCast>(std::move(value), ev.to_sinfo(a.need("struct_info"), a.place_of("struct_info")), RVarRef()));
}
tir::Value fn_emit(GraphEvaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"value"});
  return NodeRef(ev.to_graph(a.need("value"), call.place));
}

/// The part of a graph behind a value, or null.
RExpr graph_part(const tir::Value& v) {
  const NodeRef* n = v.as<NodeRef>();
  const auto* e = n && *n ? n->as<RelaxExprNode>() : nullptr;
  return e ? ref(*e) : nullptr;
}

/// R.emit_te(f, x, 2) of a function of the surroundings: its formula as a tensor program of its own, called.
tir::Value emit_formula_of_host(GraphEvaluator& ev, const Expression& call, const tir::HostObjectRef& function,
                                std::string hint) {
  std::vector<tir::Value> given;
  std::vector<RExpr> tensors;
  for (size_t i = 2; i < call.items.size(); ++i) {
    given.push_back(ev.eval(call.items[i]));
    if (RExpr e = graph_part(given.back())) tensors.push_back(e);
  }
  std::vector<std::pair<std::string, tir::Value>> keywords;
  for (const script::Keyword& k : call.keywords) {
    tir::Value v = ev.eval(k.value);
    if (k.name == "primfunc_name_hint" && v.as<std::string>())
      hint = *v.as<std::string>();
    else
      keywords.emplace_back(k.name, std::move(v));
  }
  return ev.located(call.place, [&]() -> tir::Value {
    RExpr out = ev.programs()->call_te(hint, tensors, [&](const TeInputs& in) {
      std::vector<std::variant<tir::Value, te::Tensor>> args;
      size_t next = 0;
      for (const tir::Value& v : given) {
        if (!graph_part(v))
          args.emplace_back(v);
        else
          args.emplace_back(in.tensor(next++));
      }
      return function->formula(args, keywords);
    });
    if (!out)
      ev.fail(call.place,
              {.what = text("R.emit_te of ", hint, " with an argument of unknown shape"),
               .needs = "arguments of known shapes",
               .hint = "match_cast them first"});
    return NodeRef(out);
  });
}

/// R.emit_te(topi.exp, x, primfunc_name_hint="tir_exp"): the formula of an op as a tensor program of its own, called.
/// Numbers stand in the program; constants of the graph, R.const(1.0), are tensors that it is given.
tir::Value fn_emit_te(GraphEvaluator& ev, const Expression& call) {
  static const std::unordered_map<std::string, std::string> kOtherNames = {
      {"transpose", "permute_dims"}, {"identity", "astype"}, {"trilu(upper)", "triu"}, {"trilu(lower)", "tril"}};
  const std::string written = call.items.size() > 1 ? script::dotted_name(call.items[1]) : "";
  const std::string name = written.starts_with("topi.") ? written.substr(5) : "";
  std::string formula = name;
  // topi.trilu(x, k, upper=True)
  auto is_upper = [](const script::Keyword& k) { return k.name == "upper"; };
  const auto upper = std::ranges::find_if(call.keywords, is_upper);
  if (name == "trilu" && upper != call.keywords.end() && upper->value.is(script::ExpressionKind::boolean))
    formula += upper->value.integer != 0 ? "(upper)" : "(lower)";
  auto other = kOtherNames.find(formula);
  const OpDef* op = name.empty() ? nullptr : find_op(other == kOtherNames.end() ? name : other->second);
  if (name.empty() && call.items.size() > 1 && ev.programs()) {
    const tir::Value function = ev.eval(call.items[1]);
    if (const auto* h = function.as<tir::HostObjectRef>())
      return emit_formula_of_host(ev, call, *h, written.substr(written.rfind('.') + 1));
  }
  if (!op || !op->compute || !ev.programs())
    ev.fail(call.place,
            {.what = text("R.emit_te of ", written.empty() ? "an expression" : written),
             .needs = "topi.NAME, where R.NAME is an op with a formula, or a function of Python's, inside of a module",
             .hint = "call the op itself, or write the tensor program"});
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keywords;
  for (size_t i = 2; i < call.items.size(); ++i)
    positional.push_back(ev.to_argument(ev.eval(call.items[i]), call.place));
  std::string hint = name;
  for (const script::Keyword& k : call.keywords) {
    tir::Value v = ev.eval(k.value);
    if (k.name == "primfunc_name_hint" && v.as<std::string>())
      hint = *v.as<std::string>();
    else if (formula == name || !is_upper(k))
      keywords.emplace_back(k.name, ev.to_argument(v, k.place));
  }
  // topi.full(shape, dtype, fill_value)
  if (name == "full" && positional.size() == 3) std::swap(positional[1], positional[2]);
  const bool is_given_constants = std::ranges::any_of(positional, [](const Value& v) {
    const RExpr* e = v.as<RExpr>();
    return e && e->as<Constant>();
  });
  return ev.located(call.place, [&]() -> tir::Value {
    if (op->name == "astype" && positional.size() == 1) {
      const auto* x = to_rexpr(positional[0])->sinfo.as<TensorInfo>();
      if (x) positional.push_back(Value(x->dtype.name()));
    }
    BlockBuilder& programs = *ev.programs();
    RExpr made = programs.normalize(make_call(op->name, positional, keywords));
    const RCall& c = *made.as<RCall>();
    RExpr out = programs.call_te(
        hint,
        c.args,
        [&](const TeInputs& in) { return op->compute(c.attrs, in); },
        c.sinfo,
        op->scalar_constants && !is_given_constants);
    if (!out)
      ev.fail(call.place,
              {.what = text("R.emit_te of ", written, " with an argument of unknown shape"),
               .needs = "arguments of known shapes",
               .hint = "match_cast them first"});
    return NodeRef(out);
  });
}

// ---- Calls of functions ----

/// A call with attributes as the op's row reads them.
tir::Value op_with(GraphEvaluator& ev, const Expression& call, const char* name, std::vector<RExpr> args,
                   const std::vector<std::pair<const char*, const tir::Value*>>& given,
                   std::vector<StructInfo> sinfo_args) {
  const OpDef& op = op_named(name);
  Attrs attrs;
  for (const AttrDef& a : op.attrs) {
    if (a.standard) attrs[a.name] = a.standard;
  }
  for (const auto& [key, value] : given) {
    if (!value) continue;
    for (const AttrDef& a : op.attrs) {
      if (a.name != key) continue;
      auto node = a.read(ev.to_argument(*value, call.place));
      if (!node)
        ev.fail(call.place,
                {.what = text(value->kind(), " for ", key),
                 .needs = text("a value of R.", name),
                 .hint = "check the argument"});
      if (*node) attrs[key] = *node;
    }
  }
  RExpr made = relax::call(op_ref(name), std::move(args), std::move(attrs), std::move(sinfo_args));
  return NodeRef(spanned(made, ev.source.span(call.place)));
}

/// A tuple of arguments; a single value stands for a tuple of one.
RExpr argument_tuple(GraphEvaluator& ev, const tir::Value& v, Place place) {
  RExpr args = ev.to_graph(v, place);
  return args.as<Tuple>() || args->sinfo.as<TupleInfo>() ? args : tuple({args});
}

/// The declared result: struct info, or a list of the outputs of a function with several.
StructInfo declared_result(GraphEvaluator& ev, const Arguments& a) {
  const tir::Value* v = a.find("out_sinfo");
  if (!v) v = &a.need("out_ty");
  std::vector<StructInfo> infos = ev.to_sinfos(*v, a.call.place);
  return v->as<Values>() && infos.size() != 1 ? tuple_info(std::move(infos)) : infos.at(0);
}

/// The function of the module, or the runtime's by name.
RExpr callee_of(GraphEvaluator& ev, const tir::Value& v, Place place) {
  if (const std::string* name = v.as<std::string>()) return extern_func(*name);
  return ev.to_graph(v, place);
}

/// call_tir and its kin; what is written besides the function, its arguments and result are attributes.
tir::Value call_program(GraphEvaluator& ev, const Expression& call, const char* name,
                        std::vector<std::string_view> params) {
  Arguments a(ev, call, params);
  auto given = [&](const char* key) { return std::ranges::find(params, key) == params.end() ? nullptr : a.find(key); };
  if (const NodeRef* n = a.need(params[0]).as<NodeRef>(); n && n->as<tir::PrimFunc>())
    a.fail({.what = text(name, " of a tensor program itself"),
            .needs = "the name by which a module knows it",
            .hint = "gv = bb.add_func(func, \"name\"), and call gv"});
  if (a.find(params[0])->as<std::string>())
    a.fail({.what = text(name, " of ", string_literal(a.str(params[0]))),
            .needs = "a tensor program of the module, cls.name",
            .hint = "use R.call_dps_packed for a function of the runtime"});
  std::vector<RExpr> args{ev.to_graph(a.need(params[0]), call.place), argument_tuple(ev, a.need("args"), call.place)};
  if (const tir::Value* vars = a.find("tir_vars")) {
    RExpr shape = ev.located(call.place, [&] {
      const NodeRef* n = vars->as<NodeRef>();
      const RelaxExprNode* e = n ? n->as<RelaxExprNode>() : nullptr;
      return e ? RExpr(e) : shape_expr(ev.to_extents(*vars, call.place));
    });
    args.push_back(std::move(shape));
  }
  return op_with(ev,
                 call,
                 name,
                 std::move(args),
                 {{"inplace_indices", given("inplace_indices")},
                  {"te_grad_name", given("te_grad_name")},
                  {"te_grad_kwargs", given("te_grad_kwargs")}},
                 {declared_result(ev, a)});
}

tir::Value fn_call_tir(GraphEvaluator& ev, const Expression& call) {
  return call_program(ev, call, "call_tir", {"gvar", "args", "out_sinfo", "tir_vars", "out_ty"});
}
tir::Value fn_call_tir_inplace(GraphEvaluator& ev, const Expression& call) {
  return call_program(
      ev, call, "call_tir_inplace", {"gvar", "args", "inplace_indices", "out_sinfo", "tir_vars", "out_ty"});
}
tir::Value fn_call_tir_with_grad(GraphEvaluator& ev, const Expression& call) {
  return call_program(ev,
                      call,
                      "call_tir_with_grad",
                      {"gvar", "args", "out_sinfo", "te_grad_name", "te_grad_kwargs", "tir_vars", "out_ty"});
}
tir::Value fn_call_dps_packed(GraphEvaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"func", "args", "out_sinfo", "out_ty"});
  std::vector<RExpr> args{callee_of(ev, a.need("func"), call.place), argument_tuple(ev, a.need("args"), call.place)};
  return op_with(ev, call, "call_dps_packed", std::move(args), {}, {declared_result(ev, a)});
}

/// A call with its keywords apart: those named in `known`, and the others.
struct Keywords {
  std::map<std::string, tir::Value> known;
  Attrs others;
  Expression positional;
};
Keywords split_keywords(GraphEvaluator& ev, const Expression& call, std::vector<std::string_view> known,
                        bool takes_others) {
  Keywords out;
  out.positional.kind = script::ExpressionKind::call;
  out.positional.place = call.place;
  out.positional.items = call.items;
  for (const script::Keyword& k : call.keywords) {
    tir::Value v = ev.eval(k.value);
    if (std::ranges::find(known, k.name) != known.end())
      out.known[k.name] = std::move(v);
    else if (takes_others)
      out.others[k.name] = relax::to_attribute(ev.to_argument(v, k.value.place));
    else
      ev.fail(k.place,
              {.what = text("unknown argument ", k.name),
               .needs = text("the keywords ", join(known, ", ")),
               .hint = "check the name"});
  }
  return out;
}

std::vector<StructInfo> results_of(GraphEvaluator& ev, const Keywords& k, Place place) {
  for (const char* name : {"sinfo_args", "ty_args"}) {
    auto at = k.known.find(name);
    if (at != k.known.end() && !at->second.is_none()) return ev.to_sinfos(at->second, place);
  }
  return {};
}

tir::Value fn_call_packed(GraphEvaluator& ev, const Expression& call) {
  Keywords k = split_keywords(ev, call, {"sinfo_args", "ty_args"}, true);
  k.others.erase("attrs_type_key");
  Arguments a(ev, k.positional, {"func", "*args"});
  std::vector<RExpr> args;
  for (const tir::Value& v : a.rest()) args.push_back(ev.to_graph(v, call.place));
  RExpr made = relax::call(
      callee_of(ev, a.need("func"), call.place), std::move(args), std::move(k.others), results_of(ev, k, call.place));
  return NodeRef(spanned(made, ev.source.span(call.place)));
}

/// R.Call(op, args, sinfo_args=...): the call as it is written. `op` is tvm.ir.Op.get("relax.add") or what can be called.
tir::Value fn_Call(GraphEvaluator& ev, const Expression& call) {
  Expression named = call;
  bool is_op = false;
  for (Expression& item : named.items) {
    if (!item.is(script::ExpressionKind::call) || item.items.size() != 2) continue;
    if (!script::dotted_name(item.items[0]).ends_with("Op.get")) continue;
    item = Expression(item.items[1]);
    is_op = true;
  }
  Arguments a(ev, named, {"op", "args", "attrs", "sinfo_args"});
  if (a.find("attrs"))
    a.fail({.what = "attributes of R.Call",
            .needs = "a call without attributes",
            .hint = "write the op: R.sum(x, axis=0)"});
  RExpr op;
  if (is_op) {
    std::string name = a.str("op");
    if (name.starts_with("relax.")) name.erase(0, 6);
    if (!find_op(name))
      a.fail({.what = text("the op ", string_literal(name)), .needs = "an op of the table", .hint = "check the name"});
    op = op_ref(name);
  } else {
    op = callee_of(ev, a.need("op"), call.place);
  }
  std::vector<RExpr> args;
  const Values* list = a.need("args").as<Values>();
  if (!list)
    a.fail({.what = text(a.need("args").kind(), " as the arguments"), .needs = "a list", .hint = "write [x, y]"});
  for (const tir::Value& v : list->items) args.push_back(ev.to_graph(v, a.place_of("args")));
  std::vector<StructInfo> results;
  if (const tir::Value* given = a.find("sinfo_args")) results = ev.to_sinfos(*given, a.place_of("sinfo_args"));
  RExpr made = relax::call(op, std::move(args), {}, results);
  // Where nothing asks for the normal form of the op it stays as written: its result is what it says.
  if (!ev.is_checked() && is_op && results.size() == 1) made = with_sinfo(made, results[0]);
  return NodeRef(spanned(made, ev.source.span(call.place)));
}

/// The callee is the first argument of the op.
/// A plain True is the int64 1 to TVM, as Python's are; R.prim_value(T.bool(True)) is a bool.
tir::Value without_bools(const tir::Value& v) {
  if (const bool* b = v.as<bool>()) return tir::Integer{*b, false};
  const Values* list = v.as<Values>();
  if (!list) return v;
  Values out = *list;
  for (tir::Value& item : out.items) item = without_bools(item);
  return out;
}
tir::Value packed(GraphEvaluator& ev, const Expression& call, const char* name, std::vector<std::string_view> known) {
  Keywords k = split_keywords(ev, call, std::move(known), false);
  Arguments a(ev, k.positional, {"func", "*args"});
  std::vector<RExpr> args{callee_of(ev, a.need("func"), call.place)};
  for (const tir::Value& v : a.rest()) args.push_back(ev.to_graph(without_bools(v), call.place));
  auto indices = k.known.find("inplace_indices");
  return op_with(ev,
                 call,
                 name,
                 std::move(args),
                 {{"inplace_indices", indices == k.known.end() ? nullptr : &indices->second}},
                 results_of(ev, k, call.place));
}
tir::Value fn_call_pure_packed(GraphEvaluator& ev, const Expression& call) {
  return packed(ev, call, "call_pure_packed", {"sinfo_args", "ty_args"});
}
tir::Value fn_call_inplace_packed(GraphEvaluator& ev, const Expression& call) {
  return packed(ev, call, "call_inplace_packed", {"inplace_indices", "sinfo_args", "ty_args"});
}

/// func, (args), sinfo_args.
template <const char* const& name>
tir::Value with_argument_tuple(GraphEvaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"func", "args", "sinfo_args", "closure", "ty_args"});
  const tir::Value* func = a.find("func");
  if (!func) func = &a.need("closure");
  const tir::Value* results = a.find("sinfo_args") ? a.find("sinfo_args") : a.find("ty_args");
  std::vector<RExpr> args{callee_of(ev, *func, call.place), ev.to_graph(a.need("args"), call.place)};
  return op_with(
      ev, call, name, std::move(args), {}, results ? ev.to_sinfos(*results, call.place) : std::vector<StructInfo>());
}

/// Values to show, after (before, for an assertion) the text with {} where they go.
std::vector<RExpr> shown(GraphEvaluator& ev, const std::vector<tir::Value>& values, Place place) {
  std::vector<RExpr> out;
  for (const tir::Value& v : values) {
    if (const Values* list = v.as<Values>()) {
      for (const tir::Value& item : list->items) out.push_back(ev.to_graph(item, place));
    } else {
      out.push_back(ev.to_graph(v, place));
    }
  }
  return out;
}
RExpr format_of(GraphEvaluator& ev, const Keywords& k, Place place) {
  auto at = k.known.find("format");
  return at == k.known.end() ? string_value("") : ev.to_graph(at->second, place);
}
tir::Value fn_print(GraphEvaluator& ev, const Expression& call) {
  Keywords k = split_keywords(ev, call, {"format"}, false);
  Arguments a(ev, k.positional, {"*values"});
  std::vector<RExpr> args = shown(ev, a.rest(), call.place);
  args.insert(args.begin(), format_of(ev, k, call.place));
  return op_with(ev, call, "print", std::move(args), {}, {});
}
tir::Value fn_assert_op(GraphEvaluator& ev, const Expression& call) {
  Keywords k = split_keywords(ev, call, {"condition", "format", "format_args"}, false);
  const auto named = k.known.find("condition");
  std::vector<std::string_view> positions = {"condition", "*args"};
  if (named != k.known.end()) positions.erase(positions.begin());
  Arguments a(ev, k.positional, positions);
  const tir::Value& condition = named == k.known.end() ? a.need("condition") : named->second;
  std::vector<tir::Value> values = a.rest();
  if (auto at = k.known.find("format_args"); at != k.known.end()) values.push_back(at->second);
  std::vector<RExpr> args = shown(ev, values, call.place);
  args.insert(args.begin(), {ev.to_graph(condition, call.place), format_of(ev, k, call.place)});
  return op_with(ev, call, "assert_op", std::move(args), {}, {});
}
tir::Value fn_call_tir_dyn(GraphEvaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"func", "args"});
  std::vector<RExpr> args{callee_of(ev, a.need("func"), call.place), ev.to_graph(a.need("args"), call.place)};
  return op_with(ev, call, "vm.call_tir_dyn", std::move(args), {}, {});
}

// ---- Devices ----

tir::Value fn_to_vdevice(GraphEvaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"data", "dst_vdevice"});
  const NodeRef* object = a.need("dst_vdevice").as<NodeRef>();
  const VDevice* made = object ? object->as<VDevice>() : nullptr;
  tir::Value device = made ? ev.device_name(*made, a.place_of("dst_vdevice"))
                           : ev.device_name(a.str("dst_vdevice"), a.place_of("dst_vdevice"));
  return op_with(ev, call, "to_vdevice", {ev.to_graph(a.need("data"), call.place)}, {{"dst_vdevice", &device}}, {});
}
/// A device of the machine by the number of its kind.
tir::Value fn_device(GraphEvaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"dev_type", "dev_id"});
  return NodeRef(make<Dict>(
      Attrs{{"dev_type", int_imm(a.integer("dev_type"), i64)}, {"dev_id", int_imm(a.integer("dev_id", 0), i64)}}));
}
tir::Value fn_vdevice(GraphEvaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"target", "vdevice_id", "memory_scope"});
  Expression target = call;
  target.items.resize(std::min<size_t>(target.items.size(), 2));
  std::erase_if(target.keywords, [](const script::Keyword& k) { return k.name != "target"; });
  for (script::Keyword& k : target.keywords) k.name = "target_config";
  tir::Value config = tir::find_script_function("target")(ev, target);
  return NodeRef(make<VDevice>(
      *config.as<NodeRef>(), static_cast<int>(a.integer("vdevice_id", 0)), a.str("memory_scope", "global")));
}
tir::Value fn_dummy_global_info(GraphEvaluator& ev, const Expression& call) {
  Arguments a(ev, call, {});
  return NodeRef(make<Dict>(Attrs()));
}

constexpr const char* kBuiltin = "call_builtin_with_ctx";
constexpr const char* kMakeClosure = "make_closure";
constexpr const char* kInvoke = "invoke_closure";
constexpr const char* kInvokePure = "invoke_pure_closure";

const std::unordered_map<std::string_view, GraphFunction>& functions() {
  static const std::unordered_map<std::string_view, GraphFunction> table = {
      {"Tensor", fn_Tensor},
      {"Shape", fn_Shape},
      {"Prim", fn_Prim},
      {"Object", fn_Object},
      {"Any", fn_Object},
      {"Tuple", fn_Tuple},
      {"Callable", fn_Callable},
      {"const", fn_const},
      {"shape", fn_shape},
      {"ShapeExpr", fn_shape},
      {"prim_value", fn_prim_value},
      {"str", fn_str},
      {"dtype", fn_dtype},
      {"tuple", fn_tuple},
      {"TupleGetItem", fn_TupleGetItem},
      {"ExternFunc", fn_ExternFunc},
      {"match_cast", fn_match_cast},
      {"emit", fn_emit},
      {"emit_te", fn_emit_te},
      {"call_tir", fn_call_tir},
      {"call_tir_inplace", fn_call_tir_inplace},
      {"call_tir_with_grad", fn_call_tir_with_grad},
      {"call_dps_packed", fn_call_dps_packed},
      {"Call", fn_Call},
      {"call_packed", fn_call_packed},
      {"call_pure_packed", fn_call_pure_packed},
      {"call_inplace_packed", fn_call_inplace_packed},
      {"call_builtin_with_ctx", with_argument_tuple<kBuiltin>},
      {"make_closure", with_argument_tuple<kMakeClosure>},
      {"invoke_closure", with_argument_tuple<kInvoke>},
      {"invoke_pure_closure", with_argument_tuple<kInvokePure>},
      {"vm.call_tir_dyn", fn_call_tir_dyn},
      {"print", fn_print},
      {"assert_op", fn_assert_op},
      {"to_vdevice", fn_to_vdevice},
      {"device", fn_device},
      {"I.vdevice", fn_vdevice},
      {"I.dummy_global_info", fn_dummy_global_info},
  };
  return table;
}

}  // namespace

GraphFunction find_graph_function(std::string_view name) {
  for (const auto* table : {&functions(), &distributed_functions()}) {
    if (auto at = table->find(name); at != table->end()) return at->second;
  }
  return nullptr;
}

std::vector<std::string> graph_names() {
  std::set<std::string> names;
  for (const auto* table : {&functions(), &distributed_functions()})
    for (const auto& [name, fn] : *table) names.emplace(name);
  for (const OpDef& op : op_table()) names.insert(op.name);
  return {names.begin(), names.end()};
}

}  // namespace sator::relax
