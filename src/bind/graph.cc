// Graphs built from Python: the builder that relax.BlockBuilder is a face of.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "bind/convert.h"
#include "bind/gil.h"
#include "bind/legalize.h"
#include "bind/parts.h"
#include "bind/te.h"
#include "relax/builder.h"
#include "relax/ops/table.h"
#include "relax/verify.h"

namespace sator::bind {

namespace {

using relax::BlockBuilder;
using relax::RExpr;

RExpr graph_of(nb::handle o) {
  if (PyLong_Check(o.ptr()) && !PyBool_Check(o.ptr())) return relax::prim_value(nb::cast<int64_t>(o));
  if (nb::isinstance<PrimExprHandle>(o)) return relax::prim_value(expr_of(o));
  if (PyUnicode_Check(o.ptr())) return relax::string_value(nb::cast<std::string>(o));
  if (PyList_Check(o.ptr()) || PyTuple_Check(o.ptr())) {
    const NestedList nested;
    std::vector<RExpr> items;
    for (nb::handle item : nb::iter(o)) items.push_back(graph_of(item));
    return relax::tuple(std::move(items));
  }
  const NodeRef node = node_of(o);
  if (const auto* e = node.as<relax::RelaxExprNode>()) return RExpr(e);
  wrong_type(o, "an expression of a graph");
}

relax::StructInfo struct_info_of(nb::handle o) {
  const NodeRef node = node_of(o);
  if (!node) return nullptr;
  const auto* info = node.as<relax::StructInfoNode>();
  if (!info) wrong_type(o, "struct info, such as R.Tensor((4,), \"float32\")");
  return relax::StructInfo(info);
}

std::vector<relax::RVarRef> params_of(nb::handle list) {
  std::vector<relax::RVarRef> out;
  for (nb::handle o : nb::iter(list)) {
    const NodeRef node = node_of(o);
    const auto* v = node.as<relax::RVar>();
    if (!v) wrong_type(o, "a variable of a graph, relax.Var");
    out.emplace_back(v);
  }
  return out;
}

nb::object call_te(BlockBuilder& b, const std::string& name, nb::list args, nb::object formula) {
  std::vector<RExpr> given;
  for (nb::handle a : args) given.push_back(graph_of(a));
  const RExpr made = b.call_te(name, given, [&](const relax::TeInputs& inputs) {
    nb::list values;
    for (const relax::TeInput& in : inputs.values) values.append(te_to_python(in));
    return te_tensors_of(formula(values));
  });
  if (!made)
    fail({.what = text(name, ": the shape of an argument is not known"),
          .needs = "arguments whose extents are known, if only as symbolic sizes",
          .hint = "bind them with match_cast first"});
  return to_python(NodeRef(made));
}

/// The builder as Python's functions are given it: relax.BlockBuilder, until the function has returned.
class LentBuilder {
 public:
  explicit LentBuilder(BlockBuilder& builder)
      : object_(nb::module_::import_("sator.relax.block_builder")
                    .attr("lent")(nb::cast(&builder, nb::rv_policy::reference))) {}
  ~LentBuilder() { object_.attr("_core") = nb::none(); }
  const nb::object& object() const { return object_; }

