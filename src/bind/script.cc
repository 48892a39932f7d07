// TVMScript from Python: texts, and functions that stand in Python code, whose reader asks Python for the names it does not know.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bind/node.h"
#include "bind/parts.h"
#include "bind/te.h"
#include "bind/tensor.h"
#include "relax/evaluate.h"
#include "relax/nodes.h"
#include "relax/parse.h"
#include "relax/print.h"
#include "tir/parse_value.h"
#include "tir/print.h"

namespace sator::bind {

namespace {

using tir::Value;

/// Whether it is an array or a scalar of NumPy's or of another library's. The module numpy has `ndim` too, which is a function.
bool is_array(nb::handle o) {
  return nb::hasattr(o, "dtype") && nb::hasattr(o, "ndim") && PyLong_Check(nb::object(o.attr("ndim")).ptr());
}

Value script_value(nb::handle o);
nb::object from_script(const Value& v);

/// An object of Python's that is no value of a script: the reader asks it for attributes, elements, results.
class PythonObject final : public tir::HostObject {
 public:
  explicit PythonObject(nb::object object) : object_(std::move(object)) {}
  std::string kind() const override {
    nb::object name = nb::getattr(object_, "__name__", nb::none());
    return text("the Python ",
                Py_TYPE(object_.ptr())->tp_name,
                name.is_none() ? "" : " ",
                name.is_none() ? std::string() : nb::cast<std::string>(nb::str(name)));
  }
  Value attribute(const std::string& name) const override { return script_value(object_.attr(name.c_str())); }
  Value element(const Value& index) const override { return script_value(object_[from_script(index)]); }
  Value call(const std::vector<Value>& args,
             const std::vector<std::pair<std::string, Value>>& keywords) const override {
    nb::list positional;
    for (const Value& v : args) positional.append(from_script(v));
    nb::dict named;
    for (const auto& [name, v] : keywords) named[name.c_str()] = from_script(v);
    nb::object language = nb::module_::import_("sator.script.language");
    return script_value(language.attr("called_by_a_program")(object_, positional, named));
  }
  std::shared_ptr<const tir::NotedCall> noted_call() const override {
    if (!nb::hasattr(object_, "_noted")) return nullptr;
    const nb::tuple parts = nb::cast<nb::tuple>(object_.attr("_call"));
    auto out = std::make_shared<tir::NotedCall>();
    out->name = nb::cast<std::string>(parts[0]);
    for (nb::handle a : nb::iter(parts[1])) out->args.push_back(script_value(a));
    for (auto [key, value] : nb::cast<nb::dict>(parts[2]))
      out->keywords.emplace_back(nb::cast<std::string>(key), script_value(value));
    return out;
  }
  NodeRef tensor() const override {
    if (!is_array(object_)) return nullptr;
    nb::object copied = nb::module_::import_("sator.nd").attr("array")(object_);
    return relax::constant(tensor_of(copied));
  }
  std::vector<te::Tensor> formula(const std::vector<std::variant<Value, te::Tensor>>& args,
                                  const std::vector<std::pair<std::string, Value>>& keywords) const override {
    nb::list positional;
    for (const auto& a : args) {
      if (const auto* tensor = std::get_if<te::Tensor>(&a))
        positional.append(nb::cast(*tensor));
      else
        positional.append(from_script(std::get<Value>(a)));
    }
    nb::dict named;
    for (const auto& [name, v] : keywords) named[name.c_str()] = from_script(v);
    return te_tensors_of(object_(*positional, **named));
  }
  NodeRef index_map() const override {
    if (!PyFunction_Check(object_.ptr())) return nullptr;
    return node_of(nb::module_::import_("sator._core").attr("index_map")(object_, nb::none(), "int64"));
  }
  const nb::object& object() const { return object_; }

