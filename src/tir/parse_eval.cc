#include "tir/parse_eval.h"

#include <cmath>
#include <limits>

#include "arith/analyzer.h"
#include "ir/literal.h"
#include "ir/script/parser.h"

namespace sator::tir {

using script::Expression;
using script::Place;
using Kind = script::ExpressionKind;

bool Value::is_plain() const {
  if (const Values* v = as<Values>()) {
    for (const Value& item : v->items) {
      if (!item.is_plain()) return false;
    }
    return true;
  }
  return is_none() || as<bool>() || as<Integer>() || as<double>() || as<std::string>();
}

std::string Value::kind() const {
  struct Names {
    std::string operator()(std::monostate) { return "None"; }
    std::string operator()(bool) { return "a bool"; }
    std::string operator()(const Integer&) { return "an integer"; }
    std::string operator()(double) { return "a real number"; }
    std::string operator()(const std::string&) { return "a string"; }
    std::string operator()(const Expr& e) { return text("an expression of dtype ", e->dtype); }
    std::string operator()(const BufferRef& b) { return text("the buffer ", b->name); }
    std::string operator()(const Subscript& s) { return text("a part of the buffer ", s.buffer->name); }
    std::string operator()(const Values& v) { return v.is_tuple ? "a tuple" : "a list"; }
    std::string operator()(const DictValue&) { return "a dictionary"; }
    std::string operator()(const LanguageName& n) { return n.name; }
    std::string operator()(const ModuleName& n) {
      return n.function.empty() ? "the module" : "the function " + n.function;
    }
    std::string operator()(const LambdaValue&) { return "a lambda"; }
    std::string operator()(const Method& m) { return "the method " + m.name; }
    std::string operator()(const std::shared_ptr<ScopeOpener>&) { return "a scope"; }
    std::string operator()(const MetaVar&) { return "a meta variable"; }
    std::string operator()(const HostObjectRef& h) { return h->kind(); }
    std::string operator()(const NodeRef& n) { return text("a ", n ? n->info().name : "null node"); }
  };
  return std::visit(Names(), is);
}

// ---- Scopes ----

void Evaluator::define(const std::string& name, Value value, Place place, bool may_replace) {
  auto [at, is_new] = scopes_.back().insert_or_assign(name, value);
  if (is_new || may_replace) return;
  fail(place,
       {.what = text("the name ", name, " is already defined in this scope"),
        .needs = "one definition per scope",
        .hint = "choose another name"});
}

const Value* Evaluator::find(const std::string& name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (auto at = scope->find(name); at != scope->end()) return &at->second;
  }
  return nullptr;
}

