#include "bind/node.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <unordered_map>

#include "arith/index_map.h"
#include "bind/tensor.h"
#include "ir/builtins.h"
#include "ir/literal.h"
#include "relax/nodes.h"
#include "relax/print.h"
#include "tir/nodes.h"
#include "tir/print.h"
#include "tir/print_impl.h"
#include "tir/te.h"

namespace sator::bind {

namespace {

/// The Python class of each node class. They are never freed: Python's objects of them may be the last to go.
std::unordered_map<const NodeInfo*, PyObject*>& classes() {
  static auto* all = new std::unordered_map<const NodeInfo*, PyObject*>;
  return *all;
}
PyObject* dataflow_var_class = nullptr;
PyObject* size_var_class = nullptr;

/// A class below `base` with read-only properties.
nb::object make_class(const std::string& name, const std::string& module, nb::handle base,
                      const std::vector<FieldRow>& fields) {
  nb::dict members;
  members["__module__"] = "sator." + module;
  members["__slots__"] = nb::make_tuple();
  nb::object property = nb::module_::import_("builtins").attr("property");
  nb::list names;
  for (const FieldRow& f : fields) {
    nb::object get = nb::cpp_function([get = f.get](const Handle& h) { return get(*h.node); });
    names.append(f.name);
    members[f.name.c_str()] = property(get);
    for (const std::string& alias : f.aliases) members[alias.c_str()] = property(get);
  }
  members["_fields"] = nb::tuple(names);
  nb::handle metaclass(reinterpret_cast<PyObject*>(Py_TYPE(base.ptr())));
  return metaclass(name, nb::make_tuple(base), members);
}

/// One operator of Python on expressions.
Expr binary(const std::string& op, const Expr& a, const Expr& b) {
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (op == "/") return div(a, b);
  if (op == "//") return floordiv(a, b);
  if (op == "%") return floormod(a, b);
  if (op == "<") return lt(a, b);
  if (op == "<=") return le(a, b);
  if (op == ">") return gt(a, b);
  if (op == ">=") return ge(a, b);
  if (op == "==") return eq(a, b);
  if (op == "!=") return ne(a, b);
  if (op == "and") return logical_and(a, b);
  if (op == "or") return logical_or(a, b);
  if (op == "min") return min(a, b);
  if (op == "max") return max(a, b);
  if (op == "truncdiv") return div(a, b);
  if (op == "truncmod") return truncmod(a, b);
  internal_error("no operator " + op);
}

void add_operators(nb::class_<PrimExprHandle, Handle>& c) {
  static constexpr std::pair<const char*, const char*> kOperators[] = {
      {"add", "+"}, {"sub", "-"}, {"mul", "*"}, {"truediv", "/"}, {"floordiv", "//"}, {"mod", "%"}};
  auto expr_handle = [](const Handle& h) { return Expr(static_cast<const ExprNode*>(h.node.get())); };
  for (auto [name, op] : kOperators) {
    c.def(("__" + std::string(name) + "__").c_str(),
          [=](const PrimExprHandle& a, nb::object b) -> nb::object {
            // te's tensors know what an operand of all of their elements is.
            if (nb::isinstance<te::Tensor>(b)) return nb::borrow(Py_NotImplemented);
            return to_python(binary(op, expr_handle(a), expr_of(b)));
          },
          nb::arg().none());
    c.def(("__r" + std::string(name) + "__").c_str(),
          [=](const PrimExprHandle& a, nb::object b) { return to_python(binary(op, expr_of(b), expr_handle(a))); },
          nb::arg().none());
  }
  static constexpr std::pair<const char*, const char*> kComparisons[] = {
      {"lt", "<"}, {"le", "<="}, {"gt", ">"}, {"ge", ">="}};
  for (auto [name, op] : kComparisons) {
    c.def(("__" + std::string(name) + "__").c_str(),
          [=](const PrimExprHandle& a, nb::object b) { return to_python(binary(op, expr_handle(a), expr_of(b))); },
          nb::arg().none());
  }
  // `a == b` is an expression; as a condition of Python's it asks whether both are the same object, or equal constants.
  c.def(
      "__eq__",
      [=](const PrimExprHandle& a, nb::object b) -> nb::object {
        if (b.is_none() || !(nb::isinstance<PrimExprHandle>(b) || PyLong_Check(b.ptr()) || PyFloat_Check(b.ptr())))
          return nb::bool_(false);
        return to_python(binary("==", expr_handle(a), expr_of(b)));
      },
      nb::arg().none());
  c.def(
      "__ne__",
      [=](const PrimExprHandle& a, nb::object b) -> nb::object {
        if (b.is_none() || !(nb::isinstance<PrimExprHandle>(b) || PyLong_Check(b.ptr()) || PyFloat_Check(b.ptr())))
          return nb::bool_(true);
        return to_python(binary("!=", expr_handle(a), expr_of(b)));
      },
      nb::arg().none());
  c.def("__hash__", [](const PrimExprHandle& a) { return reinterpret_cast<Py_ssize_t>(a.node.get()) >> 4; });
  c.def("__neg__", [=](const PrimExprHandle& a) { return to_python(-expr_handle(a)); });
  c.def("__bool__", [](const PrimExprHandle& a) {
    if (const IntImm* i = a.node.as<IntImm>()) return i->value != 0;
    if (const EQ* e = a.node.as<EQ>()) return e->a == e->b;
    if (const NE* e = a.node.as<NE>()) return e->a != e->b;
    throw nb::value_error(text("the condition ",
                               Expr(static_cast<const ExprNode*>(a.node.get())),
                               " is neither true nor false yet",
                               "\n  needs: a condition that is known before the program runs",
                               "\n  hint:  T.if_then_else chooses while it runs; tir.all and tir.any join conditions")
                              .c_str());
  });
  c.def("__int__", [](const PrimExprHandle& a) {
    const IntImm* i = a.node.as<IntImm>();
    if (!i) throw nb::type_error("int() of an expression that is no integer constant");
    return i->value;
  });
  c.def("__float__", [](const PrimExprHandle& a) {
    if (const FloatImm* f = a.node.as<FloatImm>()) return f->value;
    if (const IntImm* i = a.node.as<IntImm>()) return static_cast<double>(i->value);
    throw nb::type_error("float() of an expression that is no constant");
  });
  c.def("__index__", [](const PrimExprHandle& a) {
    const IntImm* i = a.node.as<IntImm>();
    if (!i) throw nb::type_error("an expression that is no integer constant cannot be an index");
    return i->value;
  });
  c.def("astype", [=](const PrimExprHandle& a, const std::string& dtype) {
    const DType to = dtype_named(dtype);
    if (a.node.as<StringImm>()) throw nb::type_error("a text cannot be cast\n  needs: a number");
    if (const auto why = cannot_hold(expr_handle(a), to))
      throw nb::value_error(text(why->what, "\n  needs: ", why->needs, "\n  hint:  ", why->hint).c_str());
    return to_python(cast_to(to, expr_handle(a)));
  });
  c.def_prop_ro("dtype", [=](const PrimExprHandle& a) { return expr_handle(a)->dtype.name(); });
}

/// The text of an expression; elements of te's tensors are shown as those of buffers.
std::string text_of_expr(const Expr& e) {
  return text(transform(e, [](const te::TensorLoad& l) -> NodeRef {
    const te::Tensor tensor(l.stage, l.output);
    return load(make_buffer(tensor.name(), tensor.shape(), tensor.dtype()), l.indices);
  }));
}

/// Whether Python takes two for one: each name of a module's functions is one, however often it was made.
bool is_same(const NodeRef& a, const NodeRef& b) {
  const auto *x = a.as<relax::GlobalVar>(), *y = b.as<relax::GlobalVar>();
  return x && y ? x->name == y->name : a == b;
}

std::string text_of(const NodeRef& node) {
  if (const ExprNode* e = node.as<ExprNode>()) return text_of_expr(Expr(e));
  if (const Buffer* b = node.as<Buffer>()) return b->name;
  if (const Range* r = node.as<Range>()) return text(*r);
  return script_of(node, false);
}

}  // namespace

namespace {

std::string script_with(const NodeRef& node, const relax::ScriptOptions& options) {
  if (const Module* m = node.as<Module>()) return relax::to_script(*m, options);
  if (const auto* f = node.as<relax::Function>()) return relax::to_script(*f, options);
  if (const auto* f = node.as<tir::PrimFunc>()) return tir::to_script(*f, options);
  if (const auto* s = node.as<tir::StmtNode>()) return tir::to_script(tir::Stmt(s), options);
  if (const ExprNode* e = node.as<ExprNode>()) return text_of_expr(Expr(e));
  if (node.as<relax::RelaxExprNode>() || node.as<relax::BindingNode>() || node.as<relax::BindingBlock>() ||
      node.as<relax::StructInfoNode>())
    return relax::to_script(node, options);
  if (const Buffer* b = node.as<Buffer>()) return b->name;
  if (const Range* r = node.as<Range>()) return text(*r);
  if (const auto* r = node.as<tir::BufferRegion>()) return text(*r);
  return text("<", node->info().name, ">");
}

/// An expression under the declarations of its variables.
std::string with_declarations(const Expr& e, const relax::ScriptOptions& options) {
  script::Printer printer(options);
  tir::ScriptPrinter tir(printer);
  script::FrameScope frame(printer, nullptr);
  printer.set_root(e);
  script::Doc line = tir.print(e);
  frame->stmts.push_back(script::line_doc(std::move(line)));
  return printer.render(frame->stmts);
}

}  // namespace

std::string script_of(const NodeRef& node, bool show_meta) {
  relax::ScriptOptions options;
  options.show_meta = show_meta;
  return script_with(node, options);
}

void wrong_type(nb::handle got, const char* needs) {
  const auto words = nb::cast<std::string>(nb::repr(got)).substr(0, 80);
  throw nb::type_error(text(words, " is a ", Py_TYPE(got.ptr())->tp_name, "\n  needs: ", needs).c_str());
}

int64_t bits_of(const nb::int_& number, DType dtype) {
  int overflow = 0;
  int64_t v = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow > 0 && dtype == DType::UInt(64)) {
    const uint64_t bits = PyLong_AsUnsignedLongLong(number.ptr());
    if (PyErr_Occurred()) throw nb::python_error();
    v = static_cast<int64_t>(bits);
  } else if (overflow != 0) {
    throw nb::value_error(text("a number that ", dtype.name(), " does not hold").c_str());
  }
  const bool is_wide = dtype == DType::UInt(64);
  if (!dtype.is_handle() && (is_wide ? overflow == 0 && v < 0 : v < min_int(dtype) || v > max_int(dtype)))
    throw nb::value_error(text("the number ", v, ", which ", dtype.name(), " does not hold").c_str());
  return v;
}

