// IR nodes as Python objects. A Python object holds one counted reference; its class follows from the node's, by the table of
// node_table.cc, and its attributes are the node's fields.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <functional>
#include <string>
#include <vector>

#include "ir/expr.h"
#include "ir/module.h"

namespace sator::bind {

namespace nb = nanobind;

/// What every Python object of the IR holds. The families below are Python's base classes; their storage is the same.
struct Handle {
  NodeRef node;
};
struct PrimExprHandle : Handle {};
struct StmtHandle : Handle {};
struct FuncHandle : Handle {};
struct GraphExprHandle : Handle {};
struct StructInfoHandle : Handle {};
struct BindingHandle : Handle {};

/// A field as Python reads and gives it.
struct FieldRow {
  std::string name;
  std::vector<std::string> aliases;                       ///< TVM's names
  std::function<nb::object(const NodeBase&)> get, exact;  ///< `exact` keeps the dtypes of attributes
};

/// One list within another. Errors: RecursionError where they are nested too deep, as in a list that holds itself.
class NestedList {
 public:
  NestedList() {
    if (Py_EnterRecursiveCall(" in the lists of an argument") != 0) throw nb::python_error();
  }
  ~NestedList() { Py_LeaveRecursiveCall(); }
  NestedList(const NestedList&) = delete;
};

/// A node class: one row of node_table.cc.
struct NodeRow {
  const NodeInfo* info;
  std::string space;   ///< "ir", "tir", "relax"
  std::string name;    ///< as TVM's users know it
  std::string family;  ///< its base class
  std::vector<FieldRow> fields;
  /// The node from one value per field. Errors: a value of another kind than the field's.
  std::function<NodeRef(const std::vector<nb::object>&)> make;
};
const std::vector<NodeRow>& node_rows();

/// Adds the classes: base classes, and one class per row, as `space.name`.
void add_node_classes(nb::module_& m);

/// Bytes that are no UTF-8 are Python's lone surrogates, and back.
nb::object text_to_python(std::string_view text);
std::string text_from_python(nb::handle object);

/// None for null.
nb::object to_python(const NodeRef& node);
/// Null for None. Errors: Python's TypeError for what is no node.
NodeRef node_of(nb::handle object);
/// A number with a dtype of its own, such as numpy.int8(3): no array.
bool is_numpy_scalar(nb::handle object);
/// A Python number becomes a constant: an int of int32 (int64 where it does not fit), a float of float32.
Expr expr_of(nb::handle object, const char* needs = "an expression or a number");
/// The value of an attribute: numbers, texts, lists and dictionaries become nodes, arrays constants, functions of indices
/// index maps. Null for None.
NodeRef attribute_of(nb::handle object);
/// What attribute_of reads, back: constants as Python numbers and texts, lists and dictionaries as Python's.
nb::object from_attribute(const NodeRef& node);
/// The attributes of a dictionary of Python's; none for None. Errors: TypeError for anything else.
Attrs attributes_of(nb::handle object);
/// The dtype of a name. Errors: ValueError, there is none.
DType dtype_named(const std::string& name);
/// The text of a program or of a part of it.
std::string script_of(const NodeRef& node, bool show_meta);

[[noreturn]] void wrong_type(nb::handle got, const char* needs);
/// An integer of Python's in the bits of a dtype. Errors: ValueError where the dtype does not hold it.
int64_t bits_of(const nb::int_& number, DType dtype);

/// Answers a call of a class whose objects other functions make: `needs` says which.
template <class Class>
void not_called(Class& c, const char* needs) {
  const std::string words = nb::cast<std::string>(c.attr("__name__")) + "() makes no object\n  needs: " + needs;
  c.def(
      "__init__",
      [words](typename Class::Type*, nb::args, nb::kwargs) { throw nb::type_error(words.c_str()); },
      nb::sig("def __init__(self, *args, **kwargs)"));
}

}  // namespace sator::bind