void Evaluator::in_macro(const script::Statement& def, const Expression& call,
                         FunctionRef<void(const script::Statement&)> body) {
  constexpr int kMostOpen = 64;
  if (macros_open_ == kMostOpen)
    fail(call.place,
         {.what = text("the macro ", def.text, " is called inside of ", kMostOpen, " others"),
          .needs = "macros that do not call themselves",
          .hint = "write a loop"});
  auto wrong = [&](std::string what) {
    fail(call.place,
         {.what = text("the macro ", def.text, ": ", what),
          .needs = "one argument for each parameter",
          .hint = "compare the call with the macro's header"});
  };
  // The arguments mean what they mean where the call stands.
  Expression positional = call;
  positional.keywords.clear();
  const std::vector<Value> given = Arguments(*this, positional, {"*args"}).rest();
  std::vector<std::pair<std::string, Value>> named;
  for (const script::Keyword& k : call.keywords) named.emplace_back(k.name, eval(k.value));
  std::vector<std::pair<std::string, Value>> bound;
  size_t next = 0;
  bool is_by_name = false;  // behind *args
  for (const script::Parameter& p : def.params) {
    if (p.is_double_star) {
      DictValue rest;
      for (auto& [name, value] : named) rest.items.emplace_back(name, std::move(value));
      named.clear();
      bound.emplace_back(p.name, std::move(rest));
      continue;
    }
    if (p.is_star && p.name == "*") {
      is_by_name = true;
      continue;
    }
    if (p.is_star) {
      Values rest;
      rest.items.assign(given.begin() + static_cast<std::ptrdiff_t>(next), given.end());
      rest.is_tuple = true;
      next = given.size();
      is_by_name = true;
      bound.emplace_back(p.name, std::move(rest));
      continue;
    }
    const auto by_name = std::ranges::find(named, p.name, &std::pair<std::string, Value>::first);
    if (!is_by_name && next < given.size()) {
      if (by_name != named.end()) wrong(text("two arguments for ", p.name));
      bound.emplace_back(p.name, given[next++]);
    } else if (by_name != named.end()) {
      bound.emplace_back(p.name, std::move(by_name->second));
      named.erase(by_name);
    } else if (p.default_value.present()) {
      bound.emplace_back(p.name, eval(p.default_value));
    } else {
      wrong(text("no argument for ", p.name));
    }
  }
  if (next < given.size()) wrong(text(given.size() - next, " arguments too many"));
  if (!named.empty()) wrong(text("it has no parameter ", named[0].first));

  bool is_hygienic = true;
  for (const Expression& d : def.decorators)
    for (const script::Keyword& k : d.keywords)
      if (k.name == "hygienic") is_hygienic = k.value.integer != 0;
  auto hidden = is_hygienic ? std::exchange(scopes_, {}) : std::vector<std::unordered_map<std::string, Value>>();
  ++macros_open_;
  push_scope();
  for (auto& [name, value] : bound) define(name, std::move(value), call.place);
  body(def);
  pop_scope();
  --macros_open_;
  if (is_hygienic) scopes_ = std::move(hidden);
}

std::vector<std::string> Evaluator::names_in_scope() const {
  std::vector<std::string> names;
  for (const auto& scope : scopes_) {
    for (const auto& [name, value] : scope) names.push_back(name);
  }
  return names;
}

Value Evaluator::unknown_name(const Expression& e) {
  if (const Value* v = constant_named(e.text, e.place)) return *v;
  if (around) {
    if (std::optional<Value> value = located(e.place, [&] { return around->value_of(e.text); }))
      return *std::move(value);
  }
  if (is_python_function(e.text)) return LanguageName{e.text};
  auto near = nearest_names(e.text, names_in_scope());
  fail(e.place,
       {.what = text("the name ", e.text, " is not defined"),
        .needs = around ? "a name of this program, or of the Python code around it"
                        : "a name of this program; values from outside of it are unknown here",
        .hint = near.empty() ? std::string("write the value itself") : text("did you mean ", join(near, " or "), "?")});
}

// ---- Expressions ----

Value Evaluator::eval(const Expression& e) {
  switch (e.kind) {
    case Kind::name: {
      if (const Value* v = find(e.text)) return *v;
      if (auto at = languages.find(e.text); at != languages.end()) return LanguageName{at->second};
      return unknown_name(e);
    }
    case Kind::integer: return Integer{e.integer, e.is_unsigned};
    case Kind::real: return e.real;
    case Kind::string: return e.text;
    case Kind::formatted: return formatted(e);
    case Kind::none: return {};
    case Kind::boolean: return e.integer != 0;
    case Kind::tuple:
    case Kind::list: {
      Values out;
      out.is_tuple = e.is(Kind::tuple);
      for (const Expression& item : e.items) {
        if (!item.is(Kind::star)) {
          out.items.push_back(eval(item));
          continue;
        }
        Value v = eval(item.items[0]);
        const Values* inner = v.as<Values>();
        if (!inner)
          fail(item.place, {.what = text("'*' of ", v.kind()), .needs = "a list or a tuple", .hint = "remove the '*'"});
        out.items.insert(out.items.end(), inner->items.begin(), inner->items.end());
      }
      return out;
    }
    case Kind::dict: {
      DictValue out;
      for (size_t i = 0; i < e.items.size(); i += 2) out.items.emplace_back(eval(e.items[i]), eval(e.items[i + 1]));
      return out;
    }
    case Kind::attribute: return attribute(e);
    case Kind::subscript: return subscript(e);
    case Kind::call: return call(e);
    case Kind::unary:
      if (const auto v = wide_constant(e)) return *v;
      return unary(e);
    case Kind::binary:
      if (const auto v = wide_constant(e)) return *v;
      return binary(e.text, eval(e.items[0]), eval(e.items[1]), e.place);
    case Kind::compare: return compare(e);
    case Kind::logical: return logical(e);
    case Kind::conditional: return conditional(e);
    case Kind::lambda: return LambdaValue{&e};
    case Kind::comprehension: return comprehension(e);
    default: fail(e.place, {.what = "this has no value here", .needs = "an expression", .hint = "remove it"});
  }
}

