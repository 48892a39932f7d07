// Operators of scripts: plain Python values are computed, expressions of the program are built as TVM's operators do.
#include <cmath>

#include "ir/builtins.h"
#include "tir/parse_eval.h"

namespace sator::tir {

using script::Expression;
using script::Place;

namespace {

bool is_number(const Value& v) { return v.as<bool>() || v.as<Integer>() || v.as<double>(); }

std::optional<int64_t> plain_integer(const Value& v) {
  if (const bool* b = v.as<bool>()) return *b;
  if (const Integer* i = v.as<Integer>(); i && !i->is_unsigned) return i->value;
  return {};
}
double plain_real(const Value& v) {
  if (const double* d = v.as<double>()) return *d;
  if (const Integer* i = v.as<Integer>(); i && i->is_unsigned)
    return static_cast<double>(static_cast<uint64_t>(i->value));
  return static_cast<double>(*plain_integer(v));
}

}  // namespace

std::optional<Value> Evaluator::plain_binary(std::string_view op, const Value& a, const Value& b, Place place) {
  if (op == "+" && a.as<std::string>() && b.as<std::string>()) return *a.as<std::string>() + *b.as<std::string>();
  if (op == "+" && a.as<Values>() && b.as<Values>()) {
    Values out = *a.as<Values>();
    for (const Value& v : b.as<Values>()->items) out.items.push_back(v);
    return out;
  }
  if (op == "*" && a.as<Values>() && b.as<Integer>()) {
    Values out;
    out.is_tuple = a.as<Values>()->is_tuple;
    int64_t times = b.as<Integer>()->value;
    if (times > 10000)
      fail(place, {.what = text("a list repeated ", times, " times"), .needs = "at most 10000", .hint = "use a loop"});
    for (int64_t i = 0; i < times; ++i)
      out.items.insert(out.items.end(), a.as<Values>()->items.begin(), a.as<Values>()->items.end());
    return out;
  }
  if (!is_number(a) || !is_number(b)) return {};
  auto need_divisor = [&](bool is_zero) {
    if (is_zero)
      fail(place, {.what = "division by zero", .needs = "a divisor that is not zero", .hint = "check the constants"});
  };
  auto x = plain_integer(a), y = plain_integer(b);
  if (x && y && op != "/") {
    int64_t r = 0;
    bool overflows = false;
    if (op == "+")
      overflows = __builtin_add_overflow(*x, *y, &r);
    else if (op == "-")
      overflows = __builtin_sub_overflow(*x, *y, &r);
    else if (op == "*")
      overflows = __builtin_mul_overflow(*x, *y, &r);
    else if (op == "//" || op == "%") {
      need_divisor(*y == 0);
      overflows = *x == INT64_MIN && *y == -1;
      if (!overflows) r = op == "//" ? floor_div(*x, *y) : floor_mod(*x, *y);
    } else if (op == "**") {
      if (*y < 0) return std::pow(static_cast<double>(*x), static_cast<double>(*y));
      r = 1;
      for (int64_t i = 0; i < *y && !overflows && r != 0 && !(r == 1 && *x == 1); ++i)
        overflows = __builtin_mul_overflow(r, *x, &r) || i > 64 * 64;
    } else if (op == "<<" || op == ">>") {
      overflows = *y < 0 || (op == "<<" && (*y > 62 || (*x << *y) >> *y != *x));
      if (!overflows) r = op == "<<" ? *x << *y : *x >> std::min<int64_t>(*y, 63);
    } else if (op == "&")
      r = *x & *y;
    else if (op == "|")
      r = *x | *y;
    else if (op == "^")
      r = *x ^ *y;
    else
      return {};
    if (overflows)
      fail(place,
           {.what = text(*x, " ", op, " ", *y, " does not fit 64 bits"),
            .needs = "64-bit integers",
            .hint = "check the constants"});
    return Integer{r, false};
  }
  double u = plain_real(a), v = plain_real(b);
  if (op == "+") return u + v;
  if (op == "-") return u - v;
  if (op == "*") return u * v;
  if (op == "/") return need_divisor(v == 0), u / v;
  if (op == "//") return need_divisor(v == 0), std::floor(u / v);
  if (op == "%") return need_divisor(v == 0), u - std::floor(u / v) * v;
  if (op == "**") return std::pow(u, v);
  return {};
}

std::optional<Value> Evaluator::other_operator(std::string_view, const Value&, const Value*, Place) { return {}; }

Value Evaluator::binary(std::string_view op, const Value& a, const Value& b, Place place) {
  if (a.as<NodeRef>() || b.as<NodeRef>()) {
    if (auto v = other_operator(op, a, &b, place)) return *v;
  }
  if (a.is_plain() && b.is_plain()) {
    if (auto v = plain_binary(op, a, b, place)) return *v;
    fail(place,
         {.what = text("'", op, "' of ", a.kind(), " and ", b.kind()),
          .needs = "numbers or expressions",
          .hint = "check the operands"});
  }
  Expr x = to_expr(a, place), y = to_expr(b, place);
  // A bare integer meets bits as their dtype.
  if (std::string_view("<<>>&|^").find(op) != std::string_view::npos) {
    if (a.as<Integer>()) x = to_expr_like(a, y->dtype, place);
    if (b.as<Integer>()) y = to_expr_like(b, x->dtype, place);
  }
  return located(place, [&]() -> Value {
    if (op == "+") return x + y;
    if (op == "-") return x - y;
    if (op == "*") return x * y;
    if (op == "//") return floordiv(x, y);
    if (op == "%") return floormod(x, y);
    if (op == "/") {
      if (!x->dtype.is_float() && !y->dtype.is_float())
        sator::fail({.what = "'/' of integers is ambiguous",
                     .needs = "'//' or T.truncdiv for integers, '/' for reals",
                     .hint = "use '//' to round down, T.truncdiv to round toward zero"});
      return div(x, y);
    }
    static constexpr std::pair<std::string_view, std::string_view> kCalls[] = {{"<<", "shift_left"},
                                                                               {">>", "shift_right"},
                                                                               {"&", "bitwise_and"},
                                                                               {"|", "bitwise_or"},
                                                                               {"^", "bitwise_xor"},
                                                                               {"**", "pow"}};
    for (const auto& [symbol, name] : kCalls) {
      if (symbol == op) return named_binary(name, x, y);
    }
    sator::fail({.what = text("'", op, "' is not an operator of tensor programs"),
                 .needs = "+ - * / // % << >> & | ^",
                 .hint = "call the function by its name"});
  });
}

namespace {

using Kind = script::ExpressionKind;
using Wide = __int128;

/// The value of integer literals and operators alone, computed without a limit of 64 bits on the way; none for anything else.
std::optional<Wide> wide_literal(const Expression& e) {
  if (e.is(Kind::integer))
    return e.is_unsigned ? static_cast<Wide>(static_cast<uint64_t>(e.integer)) : static_cast<Wide>(e.integer);
  if (e.is(Kind::unary)) {
    const auto x = wide_literal(e.items[0]);
    if (!x || e.text == "not") return {};
    Wide r = e.text == "+" ? *x : ~*x;
    if (e.text == "-" && __builtin_sub_overflow(Wide(0), *x, &r)) return {};
    return r;
  }
  const auto x = e.is(Kind::binary) ? wide_literal(e.items[0]) : std::nullopt;
  const auto y = x ? wide_literal(e.items[1]) : std::nullopt;
  if (!y) return {};
  Wide r = 0;
  if (e.text == "+") return __builtin_add_overflow(*x, *y, &r) ? std::nullopt : std::optional(r);
  if (e.text == "-") return __builtin_sub_overflow(*x, *y, &r) ? std::nullopt : std::optional(r);
  if (e.text == "*") return __builtin_mul_overflow(*x, *y, &r) ? std::nullopt : std::optional(r);
  const bool is_shift = e.text == "<<", is_power = e.text == "**";
  if ((is_shift || is_power) && *y >= 0 && *y < 127) {
    const Wide by = is_shift ? 2 : *x;
    r = is_shift ? *x : 1;
    for (Wide i = 0; i < *y; ++i)
      if (__builtin_mul_overflow(r, by, &r)) return {};
    return r;
  }
  return {};
}

}  // namespace

std::optional<Value> Evaluator::wide_constant(const Expression& e) {
  const auto value = wide_literal(e);
  if (!value || *value < INT64_MIN || *value > static_cast<Wide>(UINT64_MAX)) return {};
  return Integer{static_cast<int64_t>(*value), *value > INT64_MAX};
}

Value Evaluator::unary(const Expression& e) {
  Value v = eval(e.items[0]);
  if (v.as<NodeRef>()) {
    if (auto result = other_operator(e.text, v, nullptr, e.place)) return *result;
  }
  if (e.text == "not") {
    if (v.is_plain()) return !is_true(v);
    Expr x = to_expr(v, e.place);
    if (!x->dtype.is_bool())
      fail(e.place, {.what = text("'not' of ", x->dtype), .needs = "a bool", .hint = "compare with 0 first"});
    return Expr(make<Not>(std::move(x)));
  }
  if (e.text == "-") {
    if (const Integer* i = v.as<Integer>(); i && (!i->is_unsigned || i->value == INT64_MIN))
      return Integer{static_cast<int64_t>(0 - static_cast<uint64_t>(i->value)), false};
    if (const bool* b = v.as<bool>()) return Integer{-static_cast<int64_t>(*b), false};
    if (const double* d = v.as<double>()) return -*d;
    Expr x = to_expr(v, e.place);
    return located(e.place, [&]() -> Value { return x * constant(-1, x->dtype); });
  }
  if (e.text == "+") return v;
  if (auto i = plain_integer(v)) return Integer{~*i, false};
  Expr x = to_expr(v, e.place);
  return located(e.place, [&]() -> Value { return call_builtin("tir.bitwise_not", {x}); });
}

bool Evaluator::is_true(const Value& v) const {
  if (v.is_none()) return false;
  if (const bool* b = v.as<bool>()) return *b;
  if (const Integer* i = v.as<Integer>()) return i->value != 0;
  if (const double* d = v.as<double>()) return *d != 0;
  if (const std::string* s = v.as<std::string>()) return !s->empty();
  if (const Values* l = v.as<Values>()) return !l->items.empty();
  return true;
}

Value Evaluator::compare_pair(const std::string& op, const Value& a, const Value& b, Place place) {
  if (a.as<NodeRef>() || b.as<NodeRef>()) {
    if (auto v = other_operator(op, a, &b, place)) return *v;
  }
  if (op == "is" || op == "is not") {
    if (a.is_none() || b.is_none()) return (a.is_none() && b.is_none()) == (op == "is");
    fail(place,
         {.what = text("'", op, "' of ", a.kind(), " and ", b.kind()),
          .needs = "a comparison with None",
          .hint = "use '=='"});
  }
  if (a.is_plain() && b.is_plain()) {
    auto result = [&](const auto& x, const auto& y) -> Value {
      if (op == "==") return x == y;
      if (op == "!=") return x != y;
      if (op == "<") return x < y;
      if (op == "<=") return x <= y;
      if (op == ">") return x > y;
      if (op == ">=") return x >= y;
      fail(place,
           {.what = text("'", op, "' is not part of TVMScript"),
            .needs = "< <= == != >= >",
            .hint = "compare the values"});
    };
    if (is_number(a) && is_number(b)) {
      auto x = plain_integer(a), y = plain_integer(b);
      return x && y ? result(*x, *y) : result(plain_real(a), plain_real(b));
    }
    if (a.as<std::string>() && b.as<std::string>()) return result(*a.as<std::string>(), *b.as<std::string>());
    if (op == "==" || op == "!=") return (op == "!=");
    fail(place,
         {.what = text("'", op, "' of ", a.kind(), " and ", b.kind()),
          .needs = "two numbers",
          .hint = "check the operands"});
  }
  // Comparisons are not folded; a bare number takes the other side's dtype.
  Expr x, y;
  if (a.is_plain()) {
    y = to_expr(b, place);
    x = to_expr_like(a, y->dtype, place);
  } else {
    x = to_expr(a, place);
    y = to_expr_like(b, x->dtype, place);
  }
  return located(place, [&]() -> Value {
    match_dtypes(x, y, "comparison");
    if (op == "==") return Expr(make<EQ>(x, y));
    if (op == "!=") return Expr(make<NE>(x, y));
    if (op == "<") return Expr(make<LT>(x, y));
    if (op == "<=") return Expr(make<LE>(x, y));
    if (op == ">") return Expr(make<GT>(x, y));
    if (op == ">=") return Expr(make<GE>(x, y));
    sator::fail({.what = text("'", op, "' is not part of TVMScript"),
                 .needs = "< <= == != >= >",
                 .hint = "compare the values"});
  });
}

Value Evaluator::compare(const Expression& e) {
  std::optional<Value> all;
  Value left = eval(e.items[0]);
  for (size_t i = 0; i < e.names.size(); ++i) {
    Value right = eval(e.items[i + 1]);
    Value one = compare_pair(e.names[i], left, right, e.place);
    all = all ? conjunction("and", *all, one, e.place) : one;
    left = std::move(right);
  }
  return *all;
}

Value Evaluator::conjunction(std::string_view op, const Value& a, const Value& b, Place place) {
  bool is_and = op == "and";
  if (a.is_plain() && b.is_plain()) return is_true(a) == is_and ? b : a;
  Expr x = to_expr(a, place), y = to_expr(b, place);
  if (!x->dtype.is_bool() || !y->dtype.is_bool())
    fail(place,
         {.what = text("'", op, "' of ", x->dtype, " and ", y->dtype),
          .needs = "bool operands",
          .hint = "compare with 0 first"});
  if (x->dtype.lanes > 1 || y->dtype.lanes > 1) return named_binary(is_and ? "bitwise_and" : "bitwise_or", x, y);
  return is_and ? Expr(make<And>(x, y)) : Expr(make<Or>(x, y));
}

Value Evaluator::logical(const Expression& e) {
  Value all = eval(e.items[0]);
  for (size_t i = 1; i < e.items.size(); ++i) all = conjunction(e.text, all, eval(e.items[i]), e.place);
  return all;
}

Value Evaluator::conditional(const Expression& e) {
  Value condition = eval(e.items[0]);
  if (condition.is_plain()) return eval(e.items[is_true(condition) ? 1 : 2]);
  fail(e.place,
       {.what = "'if' in an expression chooses by a value that is not known here",
        .needs = "a constant condition",
        .hint = "use T.if_then_else or T.Select"});
}

}  // namespace sator::tir