 private:
  nb::object object_;
};

Value script_value(nb::handle o) {
  if (o.is_none()) return {};
  if (PyBool_Check(o.ptr())) return o.ptr() == Py_True;
  if (PyLong_Check(o.ptr())) {
    int overflow = 0;
    const int64_t v = PyLong_AsLongLongAndOverflow(o.ptr(), &overflow);
    if (overflow == 0) return tir::Integer{v, false};
    const uint64_t bits = overflow > 0 ? PyLong_AsUnsignedLongLong(o.ptr()) : 0;
    if (overflow < 0 || PyErr_Occurred()) {
      PyErr_Clear();
      fail({.what = text("an integer of ", nb::cast<int64_t>(o.attr("bit_length")()), " bits from Python"),
            .needs = "-2^63 <= integer < 2^64",
            .hint = "compute with it in Python, outside of the program, and name the result"});
    }
    return tir::Integer{static_cast<int64_t>(bits), true};
  }
  if (PyFloat_Check(o.ptr())) return nb::cast<double>(o);
  if (PyUnicode_Check(o.ptr())) return nb::cast<std::string>(o);
  if (nb::hasattr(o, "_noted")) return tir::HostObjectRef(new PythonObject(nb::borrow(o)));
  if (nb::hasattr(o, "_meta_value")) {
    auto each = [](nb::handle v) { return tir::MetaVar{std::make_shared<Value>(script_value(v))}; };
    nb::object value = o.attr("_meta_value");
    if (!PyTuple_Check(value.ptr()) && !PyList_Check(value.ptr())) return each(value);
    tir::Values out;
    for (nb::handle item : nb::iter(value)) out.items.push_back(each(item));
    return out;
  }
  if (nb::hasattr(o, "_language")) return tir::LanguageName{nb::cast<std::string>(o.attr("_language"))};
  if (nb::isinstance<Handle>(o) || nb::hasattr(o, "_node")) {
    const NodeRef node = node_of(o);
    if (const ExprNode* e = node.as<ExprNode>()) return Expr(e);
    if (const Buffer* b = node.as<Buffer>()) return BufferRef(b);
    return node;
  }
  if (PyList_Check(o.ptr()) || PyTuple_Check(o.ptr())) {
    const NestedList nested;
    tir::Values out;
    out.is_tuple = PyTuple_Check(o.ptr());
    for (nb::handle item : nb::iter(o)) out.items.push_back(script_value(item));
    return out;
  }
  if (PyDict_Check(o.ptr())) {
    tir::DictValue out;
    for (auto [key, value] : nb::cast<nb::dict>(o)) out.items.emplace_back(script_value(key), script_value(value));
    return out;
  }
  if (PyGen_Check(o.ptr())) {
    tir::Values out;
    for (nb::handle item : nb::iter(o)) out.items.push_back(script_value(item));
    return out;
  }
  // NumPy's scalars are numbers, its arrays tensors where one is asked for.
  if (is_array(o) && nb::cast<int>(o.attr("ndim")) > 0) return tir::HostObjectRef(new PythonObject(nb::borrow(o)));
  if (PyIndex_Check(o.ptr())) return tir::Integer{nb::cast<int64_t>(nb::int_(o)), false};
  if (is_array(o) && nb::hasattr(o, "item")) return script_value(nb::object(o.attr("item")()));
  return tir::HostObjectRef(new PythonObject(nb::borrow(o)));
}

nb::object from_script(const Value& v) {
  struct Convert {
    nb::object operator()(std::monostate) { return nb::none(); }
    nb::object operator()(bool b) { return nb::bool_(b); }
    nb::object operator()(const tir::Integer& i) {
      return i.is_unsigned ? nb::object(nb::int_(static_cast<uint64_t>(i.value))) : nb::object(nb::int_(i.value));
    }
    nb::object operator()(double d) { return nb::float_(d); }
    nb::object operator()(const std::string& s) { return nb::str(s.c_str()); }
    nb::object operator()(const Expr& e) { return bind::to_python(NodeRef(e)); }
    nb::object operator()(const BufferRef& b) { return bind::to_python(NodeRef(b)); }
    nb::object operator()(const NodeRef& n) { return bind::to_python(n); }
    nb::object operator()(const tir::Values& list) {
      nb::list out;
      for (const Value& item : list.items) out.append(from_script(item));
      return list.is_tuple ? nb::object(nb::tuple(out)) : nb::object(out);
    }
    nb::object operator()(const tir::DictValue& d) {
      nb::dict out;
      for (const auto& [key, value] : d.items) out[from_script(key)] = from_script(value);
      return out;
    }
    nb::object operator()(const tir::Subscript& s) {
      std::vector<Expr> indices;
      for (const tir::SubscriptIndex& i : s.indices) {
        if (i.stop)
          throw nb::type_error("a slice of a buffer has no value in Python\n  needs: an element, such as A[i, j]");
        indices.push_back(i.start);
      }
      return bind::to_python(NodeRef(load(s.buffer, std::move(indices))));
    }
    nb::object operator()(const tir::HostObjectRef& h) {
      const auto* object = dynamic_cast<const PythonObject*>(h.get());
      return object ? object->object() : nb::none();
    }
    nb::object operator()(const tir::MetaVar& m) { return from_script(*m.value); }
    nb::object other(const Value& v) {
      throw nb::type_error(
          text(v.kind(), " has no value in Python\n  needs: a number, a text, a list, an expression or a buffer")
              .c_str());
    }
    nb::object operator()(const tir::LanguageName& v) { return other(v); }
    nb::object operator()(const tir::ModuleName& v) { return other(v); }
    nb::object operator()(const tir::LambdaValue& v) { return other(v); }
    nb::object operator()(const tir::Method& v) { return other(v); }
    nb::object operator()(const std::shared_ptr<tir::ScopeOpener>& v) { return other(v); }
  };
  return std::visit(Convert(), v.is);
}

/// Python's names: `find(name)` gives a tuple of one, or None where there is none. `evaluates`: the text is Python code of the
/// caller's, whose comprehensions Python may run; a text from elsewhere is only read.
class PythonNames final : public tir::Surroundings {
 public:
  PythonNames(nb::object find, bool evaluates) : find_(std::move(find)), evaluates_(evaluates) {}
  std::optional<Value> value_of(const std::string& name) const override {
    nb::object found = find_(name);
    if (found.is_none()) return {};
    return script_value(nb::object(found[0]));
  }
  std::optional<Value> evaluate(const std::string& text, Local local) const override {
    if (!evaluates_) return {};
    nb::object code = nb::module_::import_("builtins").attr("compile")(text, "<script>", "eval");
    nb::dict names;
    collect(code, local, names);
    return script_value(nb::module_::import_("builtins").attr("eval")(code, names));
  }
  void raised(const Reason& place) const override {
    try {
      throw;
    } catch (nb::python_error& e) {
      if (nb::hasattr(e.value(), "add_note"))  // from Python 3.11 on
        e.value().attr("add_note")(place.render().substr(std::string_view("error: ").size()));
    } catch (...) {  // an exception of C++'s has no notes
    }
  }