Value Evaluator::attribute(const Expression& e) {
  Value object = eval(e.items[0]);
  if (const LanguageName* l = object.as<LanguageName>()) {
    if (l->name.starts_with(kMacro) || is_python_function(l->name))
      fail(e.place,
           {.what = text(l->name, " has no attribute ", e.text), .needs = "its name alone", .hint = "call it"});
    if (l->name == "tvm" && e.text == "tir") return LanguageName{"T"};  // tvm.tir.const(1, "int32")
    return LanguageName{text(l->name, ".", e.text)};
  }
  if (const ModuleName* m = object.as<ModuleName>(); m && m->function.empty()) return ModuleName{e.text};
  if (const HostObjectRef* h = object.as<HostObjectRef>())
    return located(e.place, [&] { return (*h)->attribute(e.text); });
  if (const BufferRef* b = object.as<BufferRef>()) {
    const Buffer& buffer = **b;
    auto list = [](const std::vector<Expr>& exprs) {
      Values out;
      for (const Expr& x : exprs) out.items.push_back(x);
      return out;
    };
    if (e.text == "data") return Expr(buffer.data);
    if (e.text == "shape") return list(buffer.shape);
    if (e.text == "strides") return list(buffer.strides);
    if (e.text == "dtype") return buffer.dtype.name();
    if (e.text == "name") return buffer.name;
    if (e.text == "elem_offset") return buffer.elem_offset ? buffer.elem_offset : int_imm(0);
    if (e.text == "vload" || e.text == "vstore" || e.text == "access_ptr" || e.text == "scope")
      return Method{std::make_shared<Value>(object), e.text};
  }
  if (object.as<Expr>() || object.as<Subscript>()) {
    if (e.text == "dtype") return to_expr(object, e.place)->dtype.name();
    if (e.text == "astype" || e.text == "equal") return Method{std::make_shared<Value>(object), e.text};
  }
  if (auto v = other_attribute(object, e.text, e)) return *v;
  fail(e.place,
       {.what = text(object.kind(), " has no attribute ", e.text),
        .needs = "an attribute of buffers (data, shape, strides, dtype, elem_offset) or expressions (dtype, astype)",
        .hint = "check the name"});
}

std::optional<Value> Evaluator::other_attribute(const Value&, const std::string&, const Expression&) { return {}; }

std::vector<SubscriptIndex> Evaluator::eval_indices(const Expression& index, const Buffer* buffer) {
  std::vector<SubscriptIndex> out;
  auto add = [&](const Expression& e) {
    if (!e.is(Kind::slice)) {
      Value v = eval(e.is(Kind::star) ? e.items[0] : e);
      if (const Values* inner = v.as<Values>()) {  // A[i] where i = (vi, vj)
        for (const Value& item : inner->items) out.push_back({to_expr(item, e.place), {}, {}});
      } else {
        out.push_back({to_expr(v, e.place), {}, {}});
      }
      return;
    }
    SubscriptIndex i;
    DType dtype = i32;
    Value start = e.items[0].present() ? eval(e.items[0]) : Value(Integer{0, false});
    Value stop;
    if (e.items[1].present()) {
      stop = eval(e.items[1]);
    } else if (buffer && out.size() < buffer->shape.size()) {
      stop = buffer->shape[out.size()];
    } else {
      fail(e.place, {.what = "a slice without an end", .needs = "start:stop", .hint = "write where it ends"});
    }
    // A bare integer takes the dtype of the other end.
    if (const Expr* x = start.as<Expr>())
      dtype = (*x)->dtype;
    else if (const Expr* x = stop.as<Expr>())
      dtype = (*x)->dtype;
    i.start = to_expr_like(start, dtype, e.place);
    i.stop = to_expr_like(stop, dtype, e.place);
    if (e.items[2].present()) i.step = to_expr_like(eval(e.items[2]), dtype, e.items[2].place);
    out.push_back(std::move(i));
  };
  if (index.is(Kind::tuple)) {
    for (const Expression& item : index.items) add(item);
  } else {
    add(index);
  }
  return out;
}

