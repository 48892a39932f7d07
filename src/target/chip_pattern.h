// Parts of a graph that a described chip takes whole, as its file states them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sator {

/// A chain of ops, each of which reads the result of the one before, or a graph of ops with names for values: tables
/// [[pattern]] of a chip's file.
///
///     [[pattern]]
///     name = "matmul_bias_gelu"
///     ops = ["dequantize?", "matmul", "bias?", "relu|gelu?"]     # ? may be absent, | either
///     constant_weight = true
///     source = "where it is said that the chip fuses this"
///
///     [[pattern]]
///     name = "gated_mlp"
///     graph = ["gate = matmul(x, w1)", "up = matmul(x, w3)", "y = matmul(silu(gate) * up, w2)"]
///
/// What an op is called is for the passes to know (passes/byoc.h).
struct ChipPattern {
  struct Link {
    std::vector<std::string> any_of;
    bool optional = false;
  };
  /// A value of a graph: made by an op, an item of several results, or from outside. The same node is the same value.
  struct Node {
    std::vector<std::string> any_of;  // ops; none: from outside, or an item
    bool optional = false;            // then its first argument may stand in its place
    std::vector<size_t> args;         // nodes before it
    std::optional<size_t> item;       // of the results of args[0]
    std::string where;                // "chip.toml line 41"
  };
  std::string name, source;
  std::vector<Link> ops;         // at least one is not optional; none: a graph
  std::vector<Node> graph;       // operands before what reads them
  std::vector<size_t> results;   // nodes of the graph that may be read outside of it
  bool constant_weight = false;  // the products' second factor follows from the model's parameters alone
  /// Allowed dtypes of the products' first factor, and bits of a number of their second as it is stored; empty: any.
  std::vector<std::string> dtypes;
  std::vector<int64_t> weight_bits;
  std::optional<int64_t> max_m, max_n, max_k;  // of products Y[m,n] += X[m,k] * W[k,n]: rows, columns, summands
  std::string where;                           // "chip.toml line 40", for messages
};

class KeyReader;

/// Reads the tables [[pattern]]. Errors: two patterns of one name; a chain without an op that must be there; a word that is no
/// name; a line of a graph that is none; limits outside of their ranges.
std::vector<ChipPattern> read_patterns(KeyReader& in);

}  // namespace sator
