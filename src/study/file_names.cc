#include "study/file_names.h"

#include "base/text.h"

namespace sator::study {

std::string FileNames::unused(const std::string& stem) {
  std::string name = stem;
  for (int number = 2;; ++number) {
    if (taken_.insert(lower_case(name)).second) return name;
    name = text(stem, "_", number);
  }
}

}  // namespace sator::study