Value Evaluator::subscript(const Expression& e) {
  Value object = eval(e.items[0]);
  const Expression& index = e.items[1];
  if (const BufferRef* b = object.as<BufferRef>()) {
    Subscript out{*b, eval_indices(index, b->get())};
    if (out.indices.size() != (*b)->shape.size())
      fail(e.place,
           {.what = text(out.indices.size(), " indices for the buffer ", (*b)->name, " of rank ", (*b)->rank()),
            .needs = text((*b)->rank(), " indices"),
            .hint = "one index per dimension; C[()] for rank 0"});
    return out;
  }
  if (const Values* list = object.as<Values>()) {
    if (index.is(Kind::slice)) return part_of(*list, index);
    Value i = eval(index);
    const Integer* at = i.as<Integer>();
    auto size = static_cast<int64_t>(list->items.size());
    if (!at || at->is_unsigned || at->value >= size || at->value < -size)
      fail(index.place,
           {.what = text("an index that does not fit a list of ", size, " items"),
            .needs = "a constant integer within the list",
            .hint = "check the index"});
    return list->items[at->value < 0 ? at->value + size : at->value];
  }
  if (const DictValue* dict = object.as<DictValue>()) {
    const Value at = eval(index);
    const auto same = [&](const Value& key) {
      if (const std::string* s = at.as<std::string>()) return key.as<std::string>() && *key.as<std::string>() == *s;
      const Integer *i = at.as<Integer>(), *k = key.as<Integer>();
      return i && k && i->value == k->value;
    };
    for (const auto& [key, value] : dict->items)
      if (same(key)) return value;
    fail(index.place,
         {.what = "the dictionary has no such key", .needs = "one of its texts or integers", .hint = "check the key"});
  }
  if (const HostObjectRef* h = object.as<HostObjectRef>()) {
    const Value at = eval(index);
    return located(e.place, [&] { return (*h)->element(at); });
  }
  return subscript_other(object, e);
}

Value Evaluator::subscript_other(const Value& object, const Expression& e) {
  if (const LanguageName* l = object.as<LanguageName>(); l && (l->name == "T.Buffer" || l->name == "T.Ptr")) {
    // The older form T.Buffer[shape, dtype].
    Expression as_call = e;
    as_call.kind = Kind::call;
    as_call.items = {e.items[0]};
    const Expression& index = e.items[1];
    bool is_shape = index.is(Kind::tuple) && index.items.size() >= 2 && !index.items[1].is(Kind::string) &&
                    !index.items[1].is(Kind::attribute);
    if (index.is(Kind::tuple) && !is_shape)
      as_call.items.insert(as_call.items.end(), index.items.begin(), index.items.end());
    else
      as_call.items.push_back(index);
    return call_language(l->name, as_call);
  }
  // x: T.let[T.float32] = ..., of newer programs.
  if (const LanguageName* l = object.as<LanguageName>(); l && l->name == "T.let") return eval(e.items[1]);
  fail(e.place,
       {.what = text(object.kind(), " cannot be indexed"),
        .needs = "a buffer or a list before '['",
        .hint = object.as<Expr>() ? "declare a buffer over the pointer: T.Buffer(shape, dtype, data=...)"
                                  : "check the name"});
}

// ---- Conversions ----

