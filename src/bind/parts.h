// What each file adds to the extension module.
#pragma once

#include <nanobind/nanobind.h>

#include "base/error.h"

namespace sator::bind {

/// An error of a schedule's step, which Python knows as tir.ScheduleError.
class StepError final : public Error {
 public:
  using Error::Error;
};

void add_errors(nanobind::module_& m);
void add_script(nanobind::module_& m);
void add_schedule(nanobind::module_& m);
void add_passes(nanobind::module_& m);
void add_te(nanobind::module_& m);
void add_graph(nanobind::module_& m);
void add_patterns(nanobind::module_& m);
void add_machine(nanobind::module_& m);
void add_analysis(nanobind::module_& m);
void add_arith(nanobind::module_& m);
void add_iter_map(nanobind::module_& m);
void add_struct_info(nanobind::module_& m);
void add_model(nanobind::module_& m);

}  // namespace sator::bind
