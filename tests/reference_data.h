// Reference data that other programs computed: tests/reference has a part of each set.
#pragma once

#include <cstdlib>

#include "base/file.h"

namespace sator {

/// A file or folder of the reference data. $SATOR_REFERENCE names a folder with the complete sets, which
/// `./dev test --reference FOLDER` sets; what only the repository has (models of random weights that scripts of tools/ write) is
/// taken from there all the same.
inline fs::path reference_data(const fs::path& name) {
  const char* complete = std::getenv("SATOR_REFERENCE");
  if (complete && *complete && fs::exists(fs::path(complete) / name)) return fs::path(complete) / name;
  return fs::path(SATOR_SOURCE_DIR) / "tests" / "reference" / name;
}

}  // namespace sator
