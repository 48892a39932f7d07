#pragma once

#include <set>
#include <string>

namespace sator::study {

/// Gives each file a name of its own, also where a file system does not tell small letters from capitals.
class FileNames {
 public:
  /// `stem`, or with the first number from 2 on behind it that is free: "f", "f_2".
  std::string unused(const std::string& stem);

 private:
  std::set<std::string> taken_;  // in small letters
};

}  // namespace sator::study
