#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sator::formats {

/// The name of `known` that a key was meant to be: one letter is missing, too many, wrong, or two neighbours are
/// exchanged, in names of eight letters or more also two letters; empty if there is none.
std::string meant(std::string_view key, const std::vector<std::string>& known);

}  // namespace sator::formats