nb::object to_python(const NodeRef& node) {
  if (!node) return nb::none();
  PyObject* type = classes().at(&node->info());
  if (const auto* v = node.as<relax::RVar>(); v && v->is_dataflow) type = dataflow_var_class;
  if (const Var* v = node.as<Var>(); v && v->is_size) type = size_var_class;
  nb::object out = nb::inst_alloc(type);
  new (nb::inst_ptr<Handle>(out)) Handle{node};
  nb::inst_mark_ready(out);
  return out;
}

nb::object text_to_python(std::string_view text) {
  return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
}

std::string text_from_python(nb::handle object) {
  if (!PyUnicode_Check(object.ptr())) wrong_type(object, "a text");
  const nb::object bytes = nb::steal(PyUnicode_AsEncodedString(object.ptr(), "utf-8", "surrogateescape"));
  if (!bytes.is_valid()) {
    PyErr_Clear();
    throw nb::value_error(
        (nb::cast<std::string>(nb::repr(object)) + " has half a character\n  needs: a text that UTF-8 can hold")
            .c_str());
  }
  return {PyBytes_AS_STRING(bytes.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

NodeRef node_of(nb::handle object) {
  if (object.is_none()) return nullptr;
  if (nb::isinstance<Handle>(object)) return nb::cast<const Handle&>(object).node;
  // An annotation such as T.Buffer((4,), "float32") is made when it is used.
  if (nb::hasattr(object, "_node")) return node_of(object.attr("_node")());
  wrong_type(object, "a part of a program");
}

bool is_numpy_scalar(nb::handle object) {
  return nb::hasattr(object, "item") && nb::hasattr(object, "dtype") && !nb::hasattr(object, "__dlpack__");
}

Expr expr_of(nb::handle object, const char* needs) {
  if (nb::isinstance<PrimExprHandle>(object))
    return Expr(static_cast<const ExprNode*>(nb::cast<const Handle&>(object).node.get()));
  if (PyBool_Check(object.ptr())) return bool_imm(object.ptr() == Py_True);
  if (PyFloat_Check(object.ptr())) return float_literal(nb::cast<double>(object));
  // An array of one element would be an index too.
  const bool is_index = PyIndex_Check(object.ptr()) && !nb::hasattr(object, "__dlpack__");
  if (PyLong_Check(object.ptr()) || is_index) {
    const nb::int_ number(object);
    int overflow = 0;
    const int64_t v = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    if (overflow != 0) throw nb::value_error("a number that int64 does not hold\n  needs: -2^63 <= number < 2^63");
    return int_imm(v, v == static_cast<int32_t>(v) ? i32 : i64);
  }
  if (nb::isinstance<Handle>(object)) {
    // An axis stands for its variable.
    if (const auto* axis = nb::cast<const Handle&>(object).node.as<tir::IterVar>()) return axis->var;
  }
  if (PyUnicode_Check(object.ptr())) return string_imm(text_from_python(object));
  if (!object.is_none() && nb::hasattr(object, "_node")) return expr_of(object.attr("_node")(), needs);
  if (is_numpy_scalar(object)) return expr_of(object.attr("item")(), needs);
  wrong_type(object, needs);
}

NodeRef attribute_of(nb::handle o) {
  if (o.is_none()) return nullptr;
  if (PyBool_Check(o.ptr()) || PyLong_Check(o.ptr()) || PyFloat_Check(o.ptr()) || PyUnicode_Check(o.ptr()))
    return expr_of(o);
  if (PyList_Check(o.ptr()) || PyTuple_Check(o.ptr())) {
    const NestedList nested;
    std::vector<NodeRef> items;
    for (nb::handle item : nb::iter(o)) items.push_back(attribute_of(item));
    return make<Array>(std::move(items));
  }
  if (PyDict_Check(o.ptr())) {
    const NestedList nested;
    Attrs items;
    for (auto [key, value] : nb::cast<nb::dict>(o))
      items.emplace(nb::cast<std::string>(nb::str(key)), attribute_of(value));
    return make<Dict>(std::move(items));
  }
  if (PyFunction_Check(o.ptr())) return node_of(nb::module_::import_("sator._core").attr("index_map")(o, nb::none()));
  if (nb::isinstance<NDArray>(o) || (nb::hasattr(o, "__dlpack__") && nb::hasattr(o, "ndim")))
    return relax::constant(tensor_of(nb::module_::import_("sator.nd").attr("array")(o)));
  return node_of(o);
}

Attrs attributes_of(nb::handle o) {
  const NodeRef node = nb::isinstance<Handle>(o) || PyDict_Check(o.ptr()) || o.is_none() ? attribute_of(o) : nullptr;
  if (const Dict* d = node.as<Dict>()) return d->items;
  if (!o.is_none()) wrong_type(o, "a dictionary of attributes");
  return {};
}

DType dtype_named(const std::string& name) {
  const std::optional<DType> dtype = DType::parse(name);
  if (!dtype)
    throw nb::value_error(("there is no dtype " + name +
                           "\n  needs: a name such as float32, int8, bool, bfloat16, float8_e4m3fn, int32x4")
                              .c_str());
  return *dtype;
}

nb::object from_attribute(const NodeRef& node) {
  if (const IntImm* i = node.as<IntImm>()) {
    if (i->dtype.is_bool()) return nb::bool_(i->value != 0);
    return nb::int_(i->value);
  }
  if (const FloatImm* f = node.as<FloatImm>()) return nb::float_(f->value);
  if (const StringImm* s = node.as<StringImm>()) return text_to_python(s->value);
  if (const Array* a = node.as<Array>()) {
    nb::list out;
    for (const NodeRef& item : a->items) out.append(from_attribute(item));
    return out;
  }
  if (const Dict* d = node.as<Dict>()) {
    nb::dict out;
    for (const auto& [key, value] : d->items) out[key.c_str()] = from_attribute(value);
    return out;
  }
  return to_python(node);
}

void add_node_classes(nb::module_& m) {
  auto object = nb::class_<Handle>(m, "Object", "A part of a program: immutable, compared by identity.");
  object
      .def(
          "__init__",
          [](Handle* self, nb::args from, nb::kwargs more) {
            if (from.size() != 1 || more.size() != 0 || !nb::isinstance<Handle>(from[0]))
              throw nb::type_error(
                  "Object() makes no object\n  needs: a part of a program, which the new object stands for");
            new (self) Handle(nb::cast<const Handle&>(from[0]));
          },
          nb::sig("def __init__(self, node)"))
      .def("same_as", [](const Handle& a, const Handle& b) { return is_same(a.node, b.node); })
      .def(
          "__eq__",
          [](const Handle& a, nb::object b) -> nb::object {
            if (!nb::isinstance<Handle>(b)) return nb::borrow(Py_NotImplemented);
            return nb::bool_(is_same(a.node, nb::cast<const Handle&>(b).node));
          },
          nb::arg().none())
      .def("__hash__",
           [](const Handle& a) {
             // The hash of the name, as that of the names of a module's functions.
             if (const auto* gv = a.node.as<relax::GlobalVar>()) return nb::hash(text_to_python(gv->name));
             return reinterpret_cast<Py_ssize_t>(a.node.get()) >> 4;
           })
      .def("__str__", [](const Handle& a) { return text_of(a.node); })
      .def("__repr__", [](const Handle& a) { return text_of(a.node); })
      .def_prop_ro("span", [](const Handle& a) { return std::pair(a.node->span.line, a.node->span.column); })
      .def(
          "handle",
          [](const Handle& a) { return reinterpret_cast<uintptr_t>(a.node.get()); },
          "The address of the node: one number per node.")
      .def("_become", [](Handle& a, const Handle& other) { a.node = other.node; })
      .def("_script", [](const Handle& a, bool show_meta) { return script_of(a.node, show_meta); })
      .def(
          "_script_with",
          [](const Handle& a, nb::dict given, nb::list marked) {
            relax::ScriptOptions o;
            for (auto [key, text] : {std::pair("name", &o.module_name),
                                     {"ir_prefix", &o.ir_prefix},
                                     {"tir_prefix", &o.tir_prefix},
                                     {"relax_prefix", &o.relax_prefix},
                                     {"module_alias", &o.module_alias}})
              if (given.contains(key)) *text = nb::cast<std::string>(given[key]);
            for (auto [key, flag] : {std::pair("show_meta", &o.show_meta),
                                     {"syntax_sugar", &o.syntax_sugar},
                                     {"show_all_struct_info", &o.show_all_struct_info}})
              if (given.contains(key)) *flag = nb::cast<bool>(given[key]);
            for (nb::handle node : marked) o.underline.push_back({node_of(node), text(o.underline.size())});
            if (const ExprNode* e = a.node.as<ExprNode>(); e && given.contains("verbose_expr"))
              return with_declarations(Expr(e), o);
            return script_with(a.node, o);
          },
          "The text with other names; the places of marked nodes stand in it between control characters "
          "(ir/script/printer.cc).");
  auto prim = nb::class_<PrimExprHandle, Handle>(m, "PrimExpr", "An index or scalar expression.");
  not_called(prim, "one of its kinds, such as tir.Add(a, b), or tir.const(1)");
  add_operators(prim);
  auto stmt = nb::class_<StmtHandle, Handle>(m, "Stmt", "A statement of a tensor program.");
  not_called(stmt, "one of its kinds, such as tir.Evaluate(value)");
  auto func = nb::class_<FuncHandle, Handle>(m, "BaseFunc", "A function of a module.");
  not_called(func, "tir.PrimFunc(params, body) or relax.Function(params, body)");
  func.def_prop_ro("attrs", [](const Handle& f) {
    nb::dict out;
    for (const auto& [key, value] : static_cast<const FuncNode&>(*f.node).attrs)
      out[key.c_str()] = from_attribute(value);
    return out;
  });
  auto graph = nb::class_<GraphExprHandle, Handle>(m, "RelaxExpr", "An expression of a graph.");
  not_called(graph, "one of its kinds, such as relax.Var(name, struct_info), or relax.op.add(x, y)");
  graph.def_prop_ro("struct_info",
                    [](const Handle& e) { return to_python(static_cast<const relax::RelaxExprNode&>(*e.node).sinfo); });
  auto info =
      nb::class_<StructInfoHandle, Handle>(m, "StructInfo", "What is known of a value before the program runs.");
  auto binding = nb::class_<BindingHandle, Handle>(m, "Binding", "One line of a graph: var = value.");

  not_called(info, "one of its kinds, such as relax.TensorStructInfo((2, 3), \"float32\")");
  not_called(binding, "relax.VarBinding(var, value) or relax.MatchCast(var, value, struct_info)");

  const std::map<std::string, nb::handle> spaces = {
      {"ir", m.def_submodule("ir")}, {"tir", m.def_submodule("tir")}, {"relax", m.def_submodule("relax")}};
  const std::map<std::string, nb::handle> families = {{"Object", object},
                                                      {"PrimExpr", prim},
                                                      {"Stmt", stmt},
                                                      {"BaseFunc", func},
                                                      {"RelaxExpr", graph},
                                                      {"StructInfo", info},
                                                      {"Binding", binding}};
  for (const NodeRow& row : node_rows()) {
    nb::object made = make_class(row.name, row.space, families.at(row.family), row.fields);
    spaces.at(row.space).attr(row.name.c_str()) = made;
    nb::setattr(made, "_kind", nb::str(row.info->name.data(), row.info->name.size()));
    if (row.info == &relax::RVar::kInfo) {
      nb::object dataflow = make_class("DataflowVar", "relax", made, {});
      spaces.at("relax").attr("DataflowVar") = dataflow;
      nb::setattr(dataflow, "_fields", made.attr("_fields"));
      dataflow_var_class = dataflow.release().ptr();
    }
    if (row.info == &Var::kInfo) {
      nb::object size = make_class("SizeVar", "tir", made, {});
      spaces.at("tir").attr("SizeVar") = size;
      nb::setattr(size, "_fields", made.attr("_fields"));
      size_var_class = size.release().ptr();
    }
    classes()[row.info] = made.release().ptr();
  }

  m.def(
      "make",
      [](nb::handle type, const std::vector<nb::object>& values) {
        const nb::str space = nb::borrow<nb::str>(type.attr("__module__")),
                      kind = nb::borrow<nb::str>(type.attr("_kind"));
        for (const NodeRow& row : node_rows()) {
          if (nb::str(row.info->name.data(), row.info->name.size()).equal(kind) &&
              (std::string(space.c_str()) + ".").starts_with("sator." + row.space + "."))
            return to_python(row.make(values));
        }
        wrong_type(type, "a class of nodes");
      },
      "The node of a class from one value per field.");
  m.def(
      "fields",
      [](const Handle& a) {
        nb::list out;
        for (const NodeRow& row : node_rows())
          if (row.info == &a.node->info())
            for (const FieldRow& f : row.fields) out.append(f.exact(*a.node));
        return out;
      },
      "The value of each field, attributes as nodes.");
  m.def("make_var", [](const std::string& name, const std::string& dtype, bool is_size) {
    const DType d = dtype_named(dtype);
    return to_python(is_size ? make_size_var(name, d) : make_var(name, d));
  });
  m.def("pointer", [](const std::string& name, const std::string& dtype, const std::string& scope) {
    const DType d = dtype_named(dtype);
    return to_python(make_pointer(name, d, scope));
  });
  m.def("scope_of", [](const Handle& pointer) {
    const Var* v = pointer.node.as<Var>();
    if (!v) throw nb::type_error("only pointers have a storage scope");
    return v->scope;
  });
  m.def("binary", [](const std::string& op, nb::object a, nb::object b) {
    return to_python(binary(op, expr_of(a), expr_of(b)));
  });
  m.def("builtin_names", [] {
    nb::list out;
    for (const Builtin& b : builtins()) out.append(nb::str(b.op.data(), b.op.size()));
    return out;
  });
  m.def("expr", [](nb::object a) { return to_python(expr_of(a)); });
  m.def("const", [](nb::object value, const std::string& dtype) {
    const DType d = dtype_named(dtype);
    if (d.is_float()) return to_python(float_imm(nb::cast<double>(nb::float_(value)), d));
    return to_python(int_imm(bits_of(nb::int_(value), d), d));
  });
  m.def("structural_equal", [](const Handle& a, const Handle& b, bool map_free_variables) {
    return equal(a.node, b.node, map_free_variables);
  });
  m.def("structural_hash", [](const Handle& a) { return structural_hash(a.node); });
  m.def("substitute", [](const Handle& a, nb::dict values) {
    VarMap map;
    for (auto [key, value] : values) {
      const NodeRef node = node_of(key);
      const Var* v = node.as<Var>();
      if (!v) wrong_type(key, "a variable");
      map.emplace(VarRef(v), expr_of(value));
    }
    if (const ExprNode* e = a.node.as<ExprNode>()) return to_python(NodeRef(substitute(Expr(e), map)));
    if (const auto* s = a.node.as<tir::StmtNode>()) return to_python(NodeRef(substitute(tir::Stmt(s), map)));
    throw nb::type_error("variables are replaced in expressions and statements");
  });
  m.def(
      "map_children",
      [](const Handle& a, nb::object change) {
        return to_python(a.node->info().map_children(
            *a.node, [&](const NodeRef& child) { return node_of(change(to_python(child))); }));
      },
      "The node with another node in the place of each one directly below it.");
  m.def(
      "children",
      [](const Handle& a) {
        nb::list out;
        a.node->info().each_child(*a.node, [&](const NodeRef& child) { out.append(to_python(child)); });
        return out;
      },
      "The nodes directly below a node.");
  m.def(
      "module",
      [](nb::dict functions, nb::object attrs, nb::object global_infos) {
        std::map<std::string, Func> all;
        for (auto [name, func] : functions) {
          const NodeRef node = node_of(func);
          const FuncNode* f = node.as<FuncNode>();
          if (!f) wrong_type(func, "a function: tir.PrimFunc or relax.Function");
          all.emplace(nb::cast<std::string>(name), Func(f));
        }
        return to_python(make<Module>(std::move(all), attributes_of(attrs), attributes_of(global_infos)));
      },
      nb::arg("functions"),
      nb::arg("attrs").none(),
      nb::arg("global_infos").none());
  m.def(
      "with_attr",
      [](const Handle& f, const std::string& key, nb::object value) {
        auto changed = [&](Attrs attrs) {
          if (value.is_none())
            attrs.erase(key);
          else
            attrs[key] = attribute_of(value);
          return attrs;
        };
        if (const auto* p = f.node.as<tir::PrimFunc>())
          return to_python(with(*p, &tir::PrimFunc::attrs, changed(p->attrs)));
        if (const auto* g = f.node.as<relax::Function>())
          return to_python(with(*g, &relax::Function::attrs, changed(g->attrs)));
        if (const auto* a = f.node.as<Module>()) return to_python(with(*a, &Module::attrs, changed(a->attrs)));
        throw nb::type_error("only functions and modules have attributes");
      },
      nb::arg("func"),
      nb::arg("key"),
      nb::arg("value").none());
}

}  // namespace sator::bind