 private:
  /// The values of the names that compiled code uses, and the functions inside of it.
  void collect(const nb::object& code, Local local, nb::dict& names) const {
    for (nb::handle word : nb::iter(code.attr("co_names"))) {
      const auto name = nb::cast<std::string>(word);
      if (names.contains(word)) continue;
      if (const Value* v = local(name)) {
        names[word] = from_script(*v);
      } else if (nb::object found = find_(name); !found.is_none()) {
        names[word] = found[0];
      }
    }
    for (nb::handle constant : nb::iter(code.attr("co_consts")))
      if (nb::hasattr(constant, "co_names")) collect(nb::borrow(constant), local, names);
  }

  nb::object find_;
  bool evaluates_;
};

tir::ParseOptions options_of(nb::object find, const std::map<std::string, std::string>& languages, bool verify,
                             bool evaluates, int32_t indent = 0) {
  tir::ParseOptions options{.verify = verify, .indent = indent};
  options.languages.insert(languages.begin(), languages.end());
  if (!find.is_none()) options.around = std::make_shared<PythonNames>(find, evaluates);
  return options;
}

}  // namespace

void add_script(nb::module_& m) {
  m.def(
      "parse",
      [](const std::string& text,
         const std::string& name,
         nb::object captured,
         const std::map<std::string, std::string>& languages,
         bool verify,
         bool evaluates,
         int32_t indent) {
        return to_python(
            NodeRef(relax::parse_module(text, name, options_of(captured, languages, verify, evaluates, indent))));
      },
      nb::arg("text"),
      nb::arg("name") = "",
      nb::arg("captured").none() = nb::none(),
      nb::arg("languages") = std::map<std::string, std::string>(),
      nb::arg("verify") = true,
      nb::arg("evaluates") = false,
      nb::arg("indent") = 0,
      "The module of a text.");
  m.def(
      "evaluate",
      [](const std::string& text, nb::object captured) {
        return from_script(relax::evaluate(text, options_of(captured, {}, true, false)));
      },
      nb::arg("text"),
      nb::arg("captured").none() = nb::none(),
      "The value of one expression of T or R.");
  m.def("script_names", tir::language_names, "The names that T has, without dtypes.");
  m.def("graph_names", relax::graph_names, "The names that R has.");
}

}  // namespace sator::bind
