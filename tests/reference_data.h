// Reference data that other programs computed: tests/reference has a part of each set.
#pragma once

#include <cstdlib>

#include "base/file.h"

namespace sator {

/// A file or folder of the reference data. $SATOR_REFERENCE names a folder with the complete sets, which
/// `./dev test --reference FOLDER` sets.
inline fs::path reference_data(const fs::path& name) {
  const char* complete = std::getenv("SATOR_REFERENCE");
  return (complete && *complete ? fs::path(complete) : fs::path(SATOR_SOURCE_DIR) / "tests" / "reference") / name;
}

}  // namespace sator
