#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/object.h"

namespace sator::dataflow {

struct Division;

/// coefficient * atom; the atom is a variable (by number) or, where `division` is set, a floor or a
/// remainder.
struct Term {
  int64_t coefficient = 1;
  int variable = -1;
  Ref<Division> division;
};

/// A quasi-affine integer expression: constant + sum of terms.
struct QuasiAffine {
  int64_t constant = 0;
  std::vector<Term> terms;

  bool is_constant() const { return terms.empty(); }
};

/// floor(inner / divisor), or the remainder inner - divisor * floor(inner / divisor), which lies in [0,
/// divisor).
struct Division final : Object {
  QuasiAffine inner;
  int64_t divisor = 1;  // positive
  bool remainder = false;
};

QuasiAffine number(int64_t value);
QuasiAffine variable(int index);
QuasiAffine operator+(const QuasiAffine& a, const QuasiAffine& b);
QuasiAffine operator-(const QuasiAffine& a, const QuasiAffine& b);
QuasiAffine operator*(const QuasiAffine& a, int64_t factor);
QuasiAffine floor_div(const QuasiAffine& a, int64_t divisor);
QuasiAffine mod(const QuasiAffine& a, int64_t divisor);
inline QuasiAffine operator+(const QuasiAffine& a, int64_t b) { return a + number(b); }
inline QuasiAffine operator-(const QuasiAffine& a, int64_t b) { return a - number(b); }

bool operator==(const QuasiAffine& a, const QuasiAffine& b);
int64_t evaluate(const QuasiAffine& e, std::span<const int64_t> values);
/// True if variable `index` occurs anywhere in e.
bool mentions(const QuasiAffine& e, int index);
/// e with variable i replaced by replacement[i], for every i.
QuasiAffine substitute(const QuasiAffine& e, std::span<const QuasiAffine> replacement);
/// As TENET's text writes it: "i%8 + 2*floor(j/16) - 1", with names[i] for variable i.
std::string to_text(const QuasiAffine& e, std::span<const std::string> names);

/// One coordinate per expression.
using Map = std::vector<QuasiAffine>;
std::vector<int64_t> evaluate(const Map& map, std::span<const int64_t> values);

/// floor(a / b) and a - b * floor(a / b), for positive b and any a.
inline int64_t floor_quotient(int64_t a, int64_t b) { return a / b - (a % b < 0); }
inline int64_t floor_remainder(int64_t a, int64_t b) { return a - b * floor_quotient(a, b); }
/// ceil(a / b), for positive b and a >= 0.
inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// A set of integer points: lower[i] <= x[i] < lower[i] + extent[i], and every guard is >= 0.
struct Domain {
  std::vector<std::string> names;
  std::vector<int64_t> lower;
  std::vector<int64_t> extent;
  std::vector<QuasiAffine> guards;

  int rank() const { return static_cast<int>(extent.size()); }
  /// A domain that starts at 0 and has no guards.
  static Domain box(std::vector<std::string> names, std::vector<int64_t> extent);
};

enum class Role : uint8_t { read, write };

/// All references of one statement to one tensor in one role: a union of maps from iterators to elements.
struct Access {
  std::string tensor;
  Role role = Role::read;
  std::vector<Map> references;  // all of the same rank; rank 0 is a scalar
};

/// A statement S: what is executed for every point of the domain, and what each instance touches.
struct Statement {
  std::string name = "S";
  Domain domain;
  std::vector<Access> accesses;
};

/// Where and when an instance runs: space map to PE coordinates, time map to stamps ordered
/// lexicographically.
struct Mapping {
  Map space;
  Map time;
};

/// Part of an interconnect: PE p can be supplied by PE source(p, x) for all integers x that satisfy the
/// guards. Variables 0 .. rank-1 are p, the next `free_variables` are x (for buses: {PE[i,j] -> PE[i,x] : 0
/// <= x < j}).
struct Link {
  Map source;
  int free_variables = 0;
  std::vector<QuasiAffine> guards;  // each >= 0
};

/// The catalogue; others are written as Links. All directions are self -> PE that supplies.
namespace link {
/// PE p is supplied by p + offset: chains, systolic arrays, meshes.
Link shift(const std::vector<int64_t>& offset);
/// PE p is supplied by the PE `step` further along `axis`, modulo `size`: rings, tori.
Link wrap(int rank, int axis, int64_t step, int64_t size);
/// PE p is supplied by the PE whose coordinate on `axis` is `at`: multicast from a leader.
Link leader(int rank, int axis, int64_t at = 0);
/// PE p is supplied by every PE with a smaller coordinate on `axis`: a bus.
Link bus(int rank, int axis);
}  // namespace link

/// The declared array and its wires. Names are the PE coordinates'.
struct Array {
  Domain pes;
  std::vector<Link> interconnect;
};

/// Everything that counting needs.
struct Problem {
  Statement statement;
  Mapping mapping;
  Array array;
};

}  // namespace sator::dataflow
