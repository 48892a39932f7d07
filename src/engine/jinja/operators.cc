#include "engine/jinja/operators.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "engine/jinja/builtins.h"
#include "engine/jinja/python_text.h"

namespace sator::jinja {

namespace {

[[noreturn]] void fail_operands(const std::string& op, const Value& a, const Value& b) {
  auto name = [](const Value& v) {
    return v.undefined() ? text(v.undefined()->name, " (undefined)") : "a " + v.type();
  };
  fail({.what = text("the operator ", op, " between ", name(a), " and ", name(b)), .needs = "values of one kind"});
}

bool repeats(const Value& v) { return v.string() || v.is_list() || v.is_tuple(); }

Value repeated(const Value& v, int64_t times) {
  times = std::max<int64_t>(times, 0);
  if (v.string()) {
    if (!v.string()->empty() && static_cast<size_t>(times) > kMaxText / v.string()->size())
      require_text_size(kMaxText + 1);
    std::string out;
    for (int64_t i = 0; i < times; ++i) out += *v.string();
    return out;
  }
  const List& items = *v.items();
  if (!items.empty() && static_cast<size_t>(times) > kMaxItems / items.size()) require_items(kMaxItems + 1);
  Sequence out{.items = {}, .kind = v.is_tuple() ? SequenceKind::tuple : SequenceKind::list};
  for (int64_t i = 0; i < times; ++i) out.items.insert(out.items.end(), items.begin(), items.end());
  return out;
}

Value joined(const Value& a, const Value& b) {
  Sequence out{.items = *a.items(), .kind = a.is_tuple() ? SequenceKind::tuple : SequenceKind::list};
  require_items(out.items.size() + b.items()->size());
  out.items.insert(out.items.end(), b.items()->begin(), b.items()->end());
  return out;
}

[[noreturn]] void fail_power(double x, double y) {
  fail({.what = text(float_text(x), " ** ", float_text(y), " is no number of 64 bits"), .needs = "a real power"});
}

Value of_integers(const std::string& op, int64_t x, int64_t y) {
  int64_t out = 0;
  bool too_large = false;
  if (op == "+")
    too_large = __builtin_add_overflow(x, y, &out);
  else if (op == "-")
    too_large = __builtin_sub_overflow(x, y, &out);
  else if (op == "*")
    too_large = __builtin_mul_overflow(x, y, &out);
  else if (op == "**") {
    out = 1;
    const int64_t base = x;
    if (base == 0 || base == 1) return y == 0 ? int64_t{1} : base;
    if (base == -1) return y % 2 == 0 ? int64_t{1} : base;
    for (int64_t i = 0; i < y && !too_large; ++i) too_large = __builtin_mul_overflow(out, base, &out);
  } else if (y == -1) {
    if (op == "//") too_large = __builtin_sub_overflow(int64_t{0}, x, &out);
  } else {
    const int64_t rest = x % y, down = rest != 0 && (rest < 0) != (y < 0) ? 1 : 0;
    out = op == "//" ? x / y - down : rest + (down ? y : 0);
  }
  if (too_large) fail({.what = text(x, " ", op, " ", y, " is too large"), .needs = "integers of 64 bits"});
  return out;
}

Value power(double x, double y) {
  const double out = std::pow(x, y);
  const bool overflows = std::isinf(out) && std::isfinite(x) && std::isfinite(y);
  if (overflows || (std::isnan(out) && !std::isnan(x) && !std::isnan(y))) fail_power(x, y);
  return out;
}

/// x // y and x % y, which is 0 or has y's sign.
/// Source: CPython, Objects/floatobject.c, _float_div_mod.
std::pair<double, double> divided(double x, double y) {
  double rest = std::fmod(x, y), quotient = (x - rest) / y;
  if (rest == 0)
    rest = std::copysign(0.0, y);
  else if ((y < 0) != (rest < 0))
    rest += y, quotient -= 1;
  if (quotient == 0) return {std::copysign(0.0, x / y), rest};
  const double down = std::floor(quotient);
  return {quotient - down > 0.5 ? down + 1 : down, rest};
}

Value of_floats(const std::string& op, double x, double y) {
  if (op == "+") return x + y;
  if (op == "-") return x - y;
  if (op == "*") return x * y;
  if (op == "**") return power(x, y);
  return op == "//" ? divided(x, y).first : divided(x, y).second;
}

struct Range {
  int64_t from, to, step;
};
/// Python's slice.indices(size).
Range indices(const Value& from, const Value& to, const Value& by, int64_t size) {
  for (const Value* b : {&from, &to, &by})
    if (!b->is_none() && !b->is_integral())
      fail({.what = text("a bound of a part is a ", b->type()), .needs = "integers"});
  const int64_t step = by.is_none() ? 1 : by.integer();
  if (step == 0) fail({.what = "a part has steps of 0", .needs = "other steps"});
  auto bound = [&](const Value& b, int64_t otherwise) {
    if (b.is_none()) return otherwise;
    const int64_t at = b.integer() < 0 ? b.integer() + size : b.integer();
    return std::clamp<int64_t>(at, step > 0 ? 0 : -1, step > 0 ? size : size - 1);
  };
  return {bound(from, step > 0 ? 0 : size - 1), bound(to, step > 0 ? size : -1), step};
}
template <class Items>
Items part_of(const Items& items, const Range& r) {
  Items out;
  for (int64_t i = r.from; r.step > 0 ? i < r.to : i > r.to;) {
    out.push_back(items[static_cast<size_t>(i)]);
    if (__builtin_add_overflow(i, r.step, &i)) break;
  }
  return out;
}

}  // namespace

Value unary(const std::string& op, const Value& v) {
  if (op == "not") return !v.is_true();
  if (!v.is_number()) fail({.what = text("the sign of a ", v.type()), .needs = "a number"});
  if (v.is_float()) return op == "-" ? -v.number() : v.number();
  return op == "-" ? of_integers("-", 0, v.integer()) : v.integer();
}

Value binary(const std::string& op, const Value& a, const Value& b) {
  if (op == "~") {
    std::string out = to_text(a) + to_text(b);
    require_text_size(out.size());
    return out;
  }
  if (op == "+" && a.string() && b.string()) {
    require_text_size(a.string()->size() + b.string()->size());
    return *a.string() + *b.string();
  }
  if (op == "+" && ((a.is_list() && b.is_list()) || (a.is_tuple() && b.is_tuple()))) return joined(a, b);
  if (op == "*" && repeats(a) && b.is_integral()) return repeated(a, b.integer());
  if (op == "*" && repeats(b) && a.is_integral()) return repeated(b, a.integer());
  if (!a.is_number() || !b.is_number()) fail_operands(op, a, b);
  const bool divides = op == "/" || op == "//" || op == "%";
  if ((divides && b.number() == 0) || (op == "**" && a.number() == 0 && b.number() < 0))
    fail({.what = "a division by 0", .needs = "another divisor"});
  if (op == "/") return a.number() / b.number();
  const bool integral = a.is_integral() && b.is_integral() && !(op == "**" && b.integer() < 0);
  return integral ? of_integers(op, a.integer(), b.integer()) : of_floats(op, a.number(), b.number());
}

bool compares(const std::string& op, const Value& a, const Value& b) {
  if (op == "==") return a == b;
  if (op == "!=") return !(a == b);
  if (op == "in") return contains(b, a);
  if (op == "not in") return !contains(b, a);
  if (op == "<") return less(a, b);
  if (op == ">") return less(b, a);
  return op == "<=" ? less_or_equal(a, b) : less_or_equal(b, a);
}

Value slice(const Value& of, const Value& from, const Value& to, const Value& step) {
  if (of.string()) {
    const std::u32string all = code_points(*of.string());
    return utf8(part_of(all, indices(from, to, step, std::ssize(all))));
  }
  if (!of.is_list() && !of.is_tuple() && !of.is(SequenceKind::range))
    fail({.what = text("a part of a ", of.type()), .needs = "a list or a text"});
  const Range r = indices(from, to, step, std::ssize(*of.items()));
  Sequence out{.items = part_of(*of.items(), r), .kind = of.sequence()->kind};
  if (of.is(SequenceKind::group)) out.kind = SequenceKind::tuple;
  if (of.is(SequenceKind::range)) {
    const int64_t start = of.sequence()->bounds[0], by = of.sequence()->bounds[2];
    auto at = [&](int64_t i) { return of_integers("+", start, of_integers("*", i, by).integer()).integer(); };
    out.bounds = {at(r.from), at(r.to), of_integers("*", by, r.step).integer()};
  }
  return out;
}

}  // namespace sator::jinja
