#pragma once

#include <stdlib.h>

#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/file.h"

namespace sator {

/// A fresh folder that is removed with the object.
class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (fs::temp_directory_path() / "sator_test_XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  fs::path write(const std::string& name, std::string_view bytes) const {
    write_file(path_ / name, bytes);
    return path_ / name;
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// The message of the Error that `act` throws; empty if it throws none.
inline std::string error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace sator
