#pragma once

#include <nlohmann/json_fwd.hpp>

namespace sator::formats {

/// MAESTRO's answer to `mapping` (.m) and `hardware`: `layers`, one object for each layer of the network, with figures of
/// six digits as MAESTRO's CSV prints them; a network of one layer has its keys beside `layers` too.
/// Errors: a key that is missing or not a text, and what the readers of the two files and the analysis refuse.
nlohmann::json answer_maestro(const nlohmann::json& input);

}  // namespace sator::formats
