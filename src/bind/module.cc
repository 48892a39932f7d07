// The extension module sator/_core. It is thin: what it offers is read from the tables of nodes, primitives and passes.
#include "base/interrupt.h"
#include "bind/gil.h"
#include "bind/node.h"
#include "bind/parts.h"
#include "bind/tensor.h"
#include "runtime/printing.h"

NB_MODULE(_core, m) {
  nanobind::set_leak_warnings(false);  // classes made from tables live as long as the process
  // Python hears of signals in its first thread alone.
  sator::let_check_interrupt_ask([] {
    sator::bind::WithGil gil;
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
  });
  sator::runtime::set_print([](const std::string& line) {
    sator::bind::WithGil gil;
    nanobind::module_::import_("builtins").attr("print")(line);
  });
  sator::bind::add_errors(m);
  sator::bind::add_node_classes(m);
  sator::bind::add_tensors(m);
  sator::bind::add_script(m);
  sator::bind::add_schedule(m);
  sator::bind::add_passes(m);
  sator::bind::add_te(m);
  sator::bind::add_graph(m);
  sator::bind::add_patterns(m);
  sator::bind::add_machine(m);
  sator::bind::add_analysis(m);
  sator::bind::add_arith(m);
  sator::bind::add_iter_map(m);
  sator::bind::add_struct_info(m);
  sator::bind::add_model(m);
  nanobind::module_::import_("sator.words").attr("wrap")(m);
}