Expr Evaluator::to_expr(const Value& v, Place place) {
  if (const Expr* e = v.as<Expr>()) return *e;
  if (const Subscript* s = v.as<Subscript>()) return to_load(*s, place);
  if (const bool* b = v.as<bool>()) return bool_imm(*b);
  if (const Integer* i = v.as<Integer>()) {
    bool small = !i->is_unsigned && i->value >= INT32_MIN && i->value <= INT32_MAX;
    return int_imm(i->value, small ? i32 : i->is_unsigned ? u64 : i64);
  }
  if (const double* d = v.as<double>()) return float_literal(*d);
  if (const std::string* s = v.as<std::string>()) return string_imm(*s);
  if (const MetaVar* m = v.as<MetaVar>()) return to_expr(*m->value, place);
  if (const BufferRef* b = v.as<BufferRef>(); b && (*b)->shape.empty()) return load(*b, {});
  std::string hint =
      v.as<BufferRef>() ? "load an element, or name its pointer with .data" : "check what the name stands for";
  fail(place,
       {.what = text(v.kind(), " where an expression is needed"),
        .needs = "an expression of the program",
        .hint = std::move(hint)});
}

Expr Evaluator::to_expr_like(const Value& v, DType dtype, Place place) {
  DType element = dtype.element();
  if (const bool* b = v.as<bool>(); b && dtype.is_bool()) return bool_imm(*b);
  if (const Integer* i = v.as<Integer>()) {
    if (dtype.is_integer() || dtype.is_bool()) return cast_to(element, int_imm(i->value, i->is_unsigned ? u64 : i64));
    if (dtype.is_float()) {
      double value =
          i->is_unsigned ? static_cast<double>(static_cast<uint64_t>(i->value)) : static_cast<double>(i->value);
      return float_imm(value, element);
    }
  }
  if (const double* d = v.as<double>(); d && dtype.is_float()) return float_imm(*d, element);
  return to_expr(v, place);
}

std::vector<Expr> Evaluator::to_exprs(const Value& v, Place place) {
  std::vector<Expr> out;
  if (const Values* list = v.as<Values>()) {
    for (const Value& item : list->items) out.push_back(to_expr(item, place));
  } else {
    out.push_back(to_expr(v, place));
  }
  return out;
}

DType Evaluator::to_dtype(const Value& v, Place place) {
  std::string name;
  if (const std::string* s = v.as<std::string>())
    name = *s;
  else if (const LanguageName* l = v.as<LanguageName>(); l && l->name.starts_with("T."))
    name = l->name.substr(2);
  if (v.as<std::string>() && (name.empty() || name == "void")) return DType::Void();
  if (name == "boolean") name = "bool";
  if (name == "int") name = "int32";
  if (name == "float") name = "float32";
  if (auto dtype = name.empty() ? std::nullopt : DType::parse(name)) return *dtype;
  fail(place,
       {.what = text(name.empty() ? v.kind() : string_literal(name), " is not a dtype"),
        .needs = "a name like \"float32\", \"int8x4\" or \"handle\"",
        .hint = "check the spelling"});
}

NodeRef Evaluator::to_attribute(const Value& v, Place place) {
  if (v.is_none()) return nullptr;
  if (const NodeRef* n = v.as<NodeRef>()) return *n;
  if (const BufferRef* b = v.as<BufferRef>()) return *b;
  if (const Values* list = v.as<Values>()) {
    std::vector<NodeRef> items;
    for (const Value& item : list->items) items.push_back(to_attribute(item, place));
    return make<Array>(std::move(items));
  }
  if (v.as<DictValue>()) return make<Dict>(to_attrs(v, place));
  if (const Subscript* s = v.as<Subscript>(); s && s->has_slice()) return to_region(*s, place);
  return to_expr(v, place);
}

Attrs Evaluator::to_attrs(const Value& v, Place place) {
  const DictValue* dict = v.as<DictValue>();
  if (!dict)
    fail(place,
         {.what = text(v.kind(), " where a dictionary is needed"),
          .needs = "{\"name\": value, ...}",
          .hint = "write a dictionary"});
  Attrs out;
  for (const auto& [key, value] : dict->items) {
    const std::string* name = key.as<std::string>();
    if (!name)
      fail(place, {.what = text(key.kind(), " as a key"), .needs = "strings as keys", .hint = "quote the key"});
    // Newer programs call tensor programs tirx.
    const std::string key_here = name->starts_with("tirx.") ? "tir." + name->substr(5) : *name;
    if (!out.emplace(key_here, to_attribute(value, place)).second)
      fail(place,
           {.what = text("the key ", string_literal(*name), " occurs twice"),
            .needs = "each key once",
            .hint = "remove one"});
  }
  return out;
}

