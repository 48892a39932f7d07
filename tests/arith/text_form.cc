#include "arith/text_form.h"

#include <cctype>
#include <cstdlib>

#include "arith/fold.h"
#include "arith/kind.h"

namespace sator::arith {
namespace {

class Parser {
 public:
  Parser(const std::string& text, Names& names) : s_(text), names_(names) {}
  Expr all() {
    Expr e = disjunction();
    skip();
    if (at_ != s_.size()) wrong("an operator or the end");
    return e;
  }

 private:
  [[noreturn]] void wrong(const std::string& needs) {
    fail({.what = text("cannot read \"", s_, "\" at column ", at_ + 1), .needs = needs, .hint = "see text_form.h"});
  }
  void skip() {
    while (at_ < s_.size() && std::isspace(static_cast<unsigned char>(s_[at_]))) ++at_;
  }
  bool eat(std::string_view t) {
    skip();
    if (s_.compare(at_, t.size(), t) != 0) return false;
    bool word = std::isalpha(static_cast<unsigned char>(t[0]));
    if (word && at_ + t.size() < s_.size() &&
        (std::isalnum(static_cast<unsigned char>(s_[at_ + t.size()])) || s_[at_ + t.size()] == '_'))
      return false;
    at_ += t.size();
    return true;
  }
  void expect(std::string_view t) {
    if (!eat(t)) wrong(text("'", t, "'"));
  }
  Expr disjunction() {
    Expr e = conjunction();
    while (eat("or")) e = logical_or(e, conjunction());
    return e;
  }
  Expr conjunction() {
    Expr e = negation();
    while (eat("and")) e = logical_and(e, negation());
    return e;
  }
  Expr negation() { return eat("not") ? logical_not(negation()) : comparison(); }
  Expr comparison() {
    Expr e = sum();
    if (eat("<=")) return le(e, sum());
    if (eat(">=")) return ge(e, sum());
    if (eat("==")) return eq(e, sum());
    if (eat("!=")) return ne(e, sum());
    if (eat("<")) return lt(e, sum());
    if (eat(">")) return gt(e, sum());
    return e;
  }
  Expr sum() {
    Expr e = product();
    while (true) {
      if (eat("+"))
        e = e + product();
      else if (eat("-"))
        e = e - product();
      else
        return e;
    }
  }
  Expr product() {
    Expr e = unary();
    while (true) {
      if (eat("//"))
        e = floordiv(e, unary());
      else if (eat("*"))
        e = e * unary();
      else if (eat("%"))
        e = floormod(e, unary());
      else
        return e;
    }
  }
  Expr unary() {
    if (!eat("-")) return atom();
    Expr e = unary();
    return e.as<IntImm>() || e.as<FloatImm>() ? -e : e * int_imm(-1);
  }
  Expr atom() {
    skip();
    if (eat("(")) {
      Expr e = disjunction();
      expect(")");
      return e;
    }
    if (at_ < s_.size() && std::isdigit(static_cast<unsigned char>(s_[at_]))) return number();
    size_t start = at_;
    while (at_ < s_.size() && (std::isalnum(static_cast<unsigned char>(s_[at_])) || s_[at_] == '_')) ++at_;
    std::string name = s_.substr(start, at_ - start);
    if (name.empty()) wrong("an expression");
    if (name == "true" || name == "false") return bool_imm(name == "true");
    if (!eat("(")) return names_[name];
    return called(name);
  }
  Expr number() {
    size_t start = at_;
    while (at_ < s_.size() && (std::isalnum(static_cast<unsigned char>(s_[at_])) || s_[at_] == '.')) ++at_;
    std::string digits = s_.substr(start, at_ - start);
    if (digits.find_first_of(".e") != std::string::npos) return float_imm(std::stod(digits));
    return int_imm(std::stoll(digits));
  }
  int lanes() {
    auto v = as_int(disjunction());
    if (!v) wrong("a number of lanes");
    return static_cast<int>(*v);
  }
  std::string string() {
    expect("\"");
    size_t end = s_.find('"', at_);
    if (end == s_.npos) wrong("'\"'");
    std::string out = s_.substr(at_, end - at_);
    at_ = end + 1;
    return out;
  }
  Expr called(const std::string& f) {
    if (f == "cast") {
      auto dtype = DType::parse(string());
      if (!dtype) wrong("a dtype");
      expect(",");
      Expr e = disjunction();
      expect(")");
      return cast_to(*dtype, e);
    }
    if (f == "call") {
      auto dtype = DType::parse(string());
      if (!dtype) wrong("a dtype");
      expect(",");
      std::string op = string();
      std::vector<Expr> args;
      while (eat(",")) args.push_back(disjunction());
      expect(")");
      return call(*dtype, op, args);
    }
    if (f == "load") {
      auto dtype = DType::parse(string());
      if (!dtype) wrong("a dtype");
      expect(",");
      std::string name = string();
      expect(",");
      Expr index = disjunction();
      expect(")");
      return load(names_.buffer(name, *dtype), {index});
    }
    if (f == "ramp" || f == "broadcast") {
      Expr base = disjunction(), stride;
      expect(",");
      if (f == "ramp") {
        stride = disjunction();
        expect(",");
      }
      int n = lanes();
      expect(")");
      return f == "ramp" ? Expr(make<Ramp>(base, stride, int{n})) : Expr(make<Broadcast>(base, int{n}));
    }
    std::vector<Expr> a;
    if (!eat(")")) {
      do a.push_back(disjunction());
      while (eat(","));
      expect(")");
    }
    return apply(f, a);
  }
  Expr apply(const std::string& f, const std::vector<Expr>& a) {
    static const std::map<std::string, Kind> kExact = {{"And", Kind::logical_and},
                                                       {"Or", Kind::logical_or},
                                                       {"LT", Kind::lt},
                                                       {"LE", Kind::le},
                                                       {"GT", Kind::gt},
                                                       {"GE", Kind::ge},
                                                       {"EQ", Kind::eq},
                                                       {"NE", Kind::ne},
                                                       {"Add", Kind::add},
                                                       {"Sub", Kind::sub},
                                                       {"Mul", Kind::mul},
                                                       {"Div", Kind::div},
                                                       {"Mod", Kind::mod},
                                                       {"FloorDiv", Kind::floordiv},
                                                       {"FloorMod", Kind::floormod},
                                                       {"Min", Kind::min},
                                                       {"Max", Kind::max}};
    if (a.size() == 1) {
      if (f == "Not") return make<Not>(a[0]);
      if (auto d = DType::parse(f)) return cast_to(*d, a[0]);
      if (f == "i64") return cast_to(i64, a[0]);
      return call(a[0]->dtype, "tir." + f, a);
    }
    if (a.size() == 3 && f == "let") {
      const auto* v = a[0].as<Var>();
      if (!v) wrong("a variable");
      return make<Let>(a[1], ref(*v), a[2]);
    }
    if (a.size() == 3 && f == "select") return select(a[0], a[1], a[2]);
    if (a.size() == 3 && f == "Select") return make<Select>(a[0], a[1], a[2]);
    if (a.size() == 3) return call(a[1]->dtype, "tir." + f, a);
    if (a.size() != 2) wrong(text("another number of arguments of ", f));
    if (f == "floordiv") return floordiv(a[0], a[1]);
    if (f == "floormod") return floormod(a[0], a[1]);
    if (f == "truncdiv" || f == "div") return div(a[0], a[1]);
    if (f == "truncmod") return truncmod(a[0], a[1]);
    if (f == "ceildiv") return ceildiv(a[0], a[1]);
    if (f == "min") return min(a[0], a[1]);
    if (f == "max") return max(a[0], a[1]);
    if (auto at = kExact.find(f); at != kExact.end()) {
      Expr x = a[0], y = a[1];
      if (x->dtype != y->dtype)
        (y.as<IntImm>() ? y : x) = cast_to(y.as<IntImm>() ? x->dtype : y->dtype, y.as<IntImm>() ? y : x);
      return make_binary(at->second, x, y);
    }
    return call(a[0]->dtype, "tir." + f, a);
  }

