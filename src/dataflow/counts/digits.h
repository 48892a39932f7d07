#pragma once

#include <variant>

#include "base/error.h"
#include "dataflow/counts/boxes.h"
#include "dataflow/counts/relation.h"

namespace sator::dataflow {

/// Iteration domain and expressions rewritten over mixed-radix digits of the iterators, so that every floor
/// and every remainder is gone: iterator = lower + sum of weight * digit, expression e = constant + rows[e] .
/// digits. The domain is a disjoint union of pieces, each a box of digits; constants differ from piece to
/// piece.
struct DigitForm {
  struct Digit {
    int iterator;
    int64_t weight;
  };
  struct Piece {
    Box box;                         // one interval per digit
    std::vector<int64_t> constants;  // one per expression
  };
  std::vector<Digit> digits;
  std::vector<std::vector<int64_t>> rows;
  std::vector<Piece> pieces;
};

struct DigitLimits {
  size_t pieces = 1 << 14;
  int64_t cuts_per_digit = 512;  // where moduli do not divide each other
};

/// Errors (as a value): a floor or remainder mixes iterators in a way that no digits resolve; too many
/// pieces; numbers beyond 62 bits.
std::variant<DigitForm, Reason> to_digits(const Domain& domain, std::span<const QuasiAffine* const> expressions,
                                          const DigitLimits& limits = {});

}  // namespace sator::dataflow
