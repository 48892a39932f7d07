#include "relax/value.h"

namespace sator::relax {

void append_text(std::string& out, const Value& value) {
  if (value.is_none())
    out += "None";
  else if (auto* b = value.as<bool>())
    out += *b ? "True" : "False";
  else if (auto* i = value.as<int64_t>())
    out += text("the integer ", *i);
  else if (auto* d = value.as<double>())
    out += text("the number ", *d);
  else if (auto* s = value.as<std::string>())
    out += text("the string ", string_literal(*s));
  else if (value.as<Expr>())
    out += "a scalar expression";
  else if (auto* e = value.as<RExpr>())
    out += text("a value of the graph (", (*e)->info().name, ")");
  else if (auto* s = value.as<StructInfo>())
    out += text("struct info (", (*s)->info().name, ")");
  else if (auto* l = value.as<Value::List>())
    out += text(value.is_tuple ? "a tuple of " : "a list of ", l->size());
  else if (value.as<Value::Dict>())
    out += "a dictionary";
  else
    out += "an object";
}

namespace {
/// The scalar behind a PrimValue or a plain scalar expression; null for anything else.
Expr scalar_of(const Value& v) {
  if (auto* e = v.as<Expr>()) return *e;
  if (auto* r = v.as<RExpr>()) {
    if (const PrimValue* p = r->as<PrimValue>()) return p->value;
  }
  return nullptr;
}
}  // namespace

std::optional<int64_t> to_int(const Value& v) {
  if (auto* i = v.as<int64_t>()) return *i;
  if (auto* b = v.as<bool>()) return *b;
  if (Expr e = scalar_of(v)) return as_int(e);
  return {};
}
std::optional<bool> to_bool(const Value& v) {
  if (auto* b = v.as<bool>()) return *b;
  if (auto i = to_int(v); i && (*i == 0 || *i == 1)) return *i == 1;
  return {};
}
std::optional<double> to_double(const Value& v) {
  if (auto* d = v.as<double>()) return *d;
  if (Expr e = scalar_of(v)) {
    if (const FloatImm* f = e.as<FloatImm>()) return f->value;
  }
  if (auto i = to_int(v)) return static_cast<double>(*i);
  return {};
}
std::optional<std::string> to_string(const Value& v) {
  if (auto* s = v.as<std::string>()) return *s;
  if (auto* e = v.as<Expr>()) {
    if (const StringImm* s = e->as<StringImm>()) return s->value;
  }
  if (auto* r = v.as<RExpr>()) {
    if (const RString* s = r->as<RString>()) return s->value;
    if (const DTypeImm* d = r->as<DTypeImm>()) return d->value.name();
  }
  return {};
}
std::optional<DType> to_dtype(const Value& v) {
  auto name = to_string(v);
  if (!name) return {};
  if (name->empty() || *name == "void") return DType::Void();
  return DType::parse(*name);
}

Expr to_prim(const Value& v) {
  if (Expr e = scalar_of(v)) return e;
  if (auto* b = v.as<bool>()) return bool_imm(*b);
  if (auto* i = v.as<int64_t>()) return int_imm(*i, i64);
  if (auto* d = v.as<double>()) return float_imm(*d, f32);
  return nullptr;
}

RExpr to_rexpr(const Value& v) {
  if (auto* r = v.as<RExpr>()) return *r;
  if (auto* s = v.as<std::string>()) return string_value(*s);
  if (Expr e = to_prim(v)) return prim_value(e);
  if (auto* l = v.as<Value::List>()) {
    std::vector<RExpr> items;
    for (const Value& item : *l) {
      items.push_back(to_rexpr(item));
      if (!items.back()) return nullptr;
    }
    return tuple(std::move(items));
  }
  return nullptr;
}

RExpr to_shape(const Value& v) {
  if (auto* l = v.as<Value::List>()) {
    std::vector<Expr> values;
    for (const Value& item : *l) {
      values.push_back(to_prim(item));
      if (!values.back()) return nullptr;
    }
    return shape_expr(std::move(values));
  }
  return v.as<RExpr>() ? *v.as<RExpr>() : nullptr;
}

std::optional<std::vector<StructInfo>> to_sinfos(const Value& v) {
  std::vector<StructInfo> out;
  for (const Value& item : to_list(v)) {
    auto* s = item.as<StructInfo>();
    if (!s) return {};
    out.push_back(*s);
  }
  return out;
}

std::vector<Value> to_list(const Value& v) {
  if (auto* l = v.as<Value::List>()) return *l;
  if (auto* r = v.as<RExpr>()) {
    if (const Tuple* t = r->as<Tuple>()) return {t->items.begin(), t->items.end()};
    if (const ShapeExpr* s = r->as<ShapeExpr>()) return {s->values.begin(), s->values.end()};
  }
  return {v};
}

NodeRef to_attribute(const Value& v) {
  if (v.is_none()) return nullptr;
  if (auto* b = v.as<bool>()) return bool_imm(*b);
  if (auto* i = v.as<int64_t>()) return int_imm(*i, *i == static_cast<int32_t>(*i) ? i32 : i64);
  if (auto* d = v.as<double>()) return float_imm(*d, f64);
  if (auto* s = v.as<std::string>()) return string_imm(*s);
  if (auto* e = v.as<Expr>()) return *e;
  if (auto* e = v.as<RExpr>()) return *e;
  if (auto* e = v.as<StructInfo>()) return *e;
  if (auto* e = v.as<NodeRef>()) return *e;
  if (auto* l = v.as<Value::List>()) {
    std::vector<NodeRef> items;
    for (const Value& item : *l) items.push_back(to_attribute(item));
    return make<Array>(std::move(items));
  }
  Attrs items;
  for (const auto& [key, value] : *v.as<Value::Dict>()) {
    auto name = to_string(key);
    if (!name)
      fail({.what = text("a key of an attribute dictionary is ", key),
            .needs = "strings as keys",
            .hint = "quote the key"});
    items[*name] = to_attribute(value);
  }
  return make<Dict>(std::move(items));
}

}  // namespace sator::relax
