#pragma once

#include <functional>
#include <string>

#include "formats/timeloop/spec.h"

namespace sator::formats::timeloop {

/// Refuses a fact of a mapping at the place it was read: what happened, the rule, a way on.
using Refuse = std::function<void(std::string what, std::string needs, std::string hint)>;

/// Checks that the factors of each dimension multiply to its extent and that each data space is kept somewhere.
void check_mapping(const Mapping& mapping, const Workload& workload, const Architecture& architecture,
                   const Refuse& refuse);

/// How many instances of the next inner level (or arithmetic units) one instance of `level` feeds.
int64_t fan_out(const Architecture& architecture, size_t level);

std::vector<std::string> level_names(const Architecture& architecture);
std::vector<std::string> space_names(const Workload& workload);

/// Timeloop's *.map.txt: a header per level with what it keeps, then its loops.
bool is_printed_mapping(std::string_view text);
Mapping parse_printed_mapping(std::string_view text, const Workload& workload, const Architecture& architecture,
                              const std::string& file);

}  // namespace sator::formats::timeloop
