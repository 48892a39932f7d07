#pragma once

#include <string>
#include <vector>

#include "dataflow/counts/counts.h"
#include "dataflow/tenet/tenet_text.h"

namespace sator::formats {

/// All counts and TENET's metrics of them, for people.
std::string tenet_table(const dataflow::TenetInput& input, const dataflow::Counts& counts);

/// What a reader of the figures ought to know of this input: wires that point the other way than the data flows, wires in
/// circles, work outside of the array, several instances per PE and stamp, an enumeration.
std::vector<std::string> tenet_notes(const dataflow::TenetInput& input, const dataflow::Counts& counts);

}  // namespace sator::formats
