// Graphs as Python builds them of their parts: relax.Function([x], relax.SeqExpr([...], y)), tvm.IRModule({...}).
#pragma once

#include <optional>

#include "relax/parse_impl.h"

namespace sator::conformance {

/// relax.Function(...), relax.BindingBlock(...), tvm.IRModule(...), relax.analysis.well_formed(...), passes of them; nothing for
/// other names.
std::optional<tir::Value> graph_object(relax::GraphEvaluator& ev, const std::string& name,
                                       const script::Expression& call);
/// f.with_attr(key, value), f.with_attrs({...}); nothing where the object is no function.
std::optional<tir::Value> graph_object_method(relax::GraphEvaluator& ev, const tir::Value& object,
                                              const script::Expression& call);
/// block.bindings, binding.var; nothing for others.
std::optional<tir::Value> graph_object_attribute(const tir::Value& object, const std::string& name);

}  // namespace sator::conformance
