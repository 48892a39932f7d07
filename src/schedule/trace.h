#pragma once

#include <string>
#include <vector>

#include "schedule/value.h"

namespace sator::schedule {

class Schedule;

/// One primitive applied: its name, its arguments in order, its result.
struct Step {
  std::string primitive;
  List inputs;
  Value output;
};

/// The steps of a schedule. It replays on a fresh schedule of the same program, and reads as Python.
struct Trace {
  std::vector<Step> steps;

  /// Applies the steps to `s`, whose program is the one this trace began with. Handles are mapped to those of `s`.
  void apply_to(Schedule& s) const;
  /// `b0 = sch.get_block(name="C", func_name="main")`, one line per step.
  std::string as_python() const;
};

/// "split(i, [None, 32])": for messages.
std::string describe(const Step& step);

}  // namespace sator::schedule
