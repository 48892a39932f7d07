// Tensor expressions from Python: placeholder, compute, reductions, the formulas of the table of ops.
#include "bind/te.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "base/error.h"
#include "bind/gil.h"
#include "bind/parts.h"
#include "relax/builder.h"
#include "relax/ops/table.h"
#include "tir/nodes.h"

namespace sator::bind {

namespace {

/// The names of a function's parameters; as many as there are axes, of `*indices` i0, i1, ...
std::vector<std::string> axis_names(nb::handle function, size_t rank) {
  std::vector<std::string> out;
  nb::object inspect = nb::module_::import_("inspect");
  for (nb::handle p : nb::iter(inspect.attr("signature")(function).attr("parameters").attr("values")())) {
    if (p.attr("kind").equal(inspect.attr("Parameter").attr("VAR_POSITIONAL"))) {
      while (out.size() < rank) out.push_back(text("i", out.size()));
    } else {
      out.push_back(nb::cast<std::string>(p.attr("name")));
    }
  }
  if (out.size() != rank)
    fail({.what = text("a function of ", out.size(), " indices for a tensor of rank ", rank),
          .needs = "one index per dimension",
          .hint = "write one parameter for each, or *indices"});
  return out;
}

/// Variables stand for the axes while Python computes the formula, once; then the axes take their places.
VarMap axes_for(const std::vector<VarRef>& variables, const te::Indices& axes) {
  VarMap out;
  for (size_t i = 0; i < variables.size(); ++i) out.emplace(variables[i], axes[i]);
  return out;
}

te::Reduction substituted(const te::Reduction& r, const VarMap& map) {
  te::Reduction out = r;
  for (Expr& source : out.sources) source = substitute(source, map);
  return out;
}

nb::object list_of(const std::vector<te::Tensor>& tensors) {
  nb::list out;
  for (const te::Tensor& t : tensors) out.append(nb::cast(t));
  return out;
}

nb::object compute(nb::handle shape, nb::handle function, const std::string& name, nb::object attrs,
                   const std::string& tag) {
  const std::vector<Expr> extents = extents_of(shape);
  te::Naming naming{.name = name, .axes = axis_names(function, extents.size()), .tag = tag};
  naming.annotations = attributes_of(attrs);
  std::vector<VarRef> variables;
  nb::list indices;
  for (size_t i = 0; i < extents.size(); ++i) {
    variables.push_back(make_var(naming.axes[i], extents[i]->dtype));
    indices.append(to_python(NodeRef(variables.back())));
  }
  nb::object result = function(*indices);
  if (nb::isinstance<te::Reduction>(result)) {
    const auto& reduction = nb::cast<const te::Reduction&>(result);
    auto body = [&](const te::Indices& i) { return substituted(reduction, axes_for(variables, i)); };
    if (reduction.sources.size() > 1) return list_of(te::reduce_together(naming, extents, body));
    return nb::cast(te::reduce(naming, extents, body));
  }
  if (PyTuple_Check(result.ptr()) || PyList_Check(result.ptr())) {
    std::vector<Expr> bodies;
    for (nb::handle item : nb::iter(result)) bodies.push_back(expr_of(item));
    return list_of(te::compute_together(naming, extents, [&](const te::Indices& i) {
      std::vector<Expr> out;
      for (const Expr& e : bodies) out.push_back(substitute(e, axes_for(variables, i)));
      return out;
    }));
  }
  const Expr body = expr_of(result, "an expression, or a reduction such as te.sum");
  return nb::cast(
      te::compute(naming, extents, [&](const te::Indices& i) { return substitute(body, axes_for(variables, i)); }));
}

std::vector<tir::IterVarRef> axes_of(nb::handle axes) {
  std::vector<tir::IterVarRef> out;
  auto add = [&](nb::handle a) {
    const NodeRef node = node_of(a);
    const auto* axis = node.as<tir::IterVar>();
    if (!axis) wrong_type(a, "an axis: te.reduce_axis((0, n))");
    out.emplace_back(axis);
  };
  if (PyList_Check(axes.ptr()) || PyTuple_Check(axes.ptr())) {
    for (nb::handle a : nb::iter(axes)) add(a);
  } else {
    add(axes);
  }
  return out;
}

/// An op's formula over tensors: the call is made over variables of their shapes, so that its result is inferred as in a graph.
class FormulaCall {
 public:
  explicit FormulaCall(const std::string& name) : op_(relax::op_named(name)) {
    if (!op_.compute)
      fail({.what = text("the op ", name, " has no formula over tensors"),
            .needs = "an op that LegalizeOps turns into loops by its formula",
            .hint = "write the formula with te.compute"});
  }

