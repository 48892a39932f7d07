// When something was measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sator::study {

/// Now, by ISO 8601 in UTC: "2026-11-22T20:45:03Z".
std::string utc_now();

/// Seconds between such a time and now, negative if it is to come; nothing if it is none.
std::optional<int64_t> seconds_since(const std::string& utc);

/// "12 minutes ago".
std::string ago_words(int64_t seconds);

}  // namespace sator::study
