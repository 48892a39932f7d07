// Calls of scripts: arguments, dtypes as functions, builtins by their rows, methods.
#include <algorithm>
#include <cmath>

#include "arith/numbers.h"
#include "base/text.h"
#include "ir/builtins.h"
#include "ir/literal.h"
#include "tir/parse_eval.h"

namespace sator::tir {

using script::Expression;
using script::Place;
using Kind = script::ExpressionKind;

// ---- Arguments ----

Arguments::Arguments(Evaluator& ev, const Expression& c, std::vector<std::string_view> names)
    : call(c), evaluator(ev), names_(std::move(names)) {
  bool takes_rest = !names_.empty() && names_.back().starts_with('*');
  if (takes_rest) names_.pop_back();
  values_.resize(names_.size());
  places_.assign(names_.size(), call.place);
  given_.assign(names_.size(), false);
  size_t next = 0;
  auto add = [&](Value v, Place place) {
    if (next < names_.size()) {
      values_[next] = std::move(v);
      places_[next] = place;
      given_[next++] = true;
    } else if (takes_rest) {
      rest_.push_back(std::move(v));
    } else {
      evaluator.fail(place,
                     {.what = text("more than ", names_.size(), " arguments"),
                      .needs = text("the arguments ", join(names_, ", ")),
                      .hint = "remove the others"});
    }
  };
  for (size_t i = 1; i < call.items.size(); ++i) {
    const Expression& item = call.items[i];
    if (!item.is(Kind::star)) {
      add(evaluator.eval(item), item.place);
      continue;
    }
    Value v = evaluator.eval(item.items[0]);
    const Values* list = v.as<Values>();
    if (!list)
      evaluator.fail(item.place,
                     {.what = text("'*' of ", v.kind()), .needs = "a list or a tuple", .hint = "remove the '*'"});
    for (const Value& inner : list->items) add(inner, item.place);
  }
  for (const script::Keyword& k : call.keywords) {
    size_t at = std::find(names_.begin(), names_.end(), k.name) - names_.begin();
    // Older scripts state the dtype of calls whose dtype follows from the arguments.
    if (at == names_.size() && k.name == "dtype") continue;
    if (at == names_.size() || given_[at])
      evaluator.fail(k.place,
                     {.what = text(at == names_.size() ? "unknown" : "repeated", " argument ", k.name),
                      .needs = names_.empty() ? "no keywords" : text("the arguments ", join(names_, ", ")),
                      .hint = "check the name"});
    values_[at] = evaluator.eval(k.value);
    places_[at] = k.value.place;
    given_[at] = true;
  }
}

void Arguments::fail(Reason reason) const { evaluator.fail(call.place, std::move(reason)); }

Place Arguments::place_of(std::string_view name) const {
  size_t at = std::find(names_.begin(), names_.end(), name) - names_.begin();
  return at < places_.size() ? places_[at] : call.place;
}

const Value* Arguments::find(std::string_view name) const {
  size_t at = std::find(names_.begin(), names_.end(), name) - names_.begin();
  if (at == names_.size()) internal_error(text("no parameter ", name));
  return given_[at] && !values_[at].is_none() ? &values_[at] : nullptr;
}

const Value& Arguments::need(std::string_view name) const {
  if (const Value* v = find(name)) return *v;
  fail({.what = text("the argument ", name, " is missing"),
        .needs = text("the arguments ", join(names_, ", ")),
        .hint = "add it"});
}

Expr Arguments::expr(std::string_view name) const { return evaluator.to_expr(need(name), place_of(name)); }
Expr Arguments::expr_or(std::string_view name, Expr otherwise) const {
  const Value* v = find(name);
  return v ? evaluator.to_expr(*v, place_of(name)) : std::move(otherwise);
}
std::vector<Expr> Arguments::exprs(std::string_view name) const {
  return evaluator.to_exprs(need(name), place_of(name));
}
DType Arguments::dtype(std::string_view name, std::optional<DType> otherwise) const {
  if (otherwise && !find(name)) return *otherwise;
  return evaluator.to_dtype(need(name), place_of(name));
}
std::string Arguments::str(std::string_view name, std::optional<std::string> otherwise) const {
  if (otherwise && !find(name)) return *otherwise;
  const std::string* s = need(name).as<std::string>();
  if (!s)
    evaluator.fail(place_of(name),
                   {.what = text(need(name).kind(), " for ", name), .needs = "a string", .hint = "quote it"});
  return *s;
}
int64_t Arguments::integer(std::string_view name, std::optional<int64_t> otherwise) const {
  if (otherwise && !find(name)) return *otherwise;
  const Value& v = need(name);
  if (const Integer* i = v.as<Integer>()) return i->value;
  if (const bool* b = v.as<bool>()) return *b;
  if (const Expr* e = v.as<Expr>()) {
    if (auto i = as_int(*e)) return *i;
  }
  evaluator.fail(place_of(name),
                 {.what = text(v.kind(), " for ", name), .needs = "a constant integer", .hint = "write a number"});
}
bool Arguments::boolean(std::string_view name, bool otherwise) const { return integer(name, otherwise) != 0; }
std::vector<Expr> Arguments::rest_exprs() const {
  std::vector<Expr> out;
  for (const Value& v : rest_) out.push_back(evaluator.to_expr(v, call.place));
  return out;
}

// ---- Calls ----

void require_in_range(const Arguments& a, const Integer& number, DType dtype) {
  const bool is_in_range =
      number.is_unsigned ? dtype.is_uint() && dtype.bits == 64 : arith::fits(number.value, dtype.element());
  if (!dtype.is_integer() || is_in_range) return;
  const std::string given = number.is_unsigned ? text(static_cast<uint64_t>(number.value)) : text(number.value);
  const std::string most = dtype.bits == 64 && dtype.is_uint() ? "2^64 - 1" : text(max_int(dtype.element()));
  a.fail({.what = text(given, " as ", dtype),
          .needs = text("a number from ", min_int(dtype.element()), " to ", most),
          .hint = "take a wider dtype, or write the number that it wraps around to"});
}

namespace {

/// T.float32(x), T.int64(): a conversion, or a variable of that dtype.
Value dtype_function(Evaluator& ev, const Expression& call, DType dtype) {
  Arguments a(ev, call, {"expr", "is_size_var"});
  const Value* v = a.find("expr");
  if (!v) {
    bool is_size = a.boolean("is_size_var", false);
    return Expr(is_size ? make_size_var("", dtype) : make_var("", dtype));
  }
  if (const std::string* s = v->as<std::string>()) {
    double value = *s == "inf" ? INFINITY : *s == "-inf" ? -INFINITY : NAN;
    if (!dtype.is_float() || (std::isnan(value) && *s != "nan"))
      a.fail({.what = text(string_literal(*s), " as a ", dtype),
              .needs = "\"inf\", \"-inf\" or \"nan\" of a float dtype",
              .hint = "write a number"});
    return constant(value, dtype);
  }
  if (const Integer* number = v->as<Integer>()) require_in_range(a, *number, dtype);
  return ev.located(call.place, [&]() -> Value {
    Expr e = ev.to_expr_like(*v, dtype, call.place);
    if (const auto why = cannot_hold(e, dtype)) a.fail(*why);
    return cast_to(dtype, std::move(e));
  });
}

/// A builtin as its row says.
Value builtin_call(Evaluator& ev, const Expression& call, const Builtin& row) {
  // `dtype` may be given by name; where the dtype follows from the row it is only a remark.
  std::optional<DType> dtype;
  Expression plain;
  plain.kind = Kind::call;
  plain.place = call.place;
  plain.items = call.items;
  for (const script::Keyword& k : call.keywords) {
    if (k.name == "dtype")
      dtype = ev.to_dtype(ev.eval(k.value), k.place);
    else {
      // Other keywords follow the positional arguments in the order in which they are written.
      plain.items.push_back(k.value);
    }
  }
  Arguments a(ev, plain, {"*args"});
  std::vector<Value> values = a.rest();
  bool is_first = row.rule == ResultRule::written_first, is_last = row.rule == ResultRule::written_last;
  if ((is_first || is_last) && !dtype) {
    if (values.empty())
      a.fail(
          {.what = text("T.", row.script, " without a dtype"), .needs = "its dtype as an argument", .hint = "add it"});
    auto at = is_first ? values.begin() : values.end() - 1;
    dtype = ev.to_dtype(*at, call.place);
    values.erase(at);
  }
  int n = static_cast<int>(values.size());
  if (n < row.min_args || (row.max_args >= 0 && n > row.max_args))
    a.fail({.what = text("T.", row.script, " with ", n, " arguments"),
            .needs = row.min_args == row.max_args ? text(row.min_args, " arguments")
                                                  : text("at least ", row.min_args, " arguments"),
            .hint = "check the call"});
  std::vector<Expr> args;
  for (const Value& v : values) args.push_back(ev.to_expr(v, call.place));
  return ev.located(call.place, [&]() -> Value {
    if (is_first || is_last) return Expr(sator::call(*dtype, std::string(row.op), args));
    return call_builtin(row.op, args);
  });
}

}  // namespace

Value Evaluator::call(const Expression& e) {
  if (std::ranges::any_of(e.keywords, [](const script::Keyword& k) { return k.name.empty(); })) return call_spread(e);
  Value callee = eval(e.items[0]);
  if (const LanguageName* l = callee.as<LanguageName>()) return call_language(l->name, e);
  if (const Method* m = callee.as<Method>())
    return m->object->as<NodeRef>() ? call_other(callee, e) : call_method(*m, e);
  if (const HostObjectRef* h = callee.as<HostObjectRef>()) return call_host(**h, e);
  return call_other(callee, e);
}

Value Evaluator::call_host(const HostObject& callee, const Expression& e) {
  Expression positional = e;
  positional.keywords.clear();
  std::vector<Value> args = Arguments(*this, positional, {"*args"}).rest();
  for (Value& v : args) v = for_host(v, e.place);
  std::vector<std::pair<std::string, Value>> keywords;
  for (const script::Keyword& k : e.keywords) keywords.emplace_back(k.name, for_host(eval(k.value), k.place));
  const Value result = located(e.place, [&] { return callee.call(args, keywords); });
  const HostObjectRef* h = result.as<HostObjectRef>();
  const std::shared_ptr<const NotedCall> noted = h ? (*h)->noted_call() : nullptr;
  return noted ? made(*noted, e.place) : result;
}

Value Evaluator::call_spread(const Expression& e) {
  Expression& call = spread_.emplace_back(e);  // lambdas among the arguments point into it
  call.keywords.clear();
  push_scope();
  for (const script::Keyword& k : e.keywords) {
    if (!k.name.empty()) {
      call.keywords.push_back(k);
      continue;
    }
    const Value v = eval(k.value);
    const DictValue* dict = v.as<DictValue>();
    if (!dict) fail(k.place, {.what = text("'**' of ", v.kind()), .needs = "a dictionary", .hint = "remove the '**'"});
    for (const auto& [key, item] : dict->items) {
      const std::string* name = key.as<std::string>();
      if (!name)
        fail(k.place, {.what = text("'**' of a dictionary with ", key.kind(), " as a key"), .needs = "names as keys"});
      call.keywords.push_back({*name, k.place, stand_in(item, k.place, text("spread ", call.keywords.size()))});
    }
  }
  Value out = this->call(call);
  pop_scope();
  return out;
}

Expression Evaluator::stand_in(const Value& v, Place place, std::string name) {
  define(name, v, place);
  Expression e;
  e.kind = Kind::name;
  e.place = place;
  e.text = std::move(name);
  return e;
}

Value Evaluator::for_host(const Value& v, Place place) {
  const Values* list = v.as<Values>();
  if (!list) return v;
  Values out{{}, list->is_tuple};
  for (const Value& item : list->items) out.items.push_back(for_host(item, place));
  return out;
}

Value Evaluator::made(const NotedCall& noted, Place place) {
  Expression call;
  call.kind = Kind::call;
  call.place = place;
  call.items.resize(1 + noted.args.size());
  push_scope();
  size_t number = 0;
  auto named = [&](const Value& v) { return stand_in(v, place, text("noted ", number++)); };
  for (size_t i = 0; i < noted.args.size(); ++i) call.items[i + 1] = named(noted.args[i]);
  for (const auto& [name, v] : noted.keywords) call.keywords.push_back({name, place, named(v)});
  Value out = call_language(noted.name, call);
  pop_scope();
  return out;
}

HostObjectRef Evaluator::host_member(std::string_view path) const {
  if (!around || path.find('.') == path.npos) return nullptr;
  Value at;
  try {
    for (std::string_view part : split(path, '.')) {
      const HostObjectRef* h = at.as<HostObjectRef>();
      if (std::optional<Value> found = at.is_none() ? around->value_of(std::string(part)) : std::nullopt)
        at = *std::move(found);
      else if (h)
        at = (*h)->attribute(std::string(part));
      else
        return nullptr;
    }
  } catch (const std::exception&) {  // an attribute that the object does not have
    return nullptr;
  }
  const HostObjectRef* h = at.as<HostObjectRef>();
  return h ? *h : nullptr;
}

Value Evaluator::call_language(const std::string& name, const Expression& e) {
  if (name.starts_with("T.")) {
    std::string_view rest = std::string_view(name).substr(2);
    if (ScriptFunction fn = find_script_function(rest)) return fn(*this, e);
    if (rest == "boolean") return dtype_function(*this, e, boolean);
    if (auto dtype = DType::parse(rest)) return dtype_function(*this, e, *dtype);
    if (const Builtin* row = find_builtin_by_script(rest)) return builtin_call(*this, e, *row);
    auto near = nearest_names(rest, script_function_names());
    fail(e.place,
         {.what = text(name, " is not part of the language of tensor programs"),
          .needs = "a name that T offers",
          .hint = near.empty() ? "check the spelling" : text("did you mean T.", join(near, " or T."), "?")});
  }
  if (is_python_function(name)) return call_python(name, e);
  // A module of the surroundings, by a name that scripts know too: tvm.nd.array(...).
  if (const HostObjectRef h = host_member(name)) return call_host(*h, e);
  fail(e.place,
       {.what = text(name, " cannot be called here"),
        .needs = "a function of T in a tensor program",
        .hint = "check the name"});
}

Value Evaluator::call_other(const Value& callee, const Expression& e) {
  if (const ModuleName* m = callee.as<ModuleName>(); m && !m->function.empty()) {
    Arguments a(*this, e, {"*args"});
    return Expr(sator::call(DType::Void(), "global:" + m->function, a.rest_exprs()));
  }
  fail(e.place,
       {.what = text(callee.kind(), " cannot be called"), .needs = "a function", .hint = "remove the parentheses"});
}

Value Evaluator::call_method(const Method& method, const Expression& e) {
  const Value& object = *method.object;
  if (method.name == "astype") {
    Arguments a(*this, e, {"dtype"});
    const Expr value = to_expr(object, e.place);
    const DType dtype = a.dtype("dtype");
    if (const auto why = cannot_hold(value, dtype)) fail(e.place, *why);
    return located(e.place, [&]() -> Value { return cast_to(dtype, value); });
  }
  if (method.name == "equal") return compare_pair("==", object, Arguments(*this, e, {"other"}).need("other"), e.place);
  const BufferRef& buffer = *object.as<BufferRef>();
  if (method.name == "scope") return buffer->scope();
  if (method.name == "access_ptr") return access_ptr(*buffer, e);
  // vload(indices, dtype), vstore(indices, value): `dtype` may be wider than the buffer's, then consecutive elements.
  bool is_store = method.name == "vstore";
  Arguments a(*this,
              e,
              is_store ? std::vector<std::string_view>{"begin", "value", "predicate"}
                       : std::vector<std::string_view>{"begin", "dtype", "predicate"});
  std::vector<Expr> indices = a.exprs("begin");
  if (indices.size() != buffer->shape.size())
    a.fail({.what = text(indices.size(), " indices for the buffer ", buffer->name, " of rank ", buffer->rank()),
            .needs = text(buffer->rank(), " indices"),
            .hint = "one index per dimension"});
  Expr value;
  DType dtype = is_store ? (value = a.expr("value"))->dtype : a.dtype("dtype", buffer->dtype);
  const Lanes factor(dtype.lanes / buffer->dtype.lanes, dtype.is_scalable && !buffer->dtype.is_scalable);
  if (factor.count > 1 && !indices.empty() && indices.back()->dtype.is_scalar())
    indices.back() = make<Ramp>(indices.back(), int_imm(1, indices.back()->dtype), Lanes(factor));
  Expr predicate = a.find("predicate") ? a.expr("predicate") : nullptr;
  auto check = [&](DType accessed) {
    if (!predicate || (accessed.lanes > 1 && predicate->dtype == DType::Bool(accessed.all_lanes()))) return;
    a.fail({.what = text("a predicate of dtype ", predicate->dtype, " for an access of ", accessed),
            .needs = "a vector of truth values with as many lanes as the access, which is a vector",
            .hint = "T.get_active_lane_mask(dtype, base, limit) makes one"});
  };
  if (!is_store) {
    Expr loaded = load(buffer, std::move(indices));
    check(loaded->dtype);
    return predicate ? predicated_load(loaded, predicate) : loaded;
  }
  check(dtype);
  Stmt stored = store(buffer, std::move(value), std::move(indices));
  return NodeRef(predicate ? Stmt(make<IfThenElse>(predicate, stored, Stmt())) : stored);
}

Value Evaluator::access_ptr(const Buffer& buffer, const Expression& e) {
  Arguments a(*this, e, {"access_mask", "ptr_type", "content_lanes", "offset", "extent"});
  int64_t mask = 0;
  if (const std::string* s = a.need("access_mask").as<std::string>()) {
    for (char c : *s) mask |= c == 'r' ? 1 : c == 'w' ? 2 : 0;
  } else {
    mask = a.integer("access_mask");
  }
  return located(e.place, [&]() -> Value {
    Expr offset = a.expr_or("offset", int_imm(0)), extent;
    if (const Value* given = a.find("extent")) {
      extent = to_expr(*given, e.place);
    } else if (!buffer.strides.empty()) {
      extent = buffer.strides[0] * buffer.shape[0] - offset;
    } else {
      extent = int_imm(1);
      for (const Expr& s : buffer.shape) extent = extent * s;
      extent = extent - offset;
    }
    Expr first = buffer.elem_offset ? buffer.elem_offset + offset : offset;
    DType dtype = buffer.dtype;
    if (int64_t lanes = a.integer("content_lanes", 1); lanes > 1) {
      first = div(first, int_imm(lanes, first->dtype));
      extent = div(extent, int_imm(lanes, extent->dtype));
      dtype = dtype.with_lanes(static_cast<int>(lanes));
    }
    return call_builtin("tir.tvm_access_ptr",
                        {sator::call(dtype, "tir.type_annotation", {}), buffer.data, first, extent, int_imm(mask)});
  });
}

}  // namespace sator::tir