  const std::string& s_;
  Names& names_;
  size_t at_ = 0;
};

const char* symbol(Kind k) {
  switch (k) {
    case Kind::add: return " + ";
    case Kind::sub: return " - ";
    case Kind::mul: return " * ";
    case Kind::floordiv: return " // ";
    case Kind::floormod: return " % ";
    case Kind::eq: return " == ";
    case Kind::ne: return " != ";
    case Kind::lt: return " < ";
    case Kind::le: return " <= ";
    case Kind::gt: return " > ";
    case Kind::ge: return " >= ";
    case Kind::logical_and: return " and ";
    case Kind::logical_or: return " or ";
    default: return nullptr;
  }
}

}  // namespace

Expr parse_expr(const std::string& text, Names& names) { return Parser(text, names).all(); }

std::string show(const Expr& e) {
  if (!e) return "null";
  Kind k = kind_of(e);
  if (is_binary(k)) {
    Operands o = operands(*e, k);
    if (const char* s = symbol(k)) return text("(", show(o.a), s, show(o.b), ")");
    const char* name = k == Kind::min ? "min" : k == Kind::max ? "max" : k == Kind::div ? "truncdiv" : "truncmod";
    return text(name, "(", show(o.a), ", ", show(o.b), ")");
  }
  if (const Var* v = e.as<Var>()) return v->name;
  if (const IntImm* i = e.as<IntImm>())
    return i->dtype.is_bool() ? (i->value ? "true" : "false")
           : i->dtype == i32  ? text(i->value)
                              : text(i->dtype, "(", i->value, ")");
  if (const FloatImm* f = e.as<FloatImm>()) return text(f->dtype, "(", f->value, ")");
  if (const Not* n = e.as<Not>()) return text("not ", show(n->a));
  if (const Select* n = e.as<Select>())
    return text("select(", show(n->condition), ", ", show(n->true_value), ", ", show(n->false_value), ")");
  if (const Cast* n = e.as<Cast>()) return text("cast(\"", n->dtype, "\", ", show(n->value), ")");
  if (const Ramp* n = e.as<Ramp>()) return text("ramp(", show(n->base), ", ", show(n->stride), ", ", n->lanes, ")");
  if (const Broadcast* n = e.as<Broadcast>()) return text("broadcast(", show(n->value), ", ", n->lanes, ")");
  if (const BufferLoad* n = e.as<BufferLoad>()) return text(n->buffer->name, "[", show(n->indices[0]), "]");
  if (const Let* n = e.as<Let>()) return text("let(", n->var->name, ", ", show(n->value), ", ", show(n->body), ")");
  if (const Call* n = e.as<Call>()) {
    std::vector<std::string> args;
    for (const Expr& a : n->args) args.push_back(show(a));
    return text(n->op, "(", join(args, ", "), ")");
  }
  return text("<", e->info().name, ">");
}

uint64_t fuzz_cases(uint64_t usual) {
  const char* cases = std::getenv("SATOR_FUZZ_CASES");
  return cases ? std::strtoull(cases, nullptr, 10) : usual;
}

int64_t wrapped(const Expr& e, const Values& values) {
  if (const Select* n = e.as<Select>())
    return wrapped(wrapped(n->condition, values) ? n->true_value : n->false_value, values);
  if (const Not* n = e.as<Not>()) return !wrapped(n->a, values);
  const Kind kind = kind_of(e);
  if (!is_binary(kind)) return *evaluate(e, values);
  const Operands o = operands(*e, kind);
  const int64_t a = wrapped(o.a, values), b = wrapped(o.b, values);
  int64_t v = 0;
  if (kind == Kind::add)
    __builtin_add_overflow(a, b, &v);
  else if (kind == Kind::sub)
    __builtin_sub_overflow(a, b, &v);
  else if (kind == Kind::mul)
    __builtin_mul_overflow(a, b, &v);
  else
    v = *fold_value(kind, a, b);
  return e->dtype == i32 ? static_cast<int32_t>(v) : v;
}

}  // namespace sator::arith
