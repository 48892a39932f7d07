// What every error about a tool's text must say.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "base/text.h"
#include "formats/format.h"

namespace sator::formats {

/// A change to a good text, and the line that the message about it names.
struct Mistake {
  const char* what;
  const char* by;
  int64_t line;
};

/// The format refuses the input with file, line, column, the broken rule and a way on; the refusal.
inline Reason expect_refusal(const char* format, const nlohmann::json& input, const std::string& file, int64_t line,
                             const std::string& note) {
  SCOPED_TRACE(note);
  try {
    ADD_FAILURE() << "answered " << find_format(format).answer(input).dump();
  } catch (const Error& error) {
    const std::string place = text(file, " line ", line, ", column ");
    EXPECT_EQ(error.reason.where.substr(0, place.size()), place) << error.what();
    EXPECT_FALSE(error.reason.what.empty());
    EXPECT_FALSE(error.reason.needs.empty());
    EXPECT_FALSE(error.reason.hint.empty());
    return error.reason;
  }
  return {};
}

}  // namespace sator::formats
