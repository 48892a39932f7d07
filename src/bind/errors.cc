// Errors as Python's exceptions: the classes are those of sator/error.py, with the parts of the reason as attributes.
#include "bind/parts.h"

#include <typeinfo>

#include <nanobind/stl/string.h>

#include "ir/script/source.h"

namespace sator::bind {

namespace nb = nanobind;

namespace {

/// Words may quote bytes of a damaged file.
nb::object in_python(std::string_view words) {
  return nb::steal(PyUnicode_DecodeUTF8(words.data(), static_cast<Py_ssize_t>(words.size()), "backslashreplace"));
}

void set_error(const char* kind, const char* words, const Reason* reason, const Span* at) {
  try {
    nb::object error = nb::module_::import_("sator.error").attr(kind)(in_python(words));
    if (reason) {
      error.attr("what") = in_python(reason->what);
      error.attr("needs") = in_python(reason->needs);
      error.attr("hint") = in_python(reason->hint);
      error.attr("program") = in_python(reason->program);
      error.attr("where") = in_python(reason->where);
    }
    if (at) {
      error.attr("line") = at->line;
      error.attr("column") = at->column;
    }
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  } catch (nb::python_error& e) {
    e.restore();
  }
}

void translate(const std::exception_ptr& error, void*) {
  try {
    std::rethrow_exception(error);
  } catch (const script::SourceError& e) {
    set_error("DiagnosticError", e.what(), &e.reason, &e.at);
  } catch (const StepError& e) {
    set_error("ScheduleError", e.what(), &e.reason, nullptr);
  } catch (const Error& e) {
    set_error("TVMError", e.what(), &e.reason, nullptr);
  } catch (const std::bad_cast&) {
    PyErr_SetString(PyExc_TypeError, "a value of another type\n  needs: what the call's help names");
  } catch (const InternalError& e) {
    set_error("InternalError", e.what(), nullptr, nullptr);
  }
}

}  // namespace

void add_errors(nb::module_&) { nb::register_exception_translator(translate); }

}  // namespace sator::bind
