// What struct info says beside other struct info: relax.analysis.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arith/analyzer.h"
#include "bind/node.h"
#include "bind/parts.h"
#include "passes/graph/graph.h"
#include "relax/builder.h"
#include "relax/nodes.h"
#include "relax/struct_info.h"

namespace sator::bind {

namespace {

relax::StructInfo info_of(nb::handle o) {
  const NodeRef node = node_of(o);
  const auto* info = node ? node.as<relax::StructInfoNode>() : nullptr;
  if (!info) wrong_type(o, "struct info, such as R.Tensor((4,), \"float32\")");
  return relax::StructInfo(info);
}

nb::list vars(const std::vector<VarRef>& all) {
  nb::list out;
  for (const VarRef& v : all) out.append(to_python(NodeRef(v)));
  return out;
}

template <class T>
Ref<const T> graph_node(nb::handle o, const char* needs) {
  const NodeRef node = node_of(o);
  const T* typed = node ? node.as<T>() : nullptr;
  if (!typed) wrong_type(o, needs);
  return Ref<const T>(typed);
}

}  // namespace

void add_struct_info(nb::module_& m) {
  m.def("base_check", [](nb::object base, nb::object derived) {
    arith::Analyzer arith;
    return static_cast<int>(relax::base_check(info_of(base), info_of(derived), arith));
  });
  m.def("common_base", [](nb::object a, nb::object b) {
    arith::Analyzer arith;
    return to_python(NodeRef(relax::common_base(info_of(a), info_of(b), arith)));
  });
  m.def("erase_to_well_defined", [](nb::object info, nb::dict sizes, nb::dict shapes) {
    arith::Analyzer arith;
    VarMap known;
    for (auto [var, value] : sizes) known.emplace(graph_node<Var>(var, "a symbolic size"), expr_of(value));
    std::unordered_map<relax::RVarRef, relax::RExpr> tensors;
    for (auto [var, value] : shapes)
      tensors.emplace(graph_node<relax::RVar>(var, "a variable of a graph"),
                      graph_node<relax::RelaxExprNode>(value, "an expression of a graph"));
    return to_python(NodeRef(relax::erase_to_well_defined(info_of(info), known, tensors, arith)));
  });
  m.def("vars_of_info", [](nb::object info) { return vars(relax::vars_of(info_of(info))); });
  m.def("definable_vars", [](nb::object info) { return vars(relax::definable_vars(info_of(info))); });
  m.def("result_of_call", [](nb::object function, nb::object args) {
    arith::Analyzer arith;
    std::vector<relax::RExpr> given;
    for (nb::handle a : nb::iter(args))
      given.push_back(graph_node<relax::RelaxExprNode>(a, "an expression of a graph"));
    const relax::StructInfo info = info_of(function);
    const auto* f = info.as<relax::FuncInfo>();
    if (!f) wrong_type(function, "the struct info of a function");
    return to_python(NodeRef(relax::result_of_call(*f, given, arith)));
  });
  m.def("inline_functions", [](nb::object function, nb::dict callees) {
    std::map<std::string, relax::FuncRef> by_name;
    for (auto [name, callee] : callees)
      by_name.emplace(nb::cast<std::string>(name), graph_node<relax::Function>(callee, "a relax.Function"));
    relax::BlockBuilder builder;
    const auto f = graph_node<relax::Function>(function, "a relax.Function");
    return to_python(NodeRef(passes::inline_functions(f, by_name, builder)));
  });
}

}  // namespace sator::bind