Expr extent_between(const Expr& start, const Expr& stop) {
  if (is_zero(start) && start->dtype == stop->dtype) return stop;
  // As the printer writes it: start + extent.
  if (const Add* n = stop.as<Add>(); n && equal(n->a, start) && n->b->dtype == stop->dtype) return n->b;
  if (const Add* n = stop.as<Add>(); n && equal(n->b, start) && n->a->dtype == stop->dtype && !n->b.as<IntImm>())
    return n->a;
  return arith::Analyzer().simplify(stop - start);
}

BufferRegionRef Evaluator::to_region(const Subscript& s, Place place) {
  std::vector<RangeRef> ranges;
  for (const SubscriptIndex& i : s.indices) {
    if (i.step && !is_one(i.step))
      fail(place,
           {.what = text("a region of ", s.buffer->name, " with a step"),
            .needs = "start:stop without a step",
            .hint = "name the whole range"});
    if (!i.stop && i.start->dtype.lanes > 1)
      fail(place,
           {.what = text("a vector index in a region of ", s.buffer->name),
            .needs = "scalar indices or slices",
            .hint = "write the range as a slice"});
    Expr extent = i.stop ? located(place, [&] { return extent_between(i.start, i.stop); }) : int_imm(1, i.start->dtype);
    ranges.push_back(make<Range>(i.start, std::move(extent)));
  }
  return make<BufferRegion>(s.buffer, std::move(ranges));
}

std::vector<Expr> Evaluator::to_indices(const Subscript& s, Place place) {
  std::vector<Expr> out;
  for (size_t k = 0; k < s.indices.size(); ++k) {
    const SubscriptIndex& i = s.indices[k];
    if (!i.stop) {
      if (!i.start->dtype.is_integer() && !i.start->dtype.is_bool())
        fail(place,
             {.what = text("index ", k, " of ", s.buffer->name, " has dtype ", i.start->dtype),
              .needs = "integer indices",
              .hint = "cast the index"});
      out.push_back(i.start);
      continue;
    }
    const Expr extent = located(place, [&] { return extent_between(i.start, i.stop); });
    if (std::optional<Lanes> all = as_lanes(extent); all && all->scalable && all->count > 1 && !i.step) {
      out.push_back(make<Ramp>(i.start, int_imm(1, i.start->dtype), *all));
      continue;
    }
    auto span = as_int(extent);
    auto step = i.step ? as_int(i.step) : std::optional<int64_t>(1);
    int64_t lanes =
        span && step && *step > 0 ? ceildiv(int_imm(*span, i64), int_imm(*step, i64)).as<IntImm>()->value : 0;
    if (lanes < 1 || lanes > std::numeric_limits<uint16_t>::max())
      fail(place,
           {.what = text("the length of the slice in ", s.buffer->name, " is not a constant from 1 to 65535"),
            .needs = "a vector of a constant number of elements, with a positive step",
            .hint = "loop over the elements instead"});
    if (lanes == 1) {
      out.push_back(i.start);
      continue;
    }
    Expr stride = int_imm(*step, i.start->dtype);
    out.push_back(make<Ramp>(i.start, std::move(stride), static_cast<int>(lanes)));
  }
  for (size_t k = 0; k + 1 < out.size(); ++k) {
    if (out[k]->dtype.lanes > 1)
      fail(place,
           {.what = text("index ", k, " of ", s.buffer->name, " is a vector"),
            .needs = "a vector as the last index only",
            .hint = "loop over the other dimensions"});
  }
  return out;
}

Expr Evaluator::to_load(const Subscript& s, Place place) {
  std::vector<Expr> indices = to_indices(s, place);
  return spanned(make<BufferLoad>(s.buffer, std::move(indices)), source.span(place));
}

}  // namespace sator::tir