  nb::object call(nb::list positional, nb::dict keywords) {
    std::vector<relax::Value> args;
    for (nb::handle a : positional) args.push_back(argument(a));
    std::vector<std::pair<std::string, relax::Value>> named;
    for (auto [key, value] : keywords) named.emplace_back(nb::cast<std::string>(key), argument(value));
    relax::BlockBuilder builder;
    const relax::RExpr made = builder.normalize(relax::build_call(op_, relax::bind_args(op_, args, named)));
    const auto& call = *made.as<relax::RCall>();
    if (!call.sinfo.as<relax::TensorInfo>() && !call.sinfo.as<relax::TupleInfo>())
      throw nb::type_error(
          text("topi.", op_.name, " of no tensor\n  needs: te tensors\n  hint:  te.placeholder((n,))").c_str());
    relax::TeInputs inputs{.out = call.sinfo};
    for (const relax::RExpr& arg : call.args) inputs.values.push_back(input(arg));
    const std::vector<te::Tensor> out = op_.compute(call.attrs, inputs);
    return out.size() == 1 ? nb::cast(out[0]) : list_of(out);
  }

 private:
  relax::Value argument(nb::handle a) {
    if (a.is_none()) return {};
    if (nb::isinstance<te::Tensor>(a)) return relax::Value(relax::RExpr(variable(nb::cast<const te::Tensor&>(a))));
    if (PyBool_Check(a.ptr())) return a.ptr() == Py_True;
    if (PyFloat_Check(a.ptr())) return nb::cast<double>(a);
    if (PyUnicode_Check(a.ptr())) return nb::cast<std::string>(a);
    if (PyList_Check(a.ptr()) || PyTuple_Check(a.ptr())) {
      const NestedList nested;
      relax::Value::List list;
      for (nb::handle item : nb::iter(a)) list.push_back(argument(item));
      return list;
    }
    if (PyLong_Check(a.ptr())) return nb::cast<int64_t>(a);
    return expr_of(a);
  }

  relax::RVarRef variable(const te::Tensor& t) {
    std::vector<Expr> shape;
    for (const Expr& e : t.shape()) shape.push_back(cast_to(i64, e));
    relax::RVarRef v = relax::make_rvar(t.name(), relax::tensor_info(std::move(shape), t.dtype()));
    tensors_.emplace(v.get(), t);
    return v;
  }

  relax::TeInput input(const relax::RExpr& e) {
    if (const auto* v = e.as<relax::RVar>()) return tensors_.at(v);
    if (const auto* p = e.as<relax::PrimValue>()) return p->value;
    if (const auto* s = e.as<relax::ShapeExpr>()) return s->values;
    if (const auto* t = e.as<relax::Tuple>()) {
      std::vector<te::Tensor> items;
      for (const relax::RExpr& item : t->items) {
        const auto* v = item.as<relax::RVar>();
        if (!v) internal_error("a tuple of a formula's arguments holds something else than tensors");
        items.push_back(tensors_.at(v));
      }
      return items;
    }
    return std::monostate();
  }

