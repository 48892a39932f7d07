// Patterns of graphs as Python builds them: relax.dpl.is_op("relax.add")(a, b), p | q, p.match(x).
#pragma once

#include <optional>

#include "passes/dataflow_pattern.h"
#include "relax/parse_impl.h"

namespace sator::conformance {

/// A pattern among the values of an expression.
struct PatternValue final : Node<PatternValue> {
  passes::DFPattern pattern;
  static constexpr auto fields() { return std::tuple{}; }
};

/// relax.dpl.NAME(...); nothing for other names. Unsupported: patterns that have no word here.
std::optional<tir::Value> pattern_function(relax::GraphEvaluator& ev, const std::string& name,
                                           const script::Expression& call);
/// p(a, b), p.has_shape(...), p.match(x) of a pattern p; nothing where the callee is none.
std::optional<tir::Value> pattern_call(relax::GraphEvaluator& ev, const tir::Value& callee,
                                       const script::Expression& call);
/// p | q, p & q, ~p; nothing where no operand is a pattern.
std::optional<tir::Value> pattern_operator(std::string_view op, const tir::Value& a, const tir::Value* b);
/// Item i of a tuple's pattern; nothing where the object is none.
std::optional<tir::Value> pattern_item(const tir::Value& object, const tir::Value& index);

/// A pattern where it is written.
struct WrittenPattern {
  const script::Expression* expression;
  passes::DFPattern pattern;
};
/// Takes `matches[PATTERN]` out of an expression: names matched0, matched1, ... stand for them, and the patterns are returned in
/// that order. Equal texts are told apart where there are as many of them on both sides: they are meant in order.
/// Unsupported: patterns that cannot be told apart.
std::vector<passes::DFPattern> take_matched(script::Expression& body, const std::string& matches,
                                            const std::vector<WrittenPattern>& patterns);

}  // namespace sator::conformance
