// Random tensor programs: a graph of steps, each a block that reads what earlier ones wrote.
#pragma once

#include <map>
#include <string>

#include "fuzz/draw.h"

namespace sator::fuzz {

struct Program {
  std::string text;
  /// Per float output the relative error that its roundings may add up to: ulps times lengths of reductions, summed along
  /// the steps. All numbers are positive, so that nothing cancels.
  std::map<std::string, double> errors;
};
Program draw_program(Draw& draw);

}  // namespace sator::fuzz
