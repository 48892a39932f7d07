// Expressions of tensor programs as Python builds them: tir.Var, tir.const, x.same_as(y), x.a.dtype.
#include "program_values.h"

#include "base/text.h"
#include "cases.h"
#include "ir/builtins.h"

namespace sator::conformance {

using script::Expression;
using tir::Arguments;
using tir::Evaluator;
using tir::Integer;
using tir::Value;
using tir::Values;

namespace {

constexpr const char* kSameAs = "same_as()";

Value variable(Evaluator& ev, const Expression& call, bool is_size) {
  Arguments a(ev, call, {"name", "dtype", "span"});
  const Value* dtype = a.find("dtype");
  if (dtype && !dtype->as<std::string>()) throw Unsupported{"types of variables as objects"};
  std::string name = a.str("name", std::string("v"));
  DType d = a.dtype("dtype", i32);
  return Expr(is_size ? make_size_var(name, d) : make_var(name, d));
}

/// A number of a dtype. Errors: the dtype does not hold it.
Value constant(const Arguments& a, const Value& value, std::optional<DType> dtype) {
  const Expr* given = value.as<Expr>();
  if (given && (!dtype || (*given)->dtype == *dtype)) return *given;
  if (const bool* b = value.as<bool>()) {
    DType d = dtype.value_or(boolean);
    return d.is_float() ? Expr(float_imm(*b, d)) : Expr(int_imm(*b, d));
  }
  if (const double* real = value.as<double>()) {
    DType d = dtype.value_or(f32);
    if (d.is_float()) return Expr(float_imm(*real, d));
    throw Unsupported{"a real number as " + d.name()};
  }
  const Integer* i = value.as<Integer>();
  if (!i) throw Unsupported{"a constant of this kind"};
  DType d = dtype.value_or(i32);
  if (d.lanes != 1) throw Unsupported{"vectors of constants"};
  if (d.is_float()) return Expr(float_imm(static_cast<double>(i->value), d));
  bool holds =
      d.is_uint() ? (i->is_unsigned ? d.bits == 64 : i->value >= 0 && (d.bits >= 63 || i->value < int64_t{1} << d.bits))
      : d.is_int()
          ? !i->is_unsigned &&
                (d.bits >= 64 || (i->value >= -(int64_t{1} << (d.bits - 1)) && i->value < int64_t{1} << (d.bits - 1)))
          : true;
  if (!holds)
    a.fail({.what = text(i->value, " as ", d.name()),
            .needs = "a number that the dtype holds",
            .hint = "use a wider dtype"});
  if (d.is_uint() && d.bits > 32) throw Unsupported{"unsigned constants of 64 bits"};
  return Expr(int_imm(i->value, d));
}

}  // namespace

bool in_language(const std::string& name) {
  if (tir::find_script_function(name) || find_builtin_by_script(name)) return true;
  return name != "handle" && DType::parse(name).has_value();
}

namespace {

template <class... Nodes>
std::optional<Value> operand(const Expr& e, const std::string& name) {
  std::optional<Value> out;
  auto look = [&](const auto* n) {
    if (n) out = name == "a" ? n->a : n->b;
  };
  (look(e.as<Nodes>()), ...);
  return out;
}

}  // namespace

namespace {

/// The name without the module of Python that has it; nothing where it lies deeper.
std::optional<std::string> plain_name(const std::string& full) {
  for (std::string_view prefix : {"tvm.tir.", "tvm.runtime.", "T.expr.", "T.op.", "T.", "te."}) {
    if (!full.starts_with(prefix)) continue;
    std::string name = full.substr(prefix.size());
    if (name.find('.') == name.npos) return name;
  }
  return {};
}

}  // namespace

std::optional<Value> program_value(Evaluator& ev, const std::string& full, const Expression& call,
                                   const std::function<Value(const std::string&)>& in_script) {
  if (full == "T.IndexMap.from_func") return index_map_of(ev, call);
  std::optional<std::string> plain = plain_name(full);
  if (!plain) return {};
  std::string name = *plain;
  if (name == "Var" || name == "var") return variable(ev, call, false);
  if (name == "SizeVar" || name == "size_var") return variable(ev, call, true);
  if (name == "const") {
    Arguments a(ev, call, {"value", "dtype", "span"});
    return constant(a, a.need("value"), a.find("dtype") ? std::optional(a.dtype("dtype")) : std::nullopt);
  }
  if (name == "convert") {
    Arguments a(ev, call, {"value"});
    const Value& v = a.need("value");
    return v.as<Integer>() || v.as<bool>() || v.as<double>() ? constant(a, v, {}) : v;
  }
  if (name == "IntImm" || name == "FloatImm") {
    Arguments a(ev, call, {"dtype", "value", "span"});
    return constant(a, a.need("value"), a.dtype("dtype"));
  }
  if (name == "StringImm") return Expr(string_imm(Arguments(ev, call, {"value", "span"}).str("value")));
  if (name == "Let") {
    Arguments a(ev, call, {"var", "value", "body", "span"});
    Expr var = a.expr("var"), value = a.expr("value");
    const auto* v = var.as<Var>();
    if (!v) throw Unsupported{"a let of no variable"};
    if (v->dtype != value->dtype)
      a.fail({.what = text("a ", value->dtype.name(), " is bound to a variable of dtype ", v->dtype.name()),
              .needs = "one dtype",
              .hint = "cast the value"});
    return Expr(make<Let>(value, VarRef(v), a.expr("body")));
  }
  if (name == "decl_buffer") {
    Arguments a(ev,
                call,
                {"shape",
                 "dtype",
                 "name",
                 "data",
                 "strides",
                 "elem_offset",
                 "scope",
                 "data_alignment",
                 "offset_factor",
                 "buffer_type",
                 "axis_separators",
                 "span"});
    for (const char* other : {"data", "elem_offset", "buffer_type", "axis_separators", "offset_factor"}) {
      if (a.find(other)) throw Unsupported{text("decl_buffer with ", other)};
    }
    std::string buffer = a.str("name", std::string("buffer"));
    DType dtype = a.dtype("dtype", f32);
    BufferRef plain = make_buffer(buffer, a.exprs("shape"), dtype, a.str("scope", std::string("global")));
    if (!a.find("strides")) return plain;
    return with(*plain, &Buffer::strides, a.exprs("strides"));
  }
  static const std::map<std::string, std::string> kSame = {
      {"Cast", "Cast"}, {"indexdiv", "floordiv"}, {"indexmod", "floormod"}};
  if (auto at = kSame.find(name); at != kSame.end()) name = at->second;
  if (!in_language(name)) throw Unsupported{full};
  return in_script("T." + name);
}

std::optional<Value> program_attribute(Evaluator& ev, const Value& object, const std::string& name) {
  // Called: program_method.
  if (name == "same_as") return tir::DictValue{{{std::string(kSameAs), object}}};
  if (is_index_map_method(object, name)) return tir::DictValue{{{name, object}}};
  const Expr* given = object.as<Expr>();
  if (!given && !object.as<tir::Subscript>()) return {};
  Expr e = given ? *given : ev.to_expr(object, {});
  if (name == "a" || name == "b") {
    if (auto v =
            operand<Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min, Max, EQ, NE, LT, LE, GT, GE, And, Or>(e, name))
      return v;
    if (const Not* n = e.as<Not>(); n && name == "a") return n->a;
  }
  if (name == "value") {
    if (const IntImm* n = e.as<IntImm>()) {
      if (n->dtype.is_bool()) return n->value != 0;
      return Integer{n->value, false};
    }
    if (const FloatImm* n = e.as<FloatImm>()) return n->value;
    if (const StringImm* n = e.as<StringImm>()) return n->value;
    if (const Cast* n = e.as<Cast>()) return n->value;
    if (const Broadcast* n = e.as<Broadcast>()) return n->value;
    if (const Let* n = e.as<Let>()) return n->value;
  }
  if (const Var* n = e.as<Var>(); n && name == "name") return n->name;
  if (const Call* n = e.as<Call>()) {
    if (name == "op") return tir::DictValue{{{std::string("name"), n->op}}};
    if (name == "args") {
      Values out;
      for (const Expr& a : n->args) out.items.push_back(a);
      return out;
    }
  }
  if (const BufferLoad* n = e.as<BufferLoad>()) {
    if (name == "buffer") return n->buffer;
    if (name == "indices") {
      Values out;
      for (const Expr& a : n->indices) out.items.push_back(a);
      return out;
    }
  }
  auto number_of = [](Lanes lanes) {
    return lanes.scalable ? Value(lane_count(lanes)) : Value(Integer{lanes.count, false});
  };
  if (const Ramp* n = e.as<Ramp>()) {
    if (name == "base") return n->base;
    if (name == "stride") return n->stride;
    if (name == "lanes") return number_of(n->lanes);
  }
  if (const Broadcast* n = e.as<Broadcast>(); n && name == "lanes") return number_of(n->lanes);
  if (const Select* n = e.as<Select>()) {
    if (name == "condition") return n->condition;
    if (name == "true_value") return n->true_value;
    if (name == "false_value") return n->false_value;
  }
  return {};
}

std::optional<Value> program_method(Evaluator& ev, const Value& callee, const Expression& call) {
  const tir::DictValue* method = callee.as<tir::DictValue>();
  const std::string* name = method && method->items.size() == 1 ? method->items[0].first.as<std::string>() : nullptr;
  if (!name) return {};
  const Value& object = method->items[0].second;
  if (*name != kSameAs) return index_map_method(ev, object, *name, call);
  const Value other = Arguments(ev, call, {"other"}).need("other");
  if (const BufferRef *a = object.as<BufferRef>(), *b = other.as<BufferRef>(); a && b) return *a == *b;
  if (const NodeRef *a = object.as<NodeRef>(), *b = other.as<NodeRef>(); a && b) return *a == *b;
  if (object.as<Expr>() || other.as<Expr>()) return ev.to_expr(object, call.place) == ev.to_expr(other, call.place);
  throw Unsupported{"same_as of such values"};
}

}  // namespace sator::conformance