  const relax::OpDef& op_;
  std::unordered_map<const relax::RVar*, te::Tensor> tensors_;
};

/// Expressions that a function of Python's gives for these: one, or a list or tuple of them.
std::vector<Expr> exprs_from(const nb::object& function, const std::vector<Expr>& lhs, const std::vector<Expr>& rhs) {
  auto argument = [](const std::vector<Expr>& side) -> nb::object {
    nb::list all;
    for (const Expr& e : side) all.append(to_python(NodeRef(e)));
    return side.size() == 1 ? nb::object(all[0]) : nb::object(nb::tuple(all));
  };
  return extents_of(function(argument(lhs), argument(rhs)));
}

/// The reduction of one expression or several by a reducer that is written in Python.
///   combine   (x, y) -> x: of tuples where several are reduced together
te::Reduction reduced_by(nb::object combine, nb::object identity, nb::object sources, nb::object axis) {
  // Counted with the reduction, which may be freed without Python's lock.
  auto held = std::shared_ptr<nb::object>(new nb::object(std::move(combine)), [](nb::object* o) {
    WithGil gil;
    delete o;
  });
  te::Reducer reducer{extents_of(identity), [held](const std::vector<Expr>& l, const std::vector<Expr>& r) {
                        WithGil gil;
                        return exprs_from(*held, l, r);
                      }};
  return {std::move(reducer), extents_of(sources), axes_of(axis)};
}

/// Tensors that a statement of Python's computes: `body` is called with the buffers of the inputs and of the results.
nb::object extern_tensors(const std::string& name, nb::object inputs, nb::list shapes, nb::list dtypes,
                          nb::object body) {
  const std::vector<te::Tensor> given = te_tensors_of(inputs);
  std::vector<te::ExternOutput> outputs;
  for (size_t i = 0; i < nb::len(shapes); ++i) {
    const std::optional<DType> dtype = DType::parse(nb::cast<std::string>(nb::str(dtypes[i])));
    if (!dtype) wrong_type(dtypes[i], "a dtype, such as \"float32\"");
    outputs.push_back({extents_of(shapes[i]), *dtype, nb::len(shapes) == 1 ? name : text(name, ".v", i)});
  }
  auto held = std::shared_ptr<nb::object>(new nb::object(std::move(body)), [](nb::object* o) {
    WithGil gil;
    delete o;
  });
  return list_of(te::extern_stage(
      name, given, std::move(outputs), [held, n = given.size()](const std::vector<BufferRef>& buffers) -> tir::Stmt {
        WithGil gil;
        nb::list ins, outs;
        for (size_t i = 0; i < buffers.size(); ++i) (i < n ? ins : outs).append(to_python(NodeRef(buffers[i])));
        nb::object made = (*held)(ins, outs);
        const NodeRef node = nb::isinstance<PrimExprHandle>(made) ? NodeRef(expr_of(made)) : node_of(made);
        if (const auto* s = node.as<tir::StmtNode>()) return tir::Stmt(s);
        if (!node.as<ExprNode>()) wrong_type(made, "a statement or a call");
        return make<tir::Evaluate>(Expr(node.as<ExprNode>()));
      }));
}

template <te::Reduction (*kReduce)(Expr, std::vector<tir::IterVarRef>)>
te::Reduction reduced(nb::handle source, nb::handle axis) {
  return kReduce(expr_of(source), axes_of(axis));
}

}  // namespace

std::vector<Expr> extents_of(nb::handle shape) {
  std::vector<Expr> out;
  if (PyList_Check(shape.ptr()) || PyTuple_Check(shape.ptr())) {
    for (nb::handle e : nb::iter(shape)) out.push_back(expr_of(e));
  } else {
    out.push_back(expr_of(shape));
  }
  return out;
}

nb::object te_to_python(const relax::TeInput& input) {
  struct Convert {
    nb::object operator()(std::monostate) { return nb::none(); }
    nb::object operator()(const te::Tensor& t) { return nb::cast(t); }
    nb::object operator()(const Expr& e) { return to_python(NodeRef(e)); }
    nb::object operator()(const std::vector<Expr>& list) {
      nb::list out;
      for (const Expr& e : list) out.append(to_python(NodeRef(e)));
      return out;
    }
    nb::object operator()(const std::vector<te::Tensor>& list) {
      nb::list out;
      for (const te::Tensor& t : list) out.append(nb::cast(t));
      return out;
    }
  };
  return std::visit(Convert(), input);
}

std::vector<te::Tensor> te_tensors_of(nb::handle o) {
  if (nb::isinstance<te::Tensor>(o)) return {nb::cast<const te::Tensor&>(o)};
  if (!PyList_Check(o.ptr()) && !PyTuple_Check(o.ptr())) wrong_type(o, "a tensor of te, or a list of them");
  std::vector<te::Tensor> out;
  for (nb::handle item : nb::iter(o)) {
    if (!nb::isinstance<te::Tensor>(item)) wrong_type(item, "a tensor of te");
    out.push_back(nb::cast<const te::Tensor&>(item));
  }
  return out;
}

void add_te(nb::module_& m) {
  nb::class_<te::Reduction> reduction(
      m, "Reduction", "A sum, maximum, ... over axes: what te.compute's function may return.");
  not_called(reduction, "te.sum(expr, axis), te.max, te.min, te.prod, or te.comm_reducer");
  reduction.def(
      "_beginning_with",
      [](te::Reduction r, nb::object values) {
        std::vector<Expr> begin = extents_of(values);
        if (begin.size() != r.sources.size())
          fail({.what = text(begin.size(), " initial values of a reduction of ", r.sources.size()),
                .needs = "one for each expression"});
        for (size_t i = 0; i < begin.size(); ++i) {
          if (!begin[i].as<IntImm>() && !begin[i].as<FloatImm>())
            fail({.what = "a reduction that begins with what is no number",
                  .needs = "a number for each expression",
                  .hint = "combine the result with it"});
          begin[i] = cast_to(r.sources[i]->dtype, begin[i]);
        }
        r.reducer.identity = std::move(begin);
        return r;
      },
      "The reduction with other values that its block begins with.");
  nb::class_<te::Tensor> tensor(m, "Tensor", "A tensor that a formula defines, or a placeholder.");
  not_called(tensor, "te.placeholder(shape), or te.compute(shape, function)");
  tensor
      .def_prop_ro("shape",
                   [](const te::Tensor& t) {
                     nb::list out;
                     for (const Expr& e : t.shape()) out.append(to_python(NodeRef(e)));
                     return nb::tuple(out);
                   })
      .def_prop_ro("dtype", [](const te::Tensor& t) { return t.dtype().name(); })
      .def_prop_ro("name", [](const te::Tensor& t) { return t.name(); })
      .def("_operation_name", [](const te::Tensor& t) { return t.stage()->name; })
      .def_prop_ro("ndim", [](const te::Tensor& t) { return t.rank(); })
      .def("_axes",
           [](const te::Tensor& t) {
             nb::list out;
             for (const tir::IterVarRef& a : t.stage()->axes) out.append(to_python(NodeRef(a)));
             return out;
           })
      .def_prop_ro("value_index", [](const te::Tensor& t) { return t.output(); })
      .def("_tag", [](const te::Tensor& t) { return t.stage()->tag; })
      .def("_tagged", [](const te::Tensor& t, const std::string& tag) { return te::tagged(t, tag); })
      .def("_attrs",
           [](const te::Tensor& t) {
             nb::dict out;
             for (const auto& [key, value] : t.stage()->annotations) out[key.c_str()] = from_attribute(value);
             return out;
           })
      .def("_inputs", [](const te::Tensor& t) { return list_of(t.stage()->inputs); })
      .def("_outputs",
           [](const te::Tensor& t) {
             nb::list out;
             for (size_t i = 0; i < t.stage()->outputs.size(); ++i)
               out.append(nb::cast(te::Tensor(t.stage(), static_cast<int>(i))));
             return out;
           })
      .def("_kind",
           [](const te::Tensor& t) {
             const te::Stage& s = *t.stage();
             return std::string(s.is_placeholder() ? "placeholder"
                                : s.is_scan        ? "scan"
                                : s.statement      ? "extern"
                                                   : "compute");
           })
      .def("_bodies",
           [](const te::Tensor& t) {
             nb::list out;
             const te::Stage& s = *t.stage();
             for (const Expr& e : s.reduction ? s.reduction->sources : s.bodies) out.append(to_python(NodeRef(e)));
             return out;
           })
      .def("_reduce_axes",
           [](const te::Tensor& t) {
             nb::list out;
             if (t.stage()->reduction)
               for (const tir::IterVarRef& a : t.stage()->reduction->axes) out.append(to_python(NodeRef(a)));
             return out;
           })
      .def("_element",
           [](const te::Tensor& t, nb::object indices) {
             std::vector<Expr> at = extents_of(indices);
             if (static_cast<int64_t>(at.size()) != t.rank())
               fail({.what = text(at.size(), " indices for the tensor ", t.name(), " of rank ", t.rank()),
                     .needs = "one index per dimension",
                     .hint = "A[i, j]"});
             return to_python(NodeRef(t(std::move(at))));
           })
      .def(
          "__eq__",
          [](const te::Tensor& a, nb::object b) {
            return nb::isinstance<te::Tensor>(b) && nb::cast<const te::Tensor&>(b) == a;
          },
          nb::arg().none())
      .def("__hash__", [](const te::Tensor& a) {
        return static_cast<Py_ssize_t>(reinterpret_cast<uintptr_t>(a.stage().get()) >> 4) + a.output();
      });
  nb::module_ te = m.def_submodule("te");
  te.def(
      "placeholder",
      [](nb::object shape, const std::string& dtype, const std::string& name) {
        const DType d = dtype_named(dtype);
        return te::placeholder(extents_of(shape), d, name);
      },
      nb::arg("shape"),
      nb::arg("dtype") = "float32",
      nb::arg("name") = "placeholder",
      "A tensor that is given.");
  te.def("compute", compute);
  te.def("reduce_axis", [](nb::object low, nb::object high, const std::string& name) {
    const Expr end = expr_of(high);
    Expr begin = expr_of(low);
    if (as_int(begin)) begin = cast_to(end->dtype, begin);
    return to_python(NodeRef(te::reduce_axis(begin, end - begin, name)));
  });
  te.def("sum", reduced<te::reduce_sum>, nb::arg("expr"), nb::arg("axis"), "The sum over axes.");
  te.def("prod", reduced<te::reduce_prod>, nb::arg("expr"), nb::arg("axis"), "The product over axes.");
  te.def("max", reduced<te::reduce_max>, nb::arg("expr"), nb::arg("axis"), "The largest value over axes.");
  te.def("min", reduced<te::reduce_min>, nb::arg("expr"), nb::arg("axis"), "The smallest value over axes.");
  te.def("reduced_by", reduced_by);
  te.def("extern_tensors", extern_tensors);
  te.def("scan", [](nb::object init, nb::object update, nb::object states, const std::string& name) {
    return list_of(te::scan(name, te_tensors_of(init), te_tensors_of(update), te_tensors_of(states)));
  });
  te.def(
      "create_prim_func",
      [](nb::object args, nb::object index_dtype) {
        std::vector<te::Arg> given;
        for (nb::handle a : nb::iter(args)) {
          if (nb::isinstance<te::Tensor>(a)) {
            given.emplace_back(nb::cast<const te::Tensor&>(a));
          } else {
            const NodeRef node = node_of(a);
            const Var* v = node.as<Var>();
            if (!v) wrong_type(a, "a tensor or a variable");
            given.emplace_back(VarRef(v));
          }
        }
        DType index = i32;
        if (!index_dtype.is_none()) {
          const std::optional<DType> d = DType::parse(nb::cast<std::string>(index_dtype));
          if (!d || !d->is_int()) wrong_type(index_dtype, "a dtype of indices, such as \"int64\"");
          index = *d;
        }
        return to_python(NodeRef(te::create_prim_func(given, index)));
      },
      nb::arg("ops"),
      nb::arg("index_dtype_override").none() = nb::none(),
      "The tensor program that computes those of the tensors that are not placeholders from those that are.");
  m.def(
      "formula",
      [](const std::string& op, nb::list positional, nb::dict keywords) {
        return FormulaCall(op).call(positional, keywords);
      },
      "An op's formula over tensors of te.");
}

}  // namespace sator::bind
