// The chips of this checkout, wherever the tests run.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/file.h"
#include "target/chip.h"

namespace sator {

inline fs::path chips_folder() { return fs::path(SATOR_SOURCE_DIR) / "chips"; }

inline Chip shipped(const std::string& name) { return find_chip((chips_folder() / (name + ".toml")).string()); }

/// The names of all that the engine maps products on, sorted: not those with a mapping of their own.
inline std::vector<std::string> all_chips() {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(chips_folder()))
    if (entry.path().extension() == ".toml" && !shipped(entry.path().stem().string()).tenet)
      names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace sator
