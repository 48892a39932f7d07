#include "dataflow/counts/relation.h"

#include <cstdlib>

#include "base/error.h"
#include "base/text.h"

namespace sator::dataflow {

namespace {

bool same_atom(const Term& a, const Term& b) {
  if (!a.division || !b.division) return !a.division && !b.division && a.variable == b.variable;
  return a.division == b.division ||
         (a.division->divisor == b.division->divisor && a.division->remainder == b.division->remainder &&
          a.division->inner == b.division->inner);
}

void add_term(QuasiAffine& e, const Term& term) {
  for (size_t i = 0; i < e.terms.size(); ++i) {
    if (!same_atom(e.terms[i], term)) continue;
    e.terms[i].coefficient += term.coefficient;
    if (e.terms[i].coefficient == 0) e.terms.erase(e.terms.begin() + static_cast<long>(i));
    return;
  }
  if (term.coefficient != 0) e.terms.push_back(term);
}

QuasiAffine divide(const QuasiAffine& a, int64_t divisor, bool remainder) {
  if (divisor <= 0)
    fail({.what = text("divisor ", divisor, " is not positive"),
          .needs = "floor and % by a positive constant",
          .hint = "write the divisor as a positive integer"});
  if (a.is_constant())
    return number(remainder ? floor_remainder(a.constant, divisor) : floor_quotient(a.constant, divisor));
  if (divisor == 1) return remainder ? number(0) : a;
  Ref<Division> division(new Division);
  division->inner = a;
  division->divisor = divisor;
  division->remainder = remainder;
  return {.constant = 0, .terms = {{.coefficient = 1, .variable = -1, .division = std::move(division)}}};
}

}  // namespace

QuasiAffine number(int64_t value) { return {.constant = value, .terms = {}}; }
QuasiAffine variable(int index) {
  return {.constant = 0, .terms = {{.coefficient = 1, .variable = index, .division = {}}}};
}

QuasiAffine operator+(const QuasiAffine& a, const QuasiAffine& b) {
  QuasiAffine sum = a;
  sum.constant += b.constant;
  for (const Term& t : b.terms) add_term(sum, t);
  return sum;
}

QuasiAffine operator-(const QuasiAffine& a, const QuasiAffine& b) { return a + b * -1; }

QuasiAffine operator*(const QuasiAffine& a, int64_t factor) {
  if (factor == 0) return number(0);
  QuasiAffine product = a;
  product.constant *= factor;
  for (Term& t : product.terms) t.coefficient *= factor;
  return product;
}

QuasiAffine floor_div(const QuasiAffine& a, int64_t divisor) { return divide(a, divisor, false); }
QuasiAffine mod(const QuasiAffine& a, int64_t divisor) { return divide(a, divisor, true); }

bool operator==(const QuasiAffine& a, const QuasiAffine& b) {
  if (a.constant != b.constant || a.terms.size() != b.terms.size()) return false;
  for (size_t i = 0; i < a.terms.size(); ++i)
    if (a.terms[i].coefficient != b.terms[i].coefficient || !same_atom(a.terms[i], b.terms[i])) return false;
  return true;
}

int64_t evaluate(const QuasiAffine& e, std::span<const int64_t> values) {
  int64_t sum = e.constant;
  for (const Term& t : e.terms) {
    if (!t.division) {
      sum += t.coefficient * values[static_cast<size_t>(t.variable)];
      continue;
    }
    int64_t inner = evaluate(t.division->inner, values);
    sum += t.coefficient * (t.division->remainder ? floor_remainder(inner, t.division->divisor)
                                                  : floor_quotient(inner, t.division->divisor));
  }
  return sum;
}

std::vector<int64_t> evaluate(const Map& map, std::span<const int64_t> values) {
  std::vector<int64_t> point;
  point.reserve(map.size());
  for (const QuasiAffine& e : map) point.push_back(evaluate(e, values));
  return point;
}

bool mentions(const QuasiAffine& e, int index) {
  for (const Term& t : e.terms)
    if (t.division ? mentions(t.division->inner, index) : t.variable == index) return true;
  return false;
}

namespace {

/// c m floor(x / m) + c (x % m) is c x: what two iterators that were digits of one leave behind.
QuasiAffine rejoined(QuasiAffine e) {
  for (size_t q = 0; q < e.terms.size(); ++q) {
    const Term quotient = e.terms[q];
    if (!quotient.division || quotient.division->remainder) continue;
    for (size_t r = 0; r < e.terms.size(); ++r) {
      const Term& rest = e.terms[r];
      if (!rest.division || !rest.division->remainder || rest.division->divisor != quotient.division->divisor) continue;
      if (quotient.coefficient / quotient.division->divisor != rest.coefficient ||
          quotient.coefficient % quotient.division->divisor != 0 || !(rest.division->inner == quotient.division->inner))
        continue;
      const QuasiAffine whole = quotient.division->inner * rest.coefficient;
      e.terms.erase(e.terms.begin() + static_cast<std::ptrdiff_t>(std::max(q, r)));
      e.terms.erase(e.terms.begin() + static_cast<std::ptrdiff_t>(std::min(q, r)));
      return rejoined(e + whole);
    }
  }
  return e;
}

}  // namespace

QuasiAffine substitute(const QuasiAffine& e, std::span<const QuasiAffine> replacement) {
  QuasiAffine result = number(e.constant);
  for (const Term& t : e.terms) {
    QuasiAffine atom =
        t.division ? divide(substitute(t.division->inner, replacement), t.division->divisor, t.division->remainder)
                   : replacement[static_cast<size_t>(t.variable)];
    result = result + atom * t.coefficient;
  }
  return rejoined(std::move(result));
}

std::string to_text(const QuasiAffine& e, std::span<const std::string> names) {
  std::string out;
  auto add = [&](int64_t factor, const std::string& atom) {
    if (!out.empty())
      out += factor < 0 ? " - " : " + ";
    else if (factor < 0)
      out += "-";
    // The magnitude as unsigned: the smallest int64 has no positive counterpart.
    uint64_t size = factor < 0 ? 0 - static_cast<uint64_t>(factor) : static_cast<uint64_t>(factor);
    if (atom.empty())
      append_text(out, size);
    else
      out += size == 1 ? atom : text(size, "*", atom);
  };
  for (const Term& t : e.terms) {
    if (!t.division) {
      add(t.coefficient, names[static_cast<size_t>(t.variable)]);
      continue;
    }
    const QuasiAffine& inner = t.division->inner;
    std::string numerator = to_text(inner, names);
    bool atomic =
        inner.constant == 0 && inner.terms.size() == 1 && inner.terms[0].coefficient == 1 && !inner.terms[0].division;
    if (!atomic) numerator = "(" + numerator + ")";
    std::string quotient = t.division->remainder ? text(numerator, "%", t.division->divisor)
                                                 : text("floor(", numerator, "/", t.division->divisor, ")");
    // A factor before a remainder would read as part of its numerator.
    bool alone = t.coefficient == 1 || !t.division->remainder;
    add(t.coefficient, alone ? quotient : "(" + quotient + ")");
  }
  if (e.constant != 0 || out.empty()) add(e.constant, "");
  return out;
}

Domain Domain::box(std::vector<std::string> names, std::vector<int64_t> extent) {
  std::vector<int64_t> lower(extent.size(), 0);
  return {.names = std::move(names), .lower = std::move(lower), .extent = std::move(extent), .guards = {}};
}

namespace link {

static Link identity(int rank) {
  Link result;
  for (int i = 0; i < rank; ++i) result.source.push_back(variable(i));
  return result;
}

Link shift(const std::vector<int64_t>& offset) {
  Link result = identity(static_cast<int>(offset.size()));
  for (size_t i = 0; i < offset.size(); ++i) result.source[i] = result.source[i] + offset[i];
  return result;
}

Link wrap(int rank, int axis, int64_t step, int64_t size) {
  Link result = identity(rank);
  result.source[static_cast<size_t>(axis)] = mod(variable(axis) + step, size);
  return result;
}

Link leader(int rank, int axis, int64_t at) {
  Link result = identity(rank);
  result.source[static_cast<size_t>(axis)] = number(at);
  return result;
}

Link bus(int rank, int axis) {
  Link result = identity(rank);
  QuasiAffine x = variable(rank);
  result.free_variables = 1;
  result.source[static_cast<size_t>(axis)] = x;
  result.guards = {x, variable(axis) - x - 1};
  return result;
}

}  // namespace link

}  // namespace sator::dataflow
