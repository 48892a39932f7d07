// What tests ask of struct info: how two compare, what they share, which sizes they name.
#pragma once

#include <optional>

#include "relax/parse_impl.h"

namespace sator::conformance {

/// relax.analysis.struct_info_lca(a, b), ...; nothing for other names.
std::optional<tir::Value> struct_info_analysis(relax::GraphEvaluator& ev, const std::string& name,
                                               const script::Expression& call);
/// relax.DynTensorType(ndim=2), ..., as the struct info that says as much; nothing for other names.
std::optional<tir::Value> static_type_value(relax::GraphEvaluator& ev, const std::string& name,
                                            const script::Expression& call);
/// a.is_base_of(b); nothing for another callee.
std::optional<tir::Value> struct_info_method(relax::GraphEvaluator& ev, const script::Expression& call);

}  // namespace sator::conformance
