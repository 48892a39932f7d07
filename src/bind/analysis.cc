// What tir.analysis asks of tensor programs, and functions with some of their parameters known.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bind/node.h"
#include "bind/parts.h"
#include "passes/device/device.h"
#include "relax/bind.h"
#include "relax/verify.h"
#include "tir/analysis.h"
#include "tir/copy.h"
#include "tir/nodes.h"
#include "tir/regions.h"
#include "tir/specialize.h"
#include "tir/verify.h"

namespace sator::bind {

namespace {

const tir::PrimFunc& program_of(const Handle& h) {
  const auto* f = h.node.as<tir::PrimFunc>();
  if (!f) wrong_type(to_python(h.node), "a tir.PrimFunc");
  return *f;
}

nb::list texts(const std::vector<Reason>& reasons) {
  nb::list out;
  for (const Reason& r : reasons) out.append(r.render());
  return out;
}

/// Buffers by what Python names them with: their pointers are what a block may access.
tir::VisibleBuffers visible_in(nb::dict buffers) {
  tir::VisibleBuffers out;
  for (auto [var, buffer] : buffers) {
    const NodeRef v = node_of(var), b = node_of(buffer);
    if (!v.as<Var>() || !b.as<Buffer>()) wrong_type(buffer, "{pointer: buffer}");
    out.emplace(VarRef(v.as<Var>()), BufferRef(b.as<Buffer>()));
  }
  return out;
}

nb::object specialized(const Handle& h, nb::dict given) {
  VarMap values;
  std::unordered_map<VarRef, BufferRef> buffers;
  for (auto [param, value] : given) {
    const NodeRef p = node_of(param);
    const Var* var = p.as<Var>();
    if (!var) wrong_type(param, "a parameter of the function");
    if (nb::isinstance<Handle>(value) && node_of(value).as<Buffer>()) {
      buffers.emplace(VarRef(var), BufferRef(node_of(value).as<Buffer>()));
    } else {
      values.emplace(VarRef(var), expr_of(value));
    }
  }
  return to_python(NodeRef(tir::specialize(tir::PrimFuncRef(&program_of(h)), values, buffers)));
}

/// {parameter or size, or its name: value} of bind_params and bind_sizes.
relax::NamedValues named_values(nb::dict given) {
  relax::NamedValues out;
  for (auto [key, value] : given) out.emplace_back(attribute_of(key), attribute_of(value));
  return out;
}

template <relax::FuncRef (*kBind)(const relax::FuncRef&, const relax::NamedValues&, relax::BlockBuilder&)>
nb::object bound(const Handle& h, nb::dict values) {
  const auto* f = h.node.as<relax::Function>();
  if (!f) wrong_type(to_python(h.node), "a relax.Function");
  relax::BlockBuilder builder;
  return to_python(NodeRef(kBind(relax::FuncRef(f), named_values(values), builder)));
}

}  // namespace

void add_analysis(nb::module_& m) {
  m.def(
      "not_pure",
      [](const Handle& f) -> nb::object {
        const std::optional<Reason> reason = tir::not_pure(program_of(f));
        return reason ? nb::object(nb::str(reason->render().c_str())) : nb::none();
      },
      "Why calls of a tensor program have an effect, or None.");
  m.def(
      "not_separate",
      [](const Handle& module) -> nb::object {
        const auto* given = module.node.as<Module>();
        if (!given) wrong_type(to_python(module.node), "an IRModule");
        const std::optional<Reason> reason = tir::not_separate(*given);
        return reason ? nb::object(nb::str(reason->render().c_str())) : nb::none();
      },
      "Why two programs of a module are not separate, or None.");
  m.def("out_of_bounds", [](const Handle& f) { return texts(tir::out_of_bounds(program_of(f))); });
  m.def("is_touched_by_host", [](const Handle& f) { return !passes::touched_by_host(program_of(f)).empty(); });
  m.def(
      "calls",
      [](const Handle& f, const std::string& op) {
        bool found = false;
        walk(program_of(f).body, [&](const Call& call) { found |= call.op == op; });
        return found;
      },
      "Whether a tensor program calls a builtin, by its full name.");
  m.def("is_ssa", [](const Handle& f) { return tir::is_ssa(program_of(f)); });
  m.def("undefined_vars", [](const Handle& node) {
    nb::list out;
    for (const VarRef& v : tir::undefined_vars(node.node)) out.append(to_python(NodeRef(v)));
    return out;
  });
  m.def("workspace_bytes",
        [](const Handle& f, int64_t alignment) { return tir::workspace_bytes(program_of(f), alignment); });
  m.def("constant_bytes",
        [](const Handle& f, int64_t alignment) { return tir::constant_bytes(program_of(f), alignment); });
  m.def("allocated_bytes", [](const Handle& f) { return tir::allocated_bytes(program_of(f)); });
  m.def("estimate_flops", [](const Handle& module) {
    const Module* given = module.node.as<Module>();
    if (!given) wrong_type(to_python(module.node), "an IRModule");
    return tir::estimate_flops(*given);
  });
  m.def(
      "verify_function",
      [](const Handle& f) {
        if (const auto* graph = f.node.as<relax::Function>()) return texts(relax::verify(*graph));
        return texts(tir::verify(program_of(f)));
      },
      "Every mistake of one function, as a text each; what it calls is taken to be right.");
  m.def(
      "block_regions",
      [](const Handle& block, nb::dict buffers) {
        const auto* b = block.node.as<tir::Block>();
        if (!b) wrong_type(to_python(block.node), "a tir.Block");
        const tir::BlockRegions found = tir::block_regions(*b, visible_in(buffers));
        nb::list reads, writes, opaque;
        for (const tir::BufferRegionRef& r : found.reads) reads.append(to_python(NodeRef(r)));
        for (const tir::BufferRegionRef& r : found.writes) writes.append(to_python(NodeRef(r)));
        for (const VarRef& v : found.opaque) opaque.append(to_python(NodeRef(v)));
        return nb::make_tuple(reads, writes, opaque);
      },
      "What one instance of a block reads, writes, and accesses through pointers.");
  m.def("fresh_function",
        [](const Handle& f) { return to_python(NodeRef(tir::fresh_function(tir::PrimFuncRef(&program_of(f))))); });
  m.def(
      "fresh_graph",
      [](const Handle& h) {
        const auto* f = h.node.as<relax::Function>();
        if (!f) wrong_type(to_python(h.node), "a relax.Function");
        return to_python(NodeRef(relax::fresh_copy(relax::FuncRef(f))));
      },
      "The graph with variables of its own.");
  m.def("specialize", specialized, "The tensor program with values for some of its parameters.");
  m.def("bind_params", bound<relax::bind_params>, "The graph with values for some of its parameters.");
  m.def("bind_sizes", bound<relax::bind_sizes>, "The graph with values for some of its symbolic sizes.");
}

}  // namespace sator::bind
