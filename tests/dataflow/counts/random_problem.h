#pragma once

#include <random>

#include "dataflow/counts/relation.h"
#include "dataflow/tenet/tenet_text.h"

namespace sator::dataflow {

/// Draws small problems: maps of quotients and remainders, skews, strides, stencils, groups, guards, all
/// wires.
class RandomProblem {
 public:
  explicit RandomProblem(uint64_t seed) : random_(seed) {}

  Problem draw() {
    Problem p;
    const int rank = pick(2, 4);
    Wideness budget{600};
    for (int i = 0; i < rank; ++i) {
      p.statement.domain.names.push_back(std::string(1, static_cast<char>('i' + i)));
      p.statement.domain.lower.push_back(chance(8) ? pick(-2, 3) : 0);
      p.statement.domain.extent.push_back(std::min<int64_t>(pick(1, chance(3) ? 13 : 7), budget.left));
      budget.left = std::max<int64_t>(1, budget.left / p.statement.domain.extent.back());
    }
    if (chance(6)) {
      // A triangle or a ragged edge.
      QuasiAffine g = variable(pick(0, rank - 1)) - variable(pick(0, rank - 1));
      p.statement.domain.guards.push_back(g + pick(0, 3));
    }
    moduli_ = chance(4)   ? std::vector<int64_t>{2, 3, 4, 6}
              : chance(2) ? std::vector<int64_t>{2, 4}
                          : std::vector<int64_t>{3};
    const int space = pick(1, 2);
    std::vector<int> order(static_cast<size_t>(rank));
    for (int i = 0; i < rank; ++i) order[static_cast<size_t>(i)] = i;
    std::shuffle(order.begin(), order.end(), random_);
    std::vector<std::pair<int, int64_t>> tiled;
    for (int k = 0; k < space; ++k) {
      const int x = order[static_cast<size_t>(k % rank)];
      const int64_t m = modulus();
      tiled.emplace_back(x, m);
      QuasiAffine e = mod(variable(x), m);
      if (chance(8) && rank > 2) e = e + mod(variable(order[2]), 2) * m;  // folded: two iterators share an axis
      p.mapping.space.push_back(e);
    }
    QuasiAffine inner;
    const bool skew = chance(2);
    for (auto [x, m] : tiled) {
      if (!chance(10)) p.mapping.time.push_back(floor_div(variable(x), m));
      if (skew) inner = inner + mod(variable(x), m);
    }
    for (int k = space; k < rank; ++k) {
      const int x = order[static_cast<size_t>(k)];
      if (k + 1 == rank) {
        if (chance(4))
          inner = inner + floor_div(variable(x), modulus());  // several instances per stamp
        else if (!chance(6))
          inner = inner + variable(x);
      } else if (chance(3)) {
        const int64_t m = modulus();
        p.mapping.time.push_back(floor_div(variable(x), m));
        if (chance(2)) p.mapping.time.push_back(mod(variable(x), m));
      } else {
        p.mapping.time.push_back(variable(x));
      }
    }
    std::shuffle(p.mapping.time.begin(), p.mapping.time.end(), random_);
    p.mapping.time.push_back(inner);
    const int tensors = pick(1, 3);
    for (int t = 0; t < tensors; ++t) p.statement.accesses.push_back(access(t, rank));
    for (int k = 0; k < space; ++k) {
      const int64_t m = tiled[static_cast<size_t>(k)].second;
      p.array.pes.names.push_back(k == 0 ? "x" : "y");
      p.array.pes.lower.push_back(0);
      p.array.pes.extent.push_back(chance(12) ? std::max<int64_t>(1, m - 1) : m * 2);
    }
    if (space == 2 && chance(10))
      p.array.pes.guards.push_back(variable(0) - variable(1) + pick(0, 2));  // a triangle of PEs
    const int wires = pick(0, 3);
    for (int w = 0; w < wires; ++w) p.array.interconnect.push_back(wire(space, tiled[0].second));
    return p;
  }

 private:
  struct Wideness {
    int64_t left;
  };
  int pick(int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random_); }
  bool chance(int one_in) { return pick(1, one_in) == 1; }
  int64_t modulus() { return moduli_[static_cast<size_t>(pick(0, static_cast<int>(moduli_.size()) - 1))]; }

  QuasiAffine coordinate(int rank) {
    QuasiAffine e = variable(pick(0, rank - 1));
    if (chance(6))
      e = floor_div(e, modulus());
    else if (chance(10))
      e = mod(e, modulus());
    if (chance(5)) e = e * pick(2, 3);
    if (chance(4)) e = e + variable(pick(0, rank - 1)) * (chance(4) ? -1 : 1);
    if (chance(8)) e = e + pick(-2, 2);
    return e;
  }

  Access access(int number, int rank) {
    Access a;
    a.tensor = std::string(1, static_cast<char>('A' + number));
    a.role = chance(3) ? Role::write : Role::read;
    Map base;
    const int coordinates = pick(0, 3);
    for (int c = 0; c < coordinates; ++c) base.push_back(coordinate(rank));
    a.references.push_back(base);
    if (coordinates > 0 && chance(4)) {
      const int more = pick(1, 3);
      for (int r = 0; r < more; ++r) {
        Map shifted = base;
        QuasiAffine& e = shifted[static_cast<size_t>(pick(0, coordinates - 1))];
        e = e + pick(-2, 2);
        a.references.push_back(shifted);
      }
    }
    return a;
  }

  Link wire(int rank, int64_t size) {
    if (chance(8)) return link::wrap(rank, 0, pick(-1, 1), size);
    if (chance(8)) return link::leader(rank, pick(0, rank - 1));
    if (chance(8)) return link::bus(rank, pick(0, rank - 1));
    std::vector<int64_t> offset;
    for (int k = 0; k < rank; ++k) offset.push_back(pick(-1, 1));
    Link link = link::shift(offset);
    // Wires that hold for some PEs only, and wires across the diagonal: found by listing pairs.
    if (chance(6)) link.guards.push_back(variable(pick(0, rank - 1)) - pick(0, 2));
    if (rank == 2 && chance(8)) link.guards.push_back(variable(0) + variable(1) - pick(1, 3));
    if (rank == 2 && chance(8)) std::swap(link.source[0], link.source[1]);
    return link;
  }

  std::mt19937_64 random_;
  std::vector<int64_t> moduli_;
};

/// The problem as TENET's text, to show and to replay a failure.
inline std::string show(const Problem& p) {
  return tenet_array_text(p.array, {}) + tenet_mapping_text(p) + tenet_statement_text(p.statement);
}

}  // namespace sator::dataflow
