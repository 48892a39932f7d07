#include "study/file_names.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace sator::study {

std::string FileNames::unused(const std::string& stem) {
  std::string name = stem;
  for (int number = 2;; ++number) {
    std::string small = name;
    std::ranges::transform(small, small.begin(), [](unsigned char c) { return std::tolower(c); });
    if (taken_.insert(small).second) return name;
    name = text(stem, "_", number);
  }
}

}  // namespace sator::study
