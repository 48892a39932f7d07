// Random schedules: lines of script.
#pragma once

#include <string>

#include "fuzz/draw.h"
#include "schedule/schedule.h"

namespace sator::fuzz {

/// A line of script for the program as it stands, such as `split(loop=get_loops("B")[0], factors=[None, 4])`; often one
/// that is refused. Empty: nothing was found to do.
std::string draw_line(Draw& draw, const schedule::Schedule& s);

}  // namespace sator::fuzz