 private:
  nb::object object_;
};

/// Whether every extent that the struct info speaks of is known, if only as an expression.
bool knows_extents(const relax::StructInfo& info) {
  if (const auto* t = info.as<relax::TensorInfo>()) return relax::explicit_shape(*t).has_value();
  if (const auto* s = info.as<relax::ShapeInfo>()) return s->values.has_value();
  if (const auto* t = info.as<relax::TupleInfo>()) return std::ranges::all_of(t->items, knows_extents);
  return info.as<relax::PrimInfo>() != nullptr;
}

/// A normal form: a function of Python's (builder, call) -> expression. Its own exceptions pass through.
relax::LegalizeFn normalizer(nb::object function) {
  if (function.is_none()) return {};
  return [function = std::make_shared<PythonFunction>(std::move(function))](const relax::RCallRef& call,
                                                                            BlockBuilder& builder) {
    WithGil gil;
    const LentBuilder lent(builder);
    return graph_of(function->object(lent.object(), to_python(NodeRef(call))));
  };
}

Func func_of(const Handle& function) {
  const auto* func = function.node.as<FuncNode>();
  if (!func) wrong_type(to_python(function.node), "a function: a relax.Function or a tir.PrimFunc");
  return Func(func);
}

void add_user_op(const std::string& name, nb::object infer, nb::object normalize, nb::object legalize, bool pure,
                 bool needs_extents) {
  constexpr int kMostArguments = 16;
  relax::OpDef row{.name = name};
  for (int i = 0; i < kMostArguments; ++i) row.inputs.push_back({text("x", i), relax::InputKind::any, true});
  row.build = [](const relax::OpDef& op, relax::BoundArgs args) {
    while (!args.inputs.empty() && args.inputs.back().is_none()) args.inputs.pop_back();
    std::vector<RExpr> given;
    for (const relax::Value& v : args.inputs) given.push_back(relax::to_rexpr(v));
    return relax::call(relax::op_ref(op.name), std::move(given), std::move(args.attrs), {});
  };
  if (!infer.is_none())
    row.infer = [function = std::make_shared<PythonFunction>(std::move(infer))](const relax::CallInfo& in) {
      WithGil gil;
      return struct_info_of(function->object(to_python(NodeRef(ref(in.call()))), nb::none()));
    };
  else
    row.infer = [](const relax::CallInfo&) { return relax::object_info(); };
  row.normalize = normalizer(std::move(normalize));
  row.legalize = legalization_of(std::move(legalize), needs_extents);
  row.pure = pure;
  relax::add_op(std::move(row));
}

void add_block_builder(nb::module_& m) {
  nb::class_<BlockBuilder>(m, "BlockBuilder")
      .def(
          "__init__",
          [](BlockBuilder* self, nb::object module) {
            const NodeRef node = node_of(module);
            new (self) BlockBuilder(node ? ModuleRef(node.as<Module>()) : nullptr);
          },
          nb::arg("module").none())
      .def("module",
           [](const BlockBuilder& b) {
             return b.module() ? to_python(NodeRef(b.module()))
                               : to_python(NodeRef(make<Module>(std::map<std::string, Func>(), Attrs(), Attrs())));
           })
      .def("begin_scope", [](BlockBuilder& b, nb::object params) { b.begin_scope(params_of(params)); })
      .def("end_scope", &BlockBuilder::end_scope)
      .def("begin_block", &BlockBuilder::begin_block)
      .def("end_block", [](BlockBuilder& b) { return to_python(NodeRef(b.end_block())); })
      .def("in_dataflow", &BlockBuilder::in_dataflow)
      .def(
          "end_function",
          [](BlockBuilder& b, nb::object params, nb::object blocks, nb::object result, nb::object attrs, bool is_pure) {
            std::vector<relax::BindingBlockRef> list;
            for (nb::handle o : nb::iter(blocks)) {
              const NodeRef node = node_of(o);
              if (!node.as<relax::BindingBlock>()) wrong_type(o, "a relax.BindingBlock");
              list.emplace_back(node.as<relax::BindingBlock>());
            }
            return to_python(NodeRef(
                b.end_function(params_of(params), std::move(list), graph_of(result), attributes_of(attrs), is_pure)));
          },
          nb::arg("params"),
          nb::arg("blocks"),
          nb::arg("result"),
          nb::arg("attrs").none(),
          nb::arg("is_pure"))
      .def("emit",
           [](BlockBuilder& b, nb::object e, const std::string& name) {
             return to_python(NodeRef(b.emit(graph_of(e), name)));
           })
      .def("emit_output",
           [](BlockBuilder& b, nb::object e, const std::string& name) {
             return to_python(NodeRef(b.emit_output(graph_of(e), name)));
           })
      .def("emit_match_cast",
           [](BlockBuilder& b, nb::object e, nb::object info, const std::string& name) {
             return to_python(NodeRef(b.emit_match_cast(graph_of(e), struct_info_of(info), name)));
           })
      .def("emit_binding",
           [](BlockBuilder& b, const Handle& binding) {
             const auto* given = binding.node.as<relax::BindingNode>();
             if (!given) wrong_type(to_python(binding.node), "a relax.VarBinding or a relax.MatchCast");
             b.emit_binding(relax::Binding(given));
           })
      .def("bound_value",
           [](const BlockBuilder& b, nb::object var) { return to_python(NodeRef(b.bound_value(graph_of(var)))); })
      .def("normalize", [](BlockBuilder& b, nb::object e) { return to_python(NodeRef(b.normalize(graph_of(e)))); })
      .def("add_function",
           [](BlockBuilder& b, const Handle& f, const std::string& name) {
             return to_python(NodeRef(b.add_function(func_of(f), name)));
           })
      .def("update_function",
           [](BlockBuilder& b, const std::string& name, const Handle& f) { b.update_function(name, func_of(f)); })
      .def("call_te", call_te)
      .def("fresh_name", &BlockBuilder::fresh_name);
}

}  // namespace

relax::LegalizeFn legalization_of(nb::object function, bool needs_extents) {
  if (function.is_none()) return {};
  return [needs_extents, function = std::make_shared<PythonFunction>(std::move(function))](
             const relax::RCallRef& call, BlockBuilder& builder) -> RExpr {
    const auto knows = [](const RExpr& e) { return knows_extents(e->sinfo); };
    if (needs_extents && !(std::ranges::all_of(call->args, knows) && knows(call))) return nullptr;
    WithGil gil;
    const LentBuilder lent(builder);
    return graph_of(function->object(lent.object(), to_python(NodeRef(call))));
  };
}

void add_graph(nb::module_& m) {
  add_block_builder(m);
  m.def(
      "graph_var",
      [](const std::string& name, nb::object info, bool is_dataflow) {
        const relax::StructInfo sinfo = struct_info_of(info);  // null: what a binding tells of it
        return to_python(NodeRef(is_dataflow ? relax::make_dataflow_var(name, sinfo) : relax::make_rvar(name, sinfo)));
      },
      nb::arg("name"),
      nb::arg("info").none(),
      nb::arg("is_dataflow"));
  m.def(
      "graph_call",
      [](nb::object op, nb::object args, nb::object attrs, nb::object sinfo_args) {
        std::vector<RExpr> given;
        for (nb::handle a : nb::iter(args)) given.push_back(graph_of(a));
        std::vector<relax::StructInfo> infos;
        if (!sinfo_args.is_none())
          for (nb::handle i : nb::iter(sinfo_args)) {
            if (i.is_none()) wrong_type(i, "struct info, such as R.Tensor((4,), \"float32\")");
            infos.push_back(struct_info_of(i));
          }
        Attrs all = attributes_of(attrs);
        const RExpr callee = graph_of(op);
        // What is not given has its standard value.
        if (const auto* o = callee.as<relax::Op>())
          for (const relax::AttrDef& a : relax::op_named(o->name).attrs)
            if (a.standard) all.emplace(a.name, a.standard);
        return to_python(NodeRef(relax::call(callee, std::move(given), std::move(all), std::move(infos))));
      },
      nb::arg("op"),
      nb::arg("args"),
      nb::arg("attrs").none(),
      nb::arg("sinfo_args").none());
  m.def("op_ref", [](const std::string& name) {
    relax::op_named(name);
    return to_python(NodeRef(relax::op_ref(name)));
  });
  m.def("add_user_op",
        add_user_op,
        nb::arg("name"),
        nb::arg("infer").none(),
        nb::arg("normalize").none(),
        nb::arg("legalize").none(),
        nb::arg("pure"),
        nb::arg("needs_extents"),
        "An op of the user's: infer(call, builder) gives its struct info, normalize(builder, call) its normal form, "
        "legalize(builder, call) what takes its place; needs_extents: it is asked only where all extents are known.");
  m.def("remove_user_op", relax::remove_op);
  m.def("is_impure_call", [](const Handle& e) {
    const auto* expr = e.node.as<relax::RelaxExprNode>();
    return expr && relax::is_impure_call(RExpr(expr));
  });
  m.def("global_var", [](const std::string& name, const Handle& f) {
    const auto* func = f.node.as<FuncNode>();
    if (!func) throw nb::type_error("a function is named");
    return to_python(NodeRef(relax::global_var(name, relax::info_of(*func))));
  });
  m.def("local_function", [](const Handle& f) {
    const auto* func = f.node.as<relax::Function>();
    if (!func) throw nb::type_error("a function inside of another is a relax.Function");
    return to_python(NodeRef(make<relax::LocalFunction>(relax::FuncRef(func), relax::info_of(*func))));
  });
  m.def("graph_expr", [](nb::object o) { return to_python(NodeRef(graph_of(o))); });
  m.def("constant", [](const NDArray& a) { return to_python(NodeRef(relax::constant(a.tensor))); });
  m.def("tuple", [](nb::object items) {
    std::vector<RExpr> all;
    for (nb::handle o : nb::iter(items)) all.push_back(graph_of(o));
    return to_python(NodeRef(relax::tuple(std::move(all))));
  });
  m.def("tuple_get",
        [](nb::object tuple, int index) { return to_python(NodeRef(relax::tuple_get(graph_of(tuple), index))); });
  m.def("shape", [](nb::object values) {
    std::vector<Expr> all;
    for (nb::handle o : nb::iter(values)) all.push_back(expr_of(o));
    for (Expr& e : all)
      if (as_int(e)) e = cast_to(i64, e);
    return to_python(NodeRef(relax::shape_expr(std::move(all))));
  });
}

}  // namespace sator::bind
