// Parts of a graph that a described chip takes whole, as its file states them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sator {

/// A chain of ops, each of which reads the result of the one before: tables [[pattern]] of a chip's file.
///
///     [[pattern]]
///     name = "matmul_bias_gelu"
///     ops = ["dequantize?", "matmul", "bias?", "relu|gelu?"]     # ? may be absent, | either
///     constant_weight = true
///     source = "where it is said that the chip fuses this"
///
/// What an op is called is for the passes to know (passes/chip_patterns.h).
struct ChipPattern {
  struct Link {
    std::vector<std::string> any_of;
    bool optional = false;
  };
  std::string name, source;
  std::vector<Link> ops;         // at least one is not optional
  bool constant_weight = false;  // the products' second factor follows from the model's parameters alone
  /// Allowed dtypes of the products' first factor, and bits of a number of their second as it is stored; empty: any.
  std::vector<std::string> dtypes;
  std::vector<int64_t> weight_bits;
  std::optional<int64_t> max_m, max_n, max_k;  // of products Y[m,n] += X[m,k] * W[k,n]: rows, columns, summands
  std::string where;                           // "chip.toml line 40", for messages
};

class KeyReader;

/// Reads the tables [[pattern]]. Errors: two patterns of one name; a chain without an op that must be there; a word that is no
/// name; limits outside of their ranges.
std::vector<ChipPattern> read_patterns(KeyReader& in);

}  // namespace sator
