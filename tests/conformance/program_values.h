// What the cases' Python says of tensor programs' expressions, on the reader of TVMScript.
#pragma once

#include <functional>
#include <optional>

#include "tir/parse_eval.h"

namespace sator::conformance {

/// Whether the language of tensor programs has T.<name>.
bool in_language(const std::string& name);
/// tir.Var, tir.const, te.var, tir.Add, ...; nothing for other names. What scripts have too, `in_script` calls by its name
/// there. Unsupported: what the reader does not have.
std::optional<tir::Value> program_value(tir::Evaluator& ev, const std::string& name, const script::Expression& call,
                                        const std::function<tir::Value(const std::string&)>& in_script);
/// x.a, x.value, x.args, x.op, x.same_as of an expression; nothing where it has none.
std::optional<tir::Value> program_attribute(tir::Evaluator& ev, const tir::Value& object, const std::string& name);
/// tir.IndexMap.from_func(lambda i: [i // 4, i % 4]).
tir::Value index_map_of(tir::Evaluator& ev, const script::Expression& call);
bool is_index_map_method(const tir::Value& object, const std::string& name);
/// m.map_indices([...]), m.inverse([...]), ...; nothing where the object is no index map.
std::optional<tir::Value> index_map_method(tir::Evaluator& ev, const tir::Value& object, const std::string& method,
                                           const script::Expression& call);
/// x.same_as(y); nothing for another callee.
std::optional<tir::Value> program_method(tir::Evaluator& ev, const tir::Value& callee, const script::Expression& call);

}  // namespace sator::conformance
