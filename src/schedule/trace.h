#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "schedule/value.h"

namespace sator::schedule {

class Schedule;

/// One primitive applied: its name, its arguments in order, its result.
struct Step {
  std::string primitive;
  List inputs;
  Value output;
};

/// The steps of a schedule. It replays on a fresh schedule of the same program, and reads as Python. What a step of chance chose
/// is its argument `decision`.
struct Trace {
  std::vector<Step> steps;

  /// Applies the steps to `s`, whose program is the one this trace began with. Handles are mapped to those of `s`.
  void apply_to(Schedule& s) const;
  /// `b0 = sch.get_block(name="C", func_name="main")`, one line per step.
  std::string as_python() const;
  /// As TVM writes traces: [[[kind, inputs, attributes, results], ...], [[index of a step, its decision], ...]], with handles by
  /// name ("b0", "l1", "v2"). `inputs` are handles, chosen numbers and factors, `attributes` all other arguments; index maps
  /// are texts, "lambda i, j: (j, i)".
  Json as_json() const;
  /// Without steps whose results nobody uses and that change nothing.
  ///   remove_postproc  also without all from enter_postproc on
  Trace simplified(bool remove_postproc) const;
};

/// A trace as JSON (as_json, and TVM's own) as lines of a script, `work_on` apart.
/// Errors: another form; a primitive that is not known; an index map as TVM's nodes in JSON.
std::string script_of_json(const JsonAt& trace);

/// "split(i, [None, 32])": for messages.
std::string describe(const Step& step);

}  // namespace sator::schedule
